#!/bin/sh
# Preemptible jobs, which go back into the queue when a job of higher priority waits.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
conf=$S/conf
echo 'max-priority = 1000' >"$conf"
configured

cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
}

said() {
	cat "$S/$1.err"
}

# says NAME PATTERN: waits until the job has said that
says() {
	# shellcheck disable=SC2034 # for wait_until
	says_name=$1 says_text=$2
	wait_until 'like "*$says_text*" "$(said "$says_name")"'
}

# controls VERB: the number of control records of that verb (2: preempt) in the queue
controls() {
	tr '\0' '\n' <"$GPULEASE_DIR/tickets" | grep -c "^control/1 verb=$1 "
}

# begun NAME: forgets that the job has started, so that its next start can be seen
begun() {
	rm -f "$S/$1.runs"
}

back='gets the GPUs; this job goes back into the queue'

# --- there and back ----------------------------------------------------------------------

cards 1
holder low --preemptible
id=$(id_of low)
begun low
run '--dry-run names the job that would be sent back' 0 \
	"would start now on GPU 0; job $id would be sent back into the queue" '' \
	"$GPULEASE" --dry-run --priority 5 true
run '--dry-run of an equal priority waits' 124 'would wait, *' '' "$GPULEASE" --dry-run true
run '--dry-run of --immediate, which does not wait for a job that is sent back' 124 \
	'would wait, *' '' "$GPULEASE" --dry-run -I --priority 5 true
run '--immediate sends no job back' 124 '' '*not available at once*' "$GPULEASE" -I --priority 5 true
is '--dry-run sends no preemption request, nor does --immediate' [ "$(controls 2)" -eq 0 ]
begin high --priority 5
is 'a job of higher priority gets the GPU of a preemptible one' wait_until 'runs high'
is 'the preempted job says for which job it is preempted' like "*job $(id_of high), which has a higher priority, $back*" "$(said low)"
is 'the preempted job waits again under its old id' wait_until 'like "*job $id waits*" "$(said low)"'
is 'one preemption request was sent' [ "$(controls 2)" -eq 1 ]
is 'the preempted job does not run meanwhile' eval '! runs low'
release_all high
is 'the preempted job starts again' wait_until 'runs low'
is 'the preempted job keeps its id' [ "$(id_of low)" = "$id" ]
release low 7
ended low
is 'the preempted job ends with the status of its command' [ "$rc" -eq 7 ]
is 'preemption writes nothing to stdout' [ ! -s "$S/low.out" ]
try "$GPULEASE" --history
is 'the history says that it was preempted' like '*preempt*' "$out"
is 'no bell is left' wait_until '[ -z "$(ls "$GPULEASE_DIR/bell")" ] || "$GPULEASE" -n 1 -- true'

cards 1
holder low --preemptible
for again in first second third; do
	begun low
	holder high --priority 5
	release_all high
	is "a job comes back after its $again preemption" wait_until 'runs low'
done
release_all low

# --- jobs that are left alone ------------------------------------------------------------

cards 1
holder plain
waiter high --priority 5
is 'a job that is not preemptible is left alone' runs plain
release_all plain high
holder low --preemptible --priority 5
waiter same --priority 5
waiter lower
is 'a preemptible job of the same priority is left alone' runs low
is 'no preemption request was sent to that job' [ "$(controls 2)" -eq 0 ]
release_all low same lower

cards 2
holder low --preemptible --gpu-ids 0
holder plain --gpu-ids 1
run '--dry-run waits if the end of a job would not be enough' 124 'would wait, *' '' \
	"$GPULEASE" --dry-run -n 2 --priority 5 true
begin high -n 2 --priority 5
says high 'needs 2 GPUs'
is 'no request is sent to a job whose end would not be enough' [ "$(controls 2)" -eq 0 ]
is 'a job whose end would not be enough runs on' runs low
begun low
release_all plain
is 'the job is preempted when its end is enough' wait_until 'runs high'
release_all high
release_all low

# --- a limit for all ---------------------------------------------------------------------

cards 3
printf '%s\n' 'max-priority = 1000' 'all-gpus = 2' >"$conf"
holder low --preemptible -n 2
begun low
run '--dry-run foresees it for a limit, too' 0 "would start now on GPU 0; job 1 would be *" '' \
	"$GPULEASE" --dry-run --priority 5 true
begin high --priority 5
is 'a job is preempted when only a limit for all is in the way' wait_until 'runs high'
is 'one request is sent for a limit' [ "$(controls 2)" -eq 1 ]
release_all high
is 'the job preempted for a limit comes back' wait_until 'runs low'
release_all low
echo 'max-priority = 1000' >"$conf"

# --- several jobs ------------------------------------------------------------------------

cards 3
holder a --preemptible --priority 1
holder b --preemptible
begun a
begun b
run '--dry-run names no job that need not end' 0 "*; job 2 would be sent back *" '' \
	"$GPULEASE" --dry-run -n 2 --priority 5 true
begin high -n 2 --priority 5
is 'a job for two GPUs takes a free GPU and a preempted one' wait_until 'runs high'
is 'the job of the lowest priority is preempted' like "*$back*" "$(said b)"
is 'only one of two preemptible jobs is preempted' [ "$(controls 2)" -eq 1 ]
release_all high a b

cards 1
holder a --preemptible -n 0.5
holder b --preemptible -n 0.5
begun a
begun b
run '--dry-run names all jobs that would be sent back' 0 \
	"would start now on GPU 0; jobs 1,2 would be sent back into the queue" '' \
	"$GPULEASE" --dry-run --priority 5 true
begin high --priority 5
is 'all jobs on a shared GPU make room for a job that wants it alone' wait_until 'runs high'
is 'none of the preempted jobs starts meanwhile' eval '! runs a && ! runs b'
release_all high a b

cards 2
holder wide --preemptible -n 2
begun wide
begin one --priority 5 --gpu-ids 0
begin two --priority 5 --gpu-ids 1
is 'one job with two GPUs makes room for two jobs' wait_until 'runs one && runs two'
release_all one two wide

# --- in the way --------------------------------------------------------------------------

cards 1
holder low --preemptible
stop low
waiter high --priority 5
is 'a waiting job says which job is being preempted' like \
	"*needs 1 GPU, none is free; job $(id_of low) is being sent back into the queue*" \
	"$(said high)"
try "$GPULEASE" --cancel 2
ended high
wake low
is 'the request of a cancelled job is not obeyed' eval 'runs low && ! like "*$back*" "$(said low)"'
begun low
begin high --priority 5
is 'the request of the next job is obeyed' wait_until 'runs high'
release_all high low

cards 1
rm -f "$S"/stubborn.*
"$GPULEASE" --preemptible --grace 1 -- sh -c \
	'trap "" TERM; echo $$ >"$1.runs"; while :; do sleep 0.1; done' job "$S/stubborn" \
	2>"$S/stubborn.err" &
echo $! >"$S/stubborn.pid"
started="$started $!"
wait_until 'runs stubborn'
begun stubborn
begin high --priority 5
is 'a preempted job that ignores TERM is killed after its grace time' wait_until 'runs high'
kill -TERM "$(pid_of stubborn)"
ended stubborn
is 'a preempted job can be ended while it waits again' [ "$rc" -eq 143 ]
release_all high

cards 1
"$GPULEASE" --preemptible --signal USR1@1 -- sh -c 'trap "echo saved >\"$1.saved\"" USR1
	echo $$ >"$1.runs"; while :; do sleep 0.1; done' job "$S/careful" \
	2>"$S/careful.err" &
echo $! >"$S/careful.pid"
started="$started $!"
wait_until 'runs careful'
begun careful
begin high --priority 5
is 'a job with --signal is warned before it is preempted' wait_until '[ -e "$S/careful.saved" ] && runs high'
release_all high
wait_until 'runs careful'
kill -TERM "$(pid_of careful)"
ended careful

cards 1
holder low --preemptible
begin high --priority 5
wait_until 'runs high'
begun low
try "$GPULEASE" --cancel 1
ended low
is 'a preempted job can be cancelled by its id' [ "$rc" -eq 143 ]
release_all high

cards 1
holder low --preemptible
command=$(cut -d ' ' -f 1 "$S/low.runs")
kill -KILL "$(pid_of low)"
wait_until '[ ! -e "/proc/$(pid_of low)" ] || like "[ZX]" "$(process_state "$(pid_of low)")"'
waiter high --priority 5
is 'a preemptible job without its supervisor keeps its GPU' kill -0 "$command"
is 'no request is sent to a job without its supervisor' [ "$(controls 2)" -eq 0 ]
kill -KILL "$command"
is 'the GPU of that job is free when it has ended' wait_until 'runs high'
release_all high

finish
