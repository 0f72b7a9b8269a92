#!/bin/sh
# The script that the lines of jobs.csv run: it trains for one second per epoch.  gpulease-simjob
# takes the place of the training; see tour.txt.
#
#	train.sh [--vram SIZE] [--epochs N] [--tags LIST]

vram=2G epochs=1 tags=none
while [ $# -ge 2 ]; do
	case $1 in
	--vram) vram=$2 ;;
	--epochs) epochs=$2 ;;
	--tags) tags=$2 ;;
	*) break ;;
	esac
	shift 2
done
if [ $# -gt 0 ]; then
	echo "train.sh: '$1' is not an option, or lacks a value" >&2
	exit 2
fi
echo "epochs: $epochs, tags: $tags"
exec gpulease-simjob --vram "$vram" --ramp 500ms --hold "$epochs"
