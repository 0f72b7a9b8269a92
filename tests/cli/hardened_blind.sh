#!/bin/sh
# A user whose own nvidia-smi fails, or shows less than that of other users, stops no other user.
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
	is "$1 does not stop a user behind it" wait_until 'runs later'
	! runs blind || not_ok "$1: it has started all the same"
	run "$1: --queue says so to others" 0 "*$2*" '*' "$U3" --queue
}

driver
run 'the GPUs are known' 0 '' '*' "$U3" -n 2 true

# --- no permission -------------------------------------------------------------------------

by 3 holder before -n 2
driver "refuse $((UID_BASE + 1))"
by 1 waiter blind -n 2
release_all before
passes 'a user who must not use the driver' \
	'its own nvidia-smi fails: Insufficient Permissions'
by 2 begin third -n 2
release_all later
is 'the next user behind it starts, too' wait_until 'runs third'
! runs blind || not_ok 'it has started all the same'
driver
release_all third
is 'it starts once its nvidia-smi answers' wait_until 'runs blind'
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
	is 'it starts once its nvidia-smi answers' wait_until 'runs blind'
	release_all blind
else
	skip 'a user with little address space' 'the program does not run in 1 GB'
	driver
	release_all before
fi

# --- fewer GPUs ----------------------------------------------------------------------------

# In a container there is one GPU only: the other one is free, and of no use to that ticket.
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
goes_on 'after that jobs start'
finish
