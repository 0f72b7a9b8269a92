#!/bin/sh
# --add: lines that are appended to a jobs file, what they say, and what is refused.
# shellcheck disable=SC2016,SC2088,SC2317 # what others call or expand

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
cd "$S" || bail "no scratch directory"
jobs=jobs.txt

# adds TEXT LINE WORD…: a result, good if `gpulease --add FILE WORD…` adds LINE to an empty file
# and prints nothing.
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

# refuses TEXT REASON WORD…: a result, good if --add gives REASON and does not change the file.
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

# file_has TEXT: whether the file consists of TEXT and a newline.
file_has() {
	printf '%s\n' "$1" | cmp -s - "$jobs"
}

# --- lines -------------------------------------------------------------------------------

adds '--add adds a command' 'python train.py --lr 3' -- python train.py --lr 3
adds 'words that a shell would expand are quoted' \
	'python '\''a b'\'' '\''it'\''\'\'''\''s'\'' '\''$HOME'\'' '\'''\'' '\''"'\'' '\''*'\''' \
	-- python 'a b' "it's" '$HOME' '' '"' '*'
adds 'a single word is a line for the shell' 'cd x && ./y "$z"' -- 'cd x && ./y "$z"'
adds 'a command that begins like attributes gets an empty list first' '[] [ a = b ] && c' -- \
	'[ a = b ] && c'
adds '-n becomes gpus=' '[gpus=2] true' -n 2 -- true
adds '--gpus with a share becomes gpus=' '[gpus=0.5] true' --gpus 0.5 -- true
adds '-n 0 becomes gpus=0' '[gpus=0] true' -n 0 -- true
adds 'every option that a line can have becomes an attribute' \
	'[gpus=2 vram=18G timeout=30m retries=3 fail-retries=1 '\
'priority=-5 allow=0-3 after=7,8 after-ok=9 name="a b" conda=ml setup="x \"y\""] true' \
	-n 2 --vram 18G -t 30 --oom-retries 3 --retries 1 --priority -5 --allow 0-3 \
	--after 7,8 --after-ok 9 --name 'a b' --conda ml --setup 'x "y"' -- true
adds 'a time limit in the form of --time is accepted' '[timeout=90s] true' -t 1:30 -- true
adds 'zero retries and priority are written, whatever the batch says' \
	'[retries=0 fail-retries=0 priority=0] true' \
	--oom-retries 0 --retries 0 --priority 0 -- true
adds 'an unlimited time is written, whatever the default is' '[timeout=0s] true' -t UNLIMITED \
	-- true

printf 'first\nlast' >"$jobs"
run '--add completes a last line that has no newline' 0 '' '' "$GPULEASE" --add "$jobs" -- new
is 'the new line stands on a line of its own' file_has 'first
last
new'
run '-v prints the line that was added' 0 '' "*gpulease: added to 'jobs.txt': \[gpus=2\] new" \
	"$GPULEASE" -v --add "$jobs" -n 2 -- new

# A shell that runs the line gives the command the same words.
rm -f "$jobs"
run '--add accepts words with every special character' 0 '' '' "$GPULEASE" --add "$jobs" -- \
	printf '<%s>' 'a b' "it's" '$(echo x)' '`' '\' '"' '#' '~' '!' '-x' 'a=b' '{a,b}' 'ä'
run 'a shell that runs the line passes on these words unchanged' 0 \
	"<a b><it's><\$(echo x)><\`><\\\\><\"><#><~><!><-x><a=b><{a,b}><ä>" '' sh "$jobs"

# --- the file ----------------------------------------------------------------------------

rm -f "$jobs"
umask 027
run '--add makes a missing file' 0 '' '' "$GPULEASE" --add "$jobs" -- true
is 'the mode of a new jobs file obeys the umask' like 640 "$(stat -c %a "$jobs")"
umask 022
mkdir folder
run 'a folder is not accepted as a jobs file' 125 '' \
	"gpulease: --add: cannot add to 'folder': *" \
	"$GPULEASE" --add folder -- true
mkfifo fifo
run 'a FIFO is not accepted as a jobs file' 125 '' \
	"gpulease: --add: cannot add to 'fifo': it is not a regular file" \
	"$GPULEASE" --add fifo -- true
run 'a jobs file in a missing folder is refused' 125 '' \
	"gpulease: --add: cannot add to 'no/file': No such file or directory" \
	"$GPULEASE" --add no/file -- true
run 'standard input is not accepted as a jobs file' 125 '' "gpulease: --add needs a file, not '-'*" \
	"$GPULEASE" --add - -- true
ln -s target link
run 'a link to a missing file is refused' 125 '' \
	"gpulease: --add: cannot add to 'link': it is a link to *" \
	"$GPULEASE" --add link -- true
: >target
run 'a link to a jobs file is followed' 0 '' '' "$GPULEASE" --add link -- true
is 'the line is in the file that the link leads to' like true "$(cat target)"
truncate -s 16777214 big
run 'a jobs file of the maximal size is refused' 125 '' \
	"gpulease: --add: cannot add to 'big': it would be bigger than 16M" \
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
run '--add waits for a held lock, but not for ever' 125 '' \
	"gpulease: --add: cannot add to 'jobs.txt': process * has had it locked for 5 s; try*" \
	"$GPULEASE" --add "$jobs" -- true
kill "$!"
is 'without the lock no line is added' file_has first

# add NUMBER: adds a line; after a wait for the lock that was too long it tries again
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
is 'fifty --add at the same time all succeed' [ "$failed" -eq 0 ]
is 'each of the fifty has added its line' [ "$(sort "$jobs")" = \
	"$(seq 50 | sed "s/.*/[gpus=2] echo & 'a b'/" | sort)" ]

# --- what is refused ---------------------------------------------------------------------

refuses 'a command with a newline is refused' \
	'--add: a line of a jobs file cannot have a newline in it' -- echo 'a
b'
refuses 'an attribute with a newline is refused' '--add: a line * newline in it' --setup 'a
b' -- true
refuses '--add without a command is refused' '--add needs a command: --add jobs.txt -- python train.py'
refuses 'an empty command is refused' '--add: there is no command' -- ' '
refuses 'a type of card is refused' "--add: a line cannot ask for a type of card; leave 'a100' out*" \
	--gpus a100:2 -- true
refuses 'a name with a comma is refused' "--add: name: 'a,b' has a comma*" --name a,b -- true
refuses 'a name that is a number is refused' "--add: name: '12' is a number*" --name 12 -- true
refuses 'a list of GPUs that cannot be read is refused' "*--allow: 'x' is not a GPU*" \
	--allow x -- true
refuses '--vram without a GPU is refused' '-n asks for no GPU and --vram *' -n 0 --vram 1G -- true
refuses 'an option without an attribute is refused' '--add and --exclusive do not go together' \
	--exclusive -- true
refuses '--after a name that no line has is refused' \
	"--add: jobs.txt, line 2: it comes after 'prep', and no line has that name" \
	--after prep -- true
refuses '--after the line'"'"'s own name is refused' \
	"--add: jobs.txt, line 2: 'me' would come after itself" \
	--name me --after me -- true

adds '--name becomes name=' '[name=prep] true' --name prep -- true
run 'a line can come after a named line' 0 '' '' "$GPULEASE" --add "$jobs" --after prep -- next
is 'the line that comes after another one is in the file' file_has '[name=prep] true
[after=prep] next'
printf '[oops] x\n' >"$jobs"
run '--add reports a mistake that the file already had' 0 '' \
	"gpulease: jobs.txt, line 1: 'oops' is not an attribute;*; the line was added nevertheless" \
	"$GPULEASE" --add "$jobs" -- true
is '--add leaves the mistake in the file' file_has '[oops] x
true'

# --- the table -----------------------------------------------------------------------------

adds '--add writes a script into the columns of a table' '-3,x.py,ml,"-a 1,2",4,5' \
	--batch-format=csv --priority 3 \
	--conda ml --allow 4,5 -- python x.py -a 1,2
adds '--add writes a line for the shell into a table' '0,cd,,x && python y.py' \
	--batch-format=csv -- 'cd x && python y.py'
adds 'quotes in a field of a table are doubled' '0,echo,,"'\''a""b'\''"' --batch-format=csv -- \
	echo 'a"b'
printf 'priority,script,conda_env,arguments,allowed_gpus\n0,a.py,,,\n' >"$jobs"
run 'an attribute is refused for a file that is a table by its title' 125 '' \
	'gpulease: --add: csv has no column for gpus, *' \
	"$GPULEASE" --add "$jobs" -n 2 -- true
run 'a line of the form lines is refused for a table' 125 '' \
	'gpulease: --add: jobs.txt, line 1: this is a table; add --batch-format csv' \
	"$GPULEASE" --add "$jobs" --batch-format lines -- true
is 'the table is not changed by a refused line' file_has \
	'priority,script,conda_env,arguments,allowed_gpus
0,a.py,,,'
refuses 'an attribute without a column is refused for a table' '--add: csv has no column for gpus, only for priority, *' \
	--batch-format=csv -n 2 -- true
printf 'priority,script,conda_env,arguments,allowed_gpus\n0,a.py,,,\n' >"$jobs"
run 'a script alone is added to a table' 0 '' '' "$GPULEASE" --add "$jobs" --conda ml b.py -x
is 'a script alone is a row of the table' file_has \
	'priority,script,conda_env,arguments,allowed_gpus
0,a.py,,,
0,b.py,ml,-x'
jobs=new.CSV
adds 'a new file is a table if its name ends in .csv' '0,./x.py,,' -- ./x.py
jobs=jobs.txt
mkdir programs
printf '#!/bin/sh\n' >programs/python
cp programs/python programs/tool.py
cp programs/python own.sh
chmod +x programs/* own.sh
PATH=$S/programs:$PATH
: >there.py
adds 'a new file of another name has lines' 'python train.py' -- train.py
adds 'a script with arguments gets what runs it' '[gpus=2] python there.py --lr '\''a b'\' \
	-n 2 -- there.py --lr 'a b'
adds 'a script in a line for the shell gets what runs it' 'bash ~/eval.sh >out' -- '~/eval.sh >out'
adds 'the python of a conda environment is called so' '[conda=ml] python x/a.py' --conda ml -- x/a.py
adds 'a script that can be executed stays as it is' './own.sh a' -- ./own.sh a
adds 'a script in PATH stays as it is' tool.py -- tool.py
adds 'a name that the shell expands stays as it is' '$D/a.py' -- '$D/a.py'
adds 'a script of another kind stays as it is' train.jl -- train.jl
rm programs/python
run 'python3 runs a script where there is no python' 0 '' '' \
	env PATH="$S/programs" "$GPULEASE" --add new.txt -- train.py
is 'the line has python3' grep -qx 'python3 train.py' new.txt
printf '#!/bin/sh\n#SBATCH -n 1\n' >job.slurm
cp job.slurm before
run 'a line is not added to a script' 125 '' \
	'gpulease: --add: job.slurm, line 1: this is a script*' "$GPULEASE" --add job.slurm -- true
is 'the script is not changed' cmp -s job.slurm before
run 'a wrong line for a new table makes no file' 125 '' '*csv has no column for gpus*' \
	"$GPULEASE" --add other.csv -n 2 -- x.py
is 'there is no file after a wrong line' [ ! -e other.csv ]
finish
