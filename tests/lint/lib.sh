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

# source_files ROOT…: the .c and .h files below these folders, a line each.
source_files() {
	find "$@" -name '*.[ch]' | sort
}

# compile_flags FOLDER: how make compiles the files of lib or of gpulease: lib sees itself alone.
# The version is any string; __FILE__ is one that needs no quotes.
compile_flags() {
	printf '%s' '-std=gnu11 -D_GNU_SOURCE -DGPULEASE_VERSION=__FILE__'
	if [ "$1" = lib ]; then
		find lib -type d
	else
		find lib gpulease -type d
	fi | sort | sed 's/^/ -I/' | tr -d '\n'
}

# A check that sees no files passes, so the number of files is a result, too.
check_coverage() {
	git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return
	seen=$(source_files lib gpulease tests | wc -l)
	known=$(git ls-files 'lib/*.[ch]' 'gpulease/*.[ch]' 'tests/*.[ch]' | wc -l)
	result 'all files of git are checked' "$([ "$seen" -ge "$known" ] ||
		echo "$seen files are checked, git lists $known")"
}
