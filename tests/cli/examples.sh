#!/bin/sh
# The ten examples of gpulease(1) run as they are written, on simulated GPUs.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 4x80G
manual=$CLI/../../man/gpulease.1

# the programs that the examples run; the first gpulease in PATH is the one under test
mkdir "$S/bin"
ln -s "$(realpath "$GPULEASE")" "$S/bin/gpulease"
for program in python torchrun; do
	printf '#!/bin/sh\necho "%s $* on ${CUDA_VISIBLE_DEVICES-no GPU}"\n' $program \
		>"$S/bin/$program"
	chmod 0755 "$S/bin/$program"
done

for file in train serve check eval demo; do
	: >"$S/$file.py"
done

# example N: prints the commands of example N, without prompts.  Job 42 becomes the job that
# example 6 submits, the jobs file gets five lines, and only root asks for a high priority.
example() {
	sed -n "/^\.Sh TEN EXAMPLES/,/^\.Sh OPTIONS/{/^$1\.$/,/^$(($1 + 1))\.$/p}" "$manual" |
		sed -n 's/^\.Dl \$ //p; s/^[$>] //p' |
		sed "s/\<42\>/${id:-42}/; s/seq 50/seq 5/
			$([ "$(id -u)" = 0 ] || echo 's/--priority 5/--priority 0/')
			\$a wait"
}

# runs_example N TEXT OUTPUT: example N succeeds and prints OUTPUT, a pattern.
runs_example() {
	example "$1" >"$S/example"
	run "example $1: $2" 0 "$3" '*' env PATH="$S/bin:$PATH" sh -c \
		'cd "$1" && . ./example' sh "$S"
}

runs_example 1 'one GPU' 'python train.py on [0-3]'
runs_example 2 'two GPUs and a limit' 'torchrun --nproc-per-node 2 train.py on [0-3],[0-3]'
runs_example 3 'parts of a GPU' '*python serve.py*'
runs_example 4 'at once or not at all, and --dry-run' '*check.py on [0-3]*would start now on GPU 0,1,2,3*'
runs_example 5 'a sweep' '*--lr [1-4] on*--lr*--lr*--lr*'
example 6 | head -n 1 >"$S/example"
id=$(cd "$S" && PATH="$S/bin:$PATH" sh ./example)
is 'example 6: in the background' test "$id" -gt 0
run 'example 6: the output of the job in the background' 0 'python train.py on [0-3],[0-3]*' \
	'*' "$GPULEASE" --follow "$id"
runs_example 7 'after another job' 'python eval.py on [0-3]'
runs_example 8 '--status, --history and --cancel' '*STATE*JOB*STATUS*'
runs_example 9 'a job that makes way' '*demo.py on [0-3]*'
runs_example 10 'a jobs file' '*5 jobs: 5 finished*'
for n in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(example $n | wc -l)" -gt 1 ] || echo "$n"
done >"$S/missing"
is 'each of the ten has commands' test ! -s "$S/missing"
finish
