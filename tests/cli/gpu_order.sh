#!/bin/sh
# --gpu-ids 3,1: the command sees its GPUs in that order, wherever they are listed.
# shellcheck disable=SC2016 # texts for other shells

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 8
unset GPULEASE_UUIDS GPULEASE_GPUS CUDA_VISIBLE_DEVICES

uuid() {
	echo "GPU-51111111-0000-4000-8000-00000000000$1"
}
all='echo "$CUDA_VISIBLE_DEVICES $GPULEASE_GPUS $NVIDIA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
cuda='echo "$CUDA_VISIBLE_DEVICES"'
order="3,1 3,1 3,1 $(uuid 3),$(uuid 1)"

run 'indices in their order' 0 "$order" '' "$GPULEASE" --gpu-ids 3,1 sh -c "$all"
run 'ranges and indices' 0 '5,0,1,2,4' '' "$GPULEASE" --gpu-ids 5,0-2,4 sh -c "$cuda"
run 'UUIDs' 0 '7,0' '' "$GPULEASE" --gpu-ids "$(uuid 7),0" sh -c "$cuda"
run 'other options keep the ascending order' 0 '1,3' '' \
	"$GPULEASE" -n 2 --allow 3,1 --prefer-gpus 3,1 sh -c "$cuda"
run '{gpus} and {uuids}' 0 "3,1 $(uuid 3),$(uuid 1)" '' \
	"$GPULEASE" --gpu-ids 3,1 --inject-style physical echo '{gpus}' '{uuids}'
run 'CUDA counts them from 0' 0 '0,1' '' "$GPULEASE" --gpu-ids 3,1 echo '{gpus}'
run '--inject' 0 '--cuda 3,1' '' \
	"$GPULEASE" --gpu-ids 3,1 --inject-style physical --inject --cuda echo

holder first --gpu-ids 1-3
waiter later --gpu-ids 3,1
release first
is 'a job that has waited' wait_until 'runs later'
is 'a job that has waited has the order' [ "$(gpus_of later)" = 3,1 ]
release_all later

echo 'retry-delay = 0s' >"$S/conf"
run 'a second attempt' 1 "$order
$order" '*' "$GPULEASE" --config "$S/conf" --gpu-ids 3,1 --retries 1 -- sh -c "$all; exit 1"
run 'a requeued attempt' 0 "$order
$order" '*' "$GPULEASE" --gpu-ids 3,1 --time 1s --on-limit requeue -- \
	sh -c "$all"'; [ "$GPULEASE_ATTEMPT" = 2 ] || exec sleep 1000'
id=$("$GPULEASE" --submit --gpu-ids 3,1 sh -c "$all")
"$GPULEASE" --wait-for "$id"
run 'a job in the background' 0 "$order" '' sh -c '"$1" --log "$2" | head -n 1' sh "$GPULEASE" "$id"
run 'a lease without a command' 143 '3,1' '*has GPU 3,1; *' sh -c '
	"$1" --lease-only --gpu-ids 3,1 >"$2" &
	until [ -s "$2" ]; do kill -0 $! || exit; done
	cat "$2"
	"$1" --cancel mine 2>"$2.err"
	wait $!' sh "$GPULEASE" "$S/held"
run 'a lease for a shell' 0 "$order" '' \
	sh -c 'eval "$("$1" --shell --gpu-ids 3,1)"; eval "$2"' sh "$GPULEASE" "$all"
run 'a dry run' 0 'would start now on GPU 3,1' '' "$GPULEASE" --dry-run --gpu-ids 3,1 true
run 'a dry run as JSON' 0 '3 1' '' sh -c '
	"$1" --dry-run --json --gpu-ids 3,1 true | "$2" gpus.0 gpus.1 | paste -sd " " -' \
	sh "$GPULEASE" "$TOOLS/jsoncheck"

# step TEXT GPUS OPTION…: a result: a step of a job with --gpu-ids 5,0-2
step() {
	text=$1 gpus=$2
	shift 2
	run "$text" 0 "$gpus" '' "$GPULEASE" --gpu-ids 5,0-2 "$GPULEASE" "$@"
}
step 'a step has the order of its job' 5,0,1,2 sh -c "$cuda"
step '-n takes the first of them' 5,0 -n 2 sh -c "$cuda"
step '--gpu-ids of a step is its own order' 2,5 --gpu-ids 2,5 sh -c "$cuda"
step 'a list removes GPUs and keeps the order' 5,2 --except 0,1 sh -c "$cuda"
step '-n takes the first that are left' 2 --except 0,5 --gpu-ids 2 -n 1 sh -c "$cuda"
step 'a step of a step takes its first' 2 --gpu-ids 2,5 "$GPULEASE" -n 1 sh -c "$cuda"
step 'a step in the dry' 'would start now on GPU 5,0, as a step of *' -n 2 --dry-run true
for words in '' 'GPU-' ',' '99'; do
	run "GPULEASE_UUIDS=$words is no reason to fail" 0 0,1 '' "$GPULEASE" --gpu-ids 5,0-2 \
		env GPULEASE_UUIDS="$words" "$GPULEASE" -n 2 sh -c "$cuda"
done

"$GPULEASE" -Q --gpu-ids 3,1 --name listed --report true
run 'the history lists them in ascending order' 0 '1 3' '' sh -c '
	"$1" --history --name listed --json | "$2" jobs.0.gpus.0 jobs.0.gpus.1 | paste -sd " " -' \
	sh "$GPULEASE" "$TOOLS/jsoncheck"
run '--prefer is that of srun' 125 '' \
	'gpulease: --prefer: with srun these are features of nodes*; for GPUs write --prefer-gpus LIST' \
	"$GPULEASE" --prefer 3 true
finish
