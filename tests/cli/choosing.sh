#!/bin/sh
# Which GPUs a job gets: lists, models, sizes, preferences, how they are linked; and the CPUs
# near them.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# Only the last part needs mounts.
own_mounts "$@" || :
scratch
with_driver
show='echo $CUDA_VISIBLE_DEVICES'

cards() {
	fresh
	gpus "$1"
}

# gets TEXT GPUS OPTION…: a result, good if a job with these options gets these GPUs at once.
gets() {
	gets_text=$1 gets_gpus=$2
	shift 2
	run "$gets_text" 0 "$gets_gpus" '' "$GPULEASE" -I "$@" sh -c "$show"
}

# refused TEXT PATTERN OPTION…: a result, good if a job with these options is refused with PATTERN.
refused() {
	refused_text=$1 refused_why=$2
	shift 2
	run "$refused_text" 125 '' "gpulease: $refused_why" "$GPULEASE" "$@" true
}

# anew TEXT GPUS OPTION…: gets, on four GPUs that no job has used yet, so that only the options
# decide.
anew() {
	cards 4
	gets "$@"
}

# --- lists -------------------------------------------------------------------------------

anew '--gpu-ids leases exactly these GPUs' 3,1 --gpu-ids 3,1
anew '--gpu-ids takes a range' 1,2,3 --gpu-ids 1-3
anew '--gpu-ids takes a UUID' 2 --gpu-ids GPU-00000002-1111-2222-3333-444444444444
anew '--gpu-ids takes the beginning of a UUID' 2,1 --gpu-ids GPU-00000002,1
anew '-n may repeat the number of GPUs in --gpu-ids' 0,2 -n 2 --gpu-ids 0,2
anew 'a share of the GPU in --gpu-ids is leased' 3 -n 0.5 --gpu-ids 3
anew 'memory of the GPUs in --gpu-ids is leased' 2,3 --vram 1G --gpu-ids 2-3
anew '--allow leases GPUs from its list only' 2,3 -n 2 --allow 2-3
anew '--allow leases fewer GPUs than it lists' 2 --allow 3,2
anew '--except leases any GPUs but those it lists' 0,3 -n 2 --except 1,2
anew '--allow and --except together leave the difference' 3 --allow 1-3 --except 1-2
anew 'a GPU that a list names twice counts once' 1 --allow 1,1,0-1 --except 0,0
anew '--prefer-gpus leases the GPUs that it lists first' 2 --prefer-gpus 2,1
anew '--prefer-gpus takes the GPUs in the order of the list' 1,2,3 -n 3 --prefer-gpus 3,2,1
anew '--prefer-gpus takes other GPUs after those it lists' 0,3 -n 2 --prefer-gpus 3
anew '--prefer-gpus does not lease an excepted GPU' 0 --prefer-gpus 3 --except 3
holder taken --gpu-ids 2
gets '--prefer-gpus does not wait for a leased GPU' 1 --prefer-gpus 2,1
run 'a job waits for the GPU in --gpu-ids, though others are free' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' \
	"$GPULEASE" --gpu-ids 2 -I true
run 'a job waits for the GPUs in --allow, though others are free' 124 '' \
	'*needs 2 GPUs, 1 is free' "$GPULEASE" -n 2 --allow 1-2 -I true
waiter exact --gpu-ids 1,2
gets 'a waiter for other GPUs does not stop a job' '[03]' --except 1-2
release_all taken
is 'the waiter starts when the GPUs in its --gpu-ids come free' wait_until 'runs exact'
is 'the waiter gets exactly the GPUs in its --gpu-ids' [ "$(gpus_of exact)" = 1,2 ]
release_all exact

cards 4
for option in --gpu-ids --allow --except --prefer-gpus; do
	refused "$option refuses an index without a GPU" "$option: there is no GPU 4" \
		"$option" 0,4
	refused "$option refuses a UUID that no GPU has" \
		"$option: no GPU, or more than one, has a UUID that begins with 'GPU-9'" \
		"$option" GPU-9
	refused "$option refuses the common beginning of several UUIDs" \
		"$option: no GPU, or more than one, has a UUID that begins with 'GPU-0000000'" "$option" GPU-0000000
	refused "$option refuses a MIG instance that does not exist" \
		"$option: there is no MIG instance 0:1" \
		"$option" 0:1
	refused "$option refuses a range in the wrong order" \
		"$option: '3-0' is the wrong way round; write 0-3" \
		"$option" 3-0
	for list in ',' '0,' ',0' 0- -1 0--1 ' 0' '0 1' a 0x1 99999999999 0-99999 gpu-0; do
		refused "$option refuses '$list'" "$option: '*' is not a GPU; *" "$option" "$list"
	done
done
refused '--gpu-ids refuses an index that it has twice' "--gpu-ids: '0,0' names '0' twice" \
	--gpu-ids 0,0
refused '--gpu-ids refuses a GPU by UUID and by index' "--gpu-ids* names *" \
	--gpu-ids GPU-00000001,1
refused '--prefer-gpus refuses more GPUs than it has room for' \
	'--prefer-gpus: * names more than 16 GPUs' --prefer-gpus 0-16

# --- slots that change while it waits ------------------------------------------------------

uuid_of() {
	echo "GPU-0000000$1-1111-2222-3333-444444444444"
}

# links GPU…: the slots from 0 on lead to these GPUs, as if someone had repaired the folder by hand
links() {
	rm "$GPULEASE_DIR/gpu"/slot.*
	link_slot=0
	for link_gpu in "$@"; do
		ln -s "$(uuid_of "$link_gpu").lease" "$GPULEASE_DIR/gpu/slot.$link_slot"
		link_slot=$((link_slot + 1))
	done
}

# outlives TEXT GPUS OPTION…: a result, good if a job that has waited meanwhile gets these GPUs.
outlives() {
	outlives_text=$1 outlives_gpus=$2
	shift 2
	cards 4
	holder all -n 4
	[ -z "$bound" ] || export CUDA_VISIBLE_DEVICES="$bound"
	waiter chosen "$@"
	unset CUDA_VISIBLE_DEVICES
	links 3 0 1 2
	release_all all
	wait_until 'runs chosen' || cat "$S/chosen.err" >&2
	is "$outlives_text outlives a change of slots" \
		[ "$(gpus_of chosen | tr , '\n' | sort | paste -sd , -)" = "$outlives_gpus" ]
	end_all
}

bound=
outlives '--gpu-ids' 1,2 --gpu-ids 2,1
outlives '--allow' 3 --allow 3
outlives '--except' 1 --except 0,2,3
outlives '--prefer-gpus' 1 --prefer-gpus 1
outlives '--model' 2 --model 'Card 2'
outlives '--min-vram' 0,1,2,3 -n 4 --min-vram 80G
outlives '--vram' 0,1,2,3 -n 4 --vram 4G
bound=2
outlives CUDA_VISIBLE_DEVICES 2
bound=

cards 4
holder all -n 4
waiter chosen --gpu-ids 3
gpus 3
rm "$GPULEASE_DIR/probe" # one that shows the GPU may still count as fresh
"$GPULEASE" --status >"$S/out"
rm "$GPULEASE_DIR/gpu/$(uuid_of 3).lease"
links 0 1 2
release_all all
gets 'while a job waits for a GPU that is gone, others start' 0,1,2 -n 3
is 'a job that waits for a GPU that is gone says so' wait_until \
	'"$GPULEASE" --queue | grep -q "needs 1 GPU, none is free"'
gpus 4
is 'it starts once the GPU is back' wait_until 'runs chosen'
is 'it gets the GPU that it has chosen' [ "$(gpus_of chosen)" = 3 ]
end_all

# --- contradictions ----------------------------------------------------------------------

refused 'a job that excepts all GPUs is refused' \
	'cannot lease 1 GPU: --except 0-3 leaves none of 4' --except 0-3
refused 'a job that excepts the GPU in its --gpu-ids is refused' \
	'cannot lease 1 GPU: --except 0 leaves none of 1' \
	--gpu-ids 0 --except 0
refused '--gpu-ids outside --allow is refused' \
	'cannot lease 2 GPUs: --allow 1 leaves only 1 of 2' \
	--gpu-ids 0-1 --allow 1
refused 'a job that needs more GPUs than it allows is refused' \
	'cannot lease 3 GPUs: --allow 1-2 leaves only 2 of 4' \
	-n 3 --allow 1-2
refused '-n with another number than --gpu-ids has is refused' \
	'-n asks for 2 GPUs and --gpu-ids names 1; leave one out' \
	-n 2 --gpu-ids 0
refused 'a share of several GPUs is refused' \
	'-n asks for a share of one GPU and --gpu-ids names 2' \
	-n 0.5 --gpu-ids 0-1
refused '-n 0 with --gpu-ids is refused' \
	'-n asks for 0 GPUs and --gpu-ids names 1; leave one out' \
	-n 0 --gpu-ids 0
run 'with -n 0 a choice of GPUs does no harm, and a line says that it has no effect' 0 '' \
	'gpulease: no effect here: --min-vram, --allow, --prefer-gpus (no GPU is leased)' \
	"$GPULEASE" -n 0 --min-vram 900G --allow 0 --prefer-gpus 1 true
echo 'true' >"$S/no-gpu"
run 'a jobs file with -n 0 has no such line: its lines may ask for GPUs' 0 '*' '' \
	"$GPULEASE" --batch "$S/no-gpu" -n 0 --except 0

# --- cards -------------------------------------------------------------------------------

mixed() {
	fresh
	printf '%s\n' '0 GPU-a0 00000000:01:00.0 24564 NVIDIA GeForce RTX 4090' \
		'1 GPU-a1 00000000:02:00.0 81559 NVIDIA H100 80GB HBM3' \
		'2 GPU-b2 00000000:03:00.0 15360 Tesla T4' \
		'3 GPU-b3 00000000:04:00.0 81920 NVIDIA A100-SXM4-80GB' >"$FAKE_SMI_DIR/gpus"
}

mixed
gets '--model ignores upper and lower case' 3 --model a100
mixed
gets '--model takes a part of the name with a blank' 0 --model 'rtx 4090'
mixed
gets '--gpus takes a model in the form of srun' 1 --gpus h100:1
mixed
gets '--model leases several GPUs of a model' 1,3 -n 2 --model 80gb
refused 'more GPUs than have the model are refused' \
	"cannot lease 2 GPUs: * leaves only 1 of 4" -n 2 --model h100
refused 'a model that no GPU has is refused' 'cannot lease 1 GPU: * leaves none of 4' --model h200
refused 'a model in -G and another in --model are refused' \
	'-G asks for * and --model for *; give one' -G h100:1 --model a100
refused 'an empty --model is refused' '--model needs a value: --model TEXT' \
	--model ''
mixed
gets '--min-vram leases GPUs of the size that they are sold as' 1,3 -n 2 --min-vram 80G
mixed
gets '--min-vram accepts a GPU that has a little less memory' 0 --min-vram 24G
refused '--min-vram above the largest GPU is refused' \
	'cannot lease 1 GPU: --min-vram 96G leaves none of 4; the largest has 80G' \
	--min-vram 96G
refused '--min-vram and --model that contradict each other are refused' \
	'cannot lease 1 GPU: --min-vram 16.7G leaves none of 1; the largest has 15G' \
	--model t4 --min-vram 17000
mixed
gets '--vram leases a GPU with enough memory' 1 --vram 30G
mixed
gets '--vram leases the GPU with the least memory left over' 2 --vram 10G
refused '--vram on more GPUs than have the memory is refused' \
	'cannot lease 3 GPUs: --vram 30G leaves only 2 of 4; the largest has 80G, of which 0.5G stay free' \
	-n 3 --vram 30G
for each in 0 -1 lots; do
	refused "--min-vram refuses '$each'" "--min-vram: '$each' is *" --min-vram "$each"
done

# --- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------

cards 4
export CUDA_VISIBLE_DEVICES=2,3
gets 'CUDA_VISIBLE_DEVICES limits the choice' 2
gets 'CUDA_VISIBLE_DEVICES limits the choice for a share' '[23]' -n 0.5
gets 'CUDA_VISIBLE_DEVICES and --except both limit the choice' 3 --except 2
gets '--prefer-gpus does not lead out of CUDA_VISIBLE_DEVICES' '[23]' --prefer-gpus 0
refused '--gpu-ids outside CUDA_VISIBLE_DEVICES is refused' \
	'cannot lease 1 GPU: CUDA_VISIBLE_DEVICES 2,3 leaves none of 1; unset it to have all GPUs' --gpu-ids 0
refused 'more GPUs than CUDA_VISIBLE_DEVICES lists are refused' \
	'cannot lease 3 GPUs: CUDA_VISIBLE_DEVICES 2,3 leaves only 2 of 4; unset it to have all GPUs' -n 3
holder both -n 2
run 'the reason for waiting names CUDA_VISIBLE_DEVICES' 124 '' \
	'*none is free; limited to GPUs 2,3 by CUDA_VISIBLE_DEVICES' \
	"$GPULEASE" -I true
release_all both
unset CUDA_VISIBLE_DEVICES

# --- the configuration -------------------------------------------------------------------

cards 4
program=$GPULEASE
configured
echo 'prefer = 3,1' >"$S/conf"
gets 'prefer in the configuration holds for all jobs' 3
gets '--prefer-gpus of a job replaces that of the configuration' 0 --prefer-gpus 0
echo 'prefer = 9,2' >"$S/conf"
gets 'prefer in the configuration may name a missing GPU' '?'
GPULEASE=$program

# --- links -------------------------------------------------------------------------------

# pairs: four GPUs; NVLinks connect 0 with 2, and 1 with 3.
pairs() {
	cards 4
	{
		printf '\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n'
		printf 'GPU0\t X \tSYS\tNV4\tSYS\t0-7\t0\t\tN/A\n'
		printf 'GPU1\tSYS\t X \tSYS\tNV4\t0-7\t0\t\tN/A\n'
		printf 'GPU2\tNV4\tSYS\t X \tSYS\t8-15\t1\t\tN/A\n'
		printf 'GPU3\tSYS\tNV4\tSYS\t X \t8-15\t1\t\tN/A\n'
		printf '\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing NVLinks\n'
	} >"$FAKE_SMI_DIR/topo.raw"
}

topos() {
	grep -c topo "$FAKE_SMI_DIR/count"
}

pairs
gets 'a job with one GPU starts' 0
gets 'a job with all GPUs starts' 0,1,2,3 -n 4
gets 'a job with --gpu-ids starts' 0,1 --gpu-ids 0,1
gets 'a job with shares of GPUs starts' '?,?' -n 2 --vram 1G
is 'jobs with one GPU, all GPUs, named GPUs or shares need no topology' [ "$(topos)" -eq 0 ]
pairs
gets 'a job with two GPUs gets two GPUs with a link' 0,2 -n 2
is 'the job with two GPUs has asked for the topology' [ "$(topos)" -eq 1 ]
holder single --gpu-ids 0
gets 'if one pair is broken, a job gets the other pair' 1,3 -n 2
holder next
is 'a job with one GPU takes it from the broken pair' [ "$(gpus_of next)" = 2 ]
gets 'the other pair stays whole for a job with two GPUs' 1,3 -n 2
release_all single next
gets '--prefer-gpus comes before the links' 0,3 -n 2 --prefer-gpus 3,0
gets 'a preferred GPU is leased with its partner' 1,3 -n 2 --prefer-gpus 1
gets '--allow may leave no pair with a link' 0,1 -n 2 --allow 0-1
gets '--except leaves the pair without the excepted GPU' 1,3 -n 2 --except 0
is 'the topology is asked for once since the boot' [ "$(topos)" -eq 1 ]
rm -f "$GPULEASE_DIR/topology"
holder first -n 2
holder second -n 2
is 'two jobs with two GPUs get a pair each' [ "$(gpus_of first) $(gpus_of second)" = '0,2 1,3' ]
release_all first second

# Without NVLinks, GPUs on the same NUMA node or PCIe switch are near each other.
cards 4
{
	printf '\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n'
	printf 'GPU0\t X \tSYS\tSYS\tNODE\t0-7\t0\n'
	printf 'GPU1\tSYS\t X \tPIX\tSYS\t8-15\t1\n'
	printf 'GPU2\tSYS\tPIX\t X \tSYS\t8-15\t1\n'
	printf 'GPU3\tNODE\tSYS\tSYS\t X \t0-7\t0\n'
} >"$FAKE_SMI_DIR/topo.raw"
gets 'GPUs at one switch are nearer than GPUs at one node' 1,2 -n 2
holder single --gpu-ids 1
gets 'GPUs at one node are nearer than GPUs at two nodes' 0,3 -n 2
release_all single

# --- a driver that does not tell the links -----------------------------------------------

cards 4
gets 'a driver without topology stops no job' 0,1 -n 2
gets 'a driver without topology does not stop the next job' 2,3 -n 2
is 'a driver without topology is asked once' [ "$(topos)" -eq 1 ]
for each in '' 'no such thing' "$(printf '\tGPU0\tGPU1\nGPU0\t X \tNV1\n')" \
	"$(printf 'GPU9\t X \t')"; do
	cards 4
	echo "$each" >"$FAKE_SMI_DIR/topo.raw"
	gets 'a topology that cannot be read stops no job' 0,1 -n 2
done
cards 4
touch "$FAKE_SMI_DIR/hang.topo"
echo 'probe-deadline = 5s' >"$S/conf"
GPULEASE=$S/configured
gets 'a driver that hangs at the topology stops no job' 0,1 -n 2
gets 'after the hang the next job starts, too' 2,3 -n 2
is 'a driver that hangs at the topology is asked once' [ "$(topos)" -eq 1 ]
GPULEASE=$program

# --- links of real machines ----------------------------------------------------------------

samples=$CLI/../../../shared/reference/nvidia-smi-samples
# SAMPLE CARDS WANTED GPUS
while read -r sample count wanted gpus; do
	if [ ! -e "$samples/topo-$sample.txt" ]; then
		skip "$wanted of $sample" 'the samples are not there'
		continue
	fi
	cards "$count"
	cp "$samples/topo-$sample.txt" "$FAKE_SMI_DIR/topo.raw"
	run "$wanted of $sample" 0 "would start now on GPU $gpus" '' \
		"$GPULEASE" --dry-run -n "$wanted" true
done <<-end
	3xA6000-nvlink-pair-plus-one 3 2 0,1
	8gpu-pcie-phb-node-sys 8 2 6,7
	8gpu-pcie-phb-node-sys 8 4 1,2,3,4
	8gpu-pcie-phb-node-sys 8 6 0,1,2,3,4,5
	8xV100-sxm2-nic0 8 2 0,3
	8xV100-sxm2-nic0 8 3 0,2,3
	8xV100-sxm2-nic0 8 4 0,1,2,3
	dgx1-v100-mlx5 8 2 0,3
	dgx1-v100-mlx5 8 4 0,1,2,3
	4xA100-nv12-nic-roce 4 2 0,1
	dgx-a100-mlx5 8 2 0,1
	dgx-a100-mlx5 8 4 0,1,2,3
	8xB300-nics-ansi 8 4 0,1,2,3
	4gpu-nv18-restricted-cpuset-empty-affinity 4 2 1,2
	4xGB200-partial-space-aligned 4 2 0,1
end

# --- the CPUs near them --------------------------------------------------------------------

cards 2
affinity='sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status'
all=$(sh -c "$affinity")
refused '--bind refuses an unknown value' "--bind: 'maybe' is neither yes nor no" --bind=maybe
run 'without --bind a job may use all CPUs' 0 "$all" '' "$GPULEASE" sh -c "$affinity"
first=${all%%[-,]*} last=${all##*[-,]}
devices=/sys/bus/pci/devices

# near GPU CPUS NODE: what the kernel says of that GPU from now on
near() {
	mkdir -p "$devices/0000:0$1:00.0"
	echo "$2" >"$devices/0000:0$1:00.0/local_cpulist"
	echo "$3" >"$devices/0000:0$1:00.0/numa_node"
}

bind_jobs() {
	near 0 "$first" 0
	near 1 "$last" -1
	run '--bind binds a job to the CPUs near its GPU' 0 "$first" '' \
		"$GPULEASE" --bind --gpu-ids 0 sh -c "$affinity"
	run '--bind=yes binds a job to the CPUs near another GPU' 0 "$last" '' "$GPULEASE" \
		--bind=yes --gpu-ids 1 sh -c "$affinity"
	run '--bind binds a job with a share of a GPU' 0 "$last" '' "$GPULEASE" --bind -n 0.5 \
		--gpu-ids 1 sh -c "$affinity"
	run '--bind binds a job to the CPUs near any of its GPUs' 0 "${first}[-,]$last" '' \
		"$GPULEASE" --bind -n 2 sh -c "$affinity"
	run '--bind does not bind a job without GPUs' 0 "$all" \
		'gpulease: no effect here: --bind (no GPU is leased)' "$GPULEASE" --bind -n 0 \
		sh -c "$affinity"
	GPULEASE=$S/configured
	echo 'bind = yes' >"$S/conf"
	run 'bind in the configuration binds all jobs' 0 "$last" '' "$GPULEASE" --gpu-ids 1 \
		sh -c "$affinity"
	run '--bind=no overrules the configuration' 0 "$all" '' "$GPULEASE" --bind=no \
		--gpu-ids 1 sh -c "$affinity"
	near 1 4000-4001 0
	run 'bind in the configuration is silent if the CPUs are forbidden' 0 "$all" '' \
		"$GPULEASE" --gpu-ids 1 sh -c "$affinity"
	GPULEASE=$program
	run '--bind says that the CPUs near the GPU are forbidden' 0 "$all" 'gpulease: cannot bind the job to the CPUs near its GPUs: *' \
		"$GPULEASE" --bind --gpu-ids 1 sh -c "$affinity"
	for each in '' x 3-1 0-99999 -1 "$first,"; do
		near 1 "$each" 0
		run "--bind says that the list of CPUs is invalid: '$each'" 0 "$all" 'gpulease: cannot bind the job to the CPUs near its GPUs: *' \
			"$GPULEASE" --bind --gpu-ids 1 sh -c "$affinity"
	done
	rm "$devices/0000:01:00.0/local_cpulist"
	run '--bind says that the kernel has no list of CPUs' 0 "$all" 'gpulease: cannot bind the job to the CPUs near its GPUs: this machine does not show which they are' \
		"$GPULEASE" --bind -n 2 sh -c "$affinity"
}

if [ -n "$own_mounts_why" ]; then
	skip '--bind binds a job to the CPUs near its GPU' "$own_mounts_why"
elif [ "$first" = "$last" ]; then
	skip '--bind binds a job to the CPUs near its GPU' 'there is one CPU'
elif ! mount -t tmpfs tmpfs "$devices" 2>/dev/null; then
	skip '--bind binds a job to the CPUs near its GPU' "nothing can be put over $devices"
else
	bind_jobs
fi

finish
