#!/bin/sh
# --accounting: who has used how much, from what has ended and from what runs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
export TZ=UTC
BEGIN=1700000000000 # 2023-11-14 22:13:20
HOUR=3600000

# ran TICKET USER COUNT FROM TO KEY=VALUE…: hours from the beginning
ran() {
	ran_ticket=$1 ran_user=$2 ran_count=$3 ran_from=$((BEGIN + $4 * HOUR)) ran_to=$((BEGIN + $5 * HOUR))
	shift 5
	"$TOOLS/tellend" "$GPULEASE_DIR" ticket="$ran_ticket" uid="${#ran_user}" user="$ran_user" \
		count="$ran_count" since="$ran_from" alive="$ran_to" gone="$ran_to" "$@" ||
		bail 'cannot write the history'
}

# sums OPTION…: as JSON
sums() {
	"$GPULEASE" --accounting --json "$@" >"$S/json"
}

# members PATH…: their values, in one line
members() {
	"$TOOLS/jsoncheck" "$@" <"$S/json" | tr '\n' ' '
}

run 'nothing has run' 0 'no such job has run' '' "$GPULEASE" --accounting
run 'nor for programs' 0 '*"users": []*' '' "$GPULEASE" --accounting --json
run 'nor for spreadsheets' 0 'user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,*' '' \
	"$GPULEASE" --accounting --csv

"$GPULEASE" -n 2 true # so that there are GPUs
rm -f "$S/dir/history"
wait_until '! "$GPULEASE" --status --json | grep -q "\"lingering\""'
ran 1 alice 2 0 4 status=0 name=train waited=600000 busy=80/100
ran 2 bob 1 0 1 status=0 waited=1000
ran 3 bob 1 2 4 status=1 share=50 waited=3000
ran 4 bob 1 4 5 status=1 attempt=1
ran 4 bob 1 5 6 status=0 attempt=2
ran 5 carola 1 6 6 gone=$((BEGIN + 9 * HOUR))
until=@1700036000 # ten hours

sums --until $until
is 'it is JSON' "$TOOLS/jsoncheck" <"$S/json"
is 'the period is from the first entry on' [ "$(members since_unix_ms until_unix_ms)" = \
	'1700000000000 1700036000000 ' ]
is 'on the GPUs of the machine' [ "$(members gpus)" = '2 ' ]
is 'who used most comes first' [ "$(members users.0.user users.1.user users.2.user)" = \
	'alice bob carola ' ]
is 'GPUs times time' [ "$(members users.0.gpu_hours_least users.0.gpu_hours_most)" = '8 8 ' ]
is 'shares are parts' [ "$(members users.1.gpu_hours_least)" = '4 ' ]
is 'a job counts once, its attempts each' [ "$(members users.1.jobs users.1.attempts)" = '3 4 ' ]
is 'an end that nobody saw is at least and at most' [ \
	"$(members users.2.gpu_hours_least users.2.gpu_hours_most)" = '0 3 ' ]
is 'waits' [ "$(members users.1.wait_mean_ms users.1.wait_p95_ms)" = '1000 3000 ' ]
is 'utilization, where it is known' [ "$(members users.0.utilization_mean_percent \
	users.1.utilization_mean_percent)" = '80 null ' ]
is 'the part of the machine' [ "$(members users.0.machine_share_percent \
	users.1.machine_share_percent total.machine_share_percent)" = '40 20 60 ' ]
is 'the total' [ "$(members total.jobs total.attempts total.gpu_hours_most)" = '5 6 15 ' ]

run 'as a table' 0 'USER*JOBS*TRIES*GPU-HOURS*UP TO*WAIT*P95*UTIL*SHARE
alice*1*8.00*10m*10m*80%*40.0%
bob*3*4*4.00*1s*3s*20.0%
carola*1*0.00*3.00*0.0%
total*5*6*12.00*15.00*60.0%
from 2023-11-14 22:13 to 2023-11-15 08:13 on 2 GPUs' '' "$GPULEASE" --accounting --until $until
run 'for spreadsheets' 0 'user,*,machine_share_percent*
alice,5,1,1,0,8.00,8.00,600.000,600.000,80,40.00*
bob,3,3,4,0,4.00,4.00,1.000,3.000,,20.00*
carola,6,1,1,0,0.00,3.00,0.000,0.000,,0.00*' '' "$GPULEASE" --accounting --csv --until $until
is 'whose lines end as such lines do' [ "$(tr -dc '\r' <"$S/out" | wc -c)" -eq 4 ]
is 'with as many fields each' [ "$(awk -F, '{ print NF }' "$S/out" | sort -u)" = 11 ]

# --- which -----------------------------------------------------------------------------

sums --since @1700003600 --until @1700010800
is 'of a period counts what lies in it' [ "$(members users.0.gpu_hours_least \
	users.1.gpu_hours_least users.0.machine_share_percent)" = '4 0.5 100 ' ]
sums --until $until --user bob
is 'of a user' [ "$(members users.0.user total.jobs users.0.machine_share_percent)" = 'bob 3 20 ' ]
sums --until $until --name train
is 'of a name' [ "$(members total.jobs users.0.user)" = '1 alice ' ]
sums --until $until --state failed
is 'in a state' [ "$(members total.jobs total.attempts total.gpu_hours_least)" = '2 2 2 ' ]
run 'not two forms' 125 '' '*--json and --csv exclude each other; give one' \
	"$GPULEASE" --accounting --json --csv
run 'no titles for others' 125 '' '*--csv*' "$GPULEASE" --history --csv
run 'no operand' 125 '' '*takes no command or operand*' "$GPULEASE" --accounting 5

# --- what runs -------------------------------------------------------------------------

holder now -n 2
rm -f "$S/dir/history" # with the one before, which it has told
wait_until 'sums; [ "$(members total.running)" = "1 " ]'
is 'what runs counts' [ "$(members users.0.user users.0.jobs users.0.running)" = \
	"$(id -un) 1 1 " ]
is 'up to now' [ "$(members users.0.machine_share_percent)" != '0 ' ]
sums --state ended
is 'but it is in no state' [ "$(members total.jobs)" = '0 ' ]
release_all now
is 'once it has ended it runs no more' wait_until 'sums; [ "$(members total.running)" = "0 " ]'
is 'and counts before anybody wrote it down' [ "$(members total.jobs)" = '1 ' ]

# --- many ------------------------------------------------------------------------------

rm -f "$S/dir/history"
"$TOOLS/tellend" "$S/dir" -n 65536 ticket=1 uid=1 user=alice count=1 since=$BEGIN \
	alive=$((BEGIN + HOUR)) gone=$((BEGIN + HOUR)) waited=1000 command=x status=0
is 'both files are full' [ "$(stat -c %s "$S/dir/history" "$S/dir/history.1" | tr '\n' ' ')" = \
	'16777216 16777216 ' ]
is 'all of them are summed' [ "$(sums --user alice && members total.jobs)" = '65536 ' ]
if is_sanitized "$GPULEASE"; then
	skip 'in little memory' 'built with sanitizers'
else
	is 'in little memory' sh -c 'ulimit -v 40000 && "$1" --accounting >/dev/null' sh "$GPULEASE"
fi
finish
