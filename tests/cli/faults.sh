#!/bin/sh
# Bad input and faults: one clear line, a documented status, nothing lost.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- bad input ---------------------------------------------------------------------------

for n in -1 abc 1e99 '' ' 1' 1x 99999999999999999999; do
	run "-n '$n'" 125 '' "gpulease: *" "$GPULEASE" -n "$n" true
done
run 'a share of more than one GPU: what can be had' 125 '' \
	"gpulease: -n: '1.5': above 1 only whole numbers of GPUs; write 1 or 2" \
	"$GPULEASE" -n 1.5 true
run 'more than there are: how many there are' 125 '' \
	'gpulease: cannot lease 9 GPUs: this machine has 8' "$GPULEASE" -n 9 true
run 'no command' 125 '' 'gpulease: no command*' "$GPULEASE" -n 1
run 'an unknown option: the nearest' 125 '' "*'--stauts'*'--status'*" "$GPULEASE" --stauts
run 'an option of another time' 125 '' "gpulease: unknown option '--future'*" \
	"$GPULEASE" --future true

# --- a state directory that cannot be used -------------------------------------------------

unset GPULEASE_SIM
PATH=$CLI/../bin:$PATH
mkdir "$S/bad"
chmod 0777 "$S/bad"
run 'writable by everybody' 125 '' \
	"gpulease: cannot use state directory '$S/bad' (owner *, group *, mode 0777): *" \
	env GPULEASE_DIR="$S/bad" "$GPULEASE" true
chmod 0770 "$S/bad"
run 'without the set-group-ID bit' 125 '' '*chmod g+s*' env GPULEASE_DIR="$S/bad" "$GPULEASE" true
run 'not there' 125 '' "gpulease: cannot open state directory '/no/such': *" \
	env GPULEASE_DIR=/no/such "$GPULEASE" true
echo file >"$S/file"
run 'not a directory' 125 '' "gpulease: cannot open state directory*" \
	env GPULEASE_DIR="$S/file" "$GPULEASE" true
if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 0700 "$S/foreign" && chown 12345 "$S/foreign"
	run 'another user'"'"'s own' 125 '' "*(owner 12345, *" \
		env GPULEASE_DIR="$S/foreign" "$GPULEASE" true
	mkdir -m 2770 "$S/root" && chmod 0711 "$S"
	# setpriv leaves the environment alone
	run 'not writable' 125 '' "gpulease: cannot open state directory '$S/root' (owner 0, *" \
		setpriv --reuid=12345 --regid=12345 --clear-groups \
		env GPULEASE_DIR="$S/root" "$GPULEASE" true
else
	skip 'another user'"'"'s own' 'only root can make one'
	skip 'not writable' 'only root can become another'
fi

# --- damage while somebody waits -----------------------------------------------------------

export GPULEASE_SIM=2
run 'a queue' 0 '' '' "$GPULEASE" -n 2 true
dir=$XDG_STATE_HOME/gpulease/sim-2x24576

# damage TEXT COMMAND…: the waiter gets its turn all the same
damage() {
	text=$1
	shift
	holder before -n 2
	waiter through -n 2
	"$@"
	release_all before
	is "$text" wait_until 'runs through'
	release_all through
	run "$text: others go on" 0 '' '*' "$GPULEASE" -n 2 true
}
new_queue() {
	: >"$dir/new" && mv "$dir/new" "$dir/tickets"
}
damage 'the ticket file is deleted' rm "$dir/tickets"
damage 'it is emptied' truncate -s 0 "$dir/tickets"
damage 'it is cut in the middle of a record' truncate -s 700 "$dir/tickets"
damage 'it is replaced' new_queue
damage 'it gets half a record' sh -c 'echo half >>"$1/tickets"' - "$dir"
damage 'a lease file is replaced' sh -c 'for f in "$1"/gpu/*.lease; do
	cp "$f" "$1/new" && mv "$1/new" "$f"; done' - "$dir"
damage 'a lease file is deleted' sh -c 'rm "$1"/gpu/GPU*0.lease' - "$dir"
damage 'the FIFOs are deleted' sh -c 'rm -f "$1"/bell/*' - "$dir"
damage 'a ticket is overwritten with rubbish' sh -c \
	'dd if=/dev/urandom of="$1/tickets" bs=512 seek=1 count=1 conv=notrunc 2>/dev/null' - "$dir"
damage 'the header is' sh -c \
	'dd if=/dev/urandom of="$1/tickets" bs=512 count=1 conv=notrunc 2>/dev/null' - "$dir"

damage 'record 0 of a lease file is' sh -c 'for f in "$1"/gpu/*0.lease; do
	dd if=/dev/urandom of="$f" bs=512 count=1 conv=notrunc 2>/dev/null; done' - "$dir"

holder before -n 2
"$GPULEASE" -n 0 true
dd if=/dev/urandom of="$dir/tickets" bs=512 seek=$(($(wc -c <"$dir/tickets") / 512 - 1)) \
	count=1 conv=notrunc 2>/dev/null
waiter told -n 2
is 'records that cannot be read are told once' \
	[ "$(grep -c 'cannot be read and are skipped' "$S/told.err")" -eq 1 ]
release_all before told

holder before -n 2
waiter lost -n 2
mv "$dir" "$dir.gone" && rm -rf "$dir.gone"
release_all before
ended lost
is 'the directory itself is removed: an error, no hang' [ "$rc" -eq 125 ]
is 'that says so' grep -q 'state directory .* was lost' "$S/lost.err"

# --- no room, no descriptors ---------------------------------------------------------------

run 'a queue' 0 '' '' "$GPULEASE" -n 2 true
run 'a hard limit of file sizes below the queue' 125 '' \
	"gpulease: cannot take a ticket in '*/tickets': File too large" \
	prlimit --fsize=512:512 "$GPULEASE" true
run 'one that is no multiple of a record harms nobody' 125 '' 'gpulease: cannot take a ticket*' \
	prlimit --fsize=1300:1300 "$GPULEASE" -n 0 true
run 'others go on' 0 '' '' "$GPULEASE" -n 2 true
# LeakSanitizer needs descriptors of its own
run 'no descriptors' 125 '' 'gpulease: *' \
	env ASAN_OPTIONS=detect_leaks=0 prlimit --nofile=6:6 "$GPULEASE" -n 2 true
run 'others go on' 0 '' '' "$GPULEASE" -n 2 true
if [ "$(id -u)" -eq 0 ] && mkdir "$S/small" &&
	mount -t tmpfs -o size=64k,nr_inodes=40 tmpfs "$S/small" 2>/dev/null; then
	at_exit "umount '$S/small'"
	XDG_STATE_HOME=$S/small
	run 'a small file system' 0 '' '' "$GPULEASE" -n 2 true
	cat /dev/zero >"$S/small/fill" 2>/dev/null
	run 'no room for a ticket' 125 '' \
		"gpulease: cannot take a ticket in '*': No space left on device" \
		sh -c 'i=0; while [ $i -lt 9 ] && "$0" -n 0 true; do i=$((i + 1)); done
			exec "$0" -n 0 true' "$GPULEASE"
	rm "$S/small/fill"
	run 'with room again others go on' 0 '' '' "$GPULEASE" -n 2 true
	i=0
	while touch "$S/small/gpulease/i$i" 2>/dev/null; do i=$((i + 1)); done
	run 'no inodes' 125 '' "gpulease: cannot make a FIFO in '*': No space left on device" \
		"$GPULEASE" true
	rm -f "$S/small/gpulease"/i*
	run 'with inodes again others go on' 0 '' '' "$GPULEASE" -n 2 true
	XDG_STATE_HOME=$S/state-home
else
	skip 'a full file system' 'only root can mount one'
fi
run 'a full terminal' 125 '' 'gpulease: cannot write the output: *' \
	sh -c '"$0" --help >/dev/full' "$GPULEASE"
umask 077
rm -rf "$XDG_STATE_HOME/gpulease"
run 'under a strict umask' 0 '077' '' "$GPULEASE" sh -c 'umask | tail -c 4'
is 'modes are as they should be' [ "$(stat -c %a "$(state_dir)/tickets")" = 660 ]

finish
