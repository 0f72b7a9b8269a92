#!/bin/sh
# --history: which jobs it shows, and how the history is put aside.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
export TZ=UTC
DAY=1700000000000 # 2023-11-14 22:13:20

# tell KEY=VALUE…: a line of the history
tell() {
	"$TOOLS/tellend" "$GPULEASE_DIR" "$@" || bail "cannot write the history: $*"
}

# shows TEXT IDS OPTION…: those jobs and no others, in this order
shows() {
	shows_text=$1 shows_ids=$2
	shift 2
	try "$GPULEASE" --history "$@"
	is "$shows_text" [ "$(awk 'NR > 1 { printf "%s ", $1 }' "$S/out")" = "$shows_ids" ]
}

# --- which -----------------------------------------------------------------------------

run 'none has ended' 0 'nothing has ended yet' '' "$GPULEASE" --history
tell ticket=1 uid=1 user=alice gpus=0,1 count=2 since=$DAY alive=$((DAY + 1000)) \
	gone=$((DAY + 1000)) status=0 name=train command=a waited=90000 peaks=100,17582 busy=87/100
tell ticket=2 uid=2 user=bob gpus=0 count=1 since=$((DAY + 60000)) alive=$((DAY + 61000)) \
	gone=$((DAY + 61000)) status=3 name=train command=b
tell ticket=3 uid=1 user=alice gpus=1 count=1 since=$((DAY + 120000)) alive=$((DAY + 121000)) \
	gone=$((DAY + 121000)) status=143 how=cancel by=root name=eval command=c
tell ticket=4 attempt=1 uid=2 user=bob gpus=0 count=1 since=$((DAY + 180000)) \
	alive=$((DAY + 181000)) gone=$((DAY + 181000)) status=1 how=oom command=d
tell ticket=4 attempt=2 uid=2 user=bob gpus=0 count=1 since=$((DAY + 240000)) \
	alive=$((DAY + 241000)) gone=$((DAY + 241000)) status=124 how=limit command=d
tell ticket=5 uid=3 user=carol gpus=0 count=1 gone=$((DAY + 300000)) how=reboot command=e
tell ticket=6 uid=3 user=carol gpus=0 count=1 since=$((DAY + 360000)) \
	alive=$((DAY + 360000)) gone=$((DAY + 900000)) command=f
tell ticket=7 uid=3 user=carol gpus=0 count=1 since=$((DAY + 360000)) \
	alive=$((DAY + 360000)) gone=$((DAY + 900000)) how=preempt status=143 command=g

shows 'all of them' '1 2 3 4 4 5 6 7 '
shows 'the last two' '6 7 ' 2
shows 'of a user' '1 3 ' --user alice
shows 'of a user by number' '2 4 4 ' --user 2
shows 'of nobody' '' --user dave
run 'and that is said' 0 'no such job has ended' '' "$GPULEASE" --history --user dave
shows 'of a name' '1 2 ' --name train
shows 'a part of it is another' '' --name trai
shows 'in a state' '1 ' --state finished
shows 'in one of two' '2 4 5 ' --state failed,oom,lost
shows 'ended somehow' '6 ' --state ended
shows 'timed out' '4 ' --state timed-out
shows 'sent back' '7 ' --state preempted
shows 'cancelled' '3 ' --state CANCELLED
shows 'from a moment on' '5 6 7 ' --since '2023-11-14 22:18'
shows 'up to one' '1 2 ' --until '2023-11-14T22:14:59'
shows 'in between' '3 4 ' --since 2023-11-14T22:15:00 --until 2023-11-14T22:16:30
shows 'by seconds' '1 ' --until @1700000030
shows 'not of today' '' --since today
shows 'until now' '1 2 3 4 4 5 6 7 ' --since 2023-11-14 --until now
shows 'the last of a user: the count is of those' '4 ' 1 --user bob
shows 'more than there are' '2 4 4 ' all --user bob
shows 'all at once' '4 ' --user bob --state oom --since 2023-11-14

# --- wrong -----------------------------------------------------------------------------

run 'no time' 125 '' "*--since*'soon' is no time; write 2026-11-20, *" \
	"$GPULEASE" --history --since soon
run 'a bare number is none' 125 '' "*--until*'7' is no time; *" "$GPULEASE" --history --until 7
run 'no state' 125 '' "*--state*'good' is no state; there are ended, finished, *" \
	"$GPULEASE" --history --state finished,good
run 'the wrong way round' 125 '' '*--since is later than --until*' \
	"$GPULEASE" --history --since now --until yesterday
run 'a filter without a verb' 125 '' '*--since*' "$GPULEASE" --since today true

# --- what is told ----------------------------------------------------------------------

try "$GPULEASE" --history all
is 'the titles' like 'TICKET*TRY*USER*GPUS*STATE*STARTED*WAITED*RAN*PEAK*UTIL*STATUS*NAME*COMMAND' \
	"$(head -n 1 "$S/out")"
is 'a whole line' grep -q \
	'^ *1  *-  alice  0,1  *finished  *2023-11-14 22:13  *1m30s  *1s  17582MiB  *87%  *0  train  a$' \
	"$S/out"
is 'an attempt' grep -q '^ *4  *2  bob .* timed-out ' "$S/out"
is 'who cancelled' grep -q ' cancelled by root ' "$S/out"
is 'what was lost' grep -q ' lost by reboot ' "$S/out"
is 'an end that nobody saw' grep -q ' ended  *.* up to 9m00s ' "$S/out"
"$TOOLS/onterminal" 80 env NO_COLOR=1 "$GPULEASE" --history >"$S/page"
is 'no wider than the terminal' [ "$(LC_ALL=C.UTF-8 wc -L <"$S/page")" -le 80 ]
"$GPULEASE" --history --json all >"$S/json"
members() {
	"$TOOLS/jsoncheck" "$@" <"$S/json" | tr '\n' ' '
}
is 'as JSON: states and attempts' [ "$(members jobs.0.state jobs.0.attempt jobs.4.state \
	jobs.4.attempt jobs.5.state jobs.6.state)" = 'finished 1 timed-out 2 lost ended ' ]
is 'as JSON: what it used' [ "$(members jobs.0.waited_ms jobs.0.gpu_count jobs.0.peak_mib.1 \
	jobs.0.utilization_mean_percent jobs.0.utilization_peak_percent jobs.0.gpu_seconds \
	jobs.0.log_is_full)" = '90000 2 17582 87 100 2 false ' ]
is 'as JSON: what is not known' [ "$(members jobs.1.share jobs.1.vram_mib \
	jobs.1.utilization_mean_percent jobs.5.gpu_seconds jobs.5.started_unix_ms)" = \
	'null null null null null ' ]
is 'as JSON: how' [ "$(members jobs.0.how jobs.3.how jobs.7.how)" = 'ended oom preempt ' ]

# --- what others may see ---------------------------------------------------------------

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

if [ "$(id -u)" -ne 0 ] || ! cp "$GPULEASE" "$S/gpulease" ||
	! chmod 0711 "$S" || ! as_nobody "$S/gpulease" --version >/dev/null 2>&1; then
	skip 'others are seen, but not what they run' 'needs root, and setpriv'
	skip 'nor can it be asked for' 'needs root, and setpriv'
else
	echo 'show-commands = own' >"$S/conf"
	chmod 0644 "$S/conf"
	chgrp -R 65534 "$S/dir" && find "$S/dir" -type d -exec chmod 2770 {} +
	as_nobody "$S/gpulease" --config "$S/conf" --history >"$S/others"
	is 'others are seen, but not what they run' sh -c \
		'grep -q alice "$1" && ! grep -q train "$1"' sh "$S/others"
	is 'nor can it be asked for' [ "$(as_nobody "$S/gpulease" --config "$S/conf" --history \
		--name train)" = 'no such job has ended' ]
	chgrp -R 0 "$S/dir" && find "$S/dir" -type d -exec chmod 0700 {} +
fi

# --- its size --------------------------------------------------------------------------

echo 'history-size = 1MiB
record-ends = yes' >"$S/conf"
chmod 0644 "$S/conf"
rm -f "$S/dir/history"
tell ticket=1 uid=1 user=alice -n 2047
run 'short of its size it stays' 0 '' '' "$GPULEASE" --config "$S/conf" -n 1 true
is 'and is full' wait_until '[ "$(stat -c %s "$S/dir/history")" -eq 1048576 ]'
is 'in one file' test ! -e "$S/dir/history.1"
run 'the next end finds it so' 0 '' '' "$GPULEASE" --config "$S/conf" -n 1 true
is 'it is put aside' wait_until '[ -e "$S/dir/history.1" ]'
is 'and a new one begins' wait_until '[ "$(stat -c %s "$S/dir/history" 2>/dev/null)" = 512 ]'
is 'nothing of it is lost' [ "$("$GPULEASE" --history all | wc -l)" -eq 2050 ]
is 'with the rights of the others' [ "$(stat -c %a "$S/dir/history" "$S/dir/history.1" |
	tr '\n' ' ')" = '660 660 ' ]
is 'the newest are the last' like '*true' "$("$GPULEASE" --history 2 | tail -n 1)"

# A watchdog that was there before the file got another name.
holder old --config "$S/conf" -n 1
# shellcheck disable=SC2034 # for wait_until
old_id=$(id_of old)
tell ticket=3000 uid=1 user=alice -s 1048576 -n 2060
is 'which is gone by now' [ "$(stat -c %s "$S/dir/history")" -lt 1048576 ]
release old 7
ended old
# with its status, where the kernel tells it
is 'its end is told in the new one' wait_until \
	'grep -aq "^ended/1 ticket=$old_id " "$S/dir/history"'
is 'and no other status' [ "$(grep -a "^ended/1 ticket=$old_id " "$S/dir/history" |
	grep -o ' status=[0-9]*' | grep -vc '=7$')" = 0 ]
is 'nothing else is left' [ "$(cd "$S/dir" && echo h* tmp*)" = 'history history.1 tmp*' ]

# --- many at once ----------------------------------------------------------------------

rm -f "$S/dir/history" "$S/dir/history.1"
for writer in 1 2 3 4; do
	"$TOOLS/tellend" "$S/dir" -s 131072 -n 100 ticket=$((writer * 1000)) uid="$writer" &
	started="$started $!"
done
wait
is 'four writers lose no line when it is put aside' [ "$("$GPULEASE" --history all --json |
	grep -c '"ticket"')" -eq 400 ]
is 'which it was' test -e "$S/dir/history.1"
finish
