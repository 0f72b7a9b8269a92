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
run '{gpus} has the numbers that the command sees' 0 '<0,1><2><--cuda=0,1>' '' \
	"$GPULEASE" -n 2 "$S/args" '{gpus}' '{ngpus}' '--cuda={gpus}'
run 'with --inject-style physical {gpus} has the machine'"'"'s numbers' 0 '<2,3>' '' \
	"$GPULEASE" -n 2 --inject-style physical "$S/args" '{gpus}'
run '{gpus} fits CUDA_VISIBLE_DEVICES' 0 '2,3:0,1' '' "$GPULEASE" -n 2 \
	sh -c 'echo "$CUDA_VISIBLE_DEVICES:$1"' sh '{gpus}'
run '{uuids} and {id} are those of the environment' 0 'same' '' "$GPULEASE" -n 2 \
	sh -c '[ "$1:$2" = "$GPULEASE_UUIDS:$GPULEASE_ID" ] && echo same' sh '{uuids}' '{id}'
run 'other braces are not changed' 0 '<{}><{"id":1}><${id}><{id}>' '' \
	"$GPULEASE" -n 1 "$S/args" '{}' '{"id":1}' '${id}' '{{id}}'
run '--inject adds its option' 0 '<a><--cuda><0,1>' '' "$GPULEASE" -n 2 --inject=--cuda \
	"$S/args" a
run '--inject replaces the value of its option' 0 '<--cuda><0,1><a>' '' \
	"$GPULEASE" -n 2 --inject=--cuda "$S/args" --cuda 5 a
run '--inject-style physical replaces with the machine'"'"'s numbers' 0 '<-g=2,3>' '' \
	"$GPULEASE" -n 2 --inject=-g --inject-style=physical "$S/args" -g=5
run '--inject replaces an option that ends in an equals sign' 0 '<devices=0>' '' \
	"$GPULEASE" --inject=devices= "$S/args" devices=3
run '--inject adds its option before two dashes' 0 '<a><--cuda><0><--><--cuda><3>' '' \
	"$GPULEASE" --inject --cuda -- "$S/args" a -- --cuda 3
run '--inject without GPUs removes the option' 0 '<a><><0>' '' \
	"$GPULEASE" -n 0 --inject=--cuda "$S/args" a --cuda 7 '{gpus}' '{ngpus}'
run '{gpus} of a step are numbers inside its lease' 0 '<0,1,2><0>' '' "$GPULEASE" -n 3 sh -c '
	"$1" "$2" "{{gpus}}"; "$1" -n 1 "$2" "{{gpus}}"' sh "$GPULEASE" "$S/args"
run '--inject works for a job with a supervisor' 0 '<--cuda><0>' '*' "$GPULEASE" --report \
	--inject=--cuda "$S/args"
run '--inject-style refuses an unknown style' 125 '' "*neither local nor physical" \
	"$GPULEASE" --inject-style none true
run '--inject refuses an empty option' 125 '' 'gpulease: --inject needs a value: *' \
	"$GPULEASE" --inject= true
run '--inject refuses an option that is only an equals sign' 125 '' 'gpulease: --inject: *' \
	"$GPULEASE" --inject== true
release_all first
finish
