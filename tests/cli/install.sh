#!/bin/sh
# make install, install-srun and uninstall: below a directory of the test, and, where root may
# mount, for the whole machine, with overlays over the directories of the machine.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# shellcheck source=tests/cli/install_lib.sh
. "$CLI/install_lib.sh"

at_source "$@"
root=$S/root
manuals=$(cd man && for page in *.[1578]; do
	echo "./usr/share/man/man${page##*.}/$page"
done | sort)

if ! command -v make >/dev/null 2>&1; then
	skip 'make install' 'make is not installed'
	finish
fi

# do_make TARGET…: make with the programs that are built already.
do_make() {
	make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" -o "$build/gpulease-slurm" -o "$build/gpulease-view" \
		-o "$build/gpulease-engine" "$@"
}

# in_root TARGET…: make as for a package.
in_root() {
	do_make "DESTDIR=$root" PREFIX=/usr "$@"
}

# files: the names below the root, without the directories.
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
is 'the message of install has three lines' three_lines
run 'install makes these files' 0 "./etc/gpulease.conf
./usr/bin/gpulease
./usr/bin/gpulease-simjob
./usr/lib/gpulease/gpulease-engine
./usr/lib/gpulease/gpulease-slurm
./usr/lib/gpulease/gpulease-view
./usr/share/bash-completion/completions/gpulease
./usr/share/fish/vendor_completions.d/gpulease.fish
$manuals
./usr/share/zsh/site-functions/_gpulease" '' files
run 'the installed program runs' 0 'gpulease *' '' "$root/usr/bin/gpulease" --version
if [ "$(id -u)" -ne 0 ] || ! getent group gpulease >/dev/null; then
	is 'the program is executable for all, writable for root only' \
		test "$(stat -c %a "$root/usr/bin/gpulease")" = 755
	is 'install below a directory makes no state directory' test ! -e "$root/var/lib/gpulease"
fi
run 'install over itself succeeds' 0 '*' '' in_root install
is 'install over itself has nothing new to say about the settings' three_lines
kept=$root/etc/gpulease.conf
cp "$kept" "$S/kept"
printf '%s\n' '#record-ends = no' '  margin=1G' '# max-time is 2d' '#settle-time	= 5m' >"$kept"
cp "$kept" "$S/old"
run 'install over older settings says which are new' 0 "$kept stays as it is; new *" '' in_root install
is 'install over older settings keeps them' cmp -s "$S/old" "$kept"
# the new settings are all that the installed file has, without the two that the old one has
{
	echo 'record-ends = yes'
	sed -n '/^#.models/q; s/^\(#[a-z-]* = .*\)/\1/p' "$S/kept" | grep -v -e '^#margin ' -e '^#settle-time '
} | sort >"$S/new"
printf '%s\n' "$out" | sed -n 's/^	//p' | sort >"$S/said"
run 'the new settings are those that the old file neither sets nor mentions' 0 '' '' \
	diff "$S/new" "$S/said"
echo 'record-ends = no' >"$kept"
try in_root install
is 'a setting that the old file refuses is not new' [ "${out#*record-ends}" = "$out" ]
cp "$S/kept" "$kept"

run 'install-srun makes a link named srun in a directory of its own' 0 \
	'*/usr/lib/gpulease/bin*' '' \
	in_root install-srun
# shellcheck disable=SC2016
run 'the link named srun is gpulease' 0 '0,1' '' env PATH="$root/usr/lib/gpulease/bin:$PATH" \
	GPULEASE_SIM=8 \
	srun --gpus=2 sh -c 'echo $CUDA_VISIBLE_DEVICES'
echo '#!/bin/sh
srun sh -c "echo \$SLURM_PROCID; exit 3"' >"$S/job.sh"
run 'the link named sbatch runs a job script, and its srun is the link beside it' 3 'Submitted batch job *' '' \
	env PATH="$root/usr/lib/gpulease/bin:$PATH" GPULEASE_SIM=8 HOME="$S" \
	sbatch --wait -G 2 -n 2 -o "$S/job.out" "$S/job.sh"
run 'the other links are parts of gpulease-slurm' 0 '*JOBID*
n1
n2' '' env PATH="$root/usr/lib/gpulease/bin:$PATH" GPULEASE_SIM=8 HOME="$S" \
	sh -c 'squeue && scancel --me && scontrol show hostnames "n[1-2]"'
is 'the script has two tasks' [ "$(grep '^[01]$' "$S/job.out" | sort | tr '\n' ' ')" = '0 1 ' ]
run 'uninstall succeeds' 0 '*' '' in_root uninstall
run 'uninstall leaves no file' 0 '' '' files
run 'install-srun without a program to link to is refused' 2 '*' \
	'gpulease: */bin/gpulease does not exist; make install makes it*' in_root install-srun

# Where Slurm is installed.  A link to gpulease is no Slurm.
mkdir "$S/slurm" "$S/links"
for each in squeue scontrol; do
	printf '#!/bin/sh\n' >"$S/slurm/$each"
	chmod 0755 "$S/slurm/$each"
done
mine=$S/mine
mkdir -p "$mine/bin" "$mine/lib/gpulease"
install -m 0755 "$GPULEASE" "$mine/bin/gpulease"
install -m 0755 "$build/gpulease-slurm" "$mine/lib/gpulease/gpulease-slurm"
ln -s "$mine/lib/gpulease/gpulease-slurm" "$S/links/sbatch"
# install_srun WORD…: with no Slurm in PATH but that of the test
install_srun() {
	tools=$S/tools
	mkdir -p "$tools"
	for each in make sh ln install id readlink dirname basename mkdir cc cat sed uname; do
		ln -sfn "$(command -v "$each")" "$tools/$each"
	done
	env "PATH=$S/slurm:$S/links:$tools" make -s --no-print-directory "B=$build" \
		DESTDIR= "PREFIX=$mine" "$@" install-srun
}
run 'install-srun names the commands of a real Slurm, and asks for a flag' 2 '' \
	"gpulease: Slurm is installed here: $S/slurm/squeue $S/slurm/scontrol; *make install-srun OVER_SLURM=yes
make: *" install_srun
run 'it has made nothing' 1 '' '' test -e "$mine/lib/gpulease/bin"
run 'a flag that is no answer is refused' 2 '' 'gpulease: OVER_SLURM=y: write yes or no*' \
	install_srun OVER_SLURM=y
run 'with the flag it makes the links' 0 \
	"These hide the commands of Slurm: $S/slurm/squeue $S/slurm/scontrol
To use it: PATH=$mine/lib/gpulease/bin:*" '' install_srun OVER_SLURM=yes
is 'they are there' [ "$(cd "$mine/lib/gpulease/bin" && echo *)" = 'sbatch scancel scontrol squeue srun' ]
rm "$S"/slurm/*
run 'without Slurm there is nothing to ask' 0 'To use it: *' '' install_srun
run 'uninstall leaves no directory of gpulease' 1 '' '' test -e "$root/usr/lib/gpulease"
run 'MODE=private installs the program alone' 0 '*MODE=private*' '' in_root MODE=private install
is 'MODE=private makes no configuration' test ! -e "$root/etc/gpulease.conf"

for wrong in MODE=open MODE=Lab; do
	run "$wrong is refused" 2 '' "gpulease: $wrong: write hardened, lab or private
*" in_root "$wrong" install
done
run 'GROUP without MODE=lab is refused' 2 '' 'gpulease: GROUP=lab is for MODE=lab*' \
	do_make GROUP=lab MODE=hardened DESTDIR= PREFIX="$S/none" install
run 'a GROUP with a blank is refused' 2 '' 'gpulease: GROUP=a b: *' in_root 'GROUP=a b' install
is 'a refused install makes nothing' test ! -e "$S/none"

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
	as_nobody test -r "$PWD/man/gpulease.1"; } 2>/dev/null; then
	skip 'install as a user' 'another user cannot read this place'
else
	run 'install as a user says what is missing' 0 '*not as root*' '' \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" -o "$build/gpulease-slurm" \
		-o "$build/gpulease-view" -o "$build/gpulease-engine" "PREFIX=$own/prefix" install
	is 'the message of install as a user has three lines' three_lines
	is 'install as a user installs the program' test -x "$own/prefix/bin/gpulease"
	run 'MODE=lab as a user is refused' 2 '' 'gpulease: MODE=lab needs root;*' \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" -o "$build/gpulease-slurm" \
		-o "$build/gpulease-view" -o "$build/gpulease-engine" "PREFIX=$own/other" MODE=lab install
	# as root the directories belong to another user than as_nobody; else their mode closes them
	mkdir -m 755 "$own/shut" "$own/shut/share"
	[ "$(id -u)" -eq 0 ] || chmod 555 "$own/shut" "$own/shut/share"
	run 'install without write permission says what to do' 2 '' \
		"gpulease: cannot write to $own/shut; try: sudo make install, or *.local*" \
		as_nobody make -s --no-print-directory "B=$build" -o "$build/gpulease" \
		-o "$build/gpulease-simjob" -o "$build/gpulease-slurm" \
		-o "$build/gpulease-view" -o "$build/gpulease-engine" "PREFIX=$own/shut" install
	chmod 755 "$own/shut" "$own/shut/share"
	run 'uninstall as a user succeeds' 0 '' '' as_nobody make -s \
		--no-print-directory "B=$build" \
		"PREFIX=$own/prefix" uninstall
	run 'uninstall as a user leaves no file' 0 '' '' find "$own/prefix" ! -type d
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

# undone TEXT: results; runs the command that the last `make uninstall` has printed, and compares.
undone() {
	is "$1: uninstall says how to remove the rest" like '*when none does: rm -r*' "$out"
	rm -f /etc/gpulease.conf
	eval "${out##*when none does: }" || :
	files_of_machine >"$S/after"
	run "$1: then nothing is left" 0 '' '' diff "$S/before" "$S/after"
}

# No user has the number $USER_ID, so this user cannot be a member of the group.
run 'install as root is hardened, whatever the environment' 0 "Installed in /usr/local for all*
*/etc/gpulease.conf*
To undo, when no job runs: make uninstall PREFIX=/usr/local; rm -r $state; groupdel gpulease" '' \
	env MODE=lab GROUP=users sh -c 'umask 0777; exec "$@"' sh \
	make -s --no-print-directory "B=$build" -o "$build/gpulease" \
	-o "$build/gpulease-simjob" -o "$build/gpulease-slurm" -o "$build/gpulease-view" \
	-o "$build/gpulease-engine" install
is 'hardened: the message has three lines' three_lines
run 'hardened: owners, groups and modes' 0 "root:gpulease:2755 $program
root:gpulease:2770 $state
root:root:644 /etc/gpulease.conf
root:root:644 /usr/local/share/man/man1/gpulease.1" '' \
	stat -c '%U:%G:%a %n' "$program" "$state" /etc/gpulease.conf \
	/usr/local/share/man/man1/gpulease.1
shared=$(printf "$state/%s " gpu live bell tickets history history.1 usage)
# owners: of all that users write into, each once
owners() {
	# shellcheck disable=SC2086 # a list of names
	stat -c %U:%G:%a $shared "$state"/gpu/*.lease 2>/dev/null | sort -u
}
run 'root has made what all users write into' 0 "root:gpulease:2770
root:gpulease:660" '' owners
in_root install >/dev/null
is 'install below a directory uses the group that exists' test \
	"$(stat -c %G:%a "$root/usr/bin/gpulease" \
	"$root$state" | tr '\n' ' ')" = 'gpulease:2755 gpulease:2770 '
run 'the group is a system group without members' 0 'gpulease:*:' '' getent group gpulease
is 'the number of the group is that of a system group' test \
	"$(getent group gpulease | cut -d : -f 3)" -lt 1000
configure
cp /etc/gpulease.conf "$S/conf"
serves_user "$program" hardened
# files that a user has made, as before
# shellcheck disable=SC2086
chown 4711 $shared "$state"/gpu/*.lease
cat "$state/tickets" "$state/history" >"$S/lines"
do_make install >/dev/null
run 'install takes over what users have made' 0 "root:gpulease:2770
root:gpulease:660" '' owners
is 'nothing of it is lost' eval 'cat "$state/tickets" "$state/history" | cmp -s "$S/lines"'
is 'a lease file was among it' [ -n "$(ls "$state"/gpu/*.lease)" ]
rm -r "$state/history.1" "$state/usage"
run 'without them jobs run, too' 0 '' '' "$program" -n 1 true

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
is 'an upgrade while a job runs succeeds' test "$rc:$err" = 0:
is 'an upgrade replaces the file of the program' test "$(stat -c %i "$program")" != "$inode"
run 'during upgrades the program always exists with its mode' 0 gpulease:2755 '' sort -u "$S/seen"
is 'an upgrade keeps changed settings' cmp -s "$S/conf" /etc/gpulease.conf
let_go upgrade
is 'a job that ran during upgrades ends with its status' test "$rc" -eq 7

run 'uninstall keeps changed settings and the state directory' 0 "*/etc/gpulease.conf was left*
$state was left, *" '' do_make uninstall
is 'after uninstall the state directory is there' test -d "$state/gpu"
undone hardened

# --- lab ---------------------------------------------------------------------------------

run 'MODE=lab without GROUP is refused' 2 '' 'gpulease: MODE=lab needs GROUP=NAME*' do_make MODE=lab install
run 'MODE=lab with a group installs' 0 "Installed in /usr/local, with /etc/gpulease.conf and $state of group lab.
*: usermod -aG lab USER
To undo, when no job runs: make uninstall PREFIX=/usr/local; rm -r $state; groupdel lab" '' \
	do_make MODE=lab GROUP=lab install
is 'lab: the message has three lines' three_lines
run 'lab: owners, groups and modes' 0 "root:root:755 $program
root:lab:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
configure
run 'lab: a member gets a GPU' 0 '[01]' '' as_user -g lab "$program" -n 1 -- \
	sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
run 'lab: another user gets the advice to join the group' 125 '' '*ask to join its group*' \
	as_user "$program" -n 1 -- true
hold member "$program" -g lab
run 'lab: a second install keeps the group and the job' 0 '*of group lab.*' '' do_make \
	MODE=lab install
run 'lab to hardened while a job runs is refused' 2 '' \
	"gpulease: jobs run on $state, which is of root:lab, mode 2770*" do_make install
run 'a refused change to hardened changes no file' 0 "root:root:755 $program
root:lab:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
is 'a refused change to hardened makes no group' test -z "$(getent group gpulease)"
# a second job waits for the GPU of the first, and both are seen
as_user -g lab "$program" -n 2 -- true >/dev/null 2>"$M/home/waits" &
waiter=$!
started="$started $waiter"
wait_until "[ -s '$M/home/waits' ]" || bail 'the second job does not wait'
mv "$state/live" "$state/.live" # a waiting job has a FIFO in bell/, too
run 'lab to hardened while a job waits is refused' 2 '' "gpulease: jobs run on $state*" \
	do_make install
mv "$state/.live" "$state/live"
let_go member
wait "$waiter"
run 'lab to hardened without a job puts the directory aside' 0 "*The former one is now $state.old.
*; rm -r $state $state.old; groupdel gpulease" '' do_make install
run 'lab to hardened: owners, groups and modes' 0 "root:gpulease:2755 $program
root:gpulease:2770 $state" '' stat -c '%U:%G:%a %n' "$program" "$state"
run 'lab to hardened: the new directory has no record' 0 '' '' find "$state" -type f -size +0
is 'lab to hardened: a member cannot enter the old directory' like '*700' \
	"$(stat -c %a "$state.old")"
serves_user "$program" 'hardened after lab'
gpasswd -M root gpulease >/dev/null 2>&1 || usermod -aG gpulease root
run 'install warns of members of the group gpulease' 0 '*' \
	'gpulease: warning: members of group gpulease can forge*: root;*' do_make install
run 'MODE=lab with the group gpulease is refused' 2 '' \
	'gpulease: GROUP=gpulease is the group of *' \
	do_make MODE=lab GROUP=gpulease install
run 'MODE=lab over hardened without GROUP is refused' 2 '' \
	"gpulease: $state is that of MODE=hardened; *GROUP=NAME*" \
	do_make MODE=lab install
hold guest "$program"
run 'hardened to lab while a job runs names the way out' 2 '' \
	'gpulease: jobs run on *, or keep this form: make install
*' do_make MODE=lab GROUP=lab install
let_go guest
run 'MODE=private is refused while the state directory is there' 2 '' \
	"gpulease: $state exists*" do_make MODE=private install
run 'hardened to lab puts the directory aside, too' 0 "*of group lab. The former one is now $state.old.2.*" '' \
	do_make MODE=lab GROUP=lab install
mv "$state" "$M/elsewhere"
ln -s "$M/elsewhere" "$state"
run 'a state directory that is a link is left to root' 2 '' \
	"gpulease: $state is a link*" do_make install
rm "$state"
mv "$M/elsewhere" "$state"
try do_make uninstall
groupdel lab
undone 'lab and hardened'

# --- private -----------------------------------------------------------------------------

run 'MODE=private installs the program' 0 \
	'Installed in /usr/local: the program alone (MODE=private).
*
To undo: make uninstall PREFIX=/usr/local' '' do_make MODE=private install
is 'private: the message has three lines' three_lines
is 'private: no directory, no group and no settings are made' \
	test ! -e "$state" -a ! -e /etc/gpulease.conf -a -z "$(getent group gpulease)"
echo "nvidia-smi = $M/nvidia-smi" >/etc/gpulease.conf
run 'private: a user gets a GPU, and a message about other users' 0 '[01]' \
	'*only your own jobs*' \
	as_user "$program" -n 1 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
run 'private: uninstall keeps the settings' 0 '/etc/gpulease.conf was left*' '' do_make uninstall
rm /etc/gpulease.conf
files_of_machine >"$S/after"
run 'private: then nothing is left' 0 '' '' diff "$S/before" "$S/after"
finish
