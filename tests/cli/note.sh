#!/bin/sh
# --note: what a job says of itself, and where it is shown.
# shellcheck disable=SC2016 # commands of the jobs

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2

# noted TEXT SHOWN: whether a job can say so, and --status --json then shows it for each of its GPUs
noted() {
	"$GPULEASE" -n 2 sh -c '"$0" --note "$1" && "$0" --status --json' "$GPULEASE" "$1" >"$S/out" &&
		[ "$("$TOOLS/jsoncheck" gpus.0.leases.0.note gpus.1.leases.0.note <"$S/out" | paste -sd '|' -)" = "$2|$2" ]
}

is 'a job says something of itself' noted 'epoch 5/100' 'epoch 5/100'
long=1234567890123456789012345678901234567890123456789012345678901
is 'as long as a record can hold' noted "${long}ü" "${long}ü"
is 'what is longer is cut at a character' noted "${long}2ü" "${long}2"
run '--status has a column for it' 0 '*NAME*NOTE*COMMAND*train*5/100*' '' "$GPULEASE" --name train \
	sh -c '"$0" --note 5/100 && "$0" --status' "$GPULEASE"
run '--status ID has a line for it' 0 '*command *
note       epoch 5/100
needs *' '' "$GPULEASE" sh -c '"$0" --note "epoch 5/100" && "$0" --status "$GPULEASE_ID"' "$GPULEASE"
run 'without a note there is no such line' 0 '*command *
needs *' '' "$GPULEASE" sh -c '"$0" --status "$GPULEASE_ID"' "$GPULEASE"
run 'without a note there is no such column' 0 '*COMMAND*' '' "$GPULEASE" sh -c '"$0" --status' "$GPULEASE"
is 'not even an empty one' [ "$(echo "$out" | grep -c NOTE)" -eq 0 ]
run 'a note may have any character, and none reaches a terminal raw' 0 '*"note": "a=\\"%\\u001b\[31m"*' '' \
	"$GPULEASE" sh -c '"$0" --note "$1" && "$0" --status --json' "$GPULEASE" "$(printf 'a="%%\033[31m')"
run 'the last one counts, and an empty one removes it' 0 '*"note": "two"*"note": null*' '' \
	"$GPULEASE" sh -c '"$0" --note one && "$0" --note two && "$0" --status --json | grep note
		"$0" --note "" && "$0" --status --json | grep note' "$GPULEASE"
run 'a process that has closed all descriptors and lost its variables may say it' 0 '*"note": "lost"*' '' \
	"$GPULEASE" sh -c 'exec 9>&- && env -u GPULEASE_TOKEN -u GPULEASE_ID "$0" --note lost &&
		"$0" --status --json' "$GPULEASE"
run 'outside of a job it is refused' 1 '' 'gpulease: --note is for the inside of a job that has GPUs*' \
	"$GPULEASE" --note x
run 'a job without a GPU has no lease' 1 '' 'gpulease: --note is for the inside of a job that has GPUs*' \
	"$GPULEASE" -n 0 "$GPULEASE" --note x
run 'one text is needed' 125 '' 'gpulease: --note needs one text: *' "$GPULEASE" --note
run 'two are too many' 125 '' 'gpulease: --note needs one text: *' "$GPULEASE" --note a b

configured
delay 1ms
# a job that goes back into the queue has a new lease
run 'the next attempt begins without a note' 0 '*"note": "one"*"note": null*' '*' "$GPULEASE" --retries 1 sh -c \
	'[ "$GPULEASE_ATTEMPT" = 2 ] || "$0" --note one; "$0" --status --json | grep note; [ "$GPULEASE_ATTEMPT" = 2 ]' "$GPULEASE"

finish
