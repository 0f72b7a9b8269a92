#!/bin/sh
# The main job: what a command gets, what it returns, and how it waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- what the command gets ---------------------------------------------------------------

run 'a command runs with the first GPU' 0 '0' '' \
	"$GPULEASE" sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
# GPU 0 was just released: others come first.
run 'two GPUs are exported by index and by uuid' 0 \
	'1,2 PCI_BUS_ID 1,2 1,2 GPU-*1,GPU-*2' '' "$GPULEASE" -n 2 -- sh -c \
	'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $NVIDIA_VISIBLE_DEVICES $GPULEASE_GPUS $GPULEASE_UUIDS"'
run 'the job knows its id' 0 '3' '' "$GPULEASE" sh -c 'echo "$GPULEASE_ID"'
run 'no GPU: an empty list, and none for containers' 0 '[] none' '' \
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
is 'nothing but the FIFO is open besides what was' \
	[ "$(sort "$S/fds.before" "$S/fds.after" | uniq -u)" = 100 ]
run 'a soft limit of descriptors is as before' 0 '77' '' \
	sh -c 'ulimit -Sn 77; exec "$0" sh -c "ulimit -Sn"' "$GPULEASE"
run 'with a low hard limit the FIFO gets a lower number' 0 '40' '' \
	sh -c 'ulimit -n 40; exec "$0" sh -c "ulimit -n"' "$GPULEASE"
run 'a limit of file sizes is as before' 0 '8' '' \
	sh -c 'ulimit -Sf 8; exec "$0" sh -c "ulimit -Sf"' "$GPULEASE"
run 'it is the process that was started' 0 'same' '' \
	sh -c 'p=$$; exec "$0" sh -c "[ \$\$ = $p ] && echo same"' "$GPULEASE"
printf 'echo script $1\n' >"$S/script" && chmod +x "$S/script"
run 'a script without #! is run by sh' 0 'script it' '' "$GPULEASE" "$S/script" it
run 'standard input is the command'"'"'s' 0 'typed' '' \
	sh -c 'echo typed | "$0" cat' "$GPULEASE"

# --- what it returns ---------------------------------------------------------------------

run 'the exit status is the command'"'"'s' 42 '' '' "$GPULEASE" sh -c 'exit 42'
run 'so is 124' 124 '' '' "$GPULEASE" sh -c 'exit 124'
run 'a signal that ends it is seen' 143 '' '*' sh -c '"$0" sh -c "kill -TERM \$\$"' "$GPULEASE"
run 'no such command: 127, before any ticket' 127 '' \
	"gpulease: command 'no-such-command' was not found" "$GPULEASE" no-such-command
for word in status queue cancel history help log pause doctor; do
	run "a verb without its dashes: $word" 127 '' \
		"gpulease: command '$word' was not found; did you mean --$word?" \
		env PATH="$S/empty" "$GPULEASE" "$word"
done
run 'a command in quotes' 127 '' \
	"gpulease: command 'sh -c true' was not found; leave the quotes around it out" \
	"$GPULEASE" 'sh -c true'
run 'one whose first word is no command either' 127 '' \
	"gpulease: command 'no-such a' was not found" "$GPULEASE" 'no-such a'
printf '#! /no/such/sh -e\n' >"$S/script"
run 'a script without its interpreter: 127, and which' 127 '' \
	"gpulease: cannot execute '$S/script': its interpreter '/no/such/sh' is not there" \
	"$GPULEASE" "$S/script"
run 'nothing to run, but --wait' 125 '' '*no command given; *--wait-for ID*' "$GPULEASE" --wait 3
run 'not executable: 126' 126 '' "gpulease: cannot execute '/etc/passwd': *" \
	"$GPULEASE" /etc/passwd
run 'a directory is not executable: 126' 126 '' 'gpulease: cannot execute*' "$GPULEASE" /

# --- waiting -----------------------------------------------------------------------------

holder all -n 8
run 'nothing free, at once: 124 and why' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' "$GPULEASE" -I true
run 'nothing free within the time: 124 and why' 124 '' \
	'gpulease: ticket * waits, 1st in the queue: needs 2 GPUs, none is free
gpulease: gave up after <1s: needs 2 GPUs, none is free' \
	"$GPULEASE" -n 2 --max-wait 100ms true
run '--immediate with a time waits that long' 124 '' '*gave up after*' \
	"$GPULEASE" --immediate=0.1 true
run '-Q says nothing' 124 '' '' "$GPULEASE" -Q --max-wait 50ms true
run 'no GPU needs no wait' 0 'ran' '' "$GPULEASE" -n 0 echo ran
waiter first -n 8
waiter second -n 1
is 'the line says who is ahead' \
	like "gpulease: ticket * waits, 2nd in the queue: behind ticket *, which waits for 8 GPUs" \
	"$(cat "$S/second.err")"
release_all all
wait_until 'runs first' || not_ok 'the first waiter starts'
is 'who comes second waits for the first' sh -c '! [ -e "$1" ]' - "$S/second.runs"
release_all first
is 'then it is its turn' wait_until 'runs second'
release_all second
is 'the line is the only one' [ "$(wc -l <"$S/second.err")" -eq 1 ]
holder one -n 1
holder two -n 1
is 'two jobs have two GPUs' [ "$(gpus_of one)" != "$(gpus_of two)" ]
release_all one two

# --- what is left behind -----------------------------------------------------------------

"$GPULEASE" -n 8 sh -c 'sleep 1000 & echo $! >"$0"' "$S/child" </dev/null >/dev/null 2>&1
run 'GPUs of a job whose child lives on are not given away' 124 '' \
	'*GPU 0 is kept by processes that ticket * left behind' "$GPULEASE" -I true
kill "$(cat "$S/child")"
run 'once it is gone they are' 0 '' '*' "$GPULEASE" -n 8 true
begin killed -n 8
wait_until 'runs killed'
kill -KILL "$(pid_of killed)"
run 'a killed job frees its GPUs' 0 '' '*' "$GPULEASE" -n 8 true

# --- steps -------------------------------------------------------------------------------

run 'inside a job the whole lease is used again' 0 '0,1,2' '' \
	"$GPULEASE" -n 3 "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'or the first of its GPUs' 0 '0,1' '' \
	"$GPULEASE" -n 3 "$GPULEASE" -n 2 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'or none' 0 '[]' '' "$GPULEASE" -n 3 "$GPULEASE" -n 0 sh -c 'echo "[$CUDA_VISIBLE_DEVICES]"'
run 'not more than it has' 125 '' \
	'gpulease: cannot use 4 GPUs: the lease around this step (ticket *) has 3' \
	"$GPULEASE" -n 3 "$GPULEASE" -n 4 true
show='echo "$CUDA_VISIBLE_DEVICES"'
run 'these of its GPUs' 0 1 '' "$GPULEASE" -n 2 "$GPULEASE" --gpu-ids 1 sh -c "$show"
run 'all but one' 0 '0,2' '' "$GPULEASE" -n 3 "$GPULEASE" --except 1 sh -c "$show"
run 'the first of some' 0 '1' '' "$GPULEASE" -n 3 "$GPULEASE" -n 1 --allow 1-7 sh -c "$show"
run 'by what they are' 0 '0,1' '' \
	"$GPULEASE" -n 2 "$GPULEASE" --model sim --vram 24G --min-vram 24G sh -c "$show"

# lacks TEXT REASON WORD…: a result, good if a step with WORD… of a job with two GPUs is refused.
lacks() {
	lacks_text=$1 lacks_reason=$2
	shift 2
	run "$lacks_text" 125 '' "gpulease: $lacks_reason" "$GPULEASE" -n 2 "$GPULEASE" "$@" true
}

of_it='of the lease around this step (ticket *)'
lacks 'GPUs of others' "cannot use 1 GPU: --gpu-ids 3 leaves none of 2 $of_it" --gpu-ids 3
lacks 'some of them' "cannot use 2 GPUs: --gpu-ids 1,3 leaves only 1 of 2 $of_it" --gpu-ids 1,3
lacks 'GPUs that there are not' '--gpu-ids: there is no GPU 9*' --gpu-ids 9
lacks 'none of what is left' "cannot use 1 GPU: --except 0,1 leaves none of 2 $of_it" --except 0,1
lacks 'too few of some' "cannot use 2 GPUs: --allow 1,3 leaves only 1 of 2 $of_it" -n 2 --allow 1,3
lacks 'another type of card' "cannot use 1 GPU: model H100 leaves none of 2 $of_it" --model H100
lacks 'more memory' "cannot use 1 GPU: --vram 900G leaves none of 2 $of_it" --vram 900G
lacks 'larger cards' "cannot use 1 GPU: --min-vram 900G leaves none *" --min-vram 900G
run 'more memory than was leased' 125 '' "gpulease: cannot use 1 GPU: --vram 5G leaves none *" \
	"$GPULEASE" --vram 4G "$GPULEASE" --vram 5G true
run 'a shared GPU for itself' 125 '' 'gpulease: this is a step of a lease (ticket *), and its '\
'GPU is shared with others; leave --exclusive out' \
	"$GPULEASE" --vram 4G "$GPULEASE" --exclusive true
for option in --shell --lease-only --report --preemptible --retries=2 --oom-retries=2 \
	--signal=USR1 --on-limit=requeue --after=1 --after-ok=1 --singleton --prefer=1; do
	case $option in
	--shell | --lease-only) set -- ;;
	--signal* | --on-limit*) set -- --time 1h true ;;
	--singleton) set -- --name x true ;;
	*) set -- true ;;
	esac
	run "what is not for a step: $option" 125 '*' \
		"gpulease: this is a step of a lease (ticket *), and *; leave ${option%%=*} out" \
		"$GPULEASE" -n 2 "$GPULEASE" "$option" "$@"
done
run 'a step is known without its environment' 0 '0,1,2' '' \
	"$GPULEASE" -n 3 env -u GPULEASE_TOKEN setsid -w "$GPULEASE" \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'a token of a lease that is over means nothing' 0 '0' '' \
	env GPULEASE_TOKEN=0123456789abcdef "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'

# --- time limits -------------------------------------------------------------------------

run 'a job is ended at its limit' 143 '' '*' "$GPULEASE" --time 200ms --grace 20s sleep 1000
told=': job [0-9]* has reached its time limit of <1s: TERM now, KILL after 20s$'
is 'which it is told' wait_until "grep -q '$told' '$S/err'"
# by its watchdog, a moment later, unless somebody takes the GPU before that
is 'which the history tells' wait_until '"$GPULEASE" --history | grep -q timed-out'
# until the limit leaves it the time to ignore anything
for limit in 100ms 3s 30s; do
	rm -f "$S/ignores"
	try "$GPULEASE" --time $limit --grace 100ms sh -c 'trap "" TERM; : >"$1"
		while :; do sleep 0.1; done' - "$S/ignores"
	[ ! -e "$S/ignores" ] || break
done
is 'one that ignores TERM is killed' [ "$rc" -eq 137 ]
run 'one that ends before is left alone' 7 '' '' "$GPULEASE" --time 1h sh -c 'exit 7'
run 'what it left behind is killed, too' 0 '' '*' sh -c '
	"$0" -n 8 --time 300ms --grace 100ms setsid -f sleep 1000
	exec "$0" -n 8 true' "$GPULEASE"
run 'that it is at its limit is said in a pipe, too' 0 'gpulease: job * has reached its time limit *' '*' \
	sh -c '"$0" --time 200ms sleep 1000 2>&1 >/dev/null | cat' "$GPULEASE"
run 'but not with -Q' 0 '' '*' \
	sh -c '"$0" -Q --time 200ms sleep 1000 2>&1 >/dev/null | cat' "$GPULEASE"
try sh -c '"$0" --time 300ms sh -c "exec 2>\"\$0\"; exec sleep 1000" "$1" 2>&1 | cat' \
	"$GPULEASE" "$S/other"
is 'nor in what the job has had as its stderr since' [ ! -s "$S/other" ]
run 'nobody has to wait for the watchdog' 0 '' '' timeout -s KILL "$DEADLINE" sh -c '
	"$0" --time 1h setsid -f sh -c "exec sleep 1000 >/dev/null 2>&1" 2>&1 | cat' "$GPULEASE"
run 'the command sees no watchdog among its children' 0 '' '' \
	"$GPULEASE" --time 1h sh -c 'read -r c </proc/$$/task/$$/children; echo "$c"'

finish
