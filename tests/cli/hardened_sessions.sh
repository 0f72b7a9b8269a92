#!/bin/sh
# Sessions of the set-group-ID form: tmux, the relay and the command have the user's rights alone,
# the log belongs to the user, and no other user can take the place of the relay.
# shellcheck disable=SC2016 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'sessions of the set-group-ID form' "$@"
if ! command -v tmux >/dev/null 2>&1; then
	skip 'sessions of the set-group-ID form' 'tmux is not installed'
	finish
fi
umask 022
for each in home tmux; do
	mkdir "$S/open/$each"
	chown $((UID_BASE + 1)):$((UID_BASE + 1)) "$S/open/$each"
done
chmod 0700 "$S/open/tmux"
export XDG_STATE_HOME="$S/open/home" TMUX_TMPDIR="$S/open/tmux" SHELL=/bin/sh TERM=xterm
unset TMUX STY XDG_RUNTIME_DIR
at_exit 'as 1 tmux kill-server 2>/dev/null'
logs=$XDG_STATE_HOME/gpulease/logs me=$((UID_BASE + 1)):$((UID_BASE + 1))

run 'a user starts a job in a session' 0 '[0-9]*' '' "$U1" --screen -n 1 -- \
	sh -c '"$1" rights "$2"; tty; ls -l "$(tty)"; read -r word' sh "$TOOLS/attack" "$GROUP"
id=$out
is 'the job has a terminal' wait_until '"$U1" --log "$id" | grep -q "^/dev/pts/"'
is 'the command in the session has no right of the group' \
	[ -z "$("$U1" --log "$id" | grep -v '^gpulease: \|/dev/pts')" ]
is 'the terminal does not have the group' eval '! "$U1" --log "$id" | grep "^c" | grep -qw "$GROUP"'
is 'the log has the user and the user'"'"'s group' [ "$(stat -c %u:%g "$logs/$id.log")" = "$me" ]
is 'no other user can read the log' [ "$(stat -c %a "$logs/$id.log")" = 600 ]
is 'the server of tmux and the relay do not have the group' [ -z "$(
	for pid in $(pgrep -u $((UID_BASE + 1)) 'tmux|gpulease'); do
		# the supervisor has it
		! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 'tmux\|--enter-session' ||
			grep -E '^(Gid|Groups):' "/proc/$pid/status" | grep -w "$GROUP"
	done
)" ]
run 'another user cannot follow the job' 1 '' '*belongs to*' "$U2" --follow "$id"
run 'the user cancels the job' 0 '' '' "$U1" --cancel "$id"

if ! command -v python3 >/dev/null 2>&1; then
	skip 'another user cannot take the place of the relay' 'python3 is not installed'
	finish
fi
# tmux waits until another user has connected to the socket
mkdir "$S/open/bin"
cat >"$S/open/bin/tmux" <<END
#!/bin/sh
if [ "\$1" = new-session ]; then
	before=
	for each; do
		[ "\$before" != --enter-session ] || token=\$each
		before=\$each
	done
	echo "\$token" >"$S/open/begun.new" && mv "$S/open/begun.new" "$S/open/begun"
	until [ -e "$S/open/there" ]; do sleep 0.05; done
fi
exec $(command -v tmux) "\$@"
END
chmod 0755 "$S/open/bin/tmux"
cat >"$S/open/take.py" <<'END'
import socket, sys
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect("\0gpulease-session-" + sys.argv[1])
open(sys.argv[2], "w").close()
message, fds, flags, address = socket.recv_fds(peer, 10, 2)
print("got", len(message), "bytes and", len(fds), "descriptors")
END
PATH="$S/open/bin:$PATH" "$U1" --screen -n 1 -- sh -c 'echo mine' >"$S/id" 2>"$S/err" &
first=$!
is 'a session begins' wait_until '[ -e "$S/open/begun" ]'
run 'another user who connects gets nothing' 0 'got 0 bytes and 0 descriptors' '' \
	as 2 python3 "$S/open/take.py" "$(cat "$S/open/begun")" "$S/open/there"
wait "$first"
id=$(cat "$S/id")
is 'the job has its session all the same' wait_until '"$U1" --log "$id" 2>/dev/null | grep -qx mine'
goes_on 'afterwards the GPUs are free'
finish
