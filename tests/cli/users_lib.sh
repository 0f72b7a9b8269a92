# shellcheck shell=sh
# Several users who trust each other, as in the lab form: bare numbers, all with one group.  Needs
# root and setpriv; read it in after lib.sh.
#
#	group_users BASE GROUPS…	makes $U1 and $U2: $program with the configuration $conf, as user
#				BASE + 1 and 2 of group BASE; GROUPS are further groups of user 1
#	shared N		a state directory for these users, and N GPUs
#	by N FUNCTION…		runs the function with the gpulease of user N

# shellcheck disable=SC2034,SC2154 # variables of the scripts that read this in
group_users() {
	UID_BASE=$1
	end_all
	umask 0
	chmod 0777 "$S" "$S/tmp"
	mkdir "$S/bin"
	install -m 0755 "$program" "${program%/*}/gpulease-view" "$S/bin"
	for user in 1 2; do
		groups=--clear-groups
		[ "$user" -eq 2 ] || [ -z "${2-}" ] || groups="--groups $2"
		printf '#!/bin/sh\nexec setpriv --reuid=%d --regid=%d %s -- %s --config %s "$@"\n' \
			$((UID_BASE + user)) "$UID_BASE" "$groups" "$S/bin/gpulease" "$conf" >"$S/user$user"
		chmod 0755 "$S/user$user"
	done
	U1=$S/user1 U2=$S/user2
}

shared() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
	chgrp "$UID_BASE" "$GPULEASE_DIR"
	chmod 2770 "$GPULEASE_DIR"
	chmod 0777 "$FAKE_SMI_DIR"
	: >"$FAKE_SMI_DIR/count"
	chmod 0666 "$FAKE_SMI_DIR/count"
}

by() {
	by_before=$GPULEASE
	GPULEASE=$S/user$1
	shift
	"$@"
	GPULEASE=$by_before
}
