#!/bin/sh
# make deb: builds the package; then dpkg really installs, upgrades, removes and purges it, in
# mounts of the test's own that cover the directories of the machine.

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

# deb VERSION: builds the package of that version; sets $package to its path
deb() {
	package=$S/deb/gpulease_$1_$architecture.deb
	mkdir -p "$S/deb"
	make -s --no-print-directory "B=$S/deb" "VERSION=$1" -o "$S/deb/gpulease" \
		-o "$S/deb/gpulease-simjob" -o "$S/deb/gpulease-slurm" \
		-o "$S/deb/gpulease-view" -o "$S/deb/gpulease-engine" deb
}

mkdir "$S/deb"
cp "$build/gpulease" "$build/gpulease-simjob" "$build/gpulease-slurm" "$build/gpulease-view" \
	"$build/gpulease-engine" "$S/deb"
run 'a package is built' 0 "$S/deb/gpulease_1.0_$architecture.deb" '' deb 1.0
cp "$package" "$S/deb/first.deb"
# the package as it was with other settings
dpkg-deb -R "$package" "$S/older"
sed -i 's/^Version:.*/Version: 0.9/' "$S/older/DEBIAN/control"
sed -i 's/^record-ends.*/#record-ends = no/' "$S/older/etc/gpulease.conf"
try dpkg-deb -b "$S/older" "$S/deb/older.deb"
wait_until "[ \"\$(date +%s)\" -gt $(date +%s) ]" # so that a recorded time would differ
run 'the same package is built again, later and in another environment' 0 '*' '' env TZ=Asia/Tokyo sh -c 'umask 077; exec "$@"' sh make -s \
	--no-print-directory "B=$S/deb" VERSION=1.0 -o "$S/deb/gpulease" \
	-o "$S/deb/gpulease-simjob" -o "$S/deb/gpulease-slurm" \
		-o "$S/deb/gpulease-view" -o "$S/deb/gpulease-engine" deb
is 'both builds of the package are identical' cmp -s "$package" "$S/deb/first.deb"
run 'all files in the package belong to root' 0 'root/root' '' sh -c 'dpkg-deb -c "$1" | cut -d " " -f 2 | sort -u' sh \
	"$package"
dpkg-deb -c "$package" >"$S/list"
for each in bash-completion/completions/gpulease zsh/vendor-completions/_gpulease \
	fish/vendor_completions.d/gpulease.fish; do
	is "the package has $each" grep -q " ./usr/share/$each\$" "$S/list"
done
run 'the package depends on passwd' 0 '*passwd' '' dpkg-deb -f "$package" Depends
if ! is_static "$build/gpulease"; then
	is 'the package depends on a version of libc' like 'libc6 (>= [0-9]*.[0-9]*), *' "$out"
fi
if is_static "$build/gpulease"; then
	skip 'lintian finds neither errors nor warnings' 'static programs are not for Debian'
elif command -v lintian >/dev/null 2>&1; then
	run 'lintian finds neither errors nor warnings' 0 '' '*' \
		env "TMPDIR=$S/deb" lintian --allow-root --fail-on error,warning "$package"
else
	skip 'lintian finds neither errors nor warnings' 'lintian is not installed'
fi

# a program for another machine, as far as its header says so: e_machine of ELF is 183 on arm64
if ! command -v dpkg-architecture >/dev/null 2>&1; then
	skip 'a package for another machine' 'dpkg-architecture is not installed'
else
	mkdir "$S/cross"
	for each in gpulease gpulease-simjob gpulease-slurm gpulease-view gpulease-engine; do
		{
			head -c 18 "$build/$each"
			printf '\267\000'
			tail -c +21 "$build/$each"
		} >"$S/cross/$each"
	done
	printf '#!/bin/sh\necho aarch64-linux-gnu\n' >"$S/cross/cc"
	printf '#!/bin/sh\n:\n' >"$S/cross/aarch64-linux-gnu-strip"
	chmod +x "$S/cross"/*
	run 'a package for another machine is built' 0 "$S/cross/gpulease_1.0_arm64.deb" '' \
		env PATH="$S/cross:$PATH" make -s --no-print-directory "B=$S/cross" VERSION=1.0 \
		"CC=$S/cross/cc" -o "$S/cross/gpulease" -o "$S/cross/gpulease-simjob" \
		-o "$S/cross/gpulease-slurm" -o "$S/cross/gpulease-view" \
		-o "$S/cross/gpulease-engine" deb
	run 'the package for another machine says so' 0 arm64 '' \
		dpkg-deb -f "$S/cross/gpulease_1.0_arm64.deb" Architecture
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
	skip 'the package on the machine' 'the machine has no packages of dpkg'
	finish
fi
# removes a gpulease that the machine has; all that dpkg changes is below these three directories
! dpkg -s gpulease >/dev/null 2>&1 || dpkg --force-unsafe-io --no-triggers -P gpulease >"$S/log" 2>&1
! getent group gpulease >/dev/null || groupdel gpulease
with_gpus
program=/usr/bin/gpulease
state=/var/lib/gpulease
export DEBIAN_FRONTEND=noninteractive
files_of_machine >"$S/before"

# do_dpkg ARGUMENT…: runs dpkg; prints its output only if it fails.  Without syncs, as the disk is
# memory, and without triggers, as the work of other packages is not of interest.
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

run 'dpkg installs a package with other settings' 0 '' '' do_dpkg -i "$S/deb/older.deb"
run 'dpkg installs the package' 0 '' '' do_dpkg -i "$package"
run 'settings that were not changed are those of the new package' 0 'record-ends = yes' '' \
	grep ^record-ends /etc/gpulease.conf
run 'the program and the state directory have the hardened modes' 0 "$hardened" '' modes
run 'root has made what all users write into' 0 'root:gpulease:2770
root:gpulease:660' '' sh -c 'cd "$1" && stat -c %U:%G:%a * | sort -u' - "$state"
run 'a statoverride keeps the mode of the program' 0 "root gpulease 2755 $program" '' dpkg-statoverride --list "$program"
run 'the manual is installed' 0 '*GPULEASE(1)*' '*' sh -c 'zcat "$1" | { mandoc || cat; }' sh \
	/usr/share/man/man1/gpulease.1.gz
run 'the installed files are those of the package' 0 '' '' dpkg --verify gpulease
configure
cp /etc/gpulease.conf "$S/conf"
serves_user "$program" package

try deb 1.1
watch &
watcher=$!
started="$started $watcher"
hold upgrade "$program"
run 'the package is upgraded while a job runs' 0 '' '' do_dpkg -i "$package"
: >"$S/enough"
wait "$watcher"
run 'dpkg knows the next version' 0 1.1 '' dpkg-query -W -f '${Version}' gpulease
run 'the program had its set-group-ID bit all the time' 0 gpulease:2755 '' sort -u "$S/seen"
run 'the modes after the upgrade are the same' 0 "$hardened" '' modes
is 'a changed configuration stays after the upgrade' cmp -s "$S/conf" /etc/gpulease.conf
let_go upgrade
is 'the job that ran meanwhile ends with its own status' test "$rc" -eq 7

run 'the package is removed' 0 '' '' do_dpkg -r gpulease
is 'the program is gone after the removal' test ! -e "$program"
is 'the state and the configuration stay after the removal' test -s "$state/history" -a -s /etc/gpulease.conf
run 'the package is installed again' 0 '' '' do_dpkg -i "$package"
run 'the modes after the second installation are the same' 0 "$hardened" '' modes

# what README.Debian describes, without moving the state directory
groupadd lab
dpkg-statoverride --remove "$program"
dpkg-statoverride --update --add root root 0755 "$program"
chgrp lab "$state"
try deb 1.2
run 'a machine set up for a group of users is upgraded' 0 '' '' do_dpkg -i "$package"
run 'the modes for that group of users stay' 0 "root:root:755 $program
root:lab:2770 $state" '' modes
groupdel lab

run 'the package is purged' 0 '' '' do_dpkg -P gpulease
run 'the statoverride is gone after the purge' 1 '' '' dpkg-statoverride --list "$program"
files_of_machine >"$S/after"
run 'only the group is left after the purge' 1 '*> gpulease:*' '' diff "$S/before" "$S/after"
is 'the group is the only difference on the machine' test "$(echo "$out" | grep -c '^[<>]')" -eq 1
run 'dpkg does not know the package after the purge' 1 '' '*' dpkg -s gpulease
run 'the package can be purged without a removal before' 0 '' '' \
	sh -c 'dpkg -i "$1" >/dev/null 2>&1 && dpkg -P gpulease >/dev/null && [ ! -e "$2" ]' sh \
	"$package" "$state"
finish
