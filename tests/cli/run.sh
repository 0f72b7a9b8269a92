#!/bin/sh
# A plain job: what its command gets, its exit status, how it waits, steps and time limits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- what the command gets ---------------------------------------------------------------

run 'a command runs with the first GPU' 0 '0' '' \
	"$GPULEASE" sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
# GPU 0 was just released: the other GPUs come first.
run 'two GPUs are exported by index and by uuid' 0 \
	'1,2 PCI_BUS_ID 1,2 1,2 GPU-*1,GPU-*2' '' "$GPULEASE" -n 2 -- sh -c \
	'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $NVIDIA_VISIBLE_DEVICES $GPULEASE_GPUS $GPULEASE_UUIDS"'
run 'the job knows its id' 0 '3' '' "$GPULEASE" sh -c 'echo "$GPULEASE_ID"'
run 'a job without GPUs sees no GPU, also in containers' 0 '[] none' '' \
	"$GPULEASE" -n 0 sh -c 'echo "[$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES"'
run 'the words of the command stay as they are' 0 'a b|*|$x|' '' \
	"$GPULEASE" -- printf '%s|' 'a b' '*' '$x'
run 'SLURM_* of another job is not passed on' 0 'none' '' \
	env SLURM_PROCID=3 "$GPULEASE" sh -c 'echo "${SLURM_PROCID-none}"'
run 'the environment is passed on otherwise' 0 'kept' '' \
	env MINE=kept "$GPULEASE" sh -c 'echo "$MINE"'
cat >"$S/fds" <<'EOF'
for f in /proc/$$/fd/*; do echo "${f##*/}"; done
EOF
sh "$S/fds" >"$S/fds.before"
"$GPULEASE" sh "$S/fds" >"$S/fds.after"
is 'the command has one more descriptor open: the FIFO' \
	[ "$(sort "$S/fds.before" "$S/fds.after" | uniq -u)" = 100 ]
run 'the soft limit of descriptors is unchanged' 0 '77' '' \
	sh -c 'ulimit -Sn 77; exec "$0" sh -c "ulimit -Sn"' "$GPULEASE"
run 'with a low hard limit the FIFO gets a lower number' 0 '40' '' \
	sh -c 'ulimit -n 40; exec "$0" sh -c "ulimit -n"' "$GPULEASE"
run 'the limit of file sizes is unchanged' 0 '8' '' \
	sh -c 'ulimit -Sf 8; exec "$0" sh -c "ulimit -Sf"' "$GPULEASE"
run 'the command keeps the pid of gpulease' 0 'same' '' \
	sh -c 'p=$$; exec "$0" sh -c "[ \$\$ = $p ] && echo same"' "$GPULEASE"
printf 'echo script $1\n' >"$S/script" && chmod +x "$S/script"
run 'a script without #! is run by sh' 0 'script it' '' "$GPULEASE" "$S/script" it
run 'the command reads the standard input of gpulease' 0 'typed' '' \
	sh -c 'echo typed | "$0" cat' "$GPULEASE"

# --- what it returns ---------------------------------------------------------------------

run 'the exit status is that of the command' 42 '' '' "$GPULEASE" sh -c 'exit 42'
run 'exit status 124 of the command passes through' 124 '' '' "$GPULEASE" sh -c 'exit 124'
run 'a signal that ends the command is visible to the caller' 143 '' '*' sh -c '"$0" sh -c "kill -TERM \$\$"' "$GPULEASE"
run 'an unknown command: 127, before any ticket' 127 '' \
	"gpulease: command 'no-such-command' was not found" "$GPULEASE" no-such-command
for word in status queue cancel history help log pause doctor; do
	run "a verb without its dashes: $word" 127 '' \
		"gpulease: command '$word' was not found; did you mean --$word?" \
		env PATH="$S/empty" "$GPULEASE" "$word"
done
run 'a command in quotes: 127, with advice' 127 '' \
	"gpulease: command 'sh -c true' was not found; remove the quotes around it" \
	"$GPULEASE" 'sh -c true'
# unlike a command with its words in quotes, these need a shell, or env
for line in 'echo a | cat' 'no-such >log' 'cd / && pwd' 'A=1 echo'; do
	run "a line for a shell: $line" 127 '' \
		"gpulease: command '$line' was not found; put sh -c before it" "$GPULEASE" "$line"
done
run 'a variable before the command' 127 '' \
	"gpulease: command 'A=1' was not found; put env before it" "$GPULEASE" A=1 echo
# the words of other queues, where no program has that name
for word in 'jobs did you mean --status, or --queue for what waits?' \
	'squeue did you mean --status, or --queue for what waits?' \
	'screens did you mean --sessions?' 'run leave it out, and write the command'; do
	run "a word of another queue: ${word%% *}" 127 '' \
		"gpulease: command '${word%% *}' was not found; ${word#* }" \
		env PATH="$S/empty" "$GPULEASE" "${word%% *}"
done
mkdir "$S/bin" "$S/here"
printf '#!/bin/sh\necho a program\n' >"$S/bin/squeue"
chmod +x "$S/bin/squeue"
run 'a list of two words' 127 '' \
	"gpulease: command '1' was not found; write a list as one word: 0,1" "$GPULEASE" --gpu-ids 0 1 true
run 'a size of two words' 127 '' \
	"gpulease: command 'GB' was not found; write a size as one word: 8G" "$GPULEASE" --vram 8 GB true
run 'a program of that name runs' 0 'a program' 'gpulease: squeue only asks Slurm, *' env PATH="$S/bin:$PATH" "$GPULEASE" squeue
# files that are no programs, or not in PATH
cp "$S/bin/squeue" "$S/here/list"
(cd "$S/here" && : >'my jobs.txt' && : >jobs.txt && : >train.py && : >job.sh && : >notes && mkdir d.txt)
for file in 'jobs.txt --batch jobs.txt' 'train.py python3 train.py' 'job.sh sh job.sh' \
	'list ./list'; do
	run "a file: ${file%% *}" 127 '' \
		"gpulease: command '${file%% *}' was not found; did you mean ${file#* }?" \
		sh -c 'cd "$1/here" && "$2" "$3"' - "$S" "$GPULEASE" "${file%% *}"
done
run 'a file with a blank in its name' 127 '' "*did you mean --batch 'my jobs.txt'?" \
	sh -c 'cd "$1/here" && "$2" "my jobs.txt"' - "$S" "$GPULEASE"
for file in notes d.txt; do
	run "no guess for $file" 127 '' "gpulease: command '$file' was not found" \
		sh -c 'cd "$1/here" && "$2" "$3"' - "$S" "$GPULEASE" "$file"
done
long=$S/here/$(printf '%064d' 0)
: >"$long"
run 'a long path is shown whole' 126 '' "gpulease: cannot execute '$long': Permission denied" \
	"$GPULEASE" "$long"
run 'a path to a jobs file: 126' 126 '' \
	"gpulease: cannot execute '*': Permission denied; did you mean --batch *here/jobs.txt?" \
	"$GPULEASE" "$S/here/jobs.txt"
run 'an unknown command in quotes: 127' 127 '' \
	"gpulease: command 'no-such a' was not found" "$GPULEASE" 'no-such a'
printf '#! /no/such/sh -e\n' >"$S/script"
run 'a script without its interpreter: 127, and its name' 127 '' \
	"gpulease: cannot execute '$S/script': its interpreter '/no/such/sh' does not exist" \
	"$GPULEASE" "$S/script"
run '--wait without a command suggests --wait-for' 125 '' '*no command given; *--wait-for ID*' "$GPULEASE" --wait 3
run 'a file that is not executable: 126' 126 '' "gpulease: cannot execute '/etc/passwd': *" \
	"$GPULEASE" /etc/passwd
mkdir -m 0 "$S/closed"
unable= # root without its capabilities is kept out as well
[ "$(id -u)" -ne 0 ] || unable='setpriv --bounding-set=-all'
if $unable ls "$S/closed" >/dev/null 2>&1 || ! $unable true 2>/dev/null; then
	skip 'a folder of PATH that is closed holds no program: 127' 'no folder is closed to root'
else
	# shellcheck disable=SC2086
	run 'a folder of PATH that is closed holds no program: 127' 127 '' \
		"gpulease: command 'no-such' was not found" \
		env PATH="$S/closed:$PATH" $unable "$GPULEASE" no-such
	# shellcheck disable=SC2086
	run 'a path through a closed folder: 126' 126 '' \
		"gpulease: cannot execute '$S/closed/no-such': Permission denied" \
		$unable "$GPULEASE" "$S/closed/no-such"
fi
run 'a directory is not executable: 126' 126 '' 'gpulease: cannot execute*' "$GPULEASE" /

# Lines for sbatch are read by sbatch alone.
printf '#!/bin/sh\n# a job\n#SBATCH -n 2\necho ran\n' >"$S/job.slurm"
chmod +x "$S/job.slurm"
unread="gpulease: the #SBATCH lines of 'job.slurm' are not read; *"
run 'a script with lines for sbatch runs, and a note says that they are not read' \
	0 ran "$unread" "$GPULEASE" "$S/job.slurm"
is 'the note is one line' [ "$(grep -c . "$S/err")" = 1 ]
run 'sh runs it with the note' 0 ran "$unread" "$GPULEASE" sh "$S/job.slurm"
run 'the note is for the script in the directory of -D' 0 ran "$unread" \
	"$GPULEASE" -D "$S" ./job.slurm
run '--submit prints the note on the terminal, before the id' 0 '[0-9]*' "$unread" \
	"$GPULEASE" --submit "$S/job.slurm"
run '-Q leaves the note out' 0 ran '' "$GPULEASE" -Q "$S/job.slurm"
run 'a command with the script as an argument gives no note' 0 "$S/job.slurm" '' \
	"$GPULEASE" echo "$S/job.slurm"
mkfifo "$S/fifo"
printf 'echo fifo\n#SBATCH\n' >"$S/fifo" &
run 'a script in a FIFO is left to the command' 0 fifo '' "$GPULEASE" sh "$S/fifo"
printf '#!/bin/sh\necho ran\necho "#SBATCH"\n' >"$S/job.slurm"
run 'a script that only names such lines gives no note' 0 'ran
#SBATCH' '' "$GPULEASE" "$S/job.slurm"
if [ "$(id -u)" = 0 ]; then
	skip 'a script that cannot be read is left to the command' 'root can read it'
else
	printf '#SBATCH\n#SBATCH\n' >"$S/job.slurm"
	chmod 0111 "$S/job.slurm"
	try "$GPULEASE" sh "$S/job.slurm"
	is 'a script that cannot be read is left to the command' \
		[ "${err%SBATCH*}" = "$err" ]
fi

# --- waiting -----------------------------------------------------------------------------

holder all -n 8
run 'no GPU free, with --immediate: 124 and the reason' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' "$GPULEASE" -I true
run 'no GPU free within --max-wait: 124 and the reason' 124 '' \
	'gpulease: job * waits, 1st in the queue: needs 2 GPUs, none is free
gpulease: gave up after <1s: needs 2 GPUs, none is free' \
	"$GPULEASE" -n 2 --max-wait 100ms true
run '--immediate with a time waits that long' 124 '' '*gave up after*' \
	"$GPULEASE" --immediate=0.1 true
run '-Q suppresses the messages of a job that gives up' 124 '' '' "$GPULEASE" -Q --max-wait 50ms true
run 'a job without GPUs does not wait' 0 'ran' '' "$GPULEASE" -n 0 echo ran
waiter first -n 8
waiter second -n 1
is 'the line of a waiting job names the ticket ahead' \
	like "gpulease: job * waits, 2nd in the queue: behind job *, which waits for 8 GPUs" \
	"$(cat "$S/second.err")"
release_all all
wait_until 'runs first' || not_ok 'the first waiter starts'
is 'the second waiting job waits for the first' sh -c '! [ -e "$1" ]' - "$S/second.runs"
release_all first
is 'the second waiting job starts after the first' wait_until 'runs second'
release_all second
is 'a waiting job prints one line' [ "$(wc -l <"$S/second.err")" -eq 1 ]
holder one -n 1
holder two -n 1
is 'two jobs have two GPUs' [ "$(gpus_of one)" != "$(gpus_of two)" ]
release_all one two

# --- what is left behind -----------------------------------------------------------------

"$GPULEASE" -n 8 sh -c 'sleep 1000 & echo $! >"$0"' "$S/child" </dev/null >/dev/null 2>&1
run 'GPUs of a job whose child lives on are not given away' 124 '' \
	'*GPU 0 is kept by processes that job * left running; also lingering: GPU 1,2,3,4,5,6,7' "$GPULEASE" -I true
kill "$(cat "$S/child")"
run 'the GPUs are given away when that child has ended' 0 '' '*' "$GPULEASE" -n 8 true
begin killed -n 8
wait_until 'runs killed'
kill -KILL "$(pid_of killed)"
run 'a killed job frees its GPUs' 0 '' '*' "$GPULEASE" -n 8 true
holder all -n 8
waiter killed -n 8
waiter next -n 8
kill -KILL "$(pid_of killed)"
release_all all
is 'a killed waiter holds up no other waiter' wait_until 'runs next'
release_all next

# --- steps -------------------------------------------------------------------------------

run 'a step uses all GPUs of its job' 0 '0,1,2' '' \
	"$GPULEASE" -n 3 "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'a step with -n 2 uses the first two GPUs of its job' 0 '0,1' '' \
	"$GPULEASE" -n 3 "$GPULEASE" -n 2 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'a step with -n 0 uses no GPU' 0 '[]' '' "$GPULEASE" -n 3 "$GPULEASE" -n 0 sh -c 'echo "[$CUDA_VISIBLE_DEVICES]"'
run 'a step cannot have more GPUs than its job' 125 '' \
	'gpulease: cannot use 4 GPUs: the lease around this step (job *) has 3' \
	"$GPULEASE" -n 3 "$GPULEASE" -n 4 true
show='echo "$CUDA_VISIBLE_DEVICES"'
run 'a step with --gpu-ids uses these GPUs of its job' 0 1 '' "$GPULEASE" -n 2 "$GPULEASE" --gpu-ids 1 sh -c "$show"
run 'a step with --except uses the other GPUs of its job' 0 '0,2' '' "$GPULEASE" -n 3 "$GPULEASE" --except 1 sh -c "$show"
run 'a step with --allow uses the first allowed GPU of its job' 0 '1' '' "$GPULEASE" -n 3 "$GPULEASE" -n 1 --allow 1-7 sh -c "$show"
run 'a step can choose GPUs by model and memory' 0 '0,1' '' \
	"$GPULEASE" -n 2 "$GPULEASE" --model sim --vram 24G --min-vram 24G sh -c "$show"

# lacks TEXT REASON WORD…: a result, good if a step with the options WORD… in a job with two GPUs is
# refused for that reason.
lacks() {
	lacks_text=$1 lacks_reason=$2
	shift 2
	run "$lacks_text" 125 '' "gpulease: $lacks_reason" "$GPULEASE" -n 2 "$GPULEASE" "$@" true
}

of_it='of the lease around this step (job *)'
lacks 'a step cannot have a GPU that its job does not have' "cannot use 1 GPU: --gpu-ids 3 leaves none of 2 $of_it" --gpu-ids 3
lacks 'a step cannot have a GPU of its job and another one' "cannot use 2 GPUs: --gpu-ids 1,3 leaves only 1 of 2 $of_it" --gpu-ids 1,3
lacks 'a step cannot have a GPU that does not exist' '--gpu-ids: there is no GPU 9*' --gpu-ids 9
lacks 'a step cannot except all GPUs of its job' "cannot use 1 GPU: --except 0,1 leaves none of 2 $of_it" --except 0,1
lacks 'a step cannot have more GPUs than --allow leaves' "cannot use 2 GPUs: --allow 1,3 leaves only 1 of 2 $of_it" -n 2 --allow 1,3
lacks 'a step cannot have another model of GPU' "cannot use 1 GPU: model H100 leaves none of 2 $of_it" --model H100
lacks 'a step cannot have more memory than a GPU has' "cannot use 1 GPU: --vram 900G leaves none of 2 $of_it" --vram 900G
lacks 'a step cannot have a larger GPU than its job' "cannot use 1 GPU: --min-vram 900G leaves none *" --min-vram 900G
run 'a step cannot declare more memory than its job' 125 '' "gpulease: cannot use 1 GPU: --vram 5G leaves none *" \
	"$GPULEASE" --vram 4G "$GPULEASE" --vram 5G true
run 'a step on a shared GPU cannot be exclusive' 125 '' 'gpulease: this is a step of job *, and its '\
'GPU is shared with others; leave --exclusive out' \
	"$GPULEASE" --vram 4G "$GPULEASE" --exclusive true
for option in --shell --lease-only --report --preemptible --retries=2 --oom-retries=2 \
	--signal=USR1 --on-limit=requeue --after=1 --after-ok=1 --singleton --prefer-gpus=1 \
	--models=/dev/null --margin=1G --spike-buffer=20% --idle-threshold=1M; do
	case $option in
	--shell | --lease-only) set -- ;;
	--signal* | --on-limit*) set -- --time 1h true ;;
	--singleton) set -- --name x true ;;
	*) set -- true ;;
	esac
	run "a step cannot have $option" 125 '*' \
		"gpulease: this is a step of job *, and *; leave ${option%%=*} out" \
		"$GPULEASE" -n 2 "$GPULEASE" "$option" "$@"
done
run 'a step with -v says that it has no name' 0 '' '*--name is accepted and ignored: a step *' \
	"$GPULEASE" "$GPULEASE" -v -J step true
run 'a step is recognized without GPULEASE_TOKEN' 0 '0,1,2' '' \
	"$GPULEASE" -n 3 env -u GPULEASE_TOKEN setsid -w "$GPULEASE" \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'the token of an ended lease does not make a step' 0 '0' '' \
	env GPULEASE_TOKEN=0123456789abcdef "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'

# --- time limits -------------------------------------------------------------------------

run 'a job is ended at its limit' 143 '' '*' "$GPULEASE" --time 200ms --grace 20s sleep 1000
told=': job [0-9]* has reached its time limit of <1s: TERM now, KILL after 20s$'
is 'a message announces the end at the limit' wait_until "grep -q '$told' '$S/err'"
# by the watchdog, a moment later, unless another job takes the GPU before
is 'the history says timed-out' wait_until '"$GPULEASE" --history | grep -q timed-out'
# until the limit leaves the job the time to set its trap
for limit in 100ms 3s 30s; do
	rm -f "$S/ignores"
	try "$GPULEASE" --time $limit --grace 100ms sh -c 'trap "" TERM; : >"$1"
		while :; do sleep 0.1; done' - "$S/ignores"
	[ ! -e "$S/ignores" ] || break
done
is 'a job that ignores TERM is killed after its grace time' [ "$rc" -eq 137 ]
run 'a job that ends before its limit has its own status' 7 '' '' "$GPULEASE" --time 1h sh -c 'exit 7'
run 'processes that a job left behind are killed at its limit' 0 '' '*' sh -c '
	"$0" -n 8 --time 300ms --grace 100ms setsid -f sleep 1000
	exec "$0" -n 8 true' "$GPULEASE"
run 'the message about the limit is written into a pipe, too' 0 'gpulease: job * has reached its time limit *' '*' \
	sh -c '"$0" --time 200ms sleep 1000 2>&1 >/dev/null | cat' "$GPULEASE"
run 'the message about the limit of a step is about the step' 0 \
	'gpulease: a step of job * has reached its time limit *' '*' \
	sh -c '"$0" sh -c "\"\$0\" --time 200ms sleep 1000" "$0" 2>&1 >/dev/null | cat' "$GPULEASE"
run '-Q suppresses the message about the limit' 0 '' '*' \
	sh -c '"$0" -Q --time 200ms sleep 1000 2>&1 >/dev/null | cat' "$GPULEASE"
try sh -c '"$0" --time 300ms sh -c "exec 2>\"\$0\"; exec sleep 1000" "$1" 2>&1 | cat' \
	"$GPULEASE" "$S/other"
is 'the message about the limit goes to the original stderr only' [ ! -s "$S/other" ]
run 'the watchdog does not keep the pipes of its caller open' 0 '' '' timeout -s KILL "$DEADLINE" sh -c '
	"$0" --time 1h setsid -f sh -c "exec sleep 1000 >/dev/null 2>&1" 2>&1 | cat' "$GPULEASE"
run 'the command sees no watchdog among its children' 0 '' '' \
	"$GPULEASE" --time 1h sh -c 'read -r c </proc/$$/task/$$/children; echo "$c"'

# --- a step that is stopped while it chooses ----------------------------------------------------

# chosen TEXT STATUS OPTION…: a step in a job whose turn to choose another process holds
chosen() {
	chosen_text=$1 chosen_status=$2
	shift 2
	run "a step was stopped while it chooses: $chosen_text" "$chosen_status" '' '*' "$GPULEASE" \
		-n 2 sh -c 'exec 9>"$1/live/$GPULEASE_TOKEN.steps" && flock 9 && shift &&
			"$GPULEASE" --exclusive -n 1 "$@" true 9>&-' - "$(state_dir)" "$@"
}
if command -v flock >/dev/null; then
	chosen '-I gives up' 124 -I
	chosen '--max-wait counts' 124 --max-wait 0s
	chosen 'another step goes on' 0 --max-wait 20s
	chosen 'another step goes on without an option' 0
fi

# --- a job whose lease was lost -----------------------------------------------------------------

# lost TEXT STATUS STDOUT STDERR CODE: a result of CODE in a job for one of two GPUs whose lease
# files are gone.  In the queue, gpulease in it would wait for the end of its own job.
sim 2
lost() {
	lost_text=$1 lost_status=$2 lost_out=$3 lost_err=$4
	run "the lease is lost: $lost_text" "$lost_status" "$lost_out" "$lost_err" \
		"$GPULEASE" -n 1 sh -c "rm -f \"$two\"/gpu/*.lease; $5"
}
"$GPULEASE" -n 2 true
two=$(echo "$XDG_STATE_HOME"/gpulease/sim-2x*)
step='gpulease: the lease of job * was lost; this is a step on the GPUs of GPULEASE_UUIDS*'
unknown='gpulease: this process belongs to job *, whose lease was lost*'
show='sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_ID"'
bare='env -i PATH="$PATH" HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME" GPULEASE_SIM=$GPULEASE_SIM'
lost 'gpulease is a step' 0 '[01] [0-9]*' "$step" "\"\$GPULEASE\" -n 1 $show"
lost 'so it is without -n' 0 '[01] [0-9]*' "$step" "\"\$GPULEASE\" $show"
lost 'an exclusive step' 0 '[01] [0-9]*' "$step" "\"\$GPULEASE\" --exclusive -n 1 $show"
lost 'a step with a time limit' 0 '[01] [0-9]*' "$step" "\"\$GPULEASE\" --time 1h $show"
lost 'a step in a step' 0 'done' "$step" '"$GPULEASE" "$GPULEASE" echo done'
lost 'with the tag alone' 0 'done' "$step" 'env -u GPULEASE_TOKEN "$GPULEASE" echo done'
lost 'with the token alone' 0 'done' "$step" 'exec 9>&1; "$TOOLS/closing" "$GPULEASE" echo done'
lost 'without the variables the GPUs are not known' 125 '' "$unknown" "$bare \"\$GPULEASE\" -n 1 true"
lost 'more GPUs than it has' 125 '' "$step" '"$GPULEASE" -n 2 true'
lost '--shell is refused' 125 '(exit 125);' "$step" '"$GPULEASE" --shell'
lost '--retries is refused' 125 '' "$step" '"$GPULEASE" --retries 1 true'
echo true >"$S/lost.jobs"
lost 'a jobs file is refused' 125 '*no job starts before that one ends*' '' \
	"\"\$GPULEASE\" --batch \"$S/lost.jobs\""
lost 'a background job waits, and the job goes on' 0 '[0-9]*' '' '"$GPULEASE" --submit true'
run 'a job without GPUs has no lease to lose' 0 'a job' '' "$GPULEASE" -n 0 sh -c \
	"rm -f \"$two\"/gpu/*.lease; \"\$GPULEASE\" -n 1 echo a job"
run 'after all of that no GPU is withheld' 0 '' '*' "$GPULEASE" -n 2 --max-wait 30s true
finish
