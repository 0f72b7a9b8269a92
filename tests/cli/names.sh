#!/bin/sh
# Names of jobs are whole: each way to choose a job by its name finds that job alone, however much of
# their names two jobs share.
# shellcheck disable=SC2016 # texts for other shells

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2

# slurm PROGRAM: as users call it
slurm() {
	"$(dirname "$GPULEASE")/gpulease-slurm" "$@"
}

# repeat N TEXT: TEXT N times
repeat() {
	awk -v n="$1" -v text="$2" 'BEGIN { while (n-- > 0) printf "%s", text }'
}

# two NAME OTHER: two jobs of these names, $one runs without a GPU and $other with one
two() {
	one=$("$GPULEASE" --submit -n 0 --name "$1" sh -c 'echo one; sleep 1000') || bail one
	other=$("$GPULEASE" --submit -n 1 --name "$2" sh -c 'echo other; sleep 1000') || bail other
	# shellcheck disable=SC2034 # wait_until reads them
	pair_name=$1 pair_other=$2
	wait_until 'names_are "$pair_name" "$pair_other"' || bail "$1, $2 do not run"
}

# shellcheck disable=SC2317 # wait_until calls it
# names_are NAME OTHER: --status --json has these names of running jobs
names_are() {
	"$GPULEASE" --status --json >"$S/json"
	grep -qF "\"name\": \"$1\"" "$S/json" && grep -qF "\"name\": \"$2\"" "$S/json"
}

# live: the ids of the jobs that live, in one line
live() {
	"$GPULEASE" --status --json | sed -n 's/^ *"ticket": \([0-9][0-9]*\),*$/\1/p' | sort -nu |
		paste -sd ' ' -
}

# --- each way to name a job, for names that share their first bytes ----------------------------

for shared in 32 254; do
	base=$(repeat $((shared - 1)) m)
	for at in 'x=%y' 'x y%' "$(printf '\303\244\303\266')" ab; do
		# the character that is cut stands at the place where the names begin to differ
		size=$(printf '%s' "$at" | wc -c)
		first=$(printf "%.$((shared - size))s" "$base")$at
		[ "$(printf %s "$first" | wc -c)" -eq $shared ] || bail "$first"
		what="$shared shared bytes, '$at'"
		two "${first}1" "${first}2"
		is "$what: --log" wait_until '[ "$("$GPULEASE" --log "${first}2")" = other ]'
		run "$what: --log of the shared bytes" 1 '' 'gpulease: no job* waits or runs;*' \
			"$GPULEASE" --log "$first"
		is "$what: squeue -n, %i and %j" [ \
			"$(slurm squeue -h -n "${first}2" -o '%i %j')" = "$other ${first}2" ]
		is "$what: SQUEUE_NAMES" [ \
			"$(SQUEUE_NAMES=${first}1 slurm squeue -h -o %i)" = "$one" ]
		is "$what: squeue -n of the shared bytes" [ -z "$(slurm squeue -h -n "$first")" ]
		run "$what: --wait-for --max-wait" 124 '' '*' \
			"$GPULEASE" --wait-for "${first}1" --max-wait 0.1
		run "$what: --cancel of the shared bytes" 1 '' 'gpulease: no job* waits or runs;*' \
			"$GPULEASE" --cancel "$first"
		run "$what: scancel -n of the shared bytes" 0 '' '' slurm scancel -n "$first"
		is "$what: both live" [ "$(live)" = "$one $other" ]
		run "$what: --cancel" 0 '' 'gpulease: cancelled 1 job' \
			"$GPULEASE" --cancel "${first}1"
		is "$what: the other lives" [ "$(live)" = "$other" ]
		one=$("$GPULEASE" --submit -n 0 --name "${first}1" sleep 1000) || bail one
		run "$what: scancel -n" 0 '' '' slurm scancel -n "${first}2"
		is "$what: the other lives, too" wait_until '[ "$(live)" = "$one" ]'
		run "$what: SCANCEL_NAME" 0 '' '' env SCANCEL_NAME="${first}1" \
			"$(dirname "$GPULEASE")/gpulease-slurm" scancel
		is "$what: none lives" wait_until '[ -z "$(live)" ]'
		is "$what: --history --name" [ "$("$GPULEASE" --history --name "${first}2" --json |
			grep -c '"ticket"')" -eq 1 ]
		is "$what: --history --name of the shared bytes" [ \
			"$("$GPULEASE" --history --name "$first")" = 'no such job has ended' ]
		"$GPULEASE" --history --json >"$S/json"
		is "$what: --history --json" grep -qF "\"name\": \"${first}1\"" "$S/json"
	done
done
# --- how long a name may be ------------------------------------------------------------------

longest=$(repeat 255 q)
run 'a name of 255 bytes is kept whole' 0 "$longest" '' "$GPULEASE" -n 0 --name "$longest" \
	sh -c '"$1" --status --json | sed -n "s/.*\"name\": \"\(.*\)\",/\1/p"' sh "$GPULEASE"
run 'a longer one is refused' 125 '' "gpulease: --name: '*' has 256 bytes, and a name has 255 at most" \
	"$GPULEASE" -n 0 --name "${longest}q" true
run 'no job has a name that is too long' 1 '' 'gpulease: no job* waits or runs;*' \
	"$GPULEASE" --cancel "${longest}q"
run 'an attribute of a line may be as long' 0 '*' '' sh -c \
	'echo "[gpus=0 name=$1] true" >"$2/jobs"; exec "$0" --batch "$2/jobs"' "$GPULEASE" \
	"$longest" "$S"

# --- singletons --------------------------------------------------------------------------------

holder one -n 0.25 --name "${longest%qq}-1"
run 'a singleton of another name starts' 0 '' '' \
	"$GPULEASE" -n 0.25 --name "${longest%qq}-2" --singleton -I true
run 'a singleton of the same name waits' 124 '' '*job * of the same name comes first' \
	"$GPULEASE" -n 0.25 --name "${longest%qq}-1" --singleton -I true
release_all one

# --- a name that cannot be read ------------------------------------------------------------------

sim 3 # another state directory

links() {
	find "$(state_dir | sed "s/.* //")/live" -name '*.name' | wc -l
}
name=$(repeat 40 u)
holder one -n 1 --name "$(repeat 32 u)"
is 'a name that fits into the record needs no link' [ "$(links)" -eq 0 ]
release_all one
holder one -n 1 --name "$name"
id=$(id_of one)
is 'a longer name has one' [ "$(links)" -eq 1 ]
find "$(state_dir | sed "s/.* //")/live" -name '*.name' -exec rm {} +
run '--cancel of a name that may be that of the job' 1 '' \
	"gpulease: the whole name of job $id cannot be read, and may be '$name'; give its id*" \
	"$GPULEASE" --cancel "$name"
run '--log' 1 '' "gpulease: the whole name of job $id cannot be read*" "$GPULEASE" --log "$name"
run '--cancel of another name with its beginning' 1 '' 'gpulease: no job* waits or runs;*' \
	"$GPULEASE" --cancel "${name}v"
run 'squeue -n' 1 '' "squeue: error: job $id is not listed: its whole name cannot be read*" \
	slurm squeue -h -n "$name"
run 'scancel -n' 1 '' "scancel: error: *$id: its whole name cannot be read*" \
	slurm scancel -n "$name"
is 'JSON says so' like '*"name_is_cut": true*' "$("$GPULEASE" --status --json)"
is 'the job runs on' runs one
release_all one

# A name that a terminal must not get is shown with `?`, and is no other name with a `?`.
holder one -n 1 --name "$(printf 'a\tb')"
run 'scancel -n of what is only shown' 1 '' 'scancel: error: *its whole name cannot be read*' \
	slurm scancel -n 'a?b'
release_all one

# --- further attempts, and what is left behind ----------------------------------------------------

run 'each attempt has the name in the history' 3 '' '*' \
	"$GPULEASE" -n 1 --name "${name}-again" --retries 1 sh -c 'exit 3'
is 'both attempts' [ "$("$GPULEASE" --history --name "${name}-again" --json | grep -c '"ticket"')" -eq 2 ]
"$GPULEASE" -n 3 true
is 'no link is left once the GPUs are taken by other jobs' [ "$(links)" -eq 0 ]
finish
