#!/bin/sh
# The same command lines on one machine and on a cluster: stdout and exit status are equal.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
if ! cluster 1 8; then
	skip 'a real cluster' "$cluster_why"
	finish
fi

# Each line runs in a folder of its own, as a script would run it.
cat >"$S/lines" <<'END'
gpulease -n 1 -- echo hello
gpulease -n 2 -- sh -c 'echo $CUDA_VISIBLE_DEVICES | tr , "\n" | wc -l'
gpulease -n 0 -- sh -c 'echo "[$CUDA_VISIBLE_DEVICES]"'
gpulease -n 1 -- sh -c 'exit 7'
gpulease -n 1 -- sh -c 'kill -TERM $$'
gpulease -n 1 -- nosuchcommand
touch plain; gpulease -n 1 -- ./plain
gpulease -n 1 -- printf '<%s>' 'a  b' '' '$x "y" \z' "it's" 'ä€' 'two
lines'
echo from stdin | gpulease -n 1 -- cat
gpulease -n 99 -- true
gpulease -n 1 --setup 'X=from-setup; export X' -- sh -c 'echo $X'
gpulease -n 3 -- echo '{ngpus}' '{{gpus}}'
gpulease -n 1 --retries 1 -- sh -c 'echo x >>tries; [ $(wc -l <tries) -eq 2 ]'; rc=$?; cat tries; (exit $rc)
mkdir there; gpulease -n 1 -D there -- sh -c 'basename "$PWD"'
VAR='a b' gpulease -n 1 -- sh -c 'echo "$VAR"'
id=$(gpulease --submit -n 1 -- sh -c 'echo to the log; exit 5'); gpulease --wait-for $id; rc=$?; gpulease --log $id | grep -v ^gpulease:; (exit $rc)
id=$(gpulease --submit -n 1 -- false); gpulease --submit -n 1 --after-ok $id -- echo never >id2; gpulease --wait-for "$(cat id2)"
gpulease --cancel 999999999
id=$(gpulease --submit -n 1 -- sleep 1000); gpulease --cancel $id >/dev/null; gpulease --wait-for $id
id=$(gpulease --submit -n 8 -- sleep 1000); until gpulease --status $id | grep -q 'state *running'; do sleep 0.1; done; gpulease --max-wait 1s -n 1 -- echo never; rc=$?; gpulease --cancel $id >/dev/null; gpulease --wait-for $id; (exit $rc)
id=$(gpulease --submit -n 1 -t 1s --grace 1s -- sleep 1000); gpulease --wait-for $id
gpulease --submit -n 1 --name first -- sleep 1000 >id; gpulease --cancel first; gpulease --wait-for $(cat id)
printf 'echo one\nfalse\n' >jobs.txt; gpulease --batch jobs.txt >/dev/null; rc=$?; grep -hv ^gpulease: jobs.txt.logs/*.log; (exit $rc)
gpulease -n 1 -o out.txt -- echo to a file; cat out.txt
gpulease --dry-run -n 1 -- true >/dev/null
gpulease --queue --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["queue"])'
gpulease --frobnicate
END

# all_lines NAME: runs them all; what they print and how they end is in $S/NAME.
all_lines() {
	mkdir -p "$S/bin" "$S/$1"
	ln -sf "$GPULEASE" "$S/bin/gpulease"
	number=0
	while IFS= read -r line; do
		case $line in
		*"'two") read -r rest && line="$line
$rest" ;;
		esac
		number=$((number + 1))
		mkdir -p "$S/$1/$number"
		printf '%s\n' "--- $line" >>"$S/$1.all"
		(cd "$S/$1/$number" && PATH=$S/bin:$PATH exec timeout 60 sh -c "$line") \
			</dev/null >"$S/$1/$number/stdout" 2>"$S/$1/$number/stderr"
		rc=$?
		[ "$1" = local ] || compare "$rc" "$line"
		echo "$rc" >"$S/$1/$number/rc"
	done <"$S/lines"
}

# compare RC LINE: one result, for the line that has just run on the cluster.
compare() {
	if [ "$1" = "$(cat "$S/local/$number/rc")" ] &&
		cmp -s "$S/local/$number/stdout" "$S/cluster-run/$number/stdout"; then
		ok "as on one machine: $2"
	else
		not_ok "as on one machine: $2" \
			"one machine: $(cat "$S/local/$number/rc" "$S/local/$number/stdout" "$S/local/$number/stderr")" \
			"cluster: $1 $(cat "$S/cluster-run/$number/stdout" "$S/cluster-run/$number/stderr")"
	fi
}

all_lines local
slurm_engine
all_lines cluster-run
finish
