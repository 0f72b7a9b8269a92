#!/bin/sh
# Jobs that are never ended because of unused GPUs: shared and MIG GPUs, GPUs whose use is unknown,
# and jobs whose watchdog is gone or was stopped.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/unused_lib.sh
. "$CLI/unused_lib.sh"

# --- what is never ended -----------------------------------------------------------------------

# survives TEXT: results, good if job `one` is not ended and not told, although `next` waits
survives() {
	sees_many=$(calls)
	wait_until '[ "$(calls)" -ge $((sees_many + 25)) ]'
	is "$1: the job is not ended" kill -0 "$(pid_of one)"
	is "$1: the job is told nothing" [ ! -s "$S/one.err" ]
	is "$1: --status does not call it unused" eval '! status_says "has not used"'
	is "$1: --json does not call it unused" [ "$(shown "${2-0}" unused)" = false ]
}

machine 1
holder one -n 0.5
waiter next -n 1
survives 'a share'
is 'a share is watched' [ "$(shown 0 watched)" = true ]
release_all one
wait_until 'runs next'
release_all next

machine 1
echo Enabled >"$FAKE_SMI_DIR/mig.0"
echo '0 0 3g.40gb MIG-aaaaaaaa-0000' >"$FAKE_SMI_DIR/migs"
holder one -n 1
waiter next -n 1
survives 'a MIG instance' 1
release_all one
wait_until 'runs next'
release_all next

machine 1
echo '[N/A]' >"$FAKE_SMI_DIR/util.0"
holder one
waiter next
survives 'a GPU whose use is not shown'
release_all one
wait_until 'runs next'
release_all next

machine 1
holder one
waiter next
sees 3
echo 9 >"$FAKE_SMI_DIR/exit"
: >"$FAKE_SMI_DIR/gpus.raw"
survives 'an nvidia-smi that fails'
is 'an nvidia-smi that fails: --json does not call the GPU used' [ "$(shown 0 unused_for_ms)" = null ]
rm "$FAKE_SMI_DIR/exit" "$FAKE_SMI_DIR/gpus.raw"
is 'once nvidia-smi answers, the job is told' wait_until '[ "$(told one "has not used")" -ge 1 ]'
release_all one
wait_until 'runs next'
release_all next

machine 1
holder one
sees 1
: >"$FAKE_SMI_DIR/hang"
wait_until 'strays_run sleep' # the nvidia-smi that hangs
is 'the sample is there' strays_run exe
id=$(id_of one)
release_all one
is 'a hanging sample does not delay the end of the job' wait_until \
	"has_ended $id ended finished 0"
is 'no watchdog is left' wait_until '[ -z "$(guards)" ]'
is 'no sample is left' wait_until '! strays_run exe' # as it is run through /proc/self/exe
is 'no nvidia-smi is left' wait_until '! strays_run sleep'
rm "$FAKE_SMI_DIR/hang"
run 'the GPU is free' 0 '' '' "$GPULEASE" -I true

machine 1
"$GPULEASE" --submit -o "$S/log" sleep 1000 >/dev/null
wait_until '[ "$(seen_at)" ]'
: >"$FAKE_SMI_DIR/hang"
wait_until 'strays_run nvidia-smi || [ "$(calls)" -ge 3 ]'
"$GPULEASE" --cancel mine --yes >/dev/null 2>&1
rm "$FAKE_SMI_DIR/hang"
is 'a hanging sample does not delay the end of a background job' wait_until \
	'"$GPULEASE" -I true 2>/dev/null'
is 'no sample of it is left' wait_until '[ -z "$(strays)" ]'

# --- a watchdog that is gone -------------------------------------------------------------------

machine 1
holder one
id=$(id_of one)
waiter next
sees 3
kill -KILL "$(guards)"
is 'a killed watchdog: --status says so' wait_until "status_says '^GPU 0: job $id is not watched any more'"
is 'a killed watchdog: --json says so' [ "$(shown 0 watched) $(shown 0 unused)" = 'false false' ]
is 'a killed watchdog: the job runs' kill -0 "$(pid_of one)"
is 'a killed watchdog: there is no end' [ "$(told one 'TERM now')" -eq 0 ]
release_all one
wait_until 'runs next'
release_all next

# longer than two and a half intervals
machine 1
holder one
echo 0.6 >"$FAKE_SMI_DIR/delay"
is 'a slow nvidia-smi makes no gap' wait_until '[ "$(told one "has not used")" -ge 1 ]'
rm "$FAKE_SMI_DIR/delay"
release_all one

# as after a suspend: no process took samples for a while
machine 1
holder one
waiter next
wait_until '[ "$(told one "it ends in")" -ge 1 ]' # a second later it would be ended
guard=$(guards)
kill -STOP "$guard"
seen=$(seen_at)
wait_until '[ "$(($(cut -d . -f 1 /proc/uptime) * 1000))" -ge $((seen + 3000)) ]'
kill -CONT "$guard"
sees 2
is 'after a gap the time begins anew' [ "$(span_of 0 unused_for_ms)" -lt 2500 ]
is 'after a gap the job runs' kill -0 "$(pid_of one)"
ended one
is 'then it is warned twice again' [ "$(told one 'it ends in')" -ge 3 ]
wait_until 'runs next'
release_all next
finish
