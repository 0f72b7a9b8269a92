#!/bin/sh
# --batch --screen: each job of the file in a session of its own, with the log, the status, the
# retries and the cancel of other lines.
# shellcheck disable=SC2016,SC2154 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$CLI/batch_lib.sh"
# shellcheck source=tests/cli/session_lib.sh
. "$CLI/session_lib.sh"

only none
clean
lines "$(say one)"
run 'without tmux and screen the batch is refused' 125 '' \
	'gpulease: --screen needs tmux or screen, and neither*' env PATH="$S/bin" \
	"$GPULEASE" --batch "$J" --screen
is 'the refused batch has made no folder' [ ! -e "$W" ]

# plain_names: the names of the sessions without the marks of their queue, as one line
plain_names() {
	names | sed 's/_[0-9a-f]\{6\}-/-/' | words /dev/stdin
}

# log_of JOB: the log of that job of the batch, without the lines of gpulease
log_of() {
	cat "$W/$1"-*.log | grep -v '^gpulease: '
}

each_program() {
	clean
	sim 2
	lines "$S/held a" "[name=my.b] $S/held b 3" 'read -r word; echo "$GPULEASE_ID <$word>"; exit 4'
	batch_begin b --screen
	await_on a b
	is "$program: each job that runs has a session of its own, named by id and line" \
		wait_until '[ "$(plain_names)" = "gpulease-1-held gpulease-2-my_b gpulease-3-read" ]'
	is "$program: a line that waits says so in its session and its log" wait_until \
		'grep -q "job 3 waits" "$W"/3-*.log'
	go a
	type_in "$(names | grep -- '-read$')" 'typed words'
	go b
	ended b
	is "$program: the batch ends with the highest status" [ "$rc" = 4 ]
	is "$program: the runner has the ends of all lines" like '*1 finished, 2 failed*' \
		"$(cat "$S/b.out")"
	is "$program: the log of a line has what was typed and printed" [ "$(log_of 3)" = 'typed words
3 <typed words>' ]
	run "$program: --log finds the log of a line by its ticket" 0 '*3 <typed words>*' '' \
		"$GPULEASE" --log 3
	is "$program: the sessions end with their jobs" wait_until '[ -z "$(names)" ]'

	lines "$S/held a" "[name=my.b] $S/held b 3" "$(say more)"
	run "$program: the next run runs only the new line" 3 \
		'*ended in an earlier run*2 of 3 lines (1 finished, 1 failed)*' '' batch --screen
	is "$program: the new line has run" [ "$(words "$S/ran")" = more ]

	clean
	delay 1ms
	sim 1
	configured_before=$GPULEASE
	configured
	lines "[fail-retries=2] if [ \$GPULEASE_ATTEMPT = 3 ]; then tty; else echo again; exit 1; fi" \
		"[retries=1 vram=1G] mkdir $S/tried || { tty; exit; }; echo CUDA out of memory; exit 1"
	rm -rf "$S/tried"
	run "$program: lines are tried again in their sessions" 0 '*2 finished*' '' batch --screen
	is "$program: all attempts are in one log" like 'again
again
/dev/*' "$(log_of 1)"
	is "$program: a line that was out of memory is tried again" like '*out of memory
*/dev/*' "$(log_of 2)"
	GPULEASE=$configured_before

	clean
	lines "$S/held a" "$(say two)" "$(say three)"
	batch_begin b --screen
	await_on a
	is "$program: two lines wait in sessions" wait_until '[ "$(names | wc -l)" -eq 3 ]'
	lines "$S/held a" "$(say three)"
	is "$program: the session of a line that was deleted ends" wait_until \
		'[ "$(names | wc -l)" -eq 2 ] && [ "$(queued)" = 1 ]'
	is "$program: what that line logged while it waited is gone" [ ! -s "$(echo "$W"/2-*.log)" ]
	"$GPULEASE" --cancel 1
	ended b
	is "$program: a cancelled line counts as failed, and the next one runs" \
		[ "$rc:$(words "$S/ran")" = 143:three ]

	clean
	lines "$S/held a 6" "$(say two)"
	batch_begin b --screen
	await_on a
	kill -KILL "$(cat "$S/b.pid")"
	is "$program: a killed runner takes only the waiting line with it" wait_until \
		'[ "$(names | wc -l)" -eq 1 ]'
	batch_begin c --screen
	is "$program: the next runner finds the job of the session" wait_until \
		'grep -q "of an earlier run" "$S/c.out"'
	go a
	ended c
	is "$program: the next runner learns of the end" [ "$rc:$(words "$S/ran")" = 6:two ]

	clean
	lines 'exec sleep 1000' "$(say two)"
	batch_begin b --screen
	wait_until '[ "$(names | wc -l)" -eq 2 ]'
	case $program in
	tmux) tmux kill-session -t "=$(names | head -n 1)" ;;
	screen) screen -S "$(names | head -n 1)" -X quit ;;
	esac
	ended b
	is "$program: a closed session ends its job, and the next line runs" \
		[ "$rc:$(words "$S/ran")" = 129:two ]

	# one session ends as the next one begins
	clean
	sim 2
	lines "$(seq 40 | sed 's/.*/echo line &/')"
	run "$program: forty short jobs run in sessions" 0 '*40 jobs: 40 finished*' '' batch --screen
	is "$program: each of the forty logs has its line" \
		[ "$(grep -h '^line' "$W"/*.log | sort -k 2n)" = "$(seq 40 | sed 's/^/line /')" ]
}

real=$GPULEASE
for each in tmux screen; do
	if ! command -v "$each" >/dev/null 2>&1; then
		skip "a batch in sessions of $each" "$each is not installed"
		continue
	fi
	only "$each"
	printf '#!/bin/sh\nPATH="%s/bin" exec "%s" "$@"\n' "$S" "$real" >"$S/with-$each"
	chmod +x "$S/with-$each"
	GPULEASE=$S/with-$each
	each_program
	end_sessions
done
finish
