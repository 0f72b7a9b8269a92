#!/bin/sh
# gpulease-view: where gpulease finds it, where it finds gpulease, which words it passes on, and what
# it says of a gpulease that fails.  The options have scripts of their own.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
cd "$CLI/../.." || bail 'no source'
sim 2
build=$(dirname "$GPULEASE")
part='gpulease: gpulease-view is a part of gpulease and is started by it; try gpulease --top'

# --- where the programs are ----------------------------------------------------------------

run 'in the folder of a build gpulease finds gpulease-view' 0 '*# EOF' '' "$GPULEASE" --metrics
ln -s "$GPULEASE" "$S/link"
run 'also by a link from elsewhere' 0 '*# EOF' '' "$S/link" --metrics

# the variables that an outer make passes down are for that make
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
if ! command -v make >/dev/null 2>&1; then
	skip 'make install puts it where gpulease finds it' 'make is not installed'
elif [ ! -d "$build/o" ]; then
	skip 'make install puts it where gpulease finds it' 'this program is not in a build folder'
else
	# for make a path must not have a blank
	here=${build#"$PWD"/}
	run 'make install succeeds' 0 '*' '' make -s --no-print-directory "B=$here" \
		-o "$here/gpulease" -o "$here/gpulease-simjob" -o "$here/gpulease-slurm" \
		-o "$here/gpulease-view" -o "$here/gpulease-engine" "DESTDIR=$S/root" PREFIX=/usr MODE=private install
	run 'make install puts it where gpulease finds it' 0 '*# EOF' '' \
		"$S/root/usr/bin/gpulease" --metrics
	is 'it is not beside gpulease' test ! -e "$S/root/usr/bin/gpulease-view" -a \
		-x "$S/root/usr/lib/gpulease/gpulease-view"
	is 'it has no right of a group' [ ! -g "$S/root/usr/lib/gpulease/gpulease-view" ]
	rm "$S/root/usr/lib/gpulease/gpulease-view"
	run 'without it, one line says what is missing' 125 '' \
		'gpulease: this needs gpulease-view, which is not installed; install gpulease again: make install' \
		"$S/root/usr/bin/gpulease" --metrics
fi

mkdir "$S/alone"
cp "$GPULEASE" "$build/gpulease-view" "$S/alone"
run 'a copy of both in one folder works' 0 '*# EOF' '' "$S/alone/gpulease" --metrics
mv "$S/alone/gpulease-view" "$S/view"
for option in --top --timeline --metrics; do
	run "without gpulease-view $option is one line" 125 '' \
		'gpulease: this needs gpulease-view, *' "$S/alone/gpulease" "$option"
done
run 'without gpulease-view gpulease does all else' 0 '*no job waits*' '' \
	"$S/alone/gpulease" --status
rm "$S/alone/gpulease"
mv "$S/view" "$S/alone/gpulease-view"
run 'gpulease-view without gpulease is one line' 125 '' \
	'gpulease: cannot find gpulease; install it again: make install' \
	"$S/alone/gpulease-view" view gpulease --metrics

# --- run by hand ---------------------------------------------------------------------------

view=$build/gpulease-view
run 'gpulease-view without words is one line' 125 '' 'gpulease: *' "$view"
is 'the line is one line' [ "$(wc -l <"$S/err")" -eq 1 ]
run 'a verb of gpulease is not for gpulease-view' 125 '' "$part" "$view" view gpulease --status
run 'a command is not for gpulease-view' 125 '' "$part" "$view" view gpulease true
run 'an option that does not exist is refused' 125 '' 'gpulease: *--no-such*' \
	"$view" view gpulease --metrics --no-such

# --- what gpulease is asked ----------------------------------------------------------------

# A gpulease that notes its words, a line each, and does what $S/does says.
fake=$S/alone/gpulease
cat >"$fake" <<'END'
#!/bin/sh
printf '%s\n' "$@" >"${0%/*}/words"
. "${0%/*}/../does"
END
chmod +x "$fake"
view=$S/alone/gpulease-view
unset GPULEASE_SIM
small='{"taken_unix_ms": 1}'

# does CODE: what that gpulease does
does() {
	printf '%s\n' "$1" >"$S/does"
}

# words_are TEXT WORD…: a result, good if gpulease was given these words.
words_are() {
	words_text=$1
	shift
	is "$words_text" [ "$(cat "$S/alone/words")" = "$(printf '%s\n' "$@")" ]
}

does "echo '$small'"
run 'gpulease is asked for its state' 0 '*# EOF' '' "$view" view gpulease --metrics
words_are 'without options it gets none' --status --json
run '--config and --dir are passed on' 0 '*# EOF' '' \
	"$view" view gpulease --config "$S/a conf" --dir "$S/a dir" --metrics
words_are 'blanks in them stay' --config "$S/a conf" --dir "$S/a dir" --status --json
run '--sim is passed on' 0 '*# EOF' '' "$view" view gpulease --sim 3x10G --metrics
words_are 'with the size of the memory' --sim=3x10240 --status --json
does "printenv GPULEASE_DIR >'$S/seen'; cat >>'$S/seen'; echo '$small'"
run 'gpulease has the environment and an empty stdin' 0 '*# EOF' '' \
	sh -c 'echo x | GPULEASE_DIR=/d "$1" view gpulease --metrics' sh "$view"
is 'so GPULEASE_DIR needs no option' [ "$(cat "$S/seen")" = /d ]
words_are 'and has none' --status --json

# --- a gpulease that fails -----------------------------------------------------------------

does 'echo "gpulease: it has failed" >&2; echo second >&2; exit 125'
run 'the first line of its message is printed' 125 '' 'gpulease: it has failed' \
	"$view" view gpulease --metrics
does 'printf "gpulease: \033[31mred\n" >&2; exit 125'
run 'control characters in it are not' 125 '' 'gpulease: ?\[31mred' "$view" view gpulease --metrics
does "echo 'gpulease: a warning' >&2; echo '$small'"
run 'a message of a gpulease that succeeds is printed, too' 0 '*# EOF' 'gpulease: a warning' \
	"$view" view gpulease --metrics
does 'exit 7'
run 'without a message its status is printed' 125 '' 'gpulease: gpulease has failed with status 7' \
	"$view" view gpulease --metrics
does 'kill -KILL $$'
run 'that of a killed gpulease, too' 125 '' 'gpulease: gpulease has failed with status 137' \
	"$view" view gpulease --metrics
for text in '' nonsense '[]' '{}' '{"taken_unix_ms": 1'; do
	does "printf %s '$text'"
	run "what is no state is one line: '$text'" 125 '' \
		'gpulease: cannot read what gpulease prints: *' "$view" view gpulease --metrics
done
does "printf '{\"taken_unix_ms\": 1, \"later\": [{\"x\": null}]}'"
run 'members of a later version are skipped' 0 '*# EOF' '' "$view" view gpulease --metrics
does "echo '$small' | head -c 5; exec >&-; echo 'gpulease: full' >&2; exit 125"
run 'half an answer and a message: the message' 125 '' 'gpulease: full' \
	"$view" view gpulease --metrics
does "echo '$small'"
run 'stdout that cannot be written is told' 125 '' 'gpulease: cannot write the output: *' \
	sh -c '"$1" view gpulease --metrics >/dev/full' sh "$view"
finish
