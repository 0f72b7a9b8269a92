#!/bin/sh
# The configuration: what is refused and how, --show-config, the sample, and that every value
# takes effect.
# shellcheck disable=SC2015,SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
conf=$S/x.conf
sample=$CLI/../../gpulease/packaging/gpulease.conf
escape=$(printf '\033')

# conf LINE…: the configuration from now on
conf() {
	printf '%s\n' "$@" >"$conf"
	chmod 0644 "$conf"
}

# with OPTION…: gpulease with that configuration
with() {
	"$GPULEASE" --config "$conf" "$@"
}

# member PATH…: what --show-config --json has there
member() {
	with --show-config --json | "$TOOLS/jsoncheck" "$@"
}

# --- errors ------------------------------------------------------------------------------

fresh
refused() {
	run "$1" 125 '' "gpulease: $2" with --show-config
}
conf '# one' 'idle-treshold = 5%'
refused 'an unknown key: file, line, key, and which there are' \
	"$conf, line 2: unknown key 'idle-treshold'; is it idle-threshold[?] see gpulease.conf(5)"
run 'for every verb' 125 '' "gpulease: $conf, line 2: *" with --status
run 'and for a job' 125 '' "gpulease: $conf, line 2: *" with true
conf '' '' 'max-waiting = lots'
refused 'a bad value: file, line, key, what is allowed' \
	"$conf, line 3: max-waiting: 'lots' is not a number; write 1 to 1000000, or none"
conf 'margin = 1G' 'margin = 1G'
refused 'a key twice' "$conf, line 2: margin: is set twice; *line 1*"
conf 'user-gpus = 0'
refused 'a limit that nobody passes' "$conf, line 1: user-gpus: '0' is out of range; write 1 to *"
conf 'max-time = 1h' '' 'default-time = 2h'
refused 'times that contradict each other' \
	"$conf, line 3: default-time: is longer than max-time, which is 1h"
conf 'max-priority = -1'
refused 'a priority below the default' "$conf, line 1: max-priority: '-1' is not a number; *"
conf 'prefer = 3-0'
refused 'a bad list of GPUs' "$conf, line 1: prefer: '3-0' is not a list of GPUs; write *"
conf 'bind = on'
refused 'a choice that is none' "$conf, line 1: bind: 'on' is not a choice; write no or yes"
conf 'model-option = llm'
refused 'an option without dashes' "$conf, line 1: model-option: 'llm' is not an option; *"
conf '[gpus]'
refused 'a section that is none' "$conf, line 1: unknown section '[[]gpus]'; the only one is *"
conf '[models]' 'qwen = 0.5' 'llama = lots'
refused 'a bad need of a model' "$conf, line 3: llama: 'lots' is not a number of GPUs; *"
run 'for a job, too' 125 '' "gpulease: $conf, line 3: llama: *" with true
conf '[models]' 'qwen = 0.5' 'user-gpus = 2'
refused 'a setting among the models' \
	"$conf, line 3: user-gpus: is a setting, and no model; settings stand above [[]models]"
conf '[models]' 'qwen = 0.5' 'llama = 1' 'qwen = 1'
refused 'a model twice' "$conf, line 4: 'qwen' is set twice; write it once, it stands in line 2 too"
conf '[models]' 'qwen 0.5'
refused 'a line that names no need' "$conf, line 2: 'qwen 0.5' is no model; write NAME = NEED"
conf "margin = ${escape}[2J"
refused 'escape sequences are made harmless' "$conf, line 1: margin: '?[[]2J' is not a size; *"
conf 'margin = 1G'
chmod 0666 "$conf"
refused 'a file that others may write to' \
	"cannot use configuration '$conf': others may write to it; chmod go-w"
rm "$conf"
refused 'a file that is named and is not there' "cannot open configuration '$conf': *"
mkfifo "$conf"
refused 'a FIFO, without waiting for it' "cannot use *: it is not a regular file"
rm "$conf"
head -c 70000 /dev/zero | tr '\0' '#' >"$conf"
refused 'a file too big' "cannot use *: it is bigger than 64 KiB"

# --- --show-config -----------------------------------------------------------------------

conf 'idle-threshold = 5% # of 80 GiB' '' 'admin-group = staff'
try with --show-config
is 'what is in force is shown' [ "$rc" -eq 0 ]
shows() {
	is "$1" grep -qx "$2" "$S/out"
}
shows 'a default' 'settle-time = 1m  *# default'
shows 'a line of the file' "idle-threshold = 5%  *# $conf, line 1"
shows 'another' "admin-group = staff  *# $conf, line 3"
shows 'where the directory comes from' "directory = $S/dir  *# GPULEASE_DIR"
shows 'the nvidia-smi that was found' '# nvidia-smi = .*/nvidia-smi  *# found in PATH'
# those of the two long paths stand further to the right
is 'the comments stand below each other' [ "$(sed -n 's/ # [^#]*$//p' "$S/out" |
	awk '{ print length }' | sort | uniq -c | sort -rn | awk '{ print $1; exit }')" -ge 11 ]
cp "$S/out" "$S/shown.conf"
"$GPULEASE" --config "$S/shown.conf" --show-config | sed 's/ *# .*//' >"$S/again"
sed 's/ *# .*//' "$S/shown.conf" | cmp -s - "$S/again" &&
	ok 'it is valid configuration and means the same' ||
	not_ok 'it is valid configuration and means the same' "$(cat "$S/again")"
try with --dir "$S/no such" --show-config
shows 'no directory is needed' "directory = $S/no such  *# --dir"
is 'and none is made' [ ! -e "$S/no such" ]
try with --dir "a#b" --show-config
shows 'what cannot be configured is a comment' "# directory = .*/a#b  *# --dir"
try with --dir "/a${escape}b" --show-config
shows 'nothing that a terminal obeys' "# directory = /a?b  *# --dir"
try env GPULEASE_DIR= "$GPULEASE" --config "$conf" --show-config
shows 'the directory by default' 'directory = /var/lib/gpulease  *# default'
try env PATH=/usr/bin:/bin "$GPULEASE" --config "$conf" --show-config
grep -q 'nvidia-smi = ' "$S/out" || shows 'none found' '# nvidia-smi =  *# not found in PATH'
try env GPULEASE_SIM=2 "$GPULEASE" --config "$conf" --show-config
shows 'simulated GPUs are told' '# --sim: .*'
is 'as JSON: values' [ "$(member config.idle-threshold.value config.linger-time.value |
	tr '\n' ' ')" = '5% 1m ' ]
is 'and sources' [ "$(member config.idle-threshold.source config.linger-time.source file)" = \
	"$conf, line 1
default
$conf" ]
is 'no table of models' [ "$(member models_line)" = null ]
conf 'margin = 1G' '' '[models] # of all' 'a = 0.5  # half' '' 'default = 18G'
try with --show-config
is 'the table of models is shown at the end' [ "$(sed -n '/^\[models\]/,$p' "$S/out")" = \
	"[models]
a = 0.5
default = 18G" ]
is 'and where it begins' [ "$(member models_line)" = 4 ]
conf '# nothing'
is 'null where nothing is set' [ "$(member config.admin-group.value)" = null ]

# --- the sample --------------------------------------------------------------------------

cp "$sample" "$conf"
try with --show-config
is 'the sample sets nothing' [ "$rc $(grep -c "$conf" "$S/out")" = '0 0' ]
sed 's/^#\([a-z[]\)/\1/' "$sample" >"$conf"
try with --show-config
is 'all that it names can be set' [ "$rc" -eq 0 ]
is 'its models, too' grep -qx 'llama-3.1-8b = 18G' "$S/out"
sed -n '/^\[models\]/q; s/^#\{0,1\} \{0,1\}\([a-z-]* =\).*/\1/p' "$S/out" | sort >"$S/keys"
sed -n '/^#\[models\]/q; s/^#\([a-z-]* =\).*/\1/p' "$sample" | sort | cmp -s "$S/keys" - &&
	ok 'it names every key' || not_ok 'it names every key' "$(cat "$S/keys")"
sed -n 's/^\([a-z-]* = .*[^ ]\) *# .*/\1/p' "$S/out" |
	grep -v -e ^directory -e ^nvidia-smi -e ^admin-group -e ^prefer | sort >"$S/uncommented"
conf ''
with --show-config | sed -n 's/^\([a-z-]* = .*[^ ]\) *# default$/\1/p' | sort |
	cmp -s "$S/uncommented" - &&
	ok 'with its default' || not_ok 'with its default' "$(cat "$S/uncommented")"
is 'that of the directory, too' grep -qx '#directory = /var/lib/gpulease' "$sample"

# --- what counts as used -----------------------------------------------------------------

fresh
echo 3000 >"$FAKE_SMI_DIR/base.0"
conf 'idle-threshold = 2999'
run 'idle-threshold: memory over it is use' 0 '1' '' with --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'idle-threshold = 3000MiB'
run 'and up to it is nobody'"'"'s' 0 '0,1' '' with -n 2 --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'idle-threshold = 4%' # of 81559: 3262
run 'a percentage is of the card' 0 '0,1' '' with -n 2 --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
fresh
echo 3000 >"$FAKE_SMI_DIR/base.0"
conf 'idle-threshold = 3%'
run 'over it is use' 124 '' '*GPU 0 is used outside gpulease*' with -n 2 -I true
is 'the status says so' wait_until 'like "*external*" "$(with --status)"'

fresh
echo 30 >"$FAKE_SMI_DIR/util.0"
conf 'busy-utilization = off'
run 'busy-utilization: off' 0 '0,1' '' with -n 2 --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'busy-utilization = 31%'
run 'below it' 0 '0,1' '' with -n 2 --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
fresh
echo 30 >"$FAKE_SMI_DIR/util.0"
conf 'busy-utilization = 30%'
run 'from it on the GPU is used' 124 '' \
	'*GPU 0 is used outside gpulease *, its utilization is 30%' with -n 2 -I true
run 'and avoided' 0 '1' '' with --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
rm "$FAKE_SMI_DIR/util.0"
holder busy --config "$conf" -n 2
echo 100 >"$FAKE_SMI_DIR/util.0"
is 'a leased one may be as busy as it likes' [ "$(with --status --json |
	"$TOOLS/jsoncheck" gpus.0.state gpus.1.state | tr '\n' ' ')" = 'leased leased ' ]
release_all busy
fresh
echo '[N/A]' >"$FAKE_SMI_DIR/util.0"
run 'an unknown utilization does not count' 0 '0,1' '' with -n 2 --max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'

# settles NAME: the line of a job that waits for memory of the one before it
settles() {
	fresh
	holder before --config "$conf" -n 2
	echo 9000 >"$FAKE_SMI_DIR/base.0"
	waiter after --config "$conf" -n 2
	release_all before
}
conf 'settle-time = 0'
settles
is 'settle-time: 0, and memory in use is external at once' \
	wait_until "grep -q 'GPU 0 is used outside gpulease' '$S/after.err'"
is 'never just released' sh -c '! grep -q "just released" "$1"' - "$S/after.err"
conf 'settle-time = 1h'
settles
is 'settle-time: long, and it settles' wait_until "grep -q 'just released' '$S/after.err'"
rm "$FAKE_SMI_DIR/base.0"
is 'until it is free' wait_until 'runs after'
release_all after

# --- lingering ---------------------------------------------------------------------------

fresh
conf 'linger-time = 1s'
# the heir holds the FIFO
with -n 2 -- sh -c 'sleep 1000 & echo $!' >"$S/heir"
started="$started $(cat "$S/heir")"
begin heirs --config "$conf" -n 2
is 'linger-time: what lingers is over sooner' wait_until 'runs heirs'
release_all heirs

# --- the driver --------------------------------------------------------------------------

fresh
conf 'probe-deadline = 300ms'
touch "$FAKE_SMI_DIR/hang"
run 'probe-deadline: nvidia-smi may take so long' 125 '' \
	'gpulease: no GPU is known: *did not answer within 1 s*' with true
fresh
conf "nvidia-smi = $S/false-smi"
printf '#!/bin/sh\necho "NVIDIA-SMI has failed: no"\nexit 9\n' >"$S/false-smi"
chmod +x "$S/false-smi"
run 'nvidia-smi: the one that is configured is asked' 125 '' '*NVIDIA-SMI has failed: no*' with true

# --- the directory -----------------------------------------------------------------------

fresh
conf "directory = $S/other"
mkdir -m 0700 "$S/other"
run 'directory: the one that is configured' 0 '*' '*' env GPULEASE_DIR= "$GPULEASE" \
	--config "$conf" true
is 'is used' [ -e "$S/other/tickets" ]

# --- what others may see -----------------------------------------------------------------

# as_nobody COMMAND…
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
}

sees() {
	as_nobody "$S/gpulease" --config "$conf" "$@" 2>&1
}

hidden() {
	text=$1
	shift
	seen=$(sees "$@")
	case $seen in
	*topsecret*) not_ok "$text" "$seen" ;;
	*root*) ok "$text" ;;
	*) not_ok "$text" "$seen" ;;
	esac
}

# members PATH…: what another user sees there of the JSON of $verb
members() {
	as_nobody "$S/gpulease" --config "$conf" "$verb" --json 2>/dev/null |
		"$TOOLS/jsoncheck" "$@" | tr '\n' ' '
}

if [ "$(id -u)" -ne 0 ] || ! cp "$GPULEASE" "$S/gpulease" ||
	! chmod 0711 "$S" || ! as_nobody "$S/gpulease" --version >/dev/null 2>&1; then
	skip 'show-commands: own' 'needs root, and setpriv'
	finish
fi
fresh
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
conf 'show-commands = own'
run 'a job that has ended' 0 '' '' with --name topsecret-name sh -c ': topsecret'
holder secret --config "$conf" -n 2 --name topsecret-name
waiter queued --config "$conf" -n 2 --name topsecret-other
hidden 'show-commands: others are not shown in the status' --status
hidden 'nor in the queue' --queue
hidden 'nor in the history' --history
for verb in --status --queue --history; do
	hidden "nor as JSON, $verb" "$verb" --json
done
verb=--status
is 'where they are null' [ "$(members gpus.0.command gpus.0.name gpus.0.user queue.0.command)" = \
	'null null root null ' ]
verb=--history
is 'also in the history' [ "$(members jobs.0.command jobs.0.name)" = 'null null ' ]
seen=$(sees -n 1 -I true)
is 'nor to who waits' like '*not available at once*' "$seen"
is 'with no name in it' sh -c 'case $1 in *topsecret*) exit 1 ;; esac' - "$seen"
is 'root sees all' like '*topsecret*' "$(with --status)"
conf 'show-commands = all'
is 'with all everybody does' like '*topsecret*' "$(sees --status)"
release_all secret queued
fresh
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
conf 'show-commands = own'
as_nobody env GPULEASE_DIR="$GPULEASE_DIR" "$S/gpulease" --config "$conf" --name topsecret-own \
	-- sh -c 'sleep 1000' >/dev/null 2>&1 &
started="$started $!"
is 'root sees what others run' wait_until "with --status | grep -q topsecret"
is 'and each their own' like '*topsecret-own*' "$(sees --status)"
end_all
fresh
sleep 1000 &
outside=$!
started="$started $outside"
echo "0 $outside 5000" >"$FAKE_SMI_DIR/procs"
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
seen=$(sees -n 2 -I true)
is 'of a process outside only whose it is' like "*by pid $outside (root)*" "$seen"
finish
