#!/bin/sh
# Includes go down only, by the table of layers; every header compiles alone; lib/ does none
# of what only gpulease/ may.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# The folders, the lowest first; lib/README.md says what they are.
lib_order='lib/base lib/system lib/config lib/state lib/plan lib/nvidia lib/view lib/broker'
gpulease_order='gpulease/base gpulease/cli gpulease/context gpulease/ending gpulease/launch
	gpulease/background gpulease/job gpulease/show gpulease/supervise gpulease/batch
	gpulease/doctor gpulease/verbs gpulease gpulease/simjob gpulease/slurm gpulease/view
	gpulease/engine'
order="$lib_order $gpulease_order"

# height FOLDER: its place in the order, from 1; 0 where it has none.
height() {
	place=0
	for folder in $order; do
		place=$((place + 1))
		[ "$folder" != "$1" ] || {
			echo $place
			return
		}
	done
	echo 0
}

# "FOLDER FILE FOLDER HEADER" for every include of a header of our own.
includes() {
	source_files lib gpulease | xargs grep -H '^#include "' |
		sed 's/:#include "\([^"]*\)".*/ \1/' | while read -r file header; do
		path=$(find lib gpulease -name "$header")
		echo "${file%/*} $file ${path%/*} $header"
	done
}

found=$(includes)
result 'every folder has its place in the order' "$(
	source_files lib gpulease | sed 's,/[^/]*$,,' | sort -u | while read -r folder; do
		[ "$(height "$folder")" -gt 0 ] || echo "$folder is missing in $0"
	done
)"
result 'includes go down' "$(
	echo "$found" | cut -d ' ' -f 1,3 | sort -u | while read -r from to; do
		[ "$(height "$from")" -ge "$(height "$to")" ] ||
			echo "$found" | grep "^$from .* $to " |
			sed 's/^[^ ]* \([^ ]*\) \([^ ]*\) \(.*\)/\1 includes \3 of \2, which is above it/'
	done
)"
result 'no two files have the same name' "$(
	source_files lib gpulease | sed 's,.*/,,' | sort | uniq -d
)"
check_coverage

result 'no two headers include each other' "$(
	echo "$found" | sed -n 's,^[^ ]* .*/\([^/ ]*\.h\) [^ ]* ,\1 ,p' | tsort 2>&1 >/dev/null
)"

result 'lib/ never prints, exits, reads the environment or handles signals' "$(
	source_files lib | xargs grep -nE \
		'(^|[^_a-z])(printf|fprintf|puts|perror|exit|getenv|secure_getenv|signal) ?\(' |
		grep -v '^[^:]*:[0-9]*:[[:space:]]*\*'
)"

for header in $(source_files lib gpulease | grep '\.h$'); do
	# shellcheck disable=SC2046 # flags are words
	result "$header compiles alone" "$(
		"${CC:-cc}" $(compile_flags "${header%%/*}") -Wall -Wextra -Werror -fsyntax-only \
			-include "$header" -x c /dev/null 2>&1
	)"
done
finish
