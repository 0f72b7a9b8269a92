#!/bin/sh
# --status, --queue and --history: what they show for every state of a GPU, as text and as JSON, and
# that they change nothing.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

escape=$(printf '\033')

# value PATH…: the values of --status --json at these paths, a line each.
value() {
	"$GPULEASE" --status --json 2>/dev/null | "$TOOLS/jsoncheck" "$@"
}

# says TEXT VALUE PATH…: a result, good if VALUE is the values at the paths, with blanks between
# them.
says() {
	says_text=$1 says_value=$2
	shift 2
	says_is=$(value "$@" | tr '\n' ' ')
	if [ "$says_is" = "$says_value " ]; then
		ok "$says_text"
	else
		not_ok "$says_text" "not '$says_value' but '$says_is'"
	fi
}

# is_json TEXT OPTION…: a result, good if gpulease prints JSON and nothing else.
is_json() {
	json_text=$1
	shift
	try "$GPULEASE" "$@"
	json_why=$("$TOOLS/jsoncheck" <"$S/out")
	if [ "$rc" -eq 0 ] && [ -z "$json_why$err" ]; then
		ok "$json_text"
	else
		not_ok "$json_text" "exit status $rc" "$json_why" "stderr: $err"
	fi
}

# row N: the row of the last `try` or `run` for GPU N.
row() {
	printf '%s\n' "$out" | sed -n "s/^ *\($1  .*\)/\1/p" | head -n 1
}

# background COMMAND…: its process is $background.
background() {
	"$@" >"$S/background" 2>&1 </dev/null &
	background=$!
	started="$started $background"
}

# stranger: a process in the background that belongs to no job, a sleep
stranger() {
	background sleep 1000
	becomes "$background" sleep
}

# --- simulated GPUs ------------------------------------------------------------------------

idle_and_leased() {
	run '--status shows idle GPUs and that no job waits' 0 '4 x Simulated GPU, 24.0G each
GPU*MEMORY*STATE*JOB*idle*no job waits' '' \
		"$GPULEASE" --status
	says '--status --json shows an idle GPU' '0 Simulated GPU 24576 0 0 idle null null null null' \
		gpus.0.index gpus.0.model gpus.0.memory_total_mib gpus.0.memory_used_mib \
		gpus.0.utilization_percent gpus.0.state gpus.0.why gpus.0.ticket gpus.0.user \
		gpus.0.pid
	holder a -n 2 --name first
	waiter b -n 4 --time 1h
	me=$(id -un)
	says '--status --json shows a leased GPU' "leased $(id_of a) first $me $(pid_of a) null false" gpus.1.state \
		gpus.1.ticket gpus.1.name gpus.1.user gpus.1.pid gpus.1.why gpus.1.paused
	says '--status --json shows an idle GPU beside a leased one' 'idle null' gpus.2.state gpus.2.ticket
	says '--status --json shows the job that waits' "1 $me $(pid_of b) 4 3600000 false false needs 4 GPUs, 2 are free" \
		queue.0.position queue.0.user queue.0.pid queue.0.gpus queue.0.limit_ms \
		queue.0.can_start queue.0.stopped queue.0.why
	run '--queue shows the job that waits' 0 "POS*WHY*1*$me*4*needs 4 GPUs, 2 are free *sh -c*" '' "$GPULEASE" --queue
	is '--queue shows no GPUs' [ -z "$(printf '%s\n' "$out" | grep Simulated)" ]
	run '--status with a leased GPU' 0 '*' '' "$GPULEASE" --status
	is 'the row of a leased GPU has its ticket, user, pid and command' like "1  *leased *$(id_of a)  $me *$(pid_of a) *first*sh -c*" \
		"$(row 1)"
	is_json '--status --json prints JSON' --status --json
	is_json '--queue --json prints JSON' --queue --json
	is_json '--history --json prints JSON' --history --json
	stop b
	says '--status --json marks a stopped job' 'true' queue.0.stopped
	wake b
}

pauses() {
	run 'a free and a leased GPU are paused' 0 '*' '*' \
		"$GPULEASE" --pause 0,3 --reason 'the fan is broken'
	says 'the free one is paused' "paused true $me the fan is broken" gpus.3.state \
		gpus.3.paused gpus.3.paused_by gpus.3.pause_reason
	says 'the leased one is leased and paused' "leased true $(id_of a)" gpus.0.state \
		gpus.0.paused gpus.0.ticket
	run '--status with paused GPUs' 0 '*' '' "$GPULEASE" --status
	is 'the row of a paused GPU says so' like '*leased, paused*' "$(row 0)"
	is '--status says by whom and why a GPU is paused' like "*GPU 0,3: paused by $me: the fan is broken*" "$out"
	try "$GPULEASE" --resume 0,3
	says 'a resumed GPU is leased or idle again' 'leased idle false' gpus.0.state gpus.3.state gpus.3.paused
}

locks() {
	if ! flock -F /dev/null true 2>/dev/null; then
		skip 'a locked GPU' 'there is no flock(1) that becomes its command'
		return
	fi
	background flock -F "$(state_dir)/gpu/slot.3" sleep 1000
	is 'a GPU whose lease file stays locked is shown as locked' wait_until \
		'[ "$(value gpus.3.state)" = locked ]'
	says '--status --json names the process that holds the lock' "is locked by pid $background" gpus.3.why
	says 'another GPU is still shown as leased' 'leased' gpus.0.state
	kill -KILL "$background"
	is 'the GPU is idle when its file is not locked any more' wait_until '[ "$(value gpus.3.state)" = idle ]'
}

ends() {
	release_all a
	wait_until 'runs b' || bail 'job b does not start'
	release_all b
	# without pidfds its watchdog sees the end a moment later
	wait_until '[ "$("$GPULEASE" --history | grep -c "^ *[0-9]")" -eq 2 ]' || bail 'the end of b is not seen'
	run '--history shows the ended jobs' 0 "JOB*$me*0,1*ended*first*sh -c*$me*0,1,2,3*" '' \
		sh -c '"$1" --history | sed s/finished/ended/' sh "$GPULEASE"
	run '--history 1 shows the last job' 0 "JOB*$me*0,1,2,3*" '' "$GPULEASE" --history 1
	is '--history 1 shows one job' [ "$(printf '%s\n' "$out" | grep -c "$me")" -eq 1 ]
	"$GPULEASE" --history --json | "$TOOLS/jsoncheck" jobs.0.name jobs.0.gpus.1 jobs.1.name \
		jobs.1.gpus.3 jobs.0.how >"$S/ends"
	is '--history --json shows the ended jobs' [ "$(tr '\n' ' ' <"$S/ends")" = 'first 1 null 3 ended ' ]
}

# starts_in N LEAST MOST: whether --queue --json says that job N of the queue starts in LEAST to
# MOST seconds.
starts_in() {
	"$GPULEASE" --queue --json >"$S/queue"
	"$TOOLS/jsoncheck" "queue.$1.start_at_unix_ms" taken_unix_ms <"$S/queue" >"$S/starts"
	{ read -r starts_at && read -r taken_at; } <"$S/starts"
	starts=$(((starts_at - taken_at) / 1000))
	[ "$starts" -ge "$2" ] && [ "$starts" -le "$3" ]
}

shares() {
	holder first -n 0.1
	holder a -n 0.5 --name half -t 1h
	holder b -n 0.25 --vram 6G -t 2h
	is 'three jobs with shares run on one GPU' [ "$(gpus_of first) $(gpus_of a) $(gpus_of b)" = '0 0 0' ]
	release_all first
	holder last -n 0.2 # in its place in the file
	says 'the leases of a GPU are listed by ticket' "0 $(id_of a) $(id_of b) $(id_of last)" \
		gpus.0.index gpus.0.leases.0.ticket gpus.0.leases.1.ticket gpus.0.leases.2.ticket
	release_all last
	says '--status --json shows a GPU with two leases' "leased null $(id_of a) half 0.22 5632 0" gpus.0.state gpus.0.why \
		gpus.0.ticket gpus.0.name gpus.0.free_share gpus.0.free_mib gpus.0.foreign_mib
	says '--status --json shows the lease of a share' "$(id_of a) $(pid_of a) half 3600000 0.5 null false null false" \
		gpus.0.leases.0.ticket gpus.0.leases.0.pid gpus.0.leases.0.name \
		gpus.0.leases.0.limit_ms gpus.0.leases.0.share gpus.0.leases.0.vram_mib \
		gpus.0.leases.0.exclusive gpus.0.leases.0.peak_mib gpus.0.leases.0.lingering
	says '--status --json shows the lease of a share with memory' "$(id_of b) $me 0.25 6144" gpus.0.leases.1.ticket \
		gpus.0.leases.1.user gpus.0.leases.1.share gpus.0.leases.1.vram_mib
	says '--status --json shows the free share and memory of an idle GPU' '1 24064 0' gpus.1.free_share gpus.1.free_mib gpus.1.foreign_mib
	run '--status has a row for each lease' 0 "4 x *GPU*STATE*SHARE*JOB*
  0*leased *0.5 *$(id_of a) *half*
   *leased *0.25+6G *$(id_of b) *
  1*idle *-*no job waits" '' "$GPULEASE" --status
	holder w -n 3 -t 1h
	says 'a GPU that is leased whole has no free share' 'true null 0 0 null' gpus.1.leases.0.exclusive \
		gpus.1.leases.0.share gpus.1.free_share gpus.1.free_mib gpus.1.foreign_mib
	is_json '--status --json with shares prints JSON' --status --json
}

# With what shares() has left.
without_gpus() {
	holder bare -n 0 --name prep -t 1h
	run '--status shows a job without a GPU' 0 \
		"4 x *GPU*JOB*
no job waits

running without a GPU:
JOB *USER *PID *AGE *LEFT *NAME *COMMAND
 *$(id_of bare) *$me *$(pid_of bare) *prep *sh -c *" '' "$GPULEASE" --status
	run '--queue shows a job without a GPU' 0 "no job waits*without a GPU:*prep*" '' "$GPULEASE" --queue
	says '--status --json shows a job without a GPU' "$(id_of bare) 1 prep $me $(pid_of bare) 3600000" \
		running_without_gpus.0.ticket running_without_gpus.0.attempt \
		running_without_gpus.0.name running_without_gpus.0.user \
		running_without_gpus.0.pid running_without_gpus.0.limit_ms
	release_all bare
	run '--queue does not show it once it has ended' 0 'no job waits; 3 jobs run: see --status' '' "$GPULEASE" --queue
}

wishes() {
	waiter c -n 2 -t 1h
	waiter d -n 2 --vram 8G --priority=-5
	waiter e -n 0.5
	"$GPULEASE" --queue --json | "$TOOLS/jsoncheck" queue.0.ticket queue.2.ticket >"$S/ids"
	{ read -r of_c && read -r of_d; } <"$S/ids"
	says '--status --json lists the queue by priority' '0 0.5 -5 8192 2' queue.0.priority queue.1.share \
		queue.2.priority queue.2.vram_mib queue.2.gpus
	says '--status --json names the kind of each reason for waiting' "leased null leased null behind $of_c" queue.0.reason_kind \
		queue.0.behind queue.1.reason_kind queue.1.behind queue.2.reason_kind queue.2.behind
	run '--queue shows priorities, sizes, reasons and starting times' 0 "*PRIO*
  1 *$of_c *  2 *  0 *needs 2 GPUs, none is free; at the latest about ??:?? *
  2 *  0.5 *  0 *needs 0.5 of a GPU, at most 0.22 of one is free; starts about ??:?? *
  3 *$of_d *2x8G *  -5 *" '' sh -c '"$1" --queue | sed "s/about 20..-..-.. /about /g"' sh "$GPULEASE"
	is 'the head of the queue starts when leases end' starts_in 0 3500 3620
	is 'the second job of the queue starts when leases end' starts_in 1 3500 7300
	waiter f -n 1 --after "$(id_of a),$(id_of b)"
	waiter g -n 1 --singleton --name half
	says '--status --json shows jobs that other jobs hold back' "held $(id_of b) null null held $(id_of a) null null" \
		queue.2.reason_kind queue.2.after.1 queue.2.behind queue.2.start_at_unix_ms \
		queue.3.reason_kind queue.3.held_by queue.3.behind queue.3.start_at_unix_ms
	run '--queue says which jobs hold a job back' 0 "*comes after job $(id_of a), which*job $(id_of a) of the same name*" '' \
		"$GPULEASE" --queue
	echo 'all-gpus = 2' >"$S/conf"
	run '--queue shows the limit for all' 0 '*limit: 2 GPUs for all, 3.75 in use*' '' \
		"$GPULEASE" --config "$S/conf" --queue
	run '--queue --json names a limit as the reason' 0 '*"reason_kind": "limit"*' '' \
		"$GPULEASE" --config "$S/conf" --queue --json
	stop c
	says 'a stopped job does not block the next one' 'true null leased null' queue.0.stopped \
		queue.0.start_at_unix_ms queue.1.reason_kind queue.1.behind
	wake c
	release_all a b w c d e f g
}

lingers() {
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" \
		</dev/null >/dev/null 2>&1
	says 'a job that left a process behind lingers' 'lingering null' gpus.0.state gpus.0.pid
	run '--status says that processes were left behind' 0 '*GPU 0: kept by processes that job * left running*' '' \
		"$GPULEASE" --status
	kill -KILL "$(cat "$S/left")"
	is 'the GPU is idle when the process left behind has ended' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

hostile_names() {
	evil=$(printf 'a\033[31mb\001\377"')
	background "$GPULEASE" -n 1 --name "$evil" -- sh -c 'exec sleep 1000' "$evil" '{"x'
	is 'a job with a hostile name runs' wait_until '[ "$(value gpus.0.state)" = leased ]'
	run '--status shows a hostile name without control characters' 0 '*a?[[]31mb??" *sh -c*exec sleep 1000*a?[[]31mb*' '' \
		"$GPULEASE" --status
	! grep -q "$escape" "$S/out" || not_ok 'ESC in the output of --status'
	is_json '--status --json with a hostile name prints JSON' --status --json
	! grep -q "$escape" "$S/out" || not_ok 'ESC in the output of --status --json'
	says '--status --json escapes the bytes of a hostile name' 'a\u001b[31mb\u0001\ufffd\"' gpus.0.name
	kill -KILL "$background"
	is 'the job with a hostile name ends' wait_until '[ "$(value gpus.0.state)" = idle ]'
	"$GPULEASE" --history >"$S/out"
	! grep -q "$escape" "$S/out" || not_ok 'ESC in the history'
	is_json '--history --json with a hostile name prints JSON' --history --json
}

# --- how it is written -----------------------------------------------------------------------

widest() {
	awk '{ if (length > most) most = length } END { print most + 0 }'
}

terminals() {
	unset COLUMNS NO_COLOR
	on="$TOOLS/onterminal"
	TERM=xterm "$on" 200 "$GPULEASE" --status >"$S/colours"
	is '--status on a terminal has colours' grep -q "$escape" "$S/colours"
	TERM=xterm NO_COLOR=1 "$on" 200 "$GPULEASE" --status >"$S/no-colours"
	is '--status with NO_COLOR has no colours' [ -z "$(grep "$escape" "$S/no-colours")" ]
	TERM=dumb "$on" 200 "$GPULEASE" --status >"$S/no-colours"
	is '--status on a dumb terminal has no colours' [ -z "$(grep "$escape" "$S/no-colours")" ]
	"$GPULEASE" --status >"$S/no-colours"
	is '--status into a file has no colours' [ -z "$(grep "$escape" "$S/no-colours")" ]
	for width in 30 50 72; do
		NO_COLOR=1 "$on" "$width" "$GPULEASE" --status | sed 's/…/./g' >"$S/narrow"
		is "--status fits into $width columns" [ "$(widest <"$S/narrow")" -le "$width" ]
	done
	NO_COLOR=1 COLUMNS=40 "$on" 72 "$GPULEASE" --status | sed 's/…/./g' >"$S/narrow"
	is 'COLUMNS counts more than the width of the terminal' [ "$(widest <"$S/narrow")" -le 40 ]
}

circumstances() {
	(umask 077 && LANG=C LC_ALL=C TERM='' "$GPULEASE" --status >"$S/plain" 2>&1)
	is '--status works with umask 077 in the C locale' grep -q idle "$S/plain"
	run '--status works without stdin' 0 '*idle*' '' sh -c '"$0" --status <&-' "$GPULEASE"
	if [ -w /dev/full ]; then
		run 'output that cannot be written is an error' 125 '' \
			'gpulease: cannot write the output: *' \
			sh -c '"$0" --status >/dev/full' "$GPULEASE"
	fi
	run '--status works with 8 descriptors' 0 '*idle*' '' sh -c 'ulimit -Sn 8 && "$0" --status' \
		"$GPULEASE"
	run '--status works if no file may be written' 0 '*idle*' '' sh -c '(ulimit -f 0; exec "$0" --status) | cat' \
		"$GPULEASE"
}

# The contents of the state directory, except for the last answer of nvidia-smi.
fingerprint() {
	(cd "$(state_dir)" && find . ! -name probe -type f -exec cksum {} + | sort &&
		find . ! -path ./probe ! -path . -exec ls -dli {} + | sort)
}

nothing_changes() {
	holder a -n 1
	waiter b -n 4
	fingerprint >"$S/before"
	for verb in --status --queue --history; do
		"$GPULEASE" $verb >/dev/null
		"$GPULEASE" $verb --json >/dev/null
	done
	fingerprint >"$S/after"
	is '--status, --queue and --history change no file while jobs run' cmp "$S/before" "$S/after"
	release_all a
	wait_until 'runs b' || bail 'job b does not start'
	release_all b
	fingerprint >"$S/before"
	"$GPULEASE" --history >/dev/null
	fingerprint >"$S/after"
	is '--history changes no file after all jobs have ended' cmp "$S/before" "$S/after"
}

broken_records() {
	for lease in "$(state_dir)"/gpu/*.lease; do
		printf 'lease/1 nonsense' | dd of="$lease" bs=512 seek=1 conv=notrunc 2>/dev/null
		break
	done
	printf 'ticket/1 nonsense%495s' '' >>"$(state_dir)/tickets"
	run '--status skips broken records and says so' 0 '*idle*' \
		"gpulease: skipped in '*': 2 unreadable records; gpulease --doctor says more" "$GPULEASE" --status
	says 'to programs, too' '2' broken_records
}

# --- nvidia-smi ------------------------------------------------------------------------------

with_cards() {
	with_driver
	cat >"$S/smi/gpus" <<-CARDS
		0 GPU-00000000-0000-0000-0000-000000000000 00000000:01:00.0 81920 NVIDIA H200
		1 GPU-00000000-0000-0000-0000-000000000001 00000000:02:00.0 81920 NVIDIA H200
		2 GPU-00000000-0000-0000-0000-000000000002 00000000:03:00.0 81920 NVIDIA H200
	CARDS
}

no_driver() {
	run '--status without nvidia-smi' 0 'no GPU is known*nvidia-smi: not in PATH*no job waits' '' \
		env PATH=/proc/nonexistent "$GPULEASE" --status
	run '--status without a driver' 0 'no GPU is known*driver*no job waits' '' \
		env FAKE_SMI_DIR=/proc/nonexistent "$GPULEASE" --status
	rm -f "$S/dir/probe"
}

used_outside() {
	stranger
	echo "1 $background 5000" >"$S/smi/procs"
	echo 37 >"$S/smi/util.1"
	echo '[Unknown Error]' >"$S/smi/base.2"
	says '--status --json shows a GPU that is used outside gpulease' "external null $me $background sleep 1000 5000 37" \
		gpus.1.state gpus.1.ticket gpus.1.user gpus.1.pid gpus.1.command \
		gpus.1.memory_used_mib gpus.1.utilization_percent
	says '--status --json shows a GPU that nvidia-smi cannot read' 'unknown null 81920' gpus.2.state \
		gpus.2.memory_used_mib gpus.2.memory_total_mib
	says '--status --json shows an idle GPU with its model and bus' 'idle NVIDIA H200 0000:01:00.0' gpus.0.state gpus.0.model \
		gpus.0.bus_id
	run '--status names a GPU in an unknown state' 0 '*GPU 2: in an unknown state: *' '' "$GPULEASE" --status
	is 'the row of a GPU that is used outside names the process' like "1  *4.9G *37% *external *$me *$background *sleep 1000" \
		"$(row 1)"
}

answers_are_shared() {
	"$GPULEASE" --status >/dev/null
	calls=$(wc -l <"$S/smi/count")
	"$GPULEASE" --status >/dev/null
	[ "$(wc -l <"$S/smi/count")" -le $((calls + 2)) ] || not_ok 'nvidia-smi ran more than once'
	is 'nvidia-smi runs again only when its last answer is old' wait_until '
		calls=$(wc -l <"$S/smi/count")
		"$GPULEASE" --status >/dev/null
		[ "$(wc -l <"$S/smi/count")" -eq "$calls" ]'
}

hangs() {
	holder a -n 1
	touch "$S/smi/hang"
	is '--status shows the last answer while nvidia-smi hangs' wait_until \
		'try "$GPULEASE" --status; like "*nvidia-smi: last answer * ago*" "$out"'
	is '--status shows the states of the last answer' like "*leased *$(id_of a)*external *$background *unknown*" "$out"
	says '--status --json marks the last answer as old' 'true true' nvidia_smi.found nvidia_smi.is_old
	run '--queue works while nvidia-smi hangs' 0 'no job waits; 1 job runs: see --status' '' "$GPULEASE" --queue
	rm "$S/dir/probe"
	run '--status without any answer of nvidia-smi' 0 '*nvidia-smi: no answer yet*' '' "$GPULEASE" --status
	is '--status without an answer shows a leased GPU' like '0  *[?]G *leased*' "$(row 0)"
	is '--status without an answer shows other GPUs as unknown' like '1  *[?]G *unknown*' "$(row 1)"
	run '--status with a lease but without nvidia-smi' 0 '*leased*unknown*nvidia-smi: not in PATH*' '' \
		env PATH=/proc/nonexistent "$GPULEASE" --status
	rm "$S/smi/hang"
	release_all a
	kill -KILL "$background"
	is 'no nvidia-smi is left behind' wait_until '[ -z "$(strays)" ]'
}

settles() {
	rm -f "$S/smi/procs" "$S/smi/base.2" "$S/smi/util.1"
	holder a -n 1
	release_all a
	says 'a GPU is idle after its lease has ended' 'idle' gpus.0.state
	echo 3000 >"$S/smi/base.0"
	is 'a GPU is settling while memory is held' wait_until '[ "$(value gpus.0.state)" = settling ]'
	rm "$S/smi/base.0"
	is 'a GPU is idle when its memory is free' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

# A GPU that is shared and also used outside gpulease.
shared_outside() {
	holder a --vram 20G --gpu-ids 0
	stranger
	holder b --vram 4G --gpu-ids 0
	printf '%s\n' "0 $background 5000" "0 $(pid_of a) 21000" >"$S/smi/procs"
	is 'memory used outside on a shared GPU is shown' wait_until '[ "$(value gpus.0.foreign_mib)" = 5500 ]'
	says 'memory used outside is not free' '0 48712 leased' gpus.0.free_share gpus.0.free_mib gpus.0.state
	says 'the peak of a lease is shown' '20480 21000' gpus.0.leases.0.vram_mib \
		gpus.0.leases.0.peak_mib
	why="leased to job $(id_of a) ($me) and 1 other, and is also used outside gpulease by"
	why="$why pid $background ($me, sleep), counted as 5.4G"
	says '--status --json says which process uses a shared GPU outside' "is $why" gpus.0.why
	run '--status says which process uses a shared GPU outside' 0 "*leased *20G *$(id_of a) *GPU 0: $why*" '' "$GPULEASE" --status
	says 'no memory is used outside on another GPU' 'idle 0' gpus.1.state gpus.1.foreign_mib
	rm "$S/smi/procs"
	kill -KILL "$background"
	release_all a b
	is 'the GPU is idle when that process has ended' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

instances() {
	echo Enabled >"$S/smi/mig.2"
	printf '%s\n' '2 0 3g.40gb MIG-aaaa' '2 1 1g.10gb MIG-GPU-2/8/0' >"$S/smi/migs"
	is '--status --json shows the profile of a MIG instance' wait_until '[ "$(value gpus.2.mig.0.profile)" = 3g.40gb ]'
	says '--status --json shows all MIG instances' '0 MIG-aaaa 1 1g.10gb MIG-GPU-2/8/0' gpus.2.mig.0.device \
		gpus.2.mig.0.uuid gpus.2.mig.1.device gpus.2.mig.1.profile gpus.2.mig.1.uuid
	says '--status --json shows no other MIG instances' "nothing at 'gpus.2.mig.2'" gpus.2.mig.2
	run '--status names the MIG instances of a GPU' 0 \
		'*GPU 2: MIG is enabled; its instances 2:0, 2:1 are leased instead*' '' \
		"$GPULEASE" --status
	is_json '--status --json with MIG prints JSON' --status --json
	rm "$S/smi/mig.2" "$S/smi/migs"
	is 'the GPU is idle when MIG is off' wait_until '[ "$(value gpus.2.state)" = idle ]'
	says '--status --json shows no instances when MIG is off' "nothing at 'gpus.2.mig.0'" gpus.2.mig.0
}

all_slots_used() {
	fresh
	"$GPULEASE" -n0 sleep 1000 2>"$S/err" &
	background=$!
	is 'a job runs' wait_until '"$GPULEASE" --queue | grep -q "sleep 1000"'
	rm -rf "$S"/dir/gpu/*
	slot=0
	while [ $slot -lt 128 ]; do
		ln -s -- - "$S/dir/gpu/slot.$slot"
		slot=$((slot + 1))
	done
	run '--status reports GPUs without a slot' 0 '*' \
		"*gpulease: 2 GPUs are not shown and cannot be leased: all 128 slots in *" \
		"$GPULEASE" --status
	says '--status --json counts GPUs without a slot' 2 without_slot
	"$GPULEASE" --doctor >"$S/doctor" 2>&1
	is '--doctor reports GPUs without a slot' grep -q '^fail *state files: 2 GPUs cannot be leased: all 128' "$S/doctor"
	run 'slots keep their numbers while a job runs' 125 '' '*' "$GPULEASE" -Q -I -n1 true
	kill $background
	wait $background 2>/dev/null
	background=
	run 'slots that lead nowhere are reused when no job runs' 0 'GPU-00000001-*' '' \
		"$GPULEASE" -Q -I -n1 --gpu-ids 1 sh -c 'echo "$GPULEASE_UUIDS"'
	says 'all GPUs have a slot afterwards' '0 idle idle' without_slot gpus.0.state gpus.1.state
}

scratch
sim 4
me=$(id -un)
idle_and_leased
pauses
locks
ends
shares
without_gpus
wishes
lingers
hostile_names
terminals
circumstances
nothing_changes
broken_records
with_cards
no_driver
used_outside
answers_are_shared
hangs
settles
shared_outside
instances
all_slots_used
finish
