#!/bin/sh
# Each option of srun is done, accepted without effect, or refused by its name: none is unknown.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 8
cd "$S" || bail 'no directory'

# srun --help of Slurm 22.05, and what only its manual has: LETTER/NAME, then `=` where a value
# follows and `[=` where one may follow
names='
accel-bind= A/account= acctg-freq= async bb= bbf= bcast-exclude= bcast= b/begin= D/chdir=
cluster-constraint= M/clusters= comment= compress[= C/constraint= container= contiguous
S/core-spec= cores-per-socket= cpu-bind= cpu-freq= cpus-per-gpu= c/cpus-per-task= deadline=
delay-boot= d/dependency= X/disable-status m/distribution= epilog= e/error= exact x/exclude=
exclusive[= export= B/extra-node-info= gpu-bind= gpu-freq= gpus-per-node= gpus-per-socket=
gpus-per-task= G/gpus= gres-flags= gres= h/help het-group= hint= H/hold I/immediate[= i/input=
J/job-name= jobid= K/kill-on-bad-exit l/label L/licenses= mail-type= mail-user= mcs-label=
mem-bind= mem-per-cpu= mem-per-gpu= mem= mincpus= mpi= multi-prog nice[= Z/no-allocate
k/no-kill F/nodefile= w/nodelist= N/nodes= ntasks-per-core= ntasks-per-gpu= ntasks-per-node=
ntasks-per-socket= n/ntasks= open-mode= o/output= O/overcommit overlap s/oversubscribe
p/partition= power= E/preserve-env priority= profile= prolog= propagate[= pty q/qos= Q/quiet
quit-on-interrupt reboot r/relative= reservation= resv-ports send-libs[= signal= slurmd-debug=
sockets-per-node= spread-job switches= task-epilog= task-prolog= tasks-per-node= thread-spec=
threads-per-core= T/threads= time-min= t/time= tmp= tres-bind= u/unbuffered usage use-min-nodes
v/verbose V/version W/wait= wckey= x11[=
'

# known TEXT OPTION…: a result, good if gpulease knows the option
known() {
	known_text=$1
	shift
	try "$GPULEASE" --dry-run "$@" true
	case $rc.$err in
	0.* | 124. | 125.gpulease:*) # 124: it would wait, as with --hold
		if like '*unknown option*' "$err"; then
			not_ok "$known_text" "$err"
		else
			ok "$known_text"
		fi
		;;
	*) not_ok "$known_text" "status: $rc" "stderr: $err" ;;
	esac
}

# value NAME: a value that the option takes
value() {
	case $1 in
	dependency) echo singleton ;;
	export) echo ALL ;;
	gres) echo gpu:1 ;;
	signal) echo USR1@60 ;;
	*) echo 1 ;;
	esac
}

for each in $names; do
	letter=''
	case $each in
	?/*) letter=${each%%/*} ;;
	esac
	name=${each#?/}
	case $name in
	*'[=') known "--${name%??}" "--${name%??}" ;;
	*=)
		name=${name%=}
		known "--$name" "--$name=$(value "$name")"
		[ -z "$letter" ] || known "-$letter" "-$letter" "$(value "$name")"
		continue
		;;
	*) known "--$name" "--$name" ;;
	esac
	[ -z "$letter" ] || known "-$letter" "-$letter"
done

# the srun of this machine may be newer
echo 'ClusterName=x
SlurmctldHost=localhost' >"$S/slurm.conf"
if SLURM_CONF=$S/slurm.conf srun --help >"$S/help" 2>/dev/null; then
	sed -nE 's/^ *(-[A-Za-z],? +)?--([a-z0-9-]+).*/\2/p' "$S/help" | sort -u >"$S/have"
	"$GPULEASE" --list-options | sed -n 's/^--\([^\t]*\).*/\1/p' | sort -u >"$S/known"
	run 'the srun of this machine has no option that is unknown here' 0 '' '' \
		comm -23 "$S/have" "$S/known"
else
	skip 'the srun of this machine has no option that is unknown here' 'srun is not installed'
fi

# --- what becomes of them -------------------------------------------------------------------

# accepted OPTION…: a result, good if -v says that it is ignored
accepted() {
	run "-v says that it does nothing: $1" 0 '' "*gpulease: ${1%%=*} is accepted and ignored*" \
		"$GPULEASE" -v "$@" true
}

accepted --acctg-freq 30
accepted --bcast
accepted --contiguous
accepted --reservation=x
accepted --overcommit
accepted --tmp 1G
accepted --x11=all
for each in '-O|overcommit' '-B 1:2|extra-node-info' '-S 1|core-spec' '-T 4|threads'; do
	# shellcheck disable=SC2086 # words of a line
	run "-v says that it does nothing: ${each%|*}" 0 '' "*--${each#*|} is accepted and ignored*" \
		"$GPULEASE" -v ${each%|*} true
done

# refused OPTION PATTERN: a result, good if one line says what is missing
refused() {
	# shellcheck disable=SC2086 # words of a line
	run "refused: $1" 125 '' "gpulease: ${1%%[ =]*}: $2" "$GPULEASE" $1 true
}

refused '-r 1' '*only this machine*'
refused '--clusters=a' '*only this machine*'
refused '--het-group 1' '*only this machine*'
refused '--bb=x' '*GPUs and nothing else*'
refused '-L matlab' '*GPUs and nothing else*'
refused '--task-prolog=/a' "*sh -c 'program; command'*"
refused '--gpus-per-socket 1' '*--gpus N*'
refused '--tres-bind=x' '*--gpu-bind*'
refused -E '*-n N*'
refused -Z '*--gpus=0*'
refused --uid=1 '*as that user*'
refused --usage '*--help*'

for each in '' true; do
	# shellcheck disable=SC2086 # a command, or none
	run "--mpi=list${each:+ $each}" 0 'MPI plugin types are...
	none' '' "$GPULEASE" --gpus=1 --mpi=list $each
done
run '--mpi=list after a command is an argument' 0 '--mpi=list' '' "$GPULEASE" echo --mpi=list
run 'in another word it is refused' 125 '' 'gpulease: --mpi: there is no PMI here; *' \
	"$GPULEASE" --mpi list

# --- empty values -----------------------------------------------------------------------------

for each in gpus gres ntasks gpus-per-task ntasks-per-gpu dependency time output mpi; do
	run "an empty value: --$each" 125 '' "gpulease: --$each needs a value: --$each *" \
		"$GPULEASE" "--$each=" true
done
run 'an empty value in the next word' 125 '' 'gpulease: -d needs a value: -d *' "$GPULEASE" -d '' true
run 'an option without effect may have an empty value' 0 '' '*--mem*' \
	"$GPULEASE" --partition= --mem= true
finish
