#!/bin/sh
# The completion knows the options of gpulease, and what can follow each of them.

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
is 'the completion offers every option, and nothing else' cmp "$S/options" "$S/completed"

# lists NAME: the options in the completion's list of this NAME
lists() {
	bash -c '. "$1"; printf "%s\n" $_gpulease_'"$1"'' - "$file" | sort
}
"$GPULEASE" --list-options | awk '$3 != "refused" && $2 == "required" { print $1 }' | sort \
	>"$S/options"
lists valued >"$S/completed"
is 'the completion expects a value after each option that takes one' cmp "$S/options" \
	"$S/completed"

# complete WORD…: what bash would offer for the last of these words.
complete() {
	bash -c '. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_gpulease
		printf "%s\n" "${COMPREPLY[@]}"' - "$file" "$@" 2>&1
}

run 'the beginning of an option is completed' 0 '--status' '' complete gpulease --statu
run 'an option after a value is completed' 0 '--max-wait' '' complete gpulease -n 2 --max-w
run 'the command is completed' 0 '*mkfifo*' '' complete gpulease -n 2 mkfif
run 'the command after -- is completed' 0 '*mkfifo*' '' complete gpulease -n 2 -- mkfif
mkdir "$S/place" && : >"$S/place/train.py" && : >"$S/place/--status-file"
run 'files after the command are completed' 0 "$S/place/train.py" '' complete gpulease python \
	"$S/place/tr"
run 'no option is offered after the command' 0 '' '' complete gpulease python --sta
run '-D is completed with a directory' 0 "$S/place" '' complete gpulease -D "$S/pla"
run '--batch is completed with a jobs file' 0 "$S/place/train.py" '' complete gpulease \
	--batch "$S/place/tr"
run '--add is completed with a jobs file' 0 "$S/place/train.py" '' complete gpulease --add \
	-n 2 "$S/place/tr"
run 'the command after --add FILE -- is completed' 0 '*mkfifo*' '' \
	complete gpulease --add jobs.txt -n 2 -- mkfif
run 'an option after --batch FILE is completed' 0 '--log-dir' '' complete gpulease \
	--batch jobs.txt --log-d
run '--log-dir is completed with a directory' 0 "$S/place" '' \
	complete gpulease --batch jobs.txt --log-dir "$S/pla"
run '--batch-format is completed with a format' 0 'csv' '' complete gpulease --batch-format c
run '--help is completed with a topic' 0 'srun' '' complete gpulease --help = sr
run 'the completion has all topics of the help' 125 '' \
	"*the topics are $(bash -c '. "$1"; echo "${_gpulease_topics// /, }"' - "$file")" \
	"$GPULEASE" --help=no-such
run '--state is completed with a state' 0 'timed-out' '' complete gpulease --history --state ti
for verb in --status --follow --log --signal-job -a --after; do
	holder a
	run "$verb is completed with the id of a running job" 0 "$(id_of a)" '' complete \
		"$GPULEASE" "$verb" ''
	release_all a
	run "$verb is not completed with the id of an ended job" 0 '' '' complete "$GPULEASE" \
		"$verb" ''
done
holder a
for verb in --wait-for --cancel; do
	run "$verb is completed with ids, all and mine" 0 "$(id_of a)
all
mine" '' complete "$GPULEASE" "$verb" ''
done
release_all a
run '--signal-job is completed with a signal after the id' 0 'SIGTERM' '' complete gpulease \
	--signal-job 12 SIGTE
run 'a refused option is not completed' 0 '' '' complete gpulease --multi
finish
