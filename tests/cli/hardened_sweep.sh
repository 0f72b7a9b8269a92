#!/bin/sh
# The set-group-ID form, killed and stopped by its own user: at every system call, with the
# others being other users, and at random among many clients of several users.
#
#	hardened_sweep.sh		some of the calls, and ten seconds
#	hardened_sweep.sh SITUATION	all calls in the situations of sweep that have this in
#					their name
#	hardened_sweep.sh torture	a minute

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'the set-group-ID form under kills and stops' "$@"

first=$((UID_BASE + 1))

# tool COMMAND…: what it prints are results of this script.
tool() {
	"$@" >"$S/tap"
	tool_rc=$?
	while read -r word text; do
		case $word in
		ok) ok "${text#* - }" ;;
		not) not_ok "${text#* - }" ;;
		'#') echo "# $text" ;;
		esac
	done <"$S/tap"
	[ "$tool_rc" -le 1 ] || not_ok "$* ran" "exit status $tool_rc"
}

driver 'gpus 8'
case ${1-} in
'')
	tool "$TOOLS/sweep" --users "$first,$M/state" --quick --every 24
	tool "$TOOLS/torture" --users "$first,$M/state" --seconds 8 --clients 24 --card 81559
	;;
torture)
	tool "$TOOLS/torture" --users "$first,$M/state" --seconds 60 --card 81559
	;;
*)
	tool "$TOOLS/sweep" --users "$first,$M/state" --situation "$1"
	;;
esac
finish
