#!/bin/sh
# A user with an nvidia-smi that fails, or that shows less than to other users, stops no other user.
# shellcheck disable=SC2016,SC2034 # for wait_until and begin

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'a blind user among others' "$@"

# passes TEXT WORDS: the ticket `blind`, which user 1 takes with $GPULEASE, wants both GPUs and
# must not start; user 2 gets them.  Then --queue says WORDS of `blind`.
passes() {
	by 2 begin later -n 2
	is "$1 does not stop a later user" wait_until 'runs later'
	! runs blind || not_ok "$1: the job has started all the same"
	run "$1: --queue says why to other users" 0 "*$2*" '*' "$U3" --queue
}

driver
run 'the GPUs are known' 0 '' '*' "$U3" -n 2 true

# --- no permission -------------------------------------------------------------------------

by 3 holder before -n 2
driver "refuse $((UID_BASE + 1))"
by 1 waiter blind -n 2
release_all before
passes 'a user without permission for the driver' \
	'its own nvidia-smi fails: Insufficient Permissions'
by 2 begin third -n 2
release_all later
is 'a second user behind the blind job starts, too' wait_until 'runs third'
! runs blind || not_ok 'the blind job has started all the same'
driver
release_all third
is 'the blind job starts once its nvidia-smi answers' wait_until 'runs blind'
release_all blind

# --- an address space that is too small ----------------------------------------------------

by 3 holder before -n 2
driver 'need 4000'
printf '#!/bin/sh\nulimit -v 1000000\nexec "%s" "$@"\n' "$U1" >"$M/bin/gpulease.small"
chmod 0755 "$M/bin/gpulease.small"
if "$M/bin/gpulease.small" --version >/dev/null 2>&1; then
	by small waiter blind -n 2
	release_all before
	passes 'a user with little address space' \
		'its own nvidia-smi fails: Insufficient Memory'
	release_all later
	driver
	is 'the job with little address space starts with a small nvidia-smi' wait_until \
		'runs blind'
	release_all blind
else
	skip 'a user with little address space' 'the program does not run in 1 GB'
	driver
	release_all before
fi

# --- fewer GPUs ----------------------------------------------------------------------------

# A container has one GPU only: the other GPU is free, and of no use to the container's ticket.
mkdir "$M/bin/inside"
echo 'gpus 1' >"$M/bin/inside/nvidia-smi.conf"
driver 'gpus 2'
printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind "$1/inside/nvidia-smi.conf" \
"$1/nvidia-smi.conf" || exit 99; shift; exec "$0" "$@"'\'' "%s" "%s" "$@"\n' "$U1" "$M/bin" \
	>"$M/bin/gpulease.inside"
chmod 0755 "$M/bin/gpulease.inside"
by 3 holder before -n 2
by inside waiter blind -n 2
release_all before
passes 'a container with fewer GPUs' 'its own nvidia-smi does not show GPU 1'
release_all later
kill "$(pid_of blind)"
goes_on 'after the job in the container other users get GPUs'

# --- processes that look as if nvidia-smi hung ---------------------------------------------

# left_by N: kills a client of user N while it probes, so that the next client has doubts
left_by() {
	rm -f "$M/state/probe"
	log=$S/log.$1
	: >"$log" && chmod 0666 "$log"
	driver 'gpus 2' 'delay 20000' "log $log"
	by "$1" begin doubts -n 2
	wait_until '[ -s "$log" ]'
	kill -KILL "$(pid_of doubts)"
	# the nvidia-smi that this client had started must not count as hanging
	while read -r pid _; do kill -KILL "$pid" 2>/dev/null; done <"$log"
	driver 'gpus 2'
}

configure 'probe-deadline = 200ms'
mkdir "$M/bin/own"
chmod 0755 "$M/bin/own"
cp "$M/bin/nvidia-smi" "$M/bin/own/nvidia-smi"
echo stuck >"$M/bin/own/nvidia-smi.conf"
for _ in 1 2 3 4; do
	setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) --clear-groups -- \
		"$M/bin/own/nvidia-smi" -L &
	started="$started $!"
	wait_until "[ \"\$(process_state $!)\" = D ]" || bail 'no process in state D'
done
left_by 1
# they count as hanging only once they are older than a probe may be
now=$(date +%s%3N)
wait_until '[ $(($(date +%s%3N) - now)) -gt 300 ]'
run 'four processes that a user calls nvidia-smi stop no other user' 0 '' '*' \
	"$U2" -n 2 --max-wait 20s true
finish
