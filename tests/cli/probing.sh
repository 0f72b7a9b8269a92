#!/bin/sh
# Which answers of nvidia-smi are shared with other users: none of an nvidia-smi that its user has
# stopped, killed or deprived of resources, nor of one that saw another machine.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'nvidia-smi as several users' "$@"

log=$S/open/log

# slow LINE…: an nvidia-smi that answers once $S/open/go is there, and logs its pid.
slow() {
	rm -f "$S/open/go"
	: >"$log"
	chmod 0666 "$log"
	driver "wait $S/open/go" "log $log" "$@"
}

# smi QUERY: the last nvidia-smi for `gpus` or `procs`
smi() {
	sed -n "s/ $1\$//p" "$log" | tail -n 1
}

calls() {
	grep -c gpus "$log"
}

# no_result: forgets the shared result, if there is one
no_result() {
	rm -f "$M/state/probe"
}

# --- isolation ---------------------------------------------------------------------------

slow
by 1 begin asking -n 1
wait_until '[ "$(wc -l <"$log")" -ge 2 ]' || bail 'nvidia-smi does not start'
for query in gpus procs; do
	run "a user cannot attack their nvidia-smi for $query or its output" 0 '' '' \
		as 1 "$TOOLS/attack" process "$(smi $query)"
done
run 'a user cannot attack their gpulease that runs nvidia-smi' 0 '' '' as 1 "$TOOLS/attack" process "$(pid_of asking)"
is 'nvidia-smi runs with the group that its user does not have' sh -c \
	'[ "$(sed -n "s/^Gid:.\([0-9]*\).\([0-9]*\).*/\1 \2/p" "/proc/$1/status")" = "$2" ]' - \
	"$(smi gpus)" "$((UID_BASE + 1)) $GROUP"
is 'nvidia-smi runs in the directory /' [ "$(readlink "/proc/$(smi gpus)/cwd")" = / ]
touch "$S/open/go"
lease_wait asking
release_all asking

# --- killed and stopped --------------------------------------------------------------------

for signal in KILL STOP; do
	no_result
	slow
	by 1 begin disturbed -n 2 --max-wait 60s
	wait_until '[ "$(wc -l <"$log")" -ge 2 ]'
	as 1 kill -"$signal" "$(smi gpus)"
	is "$signal: nvidia-smi is started again" wait_until '[ "$(calls)" -ge 2 ]'
	is "$signal: no answer is shared" [ ! -e "$M/state/probe" ]
	driver
	run "$signal: another user runs nvidia-smi and sees idle GPUs" 0 '*0 *idle*1 *idle*' '*' "$U2" --status
	touch "$S/open/go"
	lease_wait disturbed
	release_all disturbed
done

no_result
slow
by 1 begin halting -n 2
wait_until '[ "$(wc -l <"$log")" -ge 2 ]'
halted=$(smi procs)
as 1 kill -STOP "$halted"
as 1 kill -CONT "$halted" 2>/dev/null
is 'nvidia-smi stopped and continued: it is started again' wait_until '[ "$(calls)" -ge 2 ]'
touch "$S/open/go"
lease_wait halting
release_all halting

# A user may also stop the gpulease that runs nvidia-smi before it shares the answer.
no_result
slow 'gpus 4' # two GPUs that no job has used yet
by 1 begin sleeper -n 1 --max-wait 60s
wait_until '[ "$(wc -l <"$log")" -ge 2 ]'
stop sleeper
# shellcheck disable=SC2034 # for wait_until
was=$(smi procs)
touch "$S/open/go"
wait_until '[ "$(process_state "$was")" = Z ]'
sleep 4.2
driver 'gpus 4' "log $log" "wait $S/open/more"
: >"$log"
wake sleeper
lease_wait sleeper
is 'a delayed answer counts for the process that asked' [ "$(calls)" -eq 0 ]
by 2 begin other -n 1
is 'a delayed answer is not shared with other users' wait_until '[ "$(calls)" -ge 1 ]'
touch "$S/open/more"
release_all sleeper
lease_wait other
release_all other

# --- few resources -----------------------------------------------------------------------

no_result
driver "log $log"
for limit in 'f 0' 'n 12' 'v 20000' 's 128'; do
	run "nvidia-smi works with ulimit -S -$limit" 0 '' '' \
		sh -c "ulimit -S -$limit; umask 0777; exec \"\$@\"" - "$U1" -n 2 true
done
no_result
if is_static "$M/bin/gpulease"; then
	skip 'an nvidia-smi that lacks memory' 'a static program needs too little memory'
else
	run 'an nvidia-smi that lacks memory does not start' 1 '*' '*' \
		sh -c 'ulimit -v 3000; "$@" || exit 1' - "$U1" -n 2 -I true
	is 'a failure to start nvidia-smi is not shared with other users' [ ! -e "$M/state/probe" ]
fi
goes_on 'other users run nvidia-smi themselves'
# sh itself does not pass an ignored SIGCHLD on
if env --ignore-signal=CHLD true 2>/dev/null; then
	no_result
	run 'gpulease works with SIGCHLD ignored' 0 '' '' \
		as 1 env --ignore-signal=CHLD "$M/bin/gpulease" -n 2 true
	is 'the answer obtained with SIGCHLD ignored is shared' [ -e "$M/state/probe" ]
	# shellcheck disable=SC2016
	run 'the command still ignores SIGCHLD' 0 '*1????' '' as 1 env --ignore-signal=CHLD \
		"$M/bin/gpulease" -n 1 sed -n 's/^SigIgn:.//p' /proc/self/status
else
	skip 'gpulease works with SIGCHLD ignored' 'env cannot do that here'
fi

# --- other namespaces ----------------------------------------------------------------------

# view: the view of the machine that the shared result belongs to
view() {
	dd if="$M/state/probe" bs=512 count=1 2>/dev/null | tr ' ' '\n' | grep '^view='
}

# The same driver, but for a machine with one GPU, which has index 3 outside.
mkdir "$M/bin/inside"
cp "$M/bin/nvidia-smi" "$M/bin/inside/nvidia-smi"
printf 'gpus 1\nfirst 3\n' >"$M/bin/inside/nvidia-smi.conf"
driver 'gpus 4'
for kind in '-m' '-m -p -f --mount-proc'; do
	run "unshare $kind: outside a GPU has index 3" 0 '3 GPU-00000003-*' '*' env CUDA_VISIBLE_DEVICES=3 \
		"$ROOT" sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
	before=$(view)
	# shellcheck disable=SC2016,SC2086
	run 'inside a namespace the same GPU has index 0 at once' 0 '0 GPU-00000003-*' '*' \
		unshare $kind sh -c 'for file in nvidia-smi nvidia-smi.conf; do
			mount --bind "$1/inside/$file" "$1/$file" || exit 99
		done
		exec "$1/gpulease" sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_UUIDS"' - "$M/bin"
	is 'inside a namespace the result belongs to another view' [ "$before" != "$(view)" ]
	run 'outside the GPU has index 3 again' 0 '3 GPU-00000003-*' '*' env CUDA_VISIBLE_DEVICES=3 \
		"$ROOT" sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
	is 'outside the result belongs to the same view as before' [ "$before" = "$(view)" ]
done
finish
