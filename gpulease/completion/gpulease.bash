# bash completion for gpulease.  The program itself says what can come next (cli/completion.h).

# Prints the numbers that --status --json has as MEMBER: ids of jobs, indices of GPUs.
_gpulease_numbers()
{
	"${COMP_WORDS[0]}" --status --json 2>/dev/null |
		sed -n 's/^ *"'"$1"'": \([0-9][0-9]*\),*$/\1/p' | sort -nu
}

# Has readline quote the names of files and end those of folders with a slash.
_gpulease_names_files()
{
	compopt -o filenames 2>/dev/null # fails if readline did not call the function
}

# Completes the command that begins with COMP_WORDS[$1] as if it stood alone.
_gpulease_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif (($1 == COMP_CWORD)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$2")
	else
		_gpulease_names_files
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
	fi
}

_gpulease()
{
	local current=${COMP_WORDS[COMP_CWORD]} line
	local words=("${COMP_WORDS[@]:1:COMP_CWORD}") options=()

	if [[ $current == = ]]; then # readline splits --name=TEXT in three
		current=
		words+=('')
	fi
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		@command*)
			_gpulease_command $((${line#@command } + 1)) "$current"
			return ;;
		@jobs) options+=(-W "$(_gpulease_numbers ticket)") ;;
		@gpus) options+=(-W "$(_gpulease_numbers index)") ;;
		@files) options=(-f) && _gpulease_names_files ;;
		@folders) options=(-d) && _gpulease_names_files ;;
		@users) options=(-u) ;;
		@signals) options=(-A signal) ;;
		*) options=(-W "${options[1]} ${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]}" --complete -- "${words[@]}" 2>/dev/null)
	((${#options[@]} == 0)) || mapfile -t COMPREPLY < <(compgen "${options[@]}" -- "$current")
}

complete -o default -F _gpulease gpulease
