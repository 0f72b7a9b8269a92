#!/bin/sh
# No function is longer than 60 lines, no file of lib/ and gpulease/ longer than 1,200, no line of
# a comment, which clang-format leaves alone, longer than 100 columns.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

for file in $(source_files lib gpulease); do
	lines=$(wc -l <"$file")
	[ "$lines" -le 1200 ] || echo "$file: $lines lines"
done >"${TMPDIR:-/tmp}/long.$$"
result 'files of at most 1,200 lines' "$(cat "${TMPDIR:-/tmp}/long.$$")"
rm -f "${TMPDIR:-/tmp}/long.$$"

result 'comments of at most 100 columns' "$(
	for file in $(source_files lib gpulease tests); do
		expand "$file" | awk -v file="$file" 'length($0) > 100 && /^ *(\/\*|\*)/ {
			print file ":" NR }'
	done
)"

if ! ctags --version 2>/dev/null | grep -q Universal; then
	results=$((results + 1))
	echo "ok $results - functions of at most 60 lines # SKIP universal-ctags is not installed"
	finish
fi
result 'functions of at most 60 lines' "$(
	source_files lib gpulease tests | grep '\.c$' |
		ctags -x --_xformat='%F %n %{end} %N' --kinds-C=f --languages=C -L - |
		awk '$3 - $2 + 1 > 60 { print $1 ":" $2 ": " $4 "() has " $3 - $2 + 1 " lines" }'
)"
finish
