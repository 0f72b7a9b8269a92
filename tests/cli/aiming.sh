#!/bin/sh
# Signals reach no process that a forged record names, and not all of a pid namespace if the job is
# process 1.  No link in the state directory leads a write elsewhere.
# shellcheck disable=SC2016,SC2034,SC2317 # shells, conditions, functions called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- process 1 -------------------------------------------------------------------------------

# The command is process 1 and leads its process group, like the entrypoint of a container.
process_1() {
	if ! unshare -pf --mount-proc true 2>/dev/null; then
		skip 'a job that is process 1' 'no pid namespaces here'
		return
	fi
	sim 2
	unshare -pf --mount-proc sh -c '
		setsid sleep 1000 &
		exec setsid "$1" -n 1 -t 1s --grace 100s -- sh -c "
			trap \"kill -0 $! && echo alive >$2; exit 0\" TERM
			sleep 1000 & wait; wait"' - "$GPULEASE" "$S/told" >"$S/first.out" 2>&1 &
	started="$started $!"
	is 'at its limit process 1 gets TERM, and other processes of its namespace live on' \
		wait_until '[ "$(cat "$S/told" 2>/dev/null)" = alive ]'
	wait $!
	grep -v 'time limit' "$S/first.out" >&2
}

# --- forged records --------------------------------------------------------------------------

MALLORY=61184
TOKEN=0123456789abcdef

lab() {
	fresh
	chgrp "$MALLORY" "$GPULEASE_DIR"
	chmod 2770 "$GPULEASE_DIR"
	chmod 0711 "$S"
	chmod 0755 "$FAKE_SMI_DIR"
	"$GPULEASE" -n 2 true
}

# bystander: starts a process of root that is no job; $bystander is its pid
bystander() {
	sleep 1000 &
	bystander=$!
	started="$started $bystander"
	becomes "$bystander" sleep
}

is_alive() {
	like '[SRD]' "$(process_state "$bystander")"
}

forge() {
	"$TOOLS/forge" "$GPULEASE_DIR" "$bystander" "$@"
}

# refused TEXT STDERR UID [waits]: checks that --cancel and --signal-job do nothing.
refused() {
	lab
	bystander
	refused_text=$1 refused_err=$2
	shift 2
	id=$(forge "$1" "$TOKEN" ${2+"$2"})
	run "$refused_text: root cancels nothing" 1 '' "$refused_err" \
		"$GPULEASE" --cancel "$id" --grace 0
	if [ $# -eq 1 ]; then
		run "$refused_text: root signals nothing" 1 '' "$refused_err" \
			"$GPULEASE" --signal-job "$id" KILL
	fi
	is "$refused_text: the process lives" is_alive
	run "$refused_text: with --force root cancels" 0 '*' '' \
		"$GPULEASE" --cancel "$id" --grace 0 --force
	is "$refused_text: then the process ends" wait_until '! is_alive'
}

forged() {
	refused 'a record of another user names a process of root' \
		"*belongs to $MALLORY, and process * to root; *--force*" "$MALLORY"
	refused 'a record of root names a process that is no job' \
		'*process * of root does not show that it belongs to *--force*' 0
	refused 'a ticket that waits names a process of root' \
		"*belongs to $MALLORY, and process * to root; *--force*" "$MALLORY" waits
}

# --- jobs ------------------------------------------------------------------------------------

as_mallory() {
	setpriv --reuid "$MALLORY" --regid "$MALLORY" --clear-groups -- "$@"
}

# ends TEXT STATUS COMMAND…: checks that --cancel by root ends that job without --force.
ends() {
	ends_text=$1 ends_status=$2
	shift 2
	rm -f "$S/in/id"
	"$@" -- sh -c 'echo "$GPULEASE_ID" >"$1.new"; mv "$1.new" "$1"; exec sleep 1000' - \
		"$S/in/id" >/dev/null 2>&1 &
	ends_pid=$!
	started="$started $ends_pid"
	wait_until '[ -s "$S/in/id" ]' || bail "no job: $*"
	run "$ends_text: root cancels the job" 0 '' '' "$GPULEASE" --cancel "$(cat "$S/in/id")"
	wait "$ends_pid"
	is "$ends_text: the job ends with that status" [ $? -eq "$ends_status" ]
}

jobs_of_users() {
	lab
	mkdir -m 0777 "$S/in"
	install -m 0755 "$GPULEASE" "$S/in/gpulease"
	ends 'a job of root' 143 "$GPULEASE" -n 1
	ends 'a job of root with a parent' 143 "$GPULEASE" -n 1 --report
	ends 'a job of another user' 143 as_mallory "$S/in/gpulease" -n 1
	ends 'a job of another user with a parent' 143 as_mallory "$S/in/gpulease" -n 1 --report
	holder a -n 2
	waiter b -n 2
	id=$("$GPULEASE" --queue --json | "$TOOLS/jsoncheck" queue.0.ticket)
	run 'root cancels a job that waits' 0 '' '' "$GPULEASE" --cancel "$id"
	release_all a
}

# A command of root that has changed its user, which no record says.
changed_user() {
	lab
	rm -f "$S/in/id"
	"$GPULEASE" -n 1 -- setpriv --reuid "$MALLORY" --regid "$MALLORY" --clear-groups \
		sh -c 'echo "$GPULEASE_ID" >"$1"; exec sleep 1000' - "$S/in/id" &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/in/id" ]' || bail 'no job'
	becomes "$job" sleep
	id=$(cat "$S/in/id")
	run 'root does not cancel a command that has changed its user' 1 '' \
		"*$id belongs to root, and process $job to $MALLORY; *--force*" \
		"$GPULEASE" --cancel "$id"
	run 'root does not signal a command that has changed its user' 1 '' '*--force*' \
		"$GPULEASE" --signal-job "$id" TERM
	run 'with --force root signals the command' 0 '' '' "$GPULEASE" --signal-job "$id" \
		--force TERM
	wait "$job"
	is 'the command that has changed its user gets the forced signal' [ $? -eq 143 ]
	# the watchdog has opened its pidfd before the command ran
	"$GPULEASE" -n 1 -t 1s -- setpriv --reuid "$MALLORY" --regid "$MALLORY" \
		--clear-groups sleep 1000 2>/dev/null
	is 'a time limit needs no --force' [ $? -eq 143 ]
	run '--force goes with --cancel and --signal-job only' 125 '' '*--force*' "$GPULEASE" --force true
}

# --- links -----------------------------------------------------------------------------------

links() {
	mkdir "$S/elsewhere"
	for folder in gpu live bell; do
		lab
		mv "$GPULEASE_DIR/$folder" "$S/before"
		ln -s "$S/elsewhere" "$GPULEASE_DIR/$folder"
		run "a link in the place of $folder is refused" 125 '' \
			"*cannot use folder '*/$folder': it is not a folder*" "$GPULEASE" -n 1 true
		is "nothing is written where the link in the place of $folder leads" [ -z "$(ls -A "$S/elsewhere")" ]
		rm "$GPULEASE_DIR/$folder"
		mv "$S/before" "$GPULEASE_DIR/$folder"
		run "without a link in the place of $folder a job starts" 0 '' '' "$GPULEASE" -n 1 true
	done
	# a job that waits already
	lab
	holder a -n 2
	waiter b -n 2
	mv "$GPULEASE_DIR/gpu" "$S/before"
	ln -s "$S/elsewhere" "$GPULEASE_DIR/gpu"
	release_all a
	is 'a waiter goes on with the folder that it has' wait_until 'runs b'
	release_all b
	is 'a waiter writes nothing where the link leads' [ -z "$(ls -A "$S/elsewhere")" ]
	# a slot
	lab
	cp "$(find "$GPULEASE_DIR/gpu" -name '*.lease' | head -n 1)" "$S/elsewhere/file"
	cksum <"$S/elsewhere/file" >"$S/sum"
	for to in "$S/elsewhere/file" ../../elsewhere/file; do
		ln -sfn "$to" "$GPULEASE_DIR/gpu/slot.0"
		"$GPULEASE" -n 1 -I true 2>/dev/null
		is "a slot that leads to $to is not followed" \
			[ "$(cksum <"$S/elsewhere/file")" = "$(cat "$S/sum")" ]
	done
}

process_1
if [ "$(id -u)" -ne 0 ] || ! setpriv --version >/dev/null 2>&1; then
	skip 'records that other users forge' 'needs root, and setpriv'
	finish
fi
with_driver
forged
jobs_of_users
changed_user
links
finish
