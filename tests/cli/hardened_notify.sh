#!/bin/sh
# --notify where gpulease is installed set-group-ID: the command has the rights of its user alone,
# from the first process on, and no other user has a say in it.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions; variables of hardened_lib.sh

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'the command of --notify' "$@"
driver 'gpus 2'

# notifiers N: the pids of the notifiers of user N
notifiers() {
	pgrep -u $((UID_BASE + $1)) -x gpulease-notify
}

# rights PID: its uids, gids and groups
rights() {
	sed -n 's/^\([UG]id\|Groups\):[[:space:]]*//p' "$1" | paste -sd ' ' | tr -s '\t ' ' '
}

own=$((UID_BASE + 1))
all="$own $own $own $own"
look='cat /proc/self/status >'"$S/open"'/$GPULEASE_EVENT.new; readlink /proc/$$/fd/* >'"$S/open"'/fds
	echo "$LD_LIBRARY_PATH" >'"$S/open"'/loader
	mv '"$S/open"'/$GPULEASE_EVENT.new '"$S/open"'/$GPULEASE_EVENT'
export LD_LIBRARY_PATH=/nowhere/at/all
by 1 holder job -n 1 --name 'x$(id)' --notify "$look"
unset LD_LIBRARY_PATH
is 'the command is run' wait_until '[ -e "$S/open/started" ]'
is 'with the uid and the gid of the user, without the group' \
	like "$all $all*" "$(rights "$S/open/started")"
is 'and without the group among the others' [ "$(rights "$S/open/started" | grep -cw "$GROUP")" -eq 0 ]
is 'it has no file of the state' [ "$(grep -c "^$M/state" "$S/open/fds")" -eq 0 ]
is 'it has the environment of the user' [ "$(cat "$S/open/loader")" = /nowhere/at/all ]
is 'so has the notifier' [ "$(rights "/proc/$(notifiers 1)/status" | cut -d ' ' -f 1-8)" = "$all $all" ]
is 'which has no file of the state' [ "$(as 1 find "/proc/$(notifiers 1)/fd" -lname "$M/state/*" | wc -l)" -eq 0 ]
run 'another user cannot end it' 1 '' '*' as 2 kill -KILL "$(notifiers 1)"
run 'nor the job' 1 '' '*belongs to*' "$U2" --cancel "$(id_of job)"
# shellcheck disable=SC2046 # one pid
as 1 kill -KILL $(own_guards)
is 'without the watchdog nothing is told' wait_until '[ -z "$(notifiers 1)" ]'
release_all job
is 'not even the end' [ ! -e "$S/open/ended" ]

# a job of one user that another user preempts or cancels: the words are data
by 1 holder job -n 1 --report --notify 'echo "$GPULEASE_TEXT" >>'"$S/open/text"
run 'root cancels it' 0 '' '' "$ROOT" --cancel "$(id_of job)"
is 'that is told' wait_until 'grep -q "was cancelled by root" "$S/open/text"'
is 'by a command of its user' [ "$(stat -c %u "$S/open/text")" -eq "$own" ]
goes_on 'its GPU is free'
intact 'the state is whole'

# a user whose command never ends keeps no GPU and no file
mkfifo "$S/open/gate"
chmod 0666 "$S/open/gate"
run 'a command that hangs does not hold the job up' 0 '' '' "$U1" --notify 'read -r go <'"$S/open/gate" true
goes_on 'nor the GPUs'
# shellcheck disable=SC2046 # a list: those before may still wait for their parent
kill -KILL $(notifiers 1)
finish
