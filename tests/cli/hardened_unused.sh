#!/bin/sh
# The samples of use where gpulease is installed set-group-ID: they get the group for a moment, no
# process of the user keeps it, and no user can have another one's job warned or ended.
# shellcheck disable=SC2016,SC2154 # conditions; variables of hardened_lib.sh

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'samples of use' "$@"
driver 'gpus 2'
printf '%s\n' 'record-ends = yes' 'idle-interval = 200ms' 'idle-after = 1s' 'idle-end = 4s' \
	>>/etc/gpulease.conf

# uses: the files with the use of jobs
uses() {
	find "$M/state/live" -name '*.use'
}

# seen: when the last sample was
seen() {
	sed -n 's/.* seen=\([0-9]*\) .*/\1/p' "$M/state"/live/*.use 2>/dev/null | sort -n | tail -n 1
}

by 1 holder job -n 1
id=$(id_of job)
is 'the job of a user is sampled' wait_until '[ "$(uses | wc -l)" -eq 1 ] && [ -n "$(seen)" ]'
is 'the watchdog has given up the group' [ "$(sed -n 's/^Gid:[^0-9]*//p' "/proc/$(own_guards)/status" |
	tr '\t' ' ')" = "$(printf '%s %s %s %s' $((UID_BASE + 1)) $((UID_BASE + 1)) \
	$((UID_BASE + 1)) $((UID_BASE + 1)))" ]
is 'the file belongs to the group' [ "$(stat -c '%g %a' "$(uses)")" = "$GROUP 660" ]
run 'no user can read it' 1 '' '*Permission denied' as 2 cat "$(uses)"
run 'a user cannot sample the job of another' 1 '' '' "$U2" --sample "$id"
is 'the owner is told' wait_until '[ "$(grep -c "has not used" "$S/job.err")" -eq 1 ]'
is 'another user sees it in --status' wait_until \
	'"$U2" --status | grep -q "GPU 0: job $id has not used it"'

# the owner of the job cannot have the file written elsewhere, or by another nvidia-smi
mkdir -m 0777 "$S/open/state" "$S/open/path"
printf '#!/bin/sh\necho forged\n' >"$S/open/path/nvidia-smi"
chmod 0755 "$S/open/path/nvidia-smi"
run '--sample ignores --dir and the environment' 0 'use/1 *' '*ignored*' as 1 env \
	"GPULEASE_DIR=$S/open/state" "PATH=$S/open/path:$PATH" \
	"$M/bin/gpulease" --dir "$S/open/state" --sample "$id"
is 'nothing was written elsewhere' [ -z "$(ls "$S/open/state")" ]

# another user asks for samples all the time, and waits for the GPU
by 2 waiter next -n 2
for each in 1 2 3 4 5 6 7 8; do
	"$U2" --sample "$id" >/dev/null 2>&1
done
is 'the job is warned twice before its end' wait_until \
	'[ "$(grep -c "it ends in" "$S/job.err")" -eq 2 ]'
is 'the unused job is ended for the one that waits' wait_until 'runs next'
release_all next

# a user who kills his own watchdog harms only himself
by 1 holder own -n 1
wait_until '[ -n "$(own_guards)" ]'
# shellcheck disable=SC2046 # a list: that of the job before may still wait for its parent
as 1 kill -KILL $(own_guards)
is 'without its watchdog the job is not sampled' wait_until '[ -z "$(own_guards)" ]'
is 'and it runs' kill -0 "$(pid_of own)"
release_all own
run 'its GPU is free afterwards' 0 '' '*' "$U2" -n 2 --max-wait 20s true
finish
