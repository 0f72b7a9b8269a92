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

# A python that notes its arguments, and a script without anything.
mkdir "$S/path"
cat >"$S/path/python" <<END
#!/bin/sh
echo "python \$# on \${CUDA_VISIBLE_DEVICES-}" >>"$S/ran"
for word; do echo "<\$word>" >>"$S/ran"; done
END
chmod +x "$S/path/python"
PATH=$S/path:$PATH
cat >"$S/say.sh" <<END
echo "shell \$*" >>"$S/ran"
END

clean
sim 4
lines "$title" "1,train.py,,--lr 0.1,"
run 'a script is run by python' 0 '*1 finished*' '' table
is 'with its arguments' [ "$(words "$S/ran")" = 'python 3 on 0 <train.py> <--lr> <0.1>' ]
clean
lines "1,train.py,,\"--sizes 1,2,3 --text 'a \"\"b\"\"'\",\"0,1\""
run 'fields in quotes' 0 '*' '' table
is 'may hold commas and quotes' [ "$(sed 1d "$S/ran" | words /dev/stdin)" = \
	'<train.py> <--sizes> <1,2,3> <--text> <a "b">' ]
clean
lines '1,train.py,,,2,3'
run 'the GPUs are all that follows the fourth comma' 0 '*' '' table
is 'and only those are used' grep -qx 'python 1 on [23]' "$S/ran"
clean
lines '1,train.py,,,"1"'
run 'in quotes as well' 0 '*' '' table
is 'which are none of its' grep -qx 'python 1 on 1' "$S/ran"
clean
lines '1,train.py,,,99'
run 'a GPU that there is not' 125 '*cannot run*' '' table
clean
lines "$title" "2,$S/say.sh,,second," "1,$S/say.sh,,first," "10,$S/say.sh,,last," \
	"1,$S/say.sh,,again,"
run 'lower numbers come first' 0 '*' '' table --jobs 1
is 'by the shell, for such scripts' \
	[ "$(words "$S/ran")" = 'shell first shell again shell second shell last' ]
clean
lines "$title" "1,$S/say.sh"
run 'fields at the end may be missing' 0 '*' '' table
is 'then there are no arguments' grep -qx 'shell ' "$S/ran"
clean
lines "$title" '# a remark' '' '1,train.py,,,'
run 'remarks and blank lines are skipped' 0 '*1 job: 1 finished*' '' table

# bad TEXT PATTERN LINE
bad() {
	clean
	lines "$title" "$3"
	run "$1" 125 '' "gpulease: *jobs, line 2: $2" table
	[ ! -e "$W" ] || not_ok 'there is no journal'
}

bad 'a priority that is none' '*priority*' 'high,train.py,,,'
bad 'no script' '*script*' '1,,,,'
bad 'a quote without an end' '*quote*' '1,train.py,,"--lr 0.1,'
bad 'something behind a quote' '*quote*' '1,train.py,,"a"b,'
bad 'GPUs that are none' '*' '1,train.py,,,first'

clean
lines 'echo a'
run 'the other form is no table' 125 '' 'gpulease: *jobs, line 1: *' table
run 'a form that there is not' 125 '' '*neither lines nor csv*' \
	"$GPULEASE" --batch "$J" --batch-format=xml

# --- models ------------------------------------------------------------------------------

sim 2x24G
clean
printf 'small = 0.5\nbig = 2\n' >"$S/models"
lines "$title" '1,serve.py,,--llm small,' '1,serve.py,,--llm big,'
run 'a model' 0 '*2 finished*' '' table --models "$S/models" --jobs 1
is 'has the GPUs that it needs' \
	[ "$(grep -c 'on 0,1' "$S/ran") $(grep -c 'python' "$S/ran")" = '1 2' ]
is 'a share is one' [ "$(event started 1 | member gpus)" = 0 ]

finish
