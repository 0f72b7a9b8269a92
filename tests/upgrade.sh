#!/bin/sh
# An upgrade while jobs run and wait: jobs of the program of an earlier commit and jobs of this one
# on one state directory, with the oracle of storm.
#
#	tests/upgrade.sh [COMMIT]	runs $JOBS jobs (1000)

cd "$(dirname "$0")/.." || exit 1
commit=${1:-5ea592b}
build=$(dirname "${GPULEASE:-$PWD/build/gpulease}")
place=${TMPDIR:-/tmp}/gpulease-upgrade.$$
trap 'rm -rf "$place"' EXIT
mkdir "$place" || exit 1

# The earlier program is built from its own sources and needs no file of this build.
if ! git archive "$commit" 2>/dev/null | tar -x -C "$place" ||
	! make -s -C "$place" -j 2 B=build all >"$place/log" 2>&1; then
	echo "ok 1 - an earlier version beside this one # SKIP commit $commit cannot be built here"
	echo 1..1
	exit 0
fi
"$build/tests/tools/storm" --jobs "${JOBS:-1000}" --beside "$place/build/gpulease"
