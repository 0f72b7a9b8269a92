# shellcheck shell=sh
# A small real Slurm that runs as long as the script that reads this in after slurm_lib.sh.
#
#	slurm_bed N	starts one node with the N cards of $C/dev; if it cannot, returns 1 and sets
#			$slurm_why
#	$slurm_limits	not empty if its device cgroups hide the cards of other jobs
#
# Its files lie in $B, and it listens on the loopback interface.  It needs root, and slurmctld,
# slurmd, slurm-client and munge (make deps-extra).  Sets SLURM_CONF, by which srun, sbatch and
# salloc find it.

# shellcheck disable=SC2034 # shared with the scripts that read this in
B='' slurm_node=g$$ slurm_limits='' slurm_why=''

slurm_bed() {
	slurm_cards=$1
	[ "$(id -u)" -eq 0 ] || {
		slurm_why='not root'
		return 1
	}
	PATH=$PATH:/usr/sbin:/sbin
	for slurm_program in munged slurmctld slurmd srun sbatch salloc; do
		command -v $slurm_program >/dev/null || {
			slurm_why="no $slurm_program: make deps-extra"
			return 1
		}
	done
	B=$S/slurm
	mkdir -p "$B/munge" "$B/log" "$B/state" "$B/spool"
	chmod 0755 "$S" "$B" "$B/munge"
	at_exit slurm_end
	slurm_devices
	# without device cgroups Slurm works, too
	{ slurm_can_limit && slurm_try cgroup; } || slurm_try none
}

# Devices without a driver: open(2) fails with ENXIO, or with EPERM if a device cgroup hides it.
slurm_devices() {
	slurm_card=0
	while [ $slurm_card -lt "$slurm_cards" ]; do
		mknod -m 0666 "$C/dev/gpu$slurm_card" c 240 $((($$ % 4096) * 16 + slurm_card)) \
			2>/dev/null || : >"$C/dev/gpu$slurm_card"
		slurm_card=$((slurm_card + 1))
	done
}

slurm_can_limit() {
	[ -c "$C/dev/gpu0" ] && [ -d /sys/fs/cgroup/devices ] && [ -w /sys/fs/cgroup/devices ]
}

# Sets $slurm_port so that no process listens on it and the next one, as far as /proc tells.
slurm_ports() {
	slurm_port=$((20000 + $$ % 10000))
	while grep -qi "$(printf ':%04X ' $slurm_port)\|$(printf ':%04X ' $((slurm_port + 1)))" \
		/proc/net/tcp; do
		slurm_port=$((slurm_port + 2))
	done
}

slurm_configure() {
	slurm_ports
	export SLURM_CONF="$B/slurm.conf"
	slurm_files=$C/dev/gpu[0-$((slurm_cards - 1))]
	echo "NodeName=$slurm_node Name=gpu File=$slurm_files" >"$B/gres.conf"
	printf '%s\n' CgroupAutomount=yes CgroupPlugin=autodetect ConstrainDevices=yes \
		ConstrainCores=no ConstrainRAMSpace=no >"$B/cgroup.conf"
	track=linuxproc
	[ "$1" = none ] || track=cgroup
	cat >"$B/slurm.conf" <<-END
		ClusterName=bed
		SlurmctldHost=localhost(127.0.0.1)
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$B/munge/socket
		CredType=cred/munge
		SlurmctldPort=$slurm_port
		SlurmctldPidFile=$B/slurmctld.pid
		SlurmdPidFile=$B/slurmd.pid
		SlurmctldLogFile=$B/log/slurmctld
		SlurmdLogFile=$B/log/slurmd
		StateSaveLocation=$B/state
		SlurmdSpoolDir=$B/spool
		SwitchType=switch/none
		MpiDefault=none
		ProctrackType=proctrack/$track
		TaskPlugin=task/$1
		SlurmdParameters=config_overrides
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SchedulerParameters=sched_min_interval=10000
		GresTypes=gpu
		AccountingStorageType=accounting_storage/none
		JobAcctGatherType=jobacct_gather/none
		MailProg=/bin/true
		KillWait=1
		NodeName=$slurm_node NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((slurm_port + 1)) CPUs=16 RealMemory=1000 Gres=gpu:$slurm_cards
		PartitionName=main Nodes=$slurm_node Default=YES State=UP
	END
}

# Starts a daemon.  It ends after five minutes even if the script is killed.
slurm_daemon() {
	slurm_name=$1
	shift
	timeout -k 1 300 "$@" </dev/null >"$B/log/$slurm_name.out" 2>&1 &
	slurm_pids="${slurm_pids-} $!"
	started="$started $!"
}

# slurm_try PLUGIN: whether Slurm starts with that plugin for tasks, and runs a job.
slurm_try() {
	slurm_configure "$1"
	[ -e "$B/munge/key" ] || head -c 1024 /dev/urandom >"$B/munge/key"
	chmod 0400 "$B/munge/key"
	[ -e "$B/munge/socket" ] || slurm_daemon munged munged --foreground --force \
		--key-file="$B/munge/key" --socket="$B/munge/socket" \
		--pid-file="$B/munge/pid" --log-file="$B/munge/log" \
		--seed-file="$B/munge/seed" --num-threads=2
	slurm_pids=''
	if wait_until "[ -S '$B/munge/socket' ]"; then
		slurm_daemon slurmctld slurmctld -D -i
		slurm_daemon slurmd slurmd -D -N "$slurm_node"
		wait_until 'timeout 5 sinfo -h -o %T 2>/dev/null | grep -qx idle' &&
			slurm_shows "$1" && return
	fi
	slurm_why="$1: $(cat "$B"/log/*.out "$B/log/slurmctld" "$B/log/slurmd" 2>/dev/null |
		grep -i error | tail -n 2 | tr '\n' ' ')"
	# shellcheck disable=SC2086 # numbers
	kill -KILL $slurm_pids 2>/dev/null
	return 1
}

# slurm_shows PLUGIN: whether a job sees the cards that Slurm gives it.
slurm_shows() {
	slurm_seen=$(timeout 20 srun -Q -N1 -n1 --gpus=1 "$C/bin/cards" 2>/dev/null) || return 1
	# shellcheck disable=SC2086 # words
	case $1$(echo $slurm_seen | wc -w) in
	cgroup1) slurm_limits=yes ;;
	cgroup*) return 1 ;;
	esac
}

slurm_end() {
	timeout 5 scancel -p main 2>/dev/null
	# processes that Slurm has started have its configuration in the environment
	for slurm_pid in $(grep -lz "^SLURM_CONF=$B/" /proc/[0-9]*/environ 2>/dev/null |
		tr -dc '0-9\n'); do
		case $(cat "/proc/$slurm_pid/comm" 2>/dev/null) in
		slurm*) kill -KILL "$slurm_pid" 2>/dev/null ;;
		esac
	done
	for _ in 1 2 3 4 5; do
		find /sys/fs/cgroup -depth -type d -path "*/slurm_$slurm_node*" \
			-exec rmdir {} + 2>/dev/null && break
		sleep 0.1
	done
}
