# Helpers of the tests of jobs files on a cluster.  They begin after slurm_engine.
# shellcheck shell=sh disable=SC2016,SC2154 # variables of lib.sh

W=$S/jobs.txt.logs

# lines LINE…: the jobs file
lines() {
	printf '%s\n' "$@" >"$S/new"
	mv "$S/new" "$S/jobs.txt"
}

# says NAME: the command of a line that notes that it has run
says() {
	echo "echo $1 >>'$S/ran'"
}

# holds NAME: the same, and goes on until `go NAME`
holds() {
	[ -p "$S/$1.fifo" ] || mkfifo "$S/$1.fifo"
	echo "echo $1 >>'$S/ran'; read -r _ <'$S/$1.fifo'; echo $1.end >>'$S/ran'"
}

go() {
	for go_name; do
		timeout 30 sh -c 'echo >"$1"' sh "$S/$go_name.fifo" || echo "# $go_name does not wait"
	done
}

has_run() {
	for ran_name; do
		wait_until "grep -qx '$ran_name' '$S/ran'" || return 1
	done
}

# ran: what has run, sorted
ran() {
	sort "$S/ran" | tr '\n' ' ' | sed 's/ $//'
}

batch() {
	timeout 100 "$GPULEASE" --batch "$S/jobs.txt" "$@"
}

# begin_batch OPTION…: a runner in the background, $runner
begin_batch() {
	"$GPULEASE" --batch "$S/jobs.txt" "$@" >"$S/batch.out" 2>"$S/batch.err" &
	runner=$!
	started="$started $runner"
}

# runner_ends STATUS TEXT
runner_ends() {
	wait_until "! kill -0 $runner 2>/dev/null" || kill -KILL "$runner"
	wait "$runner"
	runner_rc=$?
	[ "$runner_rc" -eq "$1" ] && ok "$2" && return
	not_ok "$2" "exit status $runner_rc, not $1" "stdout: $(cat "$S/batch.out")" \
		"stderr: $(cat "$S/batch.err")"
}

clean() {
	rm -rf "$W"
	: >"$S/ran"
}

# in_slurm STATES: the names of the jobs in these states, in the order of their ids
in_slurm() {
	squeue -h --sort=i -t "$1" -o %j | tr '\n' ' ' | sed 's/ $//'
}

# processes NUMBER: the member of an entry, and with `supervisor` its parent
member_of() {
	pgrep -f "gpulease-engine member $W/$1.slurm "
}

supervisor_of() {
	ps -o ppid= -p "$(member_of "$1")" | tr -d ' '
}
