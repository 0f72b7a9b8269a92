#!/bin/sh
# The output of a real Python in the background is in its log while the job runs and after a KILL.
# shellcheck disable=SC2016 # conditions and lines that others expand

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
if ! command -v python3 >/dev/null 2>&1; then
	skip 'the output of Python in the background' 'python3 is not installed'
	finish
fi
# images and CI services often set it
unset PYTHONUNBUFFERED

# "python3 $S/train.py NAME" prints a line and waits until `echo >$S/NAME.hold`
cat >"$S/train.py" <<'END'
import os, sys
print("epoch", sys.argv[1], os.environ.get("PYTHONUNBUFFERED", "none"))
if len(sys.argv) > 2:
    sys.exit()
os.mkfifo(sys.argv[1] + ".hold")
open(sys.argv[1] + ".hold").read()
END
cd "$S" || exit 1

# shows TEXT NAME VALUE COMMAND…: waits until the output of the command, a shell line, is this line
shows() {
	shows_text=$1 shows_line="epoch $2 $3"
	shift 3
	is "$shows_text" wait_until "[ \"\$($* 2>/dev/null)\" = '$shows_line' ]"
}

id=$("$GPULEASE" --submit -n 1 python3 train.py one)
shows '--log has a line that Python has printed a moment ago' one 1 '"$GPULEASE"' --log "$id"
"$GPULEASE" --signal-job "$id" KILL
"$GPULEASE" --wait-for "$id"
is 'the line is in the log after a KILL' like 'epoch one 1*' "$("$GPULEASE" --log "$id")"

started="$started $( # not with the output of this script: a pipe that `run` would wait for
	"$GPULEASE" -n 1 -o two.out python3 train.py two >/dev/null 2>&1 &
	echo $!
)"
shows '-o has a line that Python has printed a moment ago' two 1 cat two.out
echo >two.hold

echo 'python3 train.py three' >jobs.txt
"$GPULEASE" --batch jobs.txt -Q >/dev/null 2>&1 &
batch=$!
started="$started $batch"
shows '--batch: the log has that line' three 1 'grep epoch jobs.txt.logs/*.log'
echo >three.hold
wait "$batch"

"$GPULEASE" -n 1 -u python3 train.py four >four.out 2>&1 &
started="$started $!"
shows '-u: a redirected output has that line' four 1 cat four.out
echo >four.hold

run 'a job of a terminal or a pipe keeps the buffers of Python' 0 'epoch five none' '' \
	"$GPULEASE" -n 1 python3 train.py five now
run '-u alone sets the variable' 0 'epoch six 1' '' "$GPULEASE" -n 1 -u python3 train.py six now
for value in '' 0 yes; do
	run "PYTHONUNBUFFERED='$value' of the user stays" 0 "epoch seven $value" '' \
		env PYTHONUNBUFFERED="$value" "$GPULEASE" -n 1 -u python3 train.py seven now
done
run 'a value of --export stays' 0 'epoch eight x' '' \
	"$GPULEASE" -n 1 -u --export=PYTHONUNBUFFERED=x,PATH python3 train.py eight now
run '--shell leaves the variable of the shell alone' 0 'none' '' \
	sh -c 'eval "$("$0" --shell -u -n 1)"; echo "${PYTHONUNBUFFERED-none}"' "$GPULEASE"
finish
