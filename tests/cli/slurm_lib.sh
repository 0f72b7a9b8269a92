# shellcheck shell=sh
# A node with cards of which a process sees only some, as with device cgroups.  Read in after
# lib.sh.
#
#	cards N		the node has N cards; $C is the folder of their files
#
# The nvidia-smi of $C/bin lists the cards that its process may use, numbered from 0: those in
# $TEST_CARDS, such as "2 3", if that is set; else those whose device $C/dev/gpuN a device cgroup
# lets it open.  $C/bin/on_card is a job: it locks the card that its GPU number leads to for a
# moment, and notes in $C/log the card of its lease, the card that it found, and whether it was
# alone on it.

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
	install -m 0755 "$CLI/../bin/nvidia-smi" "$C/bin/fake-smi"
	chmod 0755 "$C/bin"/*
	PATH=$C/bin:$PATH
}

# cards_were_right N: whether N jobs have run, each on the card of its lease and alone there.
# Empties the log.
cards_were_right() {
	right_rows=$(grep -c . "$C/log")
	right_wrong=$(awk '$1 != $2 || $3 != "alone"' "$C/log")
	: >"$C/log"
	[ "$right_rows" -eq "$1" ] && [ -z "$right_wrong" ] && return 0
	echo "# $right_rows jobs, on wrong cards or not alone: $(echo "$right_wrong" | tr '\n' ';')"
	return 1
}
