#!/bin/sh
# Jobs files in the form of a table.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

table() {
	batch --batch-format=csv "$@"
}

title=priority,script,conda_env,arguments,allowed_gpus

# A python that notes its arguments, and a shell script that does so, too.
mkdir "$S/path"
cat >"$S/path/python" <<END
#!/bin/sh
echo "python \$# on \${CUDA_VISIBLE_DEVICES-}" >>"$S/ran"
for word; do echo "<\$word>" >>"$S/ran"; done
END
chmod +x "$S/path/python"
PATH=$S/path:$PATH
cd "$S" || bail 'no scratch directory'
: >train.py
: >serve.py
cat >"$S/say.sh" <<END
echo "shell \$*" >>"$S/ran"
END

clean
sim 4
lines "$title" "1,train.py,,--lr 0.1,"
run 'a .py script is run by python' 0 '*1 finished*' '' table
is 'the script gets its arguments' \
	[ "$(words "$S/ran")" = 'python 3 on 0 <train.py> <--lr> <0.1>' ]
clean
lines "1,train.py,,\"--sizes 1,2,3 --text 'a \"\"b\"\"'\",\"0,1\""
run 'a line with fields in quotes is run' 0 '*' '' table
is 'fields in quotes can have commas and quotes' \
	[ "$(sed 1d "$S/ran" | words /dev/stdin)" = \
	'<train.py> <--sizes> <1,2,3> <--text> <a "b">' ]
clean
lines '1,train.py,,,2,3'
run 'all text after the fourth comma is the list of GPUs' 0 '*' '' table
is 'only GPUs of the list are used' grep -qx 'python 1 on [23]' "$S/ran"
clean
lines '1,train.py,,,"1"'
run 'a list of GPUs in quotes is accepted' 0 '*' '' table
is 'only the GPU in quotes is used' grep -qx 'python 1 on 1' "$S/ran"
clean
lines '1,train.py,,,99'
run 'a line with a GPU that does not exist cannot run' 125 '*cannot run*' '' table
clean
lines "$title" "2,$S/say.sh,,second," "1,$S/say.sh,,first," "10,$S/say.sh,,last," \
	"1,$S/say.sh,,again,"
run 'a table with priorities is run' 0 '*' '' table --jobs 1
is 'lower numbers come first, and .sh scripts are run by the shell' \
	[ "$(words "$S/ran")" = 'shell first shell again shell second shell last' ]
clean
lines "$title" "1,$S/say.sh"
run 'fields at the end may be missing' 0 '*' '' table
is 'without a field of arguments the script gets none' grep -qx 'shell ' "$S/ran"
clean
lines "$title" '# a remark' '' '1,train.py,,,'
run 'remarks and blank lines are skipped' 0 '*1 job: 1 finished*' '' table

# bad TEXT PATTERN LINE: a table with that bad line gives an error that matches
bad() {
	clean
	lines "$title" "$3"
	run "$1" 125 '' "gpulease: *jobs, line 2: $2" table
	[ ! -e "$W" ] || not_ok 'a table with a bad line makes no folder'
}

bad 'a priority that is not a number is an error' '*priority*' 'high,train.py,,,'
bad 'a line without a script is an error' '*script*' '1,,,,'
bad 'a quote without an end is an error' '*quote*' '1,train.py,,"--lr 0.1,'
bad 'text after a closing quote is an error' '*quote*' '1,train.py,,"a"b,'
bad 'a GPU that is not a number is an error' '*' '1,train.py,,,first'

clean
lines 'echo a'
run 'a jobs file of command lines is not read as a table' \
	125 '' 'gpulease: *jobs, line 1: *' table
run 'an unknown --batch-format is refused' 125 '' '*neither lines nor csv*' \
	"$GPULEASE" --batch "$J" --batch-format=xml

# --- what is a table ---------------------------------------------------------------------

clean
lines '' '# a remark' "$title" '1,train.py,,,'
run 'a file whose first line is the title is a table' 0 '*1 finished*' '' batch
run 'lines from a pipe are a table after the title' 0 '*1 finished*' '' \
	sh -c '"$1" --batch - --log-dir "$2" <"$3"' sh "$GPULEASE" "$W.pipe" "$J"
clean
lines '1,train.py,,,'
run 'a row without a title is refused with the option' 125 '' \
	'gpulease: *jobs, line 1: this is a table; add --batch-format csv' batch
cp "$J" "$J.csv"
run 'a file whose name ends in .csv is a table' 0 '*1 finished*' '' \
	"$GPULEASE" --batch "$J.csv"
lines '[] 1,2'
run 'a command that looks like a row can be written after []' 127 '*1 failed*' '' batch
lines "$title" '1,train.py,,,'
cp "$J" "$J.csv"
run '--batch-format lines is obeyed' 127 '*2 failed*' '' \
	"$GPULEASE" --batch-format lines --batch "$J.csv" --log-dir "$S/as-lines"
run '--inject is accepted for a table' 0 '*1 finished*' '' batch --inject=--cuda --fresh
is '--inject adds its option to the row' grep -q '^<--cuda>$' "$S/ran"
clean
lines "$title" '1,train.py,,--cuda 7 -b,'
run '--inject is accepted for a row with its option' 0 '*1 finished*' '' batch --inject=--cuda
is '--inject replaces the value in the row' like 'python * <train.py> <--cuda> <0> <-b>' \
	"$(words "$S/ran")"
clean
lines 'train.py'
run '--inject is refused for lines' 125 '' '*--inject*{gpus} there' batch --inject=--cuda
is 'a refused --inject makes no folder' [ ! -e "$W" ]

# --- scripts -----------------------------------------------------------------------------

clean
sim 1
lines "$title" '1,gone.py,,,' '2,train.py,,,' "3,$S/no/gone.sh,,-x," '4,./gone,,,'
run 'rows whose scripts are missing cannot run' 127 \
	"*entry 1 cannot run: there is no script 'gone.py'*1 finished, 3 failed*" '' batch
is 'the other rows run' grep -q 'python 1 on 0' "$S/ran"
is 'a missing script takes no GPU and no ticket' \
	[ "$(count '"event": "started"' "$W/journal.jsonl")" = 1 ]
: >gone.py
: >gone
mkdir no
: >no/gone.sh
chmod +x gone
run 'the next run finds the scripts' 0 '*4 finished*' '' batch
rm -rf gone gone.py no
clean
lines 'python gone.py' 'python -c 1' 'python gone.py;true' '[setup="cd path"] sh ./python a' \
	'D=x; sh "$D/gone" || true' './gone? || true' './gone&&x || true' 'sh gone || true'
run 'in a line, a missing script is found where it is knowable' 127 \
	"*entry 1 cannot run: there is no script 'gone.py'*" '' batch --jobs 1
is 'a line that may mean another file is run' \
	[ "$(count '"event": "started"' "$W/journal.jsonl")" = 6 ]
clean
mkdir sub
lines 'sh there.sh'
: >sub/there.sh
run 'a script is looked for in the directory of -D' 0 '*1 finished*' '' batch -D "$S/sub"
rm -rf sub
lines 'sh ~/home.sh'
echo 'echo home >>'"$S/ran" >home.sh
run 'a script is looked for in the home directory' 0 '*1 finished*' '' env HOME="$S" "$GPULEASE" --batch "$J"

# --- not a jobs file ---------------------------------------------------------------------

clean
printf '#!/bin/bash\n#SBATCH --gpus 1\npython train.py\n' >"$J"
run 'a script is refused as a jobs file' 125 '' \
	'gpulease: *jobs, line 1: this is a script and not *gpulease --submit*' batch
lines '# a remark' '#SBATCH -n 1' 'true'
run 'lines for sbatch are refused in a jobs file' 125 '' \
	'gpulease: *jobs, line 2: this is a script and not *gpulease --submit*' batch
lines '#!/usr/bin/env -S gpulease --batch' 'true'
run 'a jobs file may name gpulease as its program' 0 '*1 finished*' '' batch

# --- models ------------------------------------------------------------------------------

sim 2x24G
clean
printf 'small = 0.5\nbig = 2\n' >"$S/models"
lines "$title" '1,serve.py,,--llm small,' '1,serve.py,,--llm big,'
run 'lines with models are run' 0 '*2 finished*' '' table --models "$S/models" --jobs 1
is 'a model of two GPUs gets both GPUs' \
	[ "$(grep -c 'on 0,1' "$S/ran") $(grep -c 'python' "$S/ran")" = '1 2' ]
is 'a model of half a GPU gets one GPU' [ "$(event started 1 | member gpus)" = 0 ]

finish
