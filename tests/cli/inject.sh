#!/bin/sh
# The GPUs of a job in the arguments of its command.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
cat >"$S/args" <<'END'
#!/bin/sh
printf '<%s>' "$@"
END
chmod +x "$S/args"

holder first -n 2
run 'numbers are those that the command sees' 0 '<0,1><2><--cuda=0,1>' '' \
	"$GPULEASE" -n 2 "$S/args" '{gpus}' '{ngpus}' '--cuda={gpus}'
run 'or, if one wants, those that everybody sees' 0 '<2,3>' '' \
	"$GPULEASE" -n 2 --inject-style physical "$S/args" '{gpus}'
run 'they fit CUDA_VISIBLE_DEVICES' 0 '2,3:0,1' '' "$GPULEASE" -n 2 \
	sh -c 'echo "$CUDA_VISIBLE_DEVICES:$1"' sh '{gpus}'
run 'UUIDs and the id are those of the environment' 0 'same' '' "$GPULEASE" -n 2 \
	sh -c '[ "$1:$2" = "$GPULEASE_UUIDS:$GPULEASE_ID" ] && echo same' sh '{uuids}' '{id}'
run 'other braces stay' 0 '<{}><{"id":1}><${id}><{id}>' '' \
	"$GPULEASE" -n 1 "$S/args" '{}' '{"id":1}' '${id}' '{{id}}'
run 'an option is added' 0 '<a><--cuda><0,1>' '' "$GPULEASE" -n 2 --inject=--cuda "$S/args" a
run 'an option is replaced' 0 '<--cuda><0,1><a>' '' \
	"$GPULEASE" -n 2 --inject=--cuda "$S/args" --cuda 5 a
run 'by its other numbers' 0 '<-g=2,3>' '' \
	"$GPULEASE" -n 2 --inject=-g --inject-style=physical "$S/args" -g=5
run 'one that ends in an equals sign' 0 '<devices=0>' '' \
	"$GPULEASE" --inject=devices= "$S/args" devices=3
run 'before two dashes' 0 '<a><--cuda><0><--><--cuda><3>' '' \
	"$GPULEASE" --inject --cuda -- "$S/args" a -- --cuda 3
run 'none without GPUs' 0 '<a><><0>' '' \
	"$GPULEASE" -n 0 --inject=--cuda "$S/args" a --cuda 7 '{gpus}' '{ngpus}'
run 'a step has those of its lease' 0 '<0,1,2><0>' '' "$GPULEASE" -n 3 sh -c '
	"$1" "$2" "{{gpus}}"; "$1" -n 1 "$2" "{{gpus}}"' sh "$GPULEASE" "$S/args"
run 'looked after' 0 '<--cuda><0>' '*' "$GPULEASE" --report --inject=--cuda "$S/args"
run 'a style that there is not' 125 '' "*neither local nor physical" \
	"$GPULEASE" --inject-style none true
run 'an empty option' 125 '' 'gpulease: --inject: *' "$GPULEASE" --inject= true
run 'one that says nothing' 125 '' 'gpulease: --inject: *' "$GPULEASE" --inject== true
release_all first
finish
