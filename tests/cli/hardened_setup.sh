#!/bin/sh
# The set-up of commands where gpulease is installed set-group-ID: no part of it has the group.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'the set-up of commands' "$@"

run 'the set-up does not have the group' 0 "$((UID_BASE + 1)) $((UID_BASE + 1))
$((UID_BASE + 1)) $((UID_BASE + 1))" '' "$U1" -n 0 --setup 'echo $(id -g) $(id -G)' sh -c 'echo $(id -g) $(id -G)'
export LD_LIBRARY_PATH="$S/open/lib"
run 'the set-up has the variables that the loader removes' 0 "$LD_LIBRARY_PATH" '' \
	"$U1" -n 0 --setup 'echo $LD_LIBRARY_PATH' true
run '--export passes on a variable that the loader removes' 0 "$LD_LIBRARY_PATH" '' \
	"$U1" -n 0 --export=LD_LIBRARY_PATH sh -c 'echo $LD_LIBRARY_PATH'
run '--export without the variable does not pass it on' 0 '' '' "$U1" -n 0 --export=NONE \
	sh -c 'echo ${LD_LIBRARY_PATH-}'
unset LD_LIBRARY_PATH

mkdir -p "$S/closed/bin" "$S/closed/envs/train/conda-meta"
printf '#!/bin/sh\n' >"$S/closed/bin/conda"
chmod 0755 "$S/closed/bin/conda"
chgrp "$GROUP" "$S/closed"
chmod 0750 "$S/closed"
run 'conda is not looked for with the rights of the group' 125 '' '*cannot find conda for --conda*' \
	env HOME=/nowhere CONDA_EXE="$S/closed/bin/conda" "$U1" -n 0 --conda train true
chmod 0755 "$S/closed"
run 'conda is looked for with the rights of the user' 0 '' '' \
	env HOME=/nowhere CONDA_EXE="$S/closed/bin/conda" "$U1" -n 0 --conda train true
chmod 0750 "$S/closed/envs"
chgrp "$GROUP" "$S/closed/envs"
run 'a conda environment is not looked for with the rights of the group' 125 '' \
	'*no conda environment*' \
	env HOME=/nowhere CONDA_EXE="$S/closed/bin/conda" "$U1" -n 0 --conda train true
finish
