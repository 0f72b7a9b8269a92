#!/bin/sh
# Whose nvidia-smi is believed: not one that its user has stopped, killed or starved of means,
# nor one that saw another machine.
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

# --- out of reach --------------------------------------------------------------------------

slow
by 1 begin asking -n 1
wait_until '[ "$(wc -l <"$log")" -ge 2 ]' || bail 'nvidia-smi does not start'
for query in gpus procs; do
	run "its user cannot get into the nvidia-smi for $query, nor its output" 0 '' '' \
		as 1 "$TOOLS/attack" process "$(smi $query)"
done
run 'nor the gpulease that asks' 0 '' '' as 1 "$TOOLS/attack" process "$(pid_of asking)"
is 'it has the group, and its user has not' sh -c \
	'[ "$(sed -n "s/^Gid:.\([0-9]*\).\([0-9]*\).*/\1 \2/p" "/proc/$1/status")" = "$2" ]' - \
	"$(smi gpus)" "$((UID_BASE + 1)) $GROUP"
is 'its directory is /' [ "$(readlink "/proc/$(smi gpus)/cwd")" = / ]
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
	is "$signal: another one is asked in its place" wait_until '[ "$(calls)" -ge 2 ]'
	is "$signal: nobody else hears of it" [ ! -e "$M/state/probe" ]
	driver
	run "$signal: others find out for themselves" 0 '*0 *idle*1 *idle*' '*' "$U2" --status
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
is 'stopped and continued: another one is asked, too' wait_until '[ "$(calls)" -ge 2 ]'
touch "$S/open/go"
lease_wait halting
release_all halting

# Whoever asks may stop himself, too, before he tells others what he has heard.
no_result
slow 'gpus 4' # two that nobody has had yet
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
is 'one that took long is good for whoever asked' [ "$(calls)" -eq 0 ]
by 2 begin other -n 1
is 'and for nobody else' wait_until '[ "$(calls)" -ge 1 ]'
touch "$S/open/more"
release_all sleeper
lease_wait other
release_all other

# --- a user with little --------------------------------------------------------------------

no_result
driver "log $log"
for limit in 'f 0' 'n 12' 'v 20000' 's 128'; do
	run "ulimit -S -$limit" 0 '' '' \
		sh -c "ulimit -S -$limit; umask 0777; exec \"\$@\"" - "$U1" -n 2 true
done
no_result
if is_static "$M/bin/gpulease"; then
	skip 'want of memory' 'a static program needs too little'
else
	run 'what cannot start for want of memory' 1 '*' '*' \
		sh -c 'ulimit -v 3000; "$@" || exit 1' - "$U1" -n 2 -I true
	is 'is not told to others' [ ! -e "$M/state/probe" ]
fi
goes_on 'who find out for themselves'
# sh itself does not pass that on
if env --ignore-signal=CHLD true 2>/dev/null; then
	no_result
	run 'a user who ignores SIGCHLD learns of its end all the same' 0 '' '' \
		as 1 env --ignore-signal=CHLD "$M/bin/gpulease" -n 2 true
	is 'and his result is good for others' [ -e "$M/state/probe" ]
	# shellcheck disable=SC2016
	run 'his command ignores it as before' 0 '*1????' '' as 1 env --ignore-signal=CHLD \
		"$M/bin/gpulease" -n 1 sed -n 's/^SigIgn:.//p' /proc/self/status
else
	skip 'a user who ignores SIGCHLD' 'env cannot do that here'
fi

# --- other namespaces ----------------------------------------------------------------------

# view: of whom the shared result is
view() {
	dd if="$M/state/probe" bs=512 count=1 2>/dev/null | tr ' ' '\n' | grep '^view='
}

# The same driver, but of a machine that has one GPU less, and others before it.
mkdir "$M/bin/inside"
cp "$M/bin/nvidia-smi" "$M/bin/inside/nvidia-smi"
printf 'gpus 1\nfirst 3\n' >"$M/bin/inside/nvidia-smi.conf"
driver 'gpus 4'
for kind in '-m' '-m -p -f --mount-proc'; do
	run "unshare $kind: outside" 0 '3 GPU-00000003-*' '*' env CUDA_VISIBLE_DEVICES=3 \
		"$ROOT" sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
	before=$(view)
	# shellcheck disable=SC2016,SC2086
	run 'inside the same GPU has another index, at once' 0 '0 GPU-00000003-*' '*' \
		unshare $kind sh -c 'for file in nvidia-smi nvidia-smi.conf; do
			mount --bind "$1/inside/$file" "$1/$file" || exit 99
		done
		exec "$1/gpulease" sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_UUIDS"' - "$M/bin"
	is 'which is the result of another view' [ "$before" != "$(view)" ]
	run 'outside all is as before' 0 '3 GPU-00000003-*' '*' env CUDA_VISIBLE_DEVICES=3 \
		"$ROOT" sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
	is 'and so is the view' [ "$before" = "$(view)" ]
done
finish
