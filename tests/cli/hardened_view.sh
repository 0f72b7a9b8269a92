#!/bin/sh
# gpulease-view where gpulease is installed set-group-ID: it has the user's rights, environment and
# umask, and shows what gpulease shows to this user.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'gpulease-view' "$@"
driver 'gpus 2'

by 1 holder job -n 1
run 'a user sees the metrics of the jobs of another user' 0 "*
gpulease_leased_gpus{user=\"$((UID_BASE + 1))\"} 1
*# EOF" '' "$U2" --metrics
run 'the file belongs to the user' 0 '' '' "$U2" --metrics "$S/open/x.prom"
is 'it has the mode and no group of gpulease' [ "$(stat -c %u:%g:%a "$S/open/x.prom")" = \
	"$((UID_BASE + 2)):$((UID_BASE + 2)):644" ]
mkdir "$S/closed"
chgrp "$GROUP" "$S/closed"
chmod 2770 "$S/closed"
run 'the group of gpulease writes no file' 125 '' \
	"gpulease: cannot write '$S/closed/x.prom': Permission denied" \
	"$U2" --metrics "$S/closed/x.prom"
run '--config is ignored as by any other verb, with its message' 0 '*# EOF' \
	'gpulease: *--config is ignored*' "$U2" --config "$S/open/conf" --metrics

echo "directory = $M/state" >/etc/gpulease.conf
run '--show-config says what the jobs of all users use, whatever the user names' 0 "*
nvidia-smi = /usr/bin/nvidia-smi *# default
*" 'gpulease: *--config is ignored*' env GPULEASE_DIR="$S/open" PATH="$M/bin:$PATH" \
	"$U2" --config "$S/open/conf" --show-config
is 'the directory is that of all users' grep -q "^directory = $M/state .*line 1" "$S/out"
configure

teller gpulease-view
user=$((UID_BASE + 2)) tab=$(printf '\t')
for option in --metrics --top --timeline --doctor --show-config; do
	run "with $option it has the user's group alone" 0 "Umask:*
$HERS
*
opens 0
*" '' "$U2" "$option"
done
run 'it has the words of the user' 0 "*
word view
word $M/bin/gpulease
word --status
word --host
word x
opens 0
*" '' "$U2" --status --host x
"$U2" --metrics >"$S/metrics"
for option in --doctor --show-config; do
	run "what $option has found is its stdin, with the user's group; it gets nothing else" 0 "*
stdin $user:$user
$(grep '^descriptors ' "$S/metrics")" '' "$U2" "$option"
done
run 'the environment and the umask of the user are restored' 0 "Umask:${tab}0027
*
path /a/lib /a/tmp
*" '' sh -c 'umask 027 && LD_LIBRARY_PATH=/a/lib TMPDIR=/a/tmp exec "$1" --metrics' sh "$U2"
release_all job
finish
