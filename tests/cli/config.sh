#!/bin/sh
# The configuration: its errors and their messages, --show-config, the sample, and that every value
# takes effect.
# shellcheck disable=SC2015,SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
conf=$S/x.conf
sample=$CLI/../../gpulease/packaging/gpulease.conf
escape=$(printf '\033')

# conf LINE…: writes the configuration that is in force from now on
conf() {
	printf '%s\n' "$@" >"$conf"
	chmod 0644 "$conf"
}

# with OPTION…: gpulease with that configuration
with() {
	"$GPULEASE" --config "$conf" "$@"
}

# member PATH…: prints the values of these members of --show-config --json
member() {
	with --show-config --json | "$TOOLS/jsoncheck" "$@"
}

# --- errors ------------------------------------------------------------------------------

fresh
refused() {
	run "wrong configuration: $1" 125 '' "gpulease: $2" with --show-config
}
conf '# one' 'idle-treshold = 5%'
refused 'an unknown key: file, line, key, and the nearest key' \
	"$conf, line 2: unknown key 'idle-treshold'; is it idle-threshold, idle-after, idle-end, idle-below, idle-interval[?] see gpulease.conf(5)"
run '--status refuses a wrong configuration' 125 '' "gpulease: $conf, line 2: *" with --status
run 'a job refuses a wrong configuration' 125 '' "gpulease: $conf, line 2: *" with true
conf '' '' 'max-waiting = lots'
refused 'a bad value: file, line, key, what is allowed' \
	"$conf, line 3: max-waiting: 'lots' is not a number; write 1 to 1000000, or none"
conf 'margin = 1G' 'margin = 1G'
refused 'a key twice' "$conf, line 2: margin: is set twice, *line 1*"
conf 'user-gpus = 0'
refused 'a limit of 0 that no job could keep' \
	"$conf, line 1: user-gpus: '0' is out of range; write 1 to *"
conf 'max-time = 1h' '' 'default-time = 2h'
refused 'times that contradict each other' \
	"$conf, line 3: default-time: is longer than max-time, which is 1h"
conf 'sample-interval = 100ms'
refused 'an interval in which nvidia-smi hardly answers' \
	"$conf, line 1: sample-interval: '100ms' is out of range; write 1s to 1h"
conf 'max-priority = -1'
refused 'a priority below the default' "$conf, line 1: max-priority: '-1' is not a number; *"
conf 'prefer = 3-0'
refused 'a bad list of GPUs' "$conf, line 1: prefer: '3-0' is not a list of GPUs; write *"
conf 'engine = pbs'
refused 'an unknown engine' "$conf, line 1: engine: 'pbs' is not a choice; write local or slurm"
conf 'bind = on'
refused 'an unknown choice' "$conf, line 1: bind: 'on' is not a choice; write no or yes"
conf 'model-option = llm'
refused 'an option without dashes' "$conf, line 1: model-option: 'llm' is not an option; *"
conf '[gpus]'
refused 'an unknown section' "$conf, line 1: unknown section '[[]gpus]'; there may be one *"
conf '[models]' 'qwen = 0.5' 'llama = lots'
refused 'a bad need of a model' "$conf, line 3: llama: 'lots' is not a number of GPUs; *"
run 'a job refuses a bad need of a model' 125 '' "gpulease: $conf, line 3: llama: *" with true
conf '[models]' 'qwen = 0.5' 'user-gpus = 2'
refused 'a setting among the models' \
	"$conf, line 3: user-gpus: is a key, not a model; write keys above [[]models]"
conf '[models]' 'qwen = 0.5' 'llama = 1' 'qwen = 1'
refused 'a model twice' "$conf, line 4: 'qwen' is set twice, also in line 2; remove one"
conf '[models]' 'qwen 0.5'
refused 'a line that names no need' "$conf, line 2: 'qwen 0.5' is not a model; write NAME = NEED"
conf "margin = ${escape}[2J"
refused 'escape sequences are made harmless' "$conf, line 1: margin: '?[[]2J' is not a size; *"
conf 'margin = 1G'
chmod 0666 "$conf"
refused 'a configuration that other users may write to' \
	"cannot use configuration '$conf': others may write to it; chmod go-w"
rm "$conf"
refused 'a configuration that does not exist' "cannot open configuration '$conf': *"
mkfifo "$conf"
refused 'a FIFO is refused without a wait' "cannot use *: it is not a regular file"
rm "$conf"
head -c 70000 /dev/zero | tr '\0' '#' >"$conf"
refused 'a configuration that is too big' "cannot use *: it is bigger than 64 KiB"
conf 'settle-time = 7s'
run 'GPULEASE_CONFIG names a configuration' 0 "settle-time = 7s *# $conf, line 1*" '' \
	sh -c 'GPULEASE_CONFIG=$1 "$GPULEASE" --show-config | grep ^settle-time' sh "$conf"
run '--config goes before GPULEASE_CONFIG' 0 "settle-time = 7s *# $conf, line 1*" '' \
	sh -c 'GPULEASE_CONFIG=/proc/none "$GPULEASE" --config "$1" --show-config |
		grep ^settle-time' sh "$conf"
run 'an empty GPULEASE_CONFIG names none' 0 '' '' env GPULEASE_CONFIG= "$GPULEASE" -n 0 true
run 'a file of GPULEASE_CONFIG that does not exist is refused' 125 '' \
	"gpulease: cannot open configuration '/proc/none': *" env GPULEASE_CONFIG=/proc/none \
	"$GPULEASE" -n 0 true

# --- --show-config -----------------------------------------------------------------------

conf 'idle-threshold = 5% # of 80 GiB' '' 'admin-group = staff'
try with --show-config
is '--show-config succeeds' [ "$rc" -eq 0 ]
shows() {
	is "$1" grep -qx "$2" "$S/out"
}
shows '--show-config shows a default' 'settle-time = 1m  *# default'
shows '--show-config shows a value of the file with its line' \
	"idle-threshold = 5%  *# $conf, line 1"
shows '--show-config shows a second value of the file with its line' \
	"admin-group = staff  *# $conf, line 3"
shows '--show-config shows where the directory comes from' "directory = $S/dir  *# GPULEASE_DIR"
shows '--show-config shows the nvidia-smi that was found' \
	'# nvidia-smi = .*/nvidia-smi  *# found in PATH'
# the comments after the two long paths stand further to the right
is '--show-config aligns its comments' [ "$(sed -n 's/ # [^#]*$//p' "$S/out" |
	awk '{ print length }' | sort | uniq -c | sort -rn | awk '{ print $1; exit }')" -ge 11 ]
cp "$S/out" "$S/shown.conf"
"$GPULEASE" --config "$S/shown.conf" --show-config | sed 's/ *# .*//' >"$S/again"
sed 's/ *# .*//' "$S/shown.conf" | cmp -s - "$S/again" &&
	ok 'the output of --show-config is a configuration of the same meaning' ||
	not_ok 'the output of --show-config is a configuration of the same meaning' \
		"$(cat "$S/again")"
try with --dir "$S/no such" --show-config
shows '--show-config needs no state directory' "directory = $S/no such  *# --dir"
is '--show-config makes no state directory' [ ! -e "$S/no such" ]
try with --dir "a#b" --show-config
shows '--show-config comments out a value that no file can have' "# directory = .*/a#b  *# --dir"
try with --dir "/a${escape}b" --show-config
shows '--show-config prints no escape sequence' "# directory = /a?b  *# --dir"
try env GPULEASE_DIR= "$GPULEASE" --config "$conf" --show-config
shows '--show-config shows the default directory' 'directory = /var/lib/gpulease  *# default'
try env PATH=/usr/bin:/bin "$GPULEASE" --config "$conf" --show-config
grep -q 'nvidia-smi = ' "$S/out" || shows '--show-config shows that no nvidia-smi was found' '# nvidia-smi =  *# not found in PATH'
echo 'engine = slurm' >"$S/engine.conf"
try "$GPULEASE" --config "$S/engine.conf" --show-config
shows '--show-config shows the engine, also if it is not this machine' \
	"engine = slurm  *# $S/engine.conf, line 1"
try env GPULEASE_SIM=2 "$GPULEASE" --config "$conf" --show-config
shows '--show-config shows simulated GPUs' '# --sim: .*'
for each in '--sim 2' 'GPULEASE_SIM=2'; do
	case $each in
	--sim*) set -- env -u GPULEASE_SIM "$GPULEASE" --sim 2 ;;
	*) set -- env "$each" "$GPULEASE" ;;
	esac
	for verb in --status '-n 0 true'; do
		# shellcheck disable=SC2086 # words
		run "--dir with $each is refused: $verb" 125 '' \
			'gpulease: simulated GPUs have a directory of their own; leave out --dir*' \
			"$@" --dir "$S" $verb
	done
done
is '--show-config --json has the values' [ \
	"$(member config.idle-threshold.value config.linger-time.value |
	tr '\n' ' ')" = '5% 1m ' ]
is '--show-config --json has the sources of the values' [ \
	"$(member config.idle-threshold.source config.linger-time.source file)" = \
	"$conf, line 1
default
$conf" ]
is 'models_line is null without a table of models' [ "$(member models_line)" = null ]
conf 'margin = 1G' '' '[models] # of all' 'a = 0.5  # half' '' 'default = 18G'
try with --show-config
is '--show-config shows the table of models at the end' [ \
	"$(sed -n '/^\[models\]/,$p' "$S/out")" = \
	"[models]
a = 0.5
default = 18G" ]
is 'models_line is the line where the table of models begins' [ "$(member models_line)" = 4 ]
conf '# nothing'
is '--show-config --json has null for a key without a value' [ \
	"$(member config.admin-group.value)" = null ]

# --- the sample --------------------------------------------------------------------------

cp "$sample" "$conf"
try with --show-config
is 'the sample sets record-ends alone' [ "$rc $(grep "$conf" "$S/out" | cut -d ' ' -f 1-3)" = \
	'0 record-ends = yes' ]
sed 's/^#\([a-z[]\)/\1/' "$sample" >"$conf"
try with --show-config
is 'every key of the sample can be set' [ "$rc" -eq 0 ]
is 'the models of the sample are in force' grep -qx 'llama-3.1-8b = 18G' "$S/out"
sed -n '/^\[models\]\|^# what binds you/q; s/^#\{0,1\} \{0,1\}\([a-z-]* =\).*/\1/p' "$S/out" | sort >"$S/keys"
sed -n '/^#\[models\]/q; s/^#\{0,1\}\([a-z-]* =\).*/\1/p' "$sample" | sort | cmp -s "$S/keys" - &&
	ok 'the sample has every key' || not_ok 'the sample has every key' "$(cat "$S/keys")"
sed -n 's/^\([a-z-]* = .*[^ ]\) *# .*/\1/p' "$S/out" |
	grep -v -e ^directory -e ^nvidia-smi -e ^admin-group -e ^prefer -e ^record-ends | sort >"$S/uncommented"
conf ''
with --show-config | sed -n 's/^\([a-z-]* = .*[^ ]\) *# default$/\1/p' | grep -v ^record-ends | sort |
	cmp -s "$S/uncommented" - &&
	ok 'the sample has the default of every key' || not_ok \
		'the sample has the default of every key' "$(cat "$S/uncommented")"
is 'the sample has the default of the directory' grep -qx '#directory = /var/lib/gpulease' \
	"$sample"

# --- what counts as used -----------------------------------------------------------------

fresh
echo 3000 >"$FAKE_SMI_DIR/base.0"
conf 'idle-threshold = 2999'
run 'idle-threshold: memory over it is use' 0 '1' '' with --max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'idle-threshold = 3000MiB'
run 'idle-threshold: memory up to it is no use' 0 '0,1' '' with -n 2 --max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'idle-threshold = 4%' # of 81559: 3262
run 'idle-threshold: a percentage is of the GPU'"'"'s memory' 0 '0,1' '' with -n 2 \
	--max-wait 10s sh -c 'echo $CUDA_VISIBLE_DEVICES'
fresh
echo 3000 >"$FAKE_SMI_DIR/base.0"
conf 'idle-threshold = 3%'
run 'idle-threshold: memory over the percentage is use' 124 '' \
	'*GPU 0 is used outside gpulease*' with -n 2 -I true
is '--status shows the use outside gpulease' wait_until 'like "*external*" "$(with --status)"'

fresh
echo 30 >"$FAKE_SMI_DIR/util.0"
conf 'busy-utilization = off'
run 'busy-utilization: off makes no GPU busy' 0 '0,1' '' with -n 2 --max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
conf 'busy-utilization = 31%'
run 'busy-utilization: a GPU below it is idle' 0 '0,1' '' with -n 2 --max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
fresh
echo 30 >"$FAKE_SMI_DIR/util.0"
conf 'busy-utilization = 30%'
run 'busy-utilization: a GPU that reaches it is used' 124 '' \
	'*GPU 0 is used outside gpulease *, its utilization is 30%' with -n 2 -I true
run 'busy-utilization: a used GPU is avoided' 0 '1' '' with --max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
rm "$FAKE_SMI_DIR/util.0"
holder busy --config "$conf" -n 2
echo 100 >"$FAKE_SMI_DIR/util.0"
is 'busy-utilization: a leased GPU may reach it' [ "$(with --status --json |
	"$TOOLS/jsoncheck" gpus.0.state gpus.1.state | tr '\n' ' ')" = 'leased leased ' ]
release_all busy
fresh
echo '[N/A]' >"$FAKE_SMI_DIR/util.0"
run 'busy-utilization: an unknown utilization does not count' 0 '0,1' '' with -n 2 \
	--max-wait 10s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'

# settles: the job `after` waits for memory that the ended job `before` has left in use
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
is 'settle-time: 0, and no GPU counts as just released' sh -c '! grep -q "just released" "$1"' \
	- "$S/after.err"
conf 'settle-time = 1h'
settles
is 'settle-time: long, and it settles' wait_until "grep -q 'just released' '$S/after.err'"
rm "$FAKE_SMI_DIR/base.0"
is 'settle-time: the next job starts when the memory is free' wait_until 'runs after'
release_all after

# --- lingering ---------------------------------------------------------------------------

fresh
conf 'linger-time = 1s'
# the child of the command inherits the FIFO and holds it
with -n 2 -- sh -c 'sleep 1000 & echo $!' >"$S/heir"
started="$started $(cat "$S/heir")"
begin heirs --config "$conf" -n 2
is 'linger-time: a process left behind keeps its GPUs only so long' wait_until 'runs heirs'
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
run 'nvidia-smi: the configured program is run' 125 '' '*NVIDIA-SMI has failed: no*' with true

# --- the directory -----------------------------------------------------------------------

fresh
conf "directory = $S/other"
mkdir -m 0700 "$S/other"
run 'directory: a job starts in the configured directory' 0 '*' '*' env GPULEASE_DIR= \
	"$GPULEASE" \
	--config "$conf" true
is 'directory: the tickets are in the configured directory' [ -e "$S/other/tickets" ]

# --- what others may see -----------------------------------------------------------------

# as_nobody COMMAND…
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
}

sees() {
	as_nobody "$GPULEASE" --config "$conf" "$@" 2>&1
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

# members PATH…: what another user sees at these members of the JSON of $verb
members() {
	as_nobody "$GPULEASE" --config "$conf" "$verb" --json 2>/dev/null |
		"$TOOLS/jsoncheck" "$@" | tr '\n' ' '
}

if ! others_can_run; then
	skip 'show-commands: own' "$others_why"
	finish
fi
fresh
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
conf 'show-commands = own'
run 'show-commands: a job of root ends' 0 '' '' with --name topsecret-name sh -c ': topsecret'
holder secret --config "$conf" -n 2 --name topsecret-name
waiter queued --config "$conf" -n 2 --name topsecret-other
hidden 'show-commands: --status hides the commands of other users' --status
hidden 'show-commands: --queue hides the commands of other users' --queue
hidden 'show-commands: --history hides the commands of other users' --history
for verb in --status --queue --history; do
	hidden "show-commands: $verb --json hides the commands of other users" "$verb" --json
done
# the job that has ended, the one that runs and the one that waits
hidden 'show-commands: --status ID hides the commands of other users' --status 1 2 3
hidden 'show-commands: --status ID --json hides the commands of other users' --status 1 2 3 --json
is 'and where their output goes' [ -z "$(sees --status 1 2 3 | grep '^log')" ]
mkdir -p "$S/nobody/gpulease/logs" && : >"$S/nobody/gpulease/logs/2.log"
chown -R 65534 "$S/nobody"
is 'a log of their own with that id is none of the job' [ -z "$(XDG_STATE_HOME="$S/nobody" sees --status 2 | grep '^log')" ]
is 'root sees where it goes' like "*log        $S/secret.out*" "$(with --status 2)"
verb=--status
is 'show-commands: --status --json has null for a hidden command' [ \
	"$(members gpus.0.command gpus.0.name gpus.0.user queue.0.command)" = \
	'null null root null ' ]
verb=--history
is 'show-commands: --history --json has null for a hidden command' [ \
	"$(members jobs.0.command jobs.0.name)" = 'null null ' ]
seen=$(sees -n 1 -I true)
is 'a job of another user is not available at once' like '*not available at once*' "$seen"
is 'show-commands: the reason for waiting hides the name of the job' \
	sh -c 'case $1 in *topsecret*) exit 1 ;; esac' - "$seen"
is 'show-commands: root sees all commands' like '*topsecret*' "$(with --status)"
conf 'show-commands = all'
is 'show-commands: all shows the commands to every user' like '*topsecret*' "$(sees --status)"
release_all secret queued
fresh
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
conf 'show-commands = own'
as_nobody env GPULEASE_DIR="$GPULEASE_DIR" "$GPULEASE" --config "$conf" --name topsecret-own \
	-- sh -c 'sleep 1000' >/dev/null 2>&1 &
started="$started $!"
is 'show-commands: root sees the commands of another user' wait_until \
	"with --status | grep -q topsecret"
is 'show-commands: a user sees their own commands' like '*topsecret-own*' "$(sees --status)"
end_all
fresh
sleep 1000 &
outside=$!
started="$started $outside"
echo "0 $outside 5000" >"$FAKE_SMI_DIR/procs"
chgrp 65534 "$GPULEASE_DIR" && chmod 2770 "$GPULEASE_DIR"
chmod 0755 "$FAKE_SMI_DIR"
seen=$(sees -n 2 -I true)
is 'show-commands: a process outside gpulease is shown with its owner only' like \
	"*by pid $outside (root)*" "$seen"
finish
