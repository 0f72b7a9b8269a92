#!/bin/sh
# A GPU for several jobs: shares, declared memory, what is seen of it, strangers beside it,
# and what a job gets of it.  The cards have 81559 MiB, of which 512 stay free.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
show='echo $CUDA_VISIBLE_DEVICES'
not_now='gpulease: not available at once:'

# cards N: a machine with so many, and nobody on it
cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
	touch "$FAKE_SMI_DIR/reap"
}

asked() {
	grep -sc gpus "$FAKE_SMI_DIR/count" || :
}

# look: until nvidia-smi was asked once more, and its answer is there for all
look() {
	look_before=$(asked)
	wait_until '"$GPULEASE" --status --json 2>/dev/null | grep -q "\"is_old\": false" &&
		[ "$(asked)" -gt "${look_before:-0}" ]' || bail 'nvidia-smi is not asked'
}

# used LINE…: nvidia-smi lists these processes, INDEX PID MIB, and was asked since
used() {
	rm -f "$FAKE_SMI_DIR/procs"
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$FAKE_SMI_DIR/procs"
	look
}

# stranger: starts a process that nobody knows; $stranger is its pid
stranger() {
	sleep 1000 &
	stranger=$!
	started="$started $stranger"
	becomes "$stranger" sleep
}

command_of() {
	cut -d ' ' -f 1 "$S/$1.runs"
}

# where NAME…: on which GPUs these run
where() {
	for each in "$@"; do
		printf '%s ' "$(gpus_of "$each")"
	done
}

# peaks: what the leases on GPU 0 are recorded with
peaks() {
	tr '\0' ' ' <"$GPULEASE_DIR/gpu/slot.0" | grep -ao 'peak=[0-9]*' | sort | tr '\n' ' '
}

# --- shares ------------------------------------------------------------------------------

cards 1
holder half -n 0.5
holder other -n 0.5
is 'two halves run on one GPU' [ "$(where half other)" = '0 0 ' ]
run 'for a third nothing is free' 124 '' "$not_now needs 0.5 of a GPU, none is free" \
	"$GPULEASE" -n 0.5 -I true
waiter third -n 0.5
is 'it says for what it waits' like \
	'gpulease: ticket * waits, 1st in the queue: needs 0.5 of a GPU, none is free' \
	"$(cat "$S/third.err")"
release_all half
is 'the end of one is the start of the next' wait_until 'runs third'
is 'the other runs on' runs other
release_all other third

cards 1
holder most -n 0.7
run 'how much of one is free' 124 '' \
	"$not_now needs 0.5 of a GPU, at most 0.3 of one is free" "$GPULEASE" -n 0.5 -I true
run 'what is left is enough for who needs no more' 0 0 '' "$GPULEASE" -n 0.3 -I sh -c "$show"
run 'but not for one hundredth more' 124 '' '*' "$GPULEASE" -n 0.31 -I true
release_all most
for each in 1 2 3; do
	holder "$each" -n 0.33
done
holder last -n .01
is 'hundredths add up' [ "$(where 1 2 3 last)" = '0 0 0 0 ' ]
run 'to one, and no further' 124 '' "$not_now needs 0.01 of a GPU, none is free" \
	"$GPULEASE" -n 0.01 -I true
release_all 1 2 3 last

cards 2
holder whole
holder half -n 0.5
is 'a whole GPU is not shared' [ "$(where whole half)" = '0 1 ' ]
run 'neither by shares' 124 '' '*at most 0.5 of one is free' "$GPULEASE" -n 0.6 -I true
run 'nor by declared memory' 0 1 '' "$GPULEASE" --vram 1G -I sh -c "$show"
waiter alone
is 'who declares nothing waits for an empty one' \
	like '*needs 1 GPU, none is free' "$(cat "$S/alone.err")"
release_all half
is 'and gets that' wait_until 'runs alone'
run 'alone' 124 '' '*none is free' "$GPULEASE" --vram 1M -I true
release_all whole alone

cards 2
holder half --gpu-ids 1 -n 0.5
holder quarter --gpu-ids 0 -n 0.25
run 'a share goes where least is left over' 0 1 '' "$GPULEASE" -n 0.5 -I sh -c "$show"
run 'a small one, too' 0 1 '' "$GPULEASE" -n 0.25 -I sh -c "$show"
run 'unless it does not fit there' 0 0 '' "$GPULEASE" -n 0.75 -I sh -c "$show"
release_all half quarter

cards 1
echo Exclusive_Process >"$FAKE_SMI_DIR/mode.0"
holder half -n 0.5
run 'a GPU that takes one process at a time is not shared' 124 '' '*none is free' \
	"$GPULEASE" -n 0.5 -I true
release_all half

for each in 1.5:'above 1 only whole numbers of GPUs; write 1 or 2' \
	0.0:'is no share of a GPU; write 0.01 to 0.99, or 0 for none' \
	0.009:'is less than the smallest share of a GPU; write 0.01' \
	0.505:'is no whole percentage of a GPU; write 0.50 or 0.51' \
	-0.5:'is less than no GPU; *' 0,5:'is not a number of GPUs; *' \
	nan:'is not a number of GPUs; *'; do
	run "a share of ${each%%:*}" 125 '' "gpulease: -n: '${each%%:*}'*${each#*:}" \
		"$GPULEASE" -n "${each%%:*}" true
done
run 'one and no hundredths is a whole GPU' 0 0 '' "$GPULEASE" -n 1.00 -I sh -c "$show"

# --- declared memory ---------------------------------------------------------------------

cards 2
for each in a b c; do
	holder "$each" --vram 18G
done
is 'three of 18G go on one GPU' [ "$(where a b c)" = '0 0 0 ' ]
run 'what does not fit there, on another' 0 1 '' "$GPULEASE" --vram 26G -I sh -c "$show"
release_all a b c
cards 2
holder a --gpu-ids 0 --vram 18G
holder d --gpu-ids 1 --vram 30G
run 'the fullest that has room is taken' 0 1 '' "$GPULEASE" --vram 40G -I sh -c "$show"
run 'the other, where that has none' 0 0 '' "$GPULEASE" --vram 60G -I sh -c "$show"
run 'none: how much there is' 124 '' \
	"$not_now needs 70G of a GPU, at most 62615MiB of one is free" \
	"$GPULEASE" --vram 70G -I true
run 'on two GPUs at once' 0 0,1 '' "$GPULEASE" -n 2 --vram 18G -I sh -c "$show"
run 'or on none' 124 '' "$not_now needs 60G of each of 2 GPUs, 1 is free" \
	"$GPULEASE" -n 2 --vram 60G -I true
release_all a d

cards 1
run 'a card less the margin' 0 0 '' "$GPULEASE" --vram 81047 -I sh -c "$show"
run 'can never be more' 125 '' \
	'gpulease: cannot lease 1 GPU: --vram 81048MiB leaves none of 1; the largest has 81559MiB, of which 512MiB stay free' \
	"$GPULEASE" --vram 81048 -I true
run 'but all of it for who is alone' 0 0 '' \
	"$GPULEASE" --vram 81559 --exclusive -I sh -c "$show"
holder first --vram 40000
run 'who has allocated nothing yet counts all the same' 0 '' '' \
	"$GPULEASE" --vram 41047 -I true
run 'beside it the margin stays free, too' 124 '' '*needs 41048MiB of a GPU, *' \
	"$GPULEASE" --vram 41048 -I true
release_all first
for each in "0:'0' is no memory at all*" "-1:'-1' is not a size*" "1e3:'1e3' is not a size*" \
	"18X:'18X' is not a size*" "99999999G:'99999999G' is too large*" \
	"80G:cannot lease 1 GPU: --vram 80G leaves none of 1; *"; do
	run "--vram ${each%%:*}" 125 '' "gpulease: *${each#*:}" \
		"$GPULEASE" --vram "${each%%:*}" true
done
run 'no GPU, and memory of one' 125 '' 'gpulease: *leave one out' \
	"$GPULEASE" -n 0 --vram 1G true

cards 1
holder half -n 0.5
holder memory --vram 20G
is 'shares and declared memory mix' [ "$(where half memory)" = '0 0 ' ]
run 'a share without declared memory counts with its part of it' 124 '' \
	'*needs 20G of a GPU, at most 19788MiB of one is free' "$GPULEASE" --vram 20G -I true
release_all half
run 'with declared memory, with that' 0 0 '' \
	"$GPULEASE" -n 0.9 --vram 1G -I sh -c "$show"
release_all memory

cards 1
holder alone --vram 1G --exclusive
run 'exclusive: nobody else, whatever is declared' 124 '' '*none is free' \
	"$GPULEASE" --vram 1G -I true
waiter exclusive --vram 1G --exclusive
release_all alone
is 'exclusive again' wait_until 'runs exclusive'
release_all exclusive
holder half -n 0.5
run 'exclusive is not beside anybody' 124 '' '*needs 1 GPU, none is free' \
	"$GPULEASE" --vram 1G --exclusive -I true
release_all half
run 'exclusive and a share' 125 '' 'gpulease: *leave one out' \
	"$GPULEASE" --exclusive -n 0.5 true

# A lease file has room for so many.
cards 2
each=0
while [ $((each += 1)) -le 31 ]; do
	begin "$each" --gpu-ids 0 --vram 1G
done
for each in 10 20 31; do # each in DEADLINE
	wait_until '[ "$(find "$S" -name "*.runs" | wc -l)" -ge "$each" ]' || break
done
is '31 leases on one GPU' [ "$(find "$S" -name '*.runs' | wc -l)" -eq 31 ]
run 'the next goes elsewhere' 0 1 '' "$GPULEASE" --vram 1G -I sh -c "$show"
run 'or is told what is full' 124 '' '*31 leases*' "$GPULEASE" --gpu-ids 0 --vram 1G -I true
waiter more --gpu-ids 0 --vram 1G
release_all 17
is 'one that ends makes room for one' wait_until 'runs more'

# --- what is seen ------------------------------------------------------------------------

cards 1
holder grows --vram 10G
used "0 $(command_of grows) 9000"
run 'who uses less than declared counts with what is declared' 124 '' \
	'*at most 70807MiB of one is free' "$GPULEASE" --vram 70G --gpu-ids 0 -n 0.99 -I true
used "0 $(command_of grows) 20000"
run 'who uses more, with that and a tenth' 124 '' \
	'*needs 59048MiB of a GPU, *' "$GPULEASE" --vram 59048 -I true
run 'and not a MiB more' 0 '' '' "$GPULEASE" --vram 59047 -I true
is 'who takes room writes down what was seen' [ "$(peaks)" = 'peak=20000 ' ]
used "0 $(command_of grows) 3000"
run 'it is remembered' 124 '' '*needs 59048MiB of a GPU, *' "$GPULEASE" --vram 59048 -I true
run 'no more and no less of it' 0 '' '' "$GPULEASE" --vram 59047 -I true
is 'and stays written' [ "$(peaks)" = 'peak=20000 ' ]
release_all grows
used
run 'until it ends' 0 '' '*' "$GPULEASE" --vram 81047 --max-wait 20s true

cards 1
holder half -n 0.5
used "0 $(command_of half) 45000"
run 'a share that is exceeded leaves less to shares as well' 124 '' '*at most 32059MiB of one is free' \
	"$GPULEASE" -n 0.5 -I true
run 'what it leaves is there' 0 0 '' "$GPULEASE" -n 0.39 -I sh -c "$show"
release_all half

# What a command starts belongs to its lease, also where it is no child of it any more.
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
run 'a process of a command counts with its lease' 124 '' '*needs 47024MiB of a GPU, *' \
	"$GPULEASE" --gpu-ids 0 --vram 47024 -I true
run 'and with no more' 0 0 '' "$GPULEASE" --gpu-ids 0 --vram 47023 -I sh -c "$show"
run 'so nobody here is a stranger' 0 0 '' "$GPULEASE" --gpu-ids 0 -n 0.01 -I sh -c "$show"
holder elsewhere --gpu-ids 0 --vram 1G
used "1 $(command_of elsewhere) 9000"
run 'who uses a GPU that he has not leased is one' 124 '' \
	"*GPU 1 is used outside gpulease by pid $(command_of elsewhere) (*)" \
	"$GPULEASE" --gpu-ids 1 -I true

# --- strangers ---------------------------------------------------------------------------

cards 1
stranger
used "0 $stranger 30000"
by="GPU 0 is used outside gpulease by pid $stranger (*sleep)"
run 'a job alone waits for a stranger' 124 '' "$not_now needs 1 GPU, none is free; $by" \
	"$GPULEASE" -I true
run 'a share, too' 124 '' "$not_now needs 0.5 of a GPU, none is free; $by" \
	"$GPULEASE" -n 0.5 -I true
run 'memory is declared beside him' 0 0 '' "$GPULEASE" --vram 48047 -I sh -c "$show"
run 'where he leaves it, and a tenth of his own' 124 '' "*needs 48048MiB of a GPU, *$by" \
	"$GPULEASE" --vram 48048 -I true
used "0 $stranger 10000"
run 'what he had he may take again' 124 '' '*needs 48048MiB of a GPU, *' \
	"$GPULEASE" --vram 48048 -I true
used "0 $stranger 40000"
run 'and more: that counts from then on' 124 '' '*needs 37048MiB of a GPU, *' \
	"$GPULEASE" --vram 37048 -I true
waiter memory --vram 60G
waiter alone
kill "$stranger"
is 'when he exits it is free' wait_until 'runs memory'
release_all memory
is 'for all' wait_until 'runs alone'
release_all alone

# What he has had counts as long as he is there, though nobody uses the GPU now.
for each in '--vram 60G' '-n 0.5'; do
	cards 1
	stranger
	used "0 $stranger 60000"
	used "0 $stranger 10"
	# shellcheck disable=SC2086 # an option and what it is given
	run "$each is not beside what he may take again" 124 '' \
		"*; GPU 0 is used outside gpulease by pid $stranger (*sleep)" \
		"$GPULEASE" $each -I true
	run 'who is alone there may have it' 0 0 '' "$GPULEASE" -I sh -c "$show"
	# shellcheck disable=SC2086
	waiter part $each
	kill "$stranger"
	is 'his end is noticed' wait_until 'runs part'
	release_all part
done

cards 1
holder half -n 0.25
stranger
used "0 $stranger 5000"
run 'shares are none beside one who came later' 124 '' "*used outside gpulease by pid $stranger (*)" \
	"$GPULEASE" -n 0.25 -I true
run 'memory is' 0 0 '' "$GPULEASE" --vram 50G -I sh -c "$show"
kill "$stranger"
used
run 'and shares when he has gone' 0 0 '' "$GPULEASE" -n 0.75 -I sh -c "$show"
release_all half

cards 1
echo 5000 >"$FAKE_SMI_DIR/base.0"
look
run 'memory that nobody accounts for counts as it is' 0 0 '' \
	"$GPULEASE" --vram 76047 -I sh -c "$show"

# --- ends --------------------------------------------------------------------------------

cards 1
holder stays -n 0.25
holder killed -n 0.5
holder memory --vram 10G
waiter next -n 0.5
kill -KILL "$(pid_of killed)"
ended killed
is 'the share of a killed job is free' wait_until 'runs next'
is 'the others run on' wait_until \
	'[ "$(process_state "$(pid_of stays)")$(process_state "$(pid_of memory)")" = SS ]'
run 'and count' 124 '' '*at most 0.25 of one is free' "$GPULEASE" -n 0.26 -I true
release_all stays memory next

cards 1
holder beside --vram 10G
holder killed --vram 40G
used "0 $(command_of killed) 39000"
stranger # in whose name its memory is still shown
kill -KILL "$(pid_of killed)"
ended killed
used "0 $stranger 39000"
run 'memory that is still held after the end is not given away' 124 '' \
	"*needs 40G of a GPU, *by pid $stranger (*" "$GPULEASE" --vram 40G -I true
kill "$stranger"
used
run 'it is once it is free' 0 0 '' "$GPULEASE" --vram 60G -I sh -c "$show"
release_all beside

cards 1
cat >"$S/parent" <<'END'
sleep 1000 &
echo $! >"$1"
END
run 'a command leaves somebody behind' 0 '' '' "$GPULEASE" -n 0.5 sh "$S/parent" "$S/child"
run 'whose share stays taken' 124 '' \
	'*at most 0.5 of one is free; GPU 0 is kept by processes that ticket 1 left behind' \
	"$GPULEASE" -n 0.6 -I true
run 'and no more than that' 0 0 '' "$GPULEASE" -n 0.5 -I sh -c "$show"
kill "$(cat "$S/child")"
is 'until he has gone' wait_until '"$GPULEASE" -n 0.6 -I true 2>/dev/null'

# --- inside ------------------------------------------------------------------------------

cards 2
run 'a step runs on the share' 0 0 '' "$GPULEASE" -n 0.5 "$GPULEASE" -n 0.25 sh -c "$show"
run 'and not on more' 125 '' 'gpulease: cannot use 2 GPUs: the lease around this step (ticket *) has 1' \
	"$GPULEASE" -n 0.5 "$GPULEASE" -n 2 true
run 'a step that is only to be thought through does not run' 0 'would *' '' \
	"$GPULEASE" -n 0.5 "$GPULEASE" --dry-run echo ran

# --- MPS ---------------------------------------------------------------------------------

cards 2
mkdir "$S/mps"
limits='echo "${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-none} ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-none}"'
export CUDA_MPS_PIPE_DIRECTORY="$S/mps"
run 'without MPS nothing is limited' 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
run 'what the caller has set stays' 0 '7 0=1G' '' env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=7 \
	CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G "$GPULEASE" -n 0.5 sh -c "$limits"
mkfifo "$S/mps/hold"
printf '#!/bin/sh\nread -r line <>"${0%%/*}/hold"\n' >"$S/mps/nvidia-cuda-mps-control"
chmod +x "$S/mps/nvidia-cuda-mps-control"
"$S/mps/nvidia-cuda-mps-control" &
daemon=$!
started="$started $daemon"
echo "$daemon" >"$S/mps/nvidia-cuda-mps-control.pid"
wait_until 'grep -q ^nvidia "/proc/$daemon/comm"' || bail 'no daemon'
run 'with it a share limits threads and memory' 0 '50 0=40779M' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
run 'its memory as it is declared' 0 '50 0=10240M' '' \
	"$GPULEASE" -n 0.5 --vram 10G sh -c "$limits"
run 'declared memory alone limits no threads' 0 'none 0=18432M' '' \
	"$GPULEASE" --vram 18G sh -c "$limits"
run 'of each GPU, as the job numbers them' 0 'none 0=18432M,1=18432M' '' \
	"$GPULEASE" --vram 18G -n 2 sh -c "$limits"
run 'in a step, too' 0 '50 0=40779M' '' \
	"$GPULEASE" -n 0.5 "$GPULEASE" sh -c "$limits"
run 'a whole GPU is not limited' 0 'none none' '' "$GPULEASE" sh -c "$limits"
run 'nor is an exclusive one' 0 'none none' '' \
	"$GPULEASE" --vram 18G --exclusive sh -c "$limits"
kill "$daemon"
wait "$daemon" 2>/dev/null
run 'a daemon that has gone is none' 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
stranger
echo "$stranger" >"$S/mps/nvidia-cuda-mps-control.pid"
run 'nor is another process with its pid' 0 'none none' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
for each in '' x -1 0 99999999999999999999 '1 2'; do
	echo "$each" >"$S/mps/nvidia-cuda-mps-control.pid"
	run "nor is the pid '$each'" 0 'none none' '' "$GPULEASE" -n 0.5 sh -c "$limits"
done
rm "$S/mps/nvidia-cuda-mps-control.pid"
mkfifo "$S/mps/nvidia-cuda-mps-control.pid"
run 'nor is a FIFO in the place of its file, which is not waited for' 0 'none none' '' \
	"$GPULEASE" -n 0.5 sh -c "$limits"
unset CUDA_MPS_PIPE_DIRECTORY

# Somebody whom a sharer has left behind is let go, although others compute beside him.
sim 1x80G
echo 'linger-time = 1s' >"$S/conf"
# shellcheck disable=SC2016 # the shell inside expands it
"$GPULEASE" --config "$S/conf" -n 0.5 sh -c 'sleep 1000 & echo $! >"$1"' - "$S/left"
holder beside -n 0.4
run 'who is left behind keeps nobody out for long' 0 '' '' \
	"$GPULEASE" -Q --config "$S/conf" --max-wait 30s -n 0.5 true
is 'and lives on' kill -0 "$(cat "$S/left")"
kill "$(cat "$S/left")"
# shellcheck disable=SC2016
"$GPULEASE" --config "$S/conf" -n 0.1 sh -c 'echo "$GPULEASE_ID" >"$1"; sleep 1000 & echo $! >"$2"' \
	- "$S/id" "$S/left"
run 'nor who comes after it' 0 '' '' \
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

# all_end: waits for those in $pids, and sets $bad to how many have failed
all_end() {
	started="$started$pids"
	bad=0
	for each in $pids; do
		wait "$each" || bad=$((bad + 1))
	done
}

# forty PAUSE: jobs of all sizes, which run for that and a digit, in seconds
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

# most FILE: how many ever ran at once
most() {
	awk '{ n += $1 == "+" ? 1 : -1; if (n > m) m = n } END { print m + 0 }' "$1"
}

sim 2
: >"$S/notes"
rounds=0 failed=0
# Where it takes long to start one, they have to run longer to meet others.
for pause in 0.0 0. ''; do
	forty "$pause"
	rounds=$((rounds + 1)) failed=$((failed + bad))
	[ "$(most "$S/notes")" -le 2 ] || break
done
is 'forty at once: all have run' \
	[ "$failed $(grep -c '^+' "$S/notes")" = "0 $((45 * rounds))" ]
is 'and never more than one GPU of each' [ "$(greatest "$S/notes")" -le 100 ]
is 'but beside each other' [ "$(most "$S/notes")" -gt 2 ]

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
is 'forty with declared memory: all have run' [ "$bad $(grep -c '^+' "$S/notes")" = '0 46' ]
is 'and never more than a card has' [ "$(greatest "$S/notes")" -le $((24 * 1024 - 512)) ]

finish
