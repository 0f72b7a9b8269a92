#!/bin/sh
# Lines for srun and sbatch, beside the results that a real Slurm gave for them: one node, 8 GPUs.
#
#	compare_slurm.tsv	the lines: name, difference, code.  A difference is a sentence of
#				gpulease-srun(7); - means that both give the same.
#	compare_slurm.results	the results of Slurm, and where they differ those of gpulease
#
#	COMPARE=real	runs the lines with a real Slurm too, if one can be started
#	COMPARE=record	writes the results anew
#	COMPARE=ours	writes anew those of gpulease alone
#	LINE=TEXT	only the lines whose name has the text
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slurm_lib.sh
. "$CLI/slurm_lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
sim 8
results_file=$CLI/compare_slurm.results
manual=$CLI/../../man/gpulease-srun.7
AT_ONCE=3 # lines of gpulease that run at the same time

# --- what the lines use ------------------------------------------------------------------

mkdir "$S/tools" "$S/bin" "$S/lib" "$S/lib/gpulease" "$S/lib/gpulease/bin" "$S/real" "$S/ours" "$S/want"
install -m 0755 "$GPULEASE" "$S/bin/gpulease"
install -m 0755 "$(dirname "$GPULEASE")/gpulease-slurm" "$S/lib/gpulease/gpulease-slurm"
ln -s ../../../bin/gpulease "$S/lib/gpulease/bin/srun"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/sbatch"
for each in $(env | sed -n 's/^\(SBATCH_[A-Z_]*\)=.*/\1/p'); do
	unset "$each"
done

cat >"$S/tools/show" <<'END'
#!/bin/sh
# the number of this task, the number of tasks, and the GPUs
echo "$SLURM_PROCID of $SLURM_NTASKS: $CUDA_VISIBLE_DEVICES"
END
cat >"$S/tools/vars" <<'END'
#!/bin/sh
# the variables of a task, without the ids and ports that differ from run to run
for name in SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_NNODES \
	SLURM_JOB_NUM_NODES SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_JOB_ID SLURM_JOBID \
	SLURM_STEP_ID SLURM_STEPID SLURM_JOB_NODELIST SLURM_NODELIST SLURM_SUBMIT_DIR \
	SLURM_CPUS_PER_TASK SLURM_GPUS_ON_NODE SLURM_JOB_NAME SLURM_LAUNCH_NODE_IPADDR \
	SLURM_SRUN_COMM_HOST SLURMD_NODENAME CUDA_VISIBLE_DEVICES; do
	eval "value=\${$name-(none)}"
	case $name in
	SLURM_JOB_ID) job=$value value=ID ;;
	SLURM_JOBID) [ "$value" != "$job" ] || value=ID ;;
	esac
	echo "${SLURM_PROCID-no task} $name=$value"
done
END
cat >"$S/tools/job-vars" <<'END'
#!/bin/sh
# the variables of a job script
for name in SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_NODELIST SLURM_NNODES \
	SLURM_JOB_NUM_NODES SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_TASKS_PER_NODE \
	SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE SLURM_JOB_UID SLURM_SUBMIT_DIR \
	SLURM_SUBMIT_HOST SLURM_GPUS_ON_NODE SLURM_JOB_GPUS SLURM_NTASKS SLURM_NPROCS \
	SLURM_NTASKS_PER_NODE SLURM_NTASKS_PER_GPU SLURM_CPUS_PER_TASK SLURM_GPUS \
	SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK SLURMD_NODENAME ENVIRONMENT \
	CUDA_VISIBLE_DEVICES; do
	eval "value=\${$name-(none)}"
	case $name in
	SLURM_JOB_ID) job=$value value=ID ;;
	SLURM_JOBID) [ "$value" != "$job" ] || value=ID ;;
	SLURM_JOB_UID) [ "$value" != "$(id -u)" ] || value=UID ;;
	SLURM_SUBMIT_HOST) [ "$value" != "$(uname -n)" ] || value=HOST ;;
	esac
	echo "$name=$value"
done
END
cat >"$S/tools/script" <<'END'
#!/bin/sh
# script LINE…: writes the script `job`
printf '%s\n' '#!/bin/sh' "$@" >job
END
cat >"$S/tools/await" <<'END'
#!/bin/sh
# await FILE…: until they exist; at most 30 s
n=0
for file in "$@"; do
	until [ -e "$file" ]; do
		[ $((n += 1)) -lt 1500 ] || exit 1
		sleep 0.02
	done
done
END
cat >"$S/tools/meet" <<'END'
#!/bin/sh
# meet OWN OTHER COMMAND: runs the command once a process has called the opposite
: >"$1"
await "$2" || echo "$2 has not come"
shift 2
exec "$@"
END
cat >"$S/tools/listen" <<'END'
#!/bin/sh
# a task that reports the signals that it gets, and then ends with status 9
for each in TERM HUP USR1 QUIT INT; do
	trap "echo $SLURM_PROCID: $each; exit 9" $each
done
: >"up.$SLURM_PROCID"
while :; do
	sleep 0.05
done
END
cat >"$S/tools/signalled" <<'END'
#!/bin/sh
# signalled NAME COMMAND: a signal to the command, which has two tasks; and its status
name=$1
shift
env --default-signal=INT,QUIT "$@" listen >out 2>/dev/null &
await up.0 up.1
kill "-$name" $!
wait $! 2>/dev/null
code=$?
sort out
rm -f out up.0 up.1
exit $code
END
chmod +x "$S"/tools/*
export S TOOLS

# --- running lines -----------------------------------------------------------------------

# the lines, each with its number; a tab would be one separator with the tab behind it
tr '\t' '\037' <"$CLI/compare_slurm.tsv" | sed 1d | awk -v FS='\037' -v OFS='\037' \
	-v wanted="${LINE-}" 'index($1, wanted) { print NR, $0 }' >"$S/lines"
separator=$(printf '\037')

# plain SYSTEM NUMBER: stdin without what differs from run to run
plain() {
	sed -e "s,$S/$1/$2,HERE,g" -e "s,\\b$3\\b,NODE,g" -e "s,\\b$node\\b,NODE,g" \
		-e "s,\\b$user\\b,USER,g" -e 's/^\(Submitted batch job \)[1-9][0-9]*$/\1ID/'
}

# run_line SYSTEM NUMBER NODE CODE: writes the result of a line into $S/SYSTEM/NUMBER.result
run_line() {
	mkdir "$S/$1/$2"
	(
		cd "$S/$1/$2" || exit
		NODE=$3 timeout 60 sh -c "$4" >"../$2.out" 2>"../$2.err" </dev/null
		echo "status $?" >"../$2.status"
	)
	{
		cat "$S/$1/$2.out"
		[ -z "$(tail -c 1 "$S/$1/$2.out")" ] || echo '(no end of line)'
		cat "$S/$1/$2.status"
		find "$S/$1/$2" -type f | LC_ALL=C sort | while read -r file; do
			echo "${file##*/}:" | sed -E 's/(^slurm-|^j)[0-9]+/\1ID/'
			grep -v '^gpulease: ' "$file" | sed 's/^/  /'
		done
	} | plain "$1" "$2" "$3" >"$S/$1/$2.result"
}

node=$(uname -n)
node=${node%%.*}
user=$(id -un)
# shellcheck disable=SC2030,SC2031 # each line has an environment of its own
run_ours() {
	running=''
	while IFS="$separator" read -r number _ _ code; do
		(
			PATH=$S/lib/gpulease/bin:$S/tools:$PATH
			export PATH XDG_STATE_HOME="$S/state-home/$number" STILL='tasks 0-1 still run'
			mkdir "$XDG_STATE_HOME"
			run_line ours "$number" "$node" "$code"
		) &
		running="$running $!" # wait alone would wait for the daemons of Slurm, too
		# shellcheck disable=SC2086 # numbers
		[ "$(echo $running | wc -w)" -lt $AT_ONCE ] || { wait $running; running=; }
	done <"$S/lines"
	# shellcheck disable=SC2086 # numbers
	[ -z "$running" ] || wait $running
}

# One after the other, so that each line gets the first GPUs.
# shellcheck disable=SC2030,SC2031 # each line has an environment of its own
run_real() {
	while IFS="$separator" read -r number _ _ code; do
		(
			unset GPULEASE_SIM
			PATH=$S/tools:$PATH
			export PATH STILL='one more within 1 sec to abort'
			run_line real "$number" "$cluster_node" "$code"
		)
		# shellcheck disable=SC2016 # for wait_until
		wait_until '[ -z "$(squeue -h)" ]' || echo "# Slurm still has a job after line $number"
	done <"$S/lines"
}

# --- the recorded results ----------------------------------------------------------------

# recorded SYSTEM NAME: the result in the file
recorded() {
	awk -v side="$1" -v name="$2" '
		/^=== / { inside = substr($0, 5) == name; part = "real"; next }
		inside && /^--- gpulease$/ { part = "ours"; next }
		inside && part == side' "$results_file"
}

record() {
	if [ $real = yes ]; then
		echo "$(srun --version), one node, 8 GPUs"
	else
		head -n 1 "$results_file"
	fi
	while IFS="$separator" read -r number name difference _; do
		echo "=== $name"
		if [ $real = yes ]; then
			cat "$S/real/$number.result"
		else
			recorded real "$name"
		fi
		[ "$difference" != - ] || continue
		echo '--- gpulease'
		cat "$S/ours/$number.result"
	done <"$S/lines"
}

# same TEXT FILE FILE: a result
same() {
	if cmp -s "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$(diff -U 99 "$2" "$3" | sed 1,2d)" "$(cat "${3%.result}.err" 2>/dev/null)"
	fi
}

compare_ours() {
	while IFS="$separator" read -r number name difference _; do
		recorded real "$name" >"$S/want/$number"
		if [ "$difference" = - ]; then
			same "$name" "$S/want/$number" "$S/ours/$number.result"
			continue
		fi
		if cmp -s "$S/want/$number" "$S/ours/$number.result"; then
			not_ok "$name" "there is no difference any more: $difference"
			continue
		fi
		recorded ours "$name" >"$S/want/$number"
		same "$name, where gpulease differs" "$S/want/$number" "$S/ours/$number.result"
	done <"$S/lines"
}

# --- the comparison ----------------------------------------------------------------------

real=no
case ${COMPARE-} in
real | record)
	cards 8
	# without device cgroups, so that the GPUs keep their numbers in tasks
	if cluster_of_cards 8 none; then
		real=yes
		run_real
	else
		skip 'a real Slurm' "$cluster_why"
	fi
	;;
esac
run_ours
case ${COMPARE-}.$real in
record.no) bail "no results without Slurm: $cluster_why" ;;
record.yes | ours.*)
	record >"$S/results"
	cp "$S/results" "$results_file"
	;;
esac
compare_ours
while [ $real = yes ] && IFS="$separator" read -r number name _ _; do
	recorded real "$name" >"$S/want/$number"
	same "Slurm: $name" "$S/want/$number" "$S/real/$number.result"
done <"$S/lines"

# Each difference stands in the manual.
sed -E 's/^\.//; s/\<(Ar|Cm|Ev|Fl|It|Nm|Ns|Op|Pa|Xr) //g' "$manual" | tr '\n' ' ' | tr -s ' ' >"$S/manual"
while IFS="$separator" read -r _ name difference _; do
	[ "$difference" = - ] || grep -qF -- "$difference" "$S/manual" || echo "$name: $difference"
done <"$S/lines" >"$S/missing"
is 'each difference stands in the manual' test ! -s "$S/missing"
sed 's/^/# /' "$S/missing"
finish
