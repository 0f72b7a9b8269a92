#!/bin/sh
# Lines for srun of public repositories (srun-lines.tsv): none may silently mean something else.
# The command of each is replaced by one that says how many tasks and GPUs it has.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 8
mkdir "$S/bin" "$S/work"
ln -s "$GPULEASE" "$S/bin/srun"
slurm=${GPULEASE%/*}/gpulease-slurm
cat >"$S/bin/show" <<'EOF'
#!/bin/sh
# "TASKS GPUS", where GPUS is a number, or - if the variable is not set
[ "${SLURM_PROCID-0}" = 0 ] || exit 0
gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | grep -c .)
echo "has ${SLURM_STEP_TASKS-${SLURM_NTASKS-1}} $gpus" >>"$SHOWN"
EOF
chmod +x "$S/bin/show"
export SHOWN="$S/shown" PATH="$S/bin:$PATH"
cd "$S/work" || bail 'no directory'

# own_job OPTIONS: the id was that of the job around the line: $SLURM_JOB_ID.
own_job() {
	echo "$1" | sed -E 's/(--jobid)[ =][0-9]+/\1=$GPULEASE_ID/'
}

# A line runs as srun's user means it, or it says what is different, or it is refused.
same=0 told=0 plain=0 lines=0
# a tab would be one separator with the tab behind it, where a column is empty
tr '\t' '\037' <"$CLI/srun-lines.tsv" >"$S/lines"
separator=$(printf '\037')
: >"$S/silent"
: >"$S/mute"
while IFS="$separator" read -r repository file options _ tasks gpus _ needs; do
	[ "$repository" != repository ] || continue
	: >"$SHOWN"
	set -f
	case $needs in
	*sbatch*)
		# the header around the line asks for the GPUs and tasks; the script made its folders
		folder=$(echo "$options" | sed -n "s,.*--output=\./\\([^ ]*\\)/.*,\\1,p")
		[ -z "$folder" ] || mkdir -p "$folder"
		{
			echo '#!/bin/sh'
			[ "$gpus" = None ] || echo "#SBATCH --gpus-per-node=$gpus"
			echo "#SBATCH --ntasks-per-node=$tasks"
			echo "srun $(own_job "$options") show 2>'$S/err.srun'"
		} >script
		try "$slurm" sbatch --wait -o "$S/out.script" script
		[ ! -e "$S/err.srun" ] || err="$err$(cat "$S/err.srun")"
		;;
	*)
		# shellcheck disable=SC2016,SC2086 # for the shell in the job; words of a line
		case $options in
		*--jobid*) try "$GPULEASE" -n 1 sh -c "srun $(own_job "$options") show" ;;
		*) try srun $options show ;;
		esac
		;;
	esac
	set +f
	rm -f "$S/err.srun"
	is=$(head -n 1 "$SHOWN")
	case $needs in
	*container*) container=yes ;;
	*) container=no plain=$((plain + 1)) ;;
	esac
	if [ -z "$is" ]; then
		kind=refused
		[ -n "$err" ] || echo "$repository $file: $options" >>"$S/mute"
	elif [ "$is" = "has $tasks $gpus" ] || # or it is a step, and has the GPUs of its job
		like "*--jobid* None has $tasks *" "$options $gpus $is"; then
		kind=same
	elif [ -n "$err" ]; then
		kind=told
	else
		kind=other
		echo "$repository $file: srun $options: $is, not $tasks $gpus" >>"$S/silent"
	fi
	echo "$kind $container $needs | $options | $is | $err" >>"$S/table"
	case $container.$kind.$err in
	yes.refused.*' does the same with '*) lines=$((lines + 1)) ;;
	esac
	case $container.$kind in
	no.same) same=$((same + 1)) ;;
	no.told) told=$((told + 1)) ;;
	esac
done <"$S/lines"
[ -z "${SRUN_LINES-}" ] || cp "$S/table" "$SRUN_LINES"

is 'no line silently has other tasks or GPUs' test ! -s "$S/silent"
[ ! -s "$S/silent" ] || sed 's/^/# /' "$S/silent"
is 'each refusal says why' test ! -s "$S/mute"
# of the others, 3 have words of another script as numbers, 3 ask for several machines, 1 for another
# machine, 1 for 16 GPUs, and 1 has an option that no Slurm has
is "of $plain lines without containers 56 run: $same as meant, $told with a line on what differs" \
	test $((same + told)) -eq 56
# of the 12, 1 ends in the middle of an option, 1 begins with -N without its value, 1 has a mount
# without a path, and 1 has words that a shell takes for a redirection
is "$lines lines with containers are answered with a line that does the same" test $lines -eq 8
finish
