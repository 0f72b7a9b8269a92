#!/bin/sh
# The owner of a ticket takes turns and starts nothing, because its own nvidia-smi fails: later
# tickets pass it after 3 s, it says why, and it starts in its place once its nvidia-smi answers.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

# refuse DIR: the driver in DIR refuses to answer, as for a user without permission.
refuse() {
	echo 4 >"$1/exit"
	echo 'Failed to initialize NVML: Insufficient Permissions' >"$1/stdout"
}
answer() {
	rm -f "$1/exit" "$1/stdout"
}
asks() {
	grep -c gpus "$1/count"
}

# --- one user's nvidia-smi fails ---------------------------------------------------------

fresh
mkdir "$S/blind"
cp "$FAKE_SMI_DIR/gpus" "$S/blind/"
refuse "$S/blind"
run 'the GPUs are known' 0 '' '' "$GPULEASE" -n 2 true
holder before -n 2
FAKE_SMI_DIR=$S/blind waiter blind -n 1
begin later -n 2
release_all before
is 'a ticket with a failing nvidia-smi does not stop a later ticket' wait_until 'runs later'
! runs blind || not_ok 'the blind job has started without an answer of nvidia-smi'
words='its own nvidia-smi fails: Insufficient Permissions'
run '--queue says why the blind job does not start' 0 "*$words*" '' "$GPULEASE" --queue
is '--queue --json says why it does not start' sh -c '"$1" --queue --json |
	grep -q "\"stuck\": *\"nvidia-smi:Insufficient Permissions\""' - "$GPULEASE"
begin second -n 2
release_all later
is 'a ticket with a failing nvidia-smi does not stop a second ticket' wait_until 'runs second'
! runs blind || not_ok 'the blind job has started without an answer of nvidia-smi'
# All GPUs are leased, so the owner of the ticket asks again when they come free.
waiter third -n 2
answer "$S/blind"
release_all second
is 'the blind job starts once its nvidia-smi answers' wait_until 'runs blind'
is 'the blind job starts before the next ticket' sh -c '! [ -e "$1" ]' - "$S/third.runs"
release_all blind
is 'the next ticket starts after the blind job' wait_until 'runs third'
release_all third

# --- nvidia-smi fails for all -------------------------------------------------------------

fresh
run 'the GPUs are known' 0 '' '' "$GPULEASE" -n 2 true
holder before -n 2
rm -rf "$S/blind"
cp -R "$FAKE_SMI_DIR" "$S/blind"
FAKE_SMI_DIR=$S/blind waiter first -n 2
waiter later -n 2
refuse "$S/blind"
refuse "$FAKE_SMI_DIR"
: >"$S/blind/count"
: >"$FAKE_SMI_DIR/count"
release_all before
# The waiters ask again after 1, 2 and 4 s: by then the later ticket could have passed.
wait_until '[ "$(asks "$FAKE_SMI_DIR")" -ge 4 ] && [ "$(asks "$S/blind")" -ge 4 ]' ||
	not_ok 'the waiters do not run nvidia-smi'
is 'if nvidia-smi fails for all, no ticket starts' sh -c '! [ -e "$1" ] && ! [ -e "$2" ]' - \
	"$S/first.runs" "$S/later.runs"
answer "$S/blind"
answer "$FAKE_SMI_DIR"
is 'once nvidia-smi answers, the first ticket starts' wait_until 'runs first'
is 'the first ticket starts before the later one' sh -c '! [ -e "$1" ]' - "$S/later.runs"
release_all first
is 'the later ticket starts after the first one' wait_until 'runs later'
release_all later
finish
