#!/bin/sh
# The help and the version of gpulease, and whether the README agrees with them.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

readme=$CLI/../../README.md

run '--help' 0 'Usage: gpulease *--status*127*' '' "$GPULEASE" --help
run '-h is the same' 0 'Usage: gpulease *' '' "$GPULEASE" -h
run '--help with any other options' 0 'Usage: *' '' "$GPULEASE" -n 99999 --help
run '--version' 0 'gpulease [0-9]*.[0-9]*' '' "$GPULEASE" --version
run '-V' 0 'gpulease [0-9]*' '' "$GPULEASE" -V
run '--help with a topic' 0 '*Options of srun*--gres*' '' "$GPULEASE" --help srun
run '--help=batch names the attributes of a line' 0 '*--batch FILE*Attributes*gpus=2*cancel*' '' \
	"$GPULEASE" --help=batch
is 'no line of --help=batch is wider than a terminal' test -z \
	"$("$GPULEASE" --help=batch | awk 'length > 80')"

# --- the lines for agents ------------------------------------------------------------------

"$GPULEASE" --help=agents >"$S/agents"
is '--help=agents has 25 lines, none wider than a terminal' \
	[ "$(wc -l <"$S/agents") $(awk 'length > 80' "$S/agents")" = '25 ' ]
grep '^    ' "$S/agents" >"$S/commands"
mkdir "$S/bin"
printf '#!/bin/sh\necho "python $*"\n' >"$S/bin/python"
chmod +x "$S/bin/python"
ln -s "$GPULEASE" "$S/bin/gpulease"
echo 'python train.py' >"$S/jobs.txt"
: >"$S/train.py"
touch "$S/eval.py" "$S/serve.py" "$S/big.py"
PATH=$S/bin:$PATH
agent() (cd "$S" && eval "$1")
id=$(agent 'gpulease --submit python train.py')
while read -r line; do
	case $line in
	*--cancel*) id=$("$GPULEASE" --submit sleep 600) ;;
	esac
	is "a line for agents runs: $line" agent "$line" </dev/null
done <"$S/commands"
is 'each option in the lines for agents was run' [ "$(wc -l <"$S/commands")" -ge 11 ]

# --- a message at the end, as README and manual show it --------------------------------------

printf '#!/bin/sh\necho "$*" >"%s/posted"\n' "$S" >"$S/bin/curl"
chmod +x "$S/bin/curl"
grep -o 'gpulease --submit -n 0 .*' "$readme" >"$S/recipe"
id=$("$GPULEASE" --submit sh -c 'exit 3')
agent "$(sed "s/12/$id/g" "$S/recipe")" >"$S/id"
is 'the job that posts the message ends well' "$GPULEASE" --wait-for "$(cat "$S/id")"
is 'the message has the exit status of the job' grep -q "job $id: status 3" "$S/posted"

for topic in '--help status' --help=status; do
	# shellcheck disable=SC2086 # words of a line
	run "$topic, an unknown topic, is answered by a list of the topics" 125 '' \
		"gpulease: there is no help on 'status'; the topics are run, choose, *, all" \
		"$GPULEASE" $topic
done

# a copy of the program alone, as somebody may put it into a container
cp "$GPULEASE" "$S/gpulease"
run 'without gpulease-view --help says where to read on' 0 'Usage: gpulease *man gpulease*' '' \
	"$S/gpulease" --help
run 'without gpulease-view --help=TOPIC says it, too' 0 '*gpulease-view*' '' \
	"$S/gpulease" --help=srun
run 'without gpulease-view the shell is offered nothing' 0 '' '' "$S/gpulease" --complete -- -
for option in --list-options --show-config; do
	run "without gpulease-view $option fails" 125 '' \
		'gpulease: this needs gpulease-view, which is not installed; *' "$S/gpulease" $option
done
run 'without gpulease-view a wrong command line is refused' 125 '' \
	'gpulease: cannot read this command line; gpulease-view, *, is not installed' \
	"$S/gpulease" --gpuz
run 'without gpulease-view a wrong --shell makes the eval fail, too' 125 '(exit 125);' 'gpulease: *' \
	"$S/gpulease" --shell --gpuz
run 'without gpulease-view there is --version' 0 'gpulease [0-9]*' '' "$S/gpulease" --version
is 'gpulease itself has none of the texts of --help' \
	[ "$(grep -c 'accepted, does nothing' "$S/gpulease")" -eq 0 ]
is 'and none of the messages about a command line' \
	[ "$(grep -c 'two things to do\|write --max-wait DUR and --time LIMIT' "$S/gpulease")" -eq 0 ]

run '--help to where nothing can be written' 125 '' '*cannot write*' \
	sh -c '"$1" --help >/dev/full' - "$GPULEASE"
is 'no line of --help is wider than a terminal' test -z \
	"$("$GPULEASE" --help | awk 'length > 80')"
if [ -x "${GPULEASE%/*}/gpulease-simjob" ]; then
	is 'no line of gpulease-simjob --help is wider than a terminal' test -z \
		"$("${GPULEASE%/*}/gpulease-simjob" --help | awk 'length > 80')"
else
	skip 'the width of gpulease-simjob --help' 'no gpulease-simjob'
fi

# every option that the README shows is one
grep -oE '(^|[ `(])--[a-z][a-z-]*' "$readme" | grep -oE -- '--[a-z-]+' | sort -u >"$S/shown"
"$GPULEASE" --list-options | cut -f 1 | sort >"$S/known"
# options of torchrun, of simulated jobs, and of the systems that the README compares with
printf '%s\n' --nproc-per-node --lr --llm --ramp --hold --array --time-limit --env-setup-cmd \
	--jobs-file >>"$S/known"
sort -o "$S/known" "$S/known"
run 'the README knows no other options' 0 '' '' comm -23 "$S/shown" "$S/known"

# a short option that the README shows is one that a newcomer finds in --help
grep '^\$ gpulease ' "$readme" | sed 's/ sh -c .*//' | grep -oE ' -[A-Za-z]' | sort -u >"$S/shown"
"$GPULEASE" --help | grep -oE '^ +-[A-Za-z]' | tr -s ' ' | sort -u >"$S/known"
run 'each short option of the examples in the README is in --help' 0 '' '' \
	comm -23 "$S/shown" "$S/known"
is 'the examples in the README show short options' test -s "$S/shown"

for target in demo deps check check-slow lint fuzz bench install install-srun uninstall deb; do
	grep -q "make [a-z ]*$target" "$readme" || echo "$target"
done >"$S/missing"
is 'the README names the targets of make' test ! -s "$S/missing"
for file in man/gpulease.1 man/gpulease-state.7 lib/README.md LICENSE; do
	grep -qF "$file" "$readme" && [ -e "$CLI/../../$file" ] || echo "$file"
done >"$S/missing"
is 'the README names the other documents, and they exist' test ! -s "$S/missing"

# a command of the README with a fixed output: "$ command", then the output
awk '/^\$ gpulease --sim 4 -n 2 -- sh/ { getline; print }' "$readme" >"$S/shown"
run 'the first example of the README prints what the README shows' 0 "$(cat "$S/shown")" '' \
	"$GPULEASE" --sim 4 -n 2 -- sh -c 'echo I have GPUs $CUDA_VISIBLE_DEVICES'
is 'the README has the first example' test -s "$S/shown"

# --- longer examples of the README -----------------------------------------------------------

# readme_block FIRST: prints the block of the README that begins with the line FIRST.  Its job of
# six seconds lasts here until it is cancelled.
readme_block() {
	awk -v first="$1" '$0 == first { on = 1 } $0 == "```" { on = 0 } on' "$readme" |
		sed 's/sleep 6/sleep 600/'
}

# same FILE: prints FILE without what differs between two runs: the user, pids, times, the widths of
# columns, and the column IDLE, which a GPU has that has been idle for some seconds.
same() {
	sed -E -e "s/ (root|$user) +/ USER /" -e 's/(USER +)[0-9]{3,} /\1PID /' \
		-e 's/[0-9]{2}:[0-9]{2}(:[0-9]{2})?/TIME/g' \
		-e 's/ IDLE / /' "$1" | tr -s ' ' |
		sed -E 's/( (-|<1s|[0-9]+m|([0-9]+m)?[0-9]+s))+ / - /g'
}

# Types the commands of $S/block, and writes them and what they print to $S/typed.
type_block() {
	job=0
	: >"$S/typed"
	while IFS= read -r typed <&3; do
		[ "$typed" = "${typed#'$ '}" ] && continue
		echo "$typed" >>"$S/typed"
		eval "${typed#??}" >>"$S/typed" 2>&1 3<&-
		[ "$typed" = "${typed%&*}" ] && continue
		job=$((job + 1))
		wait_until 'grep -q "^gpulease: job $job waits" "$S/typed" ||
			gpulease --status "$job" 2>/dev/null | grep -q "^pid"'
	done 3<"$S/block"
}

# shows TEXT FIRST: the block that begins with FIRST has what its commands print.
shows() {
	export XDG_STATE_HOME="$S/$2.d"
	readme_block "$2" >"$S/block"
	(cd "$S" && type_block && cp typed printed && gpulease --cancel mine --yes 2>/dev/null)
	same "$S/block" >"$S/shown"
	same "$S/printed" >"$S/found"
	run "$1" 0 '' '' diff "$S/shown" "$S/found"
}

printf '#!/bin/sh\nexec sleep 600\n' >"$S/bin/python"
cd "$S" || bail "no directory"
for each in train serve big; do
	: >"$each.py"
done
user=$(id -un)
export COLUMNS=$((80 + ${#user})) GPULEASE_SIM=2x80G # as at 80 columns for root and short pids
shows 'the README shows how jobs share a GPU' \
	'$ gpulease -n 0.5 python serve.py &          # half of a GPU'
shows 'the README shows how a job waits' '$ export GPULEASE_SIM=4'
unset COLUMNS GPULEASE_SIM

# the README shows lines of this file; "..." stands for those that it leaves out
tour=gpulease/examples/tour.txt
awk -v cat="\$ cat $tour" '$0 == cat { on = 1; next } /^\$/ { on = 0 } on && $0 != "..."' \
	"$readme" >"$S/shown"
is 'the lines of the tour in the README are in the file of the tour' test -s "$S/shown" -a -z \
	"$(grep -vxFf "$CLI/../../$tour" "$S/shown")"
finish
