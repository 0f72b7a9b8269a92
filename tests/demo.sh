#!/bin/sh
# make demo: two jobs that want the same GPUs, and --status while they run.  Uses a real GPU if one
# is idle, else simulated GPUs with a state directory that is removed afterwards.  Takes a few
# seconds.

set -u
gpulease=${GPULEASE:-build/gpulease}
place=$(mktemp -d "${TMPDIR:-/tmp}/gpulease-demo.XXXXXX") || exit 1
trap 'kill $first $second 2>/dev/null; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
first='' second=''
unset GPULEASE_SIM GPULEASE_TOKEN

# Prints the index of a GPU that has hardly any memory in use.
idle_gpu() {
	timeout 5 nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits \
		2>/dev/null | awk -F ', *' '$2 ~ /^[0-9]+$/ && $2 < 200 { print $1; exit }'
}

show() {
	echo
	echo "\$ $*"
}

# Shows the command as gpulease, whatever the path of the program, and runs it.
gpulease() {
	show gpulease "$@"
	"$gpulease" "$@"
}

gpu=$(idle_gpu)
if [ -n "$gpu" ]; then
	echo "On GPU $gpu of this machine."
	export CUDA_VISIBLE_DEVICES="$gpu"
	wanted=1
else
	echo 'No idle NVIDIA GPU here: on four simulated ones.'
	export GPULEASE_SIM=4 XDG_STATE_HOME="$place"
	unset CUDA_VISIBLE_DEVICES GPULEASE_DIR
	wanted=3
fi

cat >"$place/job" <<'END'
#!/bin/sh
echo "job $1 has GPUs $CUDA_VISIBLE_DEVICES"
sleep 2
echo "job $1 ends"
END
chmod +x "$place/job"
PATH=$place:$PATH

echo
echo 'Two jobs that cannot run at the same time:'
gpulease -n "$wanted" job one &
first=$!
sleep 0.5
gpulease -n "$wanted" --max-wait 60 job two &
second=$!
sleep 0.5
gpulease --status
wait "$first" && wait "$second"
status=$?
first='' second=''
gpulease --status
show 'gpulease --history 2'
"$gpulease" --history 2
exit "$status"
