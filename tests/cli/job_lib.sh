# shellcheck shell=sh disable=SC2034
# What the scripts of sbatch share; read in after lib.sh and scratch.
#
#	$SBATCH	sbatch as it is installed
#	$S/work	the folder, which is the working directory
#	$node	this host, as Slurm names it

: "${S:?scratch sets it}"

# As it is installed, with the links: sbatch finds gpulease, and the script finds srun.
for folder in bin lib lib/gpulease lib/gpulease/bin work; do
	mkdir "$S/$folder"
done
install -m 0755 "$GPULEASE" "$S/bin/gpulease"
install -m 0755 "$(dirname "$GPULEASE")/gpulease-slurm" "$S/lib/gpulease/gpulease-slurm"
ln -s ../../../bin/gpulease "$S/lib/gpulease/bin/srun"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/sbatch"
SBATCH=$S/lib/gpulease/bin/sbatch
for each in $(env | sed -n 's/^\(SBATCH_[A-Z_]*\)=.*/\1/p'); do
	unset "$each"
done
cd "$S/work" || bail "no directory"
node=$(hostname -s 2>/dev/null || hostname)
node=${node%%.*}

# script NAME: stdin is a script for sbatch, after `#!/bin/sh`
script() {
	{
		echo '#!/bin/sh'
		cat
	} >"$1"
}

# printed FILE: what the job has printed
printed() {
	grep -v '^gpulease: ' "$1"
}

queued() {
	wc -c <"$(state_dir)/tickets"
}

copies() {
	# without the links from the ids of arrays
	find "$XDG_STATE_HOME/gpulease/scripts" -type f 2>/dev/null | wc -l
}
