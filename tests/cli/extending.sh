#!/bin/sh
# Running jobs that get more time: --extend.
# shellcheck disable=SC2016,SC2153,SC2154,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
conf=$S/conf
configured
: >"$conf"
pids=

# extended BY NAME OPTION…: starts the job with a time limit and these options and extends the
# limit.  If the machine was too slow, the job has reached its limit before: the next is longer.
extended() {
	by=$1 name=$2
	shift 2
	for limit in 1 4 20; do
		rm -f "$S/$name.runs"
		begin "$name" --time "${limit}s" "$@"
		wait_until "runs '$name'" || bail "job $name does not start"
		try "$GPULEASE" --extend "$(id_of "$name")" "$by"
		[ $rc -ne 0 ] || return 0
		ended "$name"
	done
}

# age NAME: for how long the job has run, in ms
age() {
	"$GPULEASE" --status "$(id_of "$1")" --json | grep -o '"age_ms": *[0-9]*' | head -n 1 | tr -dc '0-9'
}

# outlives TEXT NAME: a result, good if the job still runs after its first limit
outlives() {
	is "$1" wait_until "[ \"\$(age '$2')\" -gt $((limit * 1000 + 500)) ]"
}

# --- the process that enforces the limit ------------------------------------------------------

extended 1h a -n 1
is 'it says until when the job may run' like \
	"gpulease: job $(id_of a) may run until *[0-9]:[0-9][0-9], 1h00m in all" "$err"
outlives 'a plain job runs longer' a
is '--status has the new limit' like '*59m *' "$("$GPULEASE" --status)"
release_all a
is 'and ends by itself' [ "$rc" = 0 ]

extended 1s b -n 1
ended b
is 'the new limit counts' like "*job $(id_of b) has reached its time limit of $((limit + 1))s:*" \
	"$(cat "$S/b.err")"
is 'as a limit' [ "$rc" = 143 ]

extended 1h c -n 1 --report --signal USR1@200ms
outlives 'a job with a supervisor runs longer' c
release_all c
extended 1s d -n 1 --report
ended d
is 'and ends at the new limit' like "*has reached its time limit of $((limit + 1))s:*" "$(cat "$S/d.err")"
is 'with its status' [ "$rc" = 124 ]
is 'the history says so' like '*timed-out*' "$("$GPULEASE" --history 1)"

# the warning comes before the new limit, and not before the old one
for limit in 2 8 30; do
	rm -f "$S/begun" "$S/warned"
	begin e -n 1 --time "${limit}s" --signal USR1@1s --grace 100ms -- sh -c \
		'date +%s%3N >"$1"; trap "date +%s%3N >>$2" USR1; while :; do sleep 0.05; done' - \
		"$S/begun" "$S/warned"
	wait_until '[ -s "$S/begun" ]'
	id=$("$GPULEASE" --status --json | grep -o '"ticket": *[0-9]*' | head -n 1 | tr -dc '0-9')
	try "$GPULEASE" --extend "$id" 1s
	said=$rc
	ended e
	[ "$said" -ne 0 ] || break
done
is 'the job is warned once' [ "$(wc -l <"$S/warned")" -eq 1 ]
is 'a second before its new limit' [ $(($(cat "$S/warned") - $(cat "$S/begun"))) -ge $((limit * 1000 - 200)) ]

# a lease without a command, and a shell
"$GPULEASE" --lease-only --time 1s >"$S/lease" 2>&1 &
started="$started $!"
wait_until '[ -s "$S/lease" ] && "$GPULEASE" --status | grep -q -- --lease-only'
id=$(sed -n 's/.*job \([0-9]*\) has GPU.*/\1/p' "$S/lease")
"$GPULEASE" --extend "$id" 1h 2>/dev/null
is 'a lease without a command lasts longer' wait_until \
	'[ "$("$GPULEASE" --status "$id" --json | grep -o "\"age_ms\": *[0-9]*" | head -n 1 | tr -dc 0-9)" -gt 1500 ]'
"$GPULEASE" --cancel "$id"
wait

eval "$("$GPULEASE" --time 1s --shell 2>/dev/null)"
sleep 1000 &
child=$!
started="$started $child"
"$GPULEASE" --extend "$GPULEASE_ID" 1h 2>/dev/null
is 'a lease for a shell, too' wait_until \
	'[ "$("$GPULEASE" --status "$GPULEASE_ID" --json | grep -o "\"age_ms\": *[0-9]*" | head -n 1 | tr -dc 0-9)" -gt 1500 ]'
is 'and what it has started runs' kill -0 "$child"
kill "$child"
"$GPULEASE" --cancel "$GPULEASE_ID"
unset GPULEASE_ID GPULEASE_TOKEN GPULEASE_GPUS GPULEASE_UUIDS CUDA_VISIBLE_DEVICES

# --- who waits --------------------------------------------------------------------------------

holder f -n 2 --time 1h
waiter g -n 1
run 'the first job that it delays is named' 0 '' \
	"gpulease: job $(id_of f) may run until *, 3h00m in all
gpulease: job $(ticket_of g) of * may start 2h00m later" "$GPULEASE" --extend "$(id_of f)" 2h
waiter h -n 1 --time 1m
run 'and how many more' 0 '' "*gpulease: job $(ticket_of g) of * may start 30m later, and 1 more" \
	"$GPULEASE" --extend "$(id_of f)" 30:00
is 'the plan of the waiters counts on it' like '*"start_at_unix_ms": [0-9]*' \
	"$("$GPULEASE" --queue --json | grep -m 1 start_at)"

# --- what is refused --------------------------------------------------------------------------

run 'a waiting job keeps its limit' 1 '' \
	"gpulease: job $(ticket_of g) has not started; cancel it and submit it again with another --time" \
	"$GPULEASE" --extend "$(ticket_of g)" 1h
release_all f g h
run 'a job that has ended' 1 '' 'gpulease: job * has finished' "$GPULEASE" --extend "$(id_of f)" 1h
run 'a job that is unknown' 1 '' 'gpulease: job 9999 is unknown;*' "$GPULEASE" --extend 9999 1h
holder i -n 1
run 'a job without a limit' 1 '' "gpulease: job $(id_of i) has no time limit" \
	"$GPULEASE" --extend "$(id_of i)" 1h
holder j -n 0 --time 1h
run 'a job without a GPU' 1 '' "gpulease: job $(id_of j) runs without a GPU, so its limit stays" \
	"$GPULEASE" --extend "$(id_of j)" 1h
run 'several jobs: the worst status' 1 '' '*has no time limit*runs without a GPU*' \
	"$GPULEASE" --extend "$(id_of i)" "$(id_of j)" 1h
for each in '' '5' '5 10' '5 1.5' 'x 1h' '5 0s' '1h'; do
	# shellcheck disable=SC2086 # words of a line
	run "misuse: --extend $each" 125 '' 'gpulease: --extend*' "$GPULEASE" --extend $each
done
release_all i j

# --- at the same time ------------------------------------------------------------------------

holder several -n 2 --time 1h
for each in 1 2 3 4 5 6 7 8; do
	"$GPULEASE" --extend "$(id_of several)" 1h 2>/dev/null || echo "$each" >>"$S/failed" &
	pids="$pids $!"
done
# shellcheck disable=SC2086 # words
wait $pids
is 'of extensions at the same time each counts' [ ! -e "$S/failed" ]
run 'all of them' 0 '' "gpulease: job $(id_of several) may run until *, 9h01m in all*" \
	"$GPULEASE" --extend "$(id_of several)" 1m
release_all several
finish
