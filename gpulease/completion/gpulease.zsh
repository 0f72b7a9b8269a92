#compdef gpulease
# zsh completion for gpulease.  The program itself says what can come next (cli/completion.h).

# Offers the numbers that --status --json has as MEMBER: ids of jobs, indices of GPUs.
_gpulease_numbers()
{
	local -a numbers
	numbers=(${(f)"$($program --status --json 2>/dev/null |
		sed -n 's/^ *"'$1'": \([0-9][0-9]*\),*$/\1/p' | sort -nu)"})
	_describe -t numbers "$2" numbers
}

_gpulease()
{
	local line program=${(Q)words[1]} tab=$'\t'
	local -a lines options values

	lines=(${(f)"$($program --complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
	compset -P '--*='
	for line in $lines; do
		case $line in
		@command*)
			words=("${(@)words[${line#@command } + 2, -1]}")
			((CURRENT -= ${line#@command } + 1))
			_normal
			return ;;
		@jobs) _gpulease_numbers ticket job ;;
		@gpus) _gpulease_numbers index GPU ;;
		@files) _files ;;
		@folders) _files -/ ;;
		@users) _users ;;
		@signals) _signals ;;
		-*) options+=("${line/$tab/:}") ;;
		*) values+=("$line") ;;
		esac
	done
	(($#options == 0)) || _describe -o -t options option options
	(($#values == 0)) || _describe -t values value values
}

_gpulease "$@"
