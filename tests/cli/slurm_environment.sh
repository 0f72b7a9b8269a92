#!/bin/sh
# gpulease inside a Slurm allocation.  Variables imitate the allocation, so no Slurm is needed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slurm_lib.sh
. "$CLI/slurm_lib.sh"
scratch
with_driver
unset GPULEASE_DIR
gpus 4
mkdir -m 0700 "$S/shared"
echo "directory = $S/shared" >"$S/conf"
plain=$GPULEASE
configured
host=$(uname -n)
own=$XDG_STATE_HOME/gpulease

# slurm JOB [NAME=VALUE…] COMMAND…: inside the allocation JOB of the cluster c
slurm() {
	slurm_job=$1
	shift
	env SLURM_JOB_ID="$slurm_job" SLURM_CLUSTER_NAME=c timeout 60 "$@"
}

# in_job JOB NAME=VALUE GPULEASE-ARGUMENT…
in_job() {
	in_job_id=$1 in_job_set=$2
	shift 2
	slurm "$in_job_id" env "$in_job_set" "$GPULEASE" "$@"
}

# uses TEXT DIRECTORY COMMAND…: a result, good if gpulease uses that state directory
uses() {
	uses_text=$1 uses_dir=$2
	shift 2
	run "$uses_text" 0 "*\"state_directory\": \"$uses_dir\"*" '' "$@" --status --json
}

# --- which GPUs ----------------------------------------------------------------------------

seen='echo $CUDA_VISIBLE_DEVICES'
none='gpulease: Slurm job 7 has no GPU here: *'
run 'a job in an allocation without a GPU is refused' 125 '' "$none" slurm 7 "$GPULEASE" true
is 'the refusal in an allocation without a GPU is one line' [ "$(echo "$err" | wc -l)" -eq 1 ]
run 'a job in a step without a GPU is refused' 125 '' '*step of Slurm job 7 has no GPU*--overlap*' \
	in_job 7 SLURM_STEP_ID=0 true
run 'a share in an allocation without a GPU is refused' 125 '' "$none" slurm 7 "$GPULEASE" -n 0.5 true
run '--submit in an allocation without a GPU is refused' 125 '' "$none" slurm 7 "$GPULEASE" --submit true
run '--lease-only in an allocation without a GPU is refused' 125 '' "$none" slurm 7 "$GPULEASE" --lease-only --pid $$
echo true >"$S/list"
run '--batch in an allocation without a GPU is refused' 125 '*no GPU here*' '' slurm 7 "$GPULEASE" --batch "$S/list"
run '-n 0 works in an allocation without a GPU' 0 '' '' slurm 7 "$GPULEASE" -n 0 true
run '--status works in an allocation without a GPU' 0 '*Card 0*' '' slurm 7 "$GPULEASE" --status
for name in CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS SLURM_JOB_GPUS; do
	run "a job gets the GPUs of $name" 0 2,3 '' in_job 7 $name=2,3 -n 2 sh -c "$seen"
	run "a job gets no other GPUs than those of $name" 125 '' "*$name 2,3 leaves only 2 of 4" in_job 7 $name=2,3 -n 3 true
done
run 'CUDA_VISIBLE_DEVICES counts more than SLURM_JOB_GPUS' 0 1,2 '' slurm 7 env CUDA_VISIBLE_DEVICES=1,2 \
	SLURM_JOB_GPUS=0 "$GPULEASE" -n 2 sh -c "$seen"
run 'an empty CUDA_VISIBLE_DEVICES does not count' 0 3 '' slurm 7 env CUDA_VISIBLE_DEVICES= SLURM_STEP_GPUS=3 \
	SLURM_JOB_GPUS=0 "$GPULEASE" sh -c "$seen"
run 'numbers of the node are translated if all its GPUs are visible' 0 0,1,2,3 '' \
	in_job 7 SLURM_JOB_GPUS=4-7 -n 4 sh -c "$seen"
run 'numbers of GPUs that do not exist are refused' 125 '' '*SLURM_JOB_GPUS 6,7 leaves none of 4' \
	in_job 7 SLURM_JOB_GPUS=6,7 true
run 'NoDevFiles of older Slurm means no GPU' 125 '' '*CUDA_VISIBLE_DEVICES NoDevFiles leaves none of 4' \
	in_job 7 CUDA_VISIBLE_DEVICES=NoDevFiles true

# --- not on its nodes ----------------------------------------------------------------------

login="gpulease: this host is not a node of Slurm job 7 (n[[]1-4[]]), *"
run 'salloc on a login node is refused' 125 '' "$login" in_job 7 SLURM_JOB_NODELIST='n[1-4]' true
run 'salloc on a login node is refused despite CUDA_VISIBLE_DEVICES' 125 '' "$login" slurm 7 \
	env CUDA_VISIBLE_DEVICES=0 SLURM_JOB_NODELIST='n[1-4]' "$GPULEASE" true
run '-n 0 works in salloc on a login node' 0 '' '' in_job 7 SLURM_JOB_NODELIST='n[1-4]' -n 0 true
run 'a node may be known to Slurm by another name' 0 0 '' slurm 7 env CUDA_VISIBLE_DEVICES=0 SLURMD_NODENAME=n1 \
	SLURM_JOB_NODELIST='n[1-4]' "$GPULEASE" sh -c "$seen"
run 'a node may be in the list of nodes' 0 0 '' slurm 7 env CUDA_VISIBLE_DEVICES=0 \
	SLURM_JOB_NODELIST="a,$host,b" "$GPULEASE" sh -c "$seen"

# --- which directory -----------------------------------------------------------------------

mine=$own/slurm-7-c@$host
uses 'an allocation has a state directory of its own' "$mine" slurm 7 "$GPULEASE"
is 'only its user can enter that directory' [ "$(stat -c %a "$mine")" = 700 ]
run '--show-config names the directory of the allocation' 0 "*directory = $mine *SLURM_JOB_ID*" '' slurm 7 "$GPULEASE" --show-config
run '--doctor names the directory and the GPUs of the allocation' 0 "*slurm*'$mine', and the GPUs 0,1 of SLURM_JOB_GPUS*" '*' \
	in_job 7 SLURM_JOB_GPUS=0,1 --doctor
run '-v names the directory of the allocation' 0 '' "gpulease: Slurm job 7 *'$mine'*" in_job 7 SLURM_JOB_GPUS=0,1 -v -n 0 true
uses 'outside an allocation the shared directory is used' "$S/shared" "$GPULEASE"
uses 'a SLURM_JOB_ID that is no number does not count' "$S/shared" env SLURM_JOB_ID=x "$GPULEASE"
mkdir -m 0700 "$S/named"
uses '--dir counts more than the allocation' "$S/named" slurm 7 "$GPULEASE" --dir "$S/named"
uses 'GPULEASE_DIR counts more than the allocation' "$S/named" in_job 7 GPULEASE_DIR="$S/named"
run 'simulated GPUs work in an allocation without a GPU' 0 0 '' slurm 7 "$GPULEASE" --sim 2 sh -c "$seen"
printf 'directory = %s\nslurm-allocation = shared\n' "$S/shared" >"$S/shared.conf"
uses 'slurm-allocation = shared' "$S/shared" slurm 7 "$plain" --config "$S/shared.conf"
run 'slurm-allocation = shared uses all GPUs' 0 0,1,2,3 '' slurm 7 "$plain" --config "$S/shared.conf" -n 4 sh -c "$seen"
run '-v says that slurm-allocation = shared chose the directory' 0 '' "*'$S/shared' because the configuration says slurm-allocation = shared*" \
	slurm 7 "$plain" --config "$S/shared.conf" -v -n 0 true
run 'an allocation has its own directory without a shared one, too' 0 "*$mine*" '' slurm 7 "$plain" --status --json

# --- two allocations ------------------------------------------------------------------------

# begin_in JOB NAME ARGUMENT…: begin, inside the allocation JOB
begin_in() {
	begin_in_job=$1
	shift
	export SLURM_JOB_ID="$begin_in_job" SLURM_CLUSTER_NAME=c SLURM_JOB_GPUS=0
	begin "$@"
	unset SLURM_JOB_ID SLURM_CLUSTER_NAME SLURM_JOB_GPUS
}
begin_in 21 first -n 1
wait_until 'runs first' || bail "first: $(cat "$S/first.err")"
begin_in 21 second -n 1
wait_until "[ -s '$S/second.err' ]" || bail 'second does not wait'
begin_in 22 other -n 1
is 'another allocation has its own GPUs' wait_until 'runs other'
run '--queue in an allocation shows its jobs' 0 '*needs 1 GPU*' '' slurm 21 "$GPULEASE" --queue
run '--queue does not show the jobs of another allocation' 0 '' 'no job waits*' slurm 22 sh -c '"$1" --queue >&2' - "$GPULEASE"
run '--queue outside does not show the jobs of an allocation' 0 '' 'no job waits*' sh -c '"$1" --queue >&2' - "$GPULEASE"
run '--cancel in an allocation' 0 '' '*' slurm 21 "$GPULEASE" --cancel 2
ended second
is '--cancel ends the job of this allocation' [ "$rc" -ne 0 ]
is '--cancel ends no job of another allocation' runs other
release_all first other
run '--history works in an allocation' 0 '*' '' slurm 21 "$GPULEASE" --history
try in_job 7 SLURM_JOB_GPUS=0 --submit echo logged
submitted=$out
run '--wait-for waits for a job of the allocation' 0 '' '*' slurm 7 "$GPULEASE" --wait-for "$submitted"
run '--log finds the log of a job of the allocation' 0 '*logged*' '*' slurm 7 "$GPULEASE" --log "$submitted"
is 'logs are in a folder named after the allocation' \
	[ -e "$own/logs/slurm-7-c@$host/$submitted.log" ]

# Each sees two of the four cards, by the numbers 0 and 1.
cards 4
eight='n=0
	while [ $n -lt 8 ]; do
		"$1" -n 1 on_card &
		n=$((n + 1))
	done
	wait'
slurm 31 env TEST_CARDS='0 1' CUDA_VISIBLE_DEVICES=0,1 SLURM_JOB_GPUS=0,1 \
	sh -c "$eight" - "$GPULEASE" 2>"$S/31.err" &
started="$started $!" one=$!
slurm 32 env TEST_CARDS='2 3' CUDA_VISIBLE_DEVICES=0,1 SLURM_JOB_GPUS=2,3 \
	sh -c "$eight" - "$GPULEASE" 2>"$S/32.err" &
started="$started $!"
wait $one $! # timeout ends what hangs
is 'two allocations with two cards each: 16 jobs on their own cards' cards_were_right 16
run 'eight jobs run without CUDA_VISIBLE_DEVICES' 0 '' '*' slurm 33 env TEST_CARDS='2 3' SLURM_JOB_GPUS=2,3 \
	sh -c "$eight" - "$GPULEASE"
is 'without CUDA_VISIBLE_DEVICES: 8 jobs on their own cards' cards_were_right 8

# --- a live lease comes first ---------------------------------------------------------------

inside="$GPULEASE --status --json"
uses_inside() { # TEXT COMMAND…: a process in a lease of the machine uses the machine's directory
	inside_text=$1
	shift
	run "$inside_text" 0 "*\"state_directory\": \"$S/shared\"*" '*' "$GPULEASE" -n 1 "$@"
}
# shellcheck disable=SC2086 # words
{
	uses_inside 'inside a lease SLURM_JOB_ID does not change the state directory' env SLURM_JOB_ID=7 $inside
	if [ "$(id -u)" -eq 0 ]; then
		uses_inside 'a lease is recognized by the token' setpriv --ruid 0 env SLURM_JOB_ID=7 \
			prlimit --locks=unlimited setsid -f -w $inside
	else
		skip 'a lease is recognized by the token' 'not root'
	fi
	uses_inside 'a lease is recognized by the tag' env -u GPULEASE_TOKEN SLURM_JOB_ID=7 $inside
	uses_inside 'a lease is recognized by an ancestor' env -u GPULEASE_TOKEN SLURM_JOB_ID=7 \
		prlimit --locks=unlimited sh -c "$inside; true"
}
run 'gpulease inside that lease is a step of it' 0 1 '*' "$GPULEASE" --gpu-ids 1 env SLURM_JOB_ID=7 SLURM_JOB_GPUS=3 \
	"$GPULEASE" sh -c "$seen"
run 'SLURM_JOB_ID set to the id of a gpulease job does not count' 0 "*\"$S/shared\"*" '*' "$GPULEASE" -n 0 \
	sh -c 'SLURM_JOB_ID=$GPULEASE_ID "$1" --status --json' - "$GPULEASE"
try slurm 41 "$GPULEASE" -n 0 true
run 'a job whose id equals SLURM_JOB_ID uses its allocation' 0 "*\"$own/slurm-2-c@$host\"*" '*' \
	in_job 2 SLURM_JOB_GPUS=1 sh -c '"$0" -n 0 true; exec "$0" -n 0 "$0" --status --json' \
	"$GPULEASE"

# --- what the command gets ------------------------------------------------------------------

run 'variables that srun needs stay, those of tasks and steps go' 0 'SLURMD_NODENAME=n1
SLURM_CLUSTER_NAME=c
SLURM_CONF=/c
SLURM_CONF_SERVER=h
SLURM_JOBID=7
SLURM_JOB_ID=7
SLURM_JWT=j' '' slurm 7 env SLURM_CONF=/c SLURM_CONF_SERVER=h SLURM_JWT=j SLURM_JOBID=7 \
	SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_STEP_GPUS=0 SLURM_JOB_GPUS=0 \
	SLURM_JOB_NODELIST=n1 SLURMD_NODENAME=n1 "$GPULEASE" sh -c 'env | grep ^SLURM | sort'
run 'outside an allocation only SLURM_CONF stays' 0 'SLURM_CONF=/c' '' env SLURM_CONF=/c SLURM_PROCID=0 SLURM_JOBID=7 \
	"$GPULEASE" sh -c 'env | grep ^SLURM | sort'
run 'a job in an allocation can submit a job' 0 '[1-9]*' '' in_job 7 SLURM_JOB_GPUS=2 \
	sh -c '"$0" --submit sh -c "echo \$CUDA_VISIBLE_DEVICES >$1.new; mv $1.new $1"' \
	"$GPULEASE" "$S/inner"
is 'the submitted job gets the GPUs of the allocation' wait_until "[ \"\$(cat '$S/inner' 2>/dev/null)\" = 2 ]"

# --- directories of ended jobs ---------------------------------------------------------------

old() { # JOB: leaves the directory of a Slurm job that has ended, in which a job ran
	try in_job "$1" SLURM_JOB_GPUS=0 true
	[ -d "$own/slurm-$1-c@$host" ] || bail "no directory of $1: $err"
}
gone() { [ ! -e "$own/slurm-$1-c@$host" ]; }
old 51
old 52
is 'the directory of an ended Slurm job is removed' gone 51
: >"$own/slurm-52-c@$host/thesis.txt"
old 53
is 'a foreign file in the directory of an ended job is kept' [ -e "$own/slurm-52-c@$host/thesis.txt" ]
is 'a directory with a foreign file is kept whole' [ -e "$own/slurm-52-c@$host/tickets" ]
rm "$own/slurm-52-c@$host/thesis.txt"
SLURM_JOB_ID=53 sleep 1000 &
started="$started $!"
old 54
is 'the directory is kept while a process of the Slurm job runs' [ -e "$own/slurm-53-c@$host/tickets" ]
kill $! && wait $! 2>/dev/null
# a lease whose process does not have SLURM_JOB_ID in its environment
env SLURM_JOB_ID=54 SLURM_CLUSTER_NAME=c SLURM_JOB_GPUS=0 "$GPULEASE" \
	env -u SLURM_JOB_ID sleep 1000 &
started="$started $!"
becomes $! sleep
old 55
is 'the directory is kept while it has a live lease' [ -e "$own/slurm-54-c@$host/tickets" ]
kill $! && wait $! 2>/dev/null
long=$(head -c 100000 /dev/zero | tr '\0' x)
env -i "A=$long" "B=$long" "C=$long" SLURM_JOB_ID=55 "$(command -v sleep)" 1000 &
started="$started $!"
becomes $! sleep
old 58
is 'the directory is kept while an environment is too long to search' [ -e "$own/slurm-55-c@$host/tickets" ]
kill $! && wait $! 2>/dev/null
ln -s "$S/named" "$own/slurm-56-c@$host"
mkdir -p "$S/named/gpu" && : >"$S/named/tickets"
old 57
is 'a link in the place of a directory is not followed' [ -e "$S/named/tickets" ]
rm "$own/slurm-56-c@$host"
is 'the directories of all other ended jobs are removed' [ "$(echo "$own"/slurm-5*)" = "$own/slurm-57-c@$host" ]
rm -r "$own"/slurm-57-*
n=60
while [ $n -lt 75 ]; do
	mkdir -m 0700 "$own/slurm-$n-c@$host"
	n=$((n + 1))
done
old 80
# shellcheck disable=SC2012 # plain names
is 'at most eight directories are removed at a time' [ "$(ls -d "$own"/slurm-[67]?-c@* | wc -l)" -eq 7 ]
finish
