#!/bin/sh
# --setup and --conda, which a shell runs before the command; and --export, the command's
# environment.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
mkdir "$S/work" "$S/bin" "$S/home"
cd "$S/work" || bail "no directory"
export HOME="$S/home"
unset CONDA_EXE CONDA_ENVS_PATH CONDA_ENVS_DIRS MAMBA_EXE MAMBA_ROOT_PREFIX BASH_ENV ENV
set_up() { "$GPULEASE" -n 0 "$@"; }
cat >args <<'END'
#!/bin/sh
printf '<%s>' "$@"
END
chmod +x args
PATH=$S/bin:$PATH

echo 'export CUDA_VISIBLE_DEVICES=3' >bash-env

# A PATH without bash, with which gpulease uses /bin/sh.
mkdir "$S/nobash"
for each in env sh touch grep true pwd echo printf; do
	file=$(PATH=/usr/local/bin:/usr/bin:/bin sh -c 'IFS=:; for d in $PATH; do
		[ ! -x "$d/$1" ] || { echo "$d/$1"; exit; }; done' sh $each)
	ln -s "$file" "$S/nobash/$each"
done

# --- the same for each shell -------------------------------------------------------------

both() {
	run "an exported variable reaches the command ($1)" 0 'one 0' '' \
		set_up --setup 'export A=one; B=0' -- sh -c 'echo "$A ${B-0}"'
	run "cd in the set-up changes the directory of the command ($1)" 0 '/' '' set_up --setup 'cd /' pwd
	run "a resource limit reaches the command ($1)" 0 '77' '' set_up --setup 'ulimit -n 177' sh -c 'echo $(($(ulimit -n) - 100))'
	run "the command is found by the PATH of the set-up ($1)" 0 '<a>' '' \
		set_up --setup 'PATH=$PWD:$PATH' args a
	try set_up --setup : ./args 'a  b' '' "'" '"' '$HOME' '*' '\n' "
" -x ';'
	is "arguments of the command are not changed ($1)" [ "$rc:$out" = "0:<a  b><><'><\"><\$HOME><*><\\n><
><-x><;>" ]
	run "a command without arguments stays so ($1)" 0 '<>' '' set_up --setup : ./args
	run "a word with a blank is no shell line if another follows ($1)" 127 '' '*not found*' \
		set_up --setup : 'echo A' b
	run "the exit status is the command's ($1)" 7 '' '' set_up --setup : sh -c 'exit 7'
	run "the status is 128+n if a signal ends the command ($1)" 143 '' '*' set_up --setup : sh -c 'kill $$'
	is "no other process is left between ($1)" no_process_between
	run "a command that does not exist: 127 ($1)" 127 '' '*no-such-command*' set_up --setup : no-such-command
	run "the set-up has no arguments ($1)" 0 '0
<x><y>' '' set_up --setup 'echo $#' ./args x y
	echo 'echo "$#"; export FROM_FILE=yes' >file.sh
	run "a file that the set-up reads has no arguments ($1)" 0 '0
yes x' '' set_up --setup '. ./file.sh' sh -c 'echo "$FROM_FILE $1"' sh x
	run "the set-up may contain quotes and comments ($1)" 0 "it's" '' \
		set_up --setup "A=\"it's\"; export A # a comment" sh -c 'echo "$A"'
	run "the set-up may have several lines ($1)" 0 'a b' '' set_up --setup 'A=a
B=b
export A B' sh -c 'echo "$A $B"'
	run "the set-up may be a comment ($1)" 0 'x' '' set_up --setup '# nothing' echo x
	run "set -a in the set-up exports variables ($1)" 0 'a' '' set_up --setup 'set -a; A=a' sh -c 'echo $A'
	run "set -a exports no helper variables of gpulease ($1)" 0 '' '' \
		set_up --setup 'set -a' sh -c 'env | grep -i gpulease_[a-z] | grep -v ^GPULEASE_ || :'

	# when it fails
	failed='gpulease: the set-up failed with status'
	run "the set-up fails ($1)" 3 '' "$failed 3; the command was not run" \
		set_up --setup '(exit 3)' touch ran
	run "the last command of the set-up fails ($1)" 1 '' "$failed 1; *" set_up --setup ':; false' touch ran
	run "the set-up exits ($1)" 4 '' "$failed 4; *" set_up --setup 'exit 4' touch ran
	early='gpulease: the set-up stopped before its end; the command was not run'
	run "the set-up exits with 0 ($1)" 125 '' "$early" set_up --setup 'exit 0' touch ran
	echo 'exit 0' >exits.sh
	run "a file that the set-up reads exits with 0 ($1)" 125 '' "$early" \
		set_up --setup '. ./exits.sh' touch ran
	run "the set-up exits after a failure ($1)" 1 '' "$failed 1; *" set_up --setup 'false; exit' touch ran
	run "the set-up fails under set -e ($1)" 5 '' "$failed 5; *" set_up --setup 'set -e; (exit 5); true' touch ran
	run "the set-up calls a command that does not exist ($1)" 127 '' "*no-such-setup*
$failed 127; *" set_up --setup no-such-setup touch ran
	run "the set-up reads a file that does not exist ($1)" "$2" '' "*
$failed *" set_up --setup '. ./no-such-file' touch ran
	run "the set-up has a syntax error ($1)" 2 '' "*
$failed 2; *" set_up --setup 'if' touch ran
	run "the set-up has an open quote ($1)" 2 '' "*
$failed 2; *" set_up --setup "echo 'x" touch ran
	run "the set-up has a closing brace too many ($1)" 2 '' "*
$failed 2; *" set_up --setup '} ; touch ran' touch ran
	run "a failing set-up adds nothing to stdout ($1)" 1 'mine' "$failed 1; *" \
		set_up --setup 'echo mine; false' touch ran
	is "the command did not run after any failed set-up ($1)" [ ! -e ran ]

	# a line
	run "both parts of a shell line have an exported variable ($1)" 0 'one
one' '' set_up --setup 'export A=one' 'sh -c "echo \$A" && sh -c "echo \$A"'
	run "variables that are not exported reach a shell line ($1)" 0 'one' '' \
		set_up --setup 'A=one' 'echo $A'
	run "functions reach a shell line ($1)" 0 'f x' '' set_up --setup 'f() { echo f $1; }' 'f x'
	run "the status is that of the shell line ($1)" 6 '' '' set_up --setup : 'true && (exit 6)'
	run "&& in a shell line stops after a failure ($1)" 1 '' '' set_up --setup : 'false && touch ran'
	run "a shell line has no arguments ($1)" 0 '0' '' set_up --setup : 'echo $#'
	run "a shell line is not run if the set-up fails ($1)" 3 '' "$failed 3; *" \
		set_up --setup '(exit 3)' 'touch ran; touch ran'
	run "a syntax error in a shell line does not blame the set-up ($1)" 2 '' '*yntax*' \
		set_up --setup : 'echo a && '
	is "no shell line ran after a failed set-up ($1)" [ ! -e ran ]
}

# leased SETUP COMMAND…: a command on GPU 1, after this set-up; it prints $v
again='gpulease: --setup has set variables of the job, which are set again:'
lease='CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER NVIDIA_VISIBLE_DEVICES GPULEASE_ID GPULEASE_ATTEMPT
	GPULEASE_TOKEN GPULEASE_GPUS GPULEASE_UUIDS GPULEASE_SIM'
leased() {
	leased_setup=$1
	shift
	set_up -n 1 --gpu-ids 1 --setup "$leased_setup" "$@"
}
survives() {
	for name in $lease; do
		run "$name is set again after the set-up ($1)" 0 'same same' "$again $name ('other', now '*')" \
			leased "was=\$$name; export was $name=other" sh -c '[ "$'"$name"'" = "$was" ] && echo same same'
		run "$name is set again if the set-up has removed it ($1)" 0 'same' "$again $name (unset, now '*')" \
			leased "was=\$$name; export was; unset $name" sh -c '[ "$'"$name"'" = "$was" ] && echo same'
		run "the same value is none to speak of ($1)" 0 'same' '' leased "export $name=\"\$$name\"" echo same
	done
	for name in GPULEASE_DIR GPULEASE_STEP GPULEASE_SHARE GPULEASE_VRAM_MIB GPULEASE_ALLOCATION; do
		run "$name is removed again ($1)" 0 'none' "$again $name ('9', now unset)" \
			leased "export $name=9" sh -c 'echo "${'"$name"'-none}"'
	done
	run "one line for all of them, under set -aeu, too ($1)" 0 '1 PCI_BUS_ID 1' \
		"$again CUDA_VISIBLE_DEVICES ('3', now '1'), CUDA_DEVICE_ORDER ('FASTEST_FIRST', now 'PCI_BUS_ID')" \
		leased 'set -aeu; CUDA_VISIBLE_DEVICES=3 CUDA_DEVICE_ORDER=FASTEST_FIRST' \
		sh -c 'echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $NVIDIA_VISIBLE_DEVICES'
	run "a shell line has them, too ($1)" 0 '1' "$again *" leased 'CUDA_VISIBLE_DEVICES=3' 'echo $CUDA_VISIBLE_DEVICES'
	run "-Q: no line ($1)" 0 '1' '' leased 'CUDA_VISIBLE_DEVICES=3' -Q 'echo $CUDA_VISIBLE_DEVICES'
	run "a variable that is read-only is no way out ($1)" "$2" '' '*failed with status*' \
		leased 'readonly CUDA_VISIBLE_DEVICES=3' touch ran
	run "a value may have quotes ($1)" 0 "1" "$again CUDA_VISIBLE_DEVICES ('it's \"\$x\"', now '1')" \
		leased "CUDA_VISIBLE_DEVICES='it'\\''s \"\$x\"'" 'echo $CUDA_VISIBLE_DEVICES'
	run "a job without GPUs has none after the set-up ($1)" 0 '<>' "$again CUDA_VISIBLE_DEVICES ('3', now '')" \
		set_up --setup 'export CUDA_VISIBLE_DEVICES=3' 'echo "<$CUDA_VISIBLE_DEVICES>"'
	run "a set-up may run gpulease ($1)" 0 '1
1' '' leased '"$GPULEASE" sh -c "echo \$CUDA_VISIBLE_DEVICES"' sh -c 'echo $CUDA_VISIBLE_DEVICES'
	run "a set-up may take a lease of its own for a job without GPUs ($1)" 0 '2' '' \
		set_up --setup 'eval "$("$GPULEASE" --gpu-ids 2 --shell)"' 'echo $CUDA_VISIBLE_DEVICES'
	run "the command has no variable more than without a set-up ($1)" 0 'none' '' \
		leased 'set -a' sh -c 'env | grep "^gpulease_\|^GPULEASE_A[^T]" || echo none'
}

# Whether the command of --setup is a child of this shell.
no_process_between() {
	try set_up --setup : sh -c 'echo $PPID'
	[ "$out" = $$ ]
}

if [ -n "$(command -v bash)" ]; then
	both bash 1
	survives bash 1
	run 'files that bash itself reads are no way around it' 0 '1' "$again CUDA_VISIBLE_DEVICES ('3', now '1')" \
		env BASH_ENV="$S/work/bash-env" "$GPULEASE" --gpu-ids 1 --setup : 'echo $CUDA_VISIBLE_DEVICES'
	run 'a list of bash is none' 0 '1' "$again CUDA_VISIBLE_DEVICES ('3', now '1')" \
		leased 'unset CUDA_VISIBLE_DEVICES; declare -a CUDA_VISIBLE_DEVICES=(3 4)' sh -c 'echo $CUDA_VISIBLE_DEVICES'
	run 'a variable that bash declares reaches the command' 0 'one' '' \
		set_up --setup 'declare -x A=one' sh -c 'echo $A'
	run 'the set-up runs in bash' 0 'bash' '' set_up --setup 'echo $0' true
	run 'a function that bash exports reaches the command' 0 'f' '' \
		set_up --setup 'f() { echo f; }; export -f f' bash -c f
fi
run 'without bash the set-up runs in sh' 0 '/bin/sh' '' \
	env PATH="$S/nobash" "$GPULEASE" -n 0 --setup 'echo $0' true
set_up() { PATH=$S/nobash "$GPULEASE" -n 0 "$@"; }
both sh 2
survives sh 2
set_up() { "$GPULEASE" -n 0 "$@"; }

run 'the set-up of a line of a jobs file' 0 '*' '*' sh -c \
	'echo "[setup=\"export CUDA_VISIBLE_DEVICES=7\"] echo \$CUDA_VISIBLE_DEVICES" >jobs && "$GPULEASE" --batch jobs'
is 'its log says it, and has the GPU of the lease' like \
	"gpulease: setup= has set variables of the job, which are set again: CUDA_VISIBLE_DEVICES ('7', now '[0-6]') *[0-6]" \
	"$(cat jobs.logs/*.log | grep -v '^gpulease: [^s]' | tr '\n' ' ' | sed 's/ $//')"
rm -r jobs jobs.logs

# --- with other options ------------------------------------------------------------------

run 'a program with a blank in its name is no shell line' 0 '<>' '' sh -c '
	mkdir -p "a b" && cp args "a b/a c" && exec "$1" -n 0 --setup : "a b/a c"' sh "$GPULEASE"
run 'without --setup a word with blanks is no shell line' 127 '' "gpulease: command 'echo a && echo b' was not found; put sh -c before it" \
	set_up 'echo a && echo b'
run 'the set-up runs in the directory of -D' 0 '/' '' "$GPULEASE" -n 0 -D / --setup 'A=$PWD; export A' sh -c 'echo $A'
run 'placeholders in a shell line are replaced' 0 '0,1 2' '' "$GPULEASE" -n 2 --setup : 'echo {gpus} {ngpus}'
run 'placeholders in the set-up are not replaced' 0 '{gpus} 0,1' '' \
	"$GPULEASE" -n 2 --setup 'A={gpus}; export A' sh -c 'echo $A $1' sh '{gpus}'
run 'a placeholder in the name of the command is not replaced' 127 '' '*{id}*' "$GPULEASE" -n 0 --setup : './{id}'
run '--inject into a shell line is refused' 125 '' \
	"gpulease: --inject cannot add its option to the shell line 'echo a; echo b'; write {gpus} *" \
	"$GPULEASE" --setup : --inject=--cuda 'echo a; echo b'
run '--inject works together with --setup' 0 '<a><--cuda><0,1>' '' \
	"$GPULEASE" -n 2 --setup : --inject=--cuda ./args a
holder inside --setup 'export INSIDE=1' --name with-setup
is '--status shows the command as it was given' \
	sh -c 'case "$("$1" --status --json)" in *eval*) exit 1 ;; *"exec 3"*) ;; *) exit 1 ;; esac' \
	sh "$GPULEASE"
release_all inside
run 'a failing set-up under a supervisor has its status' 3 '' '*set-up failed with status 3*' \
	"$GPULEASE" --report --setup '(exit 3)' touch ran
run 'a set-up under a supervisor that exits with 0: 125' 125 '' '*stopped before its end*' \
	"$GPULEASE" --report --setup 'exit 0' touch ran
run 'a command under a supervisor has the variables of the set-up' 0 'one' '*' \
	"$GPULEASE" --report --setup 'export A=one' sh -c 'echo $A'

submitted() {
	try "$GPULEASE" --submit -o "$S/work/log" "$@"
	[ "$rc" -eq 0 ] || return 1
	wait_until '[ "$(cat "$S/work/done" 2>/dev/null)" = done ]'
}
is '--submit with --setup, --export and -D runs' submitted -D / --setup 'export A=one' --export=B \
	sh -c 'echo "$A $PWD $1"; echo done >"$2"' sh '{ngpus}' "$S/work/done"
is 'the background job has the variable, directory and placeholder' grep -q '^one / 1$' "$S/work/log"

# --- conda -------------------------------------------------------------------------------

# fake_conda FOLDER: an installation of conda, whose environments are the folders in FOLDER/envs
fake_conda() {
	mkdir -p "$1/bin" "$1/envs" "$1/conda-meta"
	cat >"$1/bin/conda" <<'END'
#!/bin/sh
[ "$1 $2" = "shell.posix activate" ] || exit 64
case $3 in
broken) echo "conda: broken" >&2; exit 9 ;;
esac
echo "export CONDA_DEFAULT_ENV=\"$3\""
echo "export CONDA_FROM=\"$0\""
echo "$CONDA_ACTIVATE_D"
END
	chmod +x "$1/bin/conda"
}
environment() {
	mkdir -p "$1/conda-meta"
}
shown='echo "$CONDA_DEFAULT_ENV $CONDA_FROM"'

run '--conda without an installation of conda is refused' 125 '' "gpulease: cannot find conda for --conda 'x': it is not in CONDA_EXE, in PATH, *set CONDA_EXE to its path" \
	"$GPULEASE" --conda x true
fake_conda "$S/home/miniconda3"
environment "$S/home/miniconda3/envs/train"
run 'conda is found where its installer puts it' 0 "train $S/home/miniconda3/bin/conda" '' \
	set_up --conda train sh -c "$shown"
run '--conda base activates the base environment' 0 "base $S/home/miniconda3/bin/conda" '' \
	set_up --conda base sh -c "$shown"
run 'both parts of a shell line have the conda environment' 0 'train
train' '' set_up --conda train 'echo $CONDA_DEFAULT_ENV && sh -c "echo \$CONDA_DEFAULT_ENV"'
fake_conda "$S/other"
environment "$S/other/envs/train"
ln -s "$S/other/bin/conda" "$S/bin/conda"
run 'conda in PATH comes first, also through a link' 0 "train $S/bin/conda" '' \
	set_up --conda train sh -c "$shown"
fake_conda "$S/third one's"
environment "$S/third one's/envs/train"
run 'CONDA_EXE comes before conda in PATH' 0 "train $S/third one's/bin/conda" '' \
	env CONDA_EXE="$S/third one's/bin/conda" "$GPULEASE" -n 0 --conda train sh -c "$shown"
run 'a CONDA_EXE that does not exist is ignored' 0 "train $S/bin/conda" '' \
	env CONDA_EXE="$S/gone/bin/conda" "$GPULEASE" -n 0 --conda train sh -c "$shown"

run 'an environment that does not exist is refused' 125 '' \
	"gpulease: there is no conda environment 'tran' in '/*/envs' or ~/.conda; *" \
	"$GPULEASE" --conda tran true
mkdir "$S/other/envs/folder"
run 'a folder without conda-meta is no environment' 125 '' '*no conda environment*' set_up --conda folder true
run 'a name with shell code is no environment' 125 '' '*no conda environment*' set_up --conda "a'; touch ran;'" true
environment "$S/home/.conda/envs/own"
run "the environments of the user are found" 0 'own *' '' set_up --conda own sh -c "$shown"
environment "$S/lists/b/far"
run 'an environment in a folder of CONDA_ENVS_PATH is found' 0 'far *' '' \
	env CONDA_ENVS_PATH="$S/lists/a:$S/lists/b" "$GPULEASE" -n 0 --conda far sh -c "$shown"
run 'an environment in a folder of CONDA_ENVS_DIRS is found' 0 'far *' '' \
	env CONDA_ENVS_DIRS="$S/lists/b:" "$GPULEASE" -n 0 --conda far sh -c "$shown"
run 'an environment is found by its path' 0 "$S/lists/b/far *" '' set_up --conda "$S/lists/b/far" sh -c "$shown"
run 'a relative path of an environment starts at the folder of -D' 0 './b/far *' '' \
	set_up -D "$S/lists" --conda ./b/far sh -c "$shown"
run 'a path without an environment is refused' 125 '' "gpulease: '*' is no conda environment: *" \
	set_up --conda "$S/lists/a" true
printf '%s\n' "$S/gone/far" "$S/lists/b/far" >"$S/home/.conda/environments.txt"
run 'an environment in environments.txt is found' 0 "$S/lists/b/far *" '' set_up --conda far sh -c "$shown"
environment "$S/lists/it's"
run 'the name of an environment may have a quote' 0 "it's *" '' \
	env CONDA_ENVS_DIRS="$S/lists" "$GPULEASE" -n 0 --conda "it's" sh -c "$shown"

environment "$S/other/envs/broken"
run 'the command does not run if the activation fails' 9 '' 'conda: broken
gpulease: the set-up failed with status 9; the command was not run' \
	set_up --conda broken touch ran
run 'a failing script of an environment is ignored, as conda does' 0 'x' '' \
	env CONDA_ACTIVATE_D=false "$GPULEASE" -n 0 --conda train echo x
run 'a syntax error in the output of conda is a failure' 2 '' '*failed with status 2*' \
	env CONDA_ACTIVATE_D='if (' "$GPULEASE" -n 0 --conda train touch ran
run 'conda activates before the set-up runs' 0 'train+' '' \
	set_up --conda train --setup 'export A="$CONDA_DEFAULT_ENV+"' sh -c 'echo $A'
run 'the variables of an environment do not take the lease away' 0 '1' \
	"gpulease: --conda has set variables of the job, which are set again: CUDA_VISIBLE_DEVICES ('0', now '1')" \
	env CONDA_ACTIVATE_D='export CUDA_VISIBLE_DEVICES=0' "$GPULEASE" --gpu-ids 1 --conda train 'echo $CUDA_VISIBLE_DEVICES'
run 'the set-up behind it sees those of the job' 0 '1
1' '*' env CONDA_ACTIVATE_D='export CUDA_VISIBLE_DEVICES=0' "$GPULEASE" --gpu-ids 1 --conda train \
	--setup 'echo $CUDA_VISIBLE_DEVICES' 'echo $CUDA_VISIBLE_DEVICES'
run 'the set-up is not run if conda fails' 9 '' '*failed with status 9*' \
	set_up --conda broken --setup 'touch ran' touch ran
run '--conda works with sh' 0 'train *' '' env PATH="$S/nobash" CONDA_EXE="$S/other/bin/conda" \
	"$GPULEASE" -n 0 --conda train sh -c "$shown"
run 'a failing activation is noticed with sh' 9 '' '*failed with status 9*' env PATH="$S/nobash" \
	CONDA_EXE="$S/other/bin/conda" "$GPULEASE" -n 0 --conda broken touch ran
holder busy -n 8
run 'a wrong name is refused before the job waits' 125 '' '*no conda environment*' \
	"$GPULEASE" --conda tran true
release_all busy
is 'no command ran after a failure of conda' [ ! -e ran ]

# micromamba, where there is no conda
rm -r "$S/bin/conda" "$S/home/miniconda3"
cat >"$S/bin/micromamba" <<'END'
#!/bin/sh
[ "$*" = "shell hook -s posix" ] || exit 64
echo 'micromamba() { [ "$2" != bad ] && export CONDA_DEFAULT_ENV=$2; }'
END
chmod +x "$S/bin/micromamba"
environment "$S/home/micromamba/envs/mm"
environment "$S/home/micromamba/envs/bad"
if [ -x /opt/conda/bin/conda ] || [ -x /opt/miniconda3/bin/conda ] ||
	[ -x /opt/anaconda3/bin/conda ] || [ -x /opt/miniforge3/bin/conda ]; then
	skip 'micromamba activates an environment' 'there is a conda on this machine'
else
	run 'micromamba activates an environment' 0 'mm' '' set_up --conda mm sh -c 'echo $CONDA_DEFAULT_ENV'
	run 'a failing micromamba is noticed' 1 '' '*failed with status 1*' set_up --conda bad touch ran
fi

# --- the environment ---------------------------------------------------------------------

export MINE=1 OTHER=2 SLURM_PROCID=9
get() { set_up "--export=$1" env; }
all_of() { # TEXT LIST NAME…: a result, good if just these variables of the test pass
	all_text=$1 all_list=$2
	shift 2
	try get "$all_list"
	all_out=$(echo "$out" | sed -n 's/^\(MINE\|OTHER\|NEW\|SLURM_PROCID\|CUDA_VISIBLE_DEVICES\)=.*/&/p' |
		sort | tr '\n' ' ')
	if [ "$rc" -eq 0 ] && [ "$all_out" = "CUDA_VISIBLE_DEVICES= ${*:+$* }" ]; then
		ok "$all_text"
	else
		not_ok "$all_text" "status $rc: $all_out" "$err"
	fi
}
all_of '--export=ALL' ALL MINE=1 OTHER=2
all_of '--export=ALL with a value' ALL,NEW=3 MINE=1 NEW=3 OTHER=2
all_of '--export=ALL with another value' ALL,MINE=a=b MINE=a=b OTHER=2
all_of '--export=NONE' NONE
all_of '--export of a name' OTHER OTHER=2
all_of '--export of a name and a value' OTHER,NEW= NEW= OTHER=2
all_of '--export of a variable of another job' ALL,SLURM_PROCID MINE=1 OTHER=2 SLURM_PROCID=9
all_of '--export cannot set CUDA_VISIBLE_DEVICES' ALL,CUDA_VISIBLE_DEVICES=7 MINE=1 OTHER=2
run '--export=NONE keeps HOME and a PATH' 0 \
	"$HOME /usr/local/bin:/usr/bin:/bin" '' set_up --export=NONE sh -c 'echo "$HOME $PATH"'
run 'gpulease in a job with --export=NONE finds its lease' 0 '0,1' '' "$GPULEASE" -n 2 --export=NONE \
	"$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run '--export works under a supervisor' 0 ':3:0' '*' "$GPULEASE" --report --export=NEW=3 \
	sh -c 'echo "${MINE-}:$NEW:$CUDA_VISIBLE_DEVICES"'
run '--export works together with --setup' 0 ':1' '' set_up --export=NONE --setup 'export A=1' sh -c 'echo "${MINE-}:$A"'
for list in '' 'A,' '1A' 'NONE,A' 'A-B=1'; do
	run "refused: --export=$list" 125 '' 'gpulease: --export*: *' get "$list"
done
run 'a comma in a value is explained' 125 '' \
	"gpulease: --export: '2' is not *a value here cannot contain a comma; *" get A=1,2

finish
