#!/bin/sh
# Jobs files on a cluster: runners that stop before their jobs have ended, and where logs lie.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch

cluster 4 2 || {
	skip 'stopping a jobs file on a cluster' "$cluster_why"
	finish
}
slurm_engine
# shellcheck source=tests/cli/engine_batch_lib.sh
. "$CLI/engine_batch_lib.sh"

# --- Ctrl-C ------------------------------------------------------------------------------------

# a job that goes on for a while after TERM
slow_end() {
	clean
	lines "[name=a] trap '' TERM; $(holds a)"
	begin_batch --grace 0s
	has_run a || bail 'the job does not run'
	wait_until "[ -n \"\$(member_of 1)\" ]"
	id=$(squeue -h -n a -o %i)
	kill -INT "$runner"
	runner_ends 130 'a runner does not wait longer than --grace'
	is 'its job is still ending in Slurm' [ "$(in_slurm CG)" = a ]
	begin_batch
	is 'the next runner waits for that' \
		wait_until "grep -q ' $id  *its job of the last run is ending' '$W/status.txt'"
	is 'and starts nothing meanwhile' [ "$(ran)" = a ]
	go a
	is 'then the line runs again' wait_until "[ \"\$(grep -cx a '$S/ran')\" -eq 2 ]"
	go a
	runner_ends 0 'it has not failed'
	is 'once' [ "$(ran)" = 'a a a.end a.end' ]
}
slow_end

# a job that Slurm has been told to cancel while it did not answer
silent_stop() {
	clean
	lines "[name=a] $(holds a)"
	begin_batch --grace 0s
	has_run a || bail 'the job does not run'
	wait_until "[ -n \"\$(member_of 1)\" ]"
	cluster_stop slurmctld
	kill -INT "$runner"
	runner_ends 130 'Ctrl-C ends a batch also while Slurm does not answer'
	cluster_cont slurmctld
	wait_until '[ -n "$(squeue -h -n a -o %i)" ]' || bail 'the controller does not answer'
	scancel -n a
	wait_until '[ -z "$(squeue -h -n a -o %i)" ]'
	begin_batch
	is 'a job that is cancelled after that is run again' \
		wait_until "[ \"\$(grep -cx a '$S/ran')\" -eq 2 ]"
	go a
	runner_ends 0 'and has not failed'
}
silent_stop

# --- logs --------------------------------------------------------------------------------------

logs() {
	clean
	lines "[name=a] echo from a"
	run 'a batch' 0 '*1 finished*' '' batch
	is 'makes no logs of jobs of this machine' \
		[ ! -e "${XDG_STATE_HOME:-$HOME/.local/state}/gpulease/logs" ]
	mkdir "$S/b\\s%"
	echo '[name=a] echo from here' >"$S/b\\s%/jobs.txt"
	run 'a folder may have a backslash in its name' 0 '*1 finished*' '' \
		"$GPULEASE" --batch "$S/b\\s%/jobs.txt"
	is 'the log is there' grep -qx 'from here' "$S/b\\s%/jobs.txt.logs/1-a.log"
}
logs

finish
