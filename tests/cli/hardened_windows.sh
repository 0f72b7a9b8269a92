#!/bin/sh
# Windows where gpulease is installed set-group-ID: only administrators make and remove them, and
# only the number of the user exempts a job.
# shellcheck disable=SC2016,SC2154 # conditions; variables of hardened_lib.sh

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'windows' "$@"
driver 'gpus 1'
"$ROOT" true

run 'a user cannot keep a GPU' 1 '' 'gpulease: only root may pause and resume GPUs;*' \
	"$U2" --pause 0 --for 1h --but $((UID_BASE + 2))
run 'root can, for one user' 0 '' '' "$ROOT" --pause 0 --for 1h --but $((UID_BASE + 1)) --reason demo
run 'that user starts a job' 0 'x' '*' "$U1" -n 1 --max-wait 20s echo x
run 'no other user does' 124 '' '*GPU 0 is kept until * but for *: demo*' "$U2" -n 1 -I --time 1s true
run 'nor root' 124 '' '*GPU 0 is kept until *' "$ROOT" -n 1 -I true
run 'nor by a name for the user' 124 '' '*GPU 0 is kept until *' \
	env USER="u$((UID_BASE + 1))" LOGNAME="u$((UID_BASE + 1))" "$U2" -n 1 -I true
run 'a user cannot remove it' 1 '' 'gpulease: only root may pause and resume GPUs;*' "$U2" --resume 0
run 'even if it exempts them' 1 '' 'gpulease: only root may pause and resume GPUs;*' "$U1" --resume 0
run 'all see it' 0 'GPU 0: kept until * but for * by root: demo' '' "$U2" --windows
run 'the file is not theirs' 1 '' '*Permission denied*' as 2 cat "$M/state/gpu/windows"
is 'the history has what root did, and nothing of what others tried' [ \
	"$("$U2" --history | sed -n 's/.* \(root\) .*\(window-set\|window-removed\|paused\|resumed\) .*: \(.*\)/\1 \2 \3/p')" = \
	'root window-set demo' ]
run 'nor can a user write such a line' 2 '' '*Permission denied*' \
	as 2 sh -c 'echo "event/1 how=pause" >>"$1"' sh "$M/state/history"
run 'root removes it' 0 '' 'gpulease: removed 1 window of these GPUs' "$ROOT" --resume 0

run 'a GPU is kept later' 0 '' '' "$ROOT" --pause 0 --at now+1hour --for 1h --but $((UID_BASE + 1))
by 2 holder short -n 1 --time 10m
run 'a short limit is no way into it' 1 '' "gpulease: job $(id_of short) has GPU 0, which is kept from * but for *" \
	"$U2" --extend "$(id_of short)" 1h
run 'an extension that ends before it is' 0 '' '*may run until*' "$U2" --extend "$(id_of short)" 10m
release_all short
by 1 holder his -n 1 --time 10m
run 'the exempt user may run into it' 0 '' '*may run until*' "$U1" --extend "$(id_of his)" 2h
release_all his
run 'the GPU is free' 0 '' '*' "$ROOT" --resume 0

by 1 holder his -n 1 --preemptible
run 'a window that exempts its user does not send a job back' 0 '' '' \
	"$ROOT" --pause 0 --for 1h --but $((UID_BASE + 1))
run 'another window does' 0 '' '' "$ROOT" --pause 0 --for 1h --but $((UID_BASE + 2)) --reason demo
is 'which the job says' wait_until 'like "*a window begins*waits, *GPU 0 is kept until * but for *" "$(cat "$S/his.err")"'
is 'it was sent back once' [ "$(grep -c 'this job goes back' "$S/his.err")" -eq 1 ]
rm -f "$S/his.runs"
run 'the windows are removed' 0 '' '*removed 2 windows*' "$ROOT" --resume 0
is 'and the job starts again' wait_until 'runs his'
release_all his

driver 'gpus 2'
"$ROOT" true
run 'a GPU is kept later' 0 '' '' "$ROOT" --pause 1 --at now+1hour --for 1h
by 2 holder second -n 1 --gpu-ids 1 --time 10m
run 'the GPU of a window is named' 1 '' "gpulease: job $(id_of second) has GPU 1, which is kept from *" \
	"$U2" --extend "$(id_of second)" 1h
release_all second
finish
