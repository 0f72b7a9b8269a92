#!/bin/sh
# The set-group-ID form, killed and stopped by its own user: at every system call, while the other
# clients belong to other users, and at random among many clients of several users.
#
#	hardened_sweep.sh		some of the calls, and ten seconds
#	hardened_sweep.sh SITUATION	all calls in the situations of sweep that have this in
#					their name
#	hardened_sweep.sh torture	a minute
#	hardened_sweep.sh storm N	N jobs in all the ways that jobs are started

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'the set-group-ID form under kills and stops' "$@"

first=$((UID_BASE + 1))

# tool COMMAND…: the results that the command prints become results of this script.
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
	[ "$tool_rc" -le 1 ] || not_ok "$* runs to its end" "exit status $tool_rc"
}

# storm N: N jobs on four GPUs, with the end of each recorded
storm() {
	driver 'gpus 4' 'need 512'
	configure 'record-ends = yes' 'max-priority = 9' 'retry-delay = 50ms'
	tool "$TOOLS/storm" --users "$first,$M/state" --jobs "$1"
	driver 'gpus 8'
	configure
}

driver 'gpus 8'
case ${1-} in
'')
	storm 100
	tool "$TOOLS/sweep" --users "$first,$M/state" --quick --every 48
	tool "$TOOLS/torture" --users "$first,$M/state" --seconds 8 --clients 24 --card 81559
	;;
storm)
	storm "$2"
	;;
torture)
	tool "$TOOLS/torture" --users "$first,$M/state" --seconds 60 --card 81559
	;;
*)
	tool "$TOOLS/sweep" --users "$first,$M/state" --situation "$1"
	;;
esac
finish
