# shellcheck shell=sh
# What the lint scripts share: results in TAP.

set -u
results=0 failures=0

# result TEXT OUTPUT: good where the output, which says what is wrong, is empty.
result() {
	results=$((results + 1))
	if [ -z "$2" ]; then
		echo "ok $results - $1"
	else
		failures=$((failures + 1))
		echo "not ok $results - $1"
		printf '%s\n' "$2" | sed 's/^/# /'
	fi
}

# skip_all WHY: nothing of this script can be done here.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# need PROGRAM: else all is skipped.
need() {
	command -v "$1" >/dev/null 2>&1 || skip_all "$1 is not installed"
}

finish() {
	echo "1..$results"
	[ "$failures" -eq 0 ]
	exit
}
