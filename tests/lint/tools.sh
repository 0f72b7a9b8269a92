#!/bin/sh
# One of the tools that read the source: gcc, clang, tidy, cppcheck, format, shellcheck,
# mandoc.  A tool that is not installed is skipped.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# make hands its own flags down; this is another build
unset MAKEFLAGS MFLAGS MAKELEVEL

# Everything compiles without a warning.
compiler() {
	need "$1"
	what=everything
	[ -e /usr/include/cmocka.h ] || what=all
	log=$(make -s --no-print-directory "B=build-lint-$1" "CC=$1" WERROR=-Werror -j 2 -k "$what" \
		2>&1) && log=
	result "$1 has nothing to say ($what)" "$log"
}

case ${1-} in
gcc | clang)
	compiler "$1"
	;;
tidy)
	need clang-tidy
	log=$(source_files lib gpulease | grep '\.c$' |
		xargs -P 2 -n 8 sh -c 'clang-tidy --quiet "$@" -- '"$(compile_flags all)"' 2>/dev/null' sh |
		grep -A 3 -E '^[^ ].*: (warning|error):')
	result 'clang-tidy' "$log"
	;;
cppcheck)
	need cppcheck
	# what it cannot see: memory that the end of a scope frees, structs in compound literals,
	# what the macros of the option table let through; the compilers look for the same
	# shellcheck disable=SC2046 # flags are words
	log=$(cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr \
		--enable=warning,portability,performance --suppress=missingIncludeSystem \
		--suppress=memleak --suppress=uninitvar --suppress=ctunullpointer \
		--suppress=unknownEvaluationOrder --template='{file}:{line}: {id}: {message}' \
		-D__linux__ $(compile_flags all | sed 's/^-std=gnu11//') lib gpulease 2>&1) &&
		log=
	result 'cppcheck' "$log"
	;;
format)
	need clang-format
	for file in $(source_files lib gpulease tests); do
		result "$file" "$(clang-format --dry-run -Werror "$file" 2>&1 |
			grep -E 'error|warning' | head -n 3)"
	done
	;;
shellcheck)
	need shellcheck
	for file in tests/run tests/*.sh tests/*/*.sh tests/bin/* .ci/run \
		gpulease/completion/*.bash gpulease/examples/*.sh gpulease/packaging/*.sh \
		gpulease/packaging/post*; do
		case $(head -n 1 "$file") in
		*python* | *perl*) continue ;;
		esac
		# SC2016: what stands in single quotes is for the shell of a job.  SC2317: functions
		# are called by way of others.  SC1003: a backslash before a quote is meant.
		result "$file" "$(shellcheck -x -e SC1003,SC2016,SC2317 "$file" 2>&1)"
	done
	;;
mandoc)
	need mandoc
	for file in man/*.[1-9]; do
		# whether another manual is installed here says nothing of this one
		result "$file" "$(mandoc -T lint "$file" 2>&1 |
			grep -v -e 'referenced manual not found' -e 'outdated mandoc.db')"
	done
	;;
*)
	echo 'usage: tools.sh gcc | clang | tidy | cppcheck | format | shellcheck | mandoc' >&2
	exit 125
	;;
esac
finish
