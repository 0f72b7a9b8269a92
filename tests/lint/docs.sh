#!/bin/sh
# The options of the program, its manuals and its completion are the same, and so are the
# attributes of a jobs file and their manual.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

gpulease=${GPULEASE:-build/gpulease}
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT

# gpulease-simjob is another program, with options of its own
manuals=$(find man -name '*.[1-9]' ! -name 'gpulease-simjob.*')

# differ A B: the lines that only one of two sorted files has.
differ() {
	comm -3 "$place/$1" "$place/$2" | sed "s/^	/only in $2: /; t
		s/^/only in $1: /"
}

"$gpulease" --list-options >"$place/table" || exit 1
cut -f 1 "$place/table" | sort >"$place/options"
awk '$3 != "refused" { print $1 }' "$place/table" | sort >"$place/usable"

# Every spelling that heads an entry: `.It Fl n Ar N`, `.It Fl G , Fl -gpus Ar …`.  An option
# that two pages describe appears twice here, and once in the table: a difference.
# shellcheck disable=SC2086 # a list of files
cat $manuals | grep '^\.It .*Fl ' | grep -o 'Fl [^ ]*' | sed 's/Fl /-/' | sort >"$place/manual"
result 'each option is in one place of the manuals' "$(differ options manual)"

"$gpulease" --complete -- - | cut -f 1 | sort >"$place/completion"
result 'options and completion' "$(differ usable completion)"

sed -n 's/^[[:space:]]*ROW(EXIT_[A-Z_]*, \([0-9]*\).*/\1/p' gpulease/base/exitcodes.h |
	sort >"$place/exitcodes"
sed -n '/^\.Sh EXIT STATUS/,/^\.Sh SEE ALSO/s/^\.It \(Li \)\{0,1\}\([0-9][0-9]*\)$/\2/p' \
	man/gpulease.1 | sort >"$place/exits"
result 'exit codes and manual' "$(differ exitcodes exits)"

# `  gpus=2   …` of the help, `.It Li gpus= Ns Ar N` of the manual
"$gpulease" --help=batch | sed -n '/^Attributes/,$s/^  \([a-z-]*\).*/\1/p' | sort \
	>"$place/attributes"
sed -n '/^\.Sh ATTRIBUTES/,/^\.Sh COMMANDS/s/^\.It Li \([a-z-]*\).*/\1/p' \
	man/gpulease-batch.5 | sort >"$place/entries"
result 'attributes of a jobs file and manual' "$(differ attributes entries)"
result 'the help has attributes' "$([ -s "$place/attributes" ] || echo none)"

# What the engine refuses, and what has no effect there.
for fate in refuse ignore; do
	case $fate in
	refuse) section='What is refused' ;;
	*) section='What has no effect' ;;
	esac
	awk -F '\t' -v fate=$fate '$4 == fate && $1 ~ /^--/ { print $1 }' "$place/table" | sort \
		>"$place/$fate"
	sed -n "/^\.Ss $section/,/^\.S[hs] [^W]/p" man/gpulease-slurm.7 |
		sed "1d; /^\.Ss/,\$d" | grep -E '^\.(It )?Li "?--' | sed 's/ Ta .*//' |
		grep -oE -- '--[a-z-]+' | sort >"$place/$fate-manual"
	result "what the engine does with options, and the manual: $fate" \
		"$(differ "$fate" "$fate-manual")"
	result "the table has options of that kind: $fate" "$([ -s "$place/$fate" ] || echo none)"
done

# a `.Xr` to a page of this project leads to a page that is there
# shellcheck disable=SC2086 # a list of files
result 'the pages that the manuals name are there' "$(
	cat $manuals man/gpulease-simjob.1 | grep -oE 'Xr gpulease[a-z.-]* [0-9]' | sort -u |
		while read -r _ page section; do
			[ -e "man/$page.$section" ] || echo "$page($section)"
		done
)"

result 'the manuals that the README names are there' "$(
	grep -oE 'man/[a-z.-]+\.[0-9]' README.md | sort -u | while read -r file; do
		[ -e "$file" ] || echo "$file"
	done
)"

# `| promise | `FILE` RESULT · RESULT · `FILE` RESULT |`
sed -n '/^## What the tests show/,/^## Write/s/^| .* | \(`.*\) |$/\1/p' tests/README.md |
	sed 's/ · /\n/g' >"$place/promises"
result 'the results that tests/README.md names are there' "$(
	[ -s "$place/promises" ] || echo none
	while read -r text; do
		case $text in
		'`'*)
			file=${text%%'` '*}
			file=${file#'`'} text=${text#*'` '}
			;;
		esac
		case $file in
		*.sh) path=tests/cli/$file ;;
		*) path=tests/$file ;;
		esac
		grep -qF -e "$text" "$path" || echo "$path: $text"
	done <"$place/promises"
)"
finish
