#!/bin/sh
# The completion knows the options of gpulease, and what comes behind them.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

file=$CLI/../../gpulease/completion/gpulease.bash
if ! command -v bash >/dev/null 2>&1; then
	skip 'completion' 'bash is not installed'
	finish
fi

"$GPULEASE" --list-options | awk '$3 != "refused" { print $1 }' | sort >"$S/options"
bash -c '. "$1"; printf "%s\n" $_gpulease_plain $_gpulease_valued $_gpulease_verbs' - "$file" |
	sort >"$S/completed"
is 'every option is completed, and nothing else' cmp "$S/options" "$S/completed"

# what takes no value, one, or operands is in the list for it
lists() {
	bash -c '. "$1"; printf "%s\n" $_gpulease_'"$1"'' - "$file" | sort
}
"$GPULEASE" --list-options | awk '$3 != "refused" && $2 == "required" { print $1 }' | sort \
	>"$S/options"
lists valued >"$S/completed"
is 'a value is expected behind those that take one' cmp "$S/options" "$S/completed"

# complete WORD…: what bash would offer for the last of these words.
complete() {
	bash -c '. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_gpulease
		printf "%s\n" "${COMPREPLY[@]}"' - "$file" "$@" 2>&1
}

run 'the beginning of an option' 0 '--status' '' complete gpulease --statu
run 'an option behind a value' 0 '--max-wait' '' complete gpulease -n 2 --max-w
run 'the command' 0 '*mkfifo*' '' complete gpulease -n 2 mkfif
run 'the command behind --' 0 '*mkfifo*' '' complete gpulease -n 2 -- mkfif
mkdir "$S/place" && : >"$S/place/train.py" && : >"$S/place/--status-file"
run 'files behind the command' 0 "$S/place/train.py" '' complete gpulease python "$S/place/tr"
run 'no options behind the command' 0 '' '' complete gpulease python --sta
run 'a directory for -D' 0 "$S/place" '' complete gpulease -D "$S/pla"
run 'a jobs file for --batch' 0 "$S/place/train.py" '' complete gpulease --batch "$S/place/tr"
run 'and for --add' 0 "$S/place/train.py" '' complete gpulease --add -n 2 "$S/place/tr"
run 'the command behind --add FILE --' 0 '*mkfifo*' '' \
	complete gpulease --add jobs.txt -n 2 -- mkfif
run 'an option behind --batch FILE' 0 '--log-dir' '' complete gpulease --batch jobs.txt --log-d
run 'a directory for --log-dir' 0 "$S/place" '' \
	complete gpulease --batch jobs.txt --log-dir "$S/pla"
run 'what a jobs file may look like' 0 'csv' '' complete gpulease --batch-format c
run 'a topic of the help' 0 'srun' '' complete gpulease --help = sr
run 'all of them' 125 '' "*the topics are $(bash -c '. "$1"; echo "${_gpulease_topics// /, }"' - "$file")" \
	"$GPULEASE" --help=no-such
run 'a state' 0 'timed-out' '' complete gpulease --history --state ti
for verb in --cancel --log --signal-job -a --after; do
	holder a
	run "the id of a job for $verb" 0 "$(id_of a)" '' complete "$GPULEASE" "$verb" ''
	release_all a
	run "but not of one that has ended: $verb" 0 '' '' complete "$GPULEASE" "$verb" ''
done
holder a
run 'what --wait-for waits for' 0 "$(id_of a)
all
mine" '' complete "$GPULEASE" --wait-for ''
release_all a
run 'a signal behind the id' 0 'SIGTERM' '' complete gpulease --signal-job 12 SIGTE
run 'no refused option' 0 '' '' complete gpulease --multi
finish
