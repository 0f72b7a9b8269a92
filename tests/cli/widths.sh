#!/bin/sh
# The tables of --status and --queue on narrow and wide terminals: eight equal cards, long names and
# long commands.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# on WIDTH OPTION…: what gpulease prints on a terminal, in $S/out and $out
on() {
	NO_COLOR=1 "$TOOLS/onterminal" "$1" "$GPULEASE" "$2" >"$S/out" 2>"$S/err"
	out=$(cat "$S/out")
}

# fits WIDTH: whether no line of $S/out is wider
fits() {
	sed 's/…/./g' "$S/out" | awk -v most="$1" 'length > most { exit 1 }'
}

# shows TEXT PATTERN: a result about $out
shows() {
	is "$1" like "$2" "$out"
}

scratch
with_driver
index=0
while [ "$index" -lt 8 ]; do
	echo "$index GPU-0000000$index-1111-2222-3333-444444444444 00000000:0$index:00.0 81559 NVIDIA H100 80GB HBM3"
	index=$((index + 1))
done >"$FAKE_SMI_DIR/gpus"
echo 100 >"$FAKE_SMI_DIR/util.0"
holder a -n 7 --name resnet50-baseline-augmentation -t 4h
waiter b -n 8 --name llama-sweep-17 -t 2h
long='because of a story that goes on until the line begins'
"$GPULEASE" --pause 7 --reason "$long"
echo "0 $(pid_of a) 76000" >"$FAKE_SMI_DIR/procs"
is 'the memory in use is seen' wait_until '"$GPULEASE" --status --json | grep -q "memory_used_mib.: 76000"'

for width in 60 80 132 200; do
	on $width --status
	is "--status fits into $width columns" fits $width
	shows "--status names the model once, in $width columns" '8 x NVIDIA H100 80GB HBM3, 79.6G each
GPU  MEMORY *'
	is "the rest of --status does not name the model, in $width columns" \
		[ "$(grep -c 'MODEL\|H100' "$S/out")" -eq 1 ]
	shows "--status keeps names and commands in $width columns" \
		'*  NAME * COMMAND*  0   74.2G *leased * resnet50-ba*  sh -c *'
	shows "the reason of a pause is not cut in $width columns" '*until*begins*'
	on $width --queue
	is "--queue fits into $width columns" fits $width
	shows "--queue keeps names and commands in $width columns" '*NAME *COMMAND*llama-sweep* sh -c *'
	shows "--queue shows the whole reason in $width columns" '*needs 8 GPUs, *GPU 7*begins*'
done
on 80 --status
shows 'in 80 columns --status shows the use and the time that is left' \
	'*GPU  MEMORY  UTIL  STATE *JOB  USER *LEFT  NAME *  0   74.2G  100%  leased *  3h59m  *'
! grep -q 'PID\|IDLE\|SINCE' "$S/out" || not_ok 'a column that can be missed'
on 80 --queue
! grep -q 'WHY\|SINCE' "$S/out" || not_ok 'a column that can be missed'
is 'the reason stands below its job' like '    needs 8 GPUs, none is free; GPU 7 *' \
	"$(sed -n 3p "$S/out")"
on 200 --status
shows 'in 200 columns --status has all columns' '*PID *AGE *LEFT *IDLE *NAME *COMMAND
*'
shows 'and reasons have a column, too' '*WAITS *NAME *WHY *COMMAND
*'

try "$GPULEASE" --status
shows 'without a terminal nothing is cut' "*PID *IDLE *resnet50-baseline-augmentation *SINCE *WHY *COMMAND*"
is 'nor a command' like '*read -r status* job *' "$(sed -n 3p "$S/out")"
# watch(1) sets COLUMNS in this way
COLUMNS=80 "$GPULEASE" --status >"$S/out"
is 'COLUMNS is the width of any output' fits 80
! grep -q PID "$S/out" || not_ok 'COLUMNS is not used'
COLUMNS=0 try "$GPULEASE" --status
shows 'COLUMNS=0 is no width' '*PID *COMMAND*'

# a card of another size: each row names its card
sed -i 's/^7 \(.*\) 81559 .*/7 \1 40960 NVIDIA A100-SXM4-40GB/' "$FAKE_SMI_DIR/gpus"
is 'another card is seen' wait_until '"$GPULEASE" --status --json | grep -q A100'
on 80 --status
is '--status of different cards fits into 80 columns' fits 80
shows 'cards that differ are named in their rows' \
	'GPU  MODEL * MEMORY *NAME *COMMAND*  0  H100 80GB* 74.2/79.6G *leased *  7  A100-SXM4* *0.0/40.0G *'
try "$GPULEASE" --resume 7
rm "$FAKE_SMI_DIR/procs"
release_all a b
finish
