#!/bin/sh
# What gpulease says of itself, and whether the README says the same.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

readme=$CLI/../../README.md

run '--help' 0 'Usage: gpulease *--status*127*' '' "$GPULEASE" --help
run '-h is the same' 0 'Usage: gpulease *' '' "$GPULEASE" -h
run '--help whatever else is there' 0 'Usage: *' '' "$GPULEASE" -n 99999 --help
run '--version' 0 'gpulease [0-9]*.[0-9]*' '' "$GPULEASE" --version
run '-V' 0 'gpulease [0-9]*' '' "$GPULEASE" -V
run '--help with a topic' 0 '*Also, so that*--gres*' '' "$GPULEASE" --help srun
for topic in '--help status' --help=status; do
	# shellcheck disable=SC2086 # words of a line
	run "$topic, which is none, names those that there are" 125 '' \
		"gpulease: there is no help on 'status'; the topics are run, choose, *, all" \
		"$GPULEASE" $topic
done
run '--help to where nothing can be written' 125 '' '*cannot write*' \
	sh -c '"$1" --help >/dev/full' - "$GPULEASE"
is 'no line of --help is wider than a terminal' test -z \
	"$("$GPULEASE" --help | awk 'length > 80')"

# every option that the README shows is one
grep -oE '(^|[ `(])--[a-z][a-z-]*' "$readme" | grep -oE -- '--[a-z-]+' | sort -u >"$S/shown"
"$GPULEASE" --list-options | cut -f 1 | sort >"$S/known"
# of make, torchrun, git, models and simulated jobs in its examples
printf '%s\n' --nproc-per-node --lr --llm --ramp --hold >>"$S/known"
sort -o "$S/known" "$S/known"
run 'the README knows no other options' 0 '' '' comm -23 "$S/shown" "$S/known"

for target in demo deps check check-slow lint fuzz bench install install-srun uninstall deb; do
	grep -q "make [a-z ]*$target" "$readme" || echo "$target"
done >"$S/missing"
is 'the README names the targets of make' test ! -s "$S/missing"
for file in man/gpulease.1 man/gpulease-state.7 lib/README.md LICENSE; do
	grep -qF "$file" "$readme" && [ -e "$CLI/../../$file" ] || echo "$file"
done >"$S/missing"
is 'and the other documents' test ! -s "$S/missing"

# commands of the README whose output does not change: "$ command", then its output
awk '/^\$ gpulease --sim 4 -n 2 -- sh/ { getline; print }' "$readme" >"$S/shown"
run 'its first example prints what it says' 0 "$(cat "$S/shown")" '' \
	"$GPULEASE" --sim 4 -n 2 -- sh -c 'echo I have GPUs $CUDA_VISIBLE_DEVICES'
is 'and the README has it' test -s "$S/shown"

# lines of files that it shows, but for those it leaves out
tour=gpulease/examples/tour.txt
awk -v cat="\$ cat $tour" '$0 == cat { on = 1; next } /^\$/ { on = 0 } on && $0 != "..."' \
	"$readme" >"$S/shown"
is 'its lines of the tour are in that file' test -s "$S/shown" -a -z \
	"$(grep -vxFf "$CLI/../../$tour" "$S/shown")"
finish
