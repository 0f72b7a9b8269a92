#!/bin/sh
# Which engine runs a command line: --engine, GPULEASE_ENGINE and the key `engine`; and that
# without them nothing of Slurm is looked for.
# shellcheck disable=SC2016 # the variables of other shells

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# The program, and a gpulease-engine that says how it was started.
mkdir "$S/bin" "$S/traps"
real=${GPULEASE%/*}/gpulease-engine
[ -e "$real" ] || real=${TOOLS%/tests/tools}/gpulease-engine # this gpulease is a copy
cp "$GPULEASE" "$S/bin/gpulease"
cp "${real%-engine}-view" "$S/bin/gpulease-view"
printf '#!/bin/sh\nprintf "engine:"\nprintf " <%%s>" "$@"\n' >"$S/bin/gpulease-engine"
chmod +x "$S/bin/gpulease-engine"
GPULEASE=$S/bin/gpulease

# slurm TEXT WORDS COMMAND…: the engine gets these words
slurm() {
	slurm_text=$1 slurm_words=$2
	shift 2
	run "$slurm_text" 0 "engine: <engine> $slurm_words" '' "$@"
}

echo 'engine = slurm' >"$S/slurm.conf"
echo 'engine = local' >"$S/local.conf"
chmod 0644 "$S/slurm.conf" "$S/local.conf"
g=$GPULEASE

# --- the setting ---------------------------------------------------------------------------

slurm '--engine slurm: the engine has all words' "<$g> <--engine> <slurm> <-n> <2> <a b> <>" \
	"$g" --engine slurm -n 2 'a b' ''
run '--engine local' 0 'here' '' "$g" --engine local echo here
run 'no simulated GPUs with --engine slurm: the engine itself refuses them' 0 'engine: *' '' \
	"$g" --sim 2 --engine slurm true
run 'with GPULEASE_SIM --engine counts' 0 'engine: *' '' "$g" --engine slurm true
run 'with GPULEASE_SIM the variable does not' 0 'here' '' \
	env GPULEASE_ENGINE=slurm "$g" echo here
unset GPULEASE_SIM
export GPULEASE_DIR="$S/dir"
run 'with --sim the variable does not' 0 'here' '' \
	env GPULEASE_ENGINE=slurm "$g" --sim 2 echo here
run 'with --sim the key does not' 0 'here' '' "$g" --config "$S/slurm.conf" --sim 2 echo here
slurm 'GPULEASE_ENGINE=slurm' "<$g> <true>" env GPULEASE_ENGINE=slurm "$g" true
run 'GPULEASE_ENGINE=local' 0 'here' '' env GPULEASE_ENGINE=local "$g" -n 0 echo here
run 'GPULEASE_ENGINE without a value counts as not set' 0 'here' '' \
	env GPULEASE_ENGINE= "$g" -n 0 echo here
run 'inside a simulation an odd value does not count' 0 'here' '' \
	env GPULEASE_ENGINE=lsf "$g" --sim 2 echo here
slurm 'the key' "<$g> <--config> <$S/slurm.conf> <true>" "$g" --config "$S/slurm.conf" true
run 'the option before the variable' 0 'here' '' \
	env GPULEASE_ENGINE=slurm "$g" --engine local -n 0 echo here
run 'the variable before the key' 0 'here' '' \
	env GPULEASE_ENGINE=local "$g" --config "$S/slurm.conf" -n 0 echo here
run 'the variable before the key, the other way' 0 'engine: *' '' \
	env GPULEASE_ENGINE=slurm "$g" --config "$S/local.conf" -n 0 true
run 'the key local' 0 'here' '' "$g" --config "$S/local.conf" -n 0 echo here

# --- inside a job of Slurm -------------------------------------------------------------------

job() {
	env SLURM_JOB_ID=7 CUDA_VISIBLE_DEVICES=0 "$@"
}
run 'inside a job of Slurm the variable does not count' 0 'here' '' \
	job env GPULEASE_ENGINE=slurm "$g" -n 0 echo here
run 'inside a job of Slurm the key does not count' 0 'here' '' \
	job "$g" --config "$S/slurm.conf" -n 0 echo here
run 'inside a job of Slurm --engine counts' 0 'engine: *' '' job "$g" --engine slurm true

# --- what the engine gets ---------------------------------------------------------------------

export GPULEASE_ENGINE=slurm
for words in '--status' '--queue --json' '--history' '--accounting' '--log 3' '--follow 3' \
	'--wait-for 3' '--cancel 3' '--signal-job 3 USR1' '--batch jobs.txt' '--doctor' \
	'--submit true' '--pause 0' '--attach 3' '--docker-args' '--lease-only' '--shell'; do
	# shellcheck disable=SC2086 # words
	run "the engine gets $words" 0 'engine: *' '' "$g" $words
done
run '--show-config means this machine' 0 '*engine*' '' "$g" --show-config
run '--version means this program' 0 'gpulease *' '' "$g" --version
run '--add only writes a file' 0 '' '' "$g" --add "$S/jobs.txt" -n 2 true
unset GPULEASE_ENGINE

# --- options that one machine refuses -----------------------------------------------------------

for words in '-x n1 true' '--deadline=noon true' '--licenses=a true' '--gres=gpu:1,lic:2 true' \
	'-N 2 true' '-w n7 true'; do
	# shellcheck disable=SC2086 # words
	try "$g" $words
	is "$words is refused on one machine" [ "$rc" = 125 ]
	# shellcheck disable=SC2086 # words
	run "$words is not with --engine slurm" 0 'engine: *' '' "$g" --engine slurm $words
	# shellcheck disable=SC2086 # words
	run "$words is not with GPULEASE_ENGINE" 0 'engine: *' '' \
		env GPULEASE_ENGINE=slurm "$g" $words
	# shellcheck disable=SC2086 # words
	run "inside a job of Slurm $words is refused in spite of GPULEASE_ENGINE" 125 '' \
		"gpulease: -*" job env GPULEASE_ENGINE=slurm "$g" $words
done
run 'a word --engine of the command is none of gpulease' 0 '--engine slurm' '' \
	"$g" -n 0 echo --engine slurm

# --- the real engine -----------------------------------------------------------------------------

rm "$S/bin/gpulease-engine"
run 'without gpulease-engine: one line' 125 '' \
	'gpulease: *gpulease-engine, which is not installed*' "$g" --engine slurm true
run 'without gpulease-engine, for an option that one machine refuses: one line' 125 '' \
	'gpulease: *' "$g" --engine slurm -x n1 true
is 'which is one line' [ "$(wc -l <"$S/err")" = 1 ]
run 'without the setting it is not missed' 0 'here' '' "$g" -n 0 echo here

cp "$real" "$S/bin/gpulease-engine"
run 'a word --engine of a command behind a refused option is none of gpulease' 125 '' \
	'gpulease: -x: gpulease knows only this machine*' "$g" -x n1 python --engine slurm
run 'gpulease-engine is started by gpulease alone' 125 '' \
	'gpulease: gpulease-engine is a part of gpulease*' "$S/bin/gpulease-engine" true
run 'also without the name of gpulease' 125 '' 'gpulease: gpulease-engine is a part of gpulease*' \
	"$S/bin/gpulease-engine" engine
run '--vram is refused with what to write instead' 125 '' \
	'gpulease: --vram: Slurm knows no GPU memory*--gpus TYPE:N' "$g" --engine slurm --vram 8G true
run '--sim is refused' 125 '' 'gpulease: --sim: there are no simulated GPUs*' \
	"$g" --engine slurm --sim 2 true
for value in lsf SLURM; do
	run "GPULEASE_ENGINE has two values: $value" 125 '' \
		"gpulease: GPULEASE_ENGINE: '$value' is neither local nor slurm" \
		env GPULEASE_ENGINE=$value "$g" -n 0 true
	run "--engine counts in spite of $value" 0 here '' \
		env GPULEASE_ENGINE=$value "$g" --engine local -n 0 echo here
done
run '--engine has two values' 125 '' "gpulease: --engine: 'pbs' is neither local nor slurm" \
	"$g" --engine pbs true
for words in '--frobnicate true' '-n' '--status --cancel 3'; do
	# shellcheck disable=SC2086 # words
	run "the line is wrong with the engine, too: $words" 125 '' 'gpulease: *' \
		"$g" --engine slurm $words
done

printf '#!/bin/sh\nexit 0\n' >"$S/bin/gpulease-engine"
run 'an option that is real on a cluster is not said to have no effect' 0 '' '' \
	"$g" --engine slurm --mem 100 true
cp "$real" "$S/bin/gpulease-engine"

# --- Slurm's programs are not there, or do not reach the cluster ------------------------------

mkdir "$S/none" "$S/broken"
echo true >"$S/jobs.txt"
run 'a batch without the programs of Slurm ends at once' 125 '' \
	'gpulease: the engine slurm needs sbatch, which is not in PATH*' \
	env PATH="$S/none" "$g" --engine slurm --batch "$S/jobs.txt"
cat >"$S/broken/squeue" <<'END'
#!/bin/sh
echo 'squeue: error: If munged is up, restart with --num-threads=10' >&2
echo 'squeue: error: Munge encode failed: Failed to access "/run/munge/socket"' >&2
echo 'slurm_load_jobs error: Protocol authentication error' >&2
exit 1
END
chmod +x "$S/broken/squeue"
run 'the error counts, and not the advice of Slurm above it' 125 '' \
	'gpulease: squeue has failed with status 1: squeue: error: Munge encode failed: *' \
	env PATH="$S/broken:$PATH" "$g" --engine slurm --queue

# --- nothing of Slurm without the setting -----------------------------------------------------------

for program in srun salloc sbatch squeue scancel sacct sinfo scontrol; do
	printf '#!/bin/sh\necho "$0 $*" >>"%s"\n' "$S/trapped" >"$S/traps/$program"
	chmod +x "$S/traps/$program"
done
cp "$real" "$S/bin/gpulease-engine"
for words in '-n 0 true' '--status' '--queue' '--history' '--doctor' '--show-config' \
	'--submit -n 0 true'; do
	# shellcheck disable=SC2086 # words
	PATH=$S/traps:$PATH try "$g" $words
done
is 'without the setting no program of Slurm is run' [ ! -e "$S/trapped" ]
if command -v strace >/dev/null && strace -o "$S/trace" true 2>/dev/null; then
	for words in '-n 0 true' '--status'; do
		# shellcheck disable=SC2086 # words
		PATH=$S/traps:$PATH strace -f -e trace=%file -o "$S/trace" "$g" $words >/dev/null 2>&1
		is "without the setting no file of Slurm is looked for: $words" test -z \
			"$(grep -oE '"[^"]*(traps/s|slurm|gpulease-engine)[^"]*"' "$S/trace")"
	done
	PATH=$S/traps:$PATH strace -f -e trace=%file -o "$S/trace" "$g" --engine slurm --doctor \
		>/dev/null 2>&1
	is 'with the setting one is: the trace shows it' grep -q 'traps/s' "$S/trace"
else
	skip 'without the setting no file of Slurm is looked for' 'no strace, or it may not trace'
fi
finish
