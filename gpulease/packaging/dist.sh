#!/bin/sh
# Makes OUT/gpulease-VERSION.tar.gz of the last commit, and from this archive the static programs
# OUT/PROGRAM-VERSION-linux-MACHINE, which run with every libc, for `make dist`.  Without
# gpulease-view in its folder gpulease has no --help, --doctor and --top; without gpulease-engine it
# has no --engine slurm.

set -eu

: "${VERSION:?}" "${OUT:?}"
compiler=${MUSL_CC:-musl-gcc}
name=gpulease-$VERSION
mkdir -p "$OUT"
git archive --format=tar.gz --prefix="$name/" -o "$OUT/$name.tar.gz" HEAD
echo "$OUT/$name.tar.gz"

if ! command -v "$compiler" >/dev/null 2>&1; then
	echo "gpulease: no static program: $compiler is not installed (Debian: musl-tools)" >&2
	exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/gpulease-dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tar -xzf "$OUT/$name.tar.gz" -C "$work"
# the variables of the make that called this are for its own build
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
make -s -j 2 -C "$work/$name" B=build "CC=$compiler" LDFLAGS=-static "VERSION=$VERSION" \
	build/gpulease build/gpulease-view build/gpulease-engine
machine=$("$compiler" -dumpmachine)
for part in gpulease-view gpulease-engine gpulease; do
	program=$OUT/$part-$VERSION-linux-${machine%%-*}
	"${STRIP:-strip}" -o "$program" "$work/$name/build/$part"
	echo "$program"
done
