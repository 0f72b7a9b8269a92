#!/bin/sh
# The completion knows the options of gpulease, and what can follow each of them.

# shellcheck disable=SC2016,SC2317 # code of other shells, and functions that others call

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

source=$CLI/../../gpulease/completion
mkdir "$S/programs"
ln -s "$GPULEASE" "$S/programs/gpulease"
PATH=$S/programs:$PATH

# --- what the program says ---------------------------------------------------------------

"$GPULEASE" --list-options | awk '$3 != "refused" { print $1 }' | sort >"$S/options"
"$GPULEASE" --complete -- - | cut -f 1 | sort >"$S/completed"
is 'every option is offered, and nothing else' cmp "$S/options" "$S/completed"
"$GPULEASE" --complete -- - | awk -F '\t' '$2 == ""' >"$S/bare"
is 'every option has an explanation' [ ! -s "$S/bare" ]

# --- the same words in each shell ------------------------------------------------------------

mkdir "$S/place" && : >"$S/place/train.py" && : >"$S/place/--status-file"

# each_word: what the function `complete`, which prints what a shell offers for the last word, has to
# print.  It gets the words of a line.
each_word() {
	run "$shell: the beginning of an option" 0 '--status' '' complete gpulease --statu
	run "$shell: an option after a value" 0 '--max-wait' '' complete gpulease -n 2 --max-w
	run "$shell: the command" 0 'mkfifo*' '' complete gpulease -n 2 mkfif
	run "$shell: the command after --" 0 'mkfifo*' '' complete gpulease -n 2 -- mkfif
	run "$shell: files after the command" 0 "$S/place/train.py" '' complete gpulease python \
		"$S/place/tr"
	run "$shell: no option after the command" 0 '' '' complete gpulease python --statu
	run "$shell: a directory" 0 "$S/place*" '' complete gpulease -D "$S/pla"
	run "$shell: a jobs file" 0 "$S/place/train.py" '' complete gpulease --batch "$S/place/tr"
	run "$shell: a jobs file after an option of its line" 0 "$S/place/train.py" '' \
		complete gpulease --add -n 2 "$S/place/tr"
	run "$shell: the command of a new line" 0 'mkfifo*' '' \
		complete gpulease --add jobs.txt -n 2 -- mkfif
	run "$shell: an option of a batch" 0 '--log-dir' '' complete gpulease --batch jobs.txt --log-d
	run "$shell: one of two values" 0 'csv' '' complete gpulease --batch-format c
	run "$shell: a topic of the help" 0 'srun' '' complete gpulease --help sr
	run "$shell: the topic of the engine" 0 'slurm' '' complete gpulease --help sl
	run "$shell: an engine" 0 'slurm' '' complete gpulease --engine sl
	run "$shell: the other engine" 0 'local' '' complete gpulease --engine lo
	run "$shell: a state" 0 'timed-out' '' complete gpulease --history --state ti
	run "$shell: a GPU" 0 '1' '' complete gpulease --allow 1
	run "$shell: a GPU to pause" 0 '1' '' complete gpulease --pause 1
	run "$shell: mine" 0 'mine' '' complete gpulease --wait-for mi
	run "$shell: all" 0 'all' '' complete gpulease --cancel al
	run "$shell: a user" 0 'root' '' complete gpulease --history --user roo
	is "$shell: no refused option" eval '! complete gpulease --multi | grep -q multi'
	holder a
	for verb in --status --log --follow --signal-job -a --after; do
		run "$shell: $verb is followed by the id of a running job" 0 "$(id_of a)" '' \
			complete gpulease "$verb" ''
	done
	release_all a
	run "$shell: an ended job is not offered" 0 '' '' complete gpulease --log ''
}

sim 2
if ! command -v bash >/dev/null 2>&1; then
	skip 'the completion of bash' 'bash is not installed'
else
	shell=bash
	complete() {
		bash -c '. "$1"
			shift
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_gpulease
			printf "%s\n" "${COMPREPLY[@]}"' - "$source/gpulease.bash" "$@" 2>&1
	}
	each_word
	run 'bash: a value after =' 0 'requeue' '' complete gpulease --on-limit = r
	run 'bash: all values after =' 0 'kill
requeue' '' complete gpulease --on-limit =
	run 'bash: a signal after the id' 0 'SIGTERM' '' complete gpulease --signal-job 12 SIGTE

	# readline itself, on a terminal: it runs the line that it has completed
	mkdir "$S/place/a folder"
	echo 'what the file says' >"$S/place/a folder/some text"
	printf '%s\n' 'PS1=rea; PS1=${PS1}dy' ". '$source/gpulease.bash'" "cd '$S/place'" >"$S/rc"
	on_terminal() {
		run "$1" 0 '' '' env HISTFILE= INPUTRC=/dev/null "$TOOLS/jobcontrol" see:ready \
			"type:$2^J" 'see:what the file says' 'type:exit^J' end:0 -- \
			bash --noprofile --rcfile "$S/rc" -i
	}
	on_terminal 'bash: blanks in names are quoted, and a folder ends with a slash' \
		'gpulease cat a^Iso^I'
	on_terminal 'bash: also as the value of an option' 'gpulease -i a^Iso^I cat'
	on_terminal 'bash: also for a folder as the value of an option' "gpulease -D a^I cat 'some text'"
fi

if ! command -v fish >/dev/null 2>&1; then
	skip 'the completion of fish' 'fish is not installed'
else
	shell=fish
	complete() {
		HOME=$S fish --no-config -c 'source $argv[1]
			complete -C (string join " " -- $argv[2..])' "$source/gpulease.fish" "$@" | cut -f 1
	}
	each_word
	run 'fish: a value after =' 0 '--on-limit=requeue' '' complete gpulease --on-limit=r
	run 'fish: a signal after the id' 0 'TERM' '' complete gpulease --signal-job 12 TER
	run 'fish: explanations' 0 '--status	show the GPUs*' '' fish --no-config -c \
		'source $argv[1]; complete -C "gpulease --statu"' "$source/gpulease.fish"
fi

# zsh completes only on a terminal; ^X shows what has become of the line
cat >"$S/on-terminal" <<'END'
zmodload zsh/zpty || exit 3
zpty z zsh -f -i
zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
show() { print -r -- \"<<\$BUFFER>>\"; BUFFER= }
zle -N show; bindkey '^X' show; PS1=; PS2=; echo rea''dy"
zpty -r -m z output '*ready*'
zpty -w -n z "$2"$'\t\x18'
zpty -r -m z output '*<<*>>*'
print -r -- "${${output##*<<}%%>>*}"
zpty -d z
END
if ! command -v zsh >/dev/null 2>&1; then
	skip 'the completion of zsh' 'zsh is not installed'
elif ! zsh -f -c 'zmodload zsh/zpty' 2>/dev/null; then
	skip 'the completion of zsh' 'its module zsh/zpty is not installed'
else
	shell=zsh
	mkdir "$S/functions"
	cp "$source/gpulease.zsh" "$S/functions/_gpulease"
	# prints the last word of the line, if something was completed
	complete() {
		complete_line=$(timeout -k 5 "$DEADLINE" zsh -f "$S/on-terminal" "$S/functions" "$*")
		for complete_word in $complete_line; do :; done
		[ "$complete_line" = "$*" ] || echo "$complete_word"
	}
	each_word
	run 'zsh: a value after =' 0 '--on-limit=requeue' '' complete gpulease --on-limit=r
fi
finish
