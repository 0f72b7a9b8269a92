#!/bin/sh
# lib.sh and tests/run themselves: that they can fail, and that a script leaves no file or process.
#
# Needs no gpulease: a small script that runs its command at once stands in for it.
# shellcheck disable=SC2016 # the bodies of scripts are not for this shell

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# script CODE: runs a black-box script with this body; sets $out, $err and $rc as `try` does.
script() {
	{
		echo "CLI='$CLI' GPULEASE='$S/fake-gpulease' TMPDIR='$S/inner'"
		echo '. "$CLI/lib.sh"; scratch'
		printf '%s\n' "$1"
		echo finish
	} >"$S/script.sh"
	try sh "$S/script.sh"
}

# shows TEXT STATUS PATTERN CODE: a result, good if a script with this body prints that.
shows() {
	script "$4"
	if [ "$rc" -eq "$2" ] && like "$3" "$out" && [ -z "$(ls -A "$S/inner")" ]; then
		ok "$1"
	else
		not_ok "$1" "exit status $rc" "stdout: $out" "stderr: $err" \
			"left: $(ls -A "$S/inner")"
	fi
}

mkdir "$S/inner"
cp "$CLI/lib.sh" "$CLI/settings_lib.sh" "$S"
cat >"$S/fake-gpulease" <<'END'
#!/bin/sh
while [ "$1" != -- ]; do
	[ "$1" != --late ] || { echo "waits" >&2; sleep 0.1; }
	shift
done
shift
GPULEASE_ID=7 CUDA_VISIBLE_DEVICES=0,3 exec "$@"
END
chmod +x "$S/fake-gpulease"

shows 'good results give exit status 0 and a plan' 0 'ok 1 - a
ok 2 - b # SKIP c
1..2' 'ok a; skip b c'
shows 'a bad result gives exit status 1 and its diagnostic' 1 'not ok 1 - a
# b
ok 2 - c
1..2' 'not_ok a b; ok c'
shows 'a plan at the beginning is the only plan' 0 '1..1
ok 1 - a' 'plan 1; ok a'
shows 'is notices a failure' 1 'not ok 1 - a*' 'is a false'

shows 'run accepts the expected status and outputs' 0 'ok 1 - a
1..1' 'run a 3 "o*t" "" sh -c "echo out; exit 3"'
shows 'run notices another exit status' 1 'not ok 1 - a
# exit status 3, not 0*' 'run a 0 "" "" sh -c "exit 3"'
shows 'run notices a death by signal' 1 'not ok*exit status 143*' 'run a 0 "" "" sh -c "kill \$\$"'
shows 'run notices another stdout' 1 'not ok*stdout is not*' 'run a 0 x "" echo y'
shows 'run notices an unexpected stdout' 1 'not ok*stdout is not*' 'run a 0 "" "" echo y'
shows 'run notices an unexpected stderr' 1 'not ok*stderr is not*' 'run a 0 "" "" sh -c "echo y >&2"'
shows 'run notices a file left in TMPDIR' 1 'not ok*left in TMPDIR: x*' \
	'run a 0 "" "" sh -c ">\$TMPDIR/x"'

shows 'wait_until ends when the condition holds' 0 'ok 1*' \
	'(sleep 0.1; >$S/f) & is a wait_until "[ -e \$S/f ]"'
shows 'wait_until gives up at its deadline' 1 'not ok 1*' 'DEADLINE=1; is a wait_until false'

shows 'a job has an id and GPUs, and ends with the released status' 0 'ok 1 - 7 0,3 5*' \
	'holder j -n 2; release j 5; ended j; ok "$(id_of j) $(gpus_of j) $rc"'
shows 'a job may be released before it starts' 0 'ok 1 - 4*' \
	'begin j --late; release j 4; ended j; ok $rc'
shows 'a waiter that starts at once ends the script' 1 '# job j did not have to wait' \
	'waiter j; ok never'
shows 'a holder that does not start ends the script' 1 '# job j does not start: ' \
	'DEADLINE=1; GPULEASE=false; holder j; ok never'
shows 'a stopped job is in state T until it is woken' 0 'ok 1 - T 0*' \
	'holder j; stop j; p=$(process_state $(pid_of j)); wake j; release_all j; ok "$p $rc"'

script 'holder j; stop j; setsid sleep 1000 & becomes $! sleep; strays >"$S/../../pids"; exit 3'
is 'exit in a script ends it with that status' [ "$rc" -eq 3 ]
is 'the script had running and stopped processes' [ -s "$S/pids" ]
is 'no process of that script is left' [ -z "$(xargs -I X cat /proc/X/comm <"$S/pids" 2>/dev/null)" ]
is 'no directory of that script is left' [ -z "$(ls -A "$S/inner")" ]

script 'holder j; kill -TERM $$; wait_until false; ok never'
is 'a script that is killed ends with the signal' [ "$rc" -eq 143 ]
is 'a script that is killed leaves no directory' [ -z "$(ls -A "$S/inner")" ]

# runner OPTION…: tests/run on $S/program.sh, with $seconds for the word LIMIT
runner() {
	for word; do
		shift
		[ "$word" != LIMIT ] || word=$seconds
		set -- "$@" "$word"
	done
	TMPDIR=$S/inner "$CLI/../run" "$@" "$S/program.sh"
}

# counts TEXT STATUS LAST BODY OPTION…: a result, good if the last line of the runner for a program
# with this body fits LAST.  If the program does not make $S/came within LIMIT, the next one is
# longer.
counts() {
	counts_text=$1 counts_rc=$2 counts_last=$3
	printf '%s\n' "$4" >"$S/program.sh"
	shift 4
	rm -f "$S/came"
	for seconds in 1 5 30; do
		try runner "$@"
		! like '* LIMIT *' " $* " || [ -e "$S/came" ] || continue
		break
	done
	if [ "$rc" -eq "$counts_rc" ] && like "$counts_last" "$(tail -n 1 "$S/out")" &&
		[ -z "$(ls -A "$S/inner")" ]; then
		ok "$counts_text"
	else
		not_ok "$counts_text" "exit status $rc" "$out" "$err"
	fi
}

counts 'the runner counts good results and skipped ones' 0 '2 passed, 0 failed, 1 skipped' \
	'echo ok 1; echo ok 2 - a; echo "ok 3 # SKIP b"; echo 1..3'
counts 'the runner understands a skip as cmocka writes it' 0 '1 passed, 0 failed, 1 skipped' \
	'echo 1..2; echo "not ok 1 # SKIP a"; echo "ok 2 - b"'
counts 'the runner accepts a program that skips everything' 0 '0 passed, 0 failed, 1 skipped' \
	'echo "1..0 # SKIP no GPU"'
counts 'the runner counts a bad result' 1 '1 passed, 1 failed' 'echo ok 1; echo not ok 2; echo 1..2; exit 1'
counts 'fewer results than planned are a failure' 1 '1 passed, 1 failed' 'echo 1..2; echo ok 1'
counts 'a missing plan is a failure' 1 '1 passed, 1 failed' 'echo ok 1'
counts 'no output is a failure' 1 '0 passed, 1 failed' ':'
counts 'an exit status that no result explains is a failure' 1 '1 passed, 1 failed' \
	'echo ok 1; echo 1..1; exit 3'
counts 'a death by signal is a failure' 1 '1 passed, 1 failed' 'echo ok 1; echo 1..1; kill -SEGV $$'
counts 'reaching the time limit is a failure' 1 '1 passed, 1 failed' \
	"echo ok 1; echo 1..1; : >'$S/came'; sleep 1000" -t LIMIT
counts 'a file left in TMPDIR is a failure' 1 '1 passed, 1 failed' 'echo ok 1; echo 1..1; >$TMPDIR/x'
counts 'a program that does not exist is a failure' 1 '1 passed, 1 failed' 'echo ok 1; echo 1..1' "$S/none"
counts 'the runner adds up programs that run in parallel' 0 '4 passed, 0 failed' 'echo ok 1; echo 1..1' -j 2 \
	"$S/program.sh" "$S/program.sh" "$S/program.sh"
counts 'a program not ended or begun within the budget is skipped' 0 \
	'1 passed, 0 failed, 2 skipped' "echo ok 1; echo 1..2; : >'$S/came'; sleep 1000" \
	--budget LIMIT "$S/program.sh"
is 'the report names the skipped programs' like "*$S/program.sh: 1 passed, 1 skipped*: not ended within $seconds s
SKIPPED $S/program.sh: not started within $seconds s*" "$out"
counts 'a failure before the end of the budget counts' 1 '0 passed, 1 failed, 1 skipped' \
	"echo not ok 1; echo 1..1; : >'$S/came'; sleep 1000" --budget LIMIT

second="[ -e '$S/tried' ] && echo ok 1 || echo not ok 1; : >'$S/tried'; echo 1..1"
counts 'a script that fails has no second try' 1 '0 passed, 1 failed' "$second"
rm "$S/tried"
export RUN_AGAIN=1
counts 'with RUN_AGAIN a script that fails has a second try' 0 '1 passed, 0 failed' "$second"
is 'the report says which script ran again' like "AGAIN   *$S/program.sh: 0 passed, 1 failed*
        | not ok 1*
ok      *$S/program.sh: 1 passed*" "$out"
counts 'the second try counts, good or bad' 1 '1 passed, 1 failed' \
	'echo ok 1; echo not ok 2; echo 1..2'
counts 'RUN_AGAIN is not in the environment of the script' 0 '1 passed, 0 failed' \
	'[ -z "${RUN_AGAIN+set}" ] && echo ok 1; echo 1..1'
try "$CLI/../run" false
is 'a program that is no script has no second try' like 'FAILED*0 passed, 1 failed' "$out"

finish
