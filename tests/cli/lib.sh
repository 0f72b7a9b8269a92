# shellcheck shell=sh
# What the black-box scripts share.  They begin with `. "$(dirname "$0")/lib.sh"`.
#
# A script calls scratch first, prints results with run, is, ok, not_ok and skip, and ends
# with finish.  Times are never a result: a script waits for a condition, with a deadline
# that only a hanging program reaches.
#
#	$GPULEASE	the program under test (build/gpulease)
#	$TOOLS		the directory of the test tools ($GPULEASE's tests/tools)
#	$S		the script's own directory, removed at the end
#	$out $err $rc	what the last `run` or `try` printed, and its exit status

set -u

case ${GPULEASE:=build/gpulease} in
/*) ;;
*) GPULEASE=$PWD/$GPULEASE ;;
esac
export GPULEASE
: "${TOOLS:=$(dirname "$GPULEASE")/tests/tools}"
: "${DEADLINE:=30}"
case $0 in
*/*) CLI=$(cd "${0%/*}" && pwd) ;;
*) CLI=$PWD ;;
esac
results=0 failures=0 started='' on_exit='' S='' out='' err='' rc=0

# --- results -----------------------------------------------------------------------------

ok() {
	results=$((results + 1))
	echo "ok $results - $1"
}

# not_ok TEXT [DIAGNOSTIC…]
not_ok() {
	results=$((results + 1))
	failures=$((failures + 1))
	echo "not ok $results - $1"
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/# /'
}

# skip TEXT WHY
skip() {
	results=$((results + 1))
	echo "ok $results - $1 # SKIP $2"
}

# plan N: announces the number of results beforehand; without it, finish prints the number.
plan() {
	planned=$1
	echo "1..$1"
}

# The end of every script.
finish() {
	[ -n "${planned-}" ] || echo "1..$results"
	[ "$failures" -eq 0 ]
	exit
}

# bail WHY: ends the script as failed, because it cannot go on.
bail() {
	echo "# $*"
	exit 1
}

# is TEXT COMMAND…: a result, good if the command succeeds.
is() {
	is_text=$1
	shift
	if "$@"; then
		ok "$is_text"
	else
		not_ok "$is_text" "failed: $*"
	fi
}

# like PATTERN STRING: whether the whole string matches the shell pattern.
like() {
	# shellcheck disable=SC2254 # a pattern is what $1 is
	case $2 in
	$1) return 0 ;;
	esac
	return 1
}

# has_json TEXT VALUES PATH…: a result: the JSON in $S/out has these values at the paths
has_json() {
	has_text=$1 has_values=$2
	shift 2
	has_seen=$("$TOOLS/jsoncheck" "$@" <"$S/out" | paste -sd ' ' -)
	if [ "$has_seen" = "$has_values" ]; then
		ok "$has_text"
	else
		not_ok "$has_text" "not '$has_values': '$has_seen'" "$(head -n 40 "$S/out")"
	fi
}

# is_sanitized FILE: whether the program was built with sanitizers.  They read the environment
# and trace their own process, so a set-group-ID program hangs with them.
is_sanitized() {
	LC_ALL=C grep -aq -e __asan_init -e __ubsan_handle "$1"
}

# is_static FILE: whether the program needs no loader and no libraries.
is_static() {
	! ldd "$1" 2>/dev/null | grep -q '=>\|/ld-'
}

# --- the script's own place --------------------------------------------------------------

# Kills the processes that the script has started, and all that have its place in their environment.
end_all() {
	for end_pid in $started $(strays); do
		kill -KILL "$end_pid"
	done 2>/dev/null
	# reap the children, and wait until the other processes have gone, too
	wait
	end_tries=0
	while [ -n "$(strays)" ] && [ $((end_tries += 1)) -le 500 ]; do
		sleep 0.02
	done
	started=''
}

# Processes that run with the place of this script in their environment.
strays() (
	unset XDG_STATE_HOME # else grep would find itself
	[ -z "$S" ] || grep -lz -- "^XDG_STATE_HOME=$S/" /proc/[0-9]*/environ \
		2>/dev/null | tr -dc '0-9\n'
)

clean_up() {
	trap '' HUP INT TERM
	[ -z "$on_exit" ] || eval "$on_exit"
	end_all
	[ -z "$S" ] || rm -rf "$S"
}

# at_exit CODE: shell code to run before the processes are ended and the place is removed.
at_exit() {
	on_exit="$1
$on_exit"
}

# scratch: a place of its own, with eight simulated GPUs.
scratch() {
	S=$(mktemp -d "${TMPDIR:-/tmp}/gpulease-cli.XXXXXX") || bail "no scratch directory"
	umask 022 # the results are those of the usual umask
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# shellcheck source=tests/cli/settings_lib.sh
	. "$CLI/settings_lib.sh"
	mkdir "$S/user-home" "$S/state-home" "$S/tmp" "$S/dir" "$S/smi"
	if [ -g "$GPULEASE" ]; then # as it is installed it takes no directory from a script
		cp "$GPULEASE" "$S/gpulease"
		chmod 0755 "$S/gpulease"
		GPULEASE=$S/gpulease
	fi
	chmod 0700 "$S/dir"
	: >"$S/gpulease.conf" # instead of that of the machine
	export HOME="$S/user-home" XDG_STATE_HOME="$S/state-home" GPULEASE_SIM=8 \
		GPULEASE_CONFIG="$S/gpulease.conf"
}

# sim N[xSIZE]: this many simulated GPUs from now on.
sim() {
	unset GPULEASE_DIR
	export GPULEASE_SIM="$1"
}

# configured: from now on $GPULEASE is the same program with the configuration $S/conf.
configured() {
	printf '#!/bin/sh\nexec "%s" --config "%s" "$@"\n' "$GPULEASE" "$S/conf" >"$S/configured"
	chmod +x "$S/configured"
	GPULEASE=$S/configured
}

# delay TIME: with `configured`, how long until a job is tried again, from now on
delay() {
	printf 'retry-delay = %s\nretry-delay-max = 1h\n' "$1" >"$S/conf"
}

# allow_priorities COMMAND…: a function of this library or of the script, whose gpulease then takes
# every priority, which without a configuration only root's does.
allow_priorities() {
	allow_before=$GPULEASE
	echo 'max-priority = 1000' >"$S/conf"
	configured
	"$@"
	allow_rc=$?
	GPULEASE=$allow_before
	return $allow_rc
}

# others_can_run: from now on $GPULEASE is a copy of the program that all users can run.  Returns 1,
# with the reason in $others_why, where the script cannot start it as another user.
others_can_run() {
	others_why=
	if [ "$(id -u)" -ne 0 ]; then
		others_why='not root'
	elif ! command -v setpriv >/dev/null 2>&1; then
		others_why='setpriv is not installed'
	else
		install -m 0755 "$GPULEASE" "$S/for-all" && chmod 0711 "$S"
		GPULEASE=$S/for-all
		setpriv --reuid=65534 --regid=65534 --clear-groups "$GPULEASE" --version \
			>/dev/null 2>&1 || others_why='another user cannot run programs in TMPDIR'
	fi
	[ -z "$others_why" ]
}

# old_kernel WAY: from now on $GPULEASE is the same program as under an old kernel.  The ways are
# those of tests/tools/nopidfd.c.
old_kernel() {
	printf '#!/bin/sh\nexec "%s" %s "%s" "$@"\n' "$TOOLS/nopidfd" "$1" "$GPULEASE" >"$S/$1"
	chmod +x "$S/$1"
	GPULEASE=$S/$1
}

without_pidfds() {
	old_kernel enosys
}

# with_driver: from now on the simulated driver tests/bin/nvidia-smi, which files in $FAKE_SMI_DIR
# control, and a state directory of the script's own.
with_driver() {
	unset GPULEASE_SIM
	export GPULEASE_DIR="$S/dir" FAKE_SMI_DIR="$S/smi"
	case :$PATH: in
	*":$S/driver:"*) ;;
	*)
		# a copy, as other users may have no way into the clone
		mkdir "$S/driver"
		install -m 0755 "$CLI/../bin/nvidia-smi" "$S/driver/nvidia-smi"
		PATH=$S/driver:$PATH
		;;
	esac
}

# gpus N: the driver shows N idle GPUs of 80 GiB
gpus() {
	gpu=0
	while [ "$gpu" -lt "$1" ]; do
		echo "$gpu GPU-0000000$gpu-1111-2222-3333-444444444444 00000000:0$gpu:00.0 81559 Card $gpu"
		gpu=$((gpu + 1))
	done >"$FAKE_SMI_DIR/gpus"
}

# fresh: another state directory, a healthy driver with two GPUs
fresh() {
	end_all
	rm -rf "$GPULEASE_DIR" "$FAKE_SMI_DIR"
	mkdir -m 0700 "$GPULEASE_DIR" "$FAKE_SMI_DIR"
	gpus 2
}

# The state directory in use; a simulated one exists once a gpulease has run.
state_dir() {
	if [ -n "${GPULEASE_DIR-}" ]; then
		echo "$GPULEASE_DIR"
	else
		echo "$XDG_STATE_HOME/gpulease"/sim-*
	fi
}

# --- commands ----------------------------------------------------------------------------

# try COMMAND…: sets $out, $err and $rc.
try() {
	TMPDIR=$S/tmp "$@" >"$S/out" 2>"$S/err" </dev/null
	rc=$?
	out=$(cat "$S/out")
	err=$(cat "$S/err")
}

# run TEXT STATUS STDOUT STDERR COMMAND…: a result.  The outputs are shell patterns for the
# whole text without its last newline: '' nothing, '*' anything.  Whatever it shows, the
# command must not leave a file in TMPDIR.
run() {
	run_text=$1 run_rc=$2 run_out=$3 run_err=$4
	shift 4
	try "$@"
	run_why=
	[ "$rc" -eq "$run_rc" ] || run_why="exit status $rc, not $run_rc"
	like "$run_out" "$out" || run_why="${run_why:+$run_why; }stdout is not '$run_out'"
	like "$run_err" "$err" || run_why="${run_why:+$run_why; }stderr is not '$run_err'"
	# but for the folder of a job script, which goes just after its job
	run_left=$(find "$S/tmp" -mindepth 1 -maxdepth 1 ! -name 'slurm-[0-9]*.??????' -printf '%f ')
	if [ -n "$run_left" ]; then
		run_why="${run_why:+$run_why; }left in TMPDIR: $run_left"
		rm -rf "$S/tmp" && mkdir "$S/tmp"
	fi
	if [ -z "$run_why" ]; then
		ok "$run_text"
	else
		not_ok "$run_text" "$run_why" "command: $*" "stdout: $out" "stderr: $err"
	fi
}

# wait_until CONDITION: until the shell code succeeds.  Fails after $DEADLINE seconds, and says so: a
# script that does not ask for the result would only be slow.
wait_until() {
	read -r wait_now _ </proc/uptime
	wait_end=$((${wait_now%.*} + DEADLINE + 1)) # the second that has begun is not whole
	until eval "$1"; do
		read -r wait_now _ </proc/uptime
		[ "${wait_now%.*}" -lt "$wait_end" ] || {
			echo "# waited in vain: $1" >&2
			return 1
		}
		sleep 0.02
	done
}

# sometimes COMMAND…: whether it succeeds in one of ten tries.  For what the program does only if
# the machine gives it the time.  The command prints no results.
sometimes() {
	sometimes_left=10
	until "$@"; do
		[ $((sometimes_left -= 1)) -gt 0 ] || return 1
	done
}

# becomes PID NAME: returns once a process that was just started runs the program of that name.
becomes() {
	wait_until "[ \"\$(cat '/proc/$1/comm')\" = '$2' ]" || bail "process $1 is no $2"
}

# --- jobs that run until they are told to end ----------------------------------------------
#
# A job has a NAME.  Its command writes its pid, its id and its GPUs into $S/NAME.runs, and
# then waits for release.  $S/NAME.err has what gpulease itself prints.

# begin NAME OPTION…: starts `gpulease OPTION… -- command` and does not wait for anything.
begin() {
	begin_name=$1
	shift
	rm -f "$S/$begin_name".*
	mkfifo "$S/$begin_name.hold"
	# The FIFO is opened for both, so that neither side ever waits for the other to open it.
	# shellcheck disable=SC2016
	"$GPULEASE" "$@" -- sh -c '
		exec 3<>"$1.hold"
		echo "$$ ${GPULEASE_ID-} ${CUDA_VISIBLE_DEVICES-}" >"$1.new"
		mv "$1.new" "$1.runs"
		read -r status <&3
		exit "$status"' job "$S/$begin_name" \
		>"$S/$begin_name.out" 2>"$S/$begin_name.err" </dev/null &
	echo $! >"$S/$begin_name.pid"
	started="$started $!"
}

# holder NAME OPTION…: returns when its command runs.
holder() {
	begin "$@"
	wait_until "[ -e '$S/$1.runs' ]" || bail "job $1 does not start: $(cat "$S/$1.err")"
}

# waiter NAME OPTION…: returns when it has said that it waits.
waiter() {
	begin "$@"
	wait_until "[ -s '$S/$1.err' ] || runs $1" || bail "job $1 does not say that it waits"
	! runs "$1" || bail "job $1 did not have to wait"
	kill -0 "$(pid_of "$1")" || bail "job $1 does not wait: $(cat "$S/$1.err")"
}

# runs NAME: whether its command has started.
runs() {
	[ -e "$S/$1.runs" ]
}

pid_of() {
	cat "$S/$1.pid"
}

id_of() {
	cut -d ' ' -f 2 "$S/$1.runs"
}

gpus_of() {
	cut -d ' ' -f 3 "$S/$1.runs"
}

# ticket_of NAME: the number of its ticket, once it has said that it waits
ticket_of() {
	sed -n 's/.*job \([0-9]*\) waits.*/\1/p' "$S/$1.err" | head -n 1
}

# release NAME [STATUS]: lets its command end, now or as soon as it runs.
release() {
	if runs "$1"; then
		echo "${2-0}" 1<>"$S/$1.hold"
	else
		# no process has the FIFO open yet, so a write now would be lost
		echo "${2-0}" >"$S/$1.hold" &
		started="$started $!"
	fi
}

# ended NAME: waits for its end; $rc is its exit status.
ended() {
	ended_pid=$(pid_of "$1")
	# shellcheck disable=SC2016 # for wait_until
	wait_until 'like "[ZX]" "$(process_state "$ended_pid")" || [ ! -e "/proc/$ended_pid" ]' ||
		bail "job $1 does not end: $(cat "$S/$1.err")"
	wait "$ended_pid"
	rc=$?
}

# release_all NAME…: lets them end and waits for it.
release_all() {
	for each in "$@"; do
		release "$each"
	done
	for each in "$@"; do
		ended "$each"
	done
}

# The state letter of a process: T is stopped.
process_state() {
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null
}

# stop NAME and wake NAME: SIGSTOP, until it really is stopped, and SIGCONT.
stop() {
	kill -STOP "$(pid_of "$1")"
	wait_until "[ \"\$(process_state $(pid_of "$1"))\" = T ]" || bail "job $1 does not stop"
}

wake() {
	kill -CONT "$(pid_of "$1")"
}
