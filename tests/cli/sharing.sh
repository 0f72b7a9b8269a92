#!/bin/sh
# Several jobs on one GPU: shares, declared memory, the memory that jobs really use, processes
# outside gpulease, and MPS limits.  The cards have 81559 MiB, of which 512 stay free.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
show='echo $CUDA_VISIBLE_DEVICES'
not_now='gpulease: not available at once:'

# cards N: a machine with N cards, and no job on it
cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
	touch "$FAKE_SMI_DIR/reap"
}

asked() {
	grep -sc gpus "$FAKE_SMI_DIR/count" || :
}

# look: waits until nvidia-smi has run once more and its answer is the shared result
look() {
	look_before=$(asked)
	wait_until '"$GPULEASE" --status --json 2>/dev/null | grep -q "\"is_old\": false" &&
		[ "$(asked)" -gt "${look_before:-0}" ]' || bail 'nvidia-smi is not asked'
}

# used LINE…: nvidia-smi lists these processes, INDEX PID MIB; returns when it has run since
used() {
	rm -f "$FAKE_SMI_DIR/procs"
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$FAKE_SMI_DIR/procs"
	look
}

# stranger: starts a process that belongs to no job; $stranger is its pid
stranger() {
	sleep 1000 &
	stranger=$!
	started="$started $stranger"
	becomes "$stranger" sleep
}

command_of() {
	cut -d ' ' -f 1 "$S/$1.runs"
}

# where NAME…: the GPUs of these jobs
where() {
	for each in "$@"; do
		printf '%s ' "$(gpus_of "$each")"
	done
}

# peaks: the peaks of memory that the leases on GPU 0 record
peaks() {
	tr '\0' ' ' <"$GPULEASE_DIR/gpu/slot.0" | grep -ao 'peak=[0-9]*' | sort | tr '\n' ' '
}

# --- shares ------------------------------------------------------------------------------

cards 1
holder half -n 0.5
holder other -n 0.5
is 'two halves run on one GPU' [ "$(where half other)" = '0 0 ' ]
run 'a third half finds no room' 124 '' "$not_now needs 0.5 of a GPU, none is free" \
	"$GPULEASE" -n 0.5 -I true
waiter third -n 0.5
is 'the third job says what it waits for' like \
	'gpulease: job * waits, 1st in the queue: needs 0.5 of a GPU, none is free' \
	"$(cat "$S/third.err")"
release_all half
is 'the third job starts when the first ends' wait_until 'runs third'
is 'the second job keeps running' runs other
release_all other third

cards 1
holder most -n 0.7
run 'the refusal of a share says how much of a GPU is free' 124 '' \
	"$not_now needs 0.5 of a GPU, at most 0.3 of one is free" "$GPULEASE" -n 0.5 -I true
run 'a job that needs exactly the free share starts' 0 0 '' "$GPULEASE" -n 0.3 -I sh -c "$show"
run 'a job that needs one hundredth more does not' 124 '' '*' "$GPULEASE" -n 0.31 -I true
release_all most
for each in 1 2 3; do
	holder "$each" -n 0.33
done
holder last -n .01
is 'three shares of 0.33 and one of 0.01 fit on one GPU' [ "$(where 1 2 3 last)" = '0 0 0 0 ' ]
run 'a GPU whose shares add up to 1 takes no further share' 124 '' "$not_now needs 0.01 of a GPU, none is free" \
	"$GPULEASE" -n 0.01 -I true
release_all 1 2 3 last

cards 1
holder half -n 0.5
holder some --vram 18G
run 'the refusal of a share counts the memory that the share needs' 124 '' \
	"$not_now needs 0.5 of a GPU, at most 0.26 of one is free" "$GPULEASE" -n 0.5 -I true
run 'a job that needs exactly that share starts' 0 0 '' "$GPULEASE" -n 0.26 -I sh -c "$show"
run 'a job that needs one hundredth more than that does not' 124 '' '*' "$GPULEASE" -n 0.27 -I true
release_all half some

cards 2
holder whole
holder half -n 0.5
is 'a whole GPU is not shared' [ "$(where whole half)" = '0 1 ' ]
run 'a share does not fit on a GPU that is leased whole' 124 '' '*at most 0.5 of one is free' "$GPULEASE" -n 0.6 -I true
run 'declared memory is not put on a GPU that is leased whole' 0 1 '' "$GPULEASE" --vram 1G -I sh -c "$show"
waiter alone
is 'a job that declares nothing waits for an empty GPU' \
	like '*needs 1 GPU, none is free' "$(cat "$S/alone.err")"
release_all half
is 'the job that waits for an empty GPU gets it' wait_until 'runs alone'
run 'a job that declares nothing has its GPU alone' 124 '' '*none is free' "$GPULEASE" --vram 1M -I true
release_all whole alone

cards 2
holder half --gpu-ids 1 -n 0.5
holder quarter --gpu-ids 0 -n 0.25
run 'a share goes to the GPU where it leaves least free' 0 1 '' "$GPULEASE" -n 0.5 -I sh -c "$show"
run 'a small share also goes to the fuller GPU' 0 1 '' "$GPULEASE" -n 0.25 -I sh -c "$show"
run 'a share that does not fit on the fuller GPU goes to the other' 0 0 '' "$GPULEASE" -n 0.75 -I sh -c "$show"
release_all half quarter

cards 1
echo Exclusive_Process >"$FAKE_SMI_DIR/mode.0"
holder half -n 0.5
run 'a GPU in mode Exclusive_Process is not shared' 124 '' '*none is free' \
	"$GPULEASE" -n 0.5 -I true
release_all half

for each in 1.5:'is above 1 and not a whole number of GPUs; write 1 or 2' \
	0.0:'is not a share of a GPU; write 0.01 to 0.99, or 0 for no GPU' \
	0.009:'is less than the smallest share of a GPU; write 0.01' \
	0.505:'is not a whole percentage of a GPU; write 0.50 or 0.51' \
	-0.5:'is negative; *' 0,5:'is not a number of GPUs; *' \
	nan:'is not a number of GPUs; *'; do
	run "a share of ${each%%:*} is refused" 125 '' "gpulease: -n: '${each%%:*}'*${each#*:}" \
		"$GPULEASE" -n "${each%%:*}" true
done
run '-n 1.00 is a whole GPU' 0 0 '' "$GPULEASE" -n 1.00 -I sh -c "$show"

# --- declared memory ---------------------------------------------------------------------

cards 2
for each in a b c; do
	holder "$each" --vram 18G
done
is 'three jobs of 18G share one GPU' [ "$(where a b c)" = '0 0 0 ' ]
run 'a job that does not fit beside them gets another GPU' 0 1 '' "$GPULEASE" --vram 26G -I sh -c "$show"
release_all a b c
cards 2
holder a --gpu-ids 0 --vram 18G
holder d --gpu-ids 1 --vram 30G
run 'memory is taken on the fullest GPU that has room' 0 1 '' "$GPULEASE" --vram 40G -I sh -c "$show"
run 'a job too large for the fullest GPU gets the other' 0 0 '' "$GPULEASE" --vram 60G -I sh -c "$show"
run 'the refusal of a job too large for both says how much is free' 124 '' \
	"$not_now needs 70G of a GPU, at most 61.1G of one is free" \
	"$GPULEASE" --vram 70G -I true
run '--vram holds on each of two GPUs' 0 0,1 '' "$GPULEASE" -n 2 --vram 18G -I sh -c "$show"
run 'a job starts on none when one of its two GPUs lacks memory' 124 '' "$not_now needs 60G of each of 2 GPUs, 1 is free" \
	"$GPULEASE" -n 2 --vram 60G -I true
release_all a d

cards 1
run 'a job can declare a whole card less the margin' 0 0 '' "$GPULEASE" --vram 81047 -I sh -c "$show"
run 'a job that declares more than that is refused' 125 '' \
	'gpulease: cannot lease 1 GPU: --vram 79.2G leaves none of 1; the largest has 79.6G, of which 0.5G stay free' \
	"$GPULEASE" --vram 81048 -I true
run 'an exclusive job can declare the whole card' 0 0 '' \
	"$GPULEASE" --vram 81559 --exclusive -I sh -c "$show"
holder first --vram 40000
run 'declared memory counts before the job allocates any' 0 '' '' \
	"$GPULEASE" --vram 41047 -I true
run 'the margin also stays free beside another job' 124 '' '*needs 40.1G of a GPU, *' \
	"$GPULEASE" --vram 41048 -I true
release_all first
for each in "0:'0' is no memory*" "-1:'-1' is not a size*" "1e3:'1e3' is not a size*" \
	"18X:'18X' is not a size*" "99999999G:'99999999G' is too large*" \
	"80G:cannot lease 1 GPU: --vram 80G leaves none of 1; *"; do
	run "--vram ${each%%:*} is refused" 125 '' "gpulease: *${each#*:}" \
		"$GPULEASE" --vram "${each%%:*}" true
done
run '-n 0 together with --vram is refused' 125 '' 'gpulease: *leave one out' \
	"$GPULEASE" -n 0 --vram 1G true

cards 1
holder half -n 0.5
holder memory --vram 20G
is 'a share and declared memory go on the same GPU' [ "$(where half memory)" = '0 0 ' ]
run 'a share without --vram counts as that part of the memory' 124 '' \
	'*needs 20G of a GPU, at most 19.3G of one is free' "$GPULEASE" --vram 20G -I true
release_all half
run 'a share with --vram counts as the declared memory' 0 0 '' \
	"$GPULEASE" -n 0.9 --vram 1G -I sh -c "$show"
release_all memory

cards 1
holder alone --vram 1G --exclusive
run 'no job starts beside an exclusive one, whatever it declares' 124 '' '*none is free' \
	"$GPULEASE" --vram 1G -I true
waiter exclusive --vram 1G --exclusive
release_all alone
is 'the next exclusive job starts after the first' wait_until 'runs exclusive'
release_all exclusive
holder half -n 0.5
run 'an exclusive job does not start beside a share' 124 '' '*needs 1 GPU, none is free' \
	"$GPULEASE" --vram 1G --exclusive -I true
release_all half
run '--exclusive together with a share is refused' 125 '' 'gpulease: *leave one out' \
	"$GPULEASE" --exclusive -n 0.5 true

# A lease file has room for 31 leases.
cards 2
each=0
while [ $((each += 1)) -le 31 ]; do
	begin "$each" --gpu-ids 0 --vram 1G
done
for each in 10 20 31; do # each in DEADLINE
	wait_until '[ "$(find "$S" -name "*.runs" | wc -l)" -ge "$each" ]' || break
done
is '31 jobs run on one GPU' [ "$(find "$S" -name '*.runs' | wc -l)" -eq 31 ]
run 'the 32nd job gets another GPU' 0 1 '' "$GPULEASE" --vram 1G -I sh -c "$show"
run 'the refusal of the 32nd job says that the GPU has 31 leases' 124 '' '*31 leases*' "$GPULEASE" --gpu-ids 0 --vram 1G -I true
waiter more --gpu-ids 0 --vram 1G
release_all 17
is 'a waiting job starts when one of the 31 ends' wait_until 'runs more'

# --- memory that is used -----------------------------------------------------------------

cards 1
holder grows --vram 10G
used "0 $(command_of grows) 9000"
run 'a job that uses less than it declared counts as declared' 124 '' \
	'*at most 69.1G of one is free' "$GPULEASE" --vram 70G --gpu-ids 0 -n 0.99 -I true
used "0 $(command_of grows) 20000"
run 'a job that uses more counts as used plus a tenth' 124 '' \
	'*needs 57.7G of a GPU, *' "$GPULEASE" --vram 59048 -I true
run 'a job that uses more counts as no MiB more than that' 0 '' '' "$GPULEASE" --vram 59047 -I true
is 'a job that starts there records the peak of the other lease' [ "$(peaks)" = 'peak=20000 ' ]
used "0 $(command_of grows) 3000"
run 'a recorded peak counts after the job uses less again' 124 '' '*needs 57.7G of a GPU, *' "$GPULEASE" --vram 59048 -I true
run 'a recorded peak counts to the MiB' 0 '' '' "$GPULEASE" --vram 59047 -I true
is 'the peak stays in the lease' [ "$(peaks)" = 'peak=20000 ' ]
release_all grows
used
run 'the peak counts no longer once the job has ended' 0 '' '*' "$GPULEASE" --vram 81047 --max-wait 20s true

cards 1
holder half -n 0.5
used "0 $(command_of half) 45000"
run 'a share that uses too much memory leaves less for shares' 124 '' '*at most 0.39 of one is free' \
	"$GPULEASE" -n 0.5 -I true
run 'the rest of that GPU can be leased as a share' 0 0 '' "$GPULEASE" -n 0.39 -I sh -c "$show"
release_all half

# A process that a command started belongs to its lease, even after its parent has exited.
cards 2
cat >"$S/starts" <<'END'
sleep 1000 &
echo $! >"$1.new"
mv "$1.new" "$1"
wait
END
"$GPULEASE" --gpu-ids 0 --vram 10G sh "$S/starts" "$S/child" &
started="$started $!"
"$GPULEASE" --gpu-ids 0 --vram 1G setsid -f sh "$S/starts" "$S/orphan" &
started="$started $!"
wait_until '[ -s "$S/child" ] && [ -s "$S/orphan" ]' || bail 'no processes'
used "0 $(cat "$S/child") 30000" "0 $(cat "$S/orphan") 500"
run 'memory of a child process counts for the lease of its job' 124 '' '*needs 46G of a GPU, *' \
	"$GPULEASE" --gpu-ids 0 --vram 47024 -I true
run 'memory of a child process counts only once' 0 0 '' "$GPULEASE" --gpu-ids 0 --vram 47023 -I sh -c "$show"
run 'children and orphans of a job do not count as outside gpulease' 0 0 '' "$GPULEASE" --gpu-ids 0 -n 0.01 -I sh -c "$show"
holder elsewhere --gpu-ids 0 --vram 1G
used "1 $(command_of elsewhere) 9000"
run 'a job that uses a GPU it has not leased counts as outside' 124 '' \
	"*GPU 1 is used outside gpulease by pid $(command_of elsewhere) (*)" \
	"$GPULEASE" --gpu-ids 1 -I true

# --- processes outside gpulease ----------------------------------------------------------

cards 1
stranger
used "0 $stranger 30000"
by="GPU 0 is used outside gpulease by pid $stranger (*sleep)"
run 'a whole GPU is not given while a process outside uses it' 124 '' "$not_now needs 1 GPU, none is free; $by" \
	"$GPULEASE" -I true
run 'a share is not given while a process outside uses the GPU' 124 '' "$not_now needs 0.5 of a GPU, none is free; $by" \
	"$GPULEASE" -n 0.5 -I true
run 'declared memory is given beside a process outside' 0 0 '' "$GPULEASE" --vram 48047 -I sh -c "$show"
run 'a process outside counts as its memory plus a tenth' 124 '' "*needs 47G of a GPU, *$by" \
	"$GPULEASE" --vram 48048 -I true
used "0 $stranger 10000"
run 'a process outside still counts as its peak' 124 '' '*needs 47G of a GPU, *' \
	"$GPULEASE" --vram 48048 -I true
used "0 $stranger 40000"
run 'a new peak of a process outside counts from then on' 124 '' '*needs 36.2G of a GPU, *' \
	"$GPULEASE" --vram 37048 -I true
waiter memory --vram 60G
waiter alone
kill "$stranger"
is 'memory is free when the process outside exits' wait_until 'runs memory'
release_all memory
is 'the job that wants a whole GPU starts afterwards' wait_until 'runs alone'
release_all alone

# The peak of a process outside counts while that process lives, even if no process uses the GPU
# now, and for every kind of job.
cards 1
stranger
used "0 $stranger 60000"
used "0 $stranger 10"
by="GPU 0 is used outside gpulease by pid $stranger (*sleep), seen with 58.6G"
for each in '-n 1' '--vram 60G' '-n 0.5'; do
	# shellcheck disable=SC2086 # an option and what it is given
	run "$each: not beside the peak of a process outside" 124 '' "$not_now *; $by" \
		"$GPULEASE" $each -I true
done
run '--dry-run says so' 124 "would wait, 1st in the queue: needs 1 GPU, none is free; $by" '' "$GPULEASE" --dry-run true
run '--status says so' 0 "*external*
GPU 0: used outside gpulease by pid $stranger (*sleep), seen with 58.6G*" '' "$GPULEASE" --status
is '--status --json says so' sh -c '"$1" --status --json | grep -q "\"why\": \"is .*, seen with 58.6G\""' \
	- "$GPULEASE"
is '--doctor says so' like "*outside*$by*" "$("$GPULEASE" --doctor)"
run 'declared memory that fits beside the peak is given' 0 0 '' "$GPULEASE" --vram 10G -I sh -c "$show"
waiter whole
is 'the waiting line says so' like "gpulease: job * waits, 1st in the queue: *; $by" "$(cat "$S/whole.err")"
run 'a job that waits for that process keeps nothing from a later job' 0 0 '' \
	"$GPULEASE" --vram 10G -I sh -c "$show"
kill "$stranger"
is 'the job that wants a whole GPU starts when the process outside ends' wait_until 'runs whole'
release_all whole
for each in '--vram 60G' '-n 0.5'; do
	cards 1
	stranger
	used "0 $stranger 60000"
	used "0 $stranger 10"
	# shellcheck disable=SC2086
	waiter part $each
	kill "$stranger"
	is "$each: the job starts when the process outside ends" wait_until 'runs part'
	release_all part
done
cards 1
stranger
used "0 $stranger 200"
used "0 $stranger 10"
run 'a peak at the idle threshold does not count for a whole GPU' 0 0 '' "$GPULEASE" -I sh -c "$show"
used "0 $stranger 201"
used "0 $stranger 10"
run 'a peak above the idle threshold does' 124 '' '*, seen with 0.2G' "$GPULEASE" -I true
kill "$stranger"

# A process that a job has left behind is judged by the linger time, which looks at present use.
cards 1
unconfigured=$GPULEASE
echo 'linger-time = 1s' >"$S/conf"
configured
cat >"$S/leaves" <<'END'
sleep 1000 &
echo $! >"$1"
read -r line <"$2"
END
mkfifo "$S/hold"
"$GPULEASE" -n 0.5 sh "$S/leaves" "$S/remains" "$S/hold" &
wait_until '[ -s "$S/remains" ]' || bail 'no child'
left=$(cat "$S/remains")
started="$started $left"
used "0 $left 60000"
echo >"$S/hold"
used "0 $left 10"
run 'after the linger time, the peak of a process that a job has left does not count' 0 0 '' \
	"$GPULEASE" -Q --max-wait 60s sh -c "$show"
run 'it does not count for the job after the next either' 0 0 '' "$GPULEASE" -I sh -c "$show"
is 'the process left behind keeps running' kill "$left"
GPULEASE=$unconfigured

cards 1
holder half -n 0.25
stranger
used "0 $stranger 5000"
run 'no share beside a process outside that came after a share' 124 '' "*used outside gpulease by pid $stranger (*)" \
	"$GPULEASE" -n 0.25 -I true
run 'declared memory is given beside that process' 0 0 '' "$GPULEASE" --vram 50G -I sh -c "$show"
kill "$stranger"
used
run 'shares are given again when that process has ended' 0 0 '' "$GPULEASE" -n 0.75 -I sh -c "$show"
release_all half

cards 1
echo 5000 >"$FAKE_SMI_DIR/base.0"
look
run 'memory that no process accounts for counts as it is' 0 0 '' \
	"$GPULEASE" --vram 76047 -I sh -c "$show"

# --- ends --------------------------------------------------------------------------------

cards 1
holder stays -n 0.25
holder killed -n 0.5
holder memory --vram 10G
waiter next -n 0.5
kill -KILL "$(pid_of killed)"
ended killed
is 'the share of a killed job is free for the next job' wait_until 'runs next'
is 'the other jobs on the GPU keep running' wait_until \
	'[ "$(process_state "$(pid_of stays)")$(process_state "$(pid_of memory)")" = SS ]'
run 'the shares of the jobs that run still count' 124 '' '*at most 0.11 of one is free' "$GPULEASE" -n 0.26 -I true
release_all stays memory next

cards 1
holder beside --vram 10G
holder killed --vram 40G
used "0 $(command_of killed) 39000"
stranger # nvidia-smi still shows the memory under this process
kill -KILL "$(pid_of killed)"
ended killed
used "0 $stranger 39000"
run 'memory that is still held after a job ended is not given away' 124 '' \
	"*needs 40G of a GPU, *by pid $stranger (*" "$GPULEASE" --vram 40G -I true
kill "$stranger"
used
run 'the memory is given away once it is free' 0 0 '' "$GPULEASE" --vram 60G -I sh -c "$show"
release_all beside

cards 1
cat >"$S/parent" <<'END'
sleep 1000 &
echo $! >"$1"
END
run 'a job with a share leaves a process behind' 0 '' '' "$GPULEASE" -n 0.5 sh "$S/parent" "$S/child"
run 'the share of the process left behind stays taken' 124 '' \
	'*at most 0.5 of one is free; GPU 0 is kept by processes that job 1 left running' \
	"$GPULEASE" -n 0.6 -I true
run 'the rest of the GPU is not taken' 0 0 '' "$GPULEASE" -n 0.5 -I sh -c "$show"
kill "$(cat "$S/child")"
is 'the share is free when the process left behind has ended' wait_until '"$GPULEASE" -n 0.6 -I true 2>/dev/null'

# --- inside ------------------------------------------------------------------------------

cards 2
run 'a step runs on the share of its job' 0 0 '' "$GPULEASE" -n 0.5 "$GPULEASE" -n 0.25 sh -c "$show"
run 'a step cannot have more GPUs than its job' 125 '' 'gpulease: cannot use 2 GPUs: the lease around this step (job *) has 1' \
	"$GPULEASE" -n 0.5 "$GPULEASE" -n 2 true
run 'a step with --dry-run does not run' 0 'would *' '' \
	"$GPULEASE" -n 0.5 "$GPULEASE" --dry-run echo ran

# --- MPS ---------------------------------------------------------------------------------

cards 2
mkdir "$S/mps"
limits='echo "${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-none} ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-none}"'
export CUDA_MPS_PIPE_DIRECTORY="$S/mps"
run 'without MPS nothing is limited' 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
run 'without MPS the limits that the caller has set stay' 0 '7 0=1G' '' env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=7 \
	CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G "$GPULEASE" -n 0.5 sh -c "$limits"
mkfifo "$S/mps/hold"
printf '#!/bin/sh\nread -r line <>"${0%%/*}/hold"\n' >"$S/mps/nvidia-cuda-mps-control"
chmod +x "$S/mps/nvidia-cuda-mps-control"
"$S/mps/nvidia-cuda-mps-control" &
daemon=$!
started="$started $daemon"
echo "$daemon" >"$S/mps/nvidia-cuda-mps-control.pid"
wait_until 'grep -q ^nvidia "/proc/$daemon/comm"' || bail 'no daemon'
run 'with MPS a share limits threads and memory' 0 '50 0=40779M' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
run 'with MPS a share with --vram limits memory as declared' 0 '50 0=10240M' '' \
	"$GPULEASE" -n 0.5 --vram 10G sh -c "$limits"
run 'declared memory alone limits no threads' 0 'none 0=18432M' '' \
	"$GPULEASE" --vram 18G sh -c "$limits"
run 'memory is limited on each GPU, as the job numbers them' 0 'none 0=18432M,1=18432M' '' \
	"$GPULEASE" --vram 18G -n 2 sh -c "$limits"
run 'the limits hold in a step' 0 '50 0=40779M' '' \
	"$GPULEASE" -n 0.5 "$GPULEASE" sh -c "$limits"
run 'with MPS a whole GPU is not limited' 0 'none none' '' "$GPULEASE" sh -c "$limits"
run 'with MPS an exclusive GPU is not limited' 0 'none none' '' \
	"$GPULEASE" --vram 18G --exclusive sh -c "$limits"
kill "$daemon"
wait "$daemon" 2>/dev/null
run 'no limits after the MPS daemon has ended' 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
stranger
echo "$stranger" >"$S/mps/nvidia-cuda-mps-control.pid"
run 'no limits if another process has the pid of the MPS daemon' 0 'none none' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
for each in '' x -1 0 99999999999999999999 '1 2'; do
	echo "$each" >"$S/mps/nvidia-cuda-mps-control.pid"
	run "no limits if the pid file contains '$each'" 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
done
rm "$S/mps/nvidia-cuda-mps-control.pid"
mkfifo "$S/mps/nvidia-cuda-mps-control.pid"
run 'no limits, and no wait, if the pid file is a FIFO' 0 'none none' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
unset CUDA_MPS_PIPE_DIRECTORY

# A share that is kept only by a process left behind is freed after the linger time, although
# another job computes on the same GPU.
sim 1x80G
echo 'linger-time = 1s' >"$S/conf"
# shellcheck disable=SC2016 # the shell inside expands it
"$GPULEASE" --config "$S/conf" -n 0.5 sh -c 'sleep 1000 & echo $! >"$1"' - "$S/left"
holder beside -n 0.4
run 'a process left behind keeps a share only for the linger time' 0 '' '' \
	"$GPULEASE" -Q --config "$S/conf" --max-wait 30s -n 0.5 true
is 'the process left behind keeps running' kill -0 "$(cat "$S/left")"
kill "$(cat "$S/left")"
# shellcheck disable=SC2016
"$GPULEASE" --config "$S/conf" -n 0.1 sh -c 'echo "$GPULEASE_ID" >"$1"; sleep 1000 & echo $! >"$2"' \
	- "$S/id" "$S/left"
run 'a job that comes --after its job starts, too' 0 '' '' \
	"$GPULEASE" -Q --config "$S/conf" --max-wait 30s -n 0 --after "$(cat "$S/id")" true
kill "$(cat "$S/left")"
release_all beside

# --- many at once ------------------------------------------------------------------------

# The job notes that it has come and gone while it has its lease: what the notes add up to is
# never more than what was leased.
cat >"$S/note" <<'END'
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
	echo "+ $gpu $2 $$" >>"$1"
done
[ "$3" = 0 ] || sleep "$3"
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
	echo "- $gpu $2 $$" >>"$1"
done
END

# greatest FILE: what the most crowded GPU ever had
greatest() {
	awk '{ has[$2] += $1 == "+" ? $3 : -$3; if (has[$2] > most) most = has[$2] }
		END { print most + 0 }' "$1"
}

# all_end: waits for the processes in $pids, and sets $bad to how many have failed
all_end() {
	started="$started$pids"
	bad=0
	for each in $pids; do
		wait "$each" || bad=$((bad + 1))
	done
}

# forty PAUSE: 40 jobs of all sizes; each runs for PAUSE with a digit appended, in seconds
forty() {
	jobs=0 pids=''
	while [ "$jobs" -lt 40 ]; do
		case $((jobs % 8)) in
		0) need='-n 0.5' percent=50 ;;
		1) need='-n 0.33' percent=33 ;;
		2) need='-n 0.7' percent=70 ;;
		3) need='-n 1' percent=100 ;;
		4) need='-n 0.08' percent=8 ;;
		5) need='-n 2' percent=100 ;;
		6) need='-n 0.25' percent=25 ;;
		7) need='-n 0.99' percent=99 ;;
		esac
		# shellcheck disable=SC2086 # two words
		"$GPULEASE" -Q $need sh "$S/note" "$S/notes" "$percent" "$1$((jobs % 5))" &
		pids="$pids $!"
		jobs=$((jobs + 1))
	done
	all_end
}

# most FILE: the largest number of jobs that ran at once
most() {
	awk '{ n += $1 == "+" ? 1 : -1; if (n > m) m = n } END { print m + 0 }' "$1"
}

sim 2
: >"$S/notes"
rounds=0 failed=0
# On a machine where a start takes long, the jobs have to run longer to meet each other.
for pause in 0.0 0. ''; do
	forty "$pause"
	rounds=$((rounds + 1)) failed=$((failed + bad))
	[ "$(most "$S/notes")" -le 2 ] || break
done
is 'all of forty concurrent jobs with shares run' \
	[ "$failed $(grep -c '^+' "$S/notes")" = "0 $((45 * rounds))" ]
is 'the shares on a GPU never add up to more than 1' [ "$(greatest "$S/notes")" -le 100 ]
is 'more than two of the jobs run at the same time' [ "$(most "$S/notes")" -gt 2 ]

jobs=0 pids=''
: >"$S/notes"
sim 2x24G
while [ "$jobs" -lt 40 ]; do
	mib=$((1000 + jobs * 2741 % 20000)) gpus=1
	[ $((jobs % 7)) -ne 0 ] || gpus=2
	"$GPULEASE" -Q --vram "$mib" -n "$gpus" sh "$S/note" "$S/notes" "$mib" "0.0$((jobs % 3))" &
	pids="$pids $!"
	jobs=$((jobs + 1))
done
all_end
is 'all of forty concurrent jobs with declared memory run' [ "$bad $(grep -c '^+' "$S/notes")" = '0 46' ]
is 'their memory never adds up to more than a card has' [ "$(greatest "$S/notes")" -le $((24 * 1024 - 512)) ]

finish
