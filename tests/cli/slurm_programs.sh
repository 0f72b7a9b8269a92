#!/bin/sh
# squeue, scancel and scontrol: what they print, what they end, and how they exit.  The lines and
# exit statuses are those of Slurm 22.05, unless a comment says otherwise.
# shellcheck disable=SC2016 # code of scripts

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# As it is installed, with the links.
installed() {
	mkdir -p "$S/bin" "$S/lib/gpulease/bin"
	install -m 0755 "$GPULEASE" "$S/bin/gpulease"
	install -m 0755 "$built-slurm" "$S/lib/gpulease/gpulease-slurm"
	for each in sbatch scancel squeue scontrol; do
		ln -sfn ../gpulease-slurm "$S/lib/gpulease/bin/$each"
	done
}
built=$(dirname "$GPULEASE")/gpulease
[ -e "$built-slurm" ] || built=${TOOLS%/tests/tools}/gpulease
installed
PATH=$S/lib/gpulease/bin:$PATH
for each in $(env | sed -n 's/^\(\(SQUEUE\|SCANCEL\|SBATCH\)_[A-Z_]*\)=.*/\1/p'); do
	unset "$each"
done
cd "$S" || bail "no directory"
me=$(id -un)
stranger=root # has no job
[ "$(id -u)" -ne 0 ] || stranger=$(id -un 65534)
node=$(hostname -s 2>/dev/null || hostname)
node=${node%%.*}

# listed ARGUMENT…: the ids that squeue lists, in one line
listed() {
	squeue -h -o %i "$@" | tr '\n' ' '
}

# --- scontrol show hostnames -------------------------------------------------------------

run 'hostnames expands a list' 0 'n1
n2
n7
m08
m09
m10' '' scontrol show hostnames 'n[1-2,7],m[08-10]'
run 'each combination of two brackets' 0 'a1-3b
a1-4b
a2-3b
a2-4b' '' scontrol show hostnames 'a[1-2]-[3-4]b'
run 'the default is SLURM_JOB_NODELIST' 0 'q1
q2' '' env 'SLURM_JOB_NODELIST=q[1-2]' SLURM_NODELIST=r1 scontrol show hostnames
run 'or SLURM_NODELIST' 0 r1 '' env SLURM_JOB_NODELIST= SLURM_NODELIST=r1 scontrol show hostnames
run 'hostnames may be abbreviated, and options go before or after' 0 'a
b' '' scontrol -o show -a hostname a,b
# Slurm says these two as well, but exits with 0
run 'without a list it says so' 1 '' 'scontrol: error: host list is empty' scontrol show hostnames
run 'a malformed list is refused as a whole' 1 '' 'scontrol: error: Invalid hostlist: a,n?3-1?: *' \
	scontrol show hostnames 'a,n[3-1]'
run 'more than 65536 hosts are too many' 1 '' '*: it means too many hosts' \
	scontrol show hostnames 'n[1-40000],m[1-40000]'
run 'two lists are too many' 1 '' 'too many arguments for keyword:show' scontrol show hostnames a b
run 'hostlist folds names' 0 'a[[]1-3],b7' '' scontrol show hostlist a1,a2,a3,b7
run 'an unknown word' 1 '' 'invalid entity:foo for keyword:show' scontrol show foo
run 'an unknown command' 1 '' 'invalid keyword: foo' scontrol foo
run 'a command without a meaning here says what to do instead' 1 '' \
	'scontrol: error: hold: a job is held from the start, *' scontrol hold 1
run 'update changes a limit alone' 1 '' 'scontrol: error: update: only a time limit can be changed, *' \
	scontrol update jobid=1 timelimit=1
run 'of a job' 1 '' 'scontrol: error: update: only *' scontrol update timelimit=+1 jobname=x
run 'release needs a job' 1 '' 'too few arguments for keyword:release' scontrol release
run 'show nodes, too' 1 '' 'scontrol: error: show nodes: write gpulease --status*' scontrol show nodes
run 'an output that cannot be written is an error' 1 '' 'scontrol: error: cannot write the output: *' \
	sh -c 'scontrol show hostnames a >/dev/full'
run 'gpulease-slurm squeue is squeue' 0 '*JOBID*' '' "$S/lib/gpulease/gpulease-slurm" squeue

# --- squeue ------------------------------------------------------------------------------

head='             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)'
run 'squeue without jobs prints its heading' 0 "$head" '' squeue
run '-h prints nothing' 0 '' '' squeue -h

holder big --name 'a long name' -n 8 -t 60
waiter late --name late -n 2 -t 2880
waiter after --after 1 -n 1
waiter behind --name late -n 8
user=$(printf '%8.8s' "$me")
run 'squeue lists the jobs as Slurm does' 0 "$head
                 2  gpulease     late $user PD       0:00      1 (Resources)
                 3  gpulease       sh $user PD       0:00      1 (Dependency)
                 4  gpulease     late $user PD       0:00      1 (*)
                 1  gpulease a long n $user  R       ?:??      1 $node" '' squeue
run '-l prints the date, and is wider' 0 "* 20??
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
                 1  gpulease a long n $user  RUNNING       ?:??   1:00:00      1 $node" '' squeue -l -j 1
run '-h with -l leaves the date out' 0 '*PENDING       0:00 2-00:00:0 *' '' squeue -hl -j2
run '-o chooses the fields' 0 'JOBID|  NAME|USE|STATE|TRES_PER_NODE|
1|a long|'"$(printf '%3.3s' "$me")"'|RUNNING|gres:gpu:8|' '' squeue -j 1 -o '%i|%.6j|%3u|%T|%b|%'
run 'an unknown field is named, and stands for itself' 0 '1 %!' \
	'squeue: error: Invalid job format specification: !' squeue -h -j 1 -o '%i %!'
run 'a field without a letter, too' 0 '1 %51' \
	'squeue: error: Invalid job format specification: ' squeue -h -j 1 -o '%i %5%%%i'
run 'a % before another one means nothing' 0 'a long name1' '' squeue -h -j 1 -o '%j%%%i%%'
run 'fields of which gpulease knows nothing' 0 \
	'(null) * * * 0 (null) N/A N/A 1 0 (null) OK 0 <> <> <> (null) 0 *:*:*' '' \
	squeue -h -j 1 -o '%E %H %I %J %O %W %X %Z %c %d %f %h %m <%n> <%s> <%x> %w %y %z'
run 'the group, the dependency and the priority' 0 \
	"$(id -g) $(id -gn) afterany:1(unfulfilled) 0.00000000000000" '' \
	squeue -h -j 3 -o '%G %g %E %p'
for each in A B C D E F G H I J K L M N O P Q R S T U V W X Y Z \
	a b c d e f g h i j k l m n o p q r s t u v w x y z; do
	formats="${formats-}%$each"
done
run 'each letter is a field' 0 '*' '' squeue -h -j 1 -o "$formats"
is '-j: several ids, twice or missing' [ "$(listed -j 1,99,2,1)" = '2 1 ' ]
is 'the list of -j may be joined, or follow other options' \
	[ "$(listed -j1)$(listed --jobs=1)$(listed --job 1)$(squeue -j -h -o %i 1) " = '1 1 1 1 ' ]
is 'a long option may be abbreviated, also one with two names' \
	[ "$(squeue --use "$me" --form %i --noh --stat R)" = 1 ]
is '-u: names and numbers' [ "$(listed -u "$me,$(id -u)")" = '2 3 4 1 ' ]
is '--me' [ "$(listed --me)" = '2 3 4 1 ' ]
is '-n: several names' [ "$(listed -n "late,a long name")" = '2 4 1 ' ]
is '-t: names and letters, in either case' [ "$(listed -t r)$(listed -t pending,CG)" = '1 2 3 4 ' ]
is 'filters are combined' [ "$(listed --me -n late -t PD -j 1,2,3)" = '2 ' ]
is 'the variables of squeue count' \
	[ "$(SQUEUE_STATES=R SQUEUE_FORMAT='%i' squeue -h)$(SQUEUE_USERS=$stranger squeue -h)" = 1 ]
is 'a script counts the lines of a job' [ "$(squeue -h -j 1 | wc -l)" -eq 1 ]
run 'an empty list means no job' 0 '' '' squeue -h -j ''
run 'so does an empty list of users' 0 '' '' squeue -h -u ''
run 'an id that no job has' 1 '' 'slurm_load_jobs error: Invalid job id specified' squeue -j 99
run 'with others it is no error' 0 '' '' squeue -h -j 98,99
run 'what is no id' 1 '' 'squeue: error: Invalid job id: foo' squeue -j 1,foo,2
run 'a user that does not exist' 0 '' 'squeue: error: Invalid user: no-such' squeue -h -u no-such
run 'a state that does not exist' 1 '' 'squeue: error: Invalid job state specified: foo
squeue: error: Valid job states include: PENDING,RUNNING,*' squeue -t foo
run 'an unknown option' 1 '' "squeue: unrecognized option*foo*
Try \"squeue --help\" for more information" squeue --foo
run 'a word too many' 1 '' 'squeue: error: Unrecognized option: bar*' squeue bar
run '-O is refused' 1 '' 'squeue: error: --Format: write -o *' squeue -O name
run '-i is refused' 1 '' 'squeue: error: --iterate: use watch(1) *' squeue -i 5
run '--start lists when waiting jobs start' 0 \
	"*2  gpulease     late $user PD 20??-??-??T??:??:??      1 $node *(Resources)" '' \
	squeue --start -h -j 2
run 'show job describes one' 0 "JobId=1 JobName=a long name
   UserId=$me($(id -u))
*JobState=RUNNING Reason=None*RunTime=00:0?:?? TimeLimit=01:00:00*NodeList=$node*
   TresPerNode=gres:gpu:8" '' scontrol show job 1
run 'in one line' 0 "JobId=2 JobName=late UserId=*JobState=PENDING Reason=Resources *" '' \
	scontrol show job=2 -o
is 'show job describes all' [ "$(scontrol -o show jobs | wc -l)" -eq 4 ]
run 'show job of no job' 1 '' 'slurm_load_jobs error: Invalid job id specified' scontrol show job 99

# --- scancel -----------------------------------------------------------------------------

run 'scancel without jobs' 1 '' 'scancel: error: No job identification provided' scancel
for each in '' 0 foo 1foo 1.0 1-3 mine all 1,foo; do
	run "what is no id ends nothing: <$each>" 1 '' 'scancel: error: Invalid job id *' scancel 1 "$each"
done
run 'a user that does not exist' 1 '' 'scancel: error: Invalid user name: no-such' scancel -u no-such
run 'an empty user' 1 '' 'scancel: error: Invalid user name: ' scancel -u ''
run 'a user without jobs: nothing is ended' 0 '' '' scancel -u "$stranger"
run 'nor with the id of a job of this user' 0 '' '' scancel -u "$stranger" 1
run 'an empty name' 0 '' '' scancel -n ''
run 'a name that no job has' 0 '' '' scancel -n no-such
run 'a filter that gpulease does not have' 1 '' 'scancel: error: --partition: *' scancel -p gpulease
run 'also as a variable' 1 '' 'scancel: error: SCANCEL_PARTITION: *' env SCANCEL_PARTITION=a scancel 1
run 'a state that jobs are not in' 0 '' '' scancel -t PD 1
run 'a state that does not exist' 1 '' 'Invalid job state specified: foo
Valid job states are PENDING, RUNNING, and SUSPENDED' scancel -t foo
run 'an unknown signal' 1 '' 'Unknown job signal: foo' scancel -s foo 1
run 'an id and filters that exclude each other' 0 '' '' scancel -n late 1
run 'an id that no job has' 0 '' '' scancel 99
run '-v says so' 0 '' 'scancel: error: Kill job error on job id 99: Invalid job id specified' scancel -v 99
run 'with filters it is an error' 1 '' \
	'scancel: error: Kill job error on job id 99: Invalid job id specified' scancel -n late 99
run 'and with a signal' 1 '' '*job id 99: Invalid job id specified' scancel -s TERM 99
run '-Q says nothing' 1 '' '' scancel -Qb 99
run 'tasks of arrays and filters' 1 '' 'scancel: error: a task of an array is named *' \
	scancel -t PD 1_2
run '-i asks; the end of stdin means no' 0 \
	'Cancel job_id=1 name=a long name partition=gpulease ?y/n??*' '' scancel -i 1
run '-i: no' 0 'Cancel job_id=1 *' '' sh -c 'echo n | scancel -i 1'
is 'nothing of this has ended a job' [ "$(listed)" = '2 3 4 1 ' ]

run '-n and -t together' 0 '' '' scancel -n late -t PENDING --me
is 'end the jobs that both mean' [ "$(listed)" = '3 1 ' ]
run '-i: yes, and several ids' 1 'Cancel job_id=3 *' '*job id 99: Invalid job id specified' sh -c 'echo y | scancel -i 99 3'
is 'end that job' [ "$(listed)" = '1 ' ]
run 'scancel ends a running job' 0 '' '' scancel -Q 1
is 'it has left the queue' [ -z "$(listed)" ]
run 'it has been cancelled' 0 '1 CA CANCELLED' '' squeue -h -j 1 -t all -o '%i %t %T'
run 'a job that has ended a short time ago is no unknown id' 0 "$head" '' squeue -j 1
is '-t lists what has ended' [ "$(listed -t CA)" = '1 2 3 4 ' ]
# ExitCode=0:0 where the kernel does not report how a process has ended
run 'show job shows its end' 0 '*JobState=CANCELLED*ExitCode=0:*' '' scontrol show job 1
run 'a job that has ended' 0 '' '' scancel 1
run '-v says that it has' 0 '' '*Job/step already completing or completed' scancel -v 1
end_all

id=$(sbatch --parsable --gpus=1 -o out --wrap 'exit 3')
wait_until '[ -z "$(squeue -h)" ]' || bail 'the script does not end'
run 'a failed script is FAILED' 0 "$id wrap F" '' squeue -h -j "$id" -t F -o '%i %j %t'
run 'show job has its exit status' 0 "JobId=$id *ExitCode=3:0*" '' scontrol show job "$id"

begin asleep -n 1 --submit --name signalled
ended asleep
id=$(cat "$S/asleep.out")
wait_until 'runs asleep' || bail 'the job does not start'
run 'a signal that a job survives' 0 '' '' scancel -s CONT "$id"
is 'leaves it' [ "$(listed)" = "$id " ]
run 'a signal by name and number, to the script' 0 '' '' scancel -b --signal=10 -n signalled
wait_until '[ -z "$(squeue -h)" ]'
run 'reaches the command' 0 "JobId=$id *JobState=FAILED *ExitCode=0:10*" '' scontrol show job "$id"

# --- arrays ------------------------------------------------------------------------------

# Tasks of an array are jobs with the names N_i beside the job N.
holder array -n 0 --name sweep
N=$(id_of array)
holder task -n 1 --name "${N}_3"
task=$(id_of task)
is 'squeue lists the task of an array with the id of the array' [ "$(listed)" = "$N ${N}_3 " ]
is '-j takes the id of the task' [ "$(listed -j "${N}_3")" = "${N}_3 " ]
is '-j takes the id of the array for all' [ "$(listed -j "$N")" = "$N ${N}_3 " ]
run 'the fields of a task' 0 "$N 3 $task sweep" '' squeue -h -j "${N}_3" -o '%F %K %A %j'
run 'a task that there is not' 0 '' '' squeue -h -j "${N}_4"
run 'a task of an array that there is not' 1 '' \
	'slurm_load_jobs error: Invalid job id specified' squeue -j 99_1
run 'scancel passes the id of a task on' 0 '' '' scancel "${N}_3"
is 'which ends the task alone' [ "$(listed)" = "$N " ]
release_all array

# --- names that other users choose -------------------------------------------------------

holder hostile -n 1 --name "$(printf 'a\033[2J\nb')"
run 'no text reaches the terminal raw' 0 '*a?[[]2J?b' '' squeue -h -o %j
run 'not from scontrol' 0 '*JobName=a?[[]2J?b*' '' scontrol show job
release_all hostile

# --- other users -------------------------------------------------------------------------

if ! others_can_run; then
	skip 'the jobs of other users' "$others_why"
	finish
fi
installed
chmod 0755 "$S/bin" "$S/lib" "$S/lib/gpulease" "$S/lib/gpulease/bin"
with_driver
fresh
umask 002
chgrp 65534 "$GPULEASE_DIR"
chmod 2770 "$GPULEASE_DIR"
chmod 0777 "$FAKE_SMI_DIR"
mkdir "$S/homes"
other="setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=$S/homes/none"
nobody=$(id -un 65534)
holder root -n 1 --name both
# shellcheck disable=SC2086 # words
run 'the job of another user is not ended' 210 '' \
	'scancel: error: Kill job error on job id 1: Access/permission denied' $other scancel 1
# shellcheck disable=SC2086 # words
run 'nor by the name of its user' 210 '' '*Access/permission denied' $other scancel -u root
# shellcheck disable=SC2086 # words
run 'nor by a name that jobs of both have' 0 '' '' $other scancel -n both
# shellcheck disable=SC2086 # words
run 'nor with a state' 0 '' '' $other scancel -t R
# shellcheck disable=SC2086 # words
run 'nor by its own user, if a name of another one is given' 0 '' '' scancel -u "$nobody"
# shellcheck disable=SC2086 # words
run 'another user lists it' 0 '1 root' '' $other squeue -h -o '%i %u'
# shellcheck disable=SC2086 # words
run '--me leaves it out' 0 '' '' $other squeue -h --me
release_all root
# shellcheck disable=SC2086 # words
run 'sbatch in a home that its user cannot make names the folder and the reason' 125 '' \
	"gpulease: cannot copy the script to '$S/homes/none/.local/*': Permission denied; *set XDG_STATE_HOME *" \
	$other env -u XDG_STATE_HOME sbatch --gpus=1 --wrap true

# --- jobs that begin later, are held, or get more time ------------------------------------

printf '#!/bin/sh\n#SBATCH --hold -G 1 -J held\n#SBATCH --output=%s/held.log\necho hi\n' "$S" >"$S/held"
run 'a script is held by its line' 0 'Submitted batch job *' '' sbatch "$S/held"
held=${out##* }
run 'squeue says so' 0 "$held PD JobHeldUser" '' squeue -h -o '%i %t %r'
run 'scontrol releases it' 0 '' '' scontrol release "$held"
is 'and it runs' wait_until '[ "$(cat "$S/held.log" 2>/dev/null)" = hi ]'
run 'a script begins later' 0 'Submitted batch job *' '' sbatch --begin=now+1hour "$S/held"
later=${out##* }
run 'which the line of the script holds still' 0 "$later PD JobHeldUser" '' squeue -h -o '%i %t %r'
scontrol release "$later"
is 'squeue says that it begins later' wait_until \
	'[ "$(squeue -h -o "%i %t %r")" = "$later PD BeginTime" ]'
scancel "$later"
holder long -n 1 -t 60
run 'scontrol prolongs a limit, in minutes' 0 '' '*, 1h30m in all' scontrol update \
	"JobId=$(id_of long)" TimeLimit=+30
run 'or in hours' 0 '' '*, 2h30m in all' scontrol update timelimit=+1:00:00 "job=$(id_of long)"
run 'as squeue says' 0 '2:30:00' '' squeue -h -o %l
release_all long
finish
