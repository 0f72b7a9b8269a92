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

# A gpulease-view that tells what it is.
cat >"$M/bin/gpulease-view.new" <<'END'
#!/bin/sh
echo "groups $(id -G) egid $(id -g) uid $(id -u)"
sed -n 's/^Gid:[[:space:]]*/gids /p' /proc/self/status
echo "umask $(umask)"
echo "path ${LD_LIBRARY_PATH-none} ${TMPDIR-none}"
echo "words $*"
ls "${0%/*}/../state" 2>/dev/null && echo 'the state directory is open'
find /proc/self/fd -mindepth 1 -lname '*/state*' 2>/dev/null | sed 's/.*/an open file/'
END
chmod 0755 "$M/bin/gpulease-view.new"
mv "$M/bin/gpulease-view.new" "$M/bin/gpulease-view"
user=$((UID_BASE + 2))
for option in --metrics --top --timeline '--status --host x'; do
	# shellcheck disable=SC2086 # two words
	run "with $option it has the user's group and words" 0 "groups $user egid $user uid $user
gids $user	$user	$user	$user
umask *
words view $M/bin/gpulease $option" '' "$U2" $option
done
run 'the environment and the umask of the user are restored' 0 "*
umask 0027
path /a/lib /a/tmp
*" '' sh -c 'umask 027 && LD_LIBRARY_PATH=/a/lib TMPDIR=/a/tmp exec "$1" --metrics' sh "$U2"
run 'root has no group of gpulease either' 0 "groups $(id -G) *" '' "$ROOT" --metrics
release_all job
finish
