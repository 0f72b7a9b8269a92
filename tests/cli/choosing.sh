#!/bin/sh
# Which GPUs a job gets: lists, models, sizes, preferences, how they are linked; and the CPUs
# near them.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# Only for the last part; all else needs no mounts.
own_mounts "$@" || :
scratch
with_driver
show='echo $CUDA_VISIBLE_DEVICES'

cards() {
	fresh
	gpus "$1"
}

# gets TEXT GPUS OPTION…: a result, good if a job with these gets those, at once.
gets() {
	gets_text=$1 gets_gpus=$2
	shift 2
	run "$gets_text" 0 "$gets_gpus" '' "$GPULEASE" -I "$@" sh -c "$show"
}

# refused TEXT PATTERN OPTION…: a result, good if there can be no such job, and it says why.
refused() {
	refused_text=$1 refused_why=$2
	shift 2
	run "$refused_text" 125 '' "gpulease: $refused_why" "$GPULEASE" "$@" true
}

# Each starts where nobody was just before, so that only what is asked for decides.
anew() {
	cards 4
	gets "$@"
}

# --- lists -------------------------------------------------------------------------------

anew 'exactly these' 1,3 --gpu-ids 3,1
anew 'several by a range' 1,2,3 --gpu-ids 1-3
anew 'by UUID' 2 --gpu-ids GPU-00000002-1111-2222-3333-444444444444
anew 'by the beginning of one' 1,2 --gpu-ids GPU-00000002,1
anew 'as many as it says itself' 0,2 -n 2 --gpu-ids 0,2
anew 'a share of exactly this' 3 -n 0.5 --gpu-ids 3
anew 'memory of exactly these' 2,3 --vram 1G --gpu-ids 2-3
anew 'only from these' 2,3 -n 2 --allow 2-3
anew 'fewer than these' 2 --allow 3,2
anew 'any but these' 0,3 -n 2 --except 1,2
anew 'both' 3 --allow 1-3 --except 1-2
anew 'what is named twice is named' 1 --allow 1,1,0-1 --except 0,0
anew 'these first' 2 --prefer 2,1
anew 'in their order' 1,2,3 -n 3 --prefer 3,2,1
anew 'and any others behind' 0,3 -n 2 --prefer 3
anew 'a preference is none for what may not be had' 0 --prefer 3 --except 3
holder taken --gpu-ids 2
gets 'nor for what is taken' 1 --prefer 2,1
run 'exactly these are waited for, though others are free' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' \
	"$GPULEASE" --gpu-ids 2 -I true
run 'so are some of them' 124 '' '*needs 2 GPUs, 1 is free' "$GPULEASE" -n 2 --allow 1-2 -I true
waiter exact --gpu-ids 1,2
gets 'who wants others is not in the way' '[03]' --except 1-2
release_all taken
is 'they are had when they come free' wait_until 'runs exact'
is 'these and no others' [ "$(gpus_of exact)" = 1,2 ]
release_all exact

cards 4
for option in --gpu-ids --allow --except --prefer; do
	refused "$option: an index that is not there" "$option: there is no GPU 4" "$option" 0,4
	refused "$option: a UUID that is not there" "$option: there is no GPU 'GPU-9', or more than one" \
		"$option" GPU-9
	refused "$option: the beginning of several" \
		"$option: there is no GPU 'GPU-0000000', or more than one" "$option" GPU-0000000
	refused "$option: an instance that is not there" "$option: there is no MIG instance 0:1" \
		"$option" 0:1
	refused "$option: the wrong way round" "$option: '3-0' is the wrong way round; write 0-3" \
		"$option" 3-0
	for list in '' ',' '0,' ',0' 0- -1 0--1 ' 0' '0 1' a 0x1 99999999999 0-99999 gpu-0; do
		refused "$option '$list'" "$option: '*' is not a GPU; *" "$option" "$list"
	done
done
refused 'exactly one twice' "--gpu-ids: '0,0' names '0' twice" --gpu-ids 0,0
refused 'in two ways' "--gpu-ids* names *" --gpu-ids GPU-00000001,1
refused 'more to prefer than there is room for' '--prefer: * names more than 16 GPUs' --prefer 0-16

# --- contradictions ----------------------------------------------------------------------

refused 'all of them excepted' 'cannot lease 1 GPU: --except 0-3 leaves none of 4' --except 0-3
refused 'exactly what is excepted' 'cannot lease 1 GPU: --except 0 leaves none of 1' \
	--gpu-ids 0 --except 0
refused 'exactly what is not allowed' 'cannot lease 2 GPUs: --allow 1 leaves only 1 of 2' \
	--gpu-ids 0-1 --allow 1
refused 'more than are allowed' 'cannot lease 3 GPUs: --allow 1-2 leaves only 2 of 4' \
	-n 3 --allow 1-2
refused 'another number' '-n asks for 2 GPUs and --gpu-ids names 1; leave one out' \
	-n 2 --gpu-ids 0
refused 'a share of several' '-n asks for a share of one GPU and --gpu-ids names 2' \
	-n 0.5 --gpu-ids 0-1
refused 'none, and these' '-n asks for 0 GPUs and --gpu-ids names 1; leave one out' \
	-n 0 --gpu-ids 0
run 'a list for no GPU at all does no harm' 0 '' '' "$GPULEASE" -n 0 --allow 0 --prefer 1 true

# --- cards -------------------------------------------------------------------------------

mixed() {
	fresh
	printf '%s\n' '0 GPU-a0 00000000:01:00.0 24564 NVIDIA GeForce RTX 4090' \
		'1 GPU-a1 00000000:02:00.0 81559 NVIDIA H100 80GB HBM3' \
		'2 GPU-b2 00000000:03:00.0 15360 Tesla T4' \
		'3 GPU-b3 00000000:04:00.0 81920 NVIDIA A100-SXM4-80GB' >"$FAKE_SMI_DIR/gpus"
}

mixed
gets 'a model, in any case' 3 --model a100
mixed
gets 'a part of its name with a blank' 0 --model 'rtx 4090'
mixed
gets 'a kind as srun has it' 1 --gpus h100:1
mixed
gets 'several of a kind' 1,3 -n 2 --model 80gb
refused 'more than there are of it' "cannot lease 2 GPUs: * leaves only 1 of 4" -n 2 --model h100
refused 'a model that is not there' 'cannot lease 1 GPU: * leaves none of 4' --model h200
refused 'two kinds' '-G asks for * and --model for *; give one' -G h100:1 --model a100
refused 'every model' "--model: '' is in every name; leave the option out" --model ''
mixed
gets 'cards of a size, as they are sold' 1,3 -n 2 --min-vram 80G
mixed
gets 'a little less than that is as large' 0 --min-vram 24G
refused 'larger than all' 'cannot lease 1 GPU: --min-vram 96G leaves none of 4; the largest has 80G' \
	--min-vram 96G
refused 'sizes and kinds that contradict' \
	'cannot lease 1 GPU: --min-vram 17000MiB leaves none of 1; the largest has 15G' \
	--model t4 --min-vram 17000
mixed
gets 'who declares memory gets a card that has it' 1 --vram 30G
mixed
gets 'and the one on which the least stays over' 2 --vram 10G
refused 'on more cards than have it' \
	'cannot lease 3 GPUs: --vram 30G leaves only 2 of 4; the largest has 80G, of which 512MiB stay free' \
	-n 3 --vram 30G
for each in 0 '' -1 lots; do
	refused "--min-vram '$each'" "--min-vram: '$each' is *" --min-vram "$each"
done

# --- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------

cards 4
export CUDA_VISIBLE_DEVICES=2,3
gets 'what it lists bounds the choice' 2
gets 'for shares, too' '[23]' -n 0.5
gets 'together with a list' 3 --except 2
gets 'a preference does not lead out of it' '[23]' --prefer 0
refused 'a contradiction' 'cannot lease 1 GPU: CUDA_VISIBLE_DEVICES 2,3 leaves none of 1' --gpu-ids 0
refused 'more than it lists' 'cannot lease 3 GPUs: CUDA_VISIBLE_DEVICES 2,3 leaves only 2 of 4' -n 3
holder both -n 2
run 'the reason says so' 124 '' '*none is free; limited to GPUs 2,3 by CUDA_VISIBLE_DEVICES' \
	"$GPULEASE" -I true
release_all both
unset CUDA_VISIBLE_DEVICES

# --- the configuration -------------------------------------------------------------------

cards 4
program=$GPULEASE
configured
echo 'prefer = 3,1' >"$S/conf"
gets 'a preference of all' 3
gets 'a job has its own' 0 --prefer 0
echo 'prefer = 9,2' >"$S/conf"
gets 'what is not there is no error' '?'
GPULEASE=$program

# --- links -------------------------------------------------------------------------------

# 0 and 2, 1 and 3 have NVLinks between them.
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
gets 'one GPU' 0
gets 'and all of them' 0,1,2,3 -n 4
gets 'and exactly these' 0,1 --gpu-ids 0,1
gets 'and shares' '?,?' -n 2 --vram 1G
is 'need not know how they are linked' [ "$(topos)" -eq 0 ]
pairs
gets 'two with links between them' 0,2 -n 2
is 'somebody was asked' [ "$(topos)" -eq 1 ]
holder single --gpu-ids 0
gets 'where a pair is broken, the other' 1,3 -n 2
holder next
is 'one is taken where a pair is broken' [ "$(gpus_of next)" = 2 ]
gets 'so that the other stays whole' 1,3 -n 2
release_all single next
gets 'what is preferred comes first' 0,3 -n 2 --prefer 3,0
gets 'and has its partner' 1,3 -n 2 --prefer 1
gets 'among what is allowed there may be none' 0,1 -n 2 --allow 0-1
gets 'a partner where one is excepted' 1,3 -n 2 --except 0
is 'once since the machine was started' [ "$(topos)" -eq 1 ]
rm -f "$GPULEASE_DIR/topology"
holder first -n 2
holder second -n 2
is 'two jobs have a pair each' [ "$(gpus_of first) $(gpus_of second)" = '0,2 1,3' ]
release_all first second

# The same node where no links tell.
cards 4
{
	printf '\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n'
	printf 'GPU0\t X \tSYS\tSYS\tNODE\t0-7\t0\n'
	printf 'GPU1\tSYS\t X \tPIX\tSYS\t8-15\t1\n'
	printf 'GPU2\tSYS\tPIX\t X \tSYS\t8-15\t1\n'
	printf 'GPU3\tNODE\tSYS\tSYS\t X \t0-7\t0\n'
} >"$FAKE_SMI_DIR/topo.raw"
gets 'one switch is nearer than one node' 1,2 -n 2
holder single --gpu-ids 1
gets 'one node is nearer than two' 0,3 -n 2
release_all single

# --- links that nobody tells -------------------------------------------------------------

cards 4
gets 'a driver that cannot tell stops no job' 0,1 -n 2
gets 'nor the next' 2,3 -n 2
is 'and is not asked again' [ "$(topos)" -eq 1 ]
for each in '' 'no such thing' "$(printf '\tGPU0\tGPU1\nGPU0\t X \tNV1\n')" \
	"$(printf 'GPU9\t X \t')"; do
	cards 4
	echo "$each" >"$FAKE_SMI_DIR/topo.raw"
	gets 'nor does nonsense' 0,1 -n 2
done
cards 4
touch "$FAKE_SMI_DIR/hang.topo"
echo 'probe-deadline = 5s' >"$S/conf"
GPULEASE=$S/configured
gets 'one that hangs neither' 0,1 -n 2
gets 'and not for long a second time' 2,3 -n 2
is 'it was asked once' [ "$(topos)" -eq 1 ]
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
refused 'a wish that is none' "--bind: 'maybe' is neither yes nor no" --bind=maybe
run 'nobody is bound who does not say so' 0 "$all" '' "$GPULEASE" sh -c "$affinity"
first=${all%%[-,]*} last=${all##*[-,]}
devices=/sys/bus/pci/devices

# near GPU CPUS NODE: what the kernel says of that device
near() {
	mkdir -p "$devices/0000:0$1:00.0"
	echo "$2" >"$devices/0000:0$1:00.0/local_cpulist"
	echo "$3" >"$devices/0000:0$1:00.0/numa_node"
}

bind_jobs() {
	near 0 "$first" 0
	near 1 "$last" -1
	run 'bound to the CPUs near its GPU' 0 "$first" '' \
		"$GPULEASE" --bind --gpu-ids 0 sh -c "$affinity"
	run 'near another' 0 "$last" '' "$GPULEASE" --bind=yes --gpu-ids 1 sh -c "$affinity"
	run 'a share, too' 0 "$last" '' "$GPULEASE" --bind -n 0.5 --gpu-ids 1 sh -c "$affinity"
	run 'near any of several' 0 "${first}[-,]$last" '' "$GPULEASE" --bind -n 2 sh -c "$affinity"
	run 'without GPUs to nothing' 0 "$all" '' "$GPULEASE" --bind -n 0 sh -c "$affinity"
	GPULEASE=$S/configured
	echo 'bind = yes' >"$S/conf"
	run 'where it is configured, all' 0 "$last" '' "$GPULEASE" --gpu-ids 1 sh -c "$affinity"
	run 'but who does not want it' 0 "$all" '' "$GPULEASE" --bind=no --gpu-ids 1 sh -c "$affinity"
	near 1 4000-4001 0
	run 'what it may not use it is not bound to, and not told' 0 "$all" '' \
		"$GPULEASE" --gpu-ids 1 sh -c "$affinity"
	GPULEASE=$program
	run 'but who asked for it is' 0 "$all" 'gpulease: not bound: *' \
		"$GPULEASE" --bind --gpu-ids 1 sh -c "$affinity"
	for each in '' x 3-1 0-99999 -1 "$first,"; do
		near 1 "$each" 0
		run "a list of CPUs that is none: '$each'" 0 "$all" 'gpulease: not bound: *' \
			"$GPULEASE" --bind --gpu-ids 1 sh -c "$affinity"
	done
	rm "$devices/0000:01:00.0/local_cpulist"
	run 'none at all' 0 "$all" 'gpulease: not bound: nothing is known of CPUs near these GPUs' \
		"$GPULEASE" --bind -n 2 sh -c "$affinity"
}

if [ -n "$own_mounts_why" ]; then
	skip 'bound to the CPUs near its GPU' "$own_mounts_why"
elif [ "$first" = "$last" ]; then
	skip 'bound to the CPUs near its GPU' 'there is one CPU'
elif ! mount -t tmpfs tmpfs "$devices" 2>/dev/null; then
	skip 'bound to the CPUs near its GPU' "nothing can be put over $devices"
else
	bind_jobs
fi

finish
