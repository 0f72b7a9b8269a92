#!/bin/sh
# --add: lines that are appended to a jobs file, what they say, and what is refused.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
cd "$S" || bail "no scratch directory"
jobs=jobs.txt

# adds TEXT LINE WORD…: a result, good if `gpulease --add FILE WORD…` adds this to an empty file
# and says nothing.
adds() {
	adds_text=$1 adds_line=$2
	shift 2
	rm -f "$jobs"
	try "$GPULEASE" --add "$jobs" "$@"
	if [ "$rc$out$err" = 0 ] && [ "$(cat "$jobs")" = "$adds_line" ]; then
		ok "$adds_text"
	else
		not_ok "$adds_text" "status $rc: $out$err" "$(cat "$jobs")"
	fi
}

# refuses TEXT REASON WORD…: good if it does not, for that reason, and the file stays as it is.
refuses() {
	refuses_text=$1 refuses_reason=$2
	shift 2
	printf 'first\n' >"$jobs"
	try "$GPULEASE" --add "$jobs" "$@"
	if [ "$rc" = 125 ] && like "gpulease: $refuses_reason" "$err" &&
		[ "$(cat "$jobs")" = first ]; then
		ok "$refuses_text"
	else
		not_ok "$refuses_text" "status $rc: $out$err" "$(cat "$jobs")"
	fi
}

# file_has TEXT: whether the whole file is that, with a newline behind it.
file_has() {
	printf '%s\n' "$1" | cmp -s - "$jobs"
}

# --- lines -------------------------------------------------------------------------------

adds 'a command' 'python train.py --lr 3' -- python train.py --lr 3
adds 'words are quoted where a shell would see more in them' \
	'python '\''a b'\'' '\''it'\''\'\'''\''s'\'' '\''$HOME'\'' '\'''\'' '\''"'\'' '\''*'\''' \
	-- python 'a b' "it's" '$HOME' '' '"' '*'
adds 'one word is a line for the shell' 'cd x && ./y "$z"' -- 'cd x && ./y "$z"'
adds 'one that begins as attributes do' '[] [ a = b ] && c' -- '[ a = b ] && c'
adds 'the number of GPUs' '[gpus=2] true' -n 2 -- true
adds 'a share' '[gpus=0.5] true' --gpus 0.5 -- true
adds 'none' '[gpus=0] true' -n 0 -- true
adds 'all that a line can say' '[gpus=2 vram=18G timeout=30m retries=3 fail-retries=1 '\
'priority=-5 allow=0-3 after=7,8 after-ok=9 name="a b" conda=ml setup="x \"y\""] true' \
	-n 2 --vram 18G -t 30 --oom-retries 3 --retries 1 --priority -5 --allow 0-3 \
	--after 7,8 --after-ok 9 --name 'a b' --conda ml --setup 'x "y"' -- true
adds 'a limit as --time has it' '[timeout=90s] true' -t 1:30 -- true
adds 'not tried again, whatever the batch says' '[retries=0 fail-retries=0 priority=0] true' \
	--oom-retries 0 --retries 0 --priority 0 -- true
adds 'no limit, whatever the default' '[timeout=0s] true' -t UNLIMITED -- true

printf 'first\nlast' >"$jobs"
run 'a last line without its newline gets it' 0 '' '' "$GPULEASE" --add "$jobs" -- new
is '... and the line is one of its own' file_has 'first
last
new'
run '-v tells what was added' 0 '' "*gpulease: added to 'jobs.txt': \[gpus=2\] new" \
	"$GPULEASE" -v --add "$jobs" -n 2 -- new

# What is added is what a shell then does.
rm -f "$jobs"
run 'words of all kinds' 0 '' '' "$GPULEASE" --add "$jobs" -- \
	printf '<%s>' 'a b' "it's" '$(echo x)' '`' '\' '"' '#' '~' '!' '-x' 'a=b' '{a,b}' 'ä'
run '... come to the command as they were' 0 \
	"<a b><it's><\$(echo x)><\`><\\\\><\"><#><~><!><-x><a=b><{a,b}><ä>" '' sh "$jobs"

# --- the file ----------------------------------------------------------------------------

rm -f "$jobs"
umask 027
run 'a file that is missing is made' 0 '' '' "$GPULEASE" --add "$jobs" -- true
is '... by the umask' like 640 "$(stat -c %a "$jobs")"
umask 022
mkdir folder
run 'a folder is none' 125 '' "gpulease: --add: cannot add to 'folder': *" \
	"$GPULEASE" --add folder -- true
mkfifo fifo
run 'nor a FIFO' 125 '' "gpulease: --add: cannot add to 'fifo': it is not a regular file" \
	"$GPULEASE" --add fifo -- true
run 'nor is one in a folder that is missing' 125 '' \
	"gpulease: --add: cannot add to 'no/file': No such file or directory" \
	"$GPULEASE" --add no/file -- true
run 'nor standard input' 125 '' "gpulease: --add wants a file, not '-'*" \
	"$GPULEASE" --add - -- true
ln -s target link
run 'nor a link to nothing' 125 '' "gpulease: --add: cannot add to 'link': it is a link to *" \
	"$GPULEASE" --add link -- true
: >target
run 'a link to a file is one' 0 '' '' "$GPULEASE" --add link -- true
is '... and the file has the line' like true "$(cat target)"
truncate -s 16777214 big
run 'one that is as big as can be' 125 '' \
	"gpulease: --add: cannot add to 'big': it would be bigger than 16 MiB" \
	"$GPULEASE" --add big -- true
rm -f big

echo 'first' >"$jobs"
(
	flock 9
	: >locked
	exec sleep 60
) 9<"$jobs" &
started="$started $!"
wait_until '[ -e locked ]' || bail 'no lock'
run 'a lock that is held is waited for, not for ever' 125 '' \
	"gpulease: --add: cannot add to 'jobs.txt': process * has had it locked for 5 s; try*" \
	"$GPULEASE" --add "$jobs" -- true
kill "$!"
is '... and nothing was added' file_has first

# add NUMBER: who has waited too long for the others tries again, as he is told
add() {
	until "$GPULEASE" --add "$jobs" -n 2 -- echo "$1" 'a b' 2>"add.$1"; do
		grep -q 'has had it locked for 5 s; try' "add.$1" || return 1
	done
}

rm -f "$jobs"
adders=
for i in $(seq 50); do
	add "$i" &
	adders="$adders $!"
done
failed=0
for adder in $adders; do
	wait "$adder" || failed=$((failed + 1))
done
is 'fifty at a time are all done' [ "$failed" -eq 0 ]
is '... and each has its line' [ "$(sort "$jobs")" = \
	"$(seq 50 | sed "s/.*/[gpus=2] echo & 'a b'/" | sort)" ]

# --- what is refused ---------------------------------------------------------------------

refuses 'a newline' '--add: a line of a jobs file cannot have a newline in it' -- echo 'a
b'
refuses 'a newline in an attribute' '--add: a line * newline in it' --setup 'a
b' -- true
refuses 'no command' '--add wants a command: --add jobs.txt -- python train.py'
refuses 'an empty command' '--add: there is no command' -- ' '
refuses 'a type of card' "--add: a line cannot ask for a type of card; leave 'a100' out*" \
	--gpus a100:2 -- true
refuses 'a name with a comma' "--add: name: 'a,b' has a comma*" --name a,b -- true
refuses 'a number for a name' "--add: name: '12' is a number*" --name 12 -- true
refuses 'a list that is none' "*--allow: 'x' is not a GPU*" --allow x -- true
refuses 'memory of no GPU' '-n asks for no GPU and --vram *' -n 0 --vram 1G -- true
refuses 'an option that no line has' '--add and --exclusive do not go together' --exclusive -- true
refuses 'a name that no line has' \
	"--add: jobs.txt, line 2: it comes after 'prep', and no line has that name" \
	--after prep -- true
refuses 'itself' "--add: jobs.txt, line 2: 'me' would come after itself" \
	--name me --after me -- true

adds 'a line with a name' '[name=prep] true' --name prep -- true
run 'one that comes after it' 0 '' '' "$GPULEASE" --add "$jobs" --after prep -- next
is '... is there' file_has '[name=prep] true
[after=prep] next'
printf '[oops] x\n' >"$jobs"
run 'what was wrong before is told' 0 '' \
	"gpulease: jobs.txt, line 1: 'oops' is no attribute;*; the line was added all the same" \
	"$GPULEASE" --add "$jobs" -- true
is '... and stays' file_has '[oops] x
true'

# --- the table -----------------------------------------------------------------------------

adds 'a script in the table' '-3,x.py,ml,"-a 1,2",4,5' --batch-format=csv --priority 3 \
	--conda ml --allow 4,5 -- python x.py -a 1,2
adds 'a line for the shell' '0,cd,,x && python y.py' --batch-format=csv -- 'cd x && python y.py'
adds 'quotes are doubled' '0,echo,,"'\''a""b'\''"' --batch-format=csv -- echo 'a"b'
printf 'priority,script,conda_env,arguments,allowed_gpus\n0,a.py,,,\n' >"$jobs"
run 'a line does not go into a table' 125 '' \
	'gpulease: --add: jobs.txt, line 1: this is a table; add --batch-format csv' \
	"$GPULEASE" --add "$jobs" -n 2 -- true
is '... which stays as it was' file_has 'priority,script,conda_env,arguments,allowed_gpus
0,a.py,,,'
refuses 'what has no column' '--add: there is no column for gpus in csv, just for priority, *' \
	--batch-format=csv -n 2 -- true
refuses 'a script that would be run by another' \
	"--add: it would be read as 'python ./x.py'; --batch-format=lines *" \
	--batch-format=csv -- ./x.py
finish
