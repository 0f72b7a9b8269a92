#!/bin/sh
# --host with a real ssh and a real sshd on the loopback, which runs as the user of the test.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/hosts_lib.sh
. "$CLI/hosts_lib.sh"

sshd=$(PATH=$plain_path:/usr/sbin:/sbin command -v sshd)
ssh=$(PATH=$plain_path command -v ssh)

configure_sshd() {
	mkdir -m 0700 "$S/sshd"
	ssh-keygen -q -t ed25519 -N '' -f "$S/sshd/host" &&
		ssh-keygen -q -t ed25519 -N '' -f "$S/sshd/user" || return
	cp "$S/sshd/user.pub" "$S/sshd/authorized"
	echo 'All of this is watched.' >"$S/sshd/banner"
	cat >"$S/sshd/config" <<END
ListenAddress 127.0.0.1
HostKey $S/sshd/host
AuthorizedKeysFile $S/sshd/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
Banner $S/sshd/banner
SetEnv PATH=$S/far:$plain_path XDG_STATE_HOME=$S/state-home GPULEASE_SIM=8
END
	# the package makes it at the start of the service
	if [ "$(id -u)" -eq 0 ] && [ ! -d /run/sshd ]; then
		mkdir /run/sshd && at_exit 'rmdir /run/sshd'
	fi
}

# Starts sshd on a free port of the loopback.  Returns 1 with the reason in $why.
start_sshd() {
	why='no port is free'
	for port in 1 2 3 4 5 6 7 8 9; do
		port=$((20000 + ($$ * 9 + port) % 12000))
		: >"$S/sshd/log"
		"$sshd" -D -e -f "$S/sshd/config" -p "$port" 2>"$S/sshd/log" &
		sshd_pid=$!
		started="$started $sshd_pid"
		wait_until "grep -q 'Server listening' '$S/sshd/log' ||
			[ ! -e /proc/$sshd_pid ] || [ \"\$(process_state $sshd_pid)\" = Z ]"
		! grep -q 'Server listening' "$S/sshd/log" || return 0
		why=$(head -n 1 "$S/sshd/log")
	done
	return 1
}

# The configuration of ssh: names for the one sshd, and for what can go wrong with it.
configure_ssh() {
	echo "[127.0.0.1]:$port $(cut -d ' ' -f 1,2 "$S/sshd/host.pub")" >"$S/sshd/known"
	cat >"$S/sshd/client" <<END
Host closed
	Port 1
Host stranger
	UserKnownHostsFile /dev/null
Host denied
	IdentityFile $S/sshd/host
Host shared
	ControlMaster auto
	ControlPersist 600
	ControlPath master
Host *
	HostName 127.0.0.1
	Port $port
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $S/sshd/known
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
Host !denied *
	IdentityFile $S/sshd/user
END
	# the whole path may be too long for the socket of a master
	printf '#!/bin/sh\ncd "%s" && exec "%s" -F client "$@"\n' "$S/sshd" "$ssh" >"$S/bin/ssh"
	chmod +x "$S/bin/ssh"
}

# Whether this user can log in by ssh at all; else $why says why not.
can_log_in() {
	why='ssh-keygen fails'
	configure_sshd && start_sshd || return
	configure_ssh
	why=$("$S/bin/ssh" -oBatchMode=yes near true 2>&1)
}

if [ -z "$sshd" ] || [ -z "$ssh" ]; then
	skip 'hosts behind a real sshd' 'openssh-server is not installed'
	finish
elif ! can_log_in; then
	skip 'hosts behind a real sshd' "this user cannot log in: $(echo "$why" | tail -n 1)"
	finish
fi

try "$GPULEASE" --status --host near,closed,stranger,denied
is 'a host that cannot be asked makes it 1' [ "$rc" -eq 1 ]
row 'an answer' near '8 8 0 0 - now now -'
row 'nothing listens' closed '- * ssh: connect to host 127.0.0.1 port 1: Connection refused'
row 'an unknown host key' stranger '- * No * host key is known for *127.0.0.1*'
row 'a key that is refused' denied '- * *Permission denied (publickey*).'

# its title hides its environment, so the library cannot find it
at_exit '"$S/bin/ssh" -q -O exit shared 2>/dev/null'
for each in first second; do
	try "$GPULEASE" --status --host shared
	is "the $each answer over a shared connection is complete" [ "$rc" -eq 0 ]
	row "and can be read ($each)" shared '8 8 0 0 - now now'
done
is 'the shared connection is still there' "$S/bin/ssh" -q -O check shared 2>/dev/null

"$S/far/gpulease" --retries 1 --name "it's one" -- true 2>/dev/null
run 'words get through the shell of the host' 0 "HOST *
near * it's one * true" '' "$GPULEASE" --history --name "it's one" --host near
finish
