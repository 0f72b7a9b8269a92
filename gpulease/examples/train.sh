#!/bin/sh
# A script as jobs.csv has them: reads its arguments and trains, one second an epoch.  Here
# gpulease-simjob does; see tour.txt.
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
	echo "train.sh: '$1' is no option, or lacks a value" >&2
	exit 2
fi
echo "epochs: $epochs, tags: $tags"
exec gpulease-simjob --vram "$vram" --ramp 500ms --hold "$epochs"
