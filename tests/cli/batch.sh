#!/bin/sh
# Jobs files: how their lines are run, and what each of their attributes does.
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
	run 'the lines of a file are run' 0 '*job 1 started on GPU*
*3 jobs: 3 finished, in *' '' batch
	is 'each has a line at its start' [ "$(count ' job [123].* started ' "$S/out")" = 3 ]
	is 'and one at its end' [ "$(count ' job [123].* ended: exit status 0' "$S/out")" = 3 ]
	is 'the file is what it was' cmp "$J" "$S/before"
	is 'and was not touched' [ ! "$J" -nt "$S/before" ]
	is 'the log has the output of a command' grep -qx one "$W"/1-*.log
	is 'and its errors' grep -qx two "$W"/1-*.log
	is 'it is called by the name of the line' grep -qx '[0-9]* [0-7]' "$W/2-second.log"
	is 'a job without GPUs has none' grep -qx none "$W"/3-*.log
	is 'the board says what there was' \
		grep -q 'jobs: 0 running, 0 waiting, 3 finished, of 3' "$W/status.txt"
	is 'a line of the board, how a job ended' grep -q '^ *2 *second *ok' "$W/status.txt"
	is 'logs, journal and board are the user'"'"'s alone' \
		[ -z "$(find "$W" -type f -perm /077)" ]
	is 'the queue is empty' empty_queue
	is 'the journal has an end of each' [ "$(count '"event": "ended"' "$W/journal.jsonl")" = 3 ]
	is 'all of it is JSON' [ "$(each_is_json "$W/journal.jsonl")" = '' ]
}

# each_is_json FILE: prints the lines that are not
each_is_json() {
	while IFS= read -r line; do
		printf '%s\n' "$line" | "$TOOLS/jsoncheck" event >/dev/null || echo "$line"
	done <"$1"
}

ways() {
	clean
	lines 'echo a' 'echo b'
	run 'with -Q nothing is said' 0 '' '' batch -Q
	clean
	lines 'echo a' 'exit 1' 'echo b'
	run 'with --json' 1 '{"event": "seen"*"event": "summary"*}' '' batch --json
	is 'each line is JSON' [ "$(each_is_json "$S/out")" = '' ]
	is 'an end is told once' [ "$(count '"event": "ended"' "$S/out")" = 3 ]
	is 'the last is the summary' [ "$(tail -n 1 "$S/out" | member event)" = summary ]
	is 'with the exit status' [ "$(tail -n 1 "$S/out" | member status)" = 1 ]
	is 'and its counts' grep -q '"all": 3, "waiting": 0, "running": 0, "finished": 2,'\
' "failed": 1, "cancelled": 0, "dropped": 0, "text": "3 jobs: ' "$S/out"
	clean
	lines 'echo here'
	run 'another folder' 0 '*' '' batch --log-dir "$S/else"
	is 'has the logs' grep -qx here "$S"/else/1-*.log
	is 'and all else' [ ! -e "$W" ]
	clean
	mkdir -p "$S/there"
	lines 'pwd'
	run 'with -D' 0 '*' '' batch -D "$S/there"
	is 'commands run in that folder' grep -qx "$S/there" "$W"/1-*.log
	clean
	: >"$J"
	run 'a file without lines' 0 '0 jobs: 0 finished, in *' '' batch
	printf '# nothing\n\n' >"$J"
	run 'or without commands' 0 '*' '' batch
	printf 'echo last' >"$J"
	run 'a last line without a newline' 0 '*' '' batch
	is 'is one' grep -qx last "$W"/1-*.log
	clean
	printf 'echo first >>%s\n[gpu=1] echo last' "$S/ran" >"$J"
	run 'and an error in it is one' 125 '' 'gpulease: *jobs, line 2: *gpu*' batch
	is 'so nothing runs' [ ! -s "$S/ran" ]
	clean
	lines 'grep "Sig[BI]" /proc/self/status'
	run 'signals' 0 '*' '' batch
	is 'are to commands what they are here' [ "$(grep '^Sig' "$W"/1-*.log)" = \
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
	is 'a line that comes through a pipe runs' wait_until 'on a'
	echo "[name=later] $S/held b" >&5
	is 'and one that comes later' wait_until 'on b'
	go a b
	wait_until '[ "$(count . "$S/ends")" = 2 ]'
	is 'it waits for more' like '[SRD]' "$(process_state "$(pid_of p)")"
	echo 'exit 4' >&5
	exec 5>&-
	ended p
	is 'until the pipe ends' [ "$rc" = 4 ]
	is 'with all of it done' grep -q '^3 jobs: 2 finished, 1 failed' "$S/p.out"
	run 'a bad line there' 125 '*2 jobs: 1 finished, 1 failed*' \
		'gpulease: *line 3*gpu*the rest is not read' \
		sh -c 'cd "$2" && printf "exit 3\ntrue\n[gpu=1] exit 4\nexit 5\n" |
			"$1" --batch - --log-dir "$2/pipe.logs"' sh "$GPULEASE" "$S"
	run 'or a circle' 125 '*2 jobs: 1 finished, 1 failed*' 'gpulease: *line 3*' \
		sh -c 'cd "$2" && printf "true\n[name=a after=b] true\n[name=b after=a] true\n" |
			"$1" --batch - --log-dir "$2/circle.logs"' sh "$GPULEASE" "$S"
}

# --- exit statuses -----------------------------------------------------------------------

statuses() {
	clean
	lines 'exit 3' 'exit 7' 'true'
	run 'the highest status is the batch'"'"'s' 7 '*1 finished, 2 failed*' '' batch
	clean
	lines 'exit 3' 'kill -KILL $$'
	run 'of a signal it is 128 and its number' 137 '*(KILL)*' '' batch
	clean
	lines 'true' '[cancel] exit 9'
	run 'who is not to run does not count' 0 '*1 finished, 1 cancelled*' '' batch
	clean
	lines '[timeout=300ms] sleep 1000'
	run 'a time limit' 124 '*ended: time limit*' '' batch
	is 'is the cause in the journal' [ "$(event ended 1 | member cause)" = limit ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'a job that is cancelled from outside counts' [ "$rc" = 143 ]
	clean
	lines "trap 'exit 0' TERM; $S/held a & wait"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'also where its command ends well then' \
		[ "$rc $(event ended 1 | member cause)" = '143 cancelled' ]
	clean
	lines '[gpus=99] echo never' 'echo next'
	run 'what can never start fails at once' 125 '*cannot run: *99*' '' batch
	is 'and the next runs' grep -qx next "$W"/2-*.log
	clean
	lines '[fail-retries=2] echo again >>'"$S/ran"'; exit 5'
	printf 'retry-delay = 1ms\n' >"$S/soon"
	run 'who fails is tried again' 5 '*tried again in*' '' batch --config "$S/soon"
	is 'as often as its line says' [ "$(count again "$S/ran")" = 3 ]
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
	run 'attributes' 0 '*5 finished*' '' batch
	is 'say how many GPUs' grep -qx 2 "$W"/1-*.log
	is 'or how much of one' grep -q '50' "$W"/2-*.log
	is 'which of them' grep -qx 'on 3' "$W"/3-*.log
	is 'what comes first in the same shell' grep -qx 'is set' "$W"/4-*.log
	is 'how much memory' grep -qx 'has 3072' "$W"/5-*.log
	clean
	lines 'echo "on $CUDA_VISIBLE_DEVICES"' '[allow=1] echo "on $CUDA_VISIBLE_DEVICES"'
	run 'what the command line says is for those that say nothing' 0 '*' '' batch --allow 2
	is 'like this one' grep -qx 'on 2' "$W"/1-*.log
	is 'not for others' grep -qx 'on 1' "$W"/2-*.log
	clean
	sim 1x24G
	lines "[vram=10G] $S/held a" "[vram=10G] $S/held b" "[vram=10G] $S/held c"
	batch_begin b
	is 'two that fit share a GPU' wait_until 'on a b'
	is 'the third waits' wait_until '[ "$(queued)" = 1 ]'
	is 'and has not started' [ ! -e "$S/c.on" ]
	go a
	is 'until there is room' wait_until 'on c'
	go b c
	ended b
	is 'and all end' [ "$rc" = 0 ]
}

order() {
	clean
	sim 1
	lines 'echo 1 >>'"$S/ran" '[priority=5] echo 2 >>'"$S/ran" \
		'[priority=-1] echo 3 >>'"$S/ran" '[priority=5] echo 4 >>'"$S/ran"
	run 'one at a time' 0 '*' '' batch --jobs 1
	is 'higher priority comes first, and then the order of the file' \
		[ "$(words "$S/ran")" = '2 4 1 3' ]
	clean
	sim 8
	lines "[after=slow] echo late >>$S/ran" "[name=slow] $S/held a; echo slow >>$S/ran" \
		"echo free >>$S/ran"
	batch_begin b
	await_on a
	is 'who comes after another' wait_until '[ "$(words "$S/ran")" = free ]'
	go a
	ended b
	is 'waits for its end' [ "$(words "$S/ran")" = 'free slow late' ]
	clean
	lines '[name=bad] exit 3' "[after=bad] echo any >>$S/ran" \
		"[after-ok=bad] echo ok >>$S/ran" '[name=good] true' \
		"[after-ok=good] echo good >>$S/ran"
	run 'after one that fails' 124 '*' '' batch
	is 'comes who does not mind' grep -qx any "$S/ran"
	is 'and not who does' [ "$(count ok "$S/ran")" = 0 ]
	is 'which is told' grep -q 'job 3 .*job 1 has failed' "$S/out"
	is 'after one that does well' grep -qx good "$S/ran"
	clean
	sim 8
	lines "$S/held a" "$S/held b" "$S/held c"
	batch_begin b --jobs 2
	await_on a b
	is 'no more than so many are in the queue at once' [ "$(queued)" = 0 ]
	is 'the third is not started' [ "$(words "$S/starts" | tr ' ' '\n' | sort | tr '\n' ' ')" = 'a b ' ]
	go b
	is 'before another has ended' wait_until 'on c'
	go a c
	ended b
}

# on_now: how many lines are at work
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
	is 'without GPUs as many as --jobs says' wait_until '[ "$(on_now)" = 4 ]'
	wait_until '[ "$(grep -c . "$S/ran")" = 4 ]'
	go all
	ended b
	is 'all in the end' [ "$rc $(grep -c . "$S/ran")" = '0 20' ]
	is 'and never more at once' [ "$(sort -n "$S/ran" | tail -n 1)" = 4 ]
}

# --- memory ------------------------------------------------------------------------------

memory() {
	[ -x "${GPULEASE%/*}/gpulease-simjob" ] || {
		skip 'lack of memory' 'no gpulease-simjob'
		return
	}
	PATH=${GPULEASE%/*}:$PATH
	clean
	sim 2x24G
	lines "[vram=2000 retries=3] gpulease-simjob --vram 1900 --ramp 0 --hold 0 --oom-once $S/oom"
	run 'who lacks memory' 0 '*out of GPU memory*tried again with 2500*' '' batch
	is 'declares a quarter more' [ "$(event started 1 | member vram_mib | words /dev/stdin)" = '2000 2500' ]
	is 'the attempt is in the journal' [ "$(event attempt 1 | member cause)" = oom ]
	clean
	lines "[vram=2000 retries=3] echo x >>$S/ran; gpulease-simjob --vram 100 --ramp 0 --hold 0 --exit 6"
	run 'another failure' 6 '*' '' batch
	is 'is final' [ "$(count x "$S/ran")" = 1 ]
	clean
	lines "[vram=1000] gpulease-simjob --vram 3000 --ramp 0 --hold 1h & $S/held a; kill \$!"
	batch_begin b -v
	is 'with -v memory is told as it grows' wait_until 'grep -q "job 1 uses 2.9G" "$S/b.out"'
	go a
	ended b
	is 'and at its end' grep -q 'job 1 ended.*2.9G of .*declared, over by more than' "$S/b.out"
	is 'and is in the journal' [ "$(event ended 1 | member peak_mib)" = 3000 ]
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
	is 'behind somebody else at most 16 jobs wait' wait_until '[ "$(queued)" = 16 ]'
	is 'and no more come' wait_until '[ "$(count "\"event\": \"seen\"" "$W/journal.jsonl")" = 30 ]'
	is 'however long it takes' [ "$(queued)" = 16 ]
	release h
	ended b
	is 'then all run' [ "$rc" = 0 ]
	is 'in order' [ "$(words "$S/ran")" = "$(seq -s ' ' 30)" ]
	clean
	sim 2
	holder h -n 1 --time 1h
	lines "[gpus=2] $S/held a" "[timeout=1m] echo small >>$S/ran" "[timeout=1m] $S/held c"
	batch_begin b
	is 'those that fit beside somebody run' wait_until 'grep -q small "$S/ran" && on c'
	is 'while one waits for both' [ ! -e "$S/a.on" ]
	release h
	go a c
	ended b
	is 'which runs, too' [ "$(count a "$S/ends")" = 1 ]
}

# Those that are to be tried again have tickets, too.
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
	is 'lines that fail' wait_until '[ "$(event attempt 17 | grep -c .)" = 1 ]'
	is 'wait with 16 others at most' wait_until '[ "$(queued)" = 17 ]'
	"$GPULEASE" --cancel "$(queue ticket | tail -n 2 | words /dev/stdin | tr ' ' ,)" 2>"$S/err"
	is 'and more come when they are less' wait_until '[ "$(event attempt 18 | grep -c .)" = 1 ]'
	kill -INT "$(pid_of b)"
	ended b
	is 'until it is ended' [ "$rc $(queued)" = '130 0' ]
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
