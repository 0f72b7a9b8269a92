#!/bin/sh
# What gpulease knows, its manual describes and its completion completes; and the other way.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

gpulease=${GPULEASE:-build/gpulease}
manual=man/gpulease.1
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT

# differ A B: what only one of two sorted files has.
differ() {
	comm -3 "$place/$1" "$place/$2" | sed "s/^	/only in $2: /; t
		s/^/only in $1: /"
}

"$gpulease" --list-options >"$place/table" || exit 1
cut -f 1 "$place/table" | sort >"$place/options"
awk '$3 != "refused" { print $1 }' "$place/table" | sort >"$place/usable"

# every spelling that heads an entry: `.It Fl n Ar N`, `.It Fl G , Fl -gpus Ar …`
grep '^\.It .*Fl ' "$manual" | grep -o 'Fl [^ ]*' | sed 's/Fl /-/' | sort >"$place/manual"
result 'options and manual' "$(differ options manual)"

# shellcheck disable=SC2016 # for bash
bash -c '. gpulease/completion/gpulease.bash
	printf "%s\n" $_gpulease_plain $_gpulease_valued $_gpulease_verbs' |
	sort >"$place/completion"
result 'options and completion' "$(differ usable completion)"

sed -n 's/^[[:space:]]*ROW(EXIT_[A-Z_]*, \([0-9]*\).*/\1/p' gpulease/exitcodes.h |
	sort >"$place/exitcodes"
sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \(Li \)\{0,1\}\([0-9][0-9]*\)$/\2/p' \
	"$manual" | sort >"$place/exits"
result 'exit codes and manual' "$(differ exitcodes exits)"

result 'the manuals that the README names are there' "$(
	grep -oE 'man/[a-z.-]+\.[0-9]' README.md | sort -u | while read -r file; do
		[ -e "$file" ] || echo "$file"
	done
)"
finish
