# shellcheck shell=sh
# A small real Slurm cluster on this machine, which runs as long as the script that reads this in
# after lib.sh.
#
#	cluster NODES GPUS	starts that many nodes with so many GPUs each; if it cannot, returns 1
#				and sets $cluster_why
#	cluster_of_cards N [none]
#				instead of cluster: one node, $cluster_node, with the N cards of
#				slurm_lib.sh; with `none`, each job sees all of them
#	$cluster_limits		then not empty if a job sees only its own
#	cluster_accounting	call it before cluster: slurmdbd and mariadb run, too
#	cluster_extra LINES	call it before cluster: more lines for slurm.conf
#	cluster_devices		call it before cluster: device cgroups hide the GPUs of other jobs
#	cluster_stop NAME	stops a daemon (SIGSTOP): slurmctld, slurmd.n2
#	cluster_cont NAME	continues it
#	cluster_kill NAME	kills it
#	cluster_start NAME	starts it again
#	slurm_engine		from now on gpulease runs jobs on the cluster
#
# The nodes n1, n2 … have GPUs of type sim.  The ids of jobs begin at a number that differs from that
# of other clusters on this machine.  All files lie in $K, and all daemons listen on the
# loopback interface.  It needs root, and slurmctld, slurmd, slurm-client and munge (make
# deps-extra).  Sets SLURM_CONF, by which the programs of Slurm find it.

# shellcheck disable=SC2034 # shared with the scripts that read this in
K='' cluster_why='' cluster_db='' cluster_lines='' cluster_plugin=none cluster_track=linuxproc
cluster_name=n cluster_limits=''

cluster_accounting() {
	cluster_db=yes
}

cluster_extra() {
	cluster_lines=$1
}

cluster_devices() {
	cluster_plugin=cgroup cluster_track=cgroup
}

slurm_engine() {
	unset GPULEASE_SIM
	export GPULEASE_ENGINE=slurm
}

# cluster_has PROGRAM…
cluster_has() {
	for cluster_program; do
		command -v "$cluster_program" >/dev/null || {
			cluster_why="no $cluster_program: make deps-extra"
			return 1
		}
	done
}

cluster() {
	cluster_nodes=$1 cluster_gpus=$2
	PATH=$PATH:/usr/sbin:/sbin
	[ "$(id -u)" -eq 0 ] || {
		cluster_why='not root'
		return 1
	}
	cluster_has munged slurmctld slurmd srun sbatch salloc || return 1
	[ -z "$cluster_db" ] || cluster_has slurmdbd mariadbd mariadb-install-db mariadb sacctmgr ||
		return 1
	[ "$cluster_plugin" = none ] || [ -w /sys/fs/cgroup/devices ] || {
		cluster_why='no device cgroups'
		return 1
	}
	K=$S/cluster
	rm -rf "$K/munge" "$K/state" "$K/spool" # of an attempt before this one
	mkdir -p "$K/munge" "$K/log" "$K/state" "$K/spool" "$K/dev" "$K/pid"
	chmod 0755 "$S" "$K" "$K/munge"
	head -c 1024 /dev/urandom >"$K/munge/key"
	chmod 0400 "$K/munge/key"
	at_exit cluster_end
	cluster_ports
	cluster_configure
	cluster_start munged
	wait_until "[ -S '$K/munge/socket' ]" || return 1
	[ -z "$cluster_db" ] || cluster_database || return 1
	cluster_start slurmctld
	cluster_number=0
	while [ $((cluster_number += 1)) -le "$cluster_nodes" ]; do
		cluster_start "slurmd.$cluster_name$cluster_number"
	done
	wait_until "[ \$(timeout 5 sinfo -h -N -o %T 2>/dev/null | grep -c '^idle') = $cluster_nodes ]" || {
		cluster_why="the nodes did not come: $(tail -n 2 "$K/log/slurmctld")"
		return 1
	}
}

cluster_of_cards() {
	cluster_name=g$$n # a device cgroup has the name of its node alone
	mkdir -p "$S/cluster/dev"
	ln -s "$C/dev" "$S/cluster/dev/${cluster_name}1"
	if [ "${2-}" != none ]; then
		cluster_devices
		cluster 1 "$1" && cluster_hides_cards && cluster_limits=yes && return
		# without device cgroups Slurm works, too
		cluster_end
		cluster_plugin=none cluster_track=linuxproc
	fi
	cluster 1 "$1"
}

# Whether a job of one card sees only that.
cluster_hides_cards() {
	[ "$(timeout 20 srun -Q -N1 -n1 --gpus=1 "$C/bin/cards" 2>/dev/null | wc -w)" -eq 1 ]
}

# Sets $cluster_port so that no process listens on it and on those that follow, as far as /proc tells.
cluster_ports() {
	cluster_port=$((20000 + $$ % 700 * 16))
	while grep -qiE "$(printf ':(%04X|%04X|%04X|%04X) ' $cluster_port $((cluster_port + 1)) \
		$((cluster_port + 2)) $((cluster_port + 3)))" /proc/net/tcp; do
		cluster_port=$((cluster_port + 8))
	done
}

cluster_configure() {
	export SLURM_CONF="$K/slurm.conf"
	cluster_files='[0-'$((cluster_gpus - 1))']'
	[ "$cluster_gpus" -gt 1 ] || cluster_files=0
	cluster_number=0
	: >"$K/gres.conf"
	: >"$K/nodes"
	while [ $((cluster_number += 1)) -le "$cluster_nodes" ]; do
		cluster_node=$cluster_name$cluster_number
		cluster_make_devices
		echo "NodeName=$cluster_node Name=gpu Type=sim File=$K/dev/$cluster_node/gpu$cluster_files" \
			>>"$K/gres.conf"
		echo "NodeName=$cluster_node NodeHostname=localhost NodeAddr=127.0.0.1" \
			"Port=$((cluster_port + 3 + cluster_number)) CPUs=16 RealMemory=8000" \
			"Gres=gpu:sim:$cluster_gpus State=UNKNOWN" >>"$K/nodes"
	done
	cat >"$K/slurm.conf" <<-END
		ClusterName=testbed
		SlurmctldHost=localhost(127.0.0.1)
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$K/munge/socket
		CredType=cred/munge
		SlurmctldPort=$cluster_port
		SlurmctldPidFile=$K/pid/own.slurmctld
		SlurmdPidFile=$K/pid/own.slurmd.%n
		SlurmctldLogFile=$K/log/slurmctld
		SlurmdLogFile=$K/log/slurmd.%n
		StateSaveLocation=$K/state
		SlurmdSpoolDir=$K/spool/%n
		SwitchType=switch/none
		MpiDefault=none
		ProctrackType=proctrack/$cluster_track
		TaskPlugin=task/$cluster_plugin
		ReturnToService=2
		SlurmdParameters=config_overrides
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SchedulerType=sched/backfill
		SchedulerParameters=bf_interval=1,sched_min_interval=10000
		GresTypes=gpu
		JobAcctGatherType=jobacct_gather/none
		PriorityType=priority/multifactor
		KillWait=2
		MinJobAge=60
		FirstJobId=$((($$ % 60000 + 1) * 1000))
		InactiveLimit=0
		Waittime=0
		PropagateResourceLimitsExcept=MEMLOCK
		MailProg=/bin/true
		$(cat "$K/nodes")
		PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
		$(cluster_accounting_lines)
		$cluster_lines
	END
	sed -i 's/^[ \t]*//' "$K/slurm.conf"
	[ "$cluster_plugin" = none ] || printf '%s\n' CgroupAutomount=yes CgroupPlugin=autodetect \
		ConstrainDevices=yes ConstrainCores=no ConstrainRAMSpace=no >"$K/cgroup.conf"
}

# A device without a driver; where that is not allowed a plain file.  open(2) fails with ENXIO, or
# with EPERM if a device cgroup hides it.
cluster_make_devices() {
	mkdir -p "$K/dev/$cluster_node" "$K/spool/$cluster_node"
	cluster_gpu=0
	while [ $cluster_gpu -lt "$cluster_gpus" ]; do
		cluster_device=$K/dev/$cluster_node/gpu$cluster_gpu
		[ -e "$cluster_device" ] || mknod -m 0666 "$cluster_device" c 240 \
			$((($$ % 1024) * 64 + cluster_number * 8 + cluster_gpu)) 2>/dev/null ||
			: >"$cluster_device"
		cluster_gpu=$((cluster_gpu + 1))
	done
}

cluster_accounting_lines() {
	if [ -n "$cluster_db" ]; then
		echo AccountingStorageType=accounting_storage/slurmdbd
		echo AccountingStorageHost=127.0.0.1
		echo "AccountingStoragePort=$((cluster_port + 1))"
		echo "AccountingStoragePass=$K/munge/socket"
		echo AccountingStorageTRES=gres/gpu
	else
		echo AccountingStorageType=accounting_storage/none
	fi
}

# Starts a daemon.  It ends after five minutes even if the script is killed.
cluster_start() {
	case $1 in
	munged)
		set -- munged munged --foreground --force --key-file="$K/munge/key" \
			--socket="$K/munge/socket" --pid-file="$K/munge/pid" \
			--log-file="$K/munge/log" --seed-file="$K/munge/seed" --num-threads=2
		;;
	slurmctld) set -- slurmctld slurmctld -D -i ;;
	slurmd.*) set -- "$1" slurmd -D -N "${1#slurmd.}" ;;
	slurmdbd) set -- slurmdbd slurmdbd -D ;;
	esac
	cluster_daemon=$1
	shift
	setsid timeout -k 1 300 "$@" </dev/null >>"$K/log/$cluster_daemon.out" 2>&1 &
	echo $! >"$K/pid/$cluster_daemon"
	started="$started $!"
}

# The daemon itself, which is a child of timeout(1).
cluster_pid() {
	pgrep -P "$(cat "$K/pid/$1")"
}

cluster_stop() {
	kill -STOP "$(cluster_pid "$1")"
}

cluster_cont() {
	kill -CONT "$(cluster_pid "$1")"
}

cluster_kill() {
	kill -KILL "$(cluster_pid "$1")"
}

cluster_database() {
	mkdir -p "$K/db"
	mariadb-install-db --no-defaults --user=root --datadir="$K/db" --skip-test-db \
		--auth-root-authentication-method=normal >"$K/log/install-db" 2>&1 || {
		cluster_why='mariadb-install-db fails'
		return 1
	}
	setsid timeout -k 1 300 mariadbd --no-defaults --user=root --datadir="$K/db" \
		--bind-address=127.0.0.1 --port=$((cluster_port + 2)) --socket="$K/db/socket" \
		--pid-file="$K/db/pid" --innodb-buffer-pool-size=64M \
		--innodb-flush-log-at-trx-commit=0 </dev/null >"$K/log/mariadbd" 2>&1 &
	started="$started $!"
	cat >"$K/slurmdbd.conf" <<-END
		AuthType=auth/munge
		AuthInfo=socket=$K/munge/socket
		DbdHost=localhost
		DbdAddr=127.0.0.1
		DbdPort=$((cluster_port + 1))
		SlurmUser=root
		PidFile=$K/pid/own.slurmdbd
		LogFile=$K/log/slurmdbd
		StorageType=accounting_storage/mysql
		StorageHost=127.0.0.1
		StoragePort=$((cluster_port + 2))
		StorageUser=slurm
		StoragePass=slurm
		StorageLoc=slurm_acct
	END
	sed -i 's/^[ \t]*//' "$K/slurmdbd.conf"
	chmod 0600 "$K/slurmdbd.conf"
	cluster_sql="CREATE USER IF NOT EXISTS slurm@'127.0.0.1' IDENTIFIED BY 'slurm';
		CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY 'slurm';
		GRANT ALL ON slurm_acct.* TO slurm@'127.0.0.1';
		GRANT ALL ON slurm_acct.* TO slurm@localhost"
	wait_until 'mariadb --no-defaults -uroot -S "$K/db/socket" -e "$cluster_sql" 2>/dev/null' || {
		cluster_why='mariadb did not come'
		return 1
	}
	cluster_start slurmdbd
	wait_until 'sacctmgr -i add cluster testbed >"$K/log/sacctmgr" 2>&1' || {
		cluster_why='slurmdbd did not come'
		return 1
	}
}

cluster_end() {
	[ -z "$K" ] || timeout 5 scancel -p main 2>/dev/null
	# processes that Slurm has started have its configuration in the environment
	for cluster_process in $(grep -lz "^SLURM_CONF=$K/" /proc/[0-9]*/environ 2>/dev/null |
		tr -dc '0-9\n'); do
		case $(cat "/proc/$cluster_process/comm" 2>/dev/null) in
		slurm* | munged | mariadbd) kill -KILL "$cluster_process" 2>/dev/null ;;
		esac
	done
	[ "$cluster_plugin" = none ] || for _ in 1 2 3 4 5; do
		find /sys/fs/cgroup -depth -type d -path "*/slurm_${cluster_name}[0-9]*" -exec rmdir {} + 2>/dev/null && break
		sleep 0.1
	done
}
