#!/bin/sh
# The set-group-ID form as its users see it: they share the GPUs, each user can harm only their own
# jobs, and a command gets only what its user started gpulease with.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'the set-group-ID form' "$@"

# lacks TEXT FILE…: a result, good if none of the files exists.
lacks() {
	lacks_text=$1
	shift
	for each in "$@"; do
		if [ -e "$each" ]; then
			not_ok "$lacks_text" "there is $each"
			return
		fi
	done
	ok "$lacks_text"
}

# --- users and their jobs ------------------------------------------------------------------

share_gpus() {
	run 'a user leases a GPU' 0 0 '' "$U1" -n 1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES'
	by 1 holder a -n 2
	by 2 waiter b -n 2
	run 'a waiting user sees which job and which user has the GPUs' 0 \
		"*$(id_of a)*$((UID_BASE + 1))*" '' \
		"$U2" --status
	run '--status ID shows a user where their job writes' 0 "*log        $S/a.out*" '' \
		"$U1" --status "$(id_of a)"
	run 'and other users only the job' 0 "*user *$((UID_BASE + 1))*started*" '' \
		"$U2" --status "$(id_of a)"
	! grep '^log' "$S/out" || not_ok 'the log of another user is shown'
	run '--queue shows the waiting jobs to every user' 0 "*$((UID_BASE + 2))*" '' "$U3" \
		--queue
	id=$("$ROOT" --queue --json | "$TOOLS/jsoncheck" queue.0.ticket)
	run 'a waiting job of another user cannot be cancelled' 1 '' '*belongs to*' \
		"$U1" --cancel "$id"
	run 'a running job of another user cannot be cancelled' 1 '' '*belongs to*' "$U2" \
		--cancel "$(id_of a)"
	run 'a running job of another user cannot be signalled' 1 '' '*belongs to*' "$U2" \
		--signal-job "$(id_of a)" USR1
	release_all a
	is 'when one job ends, the job of the other user starts' wait_until 'runs b'
	release_all b
	run '--history shows the jobs to every user' 0 \
		"*$((UID_BASE + 1))*$((UID_BASE + 2))*" '' \
		"$U3" --history
}

cancel_jobs() {
	by 1 holder a -n 2
	by 1 waiter b -n 2
	id=$("$ROOT" --queue --json | "$TOOLS/jsoncheck" queue.0.ticket)
	run 'a user cancels a waiting job of their own' 0 '' '*' "$U1" --cancel "$id"
	ended b
	run 'a user cancels a running job of their own' 0 '' '*' "$U1" --cancel "$(id_of a)"
	ended a
	by 1 holder a -n 1 --report
	run 'a user signals a command of their own' 0 '' '' "$U1" --signal-job "$(id_of a)" CONT
	run 'another user can wait for a job' 124 '' '*gave up after*' "$U2" --wait-for all \
		--max-wait 10ms
	run 'the user cancels the job that another user has waited for' 0 '' '*' "$U1" \
		--cancel "$(id_of a)"
	ended a
	run 'every user can see how a job has ended' 143 '' '' "$U2" --wait-for "$(id_of a)"
	by 2 holder a -n 1
	run 'root cancels the job of a user' 0 '' '*' "$ROOT" --cancel "$(id_of a)"
	ended a
	holder a -n 1
	run 'a user cannot cancel a job of root' 1 '' '*belongs to*' "$U1" --cancel "$(id_of a)"
	release_all a
}

pause_gpus() {
	admin="setpriv --reuid=$((UID_BASE + 3)) --regid=$((UID_BASE + 3))
		--groups=$((GROUP + 9)) --"
	run 'no user pauses a GPU' 1 '' '*only root*' "$U1" --pause 0
	run 'root pauses a GPU' 0 '*' '*' "$ROOT" --pause 0
	run 'no user resumes a GPU' 1 '' '*only root*' "$U1" --resume 0
	run 'root resumes a GPU' 0 '*' '*' "$ROOT" --resume 0
	configure "admin-group = $((GROUP + 9))"
	run 'admin-group: no user outside it pauses a GPU' 1 '' "*$((GROUP + 9))*" "$U1" --pause 0
	# shellcheck disable=SC2086 # words
	run 'admin-group: its members pause a GPU' 0 '*' '*' $admin "$ROOT" --pause 0
	# shellcheck disable=SC2086
	run 'admin-group: its members resume a GPU' 0 '*' '*' $admin "$ROOT" --resume 0
	configure
	# shellcheck disable=SC2086
	run 'without admin-group its former members pause no GPU' 1 '' '*only root*' $admin \
		"$ROOT" --pause 0
}

# --- what the command gets -----------------------------------------------------------------

drop_rights() {
	run 'the command has no right of the group, and cannot get it back' 0 '' '' \
		"$U1" -n 1 -- "$TOOLS/attack" rights "$GROUP"
	run 'the command of a job without GPUs has no right of the group' 0 '' '' "$U1" -n 0 \
		-- "$TOOLS/attack" rights "$GROUP"
	run 'the command of a step has no right of the group' 0 '' '' \
		"$U1" -n 1 -- "$ROOT" -n 1 -- "$TOOLS/attack" rights "$GROUP"
	run 'several tasks have no right of the group' 0 '' '' \
		"$U1" -G 1 -n 2 -- "$TOOLS/attack" rights "$GROUP"
	# shellcheck disable=SC2016 # for the shell of the task
	run 'the program that runs the tasks has not the group, either' 0 none '' \
		"$U1" -G 1 -n 2 -o 0 -- sh -c 'grep -E "^(Gid|Groups):" "/proc/$PPID/status" |
			grep -qw "$0" || echo none' "$GROUP"
	run 'the command of a simulated job has no right of the group' 0 '' '' env \
		XDG_STATE_HOME="$S/open/home1" \
		"$U1" --sim 2 -n 1 -- "$TOOLS/attack" rights "$GROUP"
	is 'the state of simulated GPUs belongs to the user' \
		[ "$(stat -c %u:%g "$S"/open/home1/gpulease/*/tickets)" = \
		"$((UID_BASE + 1)):$((UID_BASE + 1))" ]
	run 'the command of root does not have the group' 0 '' '' "$ROOT" -n 1 -- sh -c \
		'! grep -w "$0" /proc/self/status' "$GROUP"
	run 'the command of a user does not have the group' 0 '' '' "$U1" -n 1 -- sh -c \
		'! grep -w "$0" /proc/self/status' "$GROUP"
}

exclusive_steps() {
	mkfifo "$S/open/end"
	chmod 0666 "$S/open/end"
	# the first holds its GPU until the second has one
	run 'exclusive steps of a user have GPUs of their own' 0 '0
1
none is left' '' "$U1" -n 2 -- sh -c '
		"$0" -Q --exclusive -n 1 -- sh -c "echo \$CUDA_VISIBLE_DEVICES >\"$1.gpu\"; read -r end <\"$1\"" &
		until [ -s "$1.gpu" ]; do sleep 0.02; done
		cat "$1.gpu"
		"$0" --exclusive -n 1 -- sh -c "echo \$CUDA_VISIBLE_DEVICES
			\"$0\" -Q --exclusive -I -n 1 true"
		"$0" -Q --exclusive -I -n 2 -- true || echo none is left
		echo >"$1"; wait' "$ROOT" "$S/open/end"
	run 'the command of an exclusive step has no right of the group' 0 '' '' \
		"$U1" -n 1 -- "$ROOT" --exclusive -- "$TOOLS/attack" rights "$GROUP"
	run 'its parent has not the group, either' 0 none '' \
		"$U1" -n 1 -- "$ROOT" --exclusive -- sh -c \
		'grep -E "^(Gid|Groups):" "/proc/$PPID/status" | grep -qw "$0" || echo none' "$GROUP"
	run 'the command has only the FIFO of the lease' 0 1 '' "$U1" -n 1 -- "$ROOT" --exclusive -- \
		sh -c 'readlink /proc/$$/fd/* | grep -c "^$0/"' "$M/state"
	by 1 holder a -n 1
	run 'no user joins a job of another user' 125 '' "*cannot join job $(id_of a): it is another user's" \
		"$U2" --overlap --jobid "$(id_of a)" true
	run 'a user joins a job of their own' 0 "$(gpus_of a)" '' \
		"$U1" --overlap --jobid "$(id_of a)" -- sh -c 'echo $CUDA_VISIBLE_DEVICES'
	run 'what joins a job has no right of the group' 0 '' '' \
		"$U1" --overlap --jobid "$(id_of a)" -- "$TOOLS/attack" rights "$GROUP"
	release_all a
}

# The descriptors of a command, except those that the runner of this script leaves open.
open_files() {
	list='cd /proc/$$/fd && echo *'
	ours=$(as 1 sh -c "$list" </dev/null 2>/dev/null)
	ours=$(echo "$ours" | tr ' ' '\n')
	run 'a command lists its descriptors' 0 '*' '' "$U1" -n 1 -- sh -c "$list"
	is 'the command inherits only the descriptor of the FIFO' like 1?? "$(beyond_ours "$out")"
	run 'the inherited descriptor is the FIFO of the lease' 0 \
		"*$M/state/live/????????????????*" '' \
		"$U1" -n 1 -- sh -c 'readlink /proc/$$/fd/*; :'
	is 'the command has one descriptor in the state directory' [ \
		"$(grep -c "$M/state" "$S/out")" -eq 1 ]
	run 'a command without GPUs lists its descriptors' 0 '*' '' "$U1" -n 0 -- sh -c "$list"
	is 'a command without GPUs inherits only the FIFO' like 1?? "$(beyond_ours "$out")"
	run 'a command with another descriptor of its caller starts' 0 '*' '' "$U1" -n 1 -- \
		sh -c "$list" 8</dev/null
	is 'the command has the descriptor of its caller' like '1?? 8' "$(beyond_ours "$out")"
	# For a program with more rights glibc opens closed ones on a file that can be neither read
	# nor written.
	as 1 sh -c 'exec "$@" <&- >&- 2>&-' - "$ROOT" -n 1 -- sh -c 'cd /proc/$$/fd &&
		for fd in 0 1 2; do
			[ ! -e $fd ] || [ -c $fd ] || exit
		done && : >"$0"' "$S/open/closed"
	is 'closed standard descriptors of a command lead nowhere' [ -e "$S/open/closed" ]
}

# beyond_ours FDS: those of FDS that the runner of this script has not left open
beyond_ours() {
	echo "$1" | tr ' ' '\n' | grep -vxF "$ours" | sort | tr '\n' ' ' | sed 's/ $//'
}

watchdog() {
	by 1 holder a -n 1 --time 1h
	dog=$(own_guards)
	is 'the guard of a time limit runs as the user' [ -n "$dog" ]
	is 'the guard of a time limit does not have the group' \
		[ -z "$(grep -E '^(Gid|Groups):' "/proc/$dog/status" | grep -w "$GROUP")" ]
	# The user reaches only the limits of the guard, which are the user's own.
	run 'the guard'"'"'s user reaches only the limits of the guard' 1 \
		'prlimit read?prlimit set' '' \
		as 1 "$TOOLS/attack" process "$dog"
	release_all a
	is 'the guard of a time limit ends with the job' wait_until '[ ! -e "/proc/$dog" ]'
}

# --- the environment -----------------------------------------------------------------------

# Variables that the loader removes from a program with more rights, and variables that it leaves.
set_fragile() {
	for each in LD_LIBRARY_PATH=/x LD_BIND_NOW=1 LD_ORIGIN_PATH=/o TMPDIR=/y \
		MALLOC_ARENA_MAX=1 MALLOC_TOP_PAD_=4096 GLIBC_TUNABLES=glibc.malloc.check=1 \
		HOSTALIASES=/h LOCALDOMAIN=l NLSPATH=/n GETCONF_DIR=/g RES_OPTIONS=r \
		TZDIR=/t GCONV_PATH=/c LOCPATH=/l EMPTY= PLAIN=plain; do
		echo "$each"
	done
}

# restores TEXT COMMAND…: a result, good if the command, which prints its environment, has all of
# these variables.
restores() {
	restores_text=$1
	shift
	set_fragile | sort >"$S/given"
	# shellcheck disable=SC2046 # no blanks in there
	try as 1 env -i $(set_fragile) "$ROOT" -n 1 -- "$@"
	grep -Ev '^(CUDA|NVIDIA|GPULEASE)_' "$S/out" | sort >"$S/got"
	if [ "$rc" -eq 0 ] && cmp -s "$S/given" "$S/got"; then
		ok "$restores_text"
	else
		not_ok "$restores_text" "exit status $rc" "$(diff "$S/given" "$S/got")" \
			"stderr: $err"
	fi
}

environment() {
	restores 'the command gets the whole environment' /usr/bin/env
	if cc -static -o "$M/bin/static" "$S/environ.c" 2>/dev/null; then
		restores 'a statically linked command gets the whole environment' "$M/bin/static"
	else
		skip 'a statically linked command' 'nothing to link it with'
	fi
	if as 1 /usr/bin/python3 -c '' 2>/dev/null; then
		restores 'a command in Python gets the whole environment' /usr/bin/python3 -c '
import os
for name, value in os.environ.items():
	if name != "LC_CTYPE": # of its own making
		print(name + "=" + value)'
	else
		skip 'a command in Python' 'there is none'
	fi
	run 'a command gets no variable from an empty environment' 0 \
		'CUDA_*
GPULEASE_*
NVIDIA_*' '' as 1 env -i "$ROOT" -n 1 -- /bin/sh -c '/usr/bin/env | grep -v ^PWD= | sort'
	is 'a command gets only gpulease'"'"'s variables in an empty environment' [ \
		"$(grep -Evc '^(CUDA|NVIDIA|GPULEASE)_' "$S/out")" -eq 0 ]
	run 'gpulease without a name in argv[0] starts a command' 0 'ran' '' as 1 \
		"$TOOLS/attack" unnamed "$ROOT" -n 1 -- echo ran
	run 'gpulease without any argument ends with an error' 125 '' 'gpulease: *' as 1 \
		"$TOOLS/attack" bare "$ROOT"
}

# Strings of 100 KB, some of them in the environment: the kernel allows 2 MB for all together.
huge() {
	big=$(printf '%0100000d' 0)
	many=''
	for each in 1 2 3 4 5 6 7 8 9; do
		many="$many V$each=$big"
	done
	# shellcheck disable=SC2086
	run 'an environment and arguments of 1.7 MB' 0 '1700000' '' as 1 env -i $many "$ROOT" \
		-n 1 -- /bin/sh -c 'sum=${#V1}
		sum=$((sum + ${#V2} + ${#V3} + ${#V4} + ${#V5} + ${#V6} + ${#V7} + ${#V8} + ${#V9}))
		for each; do sum=$((sum + ${#each})); done
		echo "$sum"' - "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big"
	small=$(printf '%0200d' 0)
	i=0 many='X=1'
	while [ $((i += 1)) -le 3000 ]; do
		many="$many $small"
	done
	# shellcheck disable=SC2086
	run '3000 arguments' 0 '3000' '' "$U1" -n 1 -- sh -c 'shift; echo $#' - $many
	# 20 × 100 KB and what gpulease adds: too much for the kernel, not for gpulease
	try as 1 env -i V1="$big" "$ROOT" -n 1 -- /bin/true "$big" "$big" "$big" "$big" "$big" \
		"$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" \
		"$big" "$big" "$big"
	is 'more than 2 MB of arguments are refused by the kernel' \
		[ "$rc" -eq 126 -o "$rc" -eq 0 ]
	goes_on 'after huge environments other users get GPUs'
}

# --- what the user may not decide ----------------------------------------------------------

foreign_code() {
	if ! cc -shared -fPIC -o "$S/open/marker.so" "$S/marker.c" 2>/dev/null; then
		skip 'libraries of the user' 'no compiler'
		return
	fi
	for each in LD_PRELOAD LD_AUDIT; do
		rm -f "$S"/open/loaded.*
		run "$each reaches the command" 0 '*' '*' \
			as 1 env "$each=$S/open/marker.so" "$ROOT" -n 1 -- /bin/sleep 0
		is 'the library of the user is loaded into the command' [ \
			-e "$S/open/loaded.sleep" ]
		lacks 'the library of the user is not loaded into gpulease' \
			"$S/open/loaded.gpulease"
		lacks 'the library of the user is not loaded into nvidia-smi' \
			"$S/open/loaded.nvidia-smi"
	done
	rm -f "$S"/open/loaded.*
	echo rubbish >"$S/open/libc.so.6"
	run 'LD_LIBRARY_PATH does not reach gpulease' 0 'gpulease *' '' \
		as 1 env LD_LIBRARY_PATH="$S/open" "$ROOT" --version
	cp "$ROOT" "$S/open/copy"
	if is_static "$ROOT"; then
		skip 'LD_LIBRARY_PATH reaches a copy without the set-group-ID bit' \
			'it loads no library'
	else
		run 'LD_LIBRARY_PATH reaches a copy without the set-group-ID bit' 127 '' \
			'*libc.so.6*' \
			as 1 env LD_LIBRARY_PATH="$S/open" "$S/open/copy" --version
	fi
	rm "$S/open/libc.so.6" "$S/open/copy"
}

foreign_paths() {
	mkdir "$S/open/path"
	printf '#!/bin/sh\ntouch "%s"\n' "$S/open/asked" >"$S/open/path/nvidia-smi"
	chmod 0755 "$S/open/path/nvidia-smi"
	run 'a nvidia-smi in PATH is not run' 0 '' '' \
		as 1 env PATH="$S/open/path:$PATH" "$ROOT" -n 2 true
	echo "directory = $M/state" >/etc/gpulease.conf
	as 1 env PATH="$S/open/path:$PATH" "$ROOT" --status >"$S/out" 2>&1
	lacks 'a nvidia-smi in PATH is not run even if none is configured' "$S/open/asked"
	configure
	mkdir -m 0700 "$S/open/dir" && chown $((UID_BASE + 1)) "$S/open/dir"
	run 'GPULEASE_DIR is ignored, with a warning' 0 '' '*GPULEASE_DIR is ignored*' \
		as 1 env GPULEASE_DIR="$S/open/dir" "$ROOT" -n 1 true
	run '--dir is ignored, with a warning' 0 '' '*--dir is ignored*' "$U1" \
		--dir "$S/open/dir" -n 1 true
	is 'an ignored directory stays empty' [ -z "$(ls -A "$S/open/dir")" ]
	echo 'nvidia-smi = /no/such' >"$S/open/conf"
	# a guess at what was meant would tell that the file is there
	: >"$M/state/jobs.txt"
	run 'the message for a file in the state does not say whether it is there' 126 '' \
		"gpulease: cannot execute '*jobs.txt': Permission denied" "$U1" "$M/state/jobs.txt"
	rm "$M/state/jobs.txt"
	run '--config is ignored, with a warning' 0 '' '*--config is ignored*' "$U1" \
		--config "$S/open/conf" -n 2 true
	run 'GPULEASE_CONFIG is ignored, with a warning' 0 '' '*GPULEASE_CONFIG is ignored*' \
		env GPULEASE_CONFIG="$S/open/conf" "$U1" -n 2 true
}

# Files that only the group may read: with -o, -e, -i, -D and as the command itself.
foreign_files() {
	for each in -o -e -i; do
		run "$each does not open a state file" 125 '' '*Permission denied*' \
			"$U1" -n 0 "$each" "$M/state/tickets" true
	done
	run '-D does not enter the state directory' 125 '' '*Permission denied*' \
		"$U1" -n 0 -D "$M/state" pwd
	run 'a state file is not executed' 126 '' '*Permission denied*' "$U1" -n 0 \
		"$M/state/tickets"
	ln -s "$M/state/tickets" "$S/open/link"
	run '-o does not open a state file through a link' 125 '' '*Permission denied*' "$U1" \
		-n 0 -o "$S/open/link" true
	rm "$S/open/link"
	run '-o makes no file in the state directory' 125 '' '*Permission denied*' \
		"$U1" -n 0 -o "$M/state/new" true
	is 'the refused -o has made no file' [ ! -e "$M/state/new" ]
	intact 'after the refused options the state can be read'
	run '-o makes a file in the user'"'"'s folder' 0 '' '' "$U1" -n 0 -o "$S/open/mine" \
		echo yes
	is 'the file of -o has the user and the user'"'"'s group' [ \
		"$(stat -c %u:%g "$S/open/mine")" = \
		"$((UID_BASE + 1)):$((UID_BASE + 1))" ]
}

# A link leads elsewhere when it is looked at than when it is opened.
race() {
	as 1 sh -c 'while :; do ln -sfn "$1" flip; ln -sfn own flip; done' - "$M/state/tickets" &
	started="$started $!"
	racer=$!
	i=0
	while [ $((i += 1)) -le 40 ]; do
		"$U1" -n 0 -o "$S/open/flip" -e "$S/open/flip" echo "written $i"
		"$U1" -n 0 -i "$S/open/flip" cat
		"$U1" -n 0 "$S/open/flip"
	done >"$S/out" 2>&1
	kill -KILL "$racer"
	is 'a link that changes all the time leads to no state file' \
		[ -z "$(tr -d '\000' <"$M/state/tickets" | grep -a written | grep -av '^ticket')" ]
	is 'a link that changes all the time shows no state file' [ \
		-z "$(grep -a '^ticket' "$S/out")" ]
	intact 'after the changing link the state can be read'
	goes_on 'after the changing link other users get GPUs'
}

# --- descriptors, masks, limits ------------------------------------------------------------

closed_stdio() {
	by 2 holder a -n 2
	for each in '<&-' '>&-' '2>&-' '<&- >&-' '>&- 2>&-' '<&- >&- 2>&-'; do
		# each command would print something: that it waits, an error, or a result
		as 1 sh -c "\"\$0\" --immediate -n 1 true $each; \"\$0\" -n 99 true $each
			\"\$0\" --max-wait 50ms -n 1 true $each; \"\$0\" --status $each
			\"\$0\" -n 0 -- /bin/true $each; \"\$0\" -v -n 0 /no/such $each" "$ROOT" \
			>/dev/null 2>&1
	done
	release_all a
	is 'with closed standard descriptors nothing is written into a state file' \
		[ -z "$(find "$M/state" -type f -exec grep -al gpulease: {} +)" ]
	is 'the ticket file consists of whole records' \
		[ $(($(stat -c %s "$M/state/tickets") % 512)) -eq 0 ]
	intact 'after closed descriptors the state can be read'
	goes_on 'after closed descriptors other users get GPUs'
}

masks() {
	rm -rf "$M"/state/*
	run 'a user makes the state files under umask 0777' 0 '' '' \
		as 1 sh -c 'umask 0777; exec "$0" -n 2 true' "$ROOT"
	goes_on 'state files made under umask 0777 can be used by other users'
	by 2 holder a -n 1
	is 'the modes of state files do not depend on the umask' [ \
		"$(find "$M/state" -mindepth 1 -not -type l \
		-not -perm 0660 -not -perm 0640 -not -perm 2770)" = '' ]
	release_all a
	rm -rf "$M"/state/*
	by 1 holder a -n 2 # the script's umask is 0
	by 2 waiter b -n 1
	is 'under umask 0 no state file is open to others' [ \
		"$(find "$M/state" -not -type l -perm /007)" = '' ]
	is 'under umask 0 all state files belong to the group' [ \
		"$(find "$M/state" -not -group "$GROUP")" = '' ]
	release_all a b
	run 'the command has the umask of its user' 0 '0777' '' \
		as 1 sh -c 'umask 0777; exec "$0" -n 1 -- /bin/sh -c umask' "$ROOT"
}

# limited LIMIT OPERATION…: runs gpulease as user 1 under this limit.
limited() {
	limited_by=$1
	shift
	now=$(seconds)
	as 1 timeout -s KILL 25 prlimit "--$limited_by" "$ROOT" "$@" >"$S/out" 2>&1
	[ $(($(seconds) - now)) -lt 25 ] || not_ok "with $limited_by '$*' hangs"
}

seconds() {
	read -r seconds _ </proc/uptime
	echo "${seconds%.*}"
}

limits() {
	for each in fsize=0 fsize=100 fsize=513 fsize=5000 nofile=3 nofile=5 nofile=8 nofile=11 \
		nofile=14 nofile=20 as=1000000 as=3000000 as=6000000 as=9000000 as=20000000 \
		cpu=0 cpu=1 nproc=0 nproc=1 stack=16384 stack=131072 data=0 data=500000 \
		memlock=0 sigpending=0 locks=0 core=0; do
		limited "$each" --immediate -n 2 /bin/true
		limited "$each" -n 0 /bin/true
		limited "$each" --status
		try "$U2" -n 2 true
		[ "$rc" -eq 0 ] || not_ok "under $each of one user another user gets GPUs" "stderr: $err"
	done
	goes_on 'after all limits of one user another user gets GPUs'
	intact 'after all limits of one user the state can be read'
}

# In a folder where the user may write, and with no limit on the size of a core.
cores() {
	by 3 holder a -n 2
	rm -rf "$S/open/cores"
	mkdir -m 0777 "$S/open/cores"
	cd "$S/open/cores" || bail 'no place'
	as 1 sh -c 'ulimit -c unlimited; sleep 1000 & kill -SEGV $!; wait' 2>/dev/null
	if [ -n "$(ls -A)" ]; then
		ok 'a program other than gpulease leaves a core'
	else
		skip 'a program other than gpulease leaves a core' 'not on this machine'
	fi
	rm -f -- *
	for each in SEGV ABRT BUS; do # a shell has QUIT ignored in the background
		: >"$S/core.err"
		sh -c 'ulimit -c unlimited; exec "$0" -n 1 true' "$U1" 2>"$S/core.err" &
		background=$!
		started="$started $background"
		wait_until '[ -s "$S/core.err" ]' || bail 'nobody waits'
		as 1 kill -$each $background
		wait $background 2>/dev/null
		is "a waiting gpulease leaves no core on SIG$each" [ -z "$(ls -A)" ]
	done
	cd "$S/open" || bail 'no place'
	release_all a
}

# --- where the bit has no effect -----------------------------------------------------------

without_effect() {
	mkdir "$M/nosuid" && mount -t tmpfs -o nosuid,mode=0755 tmpfs "$M/nosuid"
	cp -p "$ROOT" "$M/nosuid/gpulease"
	chgrp "$GROUP" "$M/nosuid/gpulease" && chmod 2755 "$M/nosuid/gpulease"
	run 'gpulease on a file system mounted nosuid is refused' 125 '' '*nosuid*' as 1 \
		"$M/nosuid/gpulease" -n 1 true
	run 'gpulease under no_new_privs is refused' 125 '' '*no_new_privs*' \
		as 1 setpriv --no-new-privs "$ROOT" -n 1 true
	if as 1 unshare -U true 2>/dev/null; then
		run 'gpulease in a user namespace is refused' 125 '' '*user namespace*' as 1 \
			unshare -U "$ROOT" -n 1 true
		run 'gpulease as root of a user namespace is refused' 125 '' \
			'*user namespace*' as 1 unshare -Ur "$ROOT" -n 1 true
	else
		skip 'gpulease in a user namespace is refused' 'users may not make one'
	fi
	run 'gpulease under a debugger of the user is refused' 1 '[0-9]*' '*debugger or strace*' \
		as 1 sh -c '"$0" --count "$1" -n 1 true; "$0" --kill 9999 "$1" -n 1 true' \
		"$TOOLS/sysfault" "$ROOT"
	umount "$M/nosuid"
}

cat >"$S/environ.c" <<'END'
#include <stdio.h>
extern char **environ;
int main(void)
{
	for (char **at = environ; *at; at++)
		puts(*at);
	return 0;
}
END
cat >"$S/marker.c" <<END
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
unsigned la_version(unsigned version) { return version; }
__attribute__((constructor)) static void mark(void)
{
	char path[4096] = "$S/open/loaded.", name[32] = "";
	int fd = open("/proc/self/comm", O_RDONLY);
	long size = read(fd, name, sizeof(name) - 1);
	if (size > 0)
		name[size - 1] = 0;
	strcat(path, name);
	close(open(path, O_WRONLY | O_CREAT, 0666));
}
END

share_gpus
cancel_jobs
pause_gpus
drop_rights
exclusive_steps
open_files
watchdog
environment
huge
foreign_code
foreign_paths
foreign_files
race
closed_stdio
masks
limits
cores
without_effect

finish
