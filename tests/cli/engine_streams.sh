#!/bin/sh
# The streams of a command in the foreground on a real Slurm cluster: closed ones, and pipes whose
# readers end early or read late.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch
cluster 1 2 || {
	skip 'streams of a command on a real cluster' "$cluster_why"
	finish
}
slurm_engine

# --- closed streams ---------------------------------------------------------------------------

# closed WHICH COMMAND…: it is started without this stream; limited, since srun may wait for ever
closed() {
	case $1 in
	stdin) shift && timeout 20 "$@" <&- ;;
	stdout) shift && timeout 20 "$@" >&- ;;
	all) shift && timeout 20 "$@" <&- >&- 2>&- ;;
	esac
}
run 'a closed stdin is empty' 0 '' '' closed stdin "$GPULEASE" cat
run 'a closed stdout takes what is printed' 5 '' err closed stdout "$GPULEASE" \
	sh -c 'echo out; echo err >&2; exit 5'
run 'all of them are closed' 5 '' '' closed all "$GPULEASE" sh -c 'cat; echo out; exit 5'

# --- the reader of the output ends ------------------------------------------------------------

# A command that goes on in spite of it ends at its limit.
LIMIT=60s

# reader_ends COMMAND…: its stdout goes to a program that ends after a line; its status is in $S/rc
reader_ends() {
	{
		"$@"
		echo $? >"$S/rc"
	} | head -n 1
}
# is_status STATUS: a result: $S/rc has it
is_status() {
	is "its status is $1" [ "$(cat "$S/rc")" = "$1" ]
}
errors() {
	{ "$@" >/dev/null; } 2>&1
}
run 'the reader of its stdout ends' 0 y '' reader_ends "$GPULEASE" timeout $LIMIT yes
is_status 141
run 'with a supervisor on the node' 0 y '' reader_ends "$GPULEASE" -t $LIMIT yes
is_status 141
run 'the reader of its stderr ends' 0 y '' reader_ends errors "$GPULEASE" -t $LIMIT sh -c 'yes >&2'
is_status 141
run 'both are one pipe' 0 y '' reader_ends sh -c 'exec "$@" 2>&1' sh "$GPULEASE" -t $LIMIT \
	sh -c 'yes >&2'
is_status 141
no_reader() {
	{
		"$@"
		echo $? >"$S/rc"
	} | :
}
run 'a command that does not write does not notice it' 0 '' '' no_reader "$GPULEASE" \
	sh -c 'exit 3'
is_status 3

# late: a reader that begins after the job has ended
late() {
	"$@" | {
		wait_until '[ -n "$(squeue -h -t CD -n late)" ]'
		wc -l
	}
}
run 'output that is read late is whole' 0 20000 '' late "$GPULEASE" --name late seq 20000
mkfifo "$S/fifo"
"$GPULEASE" --name held seq 20000 >"$S/fifo" 2>"$S/held.err" </dev/null &
held=$!
started="$started $held"
exec 3<"$S/fifo"
wait_until '[ -n "$(squeue -h -t CD -n held)" ]'
kill -TERM $held
wait $held
is 'a signal ends it while its output is not read' [ $? = 143 ]
exec 3<&-

finish
