# bash completion for gpulease: completes its options, and then the command as if it stood alone.
# A test compares these lists with `gpulease --list-options`.

# options without a value, or with one only in the same word
_gpulease_plain='
	-I --immediate --exclusive --bind --singleton --dry-run
	--json -v --verbose -Q --quiet -h --help -V --version --pty
	--preemptible --report --submit --screen --lease-only --shell --csv
	-u --unbuffered --watch --once --force --fresh --fail-fast --keep-going
	-l --label -K --kill-on-bad-exit --overlap -s --oversubscribe
	--exact -k --no-kill --nice --propagate'

# options with a value in the next word
_gpulease_valued='
	-n -G --gpus --name --max-wait -t --time --grace --reason --sim --config --dir
	--vram --models --min-vram --model --gpu-ids --allow --except --prefer
	--priority --after --after-ok -d --dependency
	--signal --on-limit --max-requeues --done-status --retries --oom-retries
	--batch-format --jobs --log-dir
	--setup --conda --inject --inject-style --pid
	--user --since --until --state
	--gres --gpus-per-node --gpus-per-task --ntasks -J --job-name -D --chdir
	-o --output -e --error -i --input --export
	-N --nodes --ntasks-per-node -c --cpus-per-task --mem --mem-per-cpu
	--mem-per-gpu --mem-bind -p --partition -A --account -q --qos --cpu-bind --mpi
	-W --wait --hint --cpus-per-gpu --gpu-bind -m --distribution --threads-per-core
	--comment --mail-type --mail-user --open-mode'

# options that take operands instead of a command
_gpulease_verbs='
	--status --queue --history --doctor --show-config --docker-args --cancel --pause
	--resume --log --follow --wait-for --signal-job -a --attach --sessions --accounting
	--batch --add'

# those whose operands are ids of jobs
_gpulease_jobs='--cancel --log --follow --signal-job -a --attach'

_gpulease_topics='run choose order care back batch setup lease look act any srun ignored refused all'
_gpulease_states='ended finished failed cancelled timed-out oom preempted lost'

_gpulease_has()
{
	local word
	for word in $1; do
		[[ $word == "$2" ]] && return 0
	done
	return 1
}

# Sets `at` to the index of the command's first word; to COMP_CWORD if the word to complete is
# gpulease's own; to -1 if it is the value of an option.  Sets `verb` to the verb, if there is one.
_gpulease_find_command()
{
	verb=
	for ((at = 1; at < COMP_CWORD; at++)); do
		if [[ ${COMP_WORDS[at]} == -- ]]; then
			((at++))
			[[ $verb == --add ]] && verb= # the rest is the command of the new line
			return
		elif _gpulease_has "$_gpulease_verbs" "${COMP_WORDS[at]}"; then
			verb=${COMP_WORDS[at]}
		elif [[ ${COMP_WORDS[at + 1]} == = ]]; then
			((at += 2)) # readline splits --name=TEXT in three
		elif _gpulease_has "$_gpulease_valued" "${COMP_WORDS[at]}"; then
			((at++))
		elif [[ ${COMP_WORDS[at]} != -* && ! $verb ]]; then
			return
		fi
	done
	((at > COMP_CWORD)) && at=-1 # the value of an option
}

# Prints the ids of the jobs that wait or run.
_gpulease_ids()
{
	"${COMP_WORDS[0]}" --status --json 2>/dev/null |
		sed -n 's/^ *"ticket": \([0-9][0-9]*\),*$/\1/p' | sort -nu
}

_gpulease()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} at verb

	COMPREPLY=()
	_gpulease_find_command
	if ((at == -1)) || [[ $previous == = || $current == = ]]; then
		[[ $current == = ]] && current=
		[[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}
		case $previous in
		-D | --chdir | --log-dir)
			mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
		-o | --output | -e | --error | -i | --input | --models | --config)
			mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
		--gres)
			mapfile -t COMPREPLY < <(compgen -W 'gpu' -- "$current") ;;
		--export)
			mapfile -t COMPREPLY < <(compgen -W 'ALL NONE' -- "$current") ;;
		--batch-format)
			mapfile -t COMPREPLY < <(compgen -W 'lines csv' -- "$current") ;;
		--on-limit)
			mapfile -t COMPREPLY < <(compgen -W 'kill requeue' -- "$current") ;;
		--inject-style)
			mapfile -t COMPREPLY < <(compgen -W 'local physical' -- "$current") ;;
		--signal)
			mapfile -t COMPREPLY < <(compgen -A signal -- "$current") ;;
		--user)
			mapfile -t COMPREPLY < <(compgen -u -- "$current") ;;
		--help)
			mapfile -t COMPREPLY < <(compgen -W "$_gpulease_topics" -- "$current") ;;
		--state)
			mapfile -t COMPREPLY < <(compgen -W "$_gpulease_states" -- "$current") ;;
		--after | --after-ok)
			mapfile -t COMPREPLY < <(compgen -W "$(_gpulease_ids)" -- "$current") ;;
		esac
	elif ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
		_command_offset "$at"
	elif ((at < COMP_CWORD)); then
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $current == -* && $previous != -- ]]; then
		mapfile -t COMPREPLY < <(compgen -W \
			"$_gpulease_plain $_gpulease_valued $_gpulease_verbs" -- "$current")
	elif [[ $verb == --batch || $verb == --add ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $verb == --docker-args ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'docker podman' -- "$current")
	elif [[ $verb == --signal-job && $previous == [0-9]* ]]; then
		mapfile -t COMPREPLY < <(compgen -A signal -- "$current")
	elif [[ $verb == --wait-for ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_gpulease_ids) all mine" -- "$current")
	elif _gpulease_has "$_gpulease_jobs" "$verb"; then
		mapfile -t COMPREPLY < <(compgen -W "$(_gpulease_ids)" -- "$current")
	elif [[ ! $verb ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$current")
	fi
}

complete -o default -F _gpulease gpulease
