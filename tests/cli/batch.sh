#!/bin/sh
# Jobs files: how their lines are run, and what each attribute of a line does.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# --- a file ------------------------------------------------------------------------------

a_file() {
	clean
	lines '# what comes first' 'echo one; echo two >&2' '' \
		'	[name=second] echo "$GPULEASE_ID ${CUDA_VISIBLE_DEVICES:-none}"' \
		'  [gpus=0] echo ${CUDA_VISIBLE_DEVICES:-none}'
	cp -p "$J" "$S/before"
	run 'the lines of a file are run' 0 '*entry 1 started on GPU*
*3 jobs: 3 finished, in *' '' batch
	is 'the batch prints a line when a job starts' \
		[ "$(count ' entry [123].* started ' "$S/out")" = 3 ]
	is 'the batch prints a line when a job ends' \
		[ "$(count ' entry [123].* ended: exit status 0' "$S/out")" = 3 ]
	is 'the jobs file is not changed' cmp "$J" "$S/before"
	is 'the modification time of the jobs file is not changed' \
		[ ! "$J" -nt "$S/before" ]
	is 'the log has the output of a command' grep -qx one "$W"/1-*.log
	is 'the log has the stderr of a command' grep -qx two "$W"/1-*.log
	is 'the log of a job with a name has this name' \
		grep -qx '[0-9]* [0-7]' "$W/2-second.log"
	is 'a job with gpus=0 sees no GPU' grep -qx none "$W"/3-*.log
	is 'the board has the number of finished jobs' \
		grep -q 'jobs: 0 running, 0 waiting, 3 finished, of 3' "$W/status.txt"
	is 'the board shows how each job ended' grep -q '^ *2 *second *ok' "$W/status.txt"
	is 'only the user can read logs, journal and board' \
		[ -z "$(find "$W" -type f -perm /077)" ]
	is 'the queue is empty after the batch' empty_queue
	is 'the journal has the end of each job' \
		[ "$(count '"event": "ended"' "$W/journal.jsonl")" = 3 ]
	is 'each line of the journal is JSON' \
		[ "$(each_is_json "$W/journal.jsonl")" = '' ]
}

# each_is_json FILE: prints the lines that are not JSON
each_is_json() {
	while IFS= read -r line; do
		printf '%s\n' "$line" | "$TOOLS/jsoncheck" event >/dev/null || echo "$line"
	done <"$1"
}

ways() {
	clean
	lines 'echo a' 'echo b'
	run 'with -Q the batch prints nothing' 0 '' '' batch -Q
	clean
	lines 'echo a' 'exit 1' 'echo b'
	run 'with --json the batch prints events' \
		1 '{"event": "batch"*
{"event": "seen"*"event": "summary"*}' '' batch --json
	is 'with --json each line is JSON' [ "$(each_is_json "$S/out")" = '' ]
	is 'with --json the end of a job is printed once' \
		[ "$(count '"event": "ended"' "$S/out")" = 3 ]
	is 'with --json the last event is the summary' \
		[ "$(tail -n 1 "$S/out" | member event)" = summary ]
	is 'the summary has the exit status' \
		[ "$(tail -n 1 "$S/out" | member status)" = 1 ]
	is 'the summary has the number of jobs in each state' \
		grep -q '"all": 3, "waiting": 0, "running": 0, "finished": 2,'\
' "failed": 1, "cancelled": 0, "dropped": 0, "text": "3 jobs: ' "$S/out"
	clean
	lines 'echo here'
	run 'a batch with --log-dir runs' 0 '*' '' batch --log-dir "$S/else"
	is '--log-dir: the logs are in that folder' grep -qx here "$S"/else/1-*.log
	is '--log-dir: the usual folder is not made' [ ! -e "$W" ]
	clean
	mkdir -p "$S/there"
	lines 'pwd'
	run 'a batch with -D runs' 0 '*' '' batch -D "$S/there"
	is '-D: commands run in that folder' grep -qx "$S/there" "$W"/1-*.log
	clean
	: >"$J"
	run 'an empty jobs file is a batch without jobs' \
		0 '0 jobs: 0 finished, in *' '' batch
	printf '# nothing\n\n' >"$J"
	run 'a jobs file with only a comment is a batch without jobs' 0 '*' '' batch
	printf 'echo last' >"$J"
	run 'a last line without a newline is accepted' 0 '*' '' batch
	is 'a last line without a newline is run' grep -qx last "$W"/1-*.log
	clean
	printf 'echo first >>%s\n[gpu=1] echo last' "$S/ran" >"$J"
	run 'an error in a last line without a newline is found' \
		125 '' 'gpulease: *jobs, line 2: *gpu*' batch
	is 'with an error in the last line no line is run' [ ! -s "$S/ran" ]
	clean
	lines 'grep "Sig[BI]" /proc/self/status'
	run 'a command can read its signal masks' 0 '*' '' batch
	is 'commands have the signal masks of this shell' \
		[ "$(grep '^Sig' "$W"/1-*.log)" = \
		"$(timeout 5 grep 'Sig[BI]' /proc/self/status)" ]
}

a_pipe() {
	clean
	mkfifo "$S/pipe"
	(cd "$S" && exec "$GPULEASE" --batch - --log-dir "$W") <"$S/pipe" \
		>"$S/p.out" 2>"$S/p.err" &
	echo $! >"$S/p.pid"
	started="$started $!"
	exec 5>"$S/pipe"
	echo "$S/held a" >&5
	is 'a line from a pipe is run at once' wait_until 'on a'
	echo "[name=later] $S/held b" >&5
	is 'a later line from the pipe is run as well' wait_until 'on b'
	go a b
	wait_until '[ "$(count . "$S/ends")" = 2 ]'
	is 'with the pipe open the batch does not end' \
		like '[SRD]' "$(process_state "$(pid_of p)")"
	echo 'exit 4' >&5
	exec 5>&-
	ended p
	is 'the batch ends when the pipe is closed' [ "$rc" = 4 ]
	is 'all lines from the pipe are run' \
		grep -q '^3 jobs: 2 finished, 1 failed' "$S/p.out"
	run 'a bad line in a pipe is refused, the jobs before it are run' \
		125 '*2 jobs: 1 finished, 1 failed*' \
		'gpulease: *line 3*gpu*the rest is not read' \
		sh -c 'cd "$2" && printf "exit 3\ntrue\n[gpu=1] exit 4\nexit 5\n" |
			"$1" --batch - --log-dir "$2/pipe.logs"' sh "$GPULEASE" "$S"
	run 'a cycle in a pipe is refused, the jobs before it are run' \
		125 '*2 jobs: 1 finished, 1 failed*' 'gpulease: *line 3*' \
		sh -c 'cd "$2" && printf "true\n[name=a after=b] true\n[name=b after=a] true\n" |
			"$1" --batch - --log-dir "$2/circle.logs"' sh "$GPULEASE" "$S"
}

# --- exit statuses -----------------------------------------------------------------------

statuses() {
	clean
	lines 'exit 3' 'exit 7' 'true'
	run 'the exit status of the batch is the highest of its jobs' \
		7 '*1 finished, 2 failed*' '' batch
	clean
	lines 'exit 3' 'kill -KILL $$'
	run 'the exit status of a killed job is 128 + the signal'"'"'s number' \
		137 '*(KILL)*' '' batch
	clean
	lines 'true' '[cancel] exit 9'
	run 'a cancelled line does not count in the exit status' \
		0 '*1 finished, 1 cancelled*' '' batch
	clean
	lines '[timeout=300ms] sleep 1000'
	run 'a job that reaches its time limit gives status 124' \
		124 '*ended: time limit*' '' batch
	is 'the journal has the time limit as the cause of the end' \
		[ "$(event ended 1 | member cause)" = limit ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'a job ended by --cancel counts in the exit status' [ "$rc" = 143 ]
	clean
	lines "trap 'exit 0' TERM; $S/held a & wait"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'a cancelled job counts although its command exits with 0' \
		[ "$rc $(event ended 1 | member cause)" = '143 cancelled' ]
	clean
	lines '[gpus=99] echo never' 'echo next'
	run 'a job that can never start fails at once, and others run: status 124' \
		124 '*cannot run: *99*' '' batch
	is 'the line after a job that can never start is run' grep -qx next "$W"/2-*.log
	run 'the next run knows that others have run' 124 '*cannot run: *99*' '' batch
	lines '[gpus=99] echo never' 'exit 3'
	run 'a job that can never start is worse than one that fails' 124 '*2 failed*' '' batch
	lines '[gpus=99] echo never' 'exit 126'
	run 'the worst status of those that ran counts' 126 '*2 failed*' '' batch
	lines '[gpus=99] echo never' 'exit 125'
	run 'a command may exit with 125' 125 '*2 failed*' '' batch
	clean
	lines '[gpus=99] echo never' '[after-ok=1] echo next' '[cancel] true'
	run 'where nothing could be run, the status is 125' 125 '*cannot run: *99*' '' batch
	clean
	lines '[fail-retries=2] echo again >>'"$S/ran"'; exit 5'
	printf 'retry-delay = 1ms\n' >"$S/soon"
	run 'a job that fails is tried again' \
		5 '*tried again in*' '' batch --config "$S/soon"
	is 'a job is tried again as often as its line says' \
		[ "$(count again "$S/ran")" = 3 ]
}

# --- attributes --------------------------------------------------------------------------

attributes() {
	clean
	sim 4x24G
	lines '[gpus=2] echo "$GPULEASE_GPUS" | tr , "\n" | grep -c .' \
		'[gpus=0.5] echo "$GPULEASE_SHARE"' \
		'[allow=3] echo "on $CUDA_VISIBLE_DEVICES"' \
		'[setup="word=set; export word"] echo "is $word"' \
		'[vram=3G] echo "has $GPULEASE_VRAM_MIB"'
	run 'lines with attributes are run' 0 '*5 finished*' '' batch
	is 'gpus=2 gives two GPUs' grep -qx 2 "$W"/1-*.log
	is 'gpus=0.5 gives half of a GPU' grep -q '50' "$W"/2-*.log
	is 'allow=3 gives GPU 3' grep -qx 'on 3' "$W"/3-*.log
	is 'setup= runs before the command in the same shell' \
		grep -qx 'is set' "$W"/4-*.log
	is 'vram=3G declares 3072 MiB' grep -qx 'has 3072' "$W"/5-*.log
	clean
	lines 'echo "on $CUDA_VISIBLE_DEVICES"' '[allow=1] echo "on $CUDA_VISIBLE_DEVICES"'
	run 'a batch with --allow runs' 0 '*' '' batch --allow 2
	is 'an option of the command line counts for a line without the attribute' \
		grep -qx 'on 2' "$W"/1-*.log
	is 'the attribute of a line overrides the option of the command line' \
		grep -qx 'on 1' "$W"/2-*.log
	clean
	sim 1x24G
	lines "[vram=10G] $S/held a" "[vram=10G] $S/held b" "[vram=10G] $S/held c"
	batch_begin b
	is 'two jobs that fit into the memory share a GPU' wait_until 'on a b'
	is 'a third job that does not fit waits' wait_until '[ "$(queued)" = 1 ]'
	is 'the third job has not started' [ ! -e "$S/c.on" ]
	go a
	is 'the third job starts when there is room' wait_until 'on c'
	go b c
	ended b
	is 'all jobs that share the GPU end' [ "$rc" = 0 ]
}

order() {
	clean
	sim 1
	lines 'echo 1 >>'"$S/ran" '[priority=5] echo 2 >>'"$S/ran" \
		'[priority=-1] echo 3 >>'"$S/ran" '[priority=5] echo 4 >>'"$S/ran"
	allow_priorities run 'a batch with priorities runs one job at a time' \
		0 '*' '' batch --jobs 1
	is 'a higher priority comes first, then the order of the file' \
		[ "$(words "$S/ran")" = '2 4 1 3' ]
	clean
	sim 8
	lines "[after=slow] echo late >>$S/ran" "[name=slow] $S/held a; echo slow >>$S/ran" \
		"echo free >>$S/ran"
	batch_begin b
	await_on a
	is 'a job with after= does not start with the others' \
		wait_until '[ "$(words "$S/ran")" = free ]'
	go a
	ended b
	is 'a job with after= waits until the other job has ended' \
		[ "$(words "$S/ran")" = 'free slow late' ]
	clean
	lines '[name=bad] exit 3' "[after=bad] echo any >>$S/ran" \
		"[after-ok=bad] echo ok >>$S/ran" '[name=good] true' \
		"[after-ok=good] echo good >>$S/ran"
	run 'a job that after-ok= keeps from starting gives status 124' 124 '*' '' batch
	is 'after= starts a job after one that has failed' grep -qx any "$S/ran"
	is 'after-ok= does not start a job after one that has failed' \
		[ "$(count ok "$S/ran")" = 0 ]
	is 'the batch prints that entry 3 cannot start, and why' \
		grep -q 'entry 3 .*entry 1 has failed' "$S/out"
	is 'after-ok= starts a job after one that exited with 0' grep -qx good "$S/ran"
	clean
	sim 8
	lines "$S/held a" "$S/held b" "$S/held c"
	batch_begin b --jobs 2
	await_on a b
	is 'with --jobs 2 no third job is in the queue' [ "$(queued)" = 0 ]
	is 'with --jobs 2 the third job is not started' \
		[ "$(words "$S/starts" | tr ' ' '\n' | sort | tr '\n' ' ')" = 'a b ' ]
	go b
	is 'with --jobs 2 the third job starts when another has ended' wait_until 'on c'
	go a c
	ended b
}

# on_now: prints how many lines are running
on_now() {
	set -- "$S"/*.on
	[ ! -e "$1" ] || echo $#
}

at_once() {
	clean
	sim 8
	i=0
	while [ $((i += 1)) -le 20 ]; do
		echo "[gpus=0] mkdir $S/\$\$.on; echo $S/*.on | wc -w >>$S/ran;" \
			"until [ -e $S/all.go ]; do sleep 0.05; done; rmdir $S/\$\$.on; : $i"
	done >"$J"
	batch_begin b --jobs 4
	is 'with --jobs 4 four jobs without GPUs run at once' \
		wait_until '[ "$(on_now)" = 4 ]'
	wait_until '[ "$(grep -c . "$S/ran")" = 4 ]'
	go all
	ended b
	is 'with --jobs 4 all twenty jobs are run' \
		[ "$rc $(grep -c . "$S/ran")" = '0 20' ]
	is 'with --jobs 4 never more than four jobs run at once' \
		[ "$(sort -n "$S/ran" | tail -n 1)" = 4 ]
}

# --- memory ------------------------------------------------------------------------------

# board_goes_on: waits until status.txt is replaced twice, once for what may still have been new
board_goes_on() {
	for _ in 1 2; do
		# shellcheck disable=SC2034 # by the condition
		version=$(stat -c %y "$W/status.txt")
		wait_until '[ "$(stat -c %y "$W/status.txt")" != "$version" ]' || return
	done
}

memory() {
	clean
	# without a GPU nothing is sampled: once the job runs, nothing happens but time
	lines "[gpus=0] $S/held a"
	batch_begin b
	wait_until 'grep -q "1 running" "$W/status.txt"'
	is 'the board is written again while a job runs' board_goes_on
	go a
	ended b
	rm -f "$S"/a.*
	[ -x "${GPULEASE%/*}/gpulease-simjob" ] || {
		skip 'lack of memory' 'no gpulease-simjob'
		return
	}
	PATH=${GPULEASE%/*}:$PATH
	clean
	sim 2x24G
	lines "[vram=2000 retries=3] gpulease-simjob --vram 1900 --ramp 0 --hold 0 --oom-once $S/oom"
	run 'a job that runs out of GPU memory is tried again' \
		0 '*out of GPU memory*tried again with 2.5G*' '' batch
	is 'after lack of memory the job declares a quarter more' \
		[ "$(event started 1 | member vram_mib | words /dev/stdin)" = '2000 2500' ]
	is 'the attempt that ran out of memory is in the journal' \
		[ "$(event attempt 1 | member cause)" = oom ]
	clean
	lines "[vram=2000 retries=3] echo x >>$S/ran; gpulease-simjob --vram 100 --ramp 0 --hold 0 --exit 6"
	run 'a job that fails for another reason gives its status' 6 '*' '' batch
	is 'a job that fails for another reason is not tried again' \
		[ "$(count x "$S/ran")" = 1 ]
	clean
	lines "[vram=1000] gpulease-simjob --vram 3000 --ramp 0 --hold 1h & $S/held a; kill \$!"
	batch_begin b -v
	is 'with -v the batch prints the memory of a job as it grows' \
		wait_until 'grep -q "entry 1 uses 2.9G" "$S/b.out"'
	go a
	ended b
	is 'with -v the batch prints the highest memory at the end of the job' \
		grep -q 'entry 1 ended.*2.9G of .*declared, over by more than' "$S/b.out"
	is 'the journal has the highest memory of the job' \
		[ "$(event ended 1 | member peak_mib)" = 3000 ]
	rm -rf "$W" "$S"/a.*
	batch_begin b
	is 'a job that uses more than it declared is reported' wait_until 'grep -q \
		"^[0-9:]* entry 1 uses 2.9G on GPU [01] and declared 1.0G: its neighbors may run out of memory$" \
		"$S/b.out"'
	is 'the board shows what the job uses, and that it is too much' \
		wait_until 'grep -q "^ *1 .* 2.9G of 1.0G, over$" "$W/status.txt"'
	is 'it is reported once, and without -v nothing else is said of its memory' \
		[ "$(grep -c ' uses ' "$S/b.out")" = 1 ]
	is 'the log of the job says so, too' grep -q \
		'^gpulease: job [0-9]* uses 2.9G on GPU [01] and declared 1.0G: ' "$W"/1-*.log
	go a
	ended b
	is 'the board shows it when the job has ended' \
		grep -q '^ *1 .* 2.9G of 1.0G, over$' "$W/status.txt"
	rm -rf "$W" "$S"/a.*
	batch_begin b --json
	is 'it is an event, with the GPU and what the job uses there' wait_until 'grep -q \
		"\"event\": \"excess\".* \"job\": 1,.* \"gpus\": \"[01]\",.* \"vram_mib\": 1000, \"used_mib\": 3000, " \
		"$S/b.out"'
	go a
	ended b
}

# --- beside others -----------------------------------------------------------------------

beside_others() {
	clean
	sim 1
	holder h -n 1
	i=0
	while [ $((i += 1)) -le 30 ]; do
		echo "echo $i >>$S/ran"
	done >"$J"
	batch_begin b
	is 'while another job has the GPU, at most 16 jobs wait' \
		wait_until '[ "$(queued)" = 16 ]'
	is 'all thirty lines are read while 16 jobs wait' \
		wait_until '[ "$(count "\"event\": \"seen\"" "$W/journal.jsonl")" = 30 ]'
	is 'no more than 16 jobs wait after all lines are read' [ "$(queued)" = 16 ]
	release h
	ended b
	is 'all thirty jobs run once the GPU is free' [ "$rc" = 0 ]
	is 'the thirty jobs run in the order of the file' \
		[ "$(words "$S/ran")" = "$(seq -s ' ' 30)" ]
	clean
	sim 2
	holder h -n 1 --time 1h
	lines "[gpus=2] $S/held a" "[timeout=1m] echo small >>$S/ran" "[timeout=1m] $S/held c"
	batch_begin b
	is 'small jobs run beside a job that is not of the batch' \
		wait_until 'grep -q small "$S/ran" && on c'
	is 'the job that needs both GPUs waits' [ ! -e "$S/a.on" ]
	release h
	go a c
	ended b
	is 'the job that needs both GPUs runs in the end' [ "$(count a "$S/ends")" = 1 ]
}

# Jobs that wait for their next attempt have tickets, too: no other line starts in their place.
tried_again() {
	clean
	sim 1
	printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/late"
	echo "[fail-retries=1] $S/held a 1" >"$J"
	i=0
	while [ $((i += 1)) -lt 30 ]; do
		echo "[fail-retries=1] exit 1; : $i"
	done >>"$J"
	batch_begin b --config "$S/late"
	# one runs and 16 wait when the first of them fails
	await_on a
	wait_until '[ "$(queued)" = 16 ]' || bail 'no 16 wait'
	: >"$S/a.go"
	is '17 lines that fail wait for their next attempt' \
		wait_until '[ "$(event attempt 17 | grep -c .)" = 1 ]'
	is 'with jobs that wait for their next attempt 17 tickets wait' \
		wait_until '[ "$(queued)" = 17 ]'
	"$GPULEASE" --cancel "$(queue ticket | tail -n 2 | words /dev/stdin | tr ' ' ,)" 2>"$S/err"
	is 'another line starts when two of the 17 are cancelled' \
		wait_until '[ "$(event attempt 18 | grep -c .)" = 1 ]'
	kill -INT "$(pid_of b)"
	ended b
	is 'an interrupt ends all jobs that wait for their next attempt' \
		[ "$rc $(queued)" = '130 0' ]
}

a_file
ways
a_pipe
statuses
attributes
order
at_once
memory
beside_others
tried_again
finish
