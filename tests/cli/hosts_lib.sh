# shellcheck shell=sh
# What hosts.sh and hosts_sshd.sh share, after scratch: gpulease here in $S/bin, where a script of
# the name ssh goes, and gpulease as other machines have it in $S/far.
# shellcheck disable=SC2034,SC2154 # variables of the scripts and of lib.sh

built=$(dirname "$GPULEASE")/gpulease
[ -e "$built-view" ] || built=${TOOLS%/tests/tools}/gpulease
mkdir "$S/bin" "$S/far"
install -m 0755 "$GPULEASE" "$S/far/gpulease"
install -m 0755 "$GPULEASE" "$S/bin/gpulease"
install -m 0755 "$built-view" "$S/bin/gpulease-view"
GPULEASE=$S/bin/gpulease
plain_path=$PATH
PATH=$S/bin:$PATH

# row TEXT HOST PATTERN: a result, good if the row of the host in $out is like that.  Between its
# cells is one blank.
row() {
	row_text=$(printf '%s\n' "$out" | grep "^$2 " | tr -s ' ' | sed 's/ $//')
	if like "$2 $3" "$row_text"; then
		ok "$1"
	else
		not_ok "$1" "expected: $2 $3" "row: $row_text"
	fi
}
