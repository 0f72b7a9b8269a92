#!/bin/sh
# The table of options for a cluster, against the programs of a real Slurm, which need no cluster to
# read a command line.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# What real programs do not know: options of plug-ins (pyxis has those of containers), and of
# another version of Slurm.
elsewhere='quotatype tres-bind container-entrypoint container-entrypoint-log container-env
	container-image container-mount-home container-mounts container-name container-readonly
	container-remap-root container-save container-workdir container-writable
	no-container-entrypoint no-container-mount-home no-container-remap-root'
# sbatch has no --x11, and a later srun has a value after --pty
apart='sbatch:x11 srun:pty'

# is_in WORD LIST
is_in() {
	# shellcheck disable=SC2086 # words
	printf '%s\n' $2 | grep -qxF -e "$1"
}

tab=$(printf '\t')
"$GPULEASE" --list-options | cut -f 1,4,5 | grep '^--' | sort -u >"$S/table"
is 'the table has options of all kinds' [ "$(cut -f 2 "$S/table" | cut -d ' ' -f 1 | sort -u |
	tr '\n' ' ')" = 'ignore job refuse self step ' ]

for program in sbatch srun; do
	command -v $program >/dev/null || missing=$program
done
if [ -n "${missing-}" ]; then
	skip 'the options that are passed on exist' "no $missing: make deps-extra"
	finish
fi
printf '%s\n' ClusterName=none SlurmctldHost=localhost >"$S/slurm.conf"
export SLURM_CONF="$S/slurm.conf"

# says PATTERN PROGRAM WORD…: whether it prints that
says() {
	says_pattern=$1
	shift
	like "$says_pattern" "$(timeout 5 "$@" 2>&1 </dev/null)"
}

# takes PROGRAM NAME none|optional|required: whether it knows the option, and this can follow
takes() {
	! says '*unrecognized option*' "$1" "--$2=1" --usage || return 1
	case $3 in
	none) says "*doesn't allow an argument*" "$1" "--$2=1" --usage ;;
	required) says '*requires an argument*' "$1" "--$2" ;;
	optional) says 'Usage:*' "$1" "--$2" --usage &&
		! says "*doesn't allow an argument*" "$1" "--$2=1" --usage ;;
	esac
}
is 'the check finds what follows an option' takes srun mem required
is 'and that nothing does' takes srun label none
is 'and that a value may' takes srun nice optional
for words in 'srun mem optional' 'srun label required' 'srun nice none' 'srun nonsense none' \
	'sbatch label none'; do
	# shellcheck disable=SC2086 # words
	is "and that it is not so: $words" eval "! takes $words"
done

while IFS=$tab read -r _ action wanted; do
	name=${action#* --}
	case $action in
	job*) programs='srun sbatch' ;;
	step*) programs=srun ;;
	*) continue ;;
	esac
	if is_in "$name" "$elsewhere"; then
		continue
	fi
	wrong=
	for program in $programs; do
		is_in "$program:$name" "$apart" || takes "$program" "$name" "$wanted" ||
			wrong="$wrong $program"
	done
	if [ -n "$wrong" ]; then
		not_ok "--$name is an option of $programs" "not so, or not with a $wanted value:$wrong"
	else
		ok "--$name is an option of $programs"
	fi
done <"$S/table"
finish
