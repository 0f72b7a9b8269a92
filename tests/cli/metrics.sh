#!/bin/sh
# --metrics: what it prints and writes, what the parsers of Prometheus make of it, and that a reader
# of the file never sees half of it.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

me=$(id -un)
prom=$S/folder/gpulease.prom
mkdir "$S/folder"

# has TEXT LINE…: a result, good if $out has these lines.
has() {
	has_text=$1 has_not=
	shift
	for has_line in "$@"; do
		printf '%s\n' "$out" | grep -qxF -e "$has_line" || has_not="$has_not
no line $has_line"
	done
	if [ -z "$has_not" ]; then
		ok "$has_text"
	else
		not_ok "$has_text" "${has_not#?}" "stdout: $out"
	fi
}

# samples NAME: how many samples $out has of this metric
samples() {
	printf '%s\n' "$out" | grep -c "^$1[{ ]"
}

# --- what is printed -----------------------------------------------------------------------

sim 2
run 'metrics of an idle machine are printed' 0 '# TYPE gpulease_build_info gauge
*
# EOF' '' "$GPULEASE" --metrics
has 'an idle machine has states, memory and nothing by user' \
	'gpulease_gpu_state{gpu="0",state="idle"} 1' 'gpulease_gpu_state{gpu="1",state="leased"} 0' \
	'gpulease_gpu_memory_bytes{gpu="1"} 25769803776' 'gpulease_longest_wait_seconds 0' \
	'gpulease_probe_success 1'
"$GPULEASE" --pause 1 --for 1h --but "$me"
try "$GPULEASE" --metrics
has 'a window that has begun keeps a GPU, which is idle nevertheless' 'gpulease_gpu_window{gpu="0"} 0' \
	'gpulease_gpu_window{gpu="1"} 1' 'gpulease_gpu_state{gpu="1",state="idle"} 1'
"$GPULEASE" --resume 1 2>/dev/null
is 'without jobs no user has a sample' [ "$(samples gpulease_leased_gpus)" -eq 0 ]
run 'the FILE - is stdout' 0 '# TYPE *# EOF' '' "$GPULEASE" --metrics -
is 'no file is named -' test ! -e ./-

holder half -n 0.5
holder whole
holder none -n 0
waiter two -n 2
waiter next -n 0.5
try "$GPULEASE" --metrics
has 'leases and the queue by user' "gpulease_leased_gpus{user=\"$me\"} 1.5" \
	"gpulease_idle_leased_gpus{user=\"$me\"} 0" "gpulease_running_jobs{user=\"$me\"} 3" \
	"gpulease_waiting_jobs{user=\"$me\",reason=\"leased\"} 1" \
	"gpulease_waiting_jobs{user=\"$me\",reason=\"behind\"} 1" \
	"gpulease_waiting_gpus{user=\"$me\"} 2.5" 'gpulease_gpu_state{gpu="0",state="leased"} 1'
is 'the longest wait is that of a job that waits' \
	like '*gpulease_longest_wait_seconds [0-9]*.[0-9]*' "$out"
cp "$S/out" "$S/jobs.prom"

# --- the file ------------------------------------------------------------------------------

# write UMASK FILE
write() {
	(umask "$1" && exec "$GPULEASE" --metrics "$2")
}

run 'the file is written' 0 '' '' write 0077 "$prom"
is 'all users can read the file, whatever the umask' [ "$(stat -c %a "$prom")" = 644 ]
is 'it has what stdout has' [ "$(grep -c . "$prom")" -eq "$(grep -c . "$S/jobs.prom")" ]
is 'no other file is left in its folder' [ "$(ls -A "$S/folder")" = gpulease.prom ]
chmod 0400 "$prom"
before=$(stat -c %i "$prom")
cd "$S/folder" || bail 'no folder'
run 'an older file is replaced, by its name alone' 0 '' '' write 0 gpulease.prom
is 'the new file is another file with the mode' \
	test "$(stat -c %i "$prom")" != "$before" -a "$(stat -c %a "$prom")" = 644
cd "$S" || bail 'no place'

run 'a folder that is not there is named' 125 '' \
	"gpulease: cannot write 'none/x.prom': No such file or directory" \
	"$GPULEASE" --metrics none/x.prom
run 'a folder is not replaced' 125 '' \
	"gpulease: cannot write 'folder': Is a directory" "$GPULEASE" --metrics folder
ln -s "$prom" "$S/link"
run 'the file that a symbolic link leads to is written' 0 '' '' write 0 "$S/link"
is 'the link stays' [ -h "$S/link" ]
run 'what is no file, such as /dev/stdout, is written to' 0 '*# EOF' '' \
	sh -c '"$1" --metrics /dev/stdout | cat' - "$GPULEASE"
run 'two files are refused' 125 '' 'gpulease: *--metrics*' "$GPULEASE" --metrics a b

cp "$prom" "$S/kept"
echo 'no-such-key = 1' >"$S/bad.conf"
run 'when gpulease fails, its message is printed' 125 '' "gpulease: $S/bad.conf, line 1: *" \
	"$GPULEASE" --config "$S/bad.conf" --metrics "$prom"
is 'and the file stays as it was' cmp -s "$prom" "$S/kept"
run 'when gpulease fails, no file is made' 125 '' 'gpulease: *' \
	"$GPULEASE" --config "$S/bad.conf" --metrics "$S/folder/new.prom"
is 'there is no other file' [ "$(ls -A "$S/folder")" = gpulease.prom ]

if ! "$TOOLS/sysfault" --count true >/dev/null 2>&1; then
	skip 'a process that is killed leaves a whole file' 'no process can be traced here'
else
	# Its last calls write the file.  How many come before depends on how long gpulease takes.
	view=${GPULEASE%/*}/gpulease-view
	calls=$("$TOOLS/sysfault" --count "$view" view gpulease --metrics "$prom")
	broken='' call=$calls tries=0
	while [ "$tries" -lt 30 ] || { [ "$tries" -lt 300 ] && [ "$left" = gpulease.prom ]; }; do
		"$TOOLS/sysfault" --kill "$call" "$view" view gpulease --metrics "$prom" 2>/dev/null
		[ "$(tail -n 1 "$prom")" = '# EOF' ] || broken="$broken $call"
		left=$(ls -A "$S/folder")
		call=$((call - 1)) tries=$((tries + 1))
		[ "$call" -gt $((calls - 25)) ] || call=$((calls + 5))
	done
	is 'a process that is killed leaves a whole file' [ -z "$broken" ]
	is 'at one of the calls it leaves a new file, too' like 'gpulease.prom*gpulease.prom.??????' "$left"
	is 'the name of such a file does not end in .prom' [ "$(cd "$S/folder" &&
		echo *.prom .*.prom)" = 'gpulease.prom .*.prom' ]
	rm -f "$S/folder"/gpulease.prom.??????
fi

# The reader reads all the time; the file is replaced 20 times meanwhile.
cat >"$S/reader" <<'END'
reads=0
while [ ! -e "$1/enough" ]; do
	text=$(cat "$1/folder/gpulease.prom") || echo gone
	case $text in
	'# TYPE gpulease_build_info gauge
'*'
# EOF') ;;
	*) echo half ;;
	esac
	reads=$((reads + 1))
	[ "$reads" -ne 1 ] || : >"$1/reads"
done >"$1/seen"
END
sh "$S/reader" "$S" &
reader=$!
started="$started $reader"
wait_until "[ -e '$S/reads' ]" || bail 'the reader does not read'
for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	"$GPULEASE" --metrics "$prom" || break
done
: >"$S/enough"
wait "$reader"
run 'a reader sees no half file and always one' 0 '' '' cat "$S/seen"
is 'each of 20 runs has written the file' [ "$each" -eq 20 ]
release_all half whole none two next

# --- nvidia-smi ----------------------------------------------------------------------------

with_driver
fresh
printf '%s\n' '0 GPU-00000000-1111-2222-3333-444444444444 00000000:00:00.0 81559 A "card" of \ and {1}' \
	'1 GPU-11111111-1111-2222-3333-444444444444 00000000:01:00.0 40960 Card 1' \
	'2 GPU-22222222-1111-2222-3333-444444444444 00000000:02:00.0 40960 Card 2' \
	>"$FAKE_SMI_DIR/gpus"
echo 37 >"$FAKE_SMI_DIR/util.1"
echo 5000 >"$FAKE_SMI_DIR/base.1"
echo Enabled >"$FAKE_SMI_DIR/mig.2"
printf '2 0 3g.20gb MIG-a\n2 1 1g.5gb MIG-b\n' >"$FAKE_SMI_DIR/migs"
try "$GPULEASE" --metrics
has 'a model of any name is one label' \
	'gpulease_gpu_info{gpu="0",uuid="GPU-00000000-1111-2222-3333-444444444444",model="A \"card\" of \\ and {1}"} 1'
has 'a GPU that is used outside gpulease' 'gpulease_gpu_state{gpu="1",state="external"} 1' \
	'gpulease_gpu_utilization_ratio{gpu="1"} 0.37' \
	'gpulease_gpu_memory_used_bytes{gpu="1"} 5242880000'
has 'MIG instances are GPUs' 'gpulease_gpu_state{gpu="2:0",state="idle"} 1' \
	'gpulease_gpu_state{gpu="2:1",state="idle"} 1'
is 'the GPU that they are parts of has no sample' [ "${out#*gpu=\"2\"}" = "$out" ]
is 'the age of the answer is known' [ "$(samples gpulease_probe_age_seconds)" -eq 1 ]
cp "$S/out" "$S/gpus.prom"

try "$GPULEASE" true # a job notes the GPUs, so they are known later, too
echo 9 >"$FAKE_SMI_DIR/exit"
rm -f "$GPULEASE_DIR/probe"
try "$GPULEASE" --metrics
has 'rows of an nvidia-smi that then fails are no success' 'gpulease_probe_success 0'
echo 'NVIDIA-SMI has failed because it could not communicate' >"$FAKE_SMI_DIR/stdout"
rm -f "$GPULEASE_DIR/probe"
run 'when nvidia-smi fails, there are metrics' 0 '# TYPE *# EOF' '' "$GPULEASE" --metrics
has 'they say so' 'gpulease_probe_success 0' 'gpulease_gpu_state{gpu="0",state="unknown"} 1'
is 'values that are not known are left out' \
	[ "$(samples gpulease_gpu_memory_used_bytes) $(samples gpulease_gpu_utilization_ratio)" = '0 0' ]
cp "$S/out" "$S/failed.prom"
rm "$FAKE_SMI_DIR/exit" "$FAKE_SMI_DIR/stdout"
rm -f "$GPULEASE_DIR/probe"
try "$GPULEASE" --metrics
has 'when it answers again, that is a success' 'gpulease_probe_success 1'
: >"$FAKE_SMI_DIR/hang"
# hung: whether the metrics no longer rest on an answer that is recent enough
hung() {
	try "$GPULEASE" --metrics
	[ "$rc" -eq 0 ] && like '*gpulease_probe_success 0*' "$out"
}
is 'when nvidia-smi hangs, there are metrics that say so' wait_until hung
has 'they have the values of the last answer' 'gpulease_gpu_utilization_ratio{gpu="1"} 0.37'
rm "$FAKE_SMI_DIR/hang"

# --- the parsers of Prometheus -------------------------------------------------------------

# parsed TEXT COMMAND…: a result, good if the command finds no fault in any of the texts.
parsed() {
	parsed_text=$1 parsed_why=
	shift
	for each in jobs gpus failed; do
		try_parse=$("$@" <"$S/$each.prom" 2>&1) || parsed_why="$parsed_why $each: $try_parse"
	done
	if [ -z "$parsed_why" ]; then
		ok "$parsed_text"
	else
		not_ok "$parsed_text" "$parsed_why"
	fi
}

# the parser of node_exporter, and the rules for names
if command -v promtool >/dev/null 2>&1; then
	parsed 'promtool finds no fault' promtool check metrics
else
	skip 'promtool finds no fault' 'promtool is not installed'
fi

# The Python library has a parser for each of the two formats.
cat >"$S/parse.py" <<'END'
import sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

text = sys.stdin.read()
old = list(parser.text_string_to_metric_families(text))
new = list(openmetrics.text_string_to_metric_families(text))
assert [f.name for f in old] == [f.name for f in new]
assert len(new) == 15
for before, now in zip(old, new):
    assert now.type == before.type == 'gauge', now.name
    assert now.documentation == before.documentation != '', now.name
    assert not now.unit or now.name.endswith('_' + now.unit), now.name
    assert [s[:3] for s in now.samples] == [s[:3] for s in before.samples], now.name
    seen = [sorted(s.labels.items()) for s in now.samples]
    assert all(seen.count(s) == 1 for s in seen), now.name
models = [s.labels['model'] for f in new for s in f.samples if 'model' in s.labels]
if sys.argv[1] == 'gpus':
    assert 'A "card" of \\ and {1}' in models, models
END
python=
for each in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$each" -c 'import prometheus_client.openmetrics.parser' 2>/dev/null ||
		python=$each
done
# parse: with the name of the text
parse() {
	"$python" "$S/parse.py" "$each"
}
if [ -n "$python" ]; then
	parsed 'both parsers of python3-prometheus-client read the same' parse
else
	skip 'both parsers of python3-prometheus-client read the same' \
		'python3-prometheus-client is not installed'
fi

# --- the example for systemd ---------------------------------------------------------------

mkdir "$S/units"
# a path without blanks
ln -s "$GPULEASE" "$S/units/gpulease"
for each in service timer; do
	sed "s,^ExecStart=/usr/local/bin/gpulease,ExecStart=$S/units/gpulease," \
		"$CLI/../../gpulease/examples/gpulease-metrics.$each" \
		>"$S/units/gpulease-metrics.$each"
done
if ! command -v systemd-analyze >/dev/null 2>&1; then
	skip 'systemd finds no fault in the example' 'systemd-analyze is not installed'
else
	run 'systemd finds no fault in the example' 0 '' '' systemd-analyze verify \
		--recursive-errors=no --man=no "$S/units/gpulease-metrics.service" \
		"$S/units/gpulease-metrics.timer"
fi
finish
