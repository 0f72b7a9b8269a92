#!/bin/sh
# Includes go down only, by the table of layers; every header compiles alone; lib/ does none
# of what only gpulease/ may.

# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# A row a layer, the lowest first; a module is NAME.c, NAME.h or both.  lib/README.md says
# what they are.
lib_layers='
	base banned
	text clock array token_index slurm gpuset room choice quota part words parse parse_gpus record operands models config config_values
	fdio alarm proc owner watch spawn childenv rights userfile kin leftover tree
	statedir beacon life terminate probe_data smi* topology probe_run probe_lock probe_hang probe probe_marks sim_memory prober
	ticket queue queue_* passover lease history history_book policy policy_* estimate
	account snapshot snapshot_* usage instance inventory slots ending commit outcome namesake hold preempt
	broker broker_*'
gpulease_layers='
	diag exitcodes allocation bind options pattern operands limits privilege setid container docker_args config_file render_* json_text signals output inject foreground teardown
	cli cli_table cli_values cli_sharing cli_care cli_batch when ended_filter accounting care help verbs terminal
	batch_numbers batch_event batch_list batch_attributes batch_csv batch_after batch_jobs batch_match batch_plan
	batch_watch batch_file batch_journal batch_load batch_log
	context old_allocations state need explain explain_verdict process mps step aim announce watchdog redirect joblog follow setup conda session session_list sampler
	request selection launch waiting look view view_* show show_* background report batch_member
	batch_board batch_board_parts batch_tell batch_show
	supervise queueing lease_only lease_shell lease_adopt
	attempts cancel_record
	batch_settings batch_child
	batch_runner batch_open batch_active batch_adopt batch_edit
	doctor doctor_*
	verb_*
	main'

# "DIRECTORY/FILE HEADER" for every include of our own.
includes() {
	grep -H '^#include "' "$1"/*.[ch] | sed 's/:#include "\([^"]*\)".*/ \1/'
}

# layer LAYERS MODULE: its row, empty where it stands in none.
layer() {
	row=0
	echo "$1" | while read -r modules; do
		for pattern in $modules; do
			# shellcheck disable=SC2254 # it is a pattern
			case $2 in
			$pattern)
				echo $row
				exit
				;;
			esac
		done
		row=$((row + 1))
	done
}

module_of() {
	module=${1##*/}
	echo "${module%.[ch]}"
}

# check_layers DIRECTORY LAYERS
check_layers() {
	for file in "$1"/*.[ch]; do
		module=$(module_of "$file")
		[ -n "$(layer "$2" "$module")" ] ||
			echo "$file: '$module' is in no layer of $0"
	done
	includes "$1" | while read -r file header; do
		[ -e "$1/$header" ] || continue
		own=$(layer "$2" "$(module_of "$file")")
		other=$(layer "$2" "$(module_of "$header")")
		[ "${own:-99}" -ge "${other:-0}" ] || echo "$file includes $header, which is above it"
	done
}

set -f # the patterns of the table are not names of files here
lib_rows=$lib_layers gpulease_rows=$gpulease_layers
set +f
result 'lib/ includes go down' "$(check_layers lib "$lib_rows")"
result 'gpulease/ includes go down' "$(check_layers gpulease "$gpulease_rows")"

result 'lib/ includes nothing of gpulease/' "$(includes lib | while read -r file header; do
	[ -e "lib/$header" ] || echo "$file includes $header"
done)"

result 'no two headers include each other' "$(
	grep -H '^#include "' lib/*.h gpulease/*.h |
		sed 's/:#include "\([^"]*\)".*/ \1/; s,^[a-z]*/,,' | tsort 2>&1 >/dev/null
)"

result 'lib/ never prints, exits, reads the environment or handles signals' "$(
	grep -nE '(^|[^_a-z])(printf|fprintf|puts|perror|exit|getenv|secure_getenv|signal) ?\(' \
		lib/*.c | grep -v '^[^:]*:[0-9]*:[[:space:]]*\*'
)"

for header in lib/*.h gpulease/*.h; do
	result "$header compiles alone" "$(
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Ilib -Wall -Wextra -Werror -fsyntax-only \
			-include "$header" -x c /dev/null 2>&1
	)"
done
finish
