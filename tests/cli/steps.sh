#!/bin/sh
# Steps of a lease: exclusive ones get GPUs of their own and wait for each other, the others share;
# steps of another job; the numbers of steps.
# shellcheck disable=SC2016,SC2034 # for the shells of steps and for wait_until

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
export S
ln -s "$GPULEASE" "$S/srun"
show='echo $CUDA_VISIBLE_DEVICES'

# enter NAME: from now on this script is in the lease of job NAME, and starts steps of it.
enter() {
	eval "$(tr '\0' '\n' <"/proc/$(cut -d ' ' -f 1 "$S/$1.runs")/environ" |
		sed -n "s/^\(GPULEASE_\(TOKEN\|ID\|UUIDS\|STEP\)\)=\(.*\)/export \1='\3'/p")"
}

leave() {
	unset GPULEASE_TOKEN GPULEASE_ID GPULEASE_UUIDS GPULEASE_STEP
}

command_of() {
	cut -d ' ' -f 1 "$S/$1.runs"
}

# has_gone PID: whether the process has ended
has_gone() {
	wait_until "like '[ZX]' \"\$(process_state $1)\" || [ ! -e /proc/$1 ]"
}

# --- four GPUs, five steps ---------------------------------------------------------------

holder lease -n 4 --gpu-ids 0-3
enter lease
for each in a b c d; do
	holder $each --exclusive -n 1
done
is 'four exclusive steps have four GPUs' \
	[ "$(for each in a b c d; do gpus_of $each; done | sort | xargs)" = '0 1 2 3' ]
is 'they have the id of their job' [ "$(id_of a)" = "$(id_of lease)" ]
waiter e --exclusive -n 1
is 'a fifth step says what it waits for' like "gpulease: a step of job [0-9]* waits for 1 of its 4 GPUs: other steps have them; with --overlap it would share them" \
	"$(cat "$S/e.err")"
is 'it has no timer' [ -z "$(sed -n 's/^clockid: //p' "/proc/$(pid_of e)/fdinfo/"* 2>/dev/null)" ]
gpu=$(gpus_of c)
release_all c
is 'it starts when one has ended' wait_until 'runs e'
is 'it has the GPU of that step' [ "$(gpus_of e)" = "$gpu" ]

waiter f --exclusive -n 1
parent=$(pid_of a) command=$(command_of a) gpu=$(gpus_of a)
is 'the parent of a step is not its command' [ "$parent" != "$command" ]
kill -KILL "$parent"
is 'a killed parent leaves no command' has_gone "$command"
is 'its GPU is free' wait_until 'runs f'
is 'the next step has it' [ "$(gpus_of f)" = "$gpu" ]

run '--immediate gives up' 124 '' 'gpulease: a step of job [0-9]* gave up waiting for 1 of its 4 GPUs: *' \
	"$GPULEASE" --exclusive -I -n 1 true
run '-Q is silent about it' 124 '' '' "$GPULEASE" -Q --exclusive -I -n 1 true
run '--max-wait gives up later' 124 '' '*waits for 1 of its 4 GPUs: *gave up waiting for 1 of*' \
	"$GPULEASE" --exclusive --max-wait 50ms -n 1 true
run 'a step without --exclusive starts at once, and says that it is not alone' 0 '0,1' \
	'gpulease: a step of job [0-9]* has GPUs together with another step; *' "$GPULEASE" -n 2 sh -c "$show"
run 'once in a job' 0 '0,1' '' "$GPULEASE" -n 2 sh -c "$show"
run 'a step with --overlap, too' 0 '0,1,2,3' '' "$S/srun" --overlap sh -c "$show"
run '--exclusive and --overlap exclude each other' 125 '' '*--exclusive and --overlap exclude each other*' \
	"$GPULEASE" --exclusive --overlap true
run 'an exclusive step without a GPU starts at once' 0 '' '*' "$GPULEASE" --exclusive -n 0 sh -c "$show"
run '--dry-run does not wait' 0 '*' '' "$GPULEASE" --dry-run --exclusive -n 1 true
release_all b d e f
run 'without -n an exclusive step has all GPUs' 0 '0,1,2,3' '' "$GPULEASE" --exclusive sh -c "$show"
run '--gpu-ids: these GPUs, in their order' 0 '3,1' '' "$GPULEASE" --exclusive --gpu-ids 3,1 sh -c "$show"

# --- what the command gets, and how it ends ----------------------------------------------

run 'the step keeps the token; its lists name its own GPUs' 0 "$GPULEASE_TOKEN 1 1 *01 1" '' \
	"$GPULEASE" --exclusive --gpu-ids 1 sh -c 'echo $GPULEASE_TOKEN $CUDA_VISIBLE_DEVICES \
	$GPULEASE_GPUS $GPULEASE_UUIDS $(echo $GPULEASE_UUIDS | tr , "\n" | wc -l)'
run 'the command has no descriptor of a lock' 0 0 '' "$GPULEASE" --exclusive sh -c \
	'ls -l /proc/self/fd | grep -c "/live/.*[.]"; :'
run 'the exit status is that of the command' 7 '' '' "$GPULEASE" --exclusive sh -c 'exit 7'
run 'a signal that ends the command' 143 '' '*' sh -c '"$GPULEASE" --exclusive sh -c "kill \$\$"; exit $?'
run 'a program that is missing: 127' 127 '' "gpulease: command 'no-such' was not found*" \
	"$GPULEASE" --exclusive no-such
printf 'echo "$0 $1"\n' >"$S/script"
chmod +x "$S/script"
run 'a script without #! is run by sh' 0 "$S/script word" '' "$GPULEASE" --exclusive "$S/script" word
run '-o is the output of the step' 0 '' '' "$GPULEASE" --exclusive -o "$S/written" echo word
is 'the file has it' [ "$(cat "$S/written")" = word ]
run '--setup and --inject' 0 'word 0,1' '' "$GPULEASE" --exclusive --gpu-ids 2,3 --setup 'export a=word' \
	--inject --gpu sh -c 'echo $a $2' sh --gpu 1
run 'the input reaches the step' 0 word '' sh -c 'echo word | "$GPULEASE" --exclusive cat'
run 'a time limit ends the step' 143 '' '*' "$GPULEASE" --exclusive -t 200ms sleep 1000

holder a --exclusive -n 4
kill -USR1 "$(pid_of a)"
ended a
is 'a signal to the parent reaches the command' [ "$rc" = 138 ]

"$GPULEASE" --exclusive sh -c 'sleep 1000 & echo $! >"$S/left"' >"$S/out" 2>&1
read -r left <"$S/left"
run 'what a step has left in the background does not keep its GPUs' 0 '0,1,2,3' '' \
	"$GPULEASE" --exclusive -I sh -c "$show"
is 'and lives on' kill -0 "$left"
kill "$left"
# desk TEXT STEP…: as a user at a terminal, with an exclusive step that says what it reads and gets
desk() {
	desk_text=$1
	shift
	run "$desk_text" 0 '' '' "$TOOLS/jobcontrol" see:ready "$@" -- \
		"$GPULEASE" --exclusive -- "$TOOLS/jobcontrol" --listen
}
desk 'Ctrl-Z suspends an exclusive step, fg continues it' 'type:^Z' stop:TSTP asleep fg \
	'see:got CONT' 'type:word^J' 'see:read word' 'count:1:got CONT' 'type:exit 3^J' end:3
desk 'Ctrl-C reaches it once' 'type:^C' 'see:got INT' asleep 'count:1:got INT' 'type:exit 0^J' end:0
desk 'a signal to the group reaches it once' killpg:TERM 'see:got TERM' asleep \
	'count:1:got TERM' 'type:exit 0^J' end:0
desk 'a signal to its parent reaches it' kill:USR1 'see:got USR1' 'count:1:got USR1' \
	'type:exit 0^J' end:0

# --- tasks, and steps in steps -----------------------------------------------------------

run 'tasks of an exclusive step divide its GPUs' 0 '2
3' '' sh -c '"$GPULEASE" --exclusive --gpu-ids 2,3 --ntasks 2 --gpu-bind=per_task:1 sh -c "$1" | sort' sh "$show"
run 'a gpulease in a task chooses among the GPUs of the task' 0 '2 2
3 3' '' sh -c '"$GPULEASE" --gpu-ids 2,3 --ntasks 2 --gpu-bind=per_task:1 \
	"$GPULEASE" sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_GPUS" | sort'
run 'a gpulease in a step cannot have more than the step' 125 '' \
	'gpulease: cannot use 2 GPUs: GPULEASE_UUIDS * leaves only 1 of 4 of the lease around this step (job *)*' \
	"$GPULEASE" -n 1 "$GPULEASE" -n 2 true
holder outer --exclusive --gpu-ids 1,2
enter outer
holder a --exclusive -n 1
holder b --exclusive -n 1
is 'exclusive steps in an exclusive step divide its GPUs' \
	[ "$( (gpus_of a && gpus_of b) | sort | xargs)" = '1 2' ]
run 'a third one finds none free' 124 '' '' "$GPULEASE" -Q --exclusive -I -n 1 true
release_all a b outer
leave
enter lease
holder beside --exclusive --gpu-ids 0
# lost NAME…: the GPUs of an exclusive step in a step with the GPUs 2 and 3, without these variables
lost() {
	lost_words=
	for each in "$@"; do
		lost_words="$lost_words -u $each"
	done
	# shellcheck disable=SC2086 # the words of env
	timeout -s KILL "$DEADLINE" "$GPULEASE" --exclusive --gpu-ids 3,2 \
		env -u CUDA_VISIBLE_DEVICES $lost_words "$GPULEASE" --exclusive ${lost_n-} \
		sh -c 'echo "$CUDA_VISIBLE_DEVICES level ${GPULEASE_STEP#*.}"'
}
variables='GPULEASE_STEP GPULEASE_UUIDS GPULEASE_GPUS GPULEASE_ID'
run 'a step that has lost its GPUs in the environment does not wait for the step around it' \
	0 '2,3 level 2' '' lost GPULEASE_UUIDS
run 'or all but the token' 0 '2,3 level 2' '' eval "lost $variables"
lost_n='-n 1'
run 'it has no GPU that another step has' 0 '2 level 2' '' lost GPULEASE_UUIDS
run 'nor one beside the step around it' 0 '2 level 2' '' eval "lost $variables"
run 'the step around it is found without the number of the steps' 0 '3 level 2' '' \
	lost GPULEASE_STEP
lost_n='-n 3'
run 'more than the step around it has is refused' 125 '' \
	"gpulease: cannot use 3 GPUs: the exclusive step around this one (job [0-9]*) has only 2" \
	lost GPULEASE_UUIDS
release_all beside

# --- a GPU option of srun: the step has its GPUs for itself ---------------------------------

for each in '--gpus=1' '-G 1' '--gres=gpu:1' '--gpus-per-task=1' '--exact -n1 --gpus=1' '--gpus-per-node=1'; do
	# shellcheck disable=SC2086 # words
	{
		holder a $each
		holder b $each
	}
	is "two steps with $each have two GPUs" [ "$(gpus_of a)" != "$(gpus_of b)" ]
	# shellcheck disable=SC2086 # words
	run "a step inside a step with $each has its GPU" 0 '[0-3] 2' '' \
		"$GPULEASE" $each "$GPULEASE" --gpus=1 sh -c 'echo $CUDA_VISIBLE_DEVICES ${GPULEASE_STEP#*.}'
	# shellcheck disable=SC2086 # words
	run "also if nothing in the environment says so: $each" 0 '[0-3] 2' '' "$GPULEASE" $each env -u CUDA_VISIBLE_DEVICES \
		-u GPULEASE_UUIDS -u GPULEASE_STEP -u GPULEASE_GPUS "$GPULEASE" --gpus=1 sh -c 'echo $CUDA_VISIBLE_DEVICES ${GPULEASE_STEP#*.}'
	release_all a b
done
holder a --gpus=3
run 'a step that finds too few waits' 124 '' '*waits for 2 of its 4 GPUs: other steps have them; *gave up*' \
	"$GPULEASE" --gpus=2 --max-wait 50ms true
run 'with --overlap it shares' 0 '0,1' '' "$GPULEASE" --overlap --gpus=2 sh -c "$show"
run 'srun without a GPU option has all GPUs' 0 '0,1,2,3' '' "$S/srun" sh -c "$show"
release_all a
holder a -n 1
holder b --gpus=4
is 'a step that gets the GPU of one without a GPU option does not wait' [ "$(gpus_of b)" = 0,1,2,3 ]
release_all a b
run 'a step without GPUs does not wait' 0 '' '' "$GPULEASE" --gpus=0 sh -c "$show"

mkdir "$S/bin" && ln -s "$GPULEASE" "$S/bin/srun"
echo '#!/proc/nonexistent/interpreter' >"$S/bad" && chmod +x "$S/bad"
run 'in a job script the one task takes the place of srun' 0 'srun 0 of 1' '' "$GPULEASE" -Q -n 1 sh -c '
	SLURM_JOB_ID=$GPULEASE_ID "$S/bin/srun" sh -c "echo \$\$ \$SLURM_PROCID of \$SLURM_NTASKS" >"$S/one" &
	wait; read -r pid task <"$S/one"; [ "$pid" = $! ] && echo "srun $task"'
run 'with its lines numbered it does not' 0 'child' '' "$GPULEASE" -Q -n 1 sh -c '
	SLURM_JOB_ID=$GPULEASE_ID "$S/bin/srun" -l sh -c "echo \$\$" >"$S/one" &
	wait; read -r label pid <"$S/one"; [ "$label" = 0: ] && [ "$pid" != $! ] && echo child'
run 'a task that cannot be executed is named' 127 '' "gpulease: task 0: cannot execute '*': *" \
	"$GPULEASE" -Q -n 1 sh -c 'SLURM_JOB_ID=$GPULEASE_ID "$S/bin/srun" "$1"' sh "$S/bad"

# --- two steps that need two GPUs of three -----------------------------------------------

release_all lease
leave
run 'steps of two GPUs in a lease of three do not block each other' 0 '80' '' \
	timeout -s KILL "$DEADLINE" "$GPULEASE" -n 3 sh -c '
	for each in 1 2 3 4; do
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			"$GPULEASE" -Q --exclusive -n 2 echo ran
		done &
	done | grep -c ran'
# each step marks its GPUs as in use, and says so if one is marked already
cat >"$S/mark" <<'EOF'
#!/bin/sh
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
	mkdir "$S/used.$gpu" || echo "GPU $gpu is in use"
done
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
	rmdir "$S/used.$gpu"
done
EOF
chmod +x "$S/mark"
run 'no GPU is in two exclusive steps at once' 0 '' '' timeout -s KILL "$DEADLINE" \
	"$GPULEASE" -n 3 sh -c '
	for each in 1 2 3 4 5 6; do
		for i in 1 2 3 4 5 6 7 8 9 10; do
			"$GPULEASE" -Q --exclusive -n $((1 + (each + i) % 2)) "$S/mark"
		done &
	done; wait'
run 'two steps with one GPU are said once' 0 '1' '' sh -c '"$GPULEASE" -n 2 sh -c "
	for i in 1 2 3; do \"\$GPULEASE\" -n 1 sh -c \"mkfifo \$S/fifo.\$i; read -r l <\$S/fifo.\$i\" & done
	for i in 1 2 3; do until [ -p \$S/fifo.\$i ]; do sleep 0.05; done; done
	for i in 1 2 3; do echo >\$S/fifo.\$i; done; wait" 2>&1 | grep -c "has GPUs together with another step"'
run 'one after the other is nothing to speak of' 0 '0
0' '' "$GPULEASE" --gpu-ids 0,1 sh -c 'for i in 1 2; do "$GPULEASE" -n 1 sh -c "echo \$CUDA_VISIBLE_DEVICES"; done'
run 'on a shared GPU a GPU option shares, too' 0 '[0-7]' '' "$GPULEASE" -n 0.5 "$GPULEASE" --gpus=1 sh -c "$show"
run 'on a shared GPU a step cannot be exclusive' 125 '' '*its GPU is shared with others; leave --exclusive out' \
	"$GPULEASE" -n 0.5 "$GPULEASE" --exclusive true

# --- numbers -----------------------------------------------------------------------------

number='echo $SLURM_STEP_ID $SLURM_STEPID'
run 'steps of a lease with tasks are numbered' 0 '0 0
1 1
2 2' '' "$GPULEASE" -n 1 sh -c 'for i in 1 2 3; do "$GPULEASE" -G 1 -n 1 -l sh -c "$1"; done | cut -c 4-' sh "$number"
run '%s and %J in the name of a file' 0 '*.0 *.1' '' "$GPULEASE" -n 1 sh -c '
	for i in 1 2; do "$GPULEASE" -G 1 -n 1 -l -o "$S/out-%s-%J" true; done; cd "$S" && echo out-0-*.0 out-1-*.1'
run 'a job with tasks is step 0' 0 '0: 0 0' '' "$GPULEASE" -G 1 -n 1 -l sh -c "$number"

# --- steps of another job ----------------------------------------------------------------

holder other -n 2 --gpu-ids 5,6 --name other
id=$(id_of other)
run '--jobid of another job needs --overlap' 125 '' "gpulease: --jobid: cannot join job $id: *add --overlap" \
	"$GPULEASE" --jobid "$id" true
run 'with --overlap the command runs on its GPUs' 0 "5,6 $id" '' \
	"$S/srun" --overlap --jobid "$id" sh -c 'echo $CUDA_VISIBLE_DEVICES $GPULEASE_ID'
run 'from inside another lease, too' 0 "6 $id" '' "$GPULEASE" -n 1 \
	"$GPULEASE" --overlap "--jobid=$id" --gpu-ids 6 sh -c 'echo $CUDA_VISIBLE_DEVICES $GPULEASE_ID'
run 'a job that does not exist' 125 '' 'gpulease: --jobid: cannot join job 99999: it has no GPUs or no command now' \
	"$GPULEASE" --overlap --jobid 99999 true
run 'what is no number' 125 '' 'gpulease: --jobid: *' "$GPULEASE" --overlap --jobid x true
run 'the job around the process needs no --overlap' 0 '7' '' "$GPULEASE" --gpu-ids 7 sh -c \
	'"$GPULEASE" --jobid "$GPULEASE_ID" sh -c "$1"' sh "$show"
holder joined --overlap --jobid "$id"
release_all other
run 'the lease lives as long as the step' 124 '' '*' "$GPULEASE" -I --gpu-ids 5 true
run 'a job that has ended cannot be joined' 125 '' "gpulease: --jobid: cannot join job $id: it has no GPUs or no command now" \
	"$GPULEASE" --overlap --jobid "$id" true
run 'cancel ends the step of an ended job' 0 '*' '*' "$GPULEASE" --cancel "$id"
is 'the step ends' has_gone "$(pid_of joined)"
run 'then its GPUs are free' 0 5 '' "$GPULEASE" --gpu-ids 5 sh -c "$show"

# --- the end of the job ------------------------------------------------------------------

: >"$S/began"
mkfifo "$S/end"
echo 'echo $$ >>"$S/began"; read -r word <"$S/end"' >"$S/until-end"
"$GPULEASE" --gpu-ids 3 sh -c 'echo "$GPULEASE_ID" >"$S/id"; for each in 1 2 3; do
	"$GPULEASE" --exclusive sh "$S/until-end" & done; wait' 2>"$S/waits" &
script=$!
started="$started $script"
# began N: whether so many of the steps have started
began() {
	[ "$(grep -c . "$S/began")" = "$1" ]
}
wait_until 'began 1 && [ "$(grep -c " waits for 1 of its 1 " "$S/waits")" = 2 ]' ||
	bail "the steps do not wait: $(cat "$S/waits")"
kill -KILL "$script"
wait "$script" 2>/dev/null
is 'the command of a job was killed' [ $? = 137 ]
echo >"$S/end"
is 'a step that waits starts nevertheless' wait_until 'began 2'
run 'it keeps the lease' 124 '' '*' "$GPULEASE" -I --gpu-ids 3 true
run '--cancel ends the steps that run and wait' 0 '' '*' "$GPULEASE" --cancel "$(cat "$S/id")" --grace 1ms
run 'their GPU is free' 0 3 '' "$GPULEASE" -I --gpu-ids 3 sh -c "$show"
is 'none is left' [ -z "$(grep -lz "$S/[u]ntil-end" /proc/[0-9]*/cmdline 2>/dev/null)" ]

# --- files -------------------------------------------------------------------------------

live=$(state_dir)/live
# swept: whether the next sweep, at each 64th ticket, leaves no file of a step
swept() {
	for i in 1 2 3 4 5 6 7 8; do
		"$GPULEASE" -n 1 sh -c 'for i in 1 2 3 4 5 6 7 8; do
			env -u GPULEASE_TOKEN "$GPULEASE" --submit -n 0 true; done' >/dev/null 2>&1
	done
	[ -z "$(find "$live" -name '*.*')" ]
}
is 'steps leave files' [ -n "$(find "$live" -name '*.0')" ]
is 'they are swept after the end of their lease' wait_until swept

holder lease -n 2 --gpu-ids 0,1
enter lease
holder a --exclusive --gpu-ids 0
for i in 1 2 3 4 5 6 7 8 9; do
	GPULEASE_TOKEN='' "$GPULEASE" -n 0 sh -c 'for i in 1 2 3 4 5 6 7 8; do
		env -u GPULEASE_TOKEN "$GPULEASE" --submit -n 0 true; done' >/dev/null 2>&1
done
is 'files of a lease that lives stay' [ -e "$live/$GPULEASE_TOKEN.0" ]
ln -s "$S/precious" "$live/$GPULEASE_TOKEN.1"
run 'a link in the place of such a file is not followed' 125 '' \
	"gpulease: cannot lock the GPUs of this step in '*': *" "$GPULEASE" --exclusive --gpu-ids 1 true
is 'nothing was made there' [ ! -e "$S/precious" ]
rm "$live/$GPULEASE_TOKEN.1"
mkfifo "$live/$GPULEASE_TOKEN.1"
run 'a FIFO in its place is an error, too' 125 '' "gpulease: cannot lock the GPUs *" \
	"$GPULEASE" --exclusive --gpu-ids 1 true
rm "$live/$GPULEASE_TOKEN.1"

for each in garbage '1,1,1,1' ''; do
	printf '%s' "$each" >"$live/$GPULEASE_TOKEN.0"
	waiter b --exclusive --gpu-ids 0
	release_all a
	is "a step starts although the file named no process: '$each'" wait_until 'runs b'
	release_all b
	holder a --exclusive --gpu-ids 0
done
without_pidfds
waiter b --exclusive --gpu-ids 0
release_all a
is 'without pidfds, too' wait_until 'runs b'
release_all b lease
finish
