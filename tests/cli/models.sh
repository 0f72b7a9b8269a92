#!/bin/sh
# What models need: the table in the configuration, --models, and who counts instead.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
fresh
gpus 4
table=$S/models
configured
: >"$S/conf"

# The command: how many GPUs it has, and what stands in its lease of a part of one.
cat >"$S/need" <<'END'
#!/bin/sh
count=$(echo "$GPULEASE_GPUS" | tr , '\n' | grep -c .)
part=$(cat "$GPULEASE_DIR"/gpu/slot.* | tr '\0' '\n' | grep "ticket=$GPULEASE_ID " | head -n 1 |
	grep -o -e ' share=[0-9]*' -e ' vram=[0-9]*' | tr -d '\n')
echo "$count$part"
END
chmod +x "$S/need"

# needs TEXT NEED WORD…: a result, good if the command with these words has that.  Words
# before `--` are gpulease's.
needs() {
	needs_text=$1 needs_need=$2
	shift 2
	run "$needs_text" 0 "$needs_need" '' "$GPULEASE" "$@"
}

refused() {
	run "$1" 125 '' "gpulease: $2" "$GPULEASE" --models "$table" "$S/need"
}

# --- the table of the configuration --------------------------------------------------------

cat >"$S/conf" <<'END'
margin = 512MiB

[models]
qwen2.5-3b-inst = 0.5   # half of a GPU
Llama/8B        = 18G
big             = 3
odd             = 1.2
tiny            = 0.001
cpu             = 0
default         = 2
END
needs 'a share' '1 share=50' -- "$S/need" --llm qwen2.5-3b-inst
needs 'with =' '1 share=50' -- "$S/need" --llm=qwen2.5-3b-inst
needs 'among other words' '1 share=50' -- "$S/need" -x 1 --llm qwen2.5-3b-inst --y z
needs 'memory' '1 vram=18432' -- "$S/need" --llm Llama/8B
needs 'GPUs' 3 -- "$S/need" --llm big
needs 'above one whole ones' 2 -- "$S/need" --llm odd
needs 'a share of less than a hundredth' '1 share=1' -- "$S/need" --llm tiny
needs 'none' 0 -- "$S/need" --llm cpu
needs 'the default of a model that is not there' 2 -- "$S/need" --llm unknown
needs 'a name is the same to the letter' 2 -- "$S/need" --llm QWEN2.5-3b-inst
needs 'no part of one' 2 -- "$S/need" --llm qwen2.5
needs 'the last of several' 3 -- "$S/need" --llm qwen2.5-3b-inst --llm=big
needs 'no model: as ever' 1 -- "$S/need"
needs 'the option without a name' 1 -- "$S/need" --llm
needs 'another option' 1 -- "$S/need" --llmx big --ll=big llm big
needs 'the name of the command is none of its words' 1 -- "$S/need" x

# --- who counts instead --------------------------------------------------------------------

needs 'a number of GPUs' 1 -n 1 -- "$S/need" --llm big
needs 'as srun has it' 2 -G 2 -- "$S/need" --llm big
needs 'a share' '1 share=25' -n 0.25 -- "$S/need" --llm big
needs 'memory' '1 vram=1024' --vram 1G -- "$S/need" --llm big
needs 'none at all' 0 -n 0 -- "$S/need" --llm big
needs 'a list that has another length' 1 --gpu-ids 2 -- "$S/need" --llm big
needs 'a list of the same length does not' '1 share=50' --gpu-ids 2 -- "$S/need" \
	--llm qwen2.5-3b-inst
needs 'exclusive: a GPU and no share of it' '1 share=100' --exclusive -- "$S/need" --llm qwen2.5-3b-inst
needs 'which GPUs is another question' 3 --except 0 -- "$S/need" --llm big
run 'it may be too much' 125 '' 'gpulease: cannot lease 3 GPUs: --allow 0 leaves only 1 of 4' \
	"$GPULEASE" --allow 0 "$S/need" --llm big

# --- --models ------------------------------------------------------------------------------

cat >"$table" <<'END'
# my own

qwen2.5-3b-inst = 0.25
wide = 4
END
needs 'a file takes the place of the table' '1 share=25' --models "$table" -- "$S/need" \
	--llm qwen2.5-3b-inst
needs 'all of it, with its default' 1 --models "$table" -- "$S/need" --llm big
run 'it says so' 0 1 "*the table of models has no 'big'*" \
	"$GPULEASE" -v --models "$table" "$S/need" --llm big
echo '{"default_requirement": 1.0, "models": {"half": 0.5, "third": 0.333, "two": 1.5}}' >"$table"
needs 'JSON' '1 share=50' --models "$table" -- "$S/need" --llm half
needs 'its shares are rounded up' '1 share=34' --models "$table" -- "$S/need" --llm third
needs 'its GPUs, too' 2 --models "$table" -- "$S/need" --llm two
needs 'its default' 1 --models "$table" -- "$S/need" --llm four
printf '{\n "models":\n {"a": 0.5}}' >"$table"
needs 'JSON without a default' 1 --models "$table" -- "$S/need" --llm b
: >"$table"
needs 'an empty file' 1 --models "$table" -- "$S/need" --llm big

# --- another option ------------------------------------------------------------------------

echo 'model-option = -m' >"$S/conf.new"
cat "$S/conf" >>"$S/conf.new" && mv "$S/conf.new" "$S/conf"
needs 'the option can have another name' 3 -- "$S/need" -m big
needs 'and then only that' 1 -- "$S/need" --llm big

# --- errors ----------------------------------------------------------------------------------

# Also where no model is asked for: what is wrong is found before it matters.
while IFS='|' read -r line text why; do
	printf '%b' "$text" >"$table"
	refused "wrong: ${text%%\\n*}" "$table, line $line: $why"
done <<'END'
1|qwen 0.5\n|'qwen 0.5' is no model; write NAME = NEED
2|a = 1\nqwen = lots\n|qwen: 'lots' is not *
3|a = 1\n\nqwen = -1\n|qwen: '-1' is *
1|qwen =\n|the need is missing; write NAME = NEED
1| = 0.5\n|the name is missing; write NAME = NEED
2|default = 1\ndefault = 2\n|'default' is set twice; *line 1*
1|[models]\n|'[[]models]' is no model; *
1|qwen = 500\n|*
1|{"models": {"a": 1,}}|*
2|{"models":\n{"a": "1"}}|*
1|{"models": {"a": 1}|*
1|{"model": {"a": 1}}|*
1|{"models": {"a": 1}} x|*
1|{"models": {"a": 1e2}}|*
1|{"default_requirement": 1, "default_requirement": 2}|*
END
printf 'a = 0.5\na = 0.6\n' >"$table"
refused 'a model twice' "$table, line 2: 'a' is set twice; *line 1*"
rm "$table"
refused 'a file that is not there' "cannot read models '$table': No such file or directory"
mkdir "$table"
refused 'a directory' "cannot read models '$table': *"
rmdir "$table"
mkfifo "$table"
refused 'a FIFO, which is not waited for' "cannot read models '$table': it is not a regular file"
rm "$table"
yes '# more than can be read' | head -n 4000 >"$table"
refused 'a file without end' "cannot read models '$table': it is bigger than 64 KiB"

finish
