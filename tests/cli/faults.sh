#!/bin/sh
# Bad input and faults: one clear line, a documented status, nothing lost.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- bad input ---------------------------------------------------------------------------

for n in -1 abc 1e99 '' ' 1' 1x 99999999999999999999; do
	run "-n '$n' is refused" 125 '' "gpulease: *" "$GPULEASE" -n "$n" true
done
run 'a share of more than one GPU: the message has what is possible' 125 '' \
	"gpulease: -n: '1.5' is above 1 and not a whole number of GPUs; write 1 or 2" \
	"$GPULEASE" -n 1.5 true
run 'more GPUs than there are: the message has their number' 125 '' \
	'gpulease: cannot lease 9 GPUs: this machine has 8' "$GPULEASE" -n 9 true
run 'gpulease without a command is refused' 125 '' 'gpulease: no command*' "$GPULEASE" -n 1
run 'an unknown option: the message has the nearest option' 125 '' "*'--stauts'*--status[?]" \
	"$GPULEASE" --stauts
run 'an unknown option without a near one is refused' 125 '' \
	"gpulease: unknown option '--future'*" \
	"$GPULEASE" --future true

# --- a state directory that cannot be used -------------------------------------------------

unset GPULEASE_SIM
PATH=$CLI/../bin:$PATH
mkdir "$S/bad"
chmod 0777 "$S/bad"
run 'a state directory that everybody may write to is refused' 125 '' \
	"gpulease: cannot use state directory '$S/bad' (owner *, group *, mode 0777): *" \
	env GPULEASE_DIR="$S/bad" "$GPULEASE" true
chmod 0770 "$S/bad"
run 'a shared state directory without the set-group-ID bit is refused' 125 '' '*chmod g+s*' \
	env GPULEASE_DIR="$S/bad" "$GPULEASE" true
run 'a state directory that does not exist is refused' 125 '' \
	"gpulease: cannot open state directory '/no/such': *; mkdir -m 0700 -p /no/such makes it *" \
	env GPULEASE_DIR=/no/such "$GPULEASE" true
# makes DIR NAME…: a result, good if the command of the message makes the directory for `true`
makes() {
	run "the message for '$1' gives the command that makes it" 125 '' '*; mkdir -m 0700 -p *' \
		env GPULEASE_DIR="$1" "$GPULEASE" -n 0 true
	made=${err##*No such file or directory; }
	try sh -c "${made%% makes it*}"
	run "the command makes '$1'" 0 700 '' stat -c %a "./$1"
	run "a job runs with '$1'" 0 '' '' env GPULEASE_DIR="$1" "$GPULEASE" -n 0 true
}
cd "$S" || bail 'no scratch directory'
makes 'plain/dir'
makes "it's a \$HOME; directory"
makes '-p'
cd "$OLDPWD" || bail 'the script was started in a directory that is gone'
echo file >"$S/file"
run 'a file in the place of the state directory is refused' 125 '' \
	"gpulease: cannot open state directory*" \
	env GPULEASE_DIR="$S/file" "$GPULEASE" true
if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 0700 "$S/foreign" && chown 12345 "$S/foreign"
	run 'a state directory of another user is refused' 125 '' "*(owner 12345, *" \
		env GPULEASE_DIR="$S/foreign" "$GPULEASE" true
else
	skip 'a state directory of another user is refused' 'only root can make one'
fi
if others_can_run; then
	mkdir -m 2770 "$S/root"
	# setpriv does not change the environment
	run 'a state directory that the user may not write to is refused' 125 '' \
		"gpulease: cannot open state directory '$S/root' (owner 0, *" \
		setpriv --reuid=12345 --regid=12345 --clear-groups \
		env GPULEASE_DIR="$S/root" "$GPULEASE" true
else
	skip 'a state directory that the user may not write to is refused' "$others_why"
fi

# --- damage while a job waits --------------------------------------------------------------

export GPULEASE_SIM=2
run 'a first job makes the queue' 0 '' '' "$GPULEASE" -n 2 true
dir=$XDG_STATE_HOME/gpulease/sim-2x24576

# damage TEXT COMMAND…: a result, good if a waiter gets its turn although COMMAND damages the state
damage() {
	text=$1
	shift
	holder before -n 2
	waiter through -n 2
	"$@"
	release_all before
	is "$text" wait_until 'runs through'
	release_all through
	run "$text: later jobs start" 0 '' '*' "$GPULEASE" -n 2 true
}
new_queue() {
	: >"$dir/new" && mv "$dir/new" "$dir/tickets"
}
damage 'the ticket file is deleted' rm "$dir/tickets"
damage 'the ticket file is emptied' truncate -s 0 "$dir/tickets"
damage 'the ticket file is cut in the middle of a record' truncate -s 700 "$dir/tickets"
damage 'the ticket file is replaced' new_queue
damage 'the ticket file gets half a record' sh -c 'echo half >>"$1/tickets"' - "$dir"
damage 'a lease file is replaced' sh -c 'for f in "$1"/gpu/*.lease; do
	cp "$f" "$1/new" && mv "$1/new" "$f"; done' - "$dir"
damage 'a lease file is deleted' sh -c 'rm "$1"/gpu/GPU*0.lease' - "$dir"
damage 'the folder of lease files is deleted' rm -r "$dir/gpu"
damage 'a link is in the place of the windows' ln -s /nowhere "$dir/gpu/windows"
rm -f "$dir/gpu/windows"
damage 'the FIFOs are deleted' sh -c 'rm -f "$1"/bell/*' - "$dir"
damage 'a ticket is overwritten with rubbish' sh -c \
	'dd if=/dev/urandom of="$1/tickets" bs=512 seek=1 count=1 conv=notrunc 2>/dev/null' - "$dir"
damage 'the header of the ticket file is overwritten with rubbish' sh -c \
	'dd if=/dev/urandom of="$1/tickets" bs=512 count=1 conv=notrunc 2>/dev/null' - "$dir"

damage 'record 0 of a lease file is overwritten with rubbish' \
	sh -c 'for f in "$1"/gpu/*0.lease; do
	dd if=/dev/urandom of="$f" bs=512 count=1 conv=notrunc 2>/dev/null; done' - "$dir"

holder before -n 2
"$GPULEASE" -n 0 true
dd if=/dev/urandom of="$dir/tickets" bs=512 seek=$(($(wc -c <"$dir/tickets") / 512 - 1)) \
	count=1 conv=notrunc 2>/dev/null
waiter told -n 2
is 'a waiter reports once that records cannot be read' \
	[ "$(grep -c 'cannot be read and are skipped' "$S/told.err")" -eq 1 ]
release_all before told

holder before -n 2
waiter lost -n 2
mv "$dir" "$dir.gone" && rm -rf "$dir.gone"
release_all before
said() {
	grep -q "$2" "$S/$1.err"
}
is 'if the directory is removed, a waiter says so' \
	wait_until 'said lost "state directory .* was lost"'
run 'a later job makes the directory again' 0 '' '' "$GPULEASE" -n 2 true
is 'then the waiter gets its turn' wait_until 'runs lost'
release_all lost
is 'it has said once that it waits for the directory' \
	[ "$(grep -c 'was lost' "$S/lost.err")" -eq 1 ]

# --- no room, no descriptors ---------------------------------------------------------------

run 'a first job makes the queue' 0 '' '' "$GPULEASE" -n 2 true
run 'a limit of file sizes below the queue is an error' 125 '' \
	"gpulease: cannot take a ticket in '*/tickets': File too large" \
	prlimit --fsize=512:512 "$GPULEASE" true
run 'a limit of file sizes inside a record is an error' 125 '' 'gpulease: cannot take a ticket*' \
	prlimit --fsize=1300:1300 "$GPULEASE" -n 0 true
run 'after a limit of file sizes later jobs start' 0 '' '' "$GPULEASE" -n 2 true
# LeakSanitizer needs descriptors of its own
run 'without descriptors a job ends with an error' 125 '' 'gpulease: *' \
	env ASAN_OPTIONS=detect_leaks=0 prlimit --nofile=6:6 "$GPULEASE" -n 2 true
run 'after a lack of descriptors later jobs start' 0 '' '' "$GPULEASE" -n 2 true
# crowd LIMIT COUNT: COUNT jobs wait, each with at most LIMIT descriptors, and then run
crowd() {
	holder before -n 2
	i=0
	while [ $i -lt "$2" ]; do
		ASAN_OPTIONS=detect_leaks=0 prlimit --nofile="$1:$1" "$GPULEASE" -Q -n 1 \
			sh -c 'echo >>"$0"' "$S/ran$1" &
		i=$((i + 1))
	done
	is "$2 jobs with $1 descriptors each wait" wait_until '[ "$(waiting)" -ge '"$2 ]"
	is 'none of them has more than 64 open' [ "$(most_open)" -le 64 ]
	release before
	is "$2 jobs with $1 descriptors each run" \
		wait_until '[ "$(grep -c "" "$S/ran'"$1"'" 2>/dev/null)" = '"$2 ]"
	wait
}
waiting() {
	find "$dir/bell" -type p | grep -c .
}
# the most descriptors that one of the waiting processes has
most_open() {
	"$GPULEASE" --queue --json | tr ',' '\n' | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' |
		while read -r pid; do
			find "/proc/$pid/fd" -mindepth 1 2>/dev/null | grep -c .
		done | sort -n | tail -1
}
crowd 64 70
crowd 28 30

if [ "$(id -u)" -eq 0 ] && mkdir "$S/small" &&
	mount -t tmpfs -o size=64k,nr_inodes=40 tmpfs "$S/small" 2>/dev/null; then
	at_exit "umount '$S/small'"
	XDG_STATE_HOME=$S/small
	run 'a job starts on a small file system' 0 '' '' "$GPULEASE" -n 2 true
	cat /dev/zero >"$S/small/fill" 2>/dev/null
	run 'without room for a ticket a job ends with an error' 125 '' \
		"gpulease: cannot take a ticket in '*': No space left on device" \
		sh -c 'i=0; while [ $i -lt 9 ] && "$0" -n 0 true; do i=$((i + 1)); done
			exec "$0" -n 0 true' "$GPULEASE"
	rm "$S/small/fill"
	run 'with room again later jobs start' 0 '' '' "$GPULEASE" -n 2 true
	i=0
	while touch "$S/small/gpulease/i$i" 2>/dev/null; do i=$((i + 1)); done
	run 'without inodes a job ends with an error' 125 '' \
		"gpulease: cannot make a FIFO in '*': No space left on device" \
		"$GPULEASE" true
	rm -f "$S/small/gpulease"/i*
	run 'with inodes again later jobs start' 0 '' '' "$GPULEASE" -n 2 true

	# fill FOLDER: leaves no inode; the jobs below call it
	cat >"$S/fill.sh" <<-'EOF'
		i=0
		while touch "$1/gpulease/i$i" 2>/dev/null; do i=$((i + 1)); done
	EOF
	echo 'retry-delay = 1ms' >"$S/conf"
	"$GPULEASE" --config "$S/conf" --retries 1 -n 2 sh -c \
		'[ $GPULEASE_ATTEMPT = 2 ] || { sh "$0" "$1"; false; }' "$S/fill.sh" "$S/small" \
		2>"$S/again.err" &
	again=$!
	is 'without inodes a job that is tried again waits for its ticket' \
		wait_until 'said again "waits for its next ticket: .*No space"'
	rm -f "$S/small/gpulease"/i*
	wait $again
	is 'with inodes it is tried again' [ $? -eq 0 ]
	# others_can_run has made a copy of gpulease in $S
	[ -e "${GPULEASE%/*}/gpulease-slurm" ] || ln -s "$TOOLS/../../gpulease-slurm" "$S"
	"$GPULEASE" -n 2 sh -c 'sh "$1" "$2"; "$0" --exclusive -n 1 true' "$GPULEASE" \
		"$S/fill.sh" "$S/small" 2>"$S/step.err" &
	step=$!
	is 'without inodes an exclusive step waits' \
		wait_until 'said step "waits for 1 of its 2 GPUs: .*No space"'
	rm -f "$S/small/gpulease"/i*
	wait $step
	is 'with inodes the exclusive step runs' [ $? -eq 0 ]
	run 'without inodes a step does not wait with -I' 124 '' '*gave up waiting*No space*' \
		"$GPULEASE" -n 2 sh -c 'sh "$1" "$2"; "$0" -I --exclusive -n 1 true' \
		"$GPULEASE" "$S/fill.sh" "$S/small"
	rm -f "$S/small/gpulease"/i*
	# a job that has to wait takes another ticket for fair-share
	echo 'fair-share = 1h/7d/24h' >"$S/conf"
	holder before -n 2
	waiter first -n 2 # counts as an hour of two GPUs
	sh "$S/fill.sh" "$S/small"
	rm "$S/small/gpulease/i0" "$S/small/gpulease/i1" # for its two FIFOs
	"$GPULEASE" --config "$S/conf" -n 2 true 2>"$S/fair.err" &
	fair=$!
	is 'without inodes a job under fair-share waits' \
		wait_until 'said fair "waits, .*No space"'
	rm -f "$S/small/gpulease"/i*
	release_all before first
	wait $fair
	is 'with inodes the job under fair-share runs' [ $? -eq 0 ]
	XDG_STATE_HOME=$S/state-home
else
	skip 'a full file system' 'only root can mount one'
fi
run '--help into a full device ends with an error' 125 '' 'gpulease: cannot write the output: *' \
	sh -c '"$0" --help >/dev/full' "$GPULEASE"
umask 077
rm -rf "$XDG_STATE_HOME/gpulease"
run 'a command runs with the user'"'"'s strict umask' 0 '077' '' "$GPULEASE" \
	sh -c 'umask | tail -c 4'
is 'the umask does not change the modes of state files' [ \
	"$(stat -c %a "$(state_dir)/tickets")" = 660 ]

finish
