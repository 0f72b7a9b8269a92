#!/bin/sh
# A command whose script does not exist is refused before it has a ticket.  A command that may find
# its script is run.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
mkdir "$S/work" "$S/bin" "$S/work/sub" "$S/work/package"
cd "$S/work" || exit 1

# A python that only says that it runs.
cat >"$S/bin/python" <<'END'
#!/bin/sh
echo "ran $*"
END
chmod +x "$S/bin/python"
ln -s python "$S/bin/python3.11"
PATH=$S/bin:$PATH
echo 'echo ran in the path' >"$S/bin/found.sh"
: >there.py
: >sub/below.py
ln -s there.py link.py
ln -s gone.py dangling.py
ln -s loop.py loop.py

# refused TEXT NAME COMMAND…: the command is refused because of the script NAME
refused() {
	refused_text=$1 refused_name=$2
	shift 2
	run "$refused_text" 127 '' "gpulease: there is no script '$refused_name'" "$@"
}

refused 'python without its script' gone.py "$GPULEASE" python gone.py --lr 3
refused '--submit' gone.py "$GPULEASE" --submit python gone.py
refused '--dry-run' gone.py "$GPULEASE" --dry-run python gone.py
refused 'a job without GPUs' gone.py "$GPULEASE" -n 0 python gone.py
refused 'a version of python, by its path' gone.py "$GPULEASE" "$S/bin/python3.11" gone.py
refused 'options without a value' gone.py "$GPULEASE" python -u -B gone.py
refused 'a shell' sub/gone "$GPULEASE" sh -eu sub/gone
refused 'a path' "$S/no/gone.py" "$GPULEASE" python "$S/no/gone.py"
refused 'a link to a missing file' dangling.py "$GPULEASE" python dangling.py
refused 'the directory of -D counts' there.py "$GPULEASE" -D sub python there.py
run 'nothing had a ticket' 0 'no job has ended yet' '' "$GPULEASE" --history

run 'a script that exists' 0 'ran there.py' '' "$GPULEASE" python there.py
run 'a script in the directory of -D' 0 'ran below.py' '' "$GPULEASE" -D sub python below.py
run 'a link to a script' 0 'ran link.py' '' "$GPULEASE" python link.py
run 'a link to itself is left to the command' 0 'ran loop.py' '' "$GPULEASE" python loop.py
run 'a directory is left to the command' 0 'ran package' '' "$GPULEASE" python package
run '-c has no script' 0 'ran -c gone.py' '' "$GPULEASE" python -c gone.py
run '-m has no script' 0 'ran -m gone.py' '' "$GPULEASE" python -m gone.py
run '- has no script' 0 'ran - gone.py' '' "$GPULEASE" python - gone.py
run 'nothing has no script' 0 'ran ' '' "$GPULEASE" python
run 'an option may have a value' 0 'ran -W ignore there.py' '' \
	"$GPULEASE" python -W ignore there.py
run '-c with other options' 0 ran '' "$GPULEASE" sh -euc 'echo ran'
run '-o has a value' 0 ran '' "$GPULEASE" sh -e -o nounset -c 'echo ran'
run '+x is no script' 0 ran '' "$GPULEASE" sh +x -c 'echo ran'
run 'an argument of another program' 0 gone.py '' "$GPULEASE" echo gone.py
if command -v bash >/dev/null; then
	run 'bash finds a script in PATH' 0 'ran in the path' '' "$GPULEASE" bash found.sh
else
	skip 'bash finds a script in PATH' 'bash is not installed'
fi
echo 'echo ran' >0.sh
run 'a name with a GPU in it' 0 ran '' "$GPULEASE" --gpu-ids 0 sh '{gpus}.sh'
run '--setup may write the script' 0 ran '' "$GPULEASE" --setup 'echo "echo ran" >made' sh made
run '--setup may change the directory' 0 'ran below.py' '' \
	"$GPULEASE" --setup 'cd sub' python below.py

# a job that waits for another job, which writes the script
holder writer -n 1 -J write
run '--after: the script may be missing as yet' 0 '[0-9]*' '' \
	"$GPULEASE" --submit --after "$(id_of writer)" sh later
id=$out
echo 'echo ran later' >later
release writer
run 'the job ends' 0 '' '' "$GPULEASE" --wait-for "$id"
run 'it has run the script that was written meanwhile' 0 '*ran later*' '' "$GPULEASE" --log "$id"

if [ "$(id -u)" = 0 ]; then
	skip 'a script in a closed directory is left to the command' 'root can enter it'
else
	chmod 0 sub
	run 'a script in a closed directory is left to the command' 0 'ran sub/gone.py' '' \
		"$GPULEASE" python sub/gone.py
	chmod 0755 sub
fi
finish
