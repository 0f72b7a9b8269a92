#!/bin/sh
# --history: which jobs it shows, and how a full history file is put aside.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
export TZ=UTC
DAY=1700000000000 # 2023-11-14 22:13:20

# tell KEY=VALUE…: writes a record into the history
tell() {
	"$TOOLS/tellend" "$GPULEASE_DIR" "$@" || bail "cannot write the history: $*"
}

# shows TEXT IDS OPTION…: a result, good if --history shows these jobs only, in this order
shows() {
	shows_text=$1 shows_ids=$2
	shift 2
	try "$GPULEASE" --history "$@"
	is "$shows_text" [ "$(awk '$1 ~ /^[0-9]/ { printf "%s ", $1 }' "$S/out")" = "$shows_ids" ]
}

# --- filters ---------------------------------------------------------------------------

run 'without an ended job --history says so' 0 'no job has ended yet' '' "$GPULEASE" --history
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

shows '--history shows all jobs' '1 2 3 4 4 5 6 7 '
shows '--history 2 shows the last two jobs' '6 7 ' 2
shows '--user shows the jobs of a user' '1 3 ' --user alice
shows '--user takes the number of a user' '2 4 4 ' --user 2
shows '--user without an ended job shows none' '' --user dave
run '--user without an ended job says so' 0 'no such job has ended' '' "$GPULEASE" --history \
	--user dave
shows '--name shows the jobs of that name' '1 2 ' --name train
shows '--name does not match a part of a name' '' --name trai
shows '--state shows the jobs in a state' '1 ' --state finished
shows '--state shows the jobs in one of several states' '2 4 5 ' --state failed,oom,lost
shows '--state ended shows jobs without a known status' '6 ' --state ended
shows '--state timed-out shows jobs that reached their limit' '4 ' --state timed-out
shows '--state preempted shows preempted jobs' '7 ' --state preempted
shows '--state ignores upper and lower case' '3 ' --state CANCELLED
shows '--since shows the jobs from a moment on' '5 6 7 ' --since '2023-11-14 22:18'
shows '--until shows the jobs up to a moment' '1 2 ' --until '2023-11-14T22:14:59'
shows '--since and --until show the jobs in between' '3 4 ' --since 2023-11-14T22:15:00 \
	--until 2023-11-14T22:16:30
shows '--until takes seconds after @' '1 ' --until @1700000030
shows '--since today shows no older job' '' --since today
shows '--until now shows all jobs' '1 2 3 4 4 5 6 7 ' --since 2023-11-14 --until now
shows '--history 1 --user counts the jobs of that user only' '4 ' 1 --user bob
shows '--history all --user shows all jobs of that user' '2 4 4 ' all --user bob
shows '--user, --state and --since together' '4 ' --user bob --state oom --since 2023-11-14

# --- misuse ----------------------------------------------------------------------------

run '--since refuses a word that is no time' 125 '' "*--since*'soon' is not a time; write 2026-11-20, *" \
	"$GPULEASE" --history --since soon
run '--until refuses a bare number' 125 '' "*--until*'7' is not a time; *" "$GPULEASE" --history --until 7
run '--state refuses an unknown state' 125 '' "*--state*'good' is not a state; the states are ended, finished, *" \
	"$GPULEASE" --history --state finished,good
run '--since later than --until is refused' 125 '' '*--since is later than --until*' \
	"$GPULEASE" --history --since now --until yesterday
run '--since without a verb is refused' 125 '' '*--since*' "$GPULEASE" --since today true

# --- columns and members ---------------------------------------------------------------

try "$GPULEASE" --history all
is '--history shows its titles' like \
	'JOB*TRY*USER*GPUS*STATE*STARTED*WAITED*RAN*PEAK*UTIL*STATUS*NAME*COMMAND' \
	"$(head -n 1 "$S/out")"
is '--history shows a job with all its columns' grep -q \
	'^ *1  *-  alice  0,1  *finished  *2023-11-14 22:13  *1m30s  *1s  17.2G  *87%  *0  train  a$' \
	"$S/out"
is '--history shows the number of an attempt' grep -q '^ *4  *2  bob .* timed-out ' "$S/out"
is '--history shows which user cancelled a job' grep -q ' cancelled by root ' "$S/out"
is '--history shows a job that was lost by a reboot' grep -q ' lost by reboot ' "$S/out"
is '--history shows the upper bound of an unrecorded end' grep -q ' ended  *.* up to 9m00s ' \
	"$S/out"
"$TOOLS/onterminal" 80 env NO_COLOR=1 "$GPULEASE" --history >"$S/page"
is '--history is no wider than the terminal' [ "$(LC_ALL=C.UTF-8 wc -L <"$S/page")" -le 80 ]
"$GPULEASE" --history --json all >"$S/json"
members() {
	"$TOOLS/jsoncheck" "$@" <"$S/json" | tr '\n' ' '
}
is 'as JSON: states and attempts' [ "$(members jobs.0.state jobs.0.attempt jobs.4.state \
	jobs.4.attempt jobs.5.state jobs.6.state)" = 'finished 1 timed-out 2 lost ended ' ]
is 'as JSON: what a job used' [ "$(members jobs.0.waited_ms jobs.0.gpu_count jobs.0.peak_mib.1 \
	jobs.0.utilization_mean_percent jobs.0.utilization_peak_percent jobs.0.gpu_seconds \
	jobs.0.log_is_full)" = '90000 2 17582 87 100 2 false ' ]
is 'as JSON: null for what is not known' [ "$(members jobs.1.share jobs.1.vram_mib \
	jobs.1.utilization_mean_percent jobs.5.gpu_seconds jobs.5.started_unix_ms)" = \
	'null null null null null ' ]
is 'as JSON: how a job ended' [ \
	"$(members jobs.0.how jobs.3.how jobs.7.how)" = 'ended oom preempt ' ]

# --- what others may see ---------------------------------------------------------------

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

if ! others_can_run; then
	skip 'jobs of other users are shown without their commands' "$others_why"
	skip '--name does not find jobs of other users' "$others_why"
else
	echo 'show-commands = own' >"$S/conf"
	chmod 0644 "$S/conf"
	chgrp -R 65534 "$S/dir" && find "$S/dir" -type d -exec chmod 2770 {} +
	as_nobody "$GPULEASE" --config "$S/conf" --history >"$S/others"
	is 'jobs of other users are shown without their commands' sh -c \
		'grep -q alice "$1" && ! grep -q train "$1"' sh "$S/others"
	is '--name does not find jobs of other users' [ \
		"$(as_nobody "$GPULEASE" --config "$S/conf" --history \
		--name train)" = 'no such job has ended' ]
	chgrp -R 0 "$S/dir" && find "$S/dir" -type d -exec chmod 0700 {} +
fi

# --- the order ---------------------------------------------------------------------------

rm -f "$S/dir/history"
for each in 1:10000 2:5000 3:200000 4:150000 5:140001; do
	tell ticket="${each%:*}" uid=1 user=alice since=$DAY gone=$((DAY + ${each#*:})) command=x
done
shows '--history has the order of the ends, not of the records' '2 1 5 4 3 ' all
shows '--history 1 shows the job that ended last' '3 ' 1
shows '--history 2 shows the two jobs that ended last' '4 3 ' 2
shows '--user with a number shows the job of that user that ended last' '3 ' 1 --user alice
tell ticket=6 uid=1 user=alice since=$DAY gone=$((DAY + 1000)) command=x
shows 'an end that was recorded late takes the place of no later end' '5 4 3 ' 3
shows 'an end that was recorded late has its place' '6 2 1 5 4 3 ' all

# --- its size --------------------------------------------------------------------------

echo 'history-size = 1MiB
record-ends = yes' >"$S/conf"
chmod 0644 "$S/conf"
rm -f "$S/dir/history"
tell ticket=1 uid=1 user=alice -n 2047
run 'a job ends while the history is short of its size' 0 '' '' "$GPULEASE" --config "$S/conf" \
	-n 1 true
is 'the history has reached its size' wait_until \
	'[ "$(stat -c %s "$S/dir/history")" -eq 1048576 ]'
is 'a history that is just full is one file' test ! -e "$S/dir/history.1"
run 'another job ends while the history is full' 0 '' '' "$GPULEASE" --config "$S/conf" -n 1 true
is 'the full history is put aside' wait_until '[ -e "$S/dir/history.1" ]'
is 'a new history begins with the next record' wait_until \
	'[ "$(stat -c %s "$S/dir/history" 2>/dev/null)" = 512 ]'
is '--history shows the records of both files' [ "$("$GPULEASE" --history all | grep -c '^ *[0-9]')" -eq 2049 ]
is 'both files of the history have the mode 0660' [ \
	"$(stat -c %a "$S/dir/history" "$S/dir/history.1" |
	tr '\n' ' ')" = '660 660 ' ]
is 'the newest job is shown last' like '*true' "$("$GPULEASE" --history 2 | grep "^ *[0-9]" | tail -n 1)"

# A watchdog that started before the history file was renamed.
holder old --config "$S/conf" -n 1
# shellcheck disable=SC2034 # for wait_until
old_id=$(id_of old)
tell ticket=2999 uid=2 user=bob -s 1048576
tell ticket=3000 uid=1 user=alice -s 1048576 -n 8200
is 'many records have replaced the history file' [ "$(stat -c %s "$S/dir/history")" -lt 1048576 ]
release old 7
ended old
# with the status, if the kernel reports it
# a user with one job is there still, after so many jobs of another
is 'what one user writes does not remove the end of another' [ \
	"$("$GPULEASE" --history all --json | grep -c '"uid": 2,')" -eq 1 ]
is 'a watchdog from before the rename records in the new file' wait_until \
	'grep -aq "^ended/1 ticket=$old_id " "$S/dir/history"'
is 'the watchdog records the status 7 or none' [ \
	"$(grep -a "^ended/1 ticket=$old_id " "$S/dir/history" |
	grep -o ' status=[0-9]*' | grep -vc '=7$')" = 0 ]
is 'no temporary file of the history is left' [ \
	"$(cd "$S/dir" && echo h* tmp*)" = 'history history.1 history.2 tmp*' ]

# --- many at once ----------------------------------------------------------------------

rm -f "$S/dir"/history*
for writer in 1 2 3 4; do
	"$TOOLS/tellend" "$S/dir" -s 131072 -n 100 ticket=$((writer * 1000)) uid="$writer" &
	started="$started $!"
done
wait
is 'four writers lose no record when the history is put aside' [ \
	"$("$GPULEASE" --history all --json |
	grep -c '"ticket"')" -eq 400 ]
is 'the history was put aside while four writers wrote' test -e "$S/dir/history.1"
finish
