#!/bin/sh
# What models need: the table in the configuration, --models, and the options that overrule them.
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

# The command prints how many GPUs it has, and the share or memory in its lease.
cat >"$S/need" <<'END'
#!/bin/sh
count=$(echo "$GPULEASE_GPUS" | tr , '\n' | grep -c .)
part=$(cat "$GPULEASE_DIR"/gpu/slot.* | tr '\0' '\n' | grep "ticket=$GPULEASE_ID " | head -n 1 |
	grep -o -e ' share=[0-9]*' -e ' vram=[0-9]*' | tr -d '\n')
echo "$count$part"
END
chmod +x "$S/need"

# needs TEXT NEED WORD…: a result, good if the command with these words prints NEED.  Words
# before `--` are options of gpulease.
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
needs 'a model can need a share' '1 share=50' -- "$S/need" --llm qwen2.5-3b-inst
needs 'the model'"'"'s option may have an equals sign' '1 share=50' -- "$S/need" \
	--llm=qwen2.5-3b-inst
needs 'the model'"'"'s option may stand among other words' '1 share=50' -- "$S/need" -x 1 \
	--llm qwen2.5-3b-inst --y z
needs 'a model can need memory' '1 vram=18432' -- "$S/need" --llm Llama/8B
needs '--margin counts with a model that needs memory' '1 vram=18432' --margin 1G -- "$S/need" --llm Llama/8B
needs 'a model can need several GPUs' 3 -- "$S/need" --llm big
needs 'a need above 1 is rounded up to whole GPUs' 2 -- "$S/need" --llm odd
needs 'a need below 0.01 is rounded up to 0.01' '1 share=1' -- "$S/need" --llm tiny
needs 'a model can need no GPU' 0 -- "$S/need" --llm cpu
needs 'a model that the table lacks gets the default' 2 -- "$S/need" --llm unknown
needs 'upper and lower case differ in the name of a model' 2 -- "$S/need" --llm QWEN2.5-3b-inst
needs 'a part of a model'"'"'s name does not match' 2 -- "$S/need" --llm qwen2.5
needs 'the last of several models counts' 3 -- "$S/need" --llm qwen2.5-3b-inst --llm=big
needs 'a command without a model gets one GPU' 1 -- "$S/need"
needs 'the model'"'"'s option without a name gets one GPU' 1 -- "$S/need" --llm
needs 'an option that is not the model'"'"'s gets one GPU' 1 -- "$S/need" --llmx big --ll=big \
	llm big
needs 'the name of the command is not taken for a model' 1 -- "$S/need" x

# --- options that overrule the table -------------------------------------------------------

needs '-n overrules the table' 1 -n 1 -- "$S/need" --llm big
needs '-G overrules the table' 2 -G 2 -- "$S/need" --llm big
needs '-n with a share overrules the table' '1 share=25' -n 0.25 -- "$S/need" --llm big
needs '--vram overrules the table' '1 vram=1024' --vram 1G -- "$S/need" --llm big
needs '-n 0 overrules the table' 0 -n 0 -- "$S/need" --llm big
needs '--gpu-ids of another length overrules the table' 1 --gpu-ids 2 -- "$S/need" --llm big
needs '--gpu-ids of the same length does not overrule the table' '1 share=50' --gpu-ids 2 -- \
	"$S/need" \
	--llm qwen2.5-3b-inst
needs '--exclusive leases a whole GPU instead of the share' '1 share=100' --exclusive -- \
	"$S/need" --llm qwen2.5-3b-inst
needs '--except does not overrule the table' 3 --except 0 -- "$S/need" --llm big
run 'a need that the options cannot satisfy is refused' 125 '' \
	'gpulease: cannot lease 3 GPUs: --allow 0 leaves only 1 of 4' \
	"$GPULEASE" --allow 0 "$S/need" --llm big

# --- --models ------------------------------------------------------------------------------

cat >"$table" <<'END'
# my own

qwen2.5-3b-inst = 0.25
wide = 4
END
run '--models without a model in the command says so' 0 1 \
	'gpulease: --models has no effect: the command has no --llm MODEL' \
	"$GPULEASE" --models "$table" "$S/need"
run '--models beside a number of GPUs says so' 0 2 \
	'gpulease: no effect here: --models (-n, --gpus or --vram says what a job needs)' \
	"$GPULEASE" --models "$table" -n 2 "$S/need" --llm big
needs '--models takes the place of the table' '1 share=25' --models "$table" -- "$S/need" \
	--llm qwen2.5-3b-inst
needs '--models takes the place of the table'"'"'s default, too' 1 --models "$table" -- "$S/need" --llm big
run '-v says that the table has no such model' 0 1 "*the table of models has neither 'big' nor a default*" \
	"$GPULEASE" -v --models "$table" "$S/need" --llm big
echo '{"default_requirement": 1.0, "models": {"half": 0.5, "third": 0.333, "two": 1.5}}' >"$table"
needs '--models takes JSON' '1 share=50' --models "$table" -- "$S/need" --llm half
needs 'shares in JSON are rounded up to hundredths' '1 share=34' --models "$table" -- \
	"$S/need" --llm third
needs 'needs above 1 in JSON are rounded up to whole GPUs' 2 --models "$table" -- "$S/need" \
	--llm two
needs 'the default of the JSON counts' 1 --models "$table" -- "$S/need" --llm four
printf '{\n "models":\n {"a": 0.5}}' >"$table"
needs 'JSON without a default gives one GPU' 1 --models "$table" -- "$S/need" --llm b
: >"$table"
needs 'an empty file of --models gives one GPU' 1 --models "$table" -- "$S/need" --llm big

# --- another option ------------------------------------------------------------------------

echo 'model-option = -m' >"$S/conf.new"
cat "$S/conf" >>"$S/conf.new" && mv "$S/conf.new" "$S/conf"
needs 'model-option changes the name of the option' 3 -- "$S/need" -m big
needs 'with model-option --llm is not the model'"'"'s option' 1 -- "$S/need" --llm big

# --- errors ----------------------------------------------------------------------------------

# A wrong table is an error even if the job names no model.
while IFS='|' read -r line text why; do
	printf '%b' "$text" >"$table"
	refused "this table is refused: ${text%%\\n*}" "$table, line $line: $why"
done <<'END'
1|qwen 0.5\n|'qwen 0.5' is not a model; write NAME = NEED
2|a = 1\nqwen = lots\n|qwen: 'lots' is not *
3|a = 1\n\nqwen = -1\n|qwen: '-1' is *
1|qwen =\n|the need is missing; write NAME = NEED
1| = 0.5\n|the name is missing; write NAME = NEED
2|default = 1\ndefault = 2\n|'default' is set twice, *line 1*
1|[models]\n|'[[]models]' is not a model; *
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
refused 'a model that stands twice is refused' "$table, line 2: 'a' is set twice, *line 1*"
rm "$table"
refused '--models with a missing file is refused' "cannot read the models in '$table': No such file or directory"
mkdir "$table"
refused '--models with a directory is refused' "cannot read the models in '$table': *"
rmdir "$table"
mkfifo "$table"
refused '--models with a FIFO is refused without a wait' "cannot read the models in '$table': it is not a regular file"
rm "$table"
yes '# more than can be read' | head -n 4000 >"$table"
refused '--models with a file that is too big is refused' "cannot read the models in '$table': it is bigger than 64 KiB"

finish
