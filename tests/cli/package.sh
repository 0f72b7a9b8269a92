#!/bin/sh
# make deb: the package, and with it really installed, upgraded, removed and purged by dpkg,
# with the directories of the machine covered by the test's own.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# shellcheck source=tests/cli/install_lib.sh
. "$CLI/install_lib.sh"

at_source "$@"
PATH=$PATH:/usr/sbin:/sbin

for tool in make dpkg-deb dpkg readelf; do
	command -v "$tool" >/dev/null 2>&1 && continue
	skip 'a package' "$tool is not installed"
	finish
done
architecture=$(dpkg --print-architecture)
if LC_ALL=C readelf -d "$build/gpulease" | grep -q -e 'libasan' -e 'libubsan' ||
	is_sanitized "$build/gpulease"; then
	skip 'a package' 'built with sanitizers'
	finish
fi

# deb VERSION: builds that one; its name is $package
deb() {
	package=$S/deb/gpulease_$1_$architecture.deb
	mkdir -p "$S/deb"
	make -s --no-print-directory "B=$S/deb" "VERSION=$1" -o "$S/deb/gpulease" \
		-o "$S/deb/gpulease-simjob" deb
}

mkdir "$S/deb"
cp "$build/gpulease" "$build/gpulease-simjob" "$S/deb"
run 'a package is built' 0 "$S/deb/gpulease_1.0_$architecture.deb" '' deb 1.0
cp "$package" "$S/deb/first.deb"
wait_until "[ \"\$(date +%s)\" -gt $(date +%s) ]" # what notes the time will differ
run 'and again' 0 '*' '' env TZ=Asia/Tokyo sh -c 'umask 077; exec "$@"' sh make -s \
	--no-print-directory "B=$S/deb" VERSION=1.0 -o "$S/deb/gpulease" \
	-o "$S/deb/gpulease-simjob" deb
is 'it is the same' cmp -s "$package" "$S/deb/first.deb"
run 'all is of root' 0 'root/root' '' sh -c 'dpkg-deb -c "$1" | cut -d " " -f 2 | sort -u' sh \
	"$package"
run 'it asks for the libc it needs' 0 '*passwd' '' dpkg-deb -f "$package" Depends
if ! is_static "$build/gpulease"; then
	is 'by version' like 'libc6 (>= [0-9]*.[0-9]*), *' "$out"
fi
if is_static "$build/gpulease"; then
	skip 'lintian' 'static programs are not for Debian'
elif command -v lintian >/dev/null 2>&1; then
	run 'lintian finds neither errors nor warnings' 0 '' '*' \
		env "TMPDIR=$S/deb" lintian --allow-root --fail-on error,warning "$package"
else
	skip 'lintian' 'it is not installed'
fi

# --- on the machine ----------------------------------------------------------------------

if [ -n "$own_mounts_why" ]; then
	skip 'the package on the machine' "$own_mounts_why"
	finish
fi
if ! has_overlay; then
	skip 'the package on the machine' 'the kernel has no overlays'
	finish
fi
pristine /usr /etc /var
if [ ! -s /var/lib/dpkg/status ]; then
	skip 'the package on the machine' 'it has no packages'
	finish
fi
# one that is installed on the machine; what dpkg changes is below these three
! dpkg -s gpulease >/dev/null 2>&1 || dpkg --force-unsafe-io --no-triggers -P gpulease >"$S/log" 2>&1
! getent group gpulease >/dev/null || groupdel gpulease
with_gpus
program=/usr/bin/gpulease
state=/var/lib/gpulease
export DEBIAN_FRONTEND=noninteractive
files_of_machine >"$S/before"

# do_dpkg ARGUMENT…: what it says only where it fails.  The disk is memory, and other
# packages' work on manuals is not of interest.
do_dpkg() {
	dpkg --force-unsafe-io --no-triggers "$@" >"$S/log" 2>&1 || {
		status=$?
		cat "$S/log"
		return "$status"
	}
}

modes() {
	stat -c '%U:%G:%a %n' "$program" "$state"
}

hardened="root:gpulease:2755 $program
root:gpulease:2770 $state"

run 'it installs' 0 '' '' do_dpkg -i "$package"
run 'with the modes of the hardened form' 0 "$hardened" '' modes
run 'kept by an override' 0 "root gpulease 2755 $program" '' dpkg-statoverride --list "$program"
run 'the manual is there' 0 '*GPULEASE(1)*' '*' sh -c 'zcat "$1" | { mandoc || cat; }' sh \
	/usr/share/man/man1/gpulease.1.gz
run 'its files are as they were packed' 0 '' '' dpkg --verify gpulease
configure
cp /etc/gpulease.conf "$S/conf"
serves_user "$program" package

try deb 1.1
watch &
watcher=$!
started="$started $watcher"
hold upgrade "$program"
run 'it is upgraded while a job runs' 0 '' '' do_dpkg -i "$package"
: >"$S/enough"
wait "$watcher"
run 'to the next version' 0 1.1 '' dpkg-query -W -f '${Version}' gpulease
run 'the bit was always there' 0 gpulease:2755 '' sort -u "$S/seen"
run 'the modes are the same' 0 "$hardened" '' modes
is 'settings that were changed stay' cmp -s "$S/conf" /etc/gpulease.conf
let_go upgrade
is 'and the job has ended as it would have' test "$rc" -eq 7

run 'it is removed' 0 '' '' do_dpkg -r gpulease
is 'the program is gone' test ! -e "$program"
is 'the directory and the settings stay' test -s "$state/history" -a -s /etc/gpulease.conf
run 'it is installed again' 0 '' '' do_dpkg -i "$package"
run 'with the same modes' 0 "$hardened" '' modes

# what README.Debian says, but for the moving
groupadd lab
dpkg-statoverride --remove "$program"
dpkg-statoverride --update --add root root 0755 "$program"
chgrp lab "$state"
try deb 1.2
run 'a lab upgrades, too' 0 '' '' do_dpkg -i "$package"
run 'and stays one' 0 "root:root:755 $program
root:lab:2770 $state" '' modes
groupdel lab

run 'it is purged' 0 '' '' do_dpkg -P gpulease
run 'the override is gone' 1 '' '' dpkg-statoverride --list "$program"
files_of_machine >"$S/after"
run 'nothing is left but the group' 1 '*> gpulease:*' '' diff "$S/before" "$S/after"
is 'in one line of difference' test "$(echo "$out" | grep -c '^[<>]')" -eq 1
run 'nor does dpkg know of it' 1 '' '*' dpkg -s gpulease
run 'it is purged without having been removed' 0 '' '' \
	sh -c 'dpkg -i "$1" >/dev/null 2>&1 && dpkg -P gpulease >/dev/null && [ ! -e "$2" ]' sh \
	"$package" "$state"
finish
