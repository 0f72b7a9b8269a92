#!/bin/sh
# --accounting: how much each user has used, in jobs that have ended and in jobs that run.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
export TZ=UTC
BEGIN=1700000000000 # 2023-11-14 22:13:20
HOUR=3600000

# ran TICKET USER COUNT FROM TO KEY=VALUE…: records a job; FROM and TO are hours after $BEGIN
ran() {
	ran_ticket=$1 ran_user=$2 ran_count=$3 ran_from=$((BEGIN + $4 * HOUR)) ran_to=$((BEGIN + $5 * HOUR))
	shift 5
	"$TOOLS/tellend" "$GPULEASE_DIR" ticket="$ran_ticket" uid="${#ran_user}" user="$ran_user" \
		count="$ran_count" since="$ran_from" alive="$ran_to" gone="$ran_to" "$@" ||
		bail 'cannot write the history'
}

# sums OPTION…: writes the sums as JSON into $S/json
sums() {
	"$GPULEASE" --accounting --json "$@" >"$S/json"
}

# members PATH…: prints the values of these members of $S/json, in one line
members() {
	"$TOOLS/jsoncheck" "$@" <"$S/json" | tr '\n' ' '
}

run 'without any job --accounting says that no job has run' 0 'no matching job has run' '' \
	"$GPULEASE" --accounting
run 'without any job the JSON has no user' 0 '*"users": []*' '' "$GPULEASE" --accounting --json
run 'without any job the CSV has only its titles' 0 \
	'user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,*' '' \
	"$GPULEASE" --accounting --csv

"$GPULEASE" -n 2 true # after a job the GPUs are known
rm -f "$S/dir/history"
wait_until '! "$GPULEASE" --status --json | grep -q "\"lingering\""'
ran 1 alice 2 0 4 status=0 name=train waited=600000 busy=80/100
ran 2 bob 1 0 1 status=0 waited=1000
ran 3 bob 1 2 4 status=1 share=50 waited=3000
ran 4 bob 1 4 5 status=1 attempt=1
ran 4 bob 1 5 6 status=0 attempt=2
ran 5 carola 1 6 6 gone=$((BEGIN + 9 * HOUR))
until=@1700036000 # ten hours after $BEGIN

sums --until $until
is '--accounting --json prints valid JSON' "$TOOLS/jsoncheck" <"$S/json"
is 'the period begins with the first entry' [ "$(members since_unix_ms until_unix_ms)" = \
	'1700000000000 1700036000000 ' ]
is 'the JSON has the number of GPUs of the machine' [ "$(members gpus)" = '2 ' ]
is 'the user with the most GPU hours comes first' [ \
	"$(members users.0.user users.1.user users.2.user)" = \
	'alice bob carola ' ]
is 'GPU hours are GPUs times hours' [ \
	"$(members users.0.gpu_hours_least users.0.gpu_hours_most)" = '8 8 ' ]
is 'a share of a GPU counts as that part of an hour' [ \
	"$(members users.1.gpu_hours_least)" = '4 ' ]
is 'a job counts once, and each of its attempts counts' [ \
	"$(members users.1.jobs users.1.attempts)" = '3 4 ' ]
is 'an end that was not recorded gives a lower and an upper bound' [ \
	"$(members users.2.gpu_hours_least users.2.gpu_hours_most)" = '0 3 ' ]
is 'the JSON has the mean and the 95th percentile of the waiting times' [ \
	"$(members users.1.wait_mean_ms users.1.wait_p95_ms)" = '1000 3000 ' ]
is 'the JSON has the utilization, or null if it is not known' [ \
	"$(members users.0.utilization_mean_percent \
	users.1.utilization_mean_percent)" = '80 null ' ]
is 'the JSON has each user'"'"'s part of the machine' [ "$(members users.0.machine_share_percent \
	users.1.machine_share_percent total.machine_share_percent)" = '40 20 60 ' ]
is 'the JSON has a total of all users' [ \
	"$(members total.jobs total.attempts total.gpu_hours_most)" = '5 6 15 ' ]

run '--accounting prints a table' 0 'USER*JOBS*TRIES*GPU-HOURS*UP TO*WAIT*P95*UTIL*SHARE
alice*1*8.00*10m*10m*80%*40.0%
bob*3*4*4.00*1s*3s*20.0%
carola*1*0.00*3.00*0.0%
total*5*6*12.00*15.00*60.0%
from 2023-11-14 22:13 to 2023-11-15 08:13 on 2 GPUs' '' "$GPULEASE" --accounting --until $until
run '--accounting --csv prints a line for each user' 0 'user,*,machine_share_percent*
alice,5,1,1,0,8.00,8.00,600.000,600.000,80,40.00*
bob,3,3,4,0,4.00,4.00,1.000,3.000,,20.00*
carola,6,1,1,0,0.00,3.00,0.000,0.000,,0.00*' '' "$GPULEASE" --accounting --csv --until $until
is 'the lines of the CSV end with CR LF' [ "$(tr -dc '\r' <"$S/out" | wc -c)" -eq 4 ]
is 'the lines of the CSV have equally many fields' [ \
	"$(awk -F, '{ print NF }' "$S/out" | sort -u)" = 12 ]

# --- filters and misuse ----------------------------------------------------------------

sums --since @1700003600 --until @1700010800
is '--since and --until count only the hours inside the period' [ \
	"$(members users.0.gpu_hours_least \
	users.1.gpu_hours_least users.0.machine_share_percent)" = '4 0.5 100 ' ]
sums --until $until --user bob
is '--user selects a user' [ "$(members users.0.user total.jobs users.0.machine_share_percent)" = 'bob 3 20 ' ]
sums --until $until --name train
is '--name selects the jobs of that name' [ "$(members total.jobs users.0.user)" = '1 alice ' ]
sums --until $until --state failed
is '--state selects the attempts in that state' [ \
	"$(members total.jobs total.attempts total.gpu_hours_least)" = '2 2 2 ' ]
run '--json and --csv exclude each other' 125 '' \
	'*--json and --csv exclude each other; give one' \
	"$GPULEASE" --accounting --json --csv
run '--history takes no --csv' 125 '' '*--csv*' "$GPULEASE" --history --csv
run '--accounting takes no operand' 125 '' '*takes no command or operand*' "$GPULEASE" \
	--accounting 5

# --- what runs -------------------------------------------------------------------------

holder now -n 2
# The history has a record of the previous job, which the running job has written.
rm -f "$S/dir/history"
wait_until 'sums; [ "$(members total.running)" = "1 " ]'
is 'a running job counts' [ "$(members users.0.user users.0.jobs users.0.running)" = \
	"$(id -un) 1 1 " ]
is 'a running job counts up to the present moment' [ \
	"$(members users.0.machine_share_percent)" != '0 ' ]
sums --state ended
is 'a running job is not in the state ended' [ "$(members total.jobs)" = '0 ' ]
release_all now
is 'a job that has ended does not count as running' wait_until \
	'sums; [ "$(members total.running)" = "0 " ]'
is 'a job that has ended counts even before its end is recorded' [ \
	"$(members total.jobs)" = '1 ' ]

# --- many ------------------------------------------------------------------------------

rm -f "$S/dir/history"
"$TOOLS/tellend" "$S/dir" -n 65536 ticket=1 uid=1 user=alice count=1 since=$BEGIN \
	alive=$((BEGIN + HOUR)) gone=$((BEGIN + HOUR)) waited=1000 command=x status=0
is 'both files of the history are full' [ \
	"$(stat -c %s "$S/dir/history" "$S/dir/history.1" | tr '\n' ' ')" = \
	'16777216 16777216 ' ]
is 'all records of two full files are summed' [ \
	"$(sums --user alice && members total.jobs)" = '65536 ' ]
if is_sanitized "$GPULEASE"; then
	skip 'two full files are summed in little memory' 'built with sanitizers'
else
	is 'two full files are summed in little memory' \
		sh -c 'ulimit -v 40000 && "$1" --accounting >/dev/null' sh "$GPULEASE"
fi
finish
