#!/bin/sh
# kill -9 of the parent of several tasks: no process of theirs is left whose GPU another job gets.
# shellcheck disable=SC2016 # code of tasks

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
mkdir "$S/up"
export S

# The tasks, each of which writes its pid: a program; one with a child; one that leaves a process in
# a session of its own, and ends; one that ignores the signals that it can.
task_plain='echo $$ >"$S/up/$SLURM_PROCID"; exec sleep 1000'
task_child='sleep 1000 & echo $! >"$S/up/$SLURM_PROCID"; wait'
task_daemon='setsid sh -c "echo \$\$ >\"$S/up/$SLURM_PROCID\"; exec sleep 1000" & sleep 1000'
task_stubborn='trap "" HUP INT TERM; echo $$ >"$S/up/$SLURM_PROCID"; while :; do sleep 1; done'
# A set-user-ID program loses the signal that it should get at the end of its parent.
# shellcheck disable=SC2034 # killed reads it
task_setid='echo $$ >"$S/up/$SLURM_PROCID"; exec "$S/setid" 1000'

lives() {
	[ -e "/proc/$1" ] && ! like '[ZX]' "$(process_state "$1")"
}

# end_tasks: ends what tasks have left, and waits for that
end_tasks() {
	for each in $(strays); do
		kill -KILL "$each" 2>/dev/null
	done
	wait_until '[ -z "$(strays)" ]' || bail 'processes do not end'
}

# killed KIND stays/goes PROGRAM: kills the parent once both tasks run the program
killed() {
	rm -f "$S"/up/*
	eval "code=\$task_$1"
	"$GPULEASE" -Q --gpus=2 -n 2 sh -c "$code" >"$S/killed.out" 2>&1 </dev/null &
	parent=$!
	wait_until '[ -s "$S/up/0" ] && [ -s "$S/up/1" ]' || bail "no tasks: $(cat "$S/killed.out")"
	read -r first <"$S/up/0"
	becomes "$first" "$3"
	kill -KILL "$parent"
	wait "$parent" 2>/dev/null
	if [ "$2" = stays ]; then
		run "$1: while a process lives, its GPUs are given to no other job" 124 '' '*' \
			"$GPULEASE" -n 1 --immediate true
		is "$1: a process stays" lives "$first"
	else
		is "$1: no process stays" wait_until '! lives "$first"'
	fi
	end_tasks
	run "$1: then another job gets them" 0 '' '*' timeout "$DEADLINE" "$GPULEASE" -n 2 true
}
killed plain goes sleep
killed child stays sleep
killed daemon stays sleep
killed stubborn goes sh
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	install -m 4755 -o 65534 "$(command -v sleep)" "$S/setid"
	killed setid stays setid
	rm "$S/setid"
else
	skip 'setid: a set-user-ID program' 'not root'
fi

# At any time from the start on: a job that gets both GPUs meets no process of the tasks.
round=0 met='' gotten=0
while [ $round -lt "${ROUNDS-40}" ]; do
	case $((round % 4)) in
	0) code=$task_plain ;;
	1) code=$task_child ;;
	2) code=$task_daemon ;;
	3) code=$task_stubborn ;;
	esac
	"$GPULEASE" -Q --gpus=2 -n 3 sh -c "$code" >"$S/killed.out" 2>&1 </dev/null &
	parent=$!
	sleep "0.0$(((round * 7919) % 40 + 10))"
	kill -KILL "$parent"
	wait "$parent" 2>/dev/null
	if "$GPULEASE" -Q -n 2 --immediate true 2>/dev/null; then
		gotten=$((gotten + 1))
		left=$(strays)
		[ -z "$left" ] || met="$met round $round: $left;"
	fi
	end_tasks
	round=$((round + 1))
done
is "after $round kills at any time no job meets a process of the tasks; $gotten got the GPUs at once" \
	[ -z "$met" ]
[ -z "$met" ] || echo "# $met"
run 'at the end all GPUs are free' 0 '' '*' timeout "$DEADLINE" "$GPULEASE" -n 2 true
finish
