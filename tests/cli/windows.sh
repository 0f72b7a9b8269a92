#!/bin/sh
# GPUs that are kept for a time, or for some users: --pause with --at, --for and --but, --windows.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
at='*[0-9]:[0-9][0-9]' # a time, perhaps with the date of tomorrow
someone=$(($(id -u) + 1))
"$GPULEASE" true

# --- before a window ---------------------------------------------------------------------------

run 'without windows there is nothing to show' 0 'no GPU is kept' '' "$GPULEASE" --windows
run 'GPUs are kept later' 0 '' '' "$GPULEASE" --pause 0-1 --at now+1hour --for 3h --but $someone,1234567 \
	--reason demo
run '--windows shows it' 0 "GPU 0,1: kept from $at for 3h00m but for *,1234567 by *: demo" '' \
	"$GPULEASE" --windows
is '--status shows it' like "*GPU 0,1: kept from $at for 3h00m *: demo*" "$("$GPULEASE" --status)"
is 'the GPUs are not paused' [ "$("$GPULEASE" --status | grep -c ' idle ')" = 2 ]
"$GPULEASE" --windows --json >"$S/out"
has_json 'and the JSON' "gpulease-windows/1 1 0,1 false $someone,1234567 demo" format windows.0.id \
	windows.0.gpus windows.0.has_begun windows.0.but windows.0.reason
"$GPULEASE" --status --json >"$S/out"
has_json 'also that of --status' '0,1 idle' windows.0.gpus gpus.0.state
run 'a job that could still run then does not start' 124 \
	"would wait, 1st in the queue: needs 1 GPU, none is free; GPU 0 is kept from $at for *: demo; also kept: GPU 1; a limit under 5[0-9]m would start now; starts about $at" \
	'' "$GPULEASE" --dry-run true
run 'nor one with a long limit' 124 '*; a limit under 5[0-9]m would start now; starts about *' '' \
	"$GPULEASE" --dry-run -n 2 --time 1h true
run 'a job that ends before it starts' 0 'x' '' "$GPULEASE" -I -n 2 --time 30m echo x
waiter a
is 'the waiting line says which limit would do' like \
	"*waits, 1st in the queue: *kept from $at *: demo; *a limit under 5[0-9]m would start now; starts about $at" \
	"$(cat "$S/a.err")"
is '--queue has the same filter' like '*is kept from *' "$("$GPULEASE" --queue)"
run 'a short job passes it' 0 'x' '' "$GPULEASE" -I -n 2 --time 1m echo x
run '--resume removes the window of a GPU' 0 '' 'gpulease: removed 1 window of these GPUs' \
	"$GPULEASE" --resume 1
is 'the waiting job starts there' wait_until 'runs a'
is 'on that GPU' [ "$(gpus_of a)" = 1 ]
run 'the other GPU is still kept' 0 "GPU 0: kept from *" '' "$GPULEASE" --windows
run 'a job that runs goes on when a window begins' 0 '' '' "$GPULEASE" --pause 1 --for 1h
is 'it is leased' like '*leased*GPU 1: kept until *' "$("$GPULEASE" --status)"
release_all a
run 'all windows are removed' 0 '' 'gpulease: removed 2 windows of these GPUs' "$GPULEASE" --resume 0-1
run 'a GPU without a window is resumed as before' 0 '' '' "$GPULEASE" --resume 0-1
is 'and no file is left' [ ! -e "$(state_dir)/gpu/windows" ]

# --- during a window, and after it -----------------------------------------------------------------

run 'a window may begin now' 0 '' '' "$GPULEASE" --pause 0-1 --for 2s
waiter b
is 'the line has its end' like "*GPU 0 is kept until $at by *" "$(cat "$S/b.err")"
is '--top has a line for it below the GPUs' like "*GPU 0,1: kept until $at by *" "$("$GPULEASE" --top)"
is 'no limit is short enough' [ -z "$(grep -o 'a limit under' "$S/b.err")" ]
is 'the job starts by itself when it is over' wait_until 'runs b'
run 'a window that is over is not shown' 0 'no GPU is kept' '' "$GPULEASE" --windows
release_all b

run 'a window may last until --resume' 0 '' '' "$GPULEASE" --pause 0-1 --but "$someone"
run 'only its users start jobs' 124 '*GPU 0 is kept but for * by *; also kept: GPU 1' '' \
	"$GPULEASE" --dry-run --time 1s true
"$GPULEASE" --resume 0-1 2>/dev/null

run 'this user is exempt' 0 '' '' "$GPULEASE" --pause 0-1 --but "$someone,$(id -un)" --for 1h
run 'and starts a job' 0 'x' '' "$GPULEASE" -I -n 2 echo x
run 'which its resumption does not end' 0 '' '*removed 1 window *' "$GPULEASE" --resume 0-1

run 'a GPU is paused' 0 '' '' "$GPULEASE" --pause 0 --reason broken
run 'and kept later' 0 '' '' "$GPULEASE" --pause 0 --at now+1hour --for 1h --reason demo
run 'then the pause is the reason' 124 '*GPU 0 is paused by *: broken*' '' \
	"$GPULEASE" --dry-run --gpu-ids 0 true
"$GPULEASE" --resume 0 2>/dev/null

# A job waits for two GPUs; one of them is kept from it from the moment at which its limit is too
# long.  No event tells the job behind it that it may start then.
"$GPULEASE" --pause 0 --at now+13 --for 1h
holder c --allow 1
waiter d -n 2 --time 1s --grace 1s
waiter e --time 100ms --grace 100ms
is 'a short job is behind it' like "*behind job $(ticket_of d), *" "$(cat "$S/e.err")"
is 'and starts once the window stops the first' wait_until '! kill -0 "$(pid_of e)" 2>/dev/null || runs e'
release_all c e
is 'the first still waits' [ -z "$(runs d && echo runs)" ]
"$GPULEASE" --resume 0 2>/dev/null
is 'until the window is removed' wait_until 'runs d'
ended d

# --- mistakes, damage --------------------------------------------------------------------------

run 'the forms of a time are named' 125 '' "gpulease: --at: '9am' is not a time to begin; write 22:00, *" \
	"$GPULEASE" --pause 0 --at 9am
run 'a window of no length is refused' 125 '' '*that window is over*' "$GPULEASE" --pause 0 --for 0
run 'a window that is over is refused' 125 '' 'gpulease: that window is over; give a later --at or a longer --for' \
	"$GPULEASE" --pause 0 --at 2020-01-01 --for 1h
run 'so is an unknown user' 1 '' "gpulease: --but: there is no user 'no-such'; write names or numbers: alice,1001" \
	"$GPULEASE" --pause 0 --but 1000,no-such
run 'too many users' 125 '' 'gpulease: --but names more than 8 users' \
	"$GPULEASE" --pause 0 --but 1,2,3,4,5,6,7,8,9
run 'and a job with --at' 125 '' 'gpulease: --at goes only with --pause' "$GPULEASE" --at 22:00 true
run 'nothing was kept' 0 'no GPU is kept' '' "$GPULEASE" --windows
"$GPULEASE" --pause 0 --for 1h
"$GPULEASE" --pause 1 --for 1h
printf 'x' | dd of="$(state_dir)/gpu/windows" bs=1 seek=40 conv=notrunc 2>/dev/null
touch "$(state_dir)/gpu"
run 'a damaged record has no effect' 0 'GPU 1: kept until *' '*skipped in*: 1 unreadable record; gpulease --doctor says more' \
	"$GPULEASE" --windows
is '--doctor says so' like "*gpu/windows' cannot be read*" "$("$GPULEASE" --doctor)"
run 'and the next change removes it' 0 '' '*' "$GPULEASE" --resume 1
run 'with all that was there' 0 'no GPU is kept' '' "$GPULEASE" --windows

# --- jobs that are sent back ---------------------------------------------------------------------

# sent_back NAME: whether the job was sent back by a window
sent_back() {
	like '*a window begins on the GPUs; this job goes back into the queue*' "$(cat "$S/$1.err")"
}

sim 3
holder f --preemptible --report --gpu-ids 0
holder g --preemptible --gpu-ids 1
id=$(id_of f)
rm "$S/f.runs"
run 'a pause sends no job back' 0 '' '' "$GPULEASE" --pause 0
run 'nor does its end' 0 '' '' "$GPULEASE" --resume 0
run 'nor does a window that exempts the user' 0 '' '' "$GPULEASE" --pause 0 --for 1h --but "$(id -u)"
"$GPULEASE" --resume 0 2>/dev/null
run 'a window that begins now' 0 '' '' "$GPULEASE" --pause 0 --for 1h --reason demo
is 'sends a preemptible job back' wait_until 'sent_back f'
is 'it waits again under its id' wait_until \
	'like "*job $id waits, *GPU 0 is kept until *: demo*" "$(cat "$S/f.err")"'
is 'it was sent back once' [ "$(grep -c 'this job goes back' "$S/f.err")" -eq 1 ]
is 'its report names the window' like '*: preempted by a window, *' "$(cat "$S/f.err")"
is 'the history does' like '*preempted by window*' "$("$GPULEASE" --history)"
"$GPULEASE" --history --json >"$S/out"
has_json 'and its JSON' 'preempted preempt window' jobs.0.state jobs.0.how jobs.0.by
is 'it does not start meanwhile' eval '! runs f'
is 'a job on another GPU runs on' eval '! sent_back g'
run 'the window is removed' 0 '' '*removed 1 window*' "$GPULEASE" --resume 0
is 'and the job starts again' wait_until 'runs f'
is 'under the same id' [ "$(id_of f)" = "$id" ]

# of two windows in the future, one is removed; when the other begins, the first would have begun
"$GPULEASE" --pause 0 --at now+2 --for 1h
"$GPULEASE" --pause 1 --at now+3 --for 1h
"$GPULEASE" --windows --json >"$S/out"
from=$("$TOOLS/jsoncheck" windows.1.from_unix_ms <"$S/out")
"$GPULEASE" --resume 0 2>/dev/null
is 'a job is sent back when the window begins' wait_until 'sent_back g'
is 'and not before' wait_until '[ "$("$GPULEASE" --history --json --last 1 |
	"$TOOLS/jsoncheck" jobs.0.alive_unix_ms)" -ge "$from" ]'
is 'a window that was removed sends none back' [ "$(grep -c 'this job goes back' "$S/f.err")" -eq 1 ]
release_all f
rm "$S/g.runs"
"$GPULEASE" --resume 1 2>/dev/null
is 'the other starts again after it' wait_until 'runs g'
release_all g

"$GPULEASE" --preemptible --gpu-ids 0 --signal USR1@1 -- sh -c 'trap "echo saved >\"$1.saved\"" USR1
	echo $$ >"$1.runs"; while :; do sleep 0.1; done' job "$S/careful" 2>"$S/careful.err" &
echo $! >"$S/careful.pid"
started="$started $!"
wait_until 'runs careful'
"$GPULEASE" --pause 0 --for 1h
is 'a job with --signal is warned first' wait_until '[ -e "$S/careful.saved" ]'
is 'and then goes back' wait_until 'like "*waits, *" "$(cat "$S/careful.err")"'
kill -TERM "$(pid_of careful)"
ended careful

# --- the history -------------------------------------------------------------------------------

sim 4
"$GPULEASE" --report true 2>/dev/null
run 'GPUs are paused' 0 '' '' "$GPULEASE" --pause 1-2 --reason "$(printf 'loud \033[31mfan')"
run 'a pause without a reason changes nothing' 0 '' '' "$GPULEASE" --pause 1
run 'nor does the resumption of a GPU that is not paused' 0 '' '' "$GPULEASE" --resume 0
"$GPULEASE" --report true 2>/dev/null
run 'GPUs are kept' 0 '' '' "$GPULEASE" --pause 0,1,3 --at now+1hour --for 3h --but $someone --reason demo
run 'some of all that are resumed' 0 '' 'gpulease: removed 1 window *' "$GPULEASE" --resume 0-1
try "$GPULEASE" --history
is 'the history has the jobs and the events in their order' like "*finished *true
* 1,2 *paused *loud ?\[31mfan
*finished *true
* 0,1,3 *window-set *kept from $at for 3h00m but for *: demo
* 0,1 *window-removed *kept from $at for 3h00m but for *: demo
* 1 *resumed *" "$out"
is 'and no other' [ "$(echo "$out" | wc -l)" -eq 7 ]
"$GPULEASE" --history --json >"$S/out"
has_json 'the JSON has the jobs alone' '1 2' jobs.0.ticket jobs.1.ticket
is 'only these' [ "$(grep -c '"ticket"' "$S/out")" -eq 2 ]
has_json 'and the events' "paused $(id -u) 1,2 null null window-set 0,1,3 $someone demo window-removed 0,1 demo resumed 1" \
	events.0.kind events.0.uid events.0.gpus events.0.until_unix_ms events.0.but events.1.kind \
	events.1.gpus events.1.but events.1.reason events.2.kind events.2.gpus events.2.reason \
	events.3.kind events.3.gpus
is 'of a window they have the times' [ \
	"$("$TOOLS/jsoncheck" events.1.from_unix_ms <"$S/out")" -eq $((\
		$("$TOOLS/jsoncheck" events.1.until_unix_ms <"$S/out") - 3 * 3600 * 1000)) ]
has_json 'a removed window has them, too' "$("$TOOLS/jsoncheck" events.1.from_unix_ms <"$S/out")" \
	events.2.from_unix_ms
is 'the number counts jobs' [ "$("$GPULEASE" --history 1 | wc -l)" -eq 5 ]
is 'a filter for states or names shows no events' [ \
	"$("$GPULEASE" --history --state finished | wc -l)$("$GPULEASE" --history --name x | grep -c set)" = 30 ]
is 'a filter for users or times does' [ \
	"$("$GPULEASE" --history --user "$(id -u)" | wc -l)$("$GPULEASE" --history --until now |
		grep -c set)$("$GPULEASE" --history --until 1h | grep -c set)" = 710 ]
"$GPULEASE" --accounting --csv >"$S/out"
is '--accounting does not count them' like '*,2,*' "$(sed -n 2p "$S/out")"
"$GPULEASE" --resume 2-3 2>/dev/null
finish
