#!/bin/sh
# make install, install-srun and uninstall: below a directory of the test, and, where root may
# mount, really, with the directories of the machine covered by the test's own.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# shellcheck source=tests/cli/install_lib.sh
. "$CLI/install_lib.sh"

at_source "$@"
root=$S/root
manuals=$(cd man && for page in *.[157]; do
	echo "./usr/share/man/man${page##*.}/$page"
done | sort)

if ! command -v make >/dev/null 2>&1; then
	skip 'install' 'make is not installed'
	finish
fi

# do_make TARGET…
do_make() {
	make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" "$@"
}

# in_root TARGET…: make as for a package.
in_root() {
	do_make "DESTDIR=$root" PREFIX=/usr "$@"
}

# what is there below the root: names, without the directories.
files() {
	(cd "$root" && find . ! -type d | sort)
}

# three_lines: whether the last run printed that many.
three_lines() {
	[ "$(echo "$out" | wc -l)" -eq 3 ]
}

# --- below a directory -------------------------------------------------------------------

[ -z "$own_mounts_why" ] || ! getent group gpulease >/dev/null ||
	skip 'install below a directory without a group' 'there is a group gpulease here'
[ -n "$own_mounts_why" ] || pristine /usr/local /etc /var/lib
run 'install says what it did' 0 "Installed below $root/usr*$root*" '' in_root install
is 'in three lines' three_lines
run 'the files' 0 "./etc/gpulease.conf
./usr/bin/gpulease
./usr/bin/gpulease-simjob
./usr/share/bash-completion/completions/gpulease
$manuals" '' files
run 'the program runs' 0 'gpulease *' '' "$root/usr/bin/gpulease" --version
if [ "$(id -u)" -ne 0 ] || ! getent group gpulease >/dev/null; then
	is 'it is executable for all, writable for root, and lends nothing' \
		test "$(stat -c %a "$root/usr/bin/gpulease")" = 755
	is 'and there is no state directory' test ! -e "$root/var/lib/gpulease"
fi
size=$(stat -c %s "$root/usr/bin/gpulease")
if is_sanitized "$build/gpulease" ||
	! ldd "$build/gpulease" 2>/dev/null | grep -q libc.so; then
	skip 'it is at most 480 KiB' 'built with sanitizers or static'
elif grep -aq 'clang version' "$build/gpulease"; then
	skip 'it is at most 480 KiB' 'clang makes it larger than gcc does'
else
	is "it is at most 480 KiB ($size)" test "$size" -le 491520
fi
run 'again, over itself' 0 '*' '' in_root install

run 'a link named srun, in a directory of its own' 0 '*/usr/lib/gpulease/bin*' '' \
	in_root install-srun
# shellcheck disable=SC2016
run 'which is gpulease' 0 '0,1' '' env PATH="$root/usr/lib/gpulease/bin:$PATH" GPULEASE_SIM=8 \
	srun -n 2 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'uninstall' 0 '*' '' in_root uninstall
run 'leaves nothing' 0 '' '' files
run 'nor the directories of its own' 1 '' '' test -e "$root/usr/lib/gpulease"
run 'the program alone' 0 '*MODE=private*' '' in_root MODE=private install
is 'without settings' test ! -e "$root/etc/gpulease.conf"

for wrong in MODE=open MODE=Lab; do
	run "$wrong is refused" 2 '' "gpulease: $wrong: it is hardened, lab or private
*" in_root "$wrong" install
done
run 'GROUP is for the lab' 2 '' 'gpulease: GROUP=lab is for MODE=lab*' \
	do_make GROUP=lab MODE=hardened DESTDIR= PREFIX="$S/none" install
run 'a group has a name' 2 '' 'gpulease: GROUP=a b: *' in_root 'GROUP=a b' install
is 'and all that before anything is done' test ! -e "$S/none"

# --- not as root, into a directory of one's own ------------------------------------------

as_nobody() {
	if [ "$(id -u)" -ne 0 ]; then
		"$@"
	else
		setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
	fi
}

own=$S/own
mkdir "$own" && chmod 777 "$own" && chmod 755 "$S"
if ! { as_nobody test -w "$own" && as_nobody test -r "$build/gpulease" &&
	as_nobody test -r man/gpulease.1; } 2>/dev/null; then
	skip 'install as a user' 'another user cannot read this place'
else
	run 'as a user it installs, too, and says what is missing' 0 '*not as root*' '' \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" "PREFIX=$own/prefix" install
	is 'in three lines' three_lines
	is 'and the program is there' test -x "$own/prefix/bin/gpulease"
	run 'the other forms take root' 2 '' 'gpulease: MODE=lab takes root;*' \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" "PREFIX=$own/other" MODE=lab install
	mkdir -m 755 "$own/shut" "$own/shut/share"
	run 'where it may not write it says what may' 2 '' \
		"gpulease: cannot write to $own/shut; try: sudo make install, or *.local*" \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" "PREFIX=$own/shut" install
	run 'and uninstall' 0 '' '' as_nobody make -s --no-print-directory "B=$build" \
		"PREFIX=$own/prefix" uninstall
	run 'leaves nothing there' 0 '' '' find "$own/prefix" ! -type d
fi

# --- for the whole machine ---------------------------------------------------------------

if [ -n "$own_mounts_why" ]; then
	skip 'install for the whole machine' "$own_mounts_why"
	finish
fi
program=/usr/local/bin/gpulease
state=/var/lib/gpulease
with_gpus
files_of_machine >"$S/before"

# undone TEXT: runs what the last `make uninstall` has said, and compares.
undone() {
	is "$1: uninstall says how to remove the rest" like '*when none does: rm -r*' "$out"
	rm -f /etc/gpulease.conf
	eval "${out##*when none does: }" || :
	files_of_machine >"$S/after"
	run "$1: then nothing is left" 0 '' '' diff "$S/before" "$S/after"
}

# A name for the user's number would make it a member of the group: none is.
run 'hardened is what root gets, whatever the environment' 0 "Installed in /usr/local for all*
*/etc/gpulease.conf*
To undo, when no job runs: make uninstall PREFIX=/usr/local; rm -r $state; groupdel gpulease" '' \
	env MODE=lab GROUP=users sh -c 'umask 0777; exec "$@"' sh \
	make -s --no-print-directory "B=$build" -o "$build/gpulease" \
	-o "$build/gpulease-simjob" install
is 'in three lines: hardened' three_lines
run 'the modes' 0 "root:gpulease:2755 $program
root:gpulease:2770 $state
root:root:644 /etc/gpulease.conf
root:root:644 /usr/local/share/man/man1/gpulease.1" '' \
	stat -c '%U:%G:%a %n' "$program" "$state" /etc/gpulease.conf \
	/usr/local/share/man/man1/gpulease.1
in_root install >/dev/null
is 'for a package on such a machine, too' test "$(stat -c %G:%a "$root/usr/bin/gpulease" \
	"$root$state" | tr '\n' ' ')" = 'gpulease:2755 gpulease:2770 '
run 'the group is a system group without members' 0 'gpulease:*:' '' getent group gpulease
is 'with a number of the system' test "$(getent group gpulease | cut -d : -f 3)" -lt 1000
configure
cp /etc/gpulease.conf "$S/conf"
serves_user "$program" hardened

watch &
watcher=$!
started="$started $watcher"
hold upgrade "$program"
inode=$(stat -c %i "$program")
for _ in 1 2 3 4 5; do
	try do_make install
	[ "$rc" -eq 0 ] || break
done
: >"$S/enough"
wait "$watcher"
is 'an upgrade while a job runs' test "$rc:$err" = 0:
is 'is another file' test "$(stat -c %i "$program")" != "$inode"
run 'and there was always one of that mode' 0 gpulease:2755 '' sort -u "$S/seen"
is 'settings that were changed stay' cmp -s "$S/conf" /etc/gpulease.conf
let_go upgrade
is 'and the job has ended as it would have' test "$rc" -eq 7

run 'uninstall keeps changed settings, and the directory' 0 "*/etc/gpulease.conf was left*
$state was left, *" '' do_make uninstall
is 'the directory is there' test -d "$state/gpu"
undone hardened

# --- lab ---------------------------------------------------------------------------------

run 'lab takes a group' 2 '' 'gpulease: MODE=lab takes GROUP=NAME*' do_make MODE=lab install
run 'lab' 0 "Installed in /usr/local, with /etc/gpulease.conf and $state of group lab.
*: usermod -aG lab USER
To undo, when no job runs: make uninstall PREFIX=/usr/local; rm -r $state; groupdel lab" '' \
	do_make MODE=lab GROUP=lab install
is 'in three lines: lab' three_lines
run 'its modes' 0 "root:root:755 $program
root:lab:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
configure
run 'lab: a member gets a GPU' 0 '[01]' '' as_user -g lab "$program" -n 1 -- \
	sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
run 'lab: another is told to join the group' 125 '' '*ask to join its group*' \
	as_user "$program" -n 1 -- true
hold member "$program" -g lab
run 'lab: again keeps the group and the job' 0 '*of group lab.*' '' do_make MODE=lab install
run 'hardened over it, while a job runs, is refused' 2 '' \
	"gpulease: jobs run on $state, which is of root:lab, mode 2770*" do_make install
run 'and nothing was changed' 0 "root:root:755 $program
root:lab:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
is 'no group either' test -z "$(getent group gpulease)"
# a second job waits for the GPU of the first, and both are seen
as_user -g lab "$program" -n 2 -- true >/dev/null 2>"$M/home/waits" &
waiter=$!
started="$started $waiter"
wait_until "[ -s '$M/home/waits' ]" || bail 'the second job does not wait'
mv "$state/live" "$state/.live" # those who wait have a bell, too
run 'who waits counts as well' 2 '' "gpulease: jobs run on $state*" do_make install
mv "$state/.live" "$state/live"
let_go member
wait "$waiter"
run 'hardened over it, when none does' 0 "*The former one is now $state.old.
*; rm -r $state $state.old; groupdel gpulease" '' do_make install
run 'the modes are those of hardened' 0 "root:gpulease:2755 $program
root:gpulease:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
run 'nothing that a member has made is in there' 0 '' '' find "$state" -mindepth 1
is 'nor can a member go to the old one' like '*700' "$(stat -c %a "$state.old")"
serves_user "$program" 'hardened after lab'
gpasswd -M root gpulease >/dev/null 2>&1 || usermod -aG gpulease root
run 'members of the group are warned of' 0 '*' \
	'gpulease: warning: members of group gpulease can forge*: root;*' do_make install
run 'lab takes its group, and not this one' 2 '' 'gpulease: GROUP=gpulease is the group of *' \
	do_make MODE=lab GROUP=gpulease install
run 'nor without a name' 2 '' "gpulease: $state is that of MODE=hardened; *GROUP=NAME*" \
	do_make MODE=lab install
hold guest "$program"
run 'over it, while a job runs, the way out is the form that it has' 2 '' \
	'gpulease: jobs run on *, or keep this form: make install
*' do_make MODE=lab GROUP=lab install
let_go guest
run 'and private is refused as long as the directory is there' 2 '' \
	"gpulease: $state is there*" do_make MODE=private install
run 'hardened to lab puts it aside, too' 0 "*of group lab. The former one is now $state.old.2.*" '' \
	do_make MODE=lab GROUP=lab install
mv "$state" "$M/elsewhere"
ln -s "$M/elsewhere" "$state"
run 'a link to a directory of another group is for root to put right' 2 '' \
	"gpulease: $state is a link*" do_make install
rm "$state"
mv "$M/elsewhere" "$state"
try do_make uninstall
groupdel lab
undone 'lab and hardened'

# --- private -----------------------------------------------------------------------------

run 'private' 0 'Installed in /usr/local: the program alone (MODE=private).
*
To undo: make uninstall PREFIX=/usr/local' '' do_make MODE=private install
is 'in three lines: private' three_lines
is 'without a directory, a group or settings' \
	test ! -e "$state" -a ! -e /etc/gpulease.conf -a -z "$(getent group gpulease)"
echo "nvidia-smi = $M/nvidia-smi" >/etc/gpulease.conf
run 'private: a user gets a GPU, and is told' 0 '[01]' '*only your own jobs*' \
	as_user "$program" -n 1 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
run 'private: uninstall' 0 '/etc/gpulease.conf was left*' '' do_make uninstall
rm /etc/gpulease.conf
files_of_machine >"$S/after"
run 'private: then nothing is left' 0 '' '' diff "$S/before" "$S/after"
finish
