#!/bin/sh
# gpulease-engine where gpulease is installed set-group-ID: it has the user's rights, environment
# and umask, whether the option, the variable or the configuration chooses it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'gpulease-engine' "$@"
driver 'gpus 2'
is 'gpulease-engine has no right of a group' [ ! -g "$M/bin/gpulease-engine" ]

teller gpulease-engine
by 1 holder job -n 1 # so that there are tickets
tab=$(printf '\t')

# drops TEXT COMMAND…: the engine has the user's group alone
drops() {
	drops_text=$1
	shift
	run "$drops_text: it has the user's group alone" 0 "Umask:*
$HERS
*
word engine
word $M/bin/gpulease
*
opens 0
*" '' "$@"
}

drops 'with --engine' "$U2" --engine slurm true
drops 'with GPULEASE_ENGINE' env GPULEASE_ENGINE=slurm "$U2" true
drops 'with an option that one machine refuses' "$U2" --engine slurm -x n1 true
drops 'with such an option and the variable' env GPULEASE_ENGINE=slurm "$U2" -x n1 true
drops 'with --status' "$U2" --engine slurm --status
drops 'with --cancel' "$U2" --engine slurm --cancel 3
run 'the environment and the umask of the user are restored' 0 "Umask:${tab}0027
*
path /a/lib /a/tmp
*" '' sh -c 'umask 027 && LD_LIBRARY_PATH=/a/lib TMPDIR=/a/tmp exec "$1" --engine slurm true' sh "$U2"

configure 'engine = slurm'
drops 'with the configuration' "$U2" true
drops 'with the configuration and an option that one machine refuses' "$U2" -x n1 true
run '--engine local counts in spite of the configuration' 0 'here' '' \
	"$U2" --engine local -n 0 echo here
run 'so does GPULEASE_ENGINE=local' 0 'here' '' \
	env GPULEASE_ENGINE=local "$U2" -n 0 echo here
printf 'engine = local\n' >"$S/open/conf"
run '--config is ignored, as by any other verb' 0 '*
opens 0
*' 'gpulease: *--config is ignored*' "$U2" --config "$S/open/conf" true

# the real one reads /etc/gpulease.conf itself, and the option --config, which only it may use
mv "$S/gpulease-engine" "$M/bin/gpulease-engine"
run 'the real engine runs with that configuration' 125 '' 'gpulease: --vram: Slurm knows*' \
	"$U2" --vram 8G true
run '--show-config means this machine' 0 '*slurm*' '' "$U2" --show-config
configure
release_all job
finish
