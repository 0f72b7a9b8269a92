#!/bin/sh
# Makes OUT/gpulease_VERSION_ARCH.deb from the program BUILT, for `make deb`.  Needs only dpkg-deb,
# and no root.  The same program and date give the same bytes: dpkg-deb sets dates of files that are
# later than SOURCE_DATE_EPOCH to it.

set -eu

: "${BUILT:?}" "${VERSION:?}" "${OUT:?}"
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gpulease-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/root
lib=$root/usr/lib/gpulease
umask 022

die() {
	echo "gpulease: $*" >&2
	exit 1
}

# Prints the date of the source in seconds: of the last commit, or without git of the newest file.
date_of_source() {
	git -C "$source" log -1 --format=%ct 2>/dev/null ||
		find "$source" -path '*/build*' -prune -o -type f -exec stat -c %Y {} + |
		sort -n | tail -n 1
}

# Prints which libc the programs need: "libc6 (>= 2.34), "; nothing for a static program.
depends_on_libc() {
	case $(LC_ALL=C readelf -d "$root"/usr/bin/* "$lib"/* | grep NEEDED) in
	*'[libc.so.6]'*) ;;
	'') return ;;
	*) die 'the program was not built with glibc, which Debian has; build it again' ;;
	esac
	versions=$(LC_ALL=C readelf -V "$root"/usr/bin/* "$lib"/*)
	highest=$(echo "$versions" | grep -o 'GLIBC_[0-9][0-9.]*' | sort -Vu | tail -n 1)
	case $versions in # the linker's mark: a program with DT_RELR needs glibc 2.36
	*GLIBC_ABI_DT_RELR*) highest=$(printf '%s\n' "$highest" GLIBC_2.36 | sort -V | tail -n 1) ;;
	esac
	echo "libc6 (>= ${highest#GLIBC_}), "
}

fill() {
	sed -e "s/@VERSION@/$VERSION/g" -e "s/@DATE@/$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")/g" \
		-e "s/@ARCHITECTURE@/$architecture/g" -e "s/@LIBC@/${libc-}/g" \
		-e "s/@SIZE@/${size-}/g" "$1"
}

files() {
	BUILT=$BUILT STRIP=$strip ZSH_FUNCTIONS=vendor-completions PREFIX=/usr DESTDIR=$root \
		MODE=private sh "$here/setup.sh" install >/dev/null
	"$strip" --remove-section=.comment --remove-section=.note "$root"/usr/bin/* "$lib"/*
	install -D -m 0644 "$here/gpulease.conf" "$root/etc/gpulease.conf"
	doc=$root/usr/share/doc/gpulease
	install -d "$doc"
	install -m 0644 "$here/copyright" "$here/README.Debian" "$doc"
	fill "$here/changelog" >"$doc/changelog"
	gzip -9n "$doc/changelog" "$root"/usr/share/man/man*/*
}

control() {
	install -d "$root/DEBIAN"
	libc=$(depends_on_libc)
	size=$(du -k -s --apparent-size --exclude DEBIAN "$root" | cut -f 1)
	fill "$here/control" >"$root/DEBIAN/control"
	install -m 0644 "$here/conffiles" "$root/DEBIAN"
	sed -e "/^@STATE_SH@/{r $here/state.sh" -e 'd}' "$here/postinst" >"$root/DEBIAN/postinst"
	chmod 0755 "$root/DEBIAN/postinst"
	install -m 0755 "$here/postrm" "$root/DEBIAN"
	(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
	chmod 0644 "$root/DEBIAN/md5sums" "$root/DEBIAN/control"
}

# machine_of PROGRAM: for which kind of CPU it is
machine_of() {
	LC_ALL=C readelf -h "$1" | grep -e Class: -e Machine:
}

command -v dpkg-deb >/dev/null 2>&1 || die 'make deb needs dpkg-deb; install the package dpkg'
architecture=$(dpkg --print-architecture) strip=strip
if [ "$(machine_of "$BUILT")" != "$(machine_of "$(command -v dpkg-deb)")" ]; then
	triplet=$("${CC:-cc}" -dumpmachine) strip=$triplet-strip
	architecture=$(dpkg-architecture -f -t "$triplet" -q DEB_HOST_ARCH) ||
		die 'make deb needs dpkg-architecture for another machine; install the package dpkg-dev'
fi
: "${SOURCE_DATE_EPOCH:=$(date_of_source)}"
export SOURCE_DATE_EPOCH
files
control
package=$OUT/gpulease_${VERSION}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$work/package.deb" >/dev/null
mv -f "$work/package.deb" "$package"
echo "$package"
