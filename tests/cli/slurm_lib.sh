# shellcheck shell=sh
# Cards of a node of which a process sees some only, as with device cgroups.  Read in after lib.sh.
#
#	cards N		the node has so many; $C holds what belongs to them
#
# The nvidia-smi of $C/bin lists those cards that its process may use, numbered from 0:
# $TEST_CARDS if it is set, "2 3"; else those whose device $C/dev/gpuN a device cgroup lets it
# open.  $C/bin/on_card holds the card that its GPU leads to for a moment, alone, and notes in
# $C/log which card that was by the lease and which one it has found.

cards() {
	cards_count=$1
	C=$S/cards
	mkdir "$C" "$C/bin" "$C/dev" "$C/views"
	: >"$C/log"
	export C cards_count
	printf '#!/bin/sh\n%s\n' '# prints the cards that this process sees, in order
[ -z "${TEST_CARDS+set}" ] || { echo $TEST_CARDS; exit; }
card=0
while [ $card -lt "$cards_count" ]; do
	case $( (exec 3<>"$C/dev/gpu$card") 2>&1) in
	*permitted*) ;;
	*) printf "%s " $card ;;
	esac
	card=$((card + 1))
done' >"$C/bin/cards"
	printf '#!/bin/sh\n%s\n' '# the cards, as a driver that cannot reach the others
cards=$("$C/bin/cards")
export FAKE_SMI_DIR="$C/views/view.$(echo $cards | tr " " .)"
if [ ! -e "$FAKE_SMI_DIR" ]; then
	new=$(mktemp -d "$C/views/new.XXXXXX")
	index=0
	for card in $cards; do
		echo "$index $(printf GPU-%08d-1111-2222-3333-444444444444 $card) 00000000:0$card:00.0 81559 Card"
		index=$((index + 1))
	done >"$new/gpus"
	mv -T "$new" "$FAKE_SMI_DIR" 2>/dev/null || rm -rf "$new"
fi
exec "$C/bin/fake-smi" "$@"' >"$C/bin/nvidia-smi"
	printf '#!/bin/sh\n%s\n' '# a job: its GPU is the card with that number among those that it sees
set -- $("$C/bin/cards")
shift "${CUDA_VISIBLE_DEVICES:-999}" 2>/dev/null
card=${1-none}
wanted=${GPULEASE_UUIDS#GPU-}
wanted=$(printf %d "${wanted%%-*}")
(
	flock -n 9 && alone=alone || alone=shared
	sleep 0.05
	echo "$wanted $card $alone" >>"$C/log"
) 9>>"$C/card.$card"' >"$C/bin/on_card"
	cp "$CLI/../bin/nvidia-smi" "$C/bin/fake-smi"
	chmod 0755 "$C/bin"/*
	PATH=$C/bin:$PATH
}

# Whether each of the $1 jobs has run, on the card of its lease and alone there; then the log is
# empty again.
cards_were_right() {
	right_rows=$(grep -c . "$C/log")
	right_wrong=$(awk '$1 != $2 || $3 != "alone"' "$C/log")
	: >"$C/log"
	[ "$right_rows" -eq "$1" ] && [ -z "$right_wrong" ] && return 0
	echo "# $right_rows jobs, on wrong cards or not alone: $(echo "$right_wrong" | tr '\n' ';')"
	return 1
}
