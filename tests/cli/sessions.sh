#!/bin/sh
# Jobs in sessions of tmux and screen: --screen, --sessions, --attach.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/session_lib.sh
. "$CLI/session_lib.sh"
sim 1
unset PYTHONUNBUFFERED # images often set it

# The command "job $S/NAME": notes its surroundings in $S/NAME.found, and ends with the status that
# it reads from the FIFO $S/NAME.hold.
cat >"$S/job" <<'END'
#!/bin/sh
mkfifo "$1.hold"
{
	tty
	pwd
	echo "${MARK-none} ${GPULEASE_SESSION-none} $GPULEASE_ID $CUDA_VISIBLE_DEVICES"
	umask
	printf '%s|' "$@"
	printf '\n%s\n' "${PYTHONUNBUFFERED-none}"
} >"$1.new"
mv "$1.new" "$1.found"
read -r status <"$1.hold"
exit "$status"
END
chmod +x "$S/job"

# keep_server: keeps a session.  A server of tmux ends with its last session, and fails a client
# that connects at that moment.
keep_server() {
	[ ! -e "$S/bin/tmux" ] ||
		wait_until 'tmux new-session -d "sleep 1000" 2>/dev/null' ||
		bail 'tmux begins no session'
}

# begin_session NAME OPTION…: starts the job NAME in a session; sets $id
begin_session() {
	begin_name=$1
	shift
	try env PATH="$S/bin" MARK='a  b' "$GPULEASE" --screen "$@" -- "$S/job" "$S/$begin_name" 'c  d' ''
	id=$out
}

# ended_with ID STATUS: waits until the history has that end
ended_with() {
	ended_condition='"$GPULEASE" --history --json | tr -d " \n" | grep -q "\"ticket\":'$1',.*\"status\":'$2'"'
	wait_until "$ended_condition"
}

for program in tmux screen; do
	if ! command -v "$program" >/dev/null 2>&1; then
		skip "sessions of $program" "$program is not installed"
		continue
	fi
	only "$program"

	begin_session one -n 1 --name 'my.job'
	is "$program: --screen prints the id of the job" like '[0-9]*' "$out"
	is "$program: --screen prints no message" [ "$rc:$err" = 0: ]
	[ "$rc" -eq 0 ] || continue
	is "$program: the job runs" wait_until '[ -e "$S/one.found" ]'
	is "$program: the job has a terminal" like '/dev/*' "$(sed -n 1p "$S/one.found")"
	is "$program: the job runs in the folder of its caller" [ "$(sed -n 2p "$S/one.found")" = "$PWD" ]
	is "$program: the job has the environment of its caller and a GPU" \
		[ "$(sed -n 3p "$S/one.found")" = "a  b none $id 0" ]
	is "$program: the job has the umask of its caller" [ "$(sed -n 4p "$S/one.found")" = "$(umask)" ]
	is "$program: the job gets its arguments unchanged" [ "$(sed -n 5p "$S/one.found")" = "$S/one|c  d||" ]
	is "$program: Python writes its output at once" [ "$(sed -n 6p "$S/one.found")" = 1 ]

	try env PATH="$S/bin" "$GPULEASE" --sessions
	is "$program: --sessions lists the session" like "*$id*gpulease-${id}_??????-my_job*$program*no" "$out"
	try env PATH="$S/bin" "$GPULEASE" --sessions --json
	is "$program: --sessions --json prints JSON" "$TOOLS/jsoncheck" <"$S/out"
	is "$program: --sessions --json has the name of the session" like "*\"session\": \"gpulease-${id}_??????-my_job\"*" "$out"

	# a second job has to wait in its session
	begin_session two -n 1
	is "$program: a job that has to wait gets a session" [ "$rc:$err" = 0: ]
	is "$program: the waiting job is in the queue" wait_until \
		'"$GPULEASE" --queue | grep -q "^ *1  *'"$id"' "'
	"$GPULEASE" --cancel "$id"
	is "$program: the waiting job can be cancelled" wait_until '"$GPULEASE" --queue | grep -q "^no job waits"'
	is "$program: the cancel ends the session" wait_until \
		'! env PATH="$S/bin" "$GPULEASE" --sessions | grep -q "gpulease-'"$id"'_"'

	id=$(sed -n 3p "$S/one.found" | cut -d ' ' -f 5)
	echo 7 >"$S/one.hold"
	is "$program: the history has the exit status of the job" ended_with "$id" 7
	rm -f "$S"/one.*
done

# --- entering one ----------------------------------------------------------------------------

if command -v tmux >/dev/null 2>&1 && command -v script >/dev/null 2>&1; then
	only tmux
	keep_server
	mkdir "$S/sub"
	(cd "$S" && try env PATH="$S/bin" "$GPULEASE" --screen -D sub -n 1 sh -c :)
	is 'a relative -D is applied once' like '' "$(cat "$S/err")"
	begin_session in -n 1
	[ "$rc" -eq 0 ] || bail "no session: $err"
	is 'a job runs in a session of tmux' wait_until '[ -e "$S/in.found" ]'
	ln -s "$(command -v script)" "$S/bin/script"
	PATH=$S/bin SHELL=/bin/sh script -qc "'$GPULEASE' --attach $id" /dev/null \
		>"$S/attached" 2>&1 </dev/null &
	started="$started $!"
	is '--attach enters the session of a job' wait_until \
		'env PATH="$S/bin" "$GPULEASE" --sessions | grep -q "gpulease-'"$id"'_.*yes"'
	echo 0 >"$S/in.hold"
	is 'the job of an entered session ends' ended_with "$id" 0
fi

# --- from within a lease, and of several queues --------------------------------------------------

for program in tmux screen; do
	command -v "$program" >/dev/null 2>&1 || continue
	only "$program"
	end_sessions
	keep_server
	sim 4
	mkfifo "$S/within.outer"
	try "$GPULEASE" -n 2 env PATH="$S/bin" sh -c 'echo ",$CUDA_VISIBLE_DEVICES," >"$3.gpus"
		"$1" --screen -n 1 -- "$2" "$3"; read -r line <"$3.outer"' \
		- "$GPULEASE" "$S/job" "$S/within" &
	started="$started $!"
	is "$program: a session that is begun in a lease starts its job" \
		wait_until '[ -e "$S/within.found" ]'
	is "$program: the GPU of that session is not one of the lease" \
		eval '! grep -q ",$(sed -n 3p "$S/within.found" | cut -d " " -f 4)," "$S/within.gpus"'
	echo 0 >"$S/within.hold"
	echo >"$S/within.outer"
	rm -f "$S"/within.*
	is "$program: the session that was begun in a lease ends" wait_until '[ -z "$(names)" ]'

	sims='5 6'
	[ "$program" = tmux ] || sims='8 9'
	mark=none
	for sim in $sims; do
		before=$mark
		sim "$sim"
		begin_session "queue$sim" -n 1 -J same
		is "$program: the first job of queue $sim has id 1" [ "$rc:$id:$err" = 0:1: ]
		# a session of screen keeps its first name, gpulease-new-…, for a moment
		wait_until 'names | grep -vxF "$before" | grep -q "^gpulease-1_"'
		mark=$(names | grep -vxF "$before" | grep '^gpulease-1_' | tail -n 1)
	done
	is "$program: jobs of two queues have sessions with different names" \
		[ "$(names | grep -c '^gpulease-1_[0-9a-f]*-same$')" -eq 2 ]
	sim 7
	run "$program: a third queue enters none of these sessions" 1 '' '*job 1 has no session*' \
		env PATH="$S/bin" "$GPULEASE" --attach 1
	# before the others end: the server of tmux ends with its last session
	taken=gpulease-2${mark#gpulease-1}
	case $program in
	tmux) tmux new-session -d -s "$taken" 'sleep 1000' ;;
	screen) screen -d -m -S "$taken" sleep 1000 ;;
	esac
	for sim in $sims; do
		echo 0 >"$S/queue$sim.hold"
		rm -f "$S/queue$sim".*
	done
	sim "${sims#* }"
	begin_session third -n 1 -J same
	is "$program: a job starts although the name of its session is taken" [ "$rc:$err" = 0: ]
	is "$program: the session of that job gets another name" \
		wait_until '[ "$(names | grep -c "^$taken-....\$")" -eq 1 ]'
	run "$program: --attach enters neither of two similar sessions" 1 '' "*'$taken*both called after job 2,*" \
		env PATH="$S/bin" "$GPULEASE" --attach 2
	end_sessions
done
sim 1

# --- the log, the terminal and the user --------------------------------------------------------

# screen_job OPTION… COMMAND…: runs it in a session; sets $id
screen_job() {
	try env PATH="$S/bin" "$GPULEASE" --screen "$@"
	id=$out
	[ "$rc" -eq 0 ] || bail "no session: $err"
}

# logged PATTERN: whether the log matches now; a condition for wait_until
logged() {
	like "$1" "$("$GPULEASE" --log "$id")"
}

# ends: waits until the job has ended; fails as it does
ends() {
	timeout -k 5 "$DEADLINE" "$GPULEASE" --wait-for "$id"
}

# own: the lines of the log that are not from gpulease
own() {
	"$GPULEASE" --log "$id" | grep -v '^gpulease: '
}

for program in tmux screen; do
	command -v "$program" >/dev/null 2>&1 || continue
	only "$program"
	end_sessions
	sim 2
	screen_job -n 1 sh -c 'echo one; read -r word; echo "got <$word>"; exit 5'
	is "$program: --log shows what a running job has printed" wait_until 'logged "one*"'
	type_in "$(names)" 'some words'
	run "$program: --follow shows the rest until the job ends" 0 '*got <some words>*exit status 5*' '' \
		timeout -k 5 "$DEADLINE" "$GPULEASE" --follow "$id"
	is "$program: the log keeps what was printed and typed, with plain line ends" [ "$(own)" = 'one
some words
got <some words>' ]
	log=$(echo "$XDG_STATE_HOME"/gpulease/sim-2x*/logs/"$id".log)
	is "$program: only the user can read the log" [ "$(stat -c %a "$log")" = 600 ]
	is "$program: the history has the status" ended_with "$id" 5

	screen_job -n 1 sh -c 'seq 30000; exit 3'
	ends
	seq 30000 >"$S/numbers"
	own >"$S/own"
	is "$program: all of a long output is in the log once the job has ended" cmp "$S/numbers" "$S/own"

	screen_job -n 1 -o "$S/file-%j" sh -c 'test -t 0 && ! test -t 1 && echo in the file'
	ends
	is "$program: -o gets the output, and --log shows it" [ "$(own)" = "$(grep -v '^gpulease: ' "$S/file-$id")" ]
	is "$program: with -o only the input is a terminal" [ "$(own)" = 'in the file' ]

	rm -rf "$S/tried"
	screen_job -n 1 --vram 1G --oom-retries 1 sh -c 'if mkdir "$1"; then
		echo "CUDA error: out of memory"; exit 1; fi; echo "with $GPULEASE_VRAM_MIB"' sh "$S/tried"
	is "$program: a job that is out of memory is tried again in its session" wait_until 'logged "*with 1280*"'

	screen_job -n 1 sh -c 'echo ready; exec sleep 1000'
	wait_until 'logged "ready*"'
	type_in "$(names)" "$(printf '\003')"
	is "$program: Ctrl-C ends the job" ended_with "$id" 130
	screen_job -n 1 sh -c 'echo ready; exec sleep 1000'
	wait_until 'logged "ready*"'
	end_sessions
	is "$program: the end of the session hangs the terminal up" ended_with "$id" 129
	(
		trap '' HUP
		exec env PATH="$S/bin" "$GPULEASE" --screen -n 1 sh -c 'echo ready; exec sleep 1000'
	) >"$S/nohup"
	id=$(cat "$S/nohup")
	wait_until 'logged "ready*"'
	end_sessions
	is "$program: also for a job that was started with nohup" ended_with "$id" 129
	(
		ulimit -f 200
		exec env PATH="$S/bin" "$GPULEASE" --screen -n 1 sh -c 'seq 30000; exit 6'
	) >"$S/limited"
	id=$(cat "$S/limited")
	is "$program: a job goes on when its log may not grow" ended_with "$id" 6
	is "$program: the history has that the log is full" \
		grep -aq "ticket=$id .*logfull=1 .*status=6 " "$(echo "$XDG_STATE_HOME"/gpulease/sim-2x*/history)"
	end_sessions
done

if command -v tmux >/dev/null 2>&1; then
	only tmux
	program=tmux
	end_sessions
	screen_job -n 1 sh -c 'stty size; trap "stty size; exit" WINCH; while :; do sleep 0.1; done'
	is 'a job knows the size of its session from the start' wait_until 'logged "24 80*"'
	tmux resize-window -x 100 -y 30
	is 'a job learns of a new size' wait_until 'logged "24 80*30 100*"'
	ends

	# the terminal of a job that does not read takes 4 KiB
	screen_job -n 1 sh -c 'stty raw -echo; echo ready; read -r go <"$1"; seq 30000; exec cat >/dev/null' \
		sh "$(mkfifo "$S/go" && echo "$S/go")"
	wait_until 'logged "ready*"'
	seq 20000 | tmux load-buffer - && tmux paste-buffer -t "$(tmux list-sessions -F '#{session_name}')"
	echo >"$S/go"
	is 'a job prints while the user pastes more than it reads' wait_until 'logged "*30000*"'
	"$GPULEASE" --cancel "$id"
	ends

	# tmux stands still, and so the relay, whose terminal is full: the last line is not in the log
	# yet when the command ends
	rm -rf "$S/tried"
	screen_job -n 1 --vram 1G --oom-retries 1 sh -c 'mkdir "$1" || exit 0
		server=$(tmux display-message -p "#{pid}")
		kill -STOP "$server"
		seq 3500
		echo "CUDA error: out of memory"
		(trap "" HUP; sleep 0.3; kill -CONT "$server") &
		exit 1' sh "$S/tried"
	ends
	is 'a message that is in the log late causes a retry, too' [ $? -eq 0 ]

	end_sessions
	mkdir "$S/home"
	echo 'set-option -g destroy-unattached on' >"$S/home/.tmux.conf"
	(
		export HOME="$S/home"
		screen_job -n 1 sh -c 'echo ready; read -r word; echo "$word"'
		echo "$id $rc $err" >"$S/unattached"
	)
	id=$(cut -d ' ' -f 1 "$S/unattached")
	is 'a session begins although the configuration of tmux ends what no client shows' \
		[ "$(cat "$S/unattached")" = "$id 0 " ]
	wait_until 'logged "ready*"' && type_in "$(names)" word
	ends
	is 'such a session lives on' [ "$(own)" = 'ready
word
word' ]
	end_sessions

	# the server of tmux ends with its last session, and fails a client that comes at this moment
	mkdir "$S/real"
	mv "$S/bin/tmux" "$S/real/tmux"
	cat >"$S/bin/tmux" <<END
#!/bin/sh
[ "\$1" != new-session ] || read -r left 2>/dev/null <"$S/left" && [ "\$left" -gt 0 ] || exec "$S/real/tmux" "\$@"
echo \$((left - 1)) >"$S/left"
echo 'server exited unexpectedly' >&2
exit 1
END
	chmod +x "$S/bin/tmux"
	echo 3 >"$S/left"
	screen_job -n 1 sh -c 'echo begun'
	is 'a server of tmux that is about to end is tried again' [ "$rc:$err" = 0: ]
	ends
	is 'the job has run in the session of the new server' [ "$(own)" = begun ]
	# a client may fail after its session was begun
	printf '#!/bin/sh\n"%s" "$@"\n[ "$1" != new-session ]\n' "$S/real/tmux" >"$S/bin/tmux"
	screen_job -n 1 sh -c 'echo begun'
	is 'a session that has begun although tmux failed is used' [ "$rc:$err" = 0: ]
	ends
fi
sim 1

# --- what goes wrong -------------------------------------------------------------------------

only none
run '--screen without tmux and screen is refused' 125 '' 'gpulease: --screen needs tmux or screen, and neither*--submit' \
	env PATH="$S/bin" "$GPULEASE" --screen sh
run '--sessions without sessions' 0 'no sessions' '' env PATH="$S/bin" "$GPULEASE" --sessions
run '--attach to a job without a session is refused' 1 '' 'gpulease: job 999 has no session of yours; *' \
	env PATH="$S/bin" "$GPULEASE" --attach 999
if command -v tmux >/dev/null 2>&1; then
	only tmux
	run '--screen with more GPUs than there are is refused' 125 '' 'gpulease: cannot lease 9 GPUs*' \
		env PATH="$S/bin" "$GPULEASE" --screen -n 9 sh
	run '--screen with an unknown command is refused' 127 '' "gpulease: command 'nosuch' was not found" \
		env PATH="$S/bin" "$GPULEASE" --screen nosuch
	printf '#!/bin/sh\nexit 3\n' >"$S/bin/broken"
	chmod +x "$S/bin/broken"
	mv "$S/bin/broken" "$S/bin/tmux"
	run '--screen with a file that cannot be opened is refused' 125 '' "gpulease: cannot open '$S/bin/tmux/no': *" \
		env PATH="$S/bin" "$GPULEASE" --screen -o "$S/bin/tmux/no" true
	run '--screen reports that tmux failed' 125 '' 'gpulease: tmux could not begin a session (exit status 3); --submit needs none' \
		env PATH="$S/bin" "$GPULEASE" --screen sh
	printf '\177ELF' >"$S/bin/tmux"
	run '--screen reports why tmux cannot be run' 125 '' 'gpulease: the session in tmux has not begun: Exec format error; --submit needs none' \
		env PATH="$S/bin" "$GPULEASE" --screen sh
fi
run '--enter-session without its job is refused' 125 '' 'gpulease: cannot show the job of this session: *' \
	"$GPULEASE" --enter-session "$S/nowhere"
finish
