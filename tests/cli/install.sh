#!/bin/sh
# make install, install-srun and uninstall, below a directory of the test.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

cd "$CLI/../.." || bail 'no source'
# what make handed down is for another run of it
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
build=$(dirname "$GPULEASE")
root=$S/root

if ! command -v make >/dev/null 2>&1; then
	skip 'install' 'make is not installed'
	finish
fi

# in_root TARGET…: make as for a package.
in_root() {
	make -s --no-print-directory "B=$build" -o "$build/gpulease" "DESTDIR=$root" \
		PREFIX=/usr "$@"
}

# what is there below the root: names, without the directories.
files() {
	(cd "$root" && find . ! -type d | sort)
}

run 'install says what it did' 0 "Installed below $root/usr;*2770." '' in_root install
run 'the files' 0 './usr/bin/gpulease
./usr/share/bash-completion/completions/gpulease
./usr/share/man/man1/gpulease.1
./usr/share/man/man7/gpulease-state.7' '' files
run 'the program runs' 0 'gpulease *' '' "$root/usr/bin/gpulease" --version
is 'it is executable for all, writable for root' \
	test "$(stat -c %a "$root/usr/bin/gpulease")" = 755
size=$(stat -c %s "$root/usr/bin/gpulease")
if LC_ALL=C grep -aq -e __asan_init -e __ubsan_handle "$GPULEASE" ||
	! ldd "$GPULEASE" 2>/dev/null | grep -q libc.so; then
	skip 'it is at most 250 KiB' 'built with sanitizers or static'
else
	is "it is at most 250 KiB ($size)" test "$size" -le 256000
fi
run 'again, over itself' 0 '*' '' in_root install

run 'a link named srun, in a directory of its own' 0 '*/usr/lib/gpulease/bin*' '' \
	in_root install-srun
# shellcheck disable=SC2016
run 'which is gpulease' 0 '0,1' '' env PATH="$root/usr/lib/gpulease/bin:$PATH" \
	srun -n 2 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'uninstall' 0 '' '' in_root uninstall
run 'leaves nothing' 0 '' '' files
run 'nor the directories of its own' 1 '' '' test -e "$root/usr/lib/gpulease"

# --- not as root, into a directory of one's own ------------------------------------------

nobody=$(id -u nobody 2>/dev/null) || nobody=65534
as_user() {
	if [ "$(id -u)" -ne 0 ]; then
		"$@"
	else
		setpriv --reuid "$nobody" --regid "$nobody" --clear-groups -- "$@"
	fi
}

own=$S/own
mkdir "$own" && chmod 777 "$own" && chmod 755 "$S"
if ! { as_user test -w "$own" && as_user test -r "$build/gpulease" &&
	as_user test -r man/gpulease.1; } 2>/dev/null; then
	skip 'install as a user' 'another user cannot read this place'
else
	run 'as a user it installs, too, and says what is missing' 0 '*not as root*' '' \
		as_user make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		"PREFIX=$own/prefix" install
	is 'and the program is there' test -x "$own/prefix/bin/gpulease"
fi
finish
