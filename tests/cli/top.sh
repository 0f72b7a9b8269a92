#!/bin/sh
# gpulease --top: one frame without a terminal; with one, the screen, the keys, and the terminal
# afterwards, however the program ends.
# shellcheck disable=SC2016 # steps that another shell expands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

view=${GPULEASE%/*}/gpulease-view
[ -x "$view" ] || view=${GPULEASE%/*}/../lib/gpulease/gpulease-view
scratch
mkdir "$S/bin"
install -m 0755 "$GPULEASE" "$view" "$S/bin" || bail 'gpulease-view is not built'
GPULEASE=$S/bin/gpulease
export TERM=xterm-256color LC_ALL=C.UTF-8
unset NO_COLOR
# a server of the script's own
export TMUX_TMPDIR="$S" SHELL=/bin/sh
unset TMUX STY

python=
for each in python3 /usr/bin/python3; do # one of another place may lack the packages of Debian
	"$each" -c 'import pyte' 2>/dev/null && python=$each && break
done

# screen TEXT COLUMNS ROWS STEP… -- COMMAND…: a result; tests/tools/screen.py describes the steps.
screen() {
	screen_text=$1
	shift
	if [ -z "$python" ]; then
		skip "$screen_text" 'python3-pyte is not installed'
	else
		run "$screen_text" 0 '' '' "$python" "$CLI/../tools/screen.py" "$@"
	fi
}

# fits WIDTH: whether no line of $S/out is wider; dots and bars count as one
fits() {
	sed 's/[█░▁▂▃▄▅▆▇…]/./g' "$S/out" | awk -v most="$1" 'length > most { exit 1 }'
}

is_ascii() {
	! LC_ALL=C grep -q '[^ -~]' "$S/out"
}

# --- one frame -----------------------------------------------------------------------------

holder a -n 2 --name llama-sft -t 4h
holder b --name eval
# a job that prints a line, and one whose command has sequences for the terminal
talks() {
	talks=$("$GPULEASE" --submit --name talks -- sh -c 'echo "the $1 line"; exec sleep 1000' sh "${1:-first}")
	wait_until '"$GPULEASE" --log "$talks" | grep -q line'
}
talks
try "$GPULEASE" --submit --name evil -- sh -c 'sleep 1000' "$(printf 'a\033]0;evil\007\033[2Jb\302\233c\342\200\256')"
wait_until '"$GPULEASE" --status --json | grep -q "\"leases\".*evil\|\"name\": \"evil\""'
waiter c -n 8 --name gnn
a=$(id_of a) b=$(id_of b) c=$(ticket_of c)
user=$(id -un)
esc=$(printf '\033')

run 'without a terminal one frame is printed' 0 "*8 GPUs: 5 leased 3 idle*1 wait*llama-sft*eval*gnn*" '' \
	"$GPULEASE" --top
is 'it has no colours' [ "${out#*"$esc"}" = "$out" ]
is 'nor a line of keys' [ "${out#*choose*}" = "$out" ]
for width in 60 80 140; do
	COLUMNS=$width try "$GPULEASE" --top
	is "it fits into COLUMNS=$width" fits $width
done
COLUMNS=59 run 'in 59 columns one line says what is needed' 0 '*60*' '' "$GPULEASE" --top
is 'that is one line' [ "$(wc -l <"$S/out")" -eq 1 ]
LC_ALL=C run 'in the locale C a frame is printed' 0 '*llama-sft*' '' "$GPULEASE" --top
is 'it is ASCII' is_ascii
TERM=dumb run 'on a terminal that knows no sequences, too' 0 '*llama-sft*' '' \
	timeout "$DEADLINE" "$TOOLS/onterminal" 80 "$GPULEASE" --top
is 'it has no colours, either' [ "${out#*"$esc"}" = "$out" ]
run 'another user has no jobs' 0 '*' '' "$GPULEASE" --top --user no-such-user
is 'so none of them is named' [ "${out#*llama*}" = "$out" ]

for each in 0 49ms; do
	run "--interval $each is refused" 125 '' 'gpulease: --interval: *50ms*' "$GPULEASE" --top --interval $each
done
run 'a word that --top does not know is refused' 125 '' "gpulease: --top: 'loo' is not look" "$GPULEASE" --top=loo
run '--top=look is completed' 0 'look*' '' "$GPULEASE" --complete -- --top=
run 'a host that would be an option is refused' 125 '' 'gpulease: --host: *' "$GPULEASE" --top --host=-oProxyCommand=x

# --- the screen ----------------------------------------------------------------------------

keys='*up/dn choose*? q*'
screen 'the screen has the right rows in 80x24' 80 24 'see:llama-sft' \
	'row:1: gpulease on *8 GPUs: 5 leased 3 idle*1 wait*' "last:$keys" fits type:q end:0 usual \
	-- "$GPULEASE" --top
screen 'and in 140x40' 140 40 'see:llama-sft' 'see:UTIL 5 MINUTES' "last:$keys" fits type:q end:0 usual \
	-- "$GPULEASE" --top
screen '59x9 says what is needed, and then has room' 59 9 'see:60' fits size:80x24 'see:llama-sft' \
	"last:$keys" fits size:59x9 'lose:llama-sft' 'see:60' fits type:q end:0 usual -- "$GPULEASE" --top
screen 'a terminal that becomes smaller within a frame' 140 40 'see:llama-sft' size-within:80x24 \
	'row:1: gpulease on *8 GPUs*' "last:$keys" fits type:q end:0 usual -- "$GPULEASE" --top
screen 'a terminal that becomes larger within a frame' 80 24 'see:llama-sft' size-within:140x40 \
	'see:UTIL 5 MINUTES' "last:$keys" fits type:q end:0 usual -- "$GPULEASE" --top
screen 'a frame has colours' 80 24 'see:llama-sft' 'raw:\x1b[32m' type:q end:0 -- "$GPULEASE" --top
NO_COLOR=1 screen 'NO_COLOR: it has none' 80 24 'see:llama-sft' 'noraw:\x1b[32m' type:q end:0 -- "$GPULEASE" --top
LC_ALL=C screen 'in the locale C the screen is ASCII' 80 24 'see:llama-sft' 'see:.....' ascii type:q end:0 usual \
	-- "$GPULEASE" --top

screen 'text of a command never reaches the terminal raw' 140 40 'see:?]0;evil??[2Jb' \
	'noraw:\x1b]' 'noraw:\u202e' 'noraw:\x9b' 'type:jjjjj' 'see:?]0;evil??[2Jb' 'noraw:\x1b]' type:q end:0 \
	-- "$GPULEASE" --top

# --- keys ------------------------------------------------------------------------------------

screen 'a key asks for a job if none is chosen' 80 24 'see:llama-sft' type:f 'last:choose a job*' type:c \
	'last:choose a job*' type:a 'last:choose a job*' type:u "last:$keys" type:q end:0 -- "$GPULEASE" --top
screen 'arrows, j and k choose a job' 80 24 'see:llama-sft' type:jc "last:cancel job $a of $user (llama-sft)[?] y/n" \
	type:n "last:$keys" 'type:\e[Bc' "last:cancel job $b of *" type:n "last:$keys" \
	type:jjjjjc "last:cancel job $c of *" 'type:\e' "last:$keys" 'type:kkk\e[Ac' "last:cancel job $a of *" type:n \
	"last:$keys" type:q end:0 usual -- "$GPULEASE" --top
screen 't shows times of day' 80 24 'see:LEFT' type:t 'see:ENDS' type:t 'see:LEFT' type:q end:0 -- "$GPULEASE" --top
screen '? shows the keys, and q leaves them' 80 24 'see:llama-sft' 'type:?' 'lose:llama-sft' type:q \
	'see:llama-sft' type:q end:0 -- "$GPULEASE" --top
screen 'h without --host says how' 80 24 'see:llama-sft' type:h 'last:*--top --host a,b*' type:q end:0 \
	-- "$GPULEASE" --top
screen '--top=look acts on no job' 80 24 'see:llama-sft' type:jc 'last:*look*' type:a 'last:*look*' \
	type:q end:0 -- "$GPULEASE" --top=look

screen 'f follows the job on the whole terminal, until Ctrl-C' 80 24 'see:talks' type:jjjf \
	'see:the first line' usual 'type:^C' "last:$keys" type:q end:0 usual -- "$GPULEASE" --top
screen 'Ctrl-Z while it follows stops both, and fg goes on' 80 24 'see:talks' type:jjjf \
	'see:the first line' 'type:^Z' stopped usual fg 'type:^C' "last:$keys" 'see:talks' type:q end:0 usual \
	-- "$GPULEASE" --top
screen 'TERM while it follows ends both' 80 24 'see:talks' type:jjjf 'see:the first line' kill:TERM end:TERM usual \
	-- "$GPULEASE" --top
screen 'the log of the chosen job is on a wide screen' 140 40 'see:talks' type:jjj 'see:the first line' \
	type:k 'lose:the first line' type:q end:0 -- "$GPULEASE" --top
screen 'a job without a log cannot be followed, and the reason stays' 80 24 'see:llama-sft' type:jf \
	'see:press Enter' 'type:^M' "last:$keys" type:q end:0 usual -- "$GPULEASE" --top
screen 'a job without a session cannot be entered' 80 24 'see:llama-sft' type:ja \
	'see:press Enter' 'type:^M' "last:$keys" type:q end:0 usual -- "$GPULEASE" --top
if ! command -v tmux >/dev/null 2>&1; then
	skip 'a enters the session of the job, and its detach key returns' 'tmux is not installed'
else
	at_exit 'tmux kill-server 2>/dev/null'
	"$GPULEASE" --screen -n 0 --name session -- sh -c 'echo "in the $1"; exec sleep 1000' sh session >"$S/session"
	screen 'a enters the session of the job, and its detach key returns' 80 24 "see:session " 'type:\e[Fka' \
		'see:in the session' 'see:[gpulease' 'type:^Bd' "last:$keys" type:q end:0 usual -- "$GPULEASE" --top
	"$GPULEASE" --cancel "$(cat "$S/session")" --yes
fi
screen 'c and n cancel nothing' 80 24 'see:talks' type:jjjc 'last:cancel job *' type:n "last:$keys" type:q end:0 \
	do:"'$GPULEASE' --status --json | grep -q '\"ticket\": $talks,'" -- "$GPULEASE" --top
screen 'c and y cancel the job' 80 24 'see:talks' type:jjjc "last:cancel job $talks of $user (talks)[?] y/n" \
	type:y "last:job $talks is cancelled*" "see:$talks $user talks cancelled" type:q end:0 usual \
	-- "$GPULEASE" --top
"$GPULEASE" --cancel "$talks" --yes >/dev/null 2>&1

# --- ends ------------------------------------------------------------------------------------

signals='INT TERM HUP QUIT KILL SEGV'
is_sanitized "$view" && signals=${signals% *} # sanitizers catch it
for each in $signals; do
	screen "after $each the terminal is as before" 80 24 'see:llama-sft' "kill:$each" "end:$each" usual \
		-- "$GPULEASE" --top
done
screen 'also after a KILL that the shell sees before the guard of the terminal' 80 24 'see:llama-sft' late:KILL \
	end:KILL usual -- "$GPULEASE" --top
screen 'after Ctrl-C, too' 80 24 'see:llama-sft' 'type:^C' end:INT usual -- "$GPULEASE" --top
screen 'Ctrl-Z gives the terminal back, and fg draws the screen again' 80 24 'see:llama-sft' 'type:^Z' stopped \
	usual fg "last:$keys" 'see:llama-sft' type:q end:0 usual -- "$GPULEASE" --top
screen 'after STOP, fg and q the terminal is as before' 80 24 'see:llama-sft' kill:STOP stopped fg "last:$keys" \
	type:q end:0 usual -- "$GPULEASE" --top
screen 'a terminal that takes no output holds up no signal' 80 24 'see:llama-sft' deaf:TERM end:TERM usual \
	-- "$GPULEASE" --top
screen 'nor a KILL' 80 24 'see:llama-sft' deaf:KILL end:KILL usual -- "$GPULEASE" --top
if is_sanitized "$view"; then
	skip 'keys and frames use no more memory' 'sanitizers keep what is freed'
else
	screen 'keys and frames use no more memory' 140 40 'see:llama-sft' 'keep:1000:?' type:q end:0 \
		-- "$GPULEASE" --top --interval 50ms
fi

# --- a gpulease that fails ---------------------------------------------------------------------
#
# The one beside this gpulease-view does what $S/fake/how says.

mkdir "$S/fake"
cp "$S/bin/gpulease-view" "$S/fake"
cat >"$S/fake/gpulease" <<END
#!/bin/sh
how=\$(cat "$S/fake/how")
case \$* in
*--cancel*) how=\${how#cancel-} ;;
*) how=\${how##cancel-*} ;;
esac
case \$how in
kill) kill -KILL \$\$ ;;
slow)
	sleep 1
	exec "$GPULEASE" "\$@"
	;;
slow-log)
	case \$* in
	*--status\ [0-9]*)
		echo \$\$ >>"$S/fake/pid"
		read -r _ <"$S/fake/go"
		;;
	esac
	exec "$GPULEASE" "\$@"
	;;
hang)
	echo \$\$ >"$S/fake/pid"
	exec sleep 1000
	;;
half) echo '{ "format": "gpulease-status/1", "gpus": [' ;;
fail)
	printf 'gpulease: it is \\033[2Jbroken\\n' >&2
	exit 125
	;;
*) exec "$GPULEASE" "\$@" ;;
esac
END
chmod +x "$S/fake/gpulease"
fake() {
	echo "$1" >"$S/fake/how"
}
top="$S/fake/gpulease-view view gpulease --top"
fake ''
# shellcheck disable=SC2086 # words
run 'the view runs the gpulease beside it' 0 '*llama-sft*' '' $top
fake fail
# shellcheck disable=SC2086
run 'without a terminal the reason is printed' 125 '' 'gpulease: it is ?\[2Jbroken' $top

fake slow
# shellcheck disable=SC2086
(try $top && times >"$S/times")
# hundredths of a second of all that ran for the frame
is 'one frame uses no processor while it waits' [ "$(tail -n 1 "$S/times" | tr 'ms' '  ' |
	awk '{ print int(100 * (60 * ($1 + $3) + $2 + $4)) }')" -lt 30 ]

for each in 'kill:signal 9' 'half:cannot be read' 'fail:it is ?[2Jbroken'; do
	fake ''
	# shellcheck disable=SC2086
	screen "a gpulease that does this: ${each%%:*}; what is known stays" 80 24 'see:llama-sft' \
		"do:echo ${each%%:*} >'$S/fake/how'" "see:${each#*:}" 'see:llama-sft' "last:$keys" \
		"do:echo >'$S/fake/how'" "lose:${each#*:}" 'see:llama-sft' type:q end:0 usual \
		-- $top --interval 100ms
done
fake ''
rm -f "$S/fake/pid"
# shellcheck disable=SC2086
screen 'a gpulease that hangs holds up no key, and is ended' 80 24 'see:llama-sft' \
	"do:echo hang >'$S/fake/how'" "until:[ -s '$S/fake/pid' ]" type:jc 'last:cancel job *' type:n \
	type:q end:0 usual "until:! kill -0 \$(cat '$S/fake/pid') 2>&-" -- $top --interval 100ms
rm -f "$S/fake/pid"
fake hang
# shellcheck disable=SC2086
screen 'also before the first answer' 80 24 "until:[ -s '$S/fake/pid' ]" 'see:no answer yet' type:q end:0 usual \
	"until:! kill -0 \$(cat '$S/fake/pid') 2>&-" -- $top
fake cancel-fail
# shellcheck disable=SC2086
screen 'the last line says why a job is not cancelled' 80 24 'see:llama-sft' type:jcy \
	'last:*it is [?][[]2Jbroken*' 'see:llama-sft' type:q end:0 usual -- $top
fake cancel-hang
# shellcheck disable=SC2086
screen 'a cancellation that hangs holds up no key' 80 24 'see:llama-sft' type:jcy 'last:cancelling*' type:jc \
	'last:another job*' type:q end:0 usual -- $top

# --- other machines ----------------------------------------------------------------------------

mkdir "$S/ssh"
cat >"$S/ssh/ssh" <<END
#!/bin/sh
echo "\$*" >>"$S/ssh/calls"
while [ "\$1" != -- ]; do
	shift
done
case \$2 in
down)
	echo 'ssh: connect to host down port 22: Connection refused' >&2
	exit 255
	;;
slow) exec sleep 1000 ;;
esac
echo 'Welcome to this machine'
PATH=$S/bin:\$PATH
exec sh -c "\$3"
END
chmod +x "$S/ssh/ssh"
PATH=$S/ssh:$PATH
run '--host shows what gpulease says on another machine' 0 '* lab1 *llama-sft*' '' "$GPULEASE" --top --host lab1
run 'a host that cannot be asked says why, and the status is 1' 1 '*Connection refused*' '' "$GPULEASE" --top --host down
run 'one frame is of the first machine; what is wrong with another one goes to stderr' 1 \
	'* lab1 *llama-sft*' 'gpulease: down: ssh: *Connection refused' "$GPULEASE" --top --host lab1,down
screen 'h lists the machines, and Enter shows one' 80 24 'see:llama-sft' type:h 'see:ssh: connect to host down' 'type:j^M' \
	'row:1: gpulease on down *' 'lose:llama-sft' type:h 'type:k^M' 'see:llama-sft' type:q end:0 usual \
	-- "$GPULEASE" --top --host lab1,down,slow
screen 'a job is cancelled on its machine' 80 24 'see:llama-sft' type:jjc "last:cancel job $b of *" \
	type:y "last:job $b is cancelled*" type:q end:0 -- "$GPULEASE" --top --host lab1,slow
[ -z "$python" ] || is 'that was done by ssh' grep -q -e "lab1 gpulease --cancel $b --yes" "$S/ssh/calls"
"$GPULEASE" --cancel "$c" --yes # so that a job starts again
talks
screen 'f follows on the other machine' 80 24 'see:talks' type:jjf 'see:the first line' usual 'type:^C' \
	"last:$keys" type:q end:0 usual -- "$GPULEASE" --top --host lab1
"$GPULEASE" --cancel "$talks" --yes

# --- the log of the chosen job ---------------------------------------------------------------------

talks
first=$talks
talks second
fake slow-log
mkfifo "$S/fake/go"
rm -f "$S/fake/pid"
# shellcheck disable=SC2086
screen 'the log is that of the chosen job, also if another one was chosen while gpulease was asked' 140 40 \
	see:talks type:jjj "until:[ -s '$S/fake/pid' ]" type:kc "last:cancel job $first of *" type:n "do:echo >'$S/fake/go'" \
	"until:[ \$(wc -l <'$S/fake/pid') -eq 2 ]" "do:echo >'$S/fake/go'" 'see:the first line' \
	'lose:the second line' type:q end:0 -- $top
"$GPULEASE" --cancel "$first" "$talks" --yes

# --- the GPU hours of today ------------------------------------------------------------------------

with_driver
fresh
now=$(date +%s)
hour=$(date -u +%H)
"$TOOLS/tellend" "$S/dir" -n 300 ticket=1000 uid=7 user=dave gpus=0 count=1 since=$(((now - 240) * 1000)) \
	alive=$((now * 1000)) gone=$((now * 1000)) status=0
# in a zone in which it is noon
COLUMNS=140 TZ=X$((${hour#0} - 12)) run 'one frame counts all ends of today' 0 '*GPU hours:  dave 20.0*' '' \
	"$GPULEASE" --top

# --- probes --------------------------------------------------------------------------------------

fresh
read -r begun _ </proc/uptime
for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	"$TOOLS/onterminal" 80 "$GPULEASE" --top >/dev/null 2>&1 </dev/null &
	started="$started $!"
done
is '20 viewers see new answers' wait_until '[ "$(grep -c gpus "$FAKE_SMI_DIR/count")" -ge 3 ]'
calls=$(grep -c gpus "$FAKE_SMI_DIR/count")
read -r now _ </proc/uptime
is '20 viewers cause at most one probe in 2 s' [ "$calls" -le $(((${now%.*} - ${begun%.*} + 1) / 2 + 1)) ]

finish
