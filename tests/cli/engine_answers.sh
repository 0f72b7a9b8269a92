#!/bin/sh
# What the engine slurm makes of answers that a cluster seldom gives.  The programs of Slurm are
# shell scripts, so no cluster is needed.
# shellcheck disable=SC2016 # conditions, and code of the programs

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
unset GPULEASE_SIM
echo "ClusterName=answers$$" >"$S/slurm.conf"
export SLURM_CONF="$S/slurm.conf" GPULEASE_ENGINE=slurm S
STATE=$XDG_STATE_HOME/gpulease/slurm/answers$$
mkdir "$S/bin" "$S/jobs"
PATH=$S/bin:$PATH

# --- the programs --------------------------------------------------------------------------

# does PROGRAM [CODE]: from now on it notes its words in $S/calls, and does this
does() {
	printf '#!/bin/sh\nprintf "%%s " %s "$@" >>"$S/calls"\necho >>"$S/calls"\n%s\n' "$1" "${2-}" \
		>"$S/bin/$1.new"
	chmod +x "$S/bin/$1.new"
	mv "$S/bin/$1.new" "$S/bin/$1"
}

# job ID [FIELD=VALUE]…: squeue knows it so from now on
job() {
	job_id=$1
	shift
	printf '%s\n' "JobID=$job_id" State=RUNNING exit_code=0 "UserID=$(id -u)" UserName=me \
		SubmitTime=1000 StartTime=1010 EndTime=N/A Reason=None NumNodes=1 NodeList=n1 "$@" \
		>"$S/new"
	mv "$S/new" "$S/jobs/$job_id"
}

# calls PROGRAM: how often it was run
calls() {
	grep -c "^$1 " "$S/calls"
}

# anew: what was called is forgotten
anew() {
	: >"$S/calls"
}

# squeue prints the fields that it is asked for, of the jobs in $S/jobs.
cat >"$S/squeue.awk" <<'EOT'
BEGIN { count = split(format, fields, ",") }
FNR == 1 { if (NR > 1) show(); split("", job) }
{ at = index($0, "="); job[substr($0, 1, at - 1)] = substr($0, at + 1) }
END { if (NR) show() }
function show(  i, at, name) {
	for (i = 1; i <= count; i++) {
		at = index(fields[i], ":")
		name = substr(fields[i], 1, at - 1)
		printf "%s%s", (name in job) ? job[name] : "N/A", substr(fields[i], at + 1)
	}
	print ""
}
EOT
SQUEUE='[ ! -e "$S/silent" ] || {
	echo "slurm_load_jobs error: Unable to contact slurm controller" >&2
	exit 1
}
list=$(ls "$S/jobs") format=
for word; do
	case $word in
	--jobs=*) list=$(echo "${word#*=}" | tr , " ") ;;
	JobID*) format=$word ;;
	State:*) format=$word ;;
	esac
done
files=
for id in $list; do
	[ ! -e "$S/jobs/$id" ] || files="$files $S/jobs/$id"
done
[ -n "$files$(ls "$S/jobs")" ] || exit 0
[ -n "$files" ] || {
	echo "slurm_load_jobs error: Invalid job id specified" >&2
	exit 1
}
exec awk -v format="$format" -f "$S/squeue.awk" $files'
does squeue "$SQUEUE"
does sacct 'echo "Slurm accounting storage is disabled" >&2; exit 1'
does scancel
does sinfo

# --- a job is submitted once ---------------------------------------------------------------

TIMED_OUT='echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv" >&2'
# a variable of the script below: the token in the words of sbatch
TOKEN='for word; do
	case $word in --comment=gpulease:*) token=${word#*:} ;; esac
done
token=${token%% *}'

anew
does sbatch 'echo 7'
run 'the id of the job is printed' 0 7 '' "$GPULEASE" --submit true

anew
job 5 Comment=gpulease:0123456789abcdef
does sbatch '[ "$(grep -c ^sbatch "$S/calls")" = 1 ] || { echo 8; exit; }
'"$TIMED_OUT; exit 1"
run 'a job with another token is not taken for this one' 0 8 '' "$GPULEASE" --submit true
is 'sbatch was called again' [ "$(calls sbatch)" -eq 2 ]

anew
does sbatch "$TOKEN"'
printf "JobID=11\nComment=gpulease:%s\n" "$token" >"$S/jobs/11"
'"$TIMED_OUT; exit 1"
run 'a job that was submitted although sbatch has failed is found' 0 11 '' "$GPULEASE" --submit true
is 'sbatch was called once' [ "$(calls sbatch)" -eq 1 ]
rm "$S/jobs/11"

anew
does sbatch "$TOKEN"'
[ "$(grep -c ^sbatch "$S/calls")" = 2 ] || { '"$TIMED_OUT"'; exit 1; }
for id in 21 22; do
	printf "JobID=$id\nComment=gpulease:%s\n" "$token" >"$S/jobs/$id"
done
echo 22'
run 'a job that comes late: the earlier one of two is kept' 0 21 '' "$GPULEASE" --submit true
is 'the later one is cancelled' grep -qx 'scancel 22 ' "$S/calls"
rm "$S/jobs/21" "$S/jobs/22"

anew
does sbatch 'echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1'
run 'a job that is refused' 125 '' 'gpulease: Slurm refuses the job: Invalid partition name specified' \
	"$GPULEASE" --submit true
is 'is not submitted again' [ "$(calls sbatch)" -eq 1 ]

anew
: >"$S/none"
run 'a folder of -o that cannot be made' 125 '' "gpulease: cannot open '$S/none/x': *" \
	"$GPULEASE" --submit -o "$S/none/x" true
is 'nothing is submitted' [ "$(calls sbatch)" -eq 0 ]
rm "$S/none"
for out in "$S/made/of-1/%j" /dev/null; do
	run "the output may be $out" 125 '' 'gpulease: Slurm refuses the job: *' \
		"$GPULEASE" --submit -o "$out" true
done
is 'a missing folder is made' [ "$(stat -c %a "$S/made/of-1")" = 755 ]

anew
does sbatch 'echo 31'
to_full() {
	"$@" >/dev/full
}
run 'an id that cannot be printed' 125 '' 'gpulease: cannot print the id of job 31*' \
	to_full "$GPULEASE" --submit true
is 'its job is cancelled' grep -qx 'scancel 31 ' "$S/calls"

# --- the script of a job -------------------------------------------------------------------

# The words behind /dev/stdin are those of the script.
does sbatch 'cat >"$S/script"
until [ "$1" = /dev/stdin ]; do shift; done
shift
for word; do printf "%s\n" "$word"; done >"$S/words"
echo 41'

# as_job ID COMMAND…: submits the command, and runs what sbatch has got as this job
as_job() {
	as_job_id=$1
	shift
	"$GPULEASE" --submit -n 0 -- "$@" >/dev/null || return
	old_ifs=$IFS
	IFS='
'
	set -f
	# shellcheck disable=SC2046 # a word in each line
	set -- $(cat "$S/words")
	set +f
	IFS=$old_ifs
	env SLURM_JOB_ID="$as_job_id" sh "$S/script" "$@"
}
run 'the script has the status of the command' 7 out '' as_job 41 sh -c 'echo out; exit 7'
is 'and records it' like '???????????????? 7' "$(cat "$STATE/logs/41.status")"
run 'a signal ends the script, too' 130 '' '*' as_job 42 sh -c 'kill -INT $$'
is 'and is recorded' like '???????????????? 130' "$(cat "$STATE/logs/42.status")"
echo '0123456789abcdef 0' >"$STATE/logs/43.status"
echo old >"$STATE/logs/43.log"
run 'a job with the id of an earlier one' 0 '' '' as_job 43 true
is 'does not add to the log of that' [ ! -s "$STATE/logs/43.log" ]

# --- the ends of jobs ----------------------------------------------------------------------

job 51 State=FAILED exit_code=1792
run 'the status is that of squeue' 7 '' '' "$GPULEASE" --wait-for 51
job 52 State=REVOKED
run 'a job that Slurm has lost' 125 '' 'gpulease: job 52 was revoked: another cluster has it' \
	"$GPULEASE" --wait-for 52
mkdir -p "$STATE/logs"
echo '0123456789abcdef 3' >"$STATE/logs/53.status"
run 'a job that Slurm has forgotten has the status of its record' 3 '' '' "$GPULEASE" --wait-for 53
run 'without a record it is unknown' 1 '' 'gpulease: job 54 is unknown; *' "$GPULEASE" --wait-for 54
job 55 State=COMPLETED
job 56 State=FAILED exit_code=768
run 'of several jobs the highest status counts' 7 '' '' "$GPULEASE" --wait-for 56,51,55

job 57
"$GPULEASE" --wait-for 57 2>"$S/waits.err" &
waiter=$!
started="$started $waiter"
wait_until '[ -s "$STATE/poll.answer" ] && grep -q "^57" "$STATE/poll.answer"'
: >"$S/silent"
is 'a controller that falls silent is told' wait_until 'grep -q "still waiting" "$S/waits.err"'
rm "$S/jobs/57"
job 57 State=FAILED exit_code=1024
rm "$S/silent"
wait "$waiter"
rc=$?
is 'and the job has its status' [ $rc -eq 4 ]

own() {
	env SLURM_JOB_ID=58 "$@"
}
job 58
run 'a job does not wait for itself' 1 '' 'gpulease: job 58 is this one; *' \
	own "$GPULEASE" --engine slurm --wait-for 58

mkdir -p "$STATE/logs"
echo 'of an earlier job' >"$STATE/logs/59.log"
echo '0123456789abcdef reused' >"$STATE/logs/59.status"
job 59
run 'the log of an earlier job with the id is not shown' 1 '' 'gpulease: job 59 has no log*' \
	"$GPULEASE" --log 59
echo here >"$STATE/logs/60.log"
job 60 State=FAILED exit_code=1280
run '--submit --follow has the status of the job' 5 here 'gpulease: job 60' sh -c 'printf "%s\n" "#!/bin/sh" \
	"echo 60" >"$S/bin/sbatch"; exec "$1" --submit --follow true' sh "$GPULEASE"
rm -f "$S/jobs"/5*

# --- a controller that has crashed -----------------------------------------------------------

anew
for each in 'CANCELLED 0' 'CANCELLED 3' 'NODE_FAIL 7'; do
	job 64 State="${each% *}" EndTime="$(date +%s)"
	echo "0123456789abcdef ${each#* }" >"$STATE/logs/64.status"
	touch -d '10 seconds ago' "$STATE/logs/64.status"
	run "the record of a job with status ${each#* } counts for more than ${each% *}" \
		"${each#* }" '' '' "$GPULEASE" --wait-for 64
done
job 64 State=CANCELLED EndTime="$(date +%s)"
echo '0123456789abcdef 0' >"$STATE/logs/64.status"
run 'not of a job that ended when it was cancelled' 143 '' '' "$GPULEASE" --wait-for 64
echo '0123456789abcdef 0 told' >"$STATE/logs/64.status"
touch -d '10 seconds ago' "$STATE/logs/64.status"
run 'not of a job that was told to end' 143 '' '' "$GPULEASE" --wait-for 64
echo '0123456789abcdef' >"$STATE/logs/64.status"
run 'nor of one that has no status' 143 '' '' "$GPULEASE" --wait-for 64
rm -f "$S/jobs"/64

# --- dependencies --------------------------------------------------------------------------

anew
does sbatch 'echo 7'
run 'a job that Slurm does not know cannot be waited for' 125 '' 'gpulease: job 61 is unknown; *' \
	"$GPULEASE" --submit --after 61 true
is 'and nothing is submitted' [ "$(calls sbatch)" -eq 0 ]
echo '0123456789abcdef 5' >"$STATE/logs/62.status"
job 63
run 'a job that Slurm has forgotten' 0 7 '' "$GPULEASE" --submit --after 62,63 true
is 'is not named to sbatch' like '*--dependency=afterany:63' \
	"$(grep -o -- '--dependency=[^ ]*' "$S/calls" | tail -n 1)"
run 'one that has failed is no reason to start' 124 '' \
	'gpulease: gave up: job 62 has ended with status 5' "$GPULEASE" --submit --after-ok 62 true

# --- cancelling and signals ------------------------------------------------------------------

anew
job 71 Name=fit
job 72 Name=fit
job 73 Name="$(printf 'a\033[31mb')" UserID=54399 UserName="$(printf 'eve\033[2J')"
run 'a name of two jobs is refused where one is meant' 1 '' \
	"gpulease: 'fit' means several jobs, as 71 and 72; give an id" "$GPULEASE" --follow fit
does scancel '[ "$2" ] || exit 0'
run 'Ctrl-D at the question' 0 '' '' "$TOOLS/jobcontrol" 'see:cancel 2 jobs (71 fit, 72 fit)' 'type:^D' \
	end:1 -- "$GPULEASE" --cancel fit
is 'cancels nothing' [ "$(calls scancel)" -eq 0 ]
does scancel 'echo "scancel: error: Access/permission denied" >&2; exit 1'
[ "$(id -u)" -eq 0 ] || run 'a job of another user' 1 '' 'gpulease: job 73 belongs to eve*' \
	"$GPULEASE" --cancel 73
does scancel 'for id; do
	[ -e "$S/jobs/$id" ] && sed -i "s/^State=.*/State=CANCELLED/" "$S/jobs/$id"
done'
run 'a job that is cancelled has ended afterwards' 0 '' '' "$GPULEASE" --cancel 71
is 'its state says so' grep -qx State=CANCELLED "$S/jobs/71"
run 'one that has ended' 1 '' 'gpulease: job 71 has finished' "$GPULEASE" --cancel 71

anew
job 74 Comment=gpulease:0123456789abcdef BatchFlag=1
run 'the script of a job cannot catch KILL' 0 '' '' "$GPULEASE" --signal-job 74 KILL
is 'so it gets another signal' grep -qx "scancel -s $(kill -l PROF 2>/dev/null || echo 27) --batch 74 " "$S/calls"
job 75 BatchFlag=1
run 'a script of another program' 0 '' '' "$GPULEASE" --signal-job 75 KILL
is 'gets KILL itself' grep -qx 'scancel -s 9 --batch 75 ' "$S/calls"
rm -f "$S/jobs"/7*

# --- texts of other users ---------------------------------------------------------------------

job 76 State=PENDING Name="$(printf 'a\033[31mb')" UserID=54399 UserName="$(printf 'eve\033[2J')" \
	Reason="$(printf 'x\033[2J')"
# seen WORD…: gpulease shows the job, and no control character
seen() {
	try "$GPULEASE" "$@"
	like '*76*eve*' "$out" && [ -z "$(cat "$S/out" "$S/err" | LC_ALL=C tr -d '[:print:]\n')" ]
}
is 'control characters do not reach the terminal' seen --queue
is 'nor JSON' seen --queue --json
rm "$S/jobs/76"

# --- the foreground -------------------------------------------------------------------------

QUEUED='echo "srun: job 81 queued and waiting for resources" >&2'
STARTED='echo "srun: launching StepId=81.0 on host n1, 1 tasks: 0" >&2
echo "srun: launch/slurm: launch_p_step_launch: StepId=81.0 tasks started" >&2'
HOLDS='trap "echo >\"\$S/told\"; exit 143" TERM; echo $$ >"$S/srun.pid"; sleep 100 & wait'

job 81 State=PENDING Reason=BadConstraints
does srun "$QUEUED; $HOLDS"
run 'a job that can never start is given up' 125 '' \
	'gpulease: Slurm cannot start job 81: *no node has what it asks for' timeout 20 "$GPULEASE" true
job 81 State=PENDING Reason=Resources
run '--max-wait ends srun' 124 '' '*gpulease: gave up after 1s: *' \
	timeout 20 "$GPULEASE" --max-wait 1s true
is 'which cancels the job' [ -e "$S/told" ]

job 81 State=NODE_FAIL
does srun "$STARTED"
run 'srun exits with 0 although the node has failed' 125 '' \
	'gpulease: job 81 was lost: its node has failed (n1)' "$GPULEASE" true
: >"$S/silent"
run 'or although it is not known how the job has ended' 125 '' '*' "$GPULEASE" true
does srun "$STARTED; exit 3"
run 'a failure of the command is known without that' 3 '' '*' "$GPULEASE" true
rm "$S/silent"
does srun "$STARTED
$HOLDS"
job 81
rm -f "$S/srun.pid"
"$GPULEASE" true 2>"$S/signals.err" &
waiter=$!
started="$started $waiter"
wait_until '[ -s "$S/srun.pid" ]'
anew
does scancel 'sed -i "s/^State=.*/State=CANCELLED/" "$S/jobs/81"; kill -TERM "$(cat "$S/srun.pid")"'
kill -USR1 "$waiter"
wait "$waiter"
rc=$?
is 'a signal goes to the step' grep -qxE 'scancel --signal=(USR1|10) 81.0 ' "$S/calls"
is 'and the status is that of srun' [ $rc -eq 143 ]

does srun "$STARTED
trap 'echo ended >\"\$S/quit\"; exit' QUIT; $HOLDS"
rm -f "$S/srun.pid"
"$GPULEASE" true 2>/dev/null &
waiter=$!
started="$started $waiter"
wait_until '[ -s "$S/srun.pid" ]'
kill -KILL "$waiter"
is 'srun does not outlive a gpulease that is killed' wait_until '[ -e "$S/quit" ]'

does srun 'echo "srun: Job 82 to start at 4102444800 using 1 processors on nodes n1 in partition main" >&2'
run '--dry-run of a job that would wait' 124 'would wait; starts * on n1' '' "$GPULEASE" --dry-run true
does srun 'echo "srun: Job 82 to start at 1000000000 using 1 processors on nodes n1 in partition main" >&2'
run '--dry-run of a job that would start' 0 'would start now on n1' '' "$GPULEASE" --dry-run true

# --- a batch ----------------------------------------------------------------------------------

batch() {
	timeout 50 "$GPULEASE" --batch "$S/jobs.txt"
}
echo 'false' >"$S/jobs.txt"
anew
does sbatch 'echo 91'
job 91 State=FAILED exit_code=768
run 'a line has the status of its job' 3 '*1 failed*' '' batch
is 'and was submitted once' [ "$(calls sbatch)" -eq 1 ]

anew
echo '[fail-retries=2] false' >"$S/jobs.txt"
rm -rf "$S/jobs.txt.logs"
does sbatch 'echo 95'
job 95 State=CANCELLED EndTime=1020
run 'a line whose job was cancelled' 143 '*' '' batch
is 'is not tried again' [ "$(calls sbatch)" -eq 1 ]
does sbatch 'echo 91'

# entry TOKEN: the file of a line with this token, as a process that was killed leaves it
entry() {
	printf '%s\0000\0\0000\0000\0%s/92.log\0gpulease\0--submit\0--\0/bin/sh\0-c\0true\0' "$1" "$S" \
		>"$S/1.slurm"
}

# member: the process that stands for the job of Slurm, below a shell of its own
member() {
	sh -c '"$1" member "$2" $$; exit $?' sh "${GPULEASE%/*}/gpulease-engine" "$S/1.slurm"
}

anew
entry 0123456789abcdef
job 92 State=FAILED exit_code=1024 Comment=gpulease:0123456789abcdef
run 'a line that may have a job has the status of that' 4 '' '' member
is 'and is not submitted again' [ "$(calls sbatch)" -eq 0 ]
anew
entry fedcba9876543210
run 'a line that has none' 3 '' '' member
is 'is submitted' [ "$(calls sbatch)" -eq 1 ]
is 'with its token' grep -q 'sbatch .*--comment=gpulease:fedcba9876543210 ' "$S/calls"

# begin_member ID: the member $member waits for this job, below the shell $parent
begin_member() {
	anew
	job "$1" Comment=gpulease:0123456789abcdef
	entry 0123456789abcdef
	member 2>/dev/null &
	started="$started $!"
	wait_until "grep -q '^$1' '$STATE/poll.answer'"
	member=$(pgrep -f "engine member $S/1.slurm ")
	parent=$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$member/stat")
}
rm "$S/jobs/92"
begin_member 93
does scancel 'sed -i "s/^State=.*/State=CANCELLED/" "$S/jobs/93"'
kill -TERM "$member"
is 'a member that is told to end cancels its job' wait_until 'grep -qx "scancel 93 " "$S/calls"'
is 'and ends after it' wait_until '[ ! -e "/proc/$member" ]'
rm "$S/jobs/93"
begin_member 94
kill -KILL "$parent"
is 'no member outlives its parent' wait_until '[ ! -e "/proc/$member" ]'
is 'the job goes on' [ "$(calls scancel)" -eq 0 ]

place=$STATE/state
[ -d "$place" ] || place=/var/tmp/gpulease-$(id -u)/slurm-answers$$
chmod 0777 "$place"
run 'a folder in which every user may write is not used' 125 '' "gpulease: cannot make '$place': *" batch
rm -rf "$place"
finish
