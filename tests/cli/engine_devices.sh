#!/bin/sh
# The engine on a cluster whose device cgroups hide the GPUs of other jobs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slurm_lib.sh
. "$CLI/slurm_lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
unset GPULEASE_SIM
cards 8
if ! cluster_of_cards 8 || [ -z "$cluster_limits" ]; then
	skip 'a real cluster with device cgroups' "${cluster_why:-no device cgroups}"
	finish
fi
slurm_engine

run 'a job sees as many cards as it has asked for' 0 '? ?' '' "$GPULEASE" -n 2 -- sh -c 'echo $(cards)'
run 'a job without a GPU sees none' 0 '' '' "$GPULEASE" -n 0 -- cards

mkfifo "$S/go"
"$GPULEASE" -n 3 -- sh -c 'echo $(cards); read -r x' <"$S/go" >"$S/first" 2>&1 &
started="$started $!"
exec 9>"$S/go"
wait_until '[ -s "$S/first" ]'
"$GPULEASE" -n 5 -- cards >"$S/second"
exec 9>&-
is 'two jobs at a time see different cards' [ "$(tr ' ' '\n' <"$S/first" | cat - "$S/second" |
	tr ' ' '\n' | grep -v '^$' | sort -u | wc -l)" -eq 8 ]

id=$("$GPULEASE" --submit -n 1 -- cards)
run 'a job in the background' 0 '' '' "$GPULEASE" --wait-for "$id"
run 'sees one card' 0 '[0-7]*' '' "$GPULEASE" --log "$id"

n=0
while [ $((n += 1)) -le 4 ]; do
	echo "[gpus=2] cards >'$S/line.$n'"
done >"$S/jobs.txt"
run 'a batch of four jobs' 0 '*' '*' "$GPULEASE" --batch "$S/jobs.txt"
is 'each sees two cards' [ "$(cat "$S"/line.? | wc -w)" -eq 8 ]

# eight jobs in four GPUs, two of which share one
n=0
while [ $((n += 1)) -le 8 ]; do
	echo '[gpus=0.5] on_card'
done >"$S/packed.txt"
id=$("$GPULEASE" --submit -n 4 -- "$GPULEASE" --batch "$S/packed.txt")
run 'a batch inside one allocation' 0 '' '' "$GPULEASE" --wait-for "$id"
is 'has run all its lines' [ "$(wc -l <"$C/log")" -eq 8 ]
is 'each on the card of its lease' [ "$(awk '$1 != $2' "$C/log" | wc -l)" -eq 0 ]
finish
