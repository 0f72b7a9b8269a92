#!/bin/sh
# The limits of users and groups, the lines below [limits]: which line binds whom, what it says, and
# that all readers plan with the limits of the ticket.  hardened_limits.sh has names.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/users_lib.sh
. "$(dirname "$0")/users_lib.sh"
scratch
with_driver
conf=$S/conf
program=$GPULEASE
configured
show='echo $CUDA_VISIBLE_DEVICES'
not_now='gpulease: not available at once:'

# conf LINE…: writes the configuration that is in force from now on
conf() {
	printf '%s\n' "$@" >"$conf"
}

said() {
	cat "$S/$1.err"
}

# --- what is refused ---------------------------------------------------------------------

conf '[limits]' 'group 7 = gpus 0'
run 'a bad value is refused with the allowed ones' 125 '' \
	"gpulease: $conf, line 2: gpus: '0' is out of range; write 1 to 128, or none" \
	"$GPULEASE" true
conf '[limits]' '' 'max-time = 2h'
run 'a key below [limits] is refused with the form of a line' 125 '' \
	"gpulease: $conf, line 3: 'max-time = 2h' is no limit of a user or group; write group *" \
	"$GPULEASE" true

if [ "$(id -u)" -ne 0 ]; then
	skip 'a line binds a user' 'not root'
	finish
elif ! command -v setpriv >/dev/null 2>&1; then
	skip 'a line binds a user' 'setpriv is not installed'
	finish
fi

# --- several users -----------------------------------------------------------------------

# The first user is also a student.
STUDENTS=54349
group_users 54340 $STUDENTS

# tickets FIELD: this field of all tickets, in their order
tickets() {
	tr '\0' '\n' <"$GPULEASE_DIR/tickets" | grep -a -o "$1=[^ ]*" | tr '\n' ' '
}

limits() {
	conf 'user-gpus = 2' 'max-time = 2d' 'default-time = 1d' 'max-priority = 1' '[limits]' \
		"user $((UID_BASE + 2)) = gpus none, priority 9 # one of us" '' \
		"group $STUDENTS = gpus 1, jobs 2, time 8h" \
		"user $((UID_BASE + 1)) = gpus none" '[models]' 'large = 2'
}
of_group="line 8 of $conf for group $STUDENTS"

shared 4
limits
run 'the line of a group binds its members, not a later line of the user' 125 '' \
	"gpulease: cannot lease 2 GPUs: $of_group allows 1 at once" "$U1" -n 2 true
run 'a model counts like -n' 125 '' "gpulease: cannot lease 2 GPUs: $of_group allows *" \
	"$U1" true --llm large
run 'a time limit above that of the line is refused' 125 '' \
	"gpulease: a time limit of 9h00m is too long: $of_group allows 8h00m" "$U1" -t 9h true
run 'what the line does not say is as the key says' 125 '' \
	'gpulease: priority 2 is too high: users may have 1 at most (max-priority in the configuration)' \
	"$U1" --priority 2 true
run 'a default-time above the time of the line is that time' 0 '' \
	"*gpulease: the time limit is 8h00m: $of_group*" "$U1" -v true
run 'a line may give more than the key: gpus' 0 '?,?,?' '' "$U2" -n 3 -I sh -c "$show"
run 'a line may give more than the key: priority' 0 '?' '' "$U2" --priority 9 -I sh -c "$show"
run 'and not more than it says' 125 '' \
	"gpulease: priority 10 is too high: users may have 9 at most (line 6 of $conf for user *" \
	"$U2" --priority 10 true
run 'the key bounds the time of a user whose line does not' 125 '' \
	'gpulease: a time limit of 3d* is too long: max-time in the configuration allows 2d*' \
	"$U2" -t 3d true
run 'no line binds root' 0 '?,?,?' '' "$GPULEASE" -n 3 -t 3d --priority 99 -I sh -c "$show"

shared 4
by 1 holder one
by 1 waiter two
run 'a job cannot be given more time than the line allows' 1 '' \
	"gpulease: job $(id_of one) may run for 8h00m in all: $of_group" \
	"$U1" --extend "$(id_of one)" 1h
is 'a job that waits for a limit names the line' like \
	"*limit: 1 GPU by $of_group, 1 in use" "$(said two)"
run '--dry-run names it, too' 124 \
	'would wait, 2nd in the queue: behind job 2, which waits for a limit' '' \
	"$U1" --dry-run true
run 'another user sees the number of the line' 0 \
	'*limit: 1 GPU by line 8 of the configuration, 1 in use*' '' "$U2" --queue
run 'the JSON of the queue is printed' 0 '*' '' "$GPULEASE" --queue --json
has_json 'the JSON of the queue has the number of the line' 'limit 8' \
	queue.0.reason_kind queue.0.limit_line
conf ''
run 'a reader without the line plans with the limit of the ticket' 0 \
	'*limit: 1 GPU by line 8 of the configuration, 1 in use*' '' "$GPULEASE" --queue
by 2 holder beside -n 2
is 'and the other users go past the ticket' runs beside
limits
release_all one
is 'the job starts once there is room within the limit' wait_until 'runs two'
release_all two beside
is 'the tickets have what binds their users' [ "$(tickets mostgpus)" = 'mostgpus=1 mostgpus=1 ' ]
is 'and the line' [ "$(tickets limitsline)" = 'limitsline=8 limitsline=8 ' ]

shared 4
run 'any number of GPUs is a limit, too' 0 '?' '' "$U2" -I sh -c "$show"
is 'the ticket says so' [ "$(tickets mostgpus)" = 'mostgpus=4294967295 ' ]
by 1 holder a -n 0.1
by 1 holder b -n 0.1
run 'jobs are limited as well' 124 '' "$not_now limit: 2 jobs by $of_group, 2 running" \
	"$U1" -n 0.1 -I true
run '--dry-run has the limit' 124 "would wait, 1st in the queue: limit: 2 jobs by $of_group, 2 running" \
	'' "$U1" -n 0.1 --dry-run true
run '--dry-run --json is printed' 124 '*' '' "$U1" -n 0.1 --dry-run --json true
has_json '--dry-run --json has the line' 'limit 8' reason_kind limit_line
run 'a job without GPUs is not limited' 0 '' '' "$U1" -n 0 true
release_all a b

# --- every way to start a job -------------------------------------------------------------

shared 4
conf 'retry-delay = 50ms' '[limits]' "group $STUDENTS = jobs 2"
run 'a job is tried again' 1 '*' '*' "$U1" --retries 1 -- false
is 'the second attempt has the limits of the first' [ "$(tickets mostjobs)" = 'mostjobs=2 mostjobs=2 ' ]
shared 4
limits
run 'a background job is started' 0 '*' '*' "$U1" --submit -o "$S/log" true
run 'it ends' 0 '*' '*' "$U1" --wait-for 1
is 'it had the limits' [ "$(tickets mostjobs)" = 'mostjobs=2 ' ]
shared 4
mkdir -m 0777 "$S/batch"
printf 'true\n[gpus=2] true\n' >"$S/batch/jobs"
chmod 0666 "$S/batch/jobs"
run 'the lines of a batch are bound: one that asks for too much fails' 124 '*' '*' \
	"$U1" --batch "$S/batch/jobs"
is 'with the reason in its log' grep -q "cannot lease 2 GPUs: $of_group allows 1" -r "$S/batch"
is 'and the other one has the limits' [ "$(tickets mostjobs)" = 'mostjobs=2 ' ]

# --- what is shown ---------------------------------------------------------------------

limits
run '--show-config shows the lines and what binds the user' 0 "*
[[]limits]
user $((UID_BASE + 2)) = gpus none, priority 9
group $STUDENTS = gpus 1, jobs 2, time 8h
user $((UID_BASE + 1)) = gpus none
# what binds you:
# user-gpus = 1 *# $conf, line 8
# user-jobs = 2 *# $conf, line 8
# max-time = 8h *# $conf, line 8
# default-time = 8h *# $conf, line 8
# max-priority = 1 *# $conf, line 4
[[]models]
large = 2" '' "$U1" --show-config
run '--show-config of root says that root is not bound' 0 '*
# root is not bound
[[]models]*' '' "$GPULEASE" --show-config
"$U1" --show-config >"$S/again"
chmod 0644 "$S/again"
run 'what it prints is a configuration again' 0 '*' '' "$program" --config "$S/again" --show-config
run '--show-config --json is printed' 0 '*' '' "$U1" --show-config --json
has_json '--show-config --json has the values and their lines' \
	"5 2 1 $conf, line 8 1 $conf, line 4" limits_line config.user-gpus.value \
	own_limits.user-gpus.value own_limits.user-gpus.source own_limits.max-priority.value \
	own_limits.max-priority.source
run 'root has no limits in the JSON' 0 '*' '' "$GPULEASE" --show-config --json
has_json 'own_limits is null for root' 'null' own_limits

conf '[limits]' 'group no-such-group = gpus 1' 'user no-such-user = jobs 3'
try "$GPULEASE" --doctor
is '--doctor warns of a group that does not exist' like \
	"*warn  configuration: '$conf', line 2: 'no-such-group' is not in /etc/group; write its number*" "$out"
is '--doctor warns of a user that does not exist' like \
	"*warn  configuration: '$conf', line 3: 'no-such-user' is not in /etc/passwd; *" "$out"
run '--show-config shows such names' 0 '*
# line 2: /etc/group has no such name
# line 3: /etc/passwd has no such name
*' '' "$U1" --show-config
run '--show-config --json is printed, with such names' 0 '*' '' "$U1" --show-config --json
has_json 'and has the numbers of their lines' '2 3' unknown_names.0 unknown_names.1
shared 4
conf 'user-gpus = 3' '[limits]' 'group no-such-group = gpus 1' "group $STUDENTS = gpus 2"
run 'an unknown name binds users with numbers that have no names' 125 '' \
	"gpulease: cannot lease 2 GPUs: line 3 of $conf for group no-such-group allows 1 at once" \
	"$U1" -n 2 true

# --- many users ---------------------------------------------------------------------------

# 140 users have a job each: of the last ones, too, a second job has to wait.
shared 8
conf 'user-jobs = 1'
user=0
while [ $((user += 1)) -le 140 ]; do
	setpriv --reuid=$((UID_BASE + 100 + user)) --regid="$UID_BASE" --clear-groups -- \
		"$S/bin/gpulease" --config "$conf" -Q -n 0.03 -- tail -f /dev/null \
		>"$S/many.out" 2>&1 </dev/null &
	started="$started $!"
done
is '140 users have a job' wait_until \
	'[ "$(tr "\0" "\n" <"$GPULEASE_DIR/tickets" | grep -a -c " state=2 ")" = 140 ]'
user=0 more=''
while [ $((user += 1)) -le 140 ]; do
	! setpriv --reuid=$((UID_BASE + 100 + user)) --regid="$UID_BASE" --clear-groups -- \
		"$S/bin/gpulease" --config "$conf" -Q -n 0.03 -I true >/dev/null 2>&1 ||
		more="$more $user"
done
is 'none of them gets a second one' [ -z "$more" ]
conf 'user-jobs = 2'
run 'and each gets it once two are allowed' 0 '' '' setpriv --reuid=$((UID_BASE + 240)) \
	--regid="$UID_BASE" --clear-groups -- "$S/bin/gpulease" --config "$conf" -n 0.03 -I true

finish
