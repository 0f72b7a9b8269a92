#!/bin/sh
# --status, --queue and --history: what they say in every state that a GPU can be in, to
# people and to programs, and that looking changes nothing.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

escape=$(printf '\033')

# value PATH…: what --status --json has there, a line each.
value() {
	"$GPULEASE" --status --json 2>/dev/null | "$TOOLS/jsoncheck" "$@"
}

# says TEXT VALUE PATH…: a result, good if the values at the paths, a blank between, are that.
says() {
	says_text=$1 says_value=$2
	shift 2
	says_is=$(value "$@" | tr '\n' ' ')
	if [ "$says_is" = "$says_value " ]; then
		ok "$says_text"
	else
		not_ok "$says_text" "not '$says_value' but '$says_is'"
	fi
}

# is_json TEXT OPTION…: a result, good if gpulease prints JSON and nothing else.
is_json() {
	json_text=$1
	shift
	try "$GPULEASE" "$@"
	json_why=$("$TOOLS/jsoncheck" <"$S/out")
	if [ "$rc" -eq 0 ] && [ -z "$json_why$err" ]; then
		ok "$json_text"
	else
		not_ok "$json_text" "exit status $rc" "$json_why" "stderr: $err"
	fi
}

# row N: the row of the last `try` or `run` for GPU N.
row() {
	printf '%s\n' "$out" | sed -n "s/^ *\($1  .*\)/\1/p" | head -n 1
}

# background COMMAND…: its process is $background.
background() {
	"$@" >"$S/background" 2>&1 </dev/null &
	background=$!
	started="$started $background"
}

# stranger: one in the background that nobody knows, a sleep
stranger() {
	background sleep 1000
	becomes "$background" sleep
}

# --- simulated GPUs ------------------------------------------------------------------------

idle_and_leased() {
	run 'idle GPUs, and nobody waits' 0 '*GPU*MODEL*MEMORY*STATE*TICKET*idle*nobody waits' '' \
		"$GPULEASE" --status
	says 'a GPU in JSON' '0 Simulated GPU 24576 0 0 idle null null null null' \
		gpus.0.index gpus.0.model gpus.0.memory_total_mib gpus.0.memory_used_mib \
		gpus.0.utilization_percent gpus.0.state gpus.0.why gpus.0.ticket gpus.0.user \
		gpus.0.pid
	holder a -n 2 --name first
	waiter b -n 4 --time 1h
	me=$(id -un)
	says 'a leased GPU' "leased $(id_of a) first $me $(pid_of a) null false" gpus.1.state \
		gpus.1.ticket gpus.1.name gpus.1.user gpus.1.pid gpus.1.why gpus.1.paused
	says 'and one that is not' 'idle null' gpus.2.state gpus.2.ticket
	says 'who waits' "1 $me $(pid_of b) 4 3600000 false false needs 4 GPUs, 2 are free" \
		queue.0.position queue.0.user queue.0.pid queue.0.gpus queue.0.limit_ms \
		queue.0.can_start queue.0.stopped queue.0.why
	run 'the queue alone' 0 "POS*WHY*1*$me*4*needs 4 GPUs, 2 are free" '' "$GPULEASE" --queue
	is 'has no GPUs' [ -z "$(printf '%s\n' "$out" | grep Simulated)" ]
	run 'the row of a leased GPU' 0 '*' '' "$GPULEASE" --status
	is 'says who has it' like "1  *leased *$(id_of a)  $me *$(pid_of a) *first*sh -c*" \
		"$(row 1)"
	is_json 'the status for programs' --status --json
	is_json 'the queue for programs' --queue --json
	is_json 'the history for programs' --history --json
	stop b
	says 'a stopped job is said to be' 'true' queue.0.stopped
	wake b
}

pauses() {
	run 'a free and a leased GPU are paused' 0 '*' '*' \
		"$GPULEASE" --pause 0,3 --reason 'the fan is broken'
	says 'the free one is paused' "paused true $me the fan is broken" gpus.3.state \
		gpus.3.paused gpus.3.paused_by gpus.3.pause_reason
	says 'the leased one is leased and paused' "leased true $(id_of a)" gpus.0.state \
		gpus.0.paused gpus.0.ticket
	run 'it is told to people' 0 '*' '' "$GPULEASE" --status
	is 'in the row' like '*leased, paused*' "$(row 0)"
	is 'and why' like "*GPU 0,3: paused by $me: the fan is broken*" "$out"
	try "$GPULEASE" --resume 0,3
	says 'resumed' 'leased idle false' gpus.0.state gpus.3.state gpus.3.paused
}

locks() {
	if ! flock -F /dev/null true 2>/dev/null; then
		skip 'a locked GPU' 'there is no flock(1) that becomes its command'
		return
	fi
	background flock -F "$(state_dir)/gpu/slot.3" sleep 1000
	is 'a GPU whose file stays locked is locked' wait_until \
		'[ "$(value gpus.3.state)" = locked ]'
	says 'and by whom' "is locked by pid $background" gpus.3.why
	says 'a leased one is leased' 'leased' gpus.0.state
	kill -KILL "$background"
	is 'free again' wait_until '[ "$(value gpus.3.state)" = idle ]'
}

ends() {
	release_all a
	wait_until 'runs b' || bail 'job b does not start'
	release_all b
	# without pidfds its watchdog sees the end a moment later
	wait_until '[ "$("$GPULEASE" --history | wc -l)" -eq 3 ]' || bail 'the end of b is not seen'
	run 'what has ended' 0 "TICKET*$me*0,1*ended*first*sh -c*$me*0,1,2,3*" '' \
		sh -c '"$1" --history | sed s/finished/ended/' sh "$GPULEASE"
	run 'the last of it' 0 "TICKET*$me*0,1,2,3*" '' "$GPULEASE" --history 1
	is 'is one line' [ "$(printf '%s\n' "$out" | grep -c "$me")" -eq 1 ]
	"$GPULEASE" --history --json | "$TOOLS/jsoncheck" jobs.0.name jobs.0.gpus.1 jobs.1.name \
		jobs.1.gpus.3 jobs.0.how >"$S/ends"
	is 'the same for programs' [ "$(tr '\n' ' ' <"$S/ends")" = 'first 1 null 3 ended ' ]
}

# starts_in N LEAST MOST: whether it is said of job N of the queue that it starts in so many
# seconds.
starts_in() {
	"$GPULEASE" --queue --json >"$S/queue"
	"$TOOLS/jsoncheck" "queue.$1.start_at_unix_ms" taken_unix_ms <"$S/queue" >"$S/starts"
	{ read -r starts_at && read -r taken_at; } <"$S/starts"
	starts=$(((starts_at - taken_at) / 1000))
	[ "$starts" -ge "$2" ] && [ "$starts" -le "$3" ]
}

shares() {
	holder first -n 0.1
	holder a -n 0.5 --name half -t 1h
	holder b -n 0.25 --vram 6G -t 2h
	is 'jobs on one GPU' [ "$(gpus_of first) $(gpus_of a) $(gpus_of b)" = '0 0 0' ]
	release_all first
	holder last -n 0.2 # in its place in the file
	says 'its leases are told by ticket' "0 $(id_of a) $(id_of b) $(id_of last)" \
		gpus.0.index gpus.0.leases.0.ticket gpus.0.leases.1.ticket gpus.0.leases.2.ticket
	release_all last
	says 'it has two leases' "leased null $(id_of a) half 0.25 5632 0" gpus.0.state gpus.0.why \
		gpus.0.ticket gpus.0.name gpus.0.free_share gpus.0.free_mib gpus.0.foreign_mib
	says 'the first' "$(id_of a) $(pid_of a) half 3600000 0.5 null false null false" \
		gpus.0.leases.0.ticket gpus.0.leases.0.pid gpus.0.leases.0.name \
		gpus.0.leases.0.limit_ms gpus.0.leases.0.share gpus.0.leases.0.vram_mib \
		gpus.0.leases.0.exclusive gpus.0.leases.0.peak_mib gpus.0.leases.0.lingering
	says 'the second' "$(id_of b) $me 0.25 6144" gpus.0.leases.1.ticket \
		gpus.0.leases.1.user gpus.0.leases.1.share gpus.0.leases.1.vram_mib
	says 'one that nobody has' '1 24064 0' gpus.1.free_share gpus.1.free_mib gpus.1.foreign_mib
	run 'a row for each' 0 "GPU*STATE*SHARE*TICKET*
  0*leased *0.5 *$(id_of a) *half*
   *leased *0.25+6G *$(id_of b) *
  1*idle *-*nobody waits" '' "$GPULEASE" --status
	holder w -n 3 -t 1h
	says 'whole ones have no share' 'true null 0 0 null' gpus.1.leases.0.exclusive \
		gpus.1.leases.0.share gpus.1.free_share gpus.1.free_mib gpus.1.foreign_mib
	is_json 'the status stays JSON' --status --json
}

# With what shares() has left.
without_gpus() {
	holder bare -n 0 --name prep -t 1h
	run 'a job without a GPU is shown' 0 \
		"GPU*TICKET*
nobody waits

running without a GPU:
TICKET *USER *PID *AGE *NAME *COMMAND
 *$(id_of bare) *$me *$(pid_of bare) *prep *sh -c *" '' "$GPULEASE" --status
	run 'in the queue, too' 0 "nobody waits*without a GPU:*prep*" '' "$GPULEASE" --queue
	says 'and for programs' "$(id_of bare) 1 prep $me $(pid_of bare) 3600000" \
		running_without_gpus.0.ticket running_without_gpus.0.attempt \
		running_without_gpus.0.name running_without_gpus.0.user \
		running_without_gpus.0.pid running_without_gpus.0.limit_ms
	release_all bare
	run 'until it has ended' 0 'nobody waits' '' "$GPULEASE" --queue
}

wishes() {
	waiter c -n 2 -t 1h
	waiter d -n 2 --vram 8G --priority=-5
	waiter e -n 0.5
	"$GPULEASE" --queue --json | "$TOOLS/jsoncheck" queue.0.ticket queue.2.ticket >"$S/ids"
	{ read -r of_c && read -r of_d; } <"$S/ids"
	says 'the queue goes by priority' '0 0.5 -5 8192 2' queue.0.priority queue.1.share \
		queue.2.priority queue.2.vram_mib queue.2.gpus
	says 'its reasons have kinds' "leased null leased null behind $of_c" queue.0.reason_kind \
		queue.0.behind queue.1.reason_kind queue.1.behind queue.2.reason_kind queue.2.behind
	run 'for people' 0 "*PRIO*
  1 *$of_c *  2 *  0 *needs 2 GPUs, none is free; at the latest about ??:??
  2 *  0.5 *  0 *needs 0.5 of a GPU, at most 0.25 of one is free; starts about ??:??
  3 *$of_d *2x8G *  -5 *" '' sh -c '"$1" --queue | sed "s/about 20..-..-.. /about /g"' sh "$GPULEASE"
	is 'the head starts when leases end' starts_in 0 3500 3620
	is 'and so do those behind it' starts_in 1 3500 7300
	waiter f -n 1 --after "$(id_of a),$(id_of b)"
	waiter g -n 1 --singleton --name half
	says 'two more are held by jobs' "held $(id_of b) null null held $(id_of a) null null" \
		queue.2.reason_kind queue.2.after.1 queue.2.behind queue.2.start_at_unix_ms \
		queue.3.reason_kind queue.3.held_by queue.3.behind queue.3.start_at_unix_ms
	run 'in words' 0 "*comes after job $(id_of a), which*job $(id_of a) of the same name*" '' \
		"$GPULEASE" --queue
	echo 'all-gpus = 2' >"$S/conf"
	run 'limits are told' 0 '*limit: 2 GPUs for all, 3.75 in use*' '' \
		"$GPULEASE" --config "$S/conf" --queue
	run 'to programs, too' 0 '*"reason_kind": "limit"*' '' \
		"$GPULEASE" --config "$S/conf" --queue --json
	stop c
	says 'one that is stopped is in nobody'"'"'s way' 'true null leased null' queue.0.stopped \
		queue.0.start_at_unix_ms queue.1.reason_kind queue.1.behind
	wake c
	release_all a b w c d e f g
}

lingers() {
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" \
		</dev/null >/dev/null 2>&1
	says 'a job that left a process behind lingers' 'lingering null' gpus.0.state gpus.0.pid
	run 'it is told to people' 0 '*GPU 0: kept by processes that ticket * left behind*' '' \
		"$GPULEASE" --status
	kill -KILL "$(cat "$S/left")"
	is 'until that ends' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

hostile_names() {
	evil=$(printf 'a\033[31mb\001\377"')
	background "$GPULEASE" -n 1 --name "$evil" -- sh -c 'exec sleep 1000' "$evil" '{"x'
	is 'a job with a hostile name runs' wait_until '[ "$(value gpus.0.state)" = leased ]'
	run 'its name is harmless' 0 '*a?[[]31mb??" *sh -c*exec sleep 1000*a?[[]31mb*' '' \
		"$GPULEASE" --status
	! grep -q "$escape" "$S/out" || not_ok 'ESC on the page'
	is_json 'the status stays JSON' --status --json
	! grep -q "$escape" "$S/out" || not_ok 'ESC in JSON'
	says 'with all its bytes' 'a\u001b[31mb\u0001\ufffd\"' gpus.0.name
	kill -KILL "$background"
	is 'it ends' wait_until '[ "$(value gpus.0.state)" = idle ]'
	"$GPULEASE" --history >"$S/out"
	! grep -q "$escape" "$S/out" || not_ok 'ESC in the history'
	is_json 'the history stays JSON' --history --json
}

# --- how it is written -----------------------------------------------------------------------

widest() {
	awk '{ if (length > most) most = length } END { print most + 0 }'
}

terminals() {
	unset COLUMNS NO_COLOR
	on="$TOOLS/onterminal"
	TERM=xterm "$on" 200 "$GPULEASE" --status >"$S/colours"
	is 'a terminal gets colours' grep -q "$escape" "$S/colours"
	TERM=xterm NO_COLOR=1 "$on" 200 "$GPULEASE" --status >"$S/no-colours"
	is 'NO_COLOR: none' [ -z "$(grep "$escape" "$S/no-colours")" ]
	TERM=dumb "$on" 200 "$GPULEASE" --status >"$S/no-colours"
	is 'a dumb one: none' [ -z "$(grep "$escape" "$S/no-colours")" ]
	"$GPULEASE" --status >"$S/no-colours"
	is 'a file: none' [ -z "$(grep "$escape" "$S/no-colours")" ]
	for width in 30 50 72; do
		NO_COLOR=1 "$on" "$width" "$GPULEASE" --status | sed 's/…/./g' >"$S/narrow"
		is "$width columns are enough" [ "$(widest <"$S/narrow")" -le "$width" ]
	done
	NO_COLOR=1 COLUMNS=40 "$on" 72 "$GPULEASE" --status | sed 's/…/./g' >"$S/narrow"
	is 'COLUMNS counts more' [ "$(widest <"$S/narrow")" -le 40 ]
}

circumstances() {
	(umask 077 && LANG=C LC_ALL=C TERM='' "$GPULEASE" --status >"$S/plain" 2>&1)
	is 'with a closed umask, in the C locale' grep -q idle "$S/plain"
	run 'without stdin' 0 '*idle*' '' sh -c '"$0" --status <&-' "$GPULEASE"
	if [ -w /dev/full ]; then
		run 'output that cannot be written is an error' 125 '' \
			'gpulease: cannot write the output: *' \
			sh -c '"$0" --status >/dev/full' "$GPULEASE"
	fi
	run 'few descriptors are enough' 0 '*idle*' '' sh -c 'ulimit -Sn 8 && "$0" --status' \
		"$GPULEASE"
	run 'no file may be written' 0 '*idle*' '' sh -c '(ulimit -f 0; exec "$0" --status) | cat' \
		"$GPULEASE"
}

# Everything in the state directory, but for the last answer of nvidia-smi.
fingerprint() {
	(cd "$(state_dir)" && find . ! -name probe -type f -exec cksum {} + | sort &&
		find . ! -path ./probe ! -path . -exec ls -dli {} + | sort)
}

nothing_changes() {
	holder a -n 1
	waiter b -n 4
	fingerprint >"$S/before"
	for verb in --status --queue --history; do
		"$GPULEASE" $verb >/dev/null
		"$GPULEASE" $verb --json >/dev/null
	done
	fingerprint >"$S/after"
	is 'looking changes nothing' cmp "$S/before" "$S/after"
	release_all a
	wait_until 'runs b' || bail 'job b does not start'
	release_all b
	fingerprint >"$S/before"
	"$GPULEASE" --history >/dev/null
	fingerprint >"$S/after"
	is 'nor after the end of all' cmp "$S/before" "$S/after"
}

broken_records() {
	for lease in "$(state_dir)"/gpu/*.lease; do
		printf 'lease/1 nonsense' | dd of="$lease" bs=512 seek=1 conv=notrunc 2>/dev/null
		break
	done
	printf 'ticket/1 nonsense%495s' '' >>"$(state_dir)/tickets"
	run 'broken records are skipped and told' 0 '*idle*' \
		"gpulease: skipped in '*': 2 records that cannot be read" "$GPULEASE" --status
	says 'to programs, too' '2' broken_records
}

# --- nvidia-smi ------------------------------------------------------------------------------

with_cards() {
	with_driver
	cat >"$S/smi/gpus" <<-CARDS
		0 GPU-00000000-0000-0000-0000-000000000000 00000000:01:00.0 81920 NVIDIA H200
		1 GPU-00000000-0000-0000-0000-000000000001 00000000:02:00.0 81920 NVIDIA H200
		2 GPU-00000000-0000-0000-0000-000000000002 00000000:03:00.0 81920 NVIDIA H200
	CARDS
}

no_driver() {
	run 'without nvidia-smi' 0 'no GPU is known*nvidia-smi: not in PATH*nobody waits' '' \
		env PATH=/nonexistent "$GPULEASE" --status
	run 'without a driver' 0 'no GPU is known*driver*nobody waits' '' \
		env FAKE_SMI_DIR=/nonexistent "$GPULEASE" --status
	rm -f "$S/dir/probe"
}

used_outside() {
	stranger
	echo "1 $background 5000" >"$S/smi/procs"
	echo 37 >"$S/smi/util.1"
	echo '[Unknown Error]' >"$S/smi/base.2"
	says 'a GPU that is used outside' "external null $me $background sleep 1000 5000 37" \
		gpus.1.state gpus.1.ticket gpus.1.user gpus.1.pid gpus.1.command \
		gpus.1.memory_used_mib gpus.1.utilization_percent
	says 'one that nvidia-smi does not know' 'unknown null 81920' gpus.2.state \
		gpus.2.memory_used_mib gpus.2.memory_total_mib
	says 'one that is idle' 'idle NVIDIA H200 0000:01:00.0' gpus.0.state gpus.0.model \
		gpus.0.bus_id
	run 'for people' 0 '*GPU 2: in an unknown state: *' '' "$GPULEASE" --status
	is 'the one outside' like "1  *5000/81920 MiB *37% *external *$me *$background *sleep 1000" \
		"$(row 1)"
}

answers_are_shared() {
	"$GPULEASE" --status >/dev/null
	calls=$(wc -l <"$S/smi/count")
	"$GPULEASE" --status >/dev/null
	[ "$(wc -l <"$S/smi/count")" -le $((calls + 2)) ] || not_ok 'asked more than once'
	is 'an answer is asked for again only when it is old' wait_until '
		calls=$(wc -l <"$S/smi/count")
		"$GPULEASE" --status >/dev/null
		[ "$(wc -l <"$S/smi/count")" -eq "$calls" ]'
}

hangs() {
	holder a -n 1
	touch "$S/smi/hang"
	is 'while nvidia-smi hangs the last answer is shown' wait_until \
		'try "$GPULEASE" --status; like "*nvidia-smi: last answer * ago*" "$out"'
	is 'with what it said' like "*leased *$(id_of a)*external *$background *unknown*" "$out"
	says 'to programs, too' 'true true' nvidia_smi.found nvidia_smi.is_old
	run 'the queue as well' 0 'nobody waits' '' "$GPULEASE" --queue
	rm "$S/dir/probe"
	run 'without any answer' 0 '*nvidia-smi: no answer yet*' '' "$GPULEASE" --status
	is 'a lease is known' like '0  NVIDIA H200 *[?]/81920 MiB *leased*' "$(row 0)"
	is 'and nothing else' like '1  NVIDIA H200 *[?]/81920 MiB *unknown*' "$(row 1)"
	run 'without nvidia-smi' 0 '*leased*unknown*nvidia-smi: not in PATH*' '' \
		env PATH=/nonexistent "$GPULEASE" --status
	rm "$S/smi/hang"
	release_all a
	kill -KILL "$background"
	is 'no nvidia-smi is left behind' wait_until '[ -z "$(strays)" ]'
}

settles() {
	rm -f "$S/smi/procs" "$S/smi/base.2" "$S/smi/util.1"
	holder a -n 1
	release_all a
	says 'after its lease a GPU is idle' 'idle' gpus.0.state
	echo 3000 >"$S/smi/base.0"
	is 'or settling while memory is held' wait_until '[ "$(value gpus.0.state)" = settling ]'
	rm "$S/smi/base.0"
	is 'until that is free' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

# A GPU that is shared, and used outside gpulease besides.
shared_outside() {
	holder a --vram 20G --gpu-ids 0
	stranger
	holder b --vram 4G --gpu-ids 0
	printf '%s\n' "0 $background 5000" "0 $(pid_of a) 21000" >"$S/smi/procs"
	is 'what is used outside of a shared GPU' wait_until '[ "$(value gpus.0.foreign_mib)" = 5500 ]'
	says 'is not to be had' '0 48712 leased' gpus.0.free_share gpus.0.free_mib gpus.0.state
	says 'nor what a lease was seen to use' '20480 21000' gpus.0.leases.0.vram_mib \
		gpus.0.leases.0.peak_mib
	why="leased to ticket $(id_of a) ($me) and 1 other, and is also used outside gpulease by"
	why="$why pid $background ($me, sleep), counted as 5500MiB"
	says 'by whom' "is $why" gpus.0.why
	run 'for people' 0 "*leased *20G *$(id_of a) *GPU 0: $why*" '' "$GPULEASE" --status
	says 'on the others there is nothing' 'idle 0' gpus.1.state gpus.1.foreign_mib
	rm "$S/smi/procs"
	kill -KILL "$background"
	release_all a b
	is 'until it ends' wait_until '[ "$(value gpus.0.state)" = idle ]'
}

instances() {
	echo Enabled >"$S/smi/mig.2"
	printf '%s\n' '2 0 3g.40gb MIG-aaaa' '2 1 1g.10gb MIG-GPU-2/8/0' >"$S/smi/migs"
	is 'MIG instances are named' wait_until '[ "$(value gpus.2.mig.0.profile)" = 3g.40gb ]'
	says 'all of them' '0 MIG-aaaa 1 1g.10gb MIG-GPU-2/8/0' gpus.2.mig.0.device \
		gpus.2.mig.0.uuid gpus.2.mig.1.device gpus.2.mig.1.profile gpus.2.mig.1.uuid
	says 'and no more' "nothing at 'gpus.2.mig.2'" gpus.2.mig.2
	run 'for people' 0 \
		'*GPU 2: MIG is enabled; its instances 2:0, 2:1 are leased instead*' '' \
		"$GPULEASE" --status
	is_json 'the status stays JSON' --status --json
	rm "$S/smi/mig.2" "$S/smi/migs"
	is 'until MIG is off' wait_until '[ "$(value gpus.2.state)" = idle ]'
	says 'there are none then' "nothing at 'gpus.2.mig.0'" gpus.2.mig.0
}

all_slots_used() {
	fresh
	"$GPULEASE" -n0 sleep 1000 2>"$S/err" &
	background=$!
	is 'a job runs' wait_until '"$GPULEASE" --queue | grep -q "sleep 1000"'
	rm -rf "$S"/dir/gpu/*
	slot=0
	while [ $slot -lt 128 ]; do
		ln -s -- - "$S/dir/gpu/slot.$slot"
		slot=$((slot + 1))
	done
	run 'GPUs without a slot are told' 0 '*' \
		"*gpulease: 2 GPUs are not shown and cannot be leased: all 128 slots in *" \
		"$GPULEASE" --status
	says 'to programs, too' 2 without_slot
	"$GPULEASE" --doctor >"$S/doctor" 2>&1
	is 'and by --doctor' grep -q '^fail *state files: 2 GPUs cannot be leased: all 128' "$S/doctor"
	run 'while it lives slots keep their numbers' 125 '' '*' "$GPULEASE" -Q -I -n1 true
	kill $background
	wait $background 2>/dev/null
	background=
	run 'then those that lead nowhere are reused' 0 'GPU-00000001-*' '' \
		"$GPULEASE" -Q -I -n1 --gpu-ids 1 sh -c 'echo "$GPULEASE_UUIDS"'
	says 'and all GPUs have one' '0 idle idle' without_slot gpus.0.state gpus.1.state
}

scratch
sim 4
me=$(id -un)
idle_and_leased
pauses
locks
ends
shares
without_gpus
wishes
lingers
hostile_names
terminals
circumstances
nothing_changes
broken_records
with_cards
no_driver
used_outside
answers_are_shared
hangs
settles
shared_outside
instances
all_slots_used
finish
