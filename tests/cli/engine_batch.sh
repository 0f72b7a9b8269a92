#!/bin/sh
# Jobs files of which each line is a job of Slurm.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch

cluster 4 2 || {
	skip 'a jobs file on a cluster' "$cluster_why"
	finish
}
slurm_engine
# shellcheck source=tests/cli/engine_batch_lib.sh
. "$CLI/engine_batch_lib.sh"

# --- a whole file -----------------------------------------------------------------------------

whole() {
	clean
	lines "[name=prep] echo from \$SLURM_JOB_NAME; $(says prep)" \
		"[gpus=2 name=train after-ok=prep] $(says train)" \
		"[gpus=2 after=train] $(says eval)" \
		"[gpus=0] $(says cpu)" \
		"[name=bad] $(says bad); exit 7" \
		"[after-ok=bad] $(says never)" \
		"$(says p1)" "$(says p2)" "$(says p3)" "$(says p4)" "$(says p5)" "exit 3"
	run 'the exit status is the worst of the lines' 124 \
		'*entry 6 cannot run: *12 jobs: 9 finished, 3 failed*' '' batch
	is 'each line has run once, except one that comes after a failed one' \
		[ "$(ran)" = 'bad cpu eval p1 p2 p3 p4 p5 prep train' ]
	is 'a line comes after the ones that it names' \
		[ "$(grep -x 'prep\|train\|eval' "$S/ran" | tr '\n' ' ')" = 'prep train eval ' ]
	is 'the output of a line is in its log' grep -qx 'from prep' "$W/1-prep.log"
	is 'no file of a job of Slurm is left' [ -z "$(ls "$W"/*.slurm 2>/dev/null)" ]
	run 'the next run runs nothing' 124 '*skipped: 11 of 12 lines*' '' batch
	is 'none has run again' [ "$(wc -l <"$S/ran")" -eq 10 ]
}
whole

# --- refusals ---------------------------------------------------------------------------------

refusals() {
	clean
	lines "$(says no)"
	for each in '-o out' '-e err' '-i in' '-d afterok:1' '--pty'; do
		# shellcheck disable=SC2086 # words
		run "a jobs file with $each is refused" 125 '' \
			"gpulease: --batch and ${each%% *} do not go together*" batch $each
	done
	is 'a batch that is refused runs nothing and leaves no folder' [ ! -s "$S/ran" -a ! -e "$W" ]
}
refusals

# --- lines that the cluster cannot run --------------------------------------------------------

alone() {
	clean
	lines "[vram=8G] $(says no)" "[allow=0-1] $(says no)" "[retries=2] $(says no)" \
		"[gpus=9] $(says no)" "$(says yes)"
	run 'lines that the cluster cannot run fail alone' 124 '*5 jobs: 1 finished, 4 failed*' '' batch
	for each in '1 cannot run: vram: Slurm knows no' '2 cannot run: allow: Slurm chooses' \
		'3 cannot run: retries: Slurm knows no' '4 cannot run: Slurm refuses the job: .*a node has 2 GPUs at most'; do
		is "the line of entry ${each%% *} says why" grep -q "entry $each" "$S/out"
	done
	is 'the other line has run' [ "$(ran)" = yes ]
}
alone

hopeless() {
	clean
	lines "[gpus=5] $(says no)" "$(says yes)"
	run 'a line that can never start is not run' 124 \
		'*entry 1 cannot run: *[!0-9]*1 failed*' '' batch
	is 'the others are' [ "$(ran)" = yes ]
	clean
	lines "$(says no)"
	run 'nor one that asks for more CPUs than its partition has' 125 \
		'*asks for 99 CPUs, and its partition has 64*1 failed*' '' batch -c 99
	is 'nothing runs' [ ! -s "$S/ran" ]
}
hopeless

# --- a file that changes -----------------------------------------------------------------------

changing() {
	clean
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b] $(holds b)" \
		"[gpus=2 name=c] $(holds c)" "[gpus=2 name=d] $(holds d)" \
		"[gpus=2 name=e] $(says e)" "[gpus=2 name=f] $(says f)" "[gpus=2 name=g] $(says g)"
	begin_batch --json
	has_run a b c d || bail 'the jobs do not run'
	is 'all lines are jobs of Slurm' \
		wait_until "[ \"\$(in_slurm PD,R)\" = 'a b c d e f g' ]"
	is 'the board says why a job waits in Slurm' \
		wait_until "grep -q 'e  *[0-9]* *waits for GPUs' '$W/status.txt'"
	id=$(squeue -h -n c -o %i)
	is 'the events have the id in Slurm' grep -q "\"started\".*\"ticket\": $id," "$S/batch.out"
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b cancel] $(holds b)" \
		"[gpus=2 name=c] $(holds c)" "[gpus=2 name=d] $(holds d)" \
		"[gpus=0 name=f] $(says f)" "[gpus=2 name=g] $(says g)"
	is 'a line with another need is submitted again' has_run f
	is 'a line that is deleted leaves the queue of Slurm' \
		wait_until "! in_slurm PD,R | grep -qw e"
	is 'the word cancel ends the job of its line' wait_until "! in_slurm PD,R | grep -qw b"
	"$GPULEASE" --cancel "$id" >/dev/null 2>&1
	is 'a job that is cancelled by its id ends its entry' \
		wait_until "grep -q '\"ended\".*\"ticket\": $id,.*\"cancelled\"' '$S/batch.out'"
	is 'the lines that wait get its GPUs' has_run g
	go a d
	runner_ends 143 'a job that was cancelled by its id counts'
	is 'each line has run once' [ "$(ran)" = 'a a.end b c d d.end f g' ]
}
changing

# --- kills -------------------------------------------------------------------------------------

killed_runner() {
	clean
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b] $(holds b)" \
		"[gpus=2 name=c] $(holds c)" "[gpus=2 name=d] $(holds d)" \
		"[gpus=2 name=e] $(holds e)" "[gpus=2 name=f] $(says f)"
	begin_batch
	has_run a b c d || bail 'the jobs do not run'
	wait_until "[ \"\$(in_slurm PD)\" = 'e f' ]" || bail 'no jobs wait'
	wait_until "[ \"\$(grep -c '\"started\"' '$W/journal.jsonl')\" -eq 4 ]"
	ids=$(squeue -h --sort=i -o %i)
	kill -KILL "$runner"
	wait "$runner" 2>/dev/null
	go a
	is 'the end of a job is recorded while no runner runs' \
		wait_until "grep -q '\"ended\".*\"job\": 1,' '$W/journal.jsonl'"
	begin_batch
	go b c d e
	runner_ends 0 'after a kill of the runner the next one finishes'
	is 'each line has run once' [ "$(ran)" = 'a a.end b b.end c c.end d d.end e e.end f' ]
	is 'the waiting jobs have kept their place' \
		[ "$(squeue -h --sort=i -t all -n a,b,c,d,e,f -o %i | tail -n 6)" = "$ids" ]
}
killed_runner

# a login node that loses all processes
killed_all() {
	clean
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b] $(holds b); exit 4" \
		"[gpus=2 name=c] $(holds c)" "[gpus=2 name=d] $(holds d)" "[gpus=2 name=e] $(says e)"
	begin_batch
	has_run a b c d || bail 'the jobs do not run'
	wait_until "[ \"\$(in_slurm PD)\" = e ]" || bail 'no job waits'
	# shellcheck disable=SC2046 # their ids
	kill -KILL $(pgrep -f "gpulease-engine.*$S/jobs.txt")
	wait "$runner" 2>/dev/null
	go a b
	wait_until "! in_slurm PD,R | grep -q 'a\|b'" || bail 'the jobs do not end'
	is 'the journal has no end of these jobs' \
		[ "$(grep -c '"ended"' "$W/journal.jsonl")" -eq 0 ]
	begin_batch
	go c d
	runner_ends 4 'after a kill of all processes the next runner finds how jobs have ended'
	is 'each line has run once' [ "$(ran)" = 'a a.end b b.end c c.end d d.end e' ]
}
killed_all

killed_parts() {
	clean
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b] $(holds b)" \
		"[gpus=2 name=c] $(holds c)"
	begin_batch
	has_run a b c || bail 'the jobs do not run'
	wait_until "[ -n '\$(member_of 1)' -a -n \"\$(member_of 2)\" ]"
	old=$(member_of 1)
	kill -KILL "$(supervisor_of 1)"
	is 'a job whose supervisor was killed gets another one' \
		wait_until "new=\$(member_of 1) && [ -n \"\$new\" ] && [ \"\$new\" != $old ]"
	old=$(member_of 2)
	kill -KILL "$old"
	is 'a job whose member was killed gets another one' \
		wait_until "new=\$(member_of 2) && [ -n \"\$new\" ] && [ \"\$new\" != $old ]"
	go a b c
	runner_ends 0 'and the jobs go on'
	is 'each line has run once' [ "$(ran)" = 'a a.end b b.end c c.end' ]
}
killed_parts

interrupted() {
	clean
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=b] $(holds b)" \
		"[gpus=2 name=c] $(holds c)" "[gpus=2 name=d] $(holds d)" "[gpus=2 name=e] $(says e)"
	begin_batch
	has_run a b c d || bail 'the jobs do not run'
	wait_until "[ \"\$(in_slurm PD)\" = e ]" || bail 'no job waits'
	kill -INT "$runner"
	runner_ends 130 'Ctrl-C ends the batch'
	is 'no job of it is left in Slurm' wait_until '[ -z "$(in_slurm PD,R)" ]'
	lines "[gpus=2 name=a] $(holds a)" "[gpus=2 name=e] $(says e)"
	begin_batch
	has_run e || bail 'the job does not run'
	go a
	runner_ends 0 'the next run runs again what was interrupted'
	is 'and only that' [ "$(ran)" = 'a a a.end b c d e' ]
}
interrupted

# --- fresh -------------------------------------------------------------------------------------

fresh_run() {
	clean
	lines "[name=a] $(holds a)"
	begin_batch
	has_run a || bail 'the job does not run'
	wait_until "[ -n \"\$(member_of 1)\" ]"
	# shellcheck disable=SC2046 # their ids
	kill -KILL $(pgrep -f "gpulease-engine.*$S/jobs.txt")
	wait "$runner" 2>/dev/null
	run '--fresh is refused while a job of an earlier run is in Slurm' 125 '' \
		"gpulease: jobs of an earlier run have not ended: $(squeue -h -n a -o %i); *" \
		batch --fresh
	go a
	wait_until '[ -z "$(in_slurm PD,R)" ]'
	lines "$(says b)"
	run 'and runs all lines once it has ended' 0 '*1 finished*' '' batch --fresh
	is 'also a line with the number of an earlier one' [ "$(ran)" = 'a a.end b' ]
}
fresh_run

# --- limits and failures -------------------------------------------------------------------------

at_once() {
	clean
	lines "[gpus=0 name=a] $(holds a)" "[gpus=0 name=b] $(holds b)" "[gpus=0 name=c] $(says c)"
	begin_batch --jobs 2
	has_run a b || bail 'the jobs do not run'
	is 'with --jobs 2 the third line is not submitted' \
		wait_until "grep -q 'c  *not in the queue yet' '$W/status.txt'"
	is 'two jobs are in Slurm' [ "$(in_slurm PD,R)" = 'a b' ]
	go a b
	runner_ends 0 'it is submitted when one of the others has ended'
	clean
	# shellcheck disable=SC2046 # numbers
	lines $(printf '[gpus=2]true%.0s\n' $(seq 55))
	scontrol update nodename=n[1-4] state=drain reason=test
	begin_batch --json
	is 'without --jobs 50 jobs are submitted' \
		wait_until '[ "$(squeue -h -o %i | grep -c .)" -eq 50 ]'
	is 'and no more' [ "$(grep -c '"queued"' "$S/batch.out")" -eq 50 ]
	kill -INT "$runner"
	runner_ends 130 'they are cancelled'
	is 'none of them is left' [ "$(squeue -h -o %i | grep -c .)" -eq 0 ]
	scontrol update nodename=n[1-4] state=resume 2>/dev/null
}
at_once

node_fails() {
	clean
	lines "[name=a fail-retries=1] $(holds a)" "[gpus=0 name=b] $(holds b)"
	begin_batch
	has_run a b || bail 'the jobs do not run'
	wait_until "[ -n \"\$(member_of 1)\" -a -n \"\$(member_of 2)\" ]"
	nodes=$(squeue -h -n a,b -o %N | sort -u | tr '\n' ,)
	scontrol update nodename="${nodes%,}" state=down reason=test
	is 'a job whose node fails is tried again' \
		wait_until "[ \"\$(grep -cx a '$S/ran')\" -eq 2 ]"
	go a
	runner_ends 125 'without retries the failure of a node counts as 125'
	is 'the log says it' grep -q 'job .* of Slurm was lost: its node has failed' "$W/2-b.log"
	is 'the second attempt has its own id in the journal' \
		[ "$(grep '"started".*"job": 1,\|"job": 1,.*"started"' "$W/journal.jsonl" |
			grep -o '"slurm": [0-9]*' | sort -u | wc -l)" -eq 2 ]
	scontrol update nodename="${nodes%,}" state=resume 2>/dev/null
	wait_until "[ \$(sinfo -h -N -o %T | grep -c '^idle') = 4 ]"
}
node_fails

controller_stops() {
	clean
	lines "[name=a] $(holds a)" "[name=b after=a] $(says b)"
	begin_batch
	has_run a || bail 'the job does not run'
	wait_until "[ -n \"\$(member_of 1)\" ]"
	cluster_stop slurmctld
	go a
	has_run a.end
	cluster_cont slurmctld
	runner_ends 0 'a controller that is stopped for a while costs no job'
	is 'each line has run once' [ "$(ran)" = 'a a.end b' ]
}
controller_stops

# an sbatch that has submitted the job, and says that it has not
lost_answer() {
	clean
	mkdir -p "$S/bin"
	sbatch=$(command -v sbatch)
	{
		echo '#!/bin/sh'
		echo "[ ! -e '$S/lost' ] || exec '$sbatch' \"\$@\""
		echo "'$sbatch' \"\$@\" >'$S/lost'"
		echo 'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2'
		echo 'exit 1'
	} >"$S/bin/sbatch"
	chmod +x "$S/bin/sbatch"
	lines "[name=a] $(says a)"
	rm -f "$S/lost"
	PATH=$S/bin:$PATH
	run 'a job whose id was lost is found' 0 '*1 finished*' '*' batch
	PATH=${PATH#"$S/bin:"}
	is 'and runs once' [ "$(ran)" = a ]
}
lost_answer

# --- many small jobs in one allocation -----------------------------------------------------------

packed() {
	clean
	# shellcheck source=tests/cli/slurm_lib.sh
	. "$CLI/slurm_lib.sh"
	cards 2
	export TEST_CARDS='0 1'
	printf '%s\n' "[gpus=0.5] $(says half1)" "[gpus=0.5] $(says half2)" \
		"[vram=20G] $(says part1)" "[vram=20G] $(says part2)" "[gpus=2] $(says both)" \
		"[gpus=0] $(says cpu)" >"$S/small.txt"
	id=$("$GPULEASE" -n 2 --submit -- "$GPULEASE" --batch "$S/small.txt")
	run 'small jobs run in one allocation' 0 '*' '*' "$GPULEASE" --wait-for "$id"
	is 'each of them once' [ "$(ran)" = 'both cpu half1 half2 part1 part2' ]
	is 'as local jobs, with shares' grep -q '"started".*"gpus": "' "$S/small.txt.logs/journal.jsonl"
	unset TEST_CARDS
}
packed

finish
