#!/bin/sh
# What a handler has saved is not lost: the signal before a limit reaches the steps of a job, and a
# job that asks for it runs again under its id.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/job_lib.sh
. "$(dirname "$0")/job_lib.sh"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/scontrol"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/squeue"
PATH=$S/lib/gpulease/bin:$PATH
printf 'max-priority = 1000\n' >"$S/conf"
configured
export S
sim 2

# words FILE: its words in order, in one line
words() {
	sort "$1" | tr '\n' ' ' | sed 's/ $//'
}

# --- the signal before a limit ----------------------------------------------------------------

# A task that says its name once it listens, and again when it gets the signal.  Its child has the
# default action of the signal, which would end it.
cat >listen <<'END'
#!/bin/sh
trap 'echo "$1" >>got; kill -0 $child || echo "$1-child" >>got; exit 0' USR1
sleep 1000 &
child=$!
echo "$1" >>up
until [ -e end ]; do sleep 0.02; done
kill $child
END
chmod +x listen
# one step of each kind; one of them has a step inside
script kinds <<'END'
trap 'echo script >>got' USR1
srun --overlap ./listen one &
srun --overlap -n 2 sh -c 'exec ./listen many.$SLURM_PROCID' &
srun --overlap -l ./listen labelled &
srun --exclusive -n 1 --gpus=1 ./listen alone &
srun --overlap sh -c 'trap : USR1; srun --overlap ./listen inner; true' &
until [ -e end ]; do sleep 0.02; done
srun --overlap ./listen late &
until [ -e over ]; do sleep 0.02; done
END
kinds='alone inner labelled many.0 many.1 one'
# warns SIGNAL WHO TEXT: a result; a preemptible job with all kinds of steps is warned by the signal,
# and WHO get it.  A step that starts later gets none.
warns() {
	rm -f up got end over
	"$GPULEASE" --submit --preemptible -n 2 --signal "$1@1h" -o warned.out sh kinds >id
	wait_until "[ \"\$(words up 2>/dev/null)\" = '$kinds' ]" || bail "the steps do not start: $(cat up)"
	begin high --priority 5
	wait_until "[ \"\$(words got 2>/dev/null)\" = '$2' ]"
	: >end
	wait_until 'grep -q late up' || bail 'the late step does not start'
	: >over
	wait_until 'runs high' || bail "the job does not end: $(cat warned.out)"
	release_all high
	is "$3" [ "$(words got)" = "$2" ]
	"$GPULEASE" -Q --cancel "$(cat id)"
}
warns S:USR1 "$kinds" 'S: is for each task of each step, and neither for its children nor for the script'
warns B:USR1 script 'B: is for the script alone'

echo 'srun sh -c "trap \"echo saved; exit 0\" USR1; while :; do sleep 0.02; done"' | script limited
run 'sbatch --signal without B: is for the steps' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -t 1h --signal=USR1@3597 -o limited.out limited
is 'the step has saved' [ "$(cat limited.out)" = saved ]

finish
