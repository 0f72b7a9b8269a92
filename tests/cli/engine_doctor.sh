#!/bin/sh
# --doctor with the engine slurm: on a healthy cluster, with faults, and without Slurm.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
slurm_engine

# examine STATUS: runs --doctor; $out has its lines.  A result only if it fails.
examine() {
	try "$GPULEASE" --doctor
	[ "$rc" -eq "$1" ] && [ -z "$err" ] && return
	not_ok "--doctor exits with $1" "exit status $rc" "$out" "stderr: $err"
}

# finds TEXT RESULT CHECK PATTERN: a result, good if a line of the last `examine` matches.
finds() {
	finds_line=$(printf '%s\n' "$out" | sed -n "s/^$2 *$3: //p")
	if [ -n "$finds_line" ] && like "$4" "$finds_line"; then
		ok "$1"
	else
		not_ok "$1" "no '$2 $3: $4' in:" "$out"
	fi
}

names() {
	printf '%s\n' "$out" | sed 's/^[a-z]* *\([^:]*\):.*/\1/' | uniq | tr '\n' ' '
}

# program NAME LINE…: from now on a program of Slurm with these lines of a shell script
program() {
	program_name=$1
	shift
	printf '%s\n' '#!/bin/sh' "$@" >"$S/bin/$program_name"
	chmod +x "$S/bin/$program_name"
}

# --- without Slurm -------------------------------------------------------------------------

mkdir "$S/bin" "$S/none"
usual_path=$PATH
try env PATH="$S/none" "$GPULEASE" --doctor
is 'without the programs of Slurm the status is 1' [ "$rc" = 1 ]
finds 'a missing srun is a fault' fail commands '*sinfo is not in PATH; *apt-get install slurm-client*'
finds 'a missing sacct is a warning' warn commands 'sacct is not in PATH; --history*'
is 'nothing is asked then' like '*commands *munge ' "$(names)"

program sinfo 'echo "slurm 19.05.2"'
program scontrol 'echo "Slurmctld(primary) at a is UP"' 'echo "ClusterName = a"'
for name in srun salloc sbatch squeue scancel sacct; do
	program $name 'exit 1'
done
PATH=$S/bin:$PATH
export SLURM_CONF="$S/missing.conf"
examine 1
finds 'a SLURM_CONF that is not there is a fault' fail slurm.conf "SLURM_CONF is '*missing.conf': No such file*"
finds 'an old Slurm is a warning' warn version 'slurm 19.05.2; *before 20.11'
finds 'without an answer of scontrol the settings are not known' fail settings 'SelectType is *'
program scontrol 'echo "Slurmctld(primary) at a is DOWN"' 'exit 1'
examine 1
finds 'a controller that is down is a fault' fail controller \
	'Slurmctld(primary) at a is DOWN; slurmctld has to run*'
is 'no check follows' like '*munge controller ' "$(names)"
program scontrol 'echo "scontrol: error: no such plugin" >&2' 'exit 1'
examine 1
finds 'a scontrol that fails is shown with its message' fail controller \
	'scontrol ping has failed with status 1: *no such plugin*'
printf 'AuthType=auth/slurm\n' >"$SLURM_CONF"
examine 1
finds 'another AuthType needs no munge' ok munge 'not needed*'
printf 'AuthInfo=socket=%s\n' "$S/no-socket" >"$SLURM_CONF"
examine 1
finds 'a munged that does not run is a fault' fail munge \
	"munged does not answer at '$S/no-socket': No such file*systemctl start munge*"
unset SLURM_CONF
PATH=$usual_path
rm -f "$S/bin"/*

# --- a cluster -----------------------------------------------------------------------------

if ! cluster 4 2; then
	skip '--doctor on a cluster' "$cluster_why"
	finish
fi
examine 0
finds 'the setting is shown' ok configuration GPULEASE_ENGINE=slurm
finds 'the programs are there' ok commands "srun, sbatch and the others are in '/*'"
finds 'slurm.conf is named' ok slurm.conf "'$SLURM_CONF', by SLURM_CONF"
finds 'munge runs' ok munge "munged has the socket '$K/munge/socket'"
finds 'the controller answers' ok controller '*is UP'
finds 'the versions are shown' ok version '*[0-9].* here, [0-9]* the controller'
finds 'the settings are shown' ok settings 'select/cons_tres; KillWait is 2 sec, MinJobAge is 60 sec'
finds 'partitions are shown' ok partitions 'main (up, default, 4 nodes)'
finds 'nodes are counted' ok nodes '4, all take jobs'
finds 'GPUs are counted' ok gpus '8 on 4 of 4 nodes: 8 sim'
finds 'shards are counted' ok shards 'none, *'
finds 'without accounting there is a warning' warn accounting 'sacct has failed*; without slurmdbd *'
finds 'a node has gpulease' ok 'on the nodes' "'*gpulease-engine' is on node n[1-4], too
'*/gpulease/slurm/testbed' is that of node n[1-4], too"
is 'the job on the node has not failed' \
	[ "$(squeue -h -t all -n gpulease-doctor -o %T)" = COMPLETED ]
is 'no file is left' [ -z "$(find "$XDG_STATE_HOME" -name 'doctor*')" ]
is 'all checks have their line' [ "$(names)" = "configuration commands slurm.conf munge \
controller version settings partitions nodes gpus shards accounting on the nodes " ]

run 'JSON' 0 '*"engine": "slurm"*"result": "warn"*' '' "$GPULEASE" --doctor --json
is 'the JSON is valid, and names the engine' [ "$("$TOOLS/jsoncheck" engine <"$S/out")" = slurm ]
is 'it has a member for each line' [ "$(printf '%s\n' "$out" | grep -c '"name"')" = 14 ]
run '--engine is shown as the setting' 0 'ok    configuration: --engine slurm
*' '' "$GPULEASE" --engine slurm --doctor
run 'an operand is misuse' 125 '' 'gpulease: *' "$GPULEASE" --doctor 3

# srun as it is where the nodes have no gpulease, and where all of them are in use
program srun 'echo n2 1'
PATH=$S/bin:$PATH
examine 0
finds 'a node without gpulease is a warning' warn 'on the nodes' \
	"'*gpulease-engine' is not on node n2; install gpulease on the nodes*"
program srun 'echo n2 2'
examine 1
finds 'a home directory that is not shared is a fault' fail 'on the nodes' \
	"node n2 does not see the files in '*/testbed'; share the home directories*"
program sacct 'exit 0'
rm "$S/bin/srun"
examine 0
finds 'accounting that answers is in order' ok accounting 'sacct answers'
srun -Q -N4 -n4 --exclusive sleep 100 2>/dev/null &
started="$started $!"
wait_until '[ "$(squeue -h -t R | wc -l)" = 1 ]'
examine 0
finds 'no node is free: it is not checked' warn 'on the nodes' 'srun has failed*; not checked; on a node run: test -x *'
scancel -p main
wait_until '[ -z "$(squeue -h)" ]'

scontrol update NodeName=n4 State=DOWN Reason='the fan'
examine 0
finds 'a node that is down is a warning' warn nodes '1 of 4 take no jobs: n4 (down: the fan); sinfo -R*'
scontrol update NodeName=n[1-3] State=DRAIN Reason=moving
examine 1
finds 'no node for jobs is a fault' fail nodes '4 of 4 take no jobs: n1 (drain*: moving), *'
scontrol update NodeName=n[1-4] State=RESUME
scontrol update PartitionName=main State=DOWN
examine 1
finds 'no partition for jobs is a fault' fail partitions 'none is up: main (down, *'
scontrol update PartitionName=main State=UP Default=NO
examine 0
finds 'no default partition is a warning' warn partitions '*none is the default; give -p NAME*'

read -r before _ </proc/uptime
cluster_stop slurmctld
examine 1
finds 'a controller that does not answer is a fault' fail controller '*; slurmctld has to run*'
read -r after _ </proc/uptime
is 'which is known after 15 s' [ $((${after%.*} - ${before%.*})) -le 15 ]
cluster_cont slurmctld
finish
