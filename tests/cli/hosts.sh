#!/bin/sh
# --host with --status, --queue, --history and --timeline: what several machines say, and what is
# said of one that does not answer.  A file $S/hosts/NAME is what a host of this name runs in the
# place of a shell; hosts_sshd.sh asks a real sshd.
# shellcheck disable=SC2016 # code of scripts

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/hosts_lib.sh
. "$CLI/hosts_lib.sh"
mkdir "$S/hosts"

# An ssh that keeps its words and runs $S/hosts/HOST, with the command as $command.
cat >"$S/bin/ssh" <<END
#!/bin/sh
for word; do
	host=\$command command=\$word
done
printf '%s\n' "\$@" >"$S/\$host.words"
PATH=$S/far:$plain_path XDG_STATE_HOME=$S/state-\$host
export PATH XDG_STATE_HOME
. "$S/hosts/\$host"
END
chmod +x "$S/bin/ssh"

# host NAME: the code on stdin is what it runs
host() {
	cat >"$S/hosts/$1"
	mkdir -p "$S/state-$1"
}

# on HOST OPTION…: runs the gpulease of the host there
on() {
	on_host=$1
	shift
	XDG_STATE_HOME=$S/state-$on_host "$S/far/gpulease" "$@" </dev/null
}

echo 'eval "$command"' | host lab1
echo 'GPULEASE_SIM=2; eval "$command"' | host lab2
host refused <<'END'
echo 'ssh: connect to host refused port 22: Connection refused' >&2
exit 255
END

# --- --status ---------------------------------------------------------------------------------

try "$GPULEASE" --status --host lab1,lab2
is 'all hosts that answer are 0' [ "$rc" -eq 0 ]
row 'an idle machine' lab1 '8 8 0 0 - now now'
row 'a machine with fewer GPUs than 4' lab2 '2 2 0 0 - now -'
is 'the columns have titles' like 'HOST *GPUS *FREE *LEASED *WAIT *NEXT FREE *1 GPU *4 GPUS
*' "$out"

on lab1 -n 6 -t 1h --submit -- sleep 600 >/dev/null 2>&1
on lab1 -n 4 -t 1h --submit --name next -- sleep 600 >/dev/null 2>&1
GPULEASE_SIM=2 on lab2 -n 2 --submit -- sleep 600 >/dev/null 2>&1
wait_until 'on lab1 --queue | grep -q next'
wait_until 'GPULEASE_SIM=2 on lab2 --status | grep -q leased'
try "$GPULEASE" --host=lab1,refused,lab2 --status
is 'a host that cannot be asked makes it 1' [ "$rc" -eq 1 ]
row 'leases with a limit end' lab1 '8 2 6 1 *[0-9]* *[0-9]* *[0-9]* -'
row 'leases without a limit end at an unknown time' lab2 '2 0 2 0 - ? - -'
row 'ssh says why it is not connected' refused \
	'- - - - - - - ssh: connect to host refused port 22: Connection refused'
is 'the words are those of ssh' like '*-oBatchMode=yes
-oConnectTimeout=5
*
--
lab2
gpulease --status --json; gpulease --dry-run --json -n 1 -- true; *' "$(cat "$S/lab2.words")"

# Hosts that answer badly.
host banner <<'END'
echo 'Welcome to {banner}'
echo '{'
echo 'bash: warning: setlocale: LC_ALL: cannot change locale' >&2
eval "$command"
echo bye
END
host missing <<'END'
echo 'bash: line 1: gpulease: command not found' >&2
exit 127
END
host broken <<'END'
echo 'bash: warning: setlocale: LC_ALL: cannot change locale' >&2
echo "gpulease: cannot open '/var/lib/gpulease': Permission denied" >&2
exit 125
END
host slow <<END
echo \$\$ >"$S/slow.pid"
exec sleep 600
END
host cut <<'END'
eval "$command" | head -c 700
END
host killed <<'END'
kill -KILL $$
END
host silent <<'END'
exit 255
END
host nologin <<'END'
printf 'This \033account is currently not available.\n'
exit 1
END
host huge <<'END'
head -c 150000000 /dev/zero | tr '\000' x
END
host loud <<'END'
exec cat /dev/zero >&2
END
host later <<'END'
echo '{"format":"gpulease-status/2","taken_unix_ms":1,"gpus":[{"index":0,"state":"idle"}]}'
END
host other <<'END'
echo '{"format":"gpulease-status/1","version":"9","taken_unix_ms":1795000000000,"new":{"a":[1]},
"gpus":[{"index":0,"state":"idle","colour":"red"},{"index":1,"leases":[{"ticket":1,"limit_ms":"x"}]}]}'
END
host hostile <<'END'
printf '{"format":"gpulease-status/1","taken_unix_ms":1,"nvidia_smi":{"found":true,'
printf '"trouble":"\\u001b[31mred\\u202e"},"gpus":[]}\n'
END
host raw <<'END'
printf '{"format":"gpulease-status/1","taken_unix_ms":1,"x":"\302\23331m"}\n'
END
try "$GPULEASE" --status --host \
	banner,missing,broken,slow,cut,killed,silent,nologin,huge,loud,later,other,hostile,raw
is 'bad answers make it 1' [ "$rc" -eq 1 ]
is 'bad answers are told in the table only' [ -z "$err" ]
row 'lines around the answer are skipped' banner '8 8 0 0 - now now -'
row 'a host without gpulease' missing \
	'- * gpulease is not installed there, or not in PATH for ssh'
row 'what gpulease says goes before other lines' broken \
	"- * cannot open '/var/lib/gpulease': Permission denied"
row 'a host that hangs' slow '- * no answer within 5s'
row 'an answer that is cut' cut '- * its answer cannot be read'
row 'an ssh that is killed' killed '- * ended by signal 9'
row 'an ssh that says nothing' silent '- * ssh has failed with status 255'
row 'a login that is closed says so on stdout' nologin \
	'- * status 1: This ?account is currently not available.'
row 'an answer without end' huge '- * its answer is too large'
row 'messages without end' loud '- * no answer within 5s'
row 'the answer of an incompatible version' later \
	'- * its gpulease prints gpulease-status/2; this gpulease reads gpulease-status/1'
row 'members that are missing or new' other '2 1 1 0 - - - -'
row 'what a host says is printable' hostile '0 0 0 0 - - - ?\[31mred?'
row 'raw bytes for a terminal are refused' raw '- * its answer cannot be read'
is 'the ssh of a host that hangs is ended' [ ! -e "/proc/$(cat "$S/slow.pid")" ]

rm "$S/slow.pid"
"$GPULEASE" --status --host slow >"$S/killed.out" 2>&1 &
asker=$!
started="$started $asker"
wait_until '[ -s "$S/slow.pid" ]'
kill -KILL "$asker"
# not its parent, it may stay a zombie where nothing reaps orphans
is 'no ssh outlives gpulease' \
	wait_until 'like "[ZX]" "$(process_state "$(cat "$S/slow.pid")")" ||
		[ ! -e "/proc/$(cat "$S/slow.pid")" ]'

if command -v perl >/dev/null 2>&1; then
	try perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$GPULEASE" --status --host missing
	row 'the status of ssh is seen by a program that was started with SIGCHLD ignored' missing \
		'- * gpulease is not installed there, or not in PATH for ssh'
else
	skip 'SIGCHLD that is ignored' 'perl is not installed'
fi

# --- --queue and --history --------------------------------------------------------------------

echo 'echo "{\"format\":\"gpulease-queue/1\",\"taken_unix_ms\":1}"' | host empty
try "$GPULEASE" --queue --host lab2,lab1,refused
is 'the queue of all hosts' like 'HOST *POS *JOB *COMMAND
lab1 * 1 * 2 *next *needs 4 GPUs*sleep 600' "$out"
is 'a host that has no queue to show is told' like \
	'gpulease: refused: ssh: connect to host refused port 22: Connection refused' "$err"
is 'and makes it 1, too' [ "$rc" -eq 1 ]
run 'queues without a job' 0 'no job waits' '' "$GPULEASE" --queue --host lab2,empty
run 'no queue at all' 1 '' 'gpulease: refused: *' "$GPULEASE" --queue --host refused

on lab1 --cancel mine --yes >/dev/null 2>&1
GPULEASE_SIM=2 on lab2 --cancel mine --yes >/dev/null 2>&1
wait_until '[ "$(on lab1 --history | grep -c cancelled)" -eq 2 ]'
wait_until 'GPULEASE_SIM=2 on lab2 --history | grep -q cancelled'
# each has ended before the next begins
on lab1 --retries 1 --name 'one a' -- true 2>/dev/null
GPULEASE_SIM=2 on lab2 --retries 1 --name 'two b' -- true 2>/dev/null
on lab1 --retries 1 --name 'three c' -- true 2>/dev/null
try "$GPULEASE" --history --host lab1,lab2
is 'the ends of all hosts' [ "$(printf '%s\n' "$out" | grep -c '^lab[12] ')" -eq 6 ]
is 'in the order of their times' like '*sleep*lab1 * one a *lab2 * two b *lab1 * three c *' "$out"
run 'the last of all hosts' 0 'HOST *
lab2 * two b *
lab1 * three c *' '' "$GPULEASE" --history 2 --host lab1,lab2
run 'filters are for each host' 0 'HOST *
lab2 * two b *' '' \
	"$GPULEASE" --history --name 'two b' --state finished --since 1h --host lab1,lab2
is 'as quoted words' like "*
gpulease --history --json --last 20 --name 'two b' --state finished --since @[0-9]*" \
	"$(cat "$S/lab1.words")"
run 'a user that is no word' 0 'no job has ended' '' \
	"$GPULEASE" --history all --user 'x; touch y' --host lab1

# --- --json -----------------------------------------------------------------------------------

if command -v python3 >/dev/null 2>&1; then
	"$GPULEASE" --status --json --host lab1,lab2,refused,raw,hostile >"$S/json"
	is 'with --json, too' [ $? -eq 1 ]
	is 'the answers are one object' [ "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["format"])
for h in d["hosts"]:
    a = h["answer"]
    print(h["name"], h["error"], a and a["format"], a and len(a["gpus"]),
        h["dry_run_1_gpu"] and h["dry_run_1_gpu"]["can_start"], h["dry_run_4_gpus"] is None)
' "$S/json")" = 'gpulease-hosts/1
lab1 None gpulease-status/1 8 True False
lab2 None gpulease-status/1 2 True True
refused ssh: connect to host refused port 22: Connection refused None None None True
raw its answer cannot be read None None None True
hostile None gpulease-status/1 0 None True' ]
else
	skip 'the answers are one object' 'python3 is not installed'
fi

# --- misuse -----------------------------------------------------------------------------------

run 'an option in the place of a host' 125 '' "gpulease: --host: '-oProxyCommand=x' begins *" \
	"$GPULEASE" --status --host lab1,-oProxyCommand=x
run 'an empty name' 125 '' 'gpulease: --host: a name is empty; *' "$GPULEASE" --queue --host lab1,
run 'an id' 125 '' 'gpulease: an id belongs to one machine; *' "$GPULEASE" --status 3 --host lab1
run 'a directory of this machine' 125 '' 'gpulease: --sim, --dir and --config are for this *' \
	"$GPULEASE" --status --host lab1 --dir "$S/dir"
mkdir "$S/none"
run 'a machine without ssh' 1 "HOST*cannot execute 'ssh': No such file or directory" '' \
	env PATH="$S/none" "$GPULEASE" --status --host lab1

# --- --timeline ---------------------------------------------------------------------------------

try "$GPULEASE" --timeline --since 1h --host lab1,refused,lab2
is 'the timeline of each machine that answers, and 1' [ "$rc" -eq 1 ]
is 'each machine has its GPUs' [ "$(grep -c '^GPU [0-9]' "$S/out")" -eq 10 ]
is 'a machine that does not answer is named on stderr' like \
	'gpulease: refused: ssh: connect to host refused port 22: Connection refused' "$err"
is 'each has the name that --host gives it' [ "$(sed -n 's/: .* GPUs, .*//p' "$S/out" |
	tr '\n' ' ')" = 'lab1 lab2 ' ]
run 'no empty line stands for a machine that does not answer' 1 'lab2: *' 'gpulease: refused: *' \
	"$GPULEASE" --timeline --since 1h --host refused,lab2
run 'a machine of a later version says so' 1 '' 'gpulease: later: its gpulease prints *' \
	"$GPULEASE" --timeline --host later
run 'a picture is of one machine' 125 '' \
	'gpulease: --svg and --html show one machine; give one to --host' \
	"$GPULEASE" --timeline --host lab1,lab2 --svg "$S/x.svg"
run 'the picture of another machine' 0 '<svg *' '' \
	"$GPULEASE" --timeline --host lab1 --svg -
run 'another directory is for this machine' 125 '' 'gpulease: --sim, --dir and --config are *' \
	"$GPULEASE" --timeline --sim 2 --host lab1

finish
