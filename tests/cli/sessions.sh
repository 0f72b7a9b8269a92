#!/bin/sh
# Jobs in sessions of tmux and screen: --screen, --sessions, --attach.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
export GPULEASE_SIM=1 TERM=xterm-256color
# servers of our own, and no sessions of whoever runs this
export TMUX_TMPDIR="$S/tmux-dir" SCREENDIR="$S/screen-dir"
mkdir -m 0700 "$TMUX_TMPDIR" "$SCREENDIR"
unset TMUX STY XDG_RUNTIME_DIR

end_sessions() {
	tmux kill-server
	screen -ls | sed -n 's/^[[:space:]]*\([0-9]*\)\..*/\1/p' | xargs -r kill
} >/dev/null 2>&1
at_exit end_sessions

# The command: notes what it finds in $S/NAME.found, and ends with STATUS when $S/NAME.end is there.
cat >"$S/job" <<'END'
#!/bin/sh
mkfifo "$1.hold"
{
	tty
	pwd
	echo "${MARK-none} ${GPULEASE_SESSION-none} $GPULEASE_ID $CUDA_VISIBLE_DEVICES"
	umask
	printf '%s|' "$@"
} >"$1.new"
mv "$1.new" "$1.found"
read -r status <"$1.hold"
exit "$status"
END
chmod +x "$S/job"

# only PROGRAM: from now on it alone is there
only() {
	rm -rf "${S:?}/bin"
	mkdir "$S/bin"
	for only_program in tmux screen; do
		[ "$only_program" = "$1" ] || continue
		ln -s "$(command -v "$1")" "$S/bin/$1"
	done
	for only_program in sh cat sed mkfifo mv tty env; do
		ln -s "$(command -v "$only_program")" "$S/bin/$only_program"
	done
}

# keep_server: a server of tmux goes with its last session, and fails who comes just then
keep_server() {
	[ ! -e "$S/bin/tmux" ] ||
		wait_until 'tmux new-session -d "sleep 1000" 2>/dev/null' ||
		bail 'tmux begins no session'
}

# begin_session NAME OPTION…: sets $id
begin_session() {
	begin_name=$1
	shift
	try env PATH="$S/bin" MARK='a  b' "$GPULEASE" --screen "$@" -- "$S/job" "$S/$begin_name" 'c  d' ''
	id=$out
}

# ended_with ID STATUS
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
	is "$program: the id is printed" like '[0-9]*' "$out"
	is "$program: and nothing else is said" [ "$rc:$err" = 0: ]
	[ "$rc" -eq 0 ] || continue
	is "$program: the job runs" wait_until '[ -e "$S/one.found" ]'
	is "$program: in a terminal" like '/dev/*' "$(sed -n 1p "$S/one.found")"
	is "$program: where it was started" [ "$(sed -n 2p "$S/one.found")" = "$PWD" ]
	is "$program: with its environment and a GPU" \
		[ "$(sed -n 3p "$S/one.found")" = "a  b none $id 0" ]
	is "$program: with its umask" [ "$(sed -n 4p "$S/one.found")" = "$(umask)" ]
	is "$program: with its arguments" [ "$(sed -n 5p "$S/one.found")" = "$S/one|c  d||" ]

	try env PATH="$S/bin" "$GPULEASE" --sessions
	is "$program: it is listed" like "*$id*gpulease-${id}_??????-my_job*$program*no" "$out"
	try env PATH="$S/bin" "$GPULEASE" --sessions --json
	is "$program: also for programs" "$TOOLS/jsoncheck" <"$S/out"
	is "$program: with its name" like "*\"session\": \"gpulease-${id}_??????-my_job\"*" "$out"

	# a second one has to wait, in its session
	begin_session two -n 1
	is "$program: a session may wait" [ "$rc:$err" = 0: ]
	is "$program: it is in the queue" wait_until \
		'"$GPULEASE" --queue | grep -q "^ *1  *'"$id"' "'
	"$GPULEASE" --cancel "$id"
	is "$program: and can be cancelled" wait_until '! "$GPULEASE" --queue | grep -q job'
	is "$program: which ends its session" wait_until \
		'! env PATH="$S/bin" "$GPULEASE" --sessions | grep -q "gpulease-'"$id"'_"'

	id=$(sed -n 3p "$S/one.found" | cut -d ' ' -f 5)
	echo 7 >"$S/one.hold"
	is "$program: its exit status is kept" ended_with "$id" 7
	rm -f "$S"/one.*
done

# --- entering one ----------------------------------------------------------------------------

if command -v tmux >/dev/null 2>&1 && command -v script >/dev/null 2>&1; then
	only tmux
	keep_server
	mkdir "$S/sub"
	(cd "$S" && try env PATH="$S/bin" "$GPULEASE" --screen -D sub -n 1 sh -c :)
	is '-D is obeyed once' like '' "$(cat "$S/err")"
	begin_session in -n 1
	[ "$rc" -eq 0 ] || bail "no session: $err"
	is 'a job to enter' wait_until '[ -e "$S/in.found" ]'
	ln -s "$(command -v script)" "$S/bin/script"
	PATH=$S/bin SHELL=/bin/sh script -qc "'$GPULEASE' --attach $id" /dev/null \
		>"$S/attached" 2>&1 </dev/null &
	started="$started $!"
	is '--attach enters its session' wait_until \
		'env PATH="$S/bin" "$GPULEASE" --sessions | grep -q "gpulease-'"$id"'_.*yes"'
	echo 0 >"$S/in.hold"
	is 'the job ends' ended_with "$id" 0
fi

# --- from within a lease, and of several queues --------------------------------------------------

# names: those of the sessions, each once
names() {
	PATH=$S/bin "$GPULEASE" --sessions | grep -o 'gpulease-[^ ]*' | sort
}

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
	is "$program: a session that is begun in a lease gets a GPU of its own" \
		wait_until '[ -e "$S/within.found" ]'
	is "$program: which is none of that lease's" \
		eval '! grep -q ",$(sed -n 3p "$S/within.found" | cut -d " " -f 4)," "$S/within.gpus"'
	echo 0 >"$S/within.hold"
	echo >"$S/within.outer"
	rm -f "$S"/within.*
	is "$program: and ends" wait_until '[ -z "$(names)" ]'

	sims='5 6'
	[ "$program" = tmux ] || sims='8 9'
	mark=none
	for sim in $sims; do
		before=$mark
		sim "$sim"
		begin_session "queue$sim" -n 1 -J same
		is "$program: the first job of queue $sim" [ "$rc:$id:$err" = 0:1: ]
		mark=$(names | grep -vx "$before" | tail -n 1)
	done
	is "$program: each has a session with a name of its own" \
		[ "$(names | grep -c '^gpulease-1_[0-9a-f]*-same$')" -eq 2 ]
	sim 7
	run "$program: of which a third queue enters none" 1 '' '*job 1 has no session*' \
		env PATH="$S/bin" "$GPULEASE" --attach 1
	# before the others end: with its last session the server of tmux goes
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
	is "$program: a name that is taken is not taken twice" [ "$rc:$err" = 0: ]
	is "$program: the session has another" [ "$(names | grep -c "^$taken-....\$")" -eq 1 ]
	run "$program: neither is entered for the other" 1 '' "*'$taken*both called after job 2,*" \
		env PATH="$S/bin" "$GPULEASE" --attach 2
	end_sessions
done
sim 1

# --- what goes wrong -------------------------------------------------------------------------

only none
run 'without either' 125 '' 'gpulease: --screen needs tmux or screen, and neither*--submit' \
	env PATH="$S/bin" "$GPULEASE" --screen sh
run 'no sessions' 0 'no sessions' '' env PATH="$S/bin" "$GPULEASE" --sessions
run 'a job without a session' 1 '' 'gpulease: job 999 has no session of yours; *' \
	env PATH="$S/bin" "$GPULEASE" --attach 999
if command -v tmux >/dev/null 2>&1; then
	only tmux
	run 'more GPUs than there are' 125 '' 'gpulease: cannot lease 9 GPUs*' \
		env PATH="$S/bin" "$GPULEASE" --screen -n 9 sh
	run 'no such command' 127 '' "gpulease: command 'nosuch' was not found" \
		env PATH="$S/bin" "$GPULEASE" --screen nosuch
	printf '#!/bin/sh\nexit 3\n' >"$S/bin/broken"
	chmod +x "$S/bin/broken"
	mv "$S/bin/broken" "$S/bin/tmux"
	run 'a file that cannot be opened' 125 '' "gpulease: cannot open '/no/such': *" \
		env PATH="$S/bin" "$GPULEASE" --screen -o /no/such true
	run 'a tmux that fails' 125 '' 'gpulease: tmux could not begin a session (exit status 3)' \
		env PATH="$S/bin" "$GPULEASE" --screen sh
fi
run 'a folder that is none' 125 '' 'gpulease: cannot begin the job of this session: *' \
	"$GPULEASE" --enter-session "$S/nowhere"
finish
