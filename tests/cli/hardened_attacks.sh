#!/bin/sh
# The set-group-ID form under attack: what a hostile user tries against the state, against a
# running gpulease and its nvidia-smi, through the FIFO of a command, and with names and numbers.
# No attack succeeds, and other users get their GPUs.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'attacks on the set-group-ID form' "$@"

attack=$TOOLS/attack

# Names, types, modes and owners of all files in the state directory.
state_names() {
	find "$M/state" -printf '%p %y %m %U %G\n' | sort
}

# --- the state directory -------------------------------------------------------------------

state_files() {
	mkdir -m 0777 "$S/open/sample"
	as 1 sh -c 'echo text >"$1"' - "$S/open/sample/file"
	try as 1 "$attack" path "$S/open/sample/file"
	is 'the attacks work where they may' \
		[ "$(wc -l <"$S/out")" -ge 12 ]
	rm -f "$S"/tmp/attack.*
	"$U1" -n 2 true # makes the files of an idle state directory
	by 1 holder a -n 1
	by 2 waiter b -n 2
	"$U2" --status >"$S/open/status"
	state_names >"$S/before"
	is 'the state directory has files of each user' [ \
		"$(cut -d ' ' -f 4 "$S/before" | sort -u | wc -l)" -ge 3 ]
	for each in 1 2 3; do
		# shellcheck disable=SC2046 # no blanks in there
		run "user $each cannot do anything with any state file" 0 '' '' \
			as $each "$attack" path $(find "$M/state" -mindepth 1)
		run "user $each cannot do anything with the state directory" 0 '*looked at' '' \
			as $each sh -c \
			'"$1" path "$2" | grep -Ev "opened for its name|beside it"; :' - "$attack" "$M/state"
	done
	if as 1 unshare -Ur true 2>/dev/null; then
		# shellcheck disable=SC2046
		run 'root of a user namespace cannot do anything with a state file' 0 '' '' \
			as 1 unshare -Urm "$attack" path $(find "$M/state" -mindepth 1)
	else
		skip 'root of a user namespace cannot do anything with a state file' \
			'users may not make one'
	fi
	state_names >"$S/after"
	is 'the attacks have changed no file' cmp -s "$S/before" "$S/after"
	release_all a b
}

# --- running processes ---------------------------------------------------------------------

processes() {
	by 1 holder a -n 2
	by 2 waiter b -n 2
	run 'the attacks work on a command of the same user' 1 '*mem read*ptrace seize*' '' \
		as 1 "$attack" process "$(pid_of a)"
	run 'a waiting gpulease is closed to its own user' 0 '' '' \
		as 2 "$attack" process "$(pid_of b)"
	run 'a waiting gpulease is closed to another user' 0 '' '' as 1 "$attack" process \
		"$(pid_of b)"
	is 'the attacked gpulease still waits' like '[SRD]' "$(process_state "$(pid_of b)")"
	run 'a waiting gpulease cannot be killed by another user' 1 '' '*' as 1 /bin/kill \
		-KILL "$(pid_of b)"
	release_all a
	is 'the attacked gpulease gets its turn' wait_until 'runs b'
	release_all b
}

# ask: user 1 runs --dry-run, and its nvidia-smi does not answer yet; $smi are its processes.
ask() {
	: >"$S/open/log"
	rm -f "$S/open/go" "$M/state/probe"
	driver "wait $S/open/go" "log $S/open/log"
	"$U1" --dry-run true >"$S/open/seen" 2>&1 &
	asking=$!
	started="$started $asking"
	wait_until '[ "$(wc -l <"$S/open/log")" -ge 2 ]' || bail 'nvidia-smi is not asked'
	smi=$(cut -d ' ' -f 1 "$S/open/log")
	driver "log $S/open/log"
}

nvidia_smi() {
	configure 'probe-deadline = 1m' # it is not to be given up meanwhile
	ask
	for each in $smi; do
		run 'a running nvidia-smi is closed to its own user' 0 '' '' \
			as 1 "$attack" process "$each"
		run 'a running nvidia-smi is closed to another user' 0 '' '' as 2 "$attack" \
			process "$each"
	done
	for each in $smi; do # the asking gpulease gives them up once one is stopped
		as 1 kill -STOP "$each" 2>/dev/null
	done
	goes_on 'a stopped nvidia-smi keeps no other user from GPUs'
	for each in $smi; do
		as 1 kill -KILL "$each" 2>/dev/null
	done
	wait "$asking"
	goes_on 'the remains of a killed nvidia-smi keep no other user from GPUs'
	ask
	for each in $smi; do
		as 1 kill -KILL "$each" 2>/dev/null
	done
	wait "$asking"
	is 'other users see idle GPUs after a killed nvidia-smi' wait_until \
		'[ "$("$U2" --status --json |
		"$TOOLS/jsoncheck" gpus.0.state gpus.1.state | sort -u)" = idle ]'
	driver ''
	configure
}

# --- the FIFO that a command has -----------------------------------------------------------

# misuse HOW TEXT: a job of user 1 misuses its FIFO in this way and ends; user 2 waits for it.
misuse() {
	rm -f "$S/open/ready"
	"$U1" -n 2 -- sh -c 'fd=$(basename /proc/$$/fd/1??) && "$1" fd "$fd" "$2" >"$3.new"
		mv "$3.new" "$3"; exec sleep 1000' - "$attack" "$1" "$S/open/ready" &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/open/ready" ]' || bail "nothing could be tried: $1"
	by 2 waiter b -n 2
	try "$U3" --immediate -n 1 true
	is "$2: the GPU stays taken while the job runs" [ "$rc" -eq 124 ]
	kill -KILL "$job"
	is "$2: the GPU goes to the next job when the job ends" wait_until 'runs b'
	# in ticks; to read a whole FIFO byte by byte would take twenty seconds
	is "$2: the waiter has used little CPU time" \
		[ $(($(cut -d ' ' -f 14,15 "/proc/$(pid_of b)/stat" | tr ' ' +))) -lt 200 ]
	release_all b
	goes_on "$2: other users get GPUs"
	intact "$2: the state can be read"
}

fifo() {
	misuse other 'a FIFO opened anew, locked, linked'
	misuse write 'a FIFO filled'
	# no more than a process that a job has left can do: the GPUs are kept for the linger time
	configure 'linger-time = 2s'
	misuse mode 'a FIFO closed to the group'
	configure
}

# --- forgery -------------------------------------------------------------------------------

forgery() {
	"$U1" -n 2 -- sh -c 'echo "$GPULEASE_TOKEN" >"$1.new"; mv "$1.new" "$1"
		prlimit --locks --noheadings -o SOFT >"$1.tag"; exec sleep 1000' - "$S/open/token" &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/open/token.tag" ]' || bail 'no token'
	token=$(cat "$S/open/token") tag=$(tr -d ' ' <"$S/open/token.tag")
	run 'a user with the token of another user'"'"'s job gets no step' 124 '' '*' \
		env GPULEASE_TOKEN="$token" GPULEASE_ID=1 "$U2" --immediate -n 1 true
	run 'a user with the tag of another user'"'"'s job gets no step' 124 '' '*' \
		prlimit --locks="$tag" "$U2" --immediate -n 1 true
	run 'the user of the job gets a step with the token' 0 '' '' env \
		GPULEASE_TOKEN="$token" "$U1" --immediate -n 1 true
	run 'a job runs with the name of another user in USER' 0 '' '' as 2 env USER=root \
		LOGNAME=root \
		"$ROOT" -n 0 -- sh -c 'exit 0'
	try "$U3" --status --json
	is '--status shows the real user of a job' [ \
		"$("$TOOLS/jsoncheck" gpus.0.user <"$S/out")" = \
		$((UID_BASE + 1)) ]
	kill -KILL "$job"
	goes_on 'after the forgery other users get GPUs'
}

# --- names that lead back to descriptors ---------------------------------------------------

# state_content ID: the lasting names, the content of the lease files, and the ticket of that job
state_content() {
	state_names | grep -Ev "^$M/state/(live|bell|probe|topology|history)"
	cat "$M"/state/gpu/*.lease | cksum
	dd if="$M/state/tickets" bs=512 skip="$1" count=1 2>/dev/null
}

# A program of user 1 that calls gpulease with the name of every descriptor that gpulease may have.
write_reopen() {
	cat >"$S/open/reopen" <<'EOF'
#!/bin/sh
# reopen GPULEASE HOW FOLDERS: prints what came through, and how often gpulease was called.
gpulease=$1 calls=0
umask 022
evil='cat 2>/dev/null; echo forged; echo forged >&2; rm -f slot.* *.lease; mkdir evil'
cp /bin/false lines.jobs
for folder in $3; do
	n=2
	while [ $((n += 1)) -le 22 ]; do
		calls=$((calls + 1))
		p=$folder/$n
		case $2 in
		output) "$gpulease" -n 0 -o "$p" -- sh -c "$evil" ;;
		error) "$gpulease" -n 0 -e "$p" -- sh -c "$evil" ;;
		input) "$gpulease" -n 0 -i "$p" -- cat ;;
		supervised) "$gpulease" -n 0 --report -o "$p" -- sh -c "$evil" ;;
		submit) "$gpulease" -n 0 --submit -o "$p" -- sh -c "$evil" ;;
		beside) "$gpulease" -n 0 --report -o "$p/../evil" -e "$p/evil" -- sh -c "$evil" ;;
		link) ln -sf "$p" link; ln -sf "$p/evil" new
			"$gpulease" -n 0 --report -o link -e new -- sh -c "$evil" ;;
		folder) "$gpulease" -n 0 -D "$p" -- sh -c "$evil" ;;
		models) "$gpulease" -n 0 --models "$p" --model x -- true ;;
		batch) "$gpulease" --batch "$p" ;;
		logs) echo true >lines; "$gpulease" --batch lines --log-dir "$p/evil"
			"$gpulease" --batch lines --log-dir "$p" ;;
		add) "$gpulease" --add "$p" true; "$gpulease" --add "$p/evil" true ;;
		home) HOME=$p XDG_STATE_HOME=$p "$gpulease" -n 0 --submit -- sh -c "$evil" ;;
		screen) export TMUX_TMPDIR="$PWD" SHELL=/bin/sh
			"$gpulease" -n 0 --screen -o "$p" -- sh -c "$evil"
			HOME=$p XDG_STATE_HOME=$p "$gpulease" -n 0 --screen -- sh -c "$evil" ;;
		log) mkdir -p state/gpulease/logs; ln -sf "$p" state/gpulease/logs/1.log
			XDG_STATE_HOME=$PWD/state "$gpulease" --log 1 ;;
		esac </dev/null >>said 2>&1
	done
done
grep -a -E 'ticket/1|lease/1|gpu/1|tickets/1' said
echo "$calls"
EOF
	chmod 0755 "$S/open/reopen"
}

# reopen HOW TEXT [FOLDERS]: user 2 has both GPUs; user 1 owns the state files and opens them by
# that option.
reopen() {
	mkdir -m 0777 "$S/open/in.$1"
	state_content "$(id_of a)" >"$S/before"
	run "$2: nothing of the state is read" 0 '[1-9]*0' '' \
		as 1 sh -c 'cd "$1" && exec "$2" "$3" "$4" "$5"' - \
		"$S/open/in.$1" "$S/open/reopen" "$ROOT" "$1" "${3-/proc/self/fd}"
	# jobs in the background
	wait_until '! "$U3" --status --json | grep -q forged' || bail 'they do not end'
	state_content "$(id_of a)" >"$S/after"
	is "$2: nothing of the state is changed or made" cmp "$S/before" "$S/after"
	try "$U3" --immediate -n 1 true
	is "$2: the lease of another user stands" [ "$rc" -eq 124 ]
}

descriptors() {
	write_reopen
	"$U1" -n 2 true # makes the files of an idle state directory
	is 'the state files belong to user 1' \
		[ "$(stat -c %u "$M/state/tickets" "$M"/state/gpu "$M"/state/gpu/*.lease |
			sort -u)" = $((UID_BASE + 1)) ]
	by 2 holder a -n 2
	reopen output '-o to a descriptor of gpulease' '/proc/self/fd /dev/fd /proc/thread-self/fd'
	reopen error '-e'
	reopen input '-i'
	reopen supervised '-o of a job with a supervisor'
	reopen submit '-o in the background'
	reopen beside 'a name beside a descriptor'
	reopen link 'a link to a descriptor'
	reopen folder '-D'
	reopen models '--models'
	reopen batch '--batch'
	reopen logs '--log-dir'
	reopen add '--add'
	reopen home 'the folder for logs'
	reopen screen '-o and the log of a session'
	reopen log '--log'
	release_all a
	goes_on 'after the descriptors other users get GPUs'
	intact 'after the descriptors the state can be read'
}

# The parent of a command keeps its descriptors into the state.
parents() {
	"$U1" -n 1 --report -- sh -c 'echo "$PPID $$" >"$1.new"; mv "$1.new" "$1"
		exec sleep 1000' - "$S/open/parent" 2>/dev/null &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/open/parent" ]' || bail 'no parent'
	read -r parent command <"$S/open/parent"
	is 'gpulease is the parent of the command' [ "$parent" = "$job" ]
	run 'the parent of a command is closed to its user' 0 '' '' \
		as 1 "$attack" process "$job"
	run 'the parent of a command is closed to gpulease of the same user' 0 '' '' as 1 sh -c '
		n=2
		while [ $((n += 1)) -le 24 ]; do
			"$1" -n 0 -i "/proc/$2/fd/$n" -- echo read 2>/dev/null
			"$1" -n 0 --report -o "/proc/$2/fd/$n" -- echo wrote 2>/dev/null && echo wrote
		done; :' - "$ROOT" "$job"
	run 'root cannot open a state file through gpulease' 125 '' '*cannot open*' "$ROOT" -n 0 \
		-i "$(find "$M/state/gpu" -name '*.lease' | head -n 1)" -- cat
	kill -KILL "$job" "$command"
	goes_on 'after the kill of the parent other users get GPUs'
}

# --- what /proc tells of gpulease itself -----------------------------------------------------

own_proc() {
	for each in maps smaps numa_maps stat status fdinfo fd mem task; do
		for how in '--submit -o /dev/null' --report '--time 1h'; do
			# shellcheck disable=SC2086 # two words
			run "with $how the command cannot read $each of gpulease" 125 '' \
				"*cannot open*/proc/self/$each*" \
				"$U1" -n 0 $how -i "/proc/self/$each" -- cat
		done
	done
	run 'a file that a link in /proc leads to can be read' 0 'text' '' as 1 sh -c '
		echo text >"$1/proc.text"
		"$0" -n 0 --report -i /proc/self/fd/0 -- cat <"$1/proc.text" 2>/dev/null' \
		"$ROOT" "$S/open"
}

# --- limits ----------------------------------------------------------------------------------

# The watchdog of a job belongs to the job's user, as SECURITY in gpulease(1) says.
limits() {
	configure 'max-time = 1d'
	by 1 holder a -n 1
	wait_until '[ -n "$(own_guards)" ]' || bail 'no watchdog'
	limit=$(own_guards)
	run 'the user of a watchdog reaches only the limits of the watchdog' 1 \
		"$(printf 'prlimit read\nprlimit set')" '' as 1 "$attack" process "$limit"
	run 'another user cannot kill the watchdog' 1 '' '*' as 2 /bin/kill -KILL "$limit"
	run 'the user of a watchdog can kill it' 0 '' '' as 1 /bin/kill -KILL "$limit"
	release_all a
	configure
}

# --- stopping oneself ----------------------------------------------------------------------

stopped() {
	by 3 holder a -n 1
	by 1 waiter head -n 2
	by 2 waiter next -n 1
	stop head
	release_all a
	is 'a waiter that stops at the head of the queue is passed over' wait_until 'runs next'
	wake head
	release_all next
	is 'the waiter that was stopped keeps its place' wait_until 'runs head'
	release_all head
}

# --- names ---------------------------------------------------------------------------------

# harmless TEXT FILE: a result, good if the file has nothing that a terminal obeys.
harmless() {
	if tr -d '\n' <"$2" | LC_ALL=C grep -q "[[:cntrl:]]" ||
		LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$2"; then
		not_ok "$1" "$(od -c "$2" | head -n 20)"
	else
		ok "$1"
	fi
}

names() {
	evil=$(printf 'x\033[31m\033]0;title\007\nGPU 9 idle\r\b\302\23331m\377')
	mkdir "$S/open/$evil"
	cp /bin/sleep "$S/open/$evil/$evil"
	"$U1" -n 2 --name "$evil" -- "$S/open/$evil/$evil" 1000 &
	job=$!
	started="$started $job"
	wait_until '[ "$("$U3" --status --json | "$TOOLS/jsoncheck" gpus.1.state)" = leased ]' ||
		bail 'no job'
	by 1 waiter b -n 2 --name "$evil"
	by 2 waiter c -n 1
	for each in --status --queue; do
		try "$U3" $each
		harmless "$each shows another's names without harm" "$S/out"
		is "$each shows a name with a newline on one line" [ \
			"$(grep -c '^ *GPU 9' "$S/out")" -eq 0 ]
		try "$U3" $each --json
		harmless "$each --json shows another's names without harm" "$S/out"
		is "$each --json is valid JSON" [ -z "$("$TOOLS/jsoncheck" <"$S/out")" ]
	done
	harmless 'a waiter shows another'"'"'s names without harm' "$S/c.err"
	is 'a waiter shows another'"'"'s names in one line' [ "$(wc -l <"$S/c.err")" -eq 1 ]
	kill -KILL "$job"
	release_all b c
	try "$U3" --history
	harmless '--history shows another'"'"'s names without harm' "$S/out"
	try "$U3" --history --json
	is '--history --json is valid JSON' [ -z "$("$TOOLS/jsoncheck" <"$S/out")" ]
	run 'a command with an evil name is not found' 127 '' '*' "$U1" -n 0 "no$evil"
	harmless 'the message about an evil name is harmless' "$S/err"
}

# --- numbers -------------------------------------------------------------------------------

queue_limit() {
	configure 'max-waiting = 3'
	by 3 holder a -n 2
	for each in b c d; do
		by 1 waiter $each -n 1
	done
	run 'a user has only so many waiting jobs' 125 '' '*max-waiting*' "$U1" -n 1 true
	run 'max-waiting does not limit jobs without GPUs' 0 '' '' "$U1" -n 0 true
	by 2 waiter e -n 1
	waiter f -n 1
	ok 'max-waiting of one user does not limit other users and root'
	release_all a b c d e f
	run 'max-waiting does not limit later jobs' 0 '' '' "$U1" -n 1 true
	configure
}

flood() {
	by 3 holder a -n 2
	i=0 flood=''
	while [ $((i += 1)) -le 100 ]; do
		"$U1" -n 1 true 2>"$S/flood.err" &
		flood="$flood $!"
	done
	started="$started $flood"
	wait_until '[ "$("$U3" --queue | wc -l)" -gt 100 ]' || bail 'not all of them wait'
	run 'behind 100 jobs of one user other users can run --queue' 0 '*' '' "$U2" --queue
	run 'behind 100 jobs of one user a job without GPUs runs' 0 '' '' "$U2" -n 0 true
	by 2 waiter b -n 2
	# shellcheck disable=SC2086
	as 1 kill -KILL $flood
	release_all a
	is 'when the 100 jobs are killed, the job of another user starts' wait_until 'runs b'
	release_all b
	as 1 sh -c 'i=0; while [ $((i += 1)) -le 300 ]; do "$0" -n 0 true; done' "$ROOT"
	goes_on 'after 300 tickets of one user other users get GPUs'
	is 'the FIFOs of 300 jobs are swept' [ \
		"$(find "$M/state/live" "$M/state/bell" -type p | wc -l)" -lt 300 ]
}

state_files
processes
nvidia_smi
fifo
forgery
descriptors
parents
own_proc
limits
stopped
names
queue_limit
flood

finish
