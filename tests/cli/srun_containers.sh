#!/bin/sh
# Options of pyxis, srun's plugin for containers: each line is refused with one that does the same,
# and that line runs as it stands.  docker, podman, enroot and apptainer are simulated.
# shellcheck disable=SC2016 # code for the shells in the lines
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
fresh
gpus 4
mkdir "$S/bin" "$S/none" "$S/work" "$S/tools"
ln -s "$GPULEASE" "$S/bin/gpulease"
ln -s "$GPULEASE" "$S/bin/srun"
cat >"$S/tools/docker" <<'EOT'
#!/bin/sh
# prints its arguments, one in each pair of brackets, and which task it is
printf '%s:' "${0##*/}" >"$SHOWN.${SLURM_PROCID-0}"
printf '<%s>' "$@" >>"$SHOWN.${SLURM_PROCID-0}"
echo " ${SLURM_PROCID-}" >>"$SHOWN.${SLURM_PROCID-0}"
EOT
chmod +x "$S/tools/docker"
for each in podman enroot apptainer; do
	cp "$S/tools/docker" "$S/tools/$each"
done
# programs that the lines and the tests need, without those that this machine has for containers
for each in sh env sed echo cat rm ls sort tr grep head sleep printf id nvidia-smi mkdir ln true; do
	ln -s "$(command -v "$each")" "$S/none/$each"
done
ln -s "$S/bin/gpulease" "$S/none/gpulease"
ln -s "$S/bin/srun" "$S/none/srun"
export SHOWN="$S/shown"
cd "$S/work" || bail 'no directory'
plain=$S/none
unset NCCL_DEBUG MASTER_ADDR

# with PROGRAM…: from now on only these programs for containers are installed
with() {
	rm -rf "$S/own"
	mkdir "$S/own"
	for with_each in "$@"; do
		ln -s "$S/tools/$with_each" "$S/own/$with_each"
	done
	PATH=$S/own:$plain
}

# refused COMMAND…: runs it, and sets $line to the line that it prints, "" for none
refused() {
	try "$@"
	line=$(printf '%s\n' "$err" | sed '/^gpulease: --.* does the same with [a-z]*:$/,$!d' |
		sed 1d)
	[ "$rc" = 125 ] && [ -z "$out" ]
}

# prints TEXT WORDS COMMAND…: a result, good if COMMAND is refused with a line that calls its program
# with WORDS, a shell pattern
prints() {
	prints_text=$1 prints_words=$2
	shift 2
	rm -f "$SHOWN".*
	if ! refused "$@" || [ -z "$line" ]; then
		not_ok "$prints_text" "status $rc, stdout: $out" "stderr: $err"
		return
	fi
	sh -c "$line" >"$S/run.out" 2>"$S/run.err"
	prints_rc=$?
	prints_is=$(cat "$SHOWN".*)
	if [ $prints_rc = 0 ] && like "$prints_words" "$prints_is"; then
		ok "$prints_text"
	else
		not_ok "$prints_text" "status: $prints_rc" "is:     $prints_is" \
			"wanted: $prints_words" "line:   $line" "$(cat "$S/run.err")"
	fi
}

with docker
host='<--network><host><--ipc><host>'
one="docker:<run><--rm><--init>$host"
gpus2='<--gpus><"device=GPU-0000000?-*,GPU-0000000?-*">*'

# --- the words ----------------------------------------------------------------------------

prints 'an image, a command, the GPUs of the lease' \
	"$one$gpus2<--env><GPULEASE_ID=*><-i><--entrypoint><><ubuntu><nvidia-smi><-L> " \
	srun --gpus=2 --container-image ubuntu nvidia-smi -L
is 'the line keeps the other options' like 'srun --gpus=2 -- sh -c *' "$line"
is 'the message says whose option it is' like \
	'gpulease: --container-image is an option of pyxis, a plugin of Slurm; *' "$err"
prints 'it is the same under the name gpulease' "$one*<ubuntu><true> " \
	gpulease --gpus=2 --container-image=ubuntu true
is 'the line begins with that name' like 'gpulease --gpus=2 -- sh -c *' "$line"
prints 'an underscore is a dash' "$one*<ubuntu><true> " \
	srun --gpus=2 --container_image=ubuntu true
prints 'a job without a GPU' "$one<--env><NVIDIA_VISIBLE_DEVICES=void>*<ubuntu><true> " \
	srun --gres=gpu:0 --container-image=ubuntu true

for each in 'nvcr.io#nvidia/pytorch:23.10|nvcr.io/nvidia/pytorch:23.10' \
	'docker://nvcr.io#a/b|nvcr.io/a/b' '$oauthtoken@nvcr.io#a/b:1|nvcr.io/a/b:1' \
	'a/b@sha256:12|a/b@sha256:12' 'localhost:5000#a/b@sha256:12|localhost:5000/a/b@sha256:12'; do
	prints "the image ${each%|*}" "$one*<--entrypoint><><${each#*|}><true> " \
		srun --gpus=1 --container-image="${each%|*}" true
done

prints 'mounts' \
	"*<--volume></a:/b><--volume></c:/c><--volume><$S/work/d:/e:ro,rprivate><--volume><$S/work/f:/f><--tmpfs></g><--entry*" \
	srun --gpus=1 --container-mounts=/a:/b,/c,d:/e:ro+rprivate,./f,tmpfs:/g,umount:/h \
	--container-image x true
prints 'the working directory' '*<--workdir></w x>*<x><true> ' \
	srun --gpus=1 --container-workdir '/w x' --container-image x true
prints 'a working directory begins at the root' '*<--workdir></w>*' \
	srun --gpus=1 --container-workdir w --container-image x true
export HOME="$S/work"
prints 'the home directory' "*<--volume><$S/work:$S/work><--env><HOME>*" \
	srun --gpus=1 --container-mount-home --container-image x true
prints 'no home directory, the last one wins' '*<-i><--entrypoint><><x><true> ' \
	srun --gpus=1 --container-mount-home --no-container-mount-home --container-image x true
prints 'variables' '*<--env><A><--env><B_C><--env><D>*<--entrypoint><><x><true> ' \
	srun --gpus=1 --export=ALL,A=1,B_C --container-env D --container-image x true
for each in FOO NONE FOO,PATH; do
	prints "the line runs with --export=$each" "$one*" \
		srun --gpus=1 --export $each --container-image x true
	is "docker has the variables of the caller: --export=$each" \
		eval '! like "*--export*" "$line"'
done
is 'the image has a PATH of its own' eval '! like "*--env PATH*" "$line"'
prints 'a value of --export is set' '*<--env><A><--env><FOO>*' \
	srun --gpus=1 --export=A=1,FOO,PATH=/none --container-image x true
is 'the line sets it' like 'srun --gpus=1 --export=ALL,A=1 -- *' "$line"
export NCCL_DEBUG=secret MASTER_ADDR=me
prints 'without ALL other variables do not pass' '*<-i><--env><FOO><--entrypoint>*' \
	srun --gpus=1 --export=FOO --container-image x true
prints 'variables of the caller for several GPUs' \
	'*<--env><MASTER_ADDR>*' srun --gpus=1 --container-image x true
is 'and those of NCCL' like '*--env NCCL_DEBUG*' "$line"
unset NCCL_DEBUG MASTER_ADDR
is 'their values are not printed' eval '! like "*secret*" "$line"'
prints "the user's own id" "*<--user><$(id -u):$(id -g)>*" \
	srun --gpus=1 --no-container-remap-root --container-image x true
prints 'a root file system that is read-only' '*<--read-only>*<x><true> ' \
	srun --gpus=1 --container-readonly --container-image x true
prints 'the entrypoint of the image' "$one*<-i><x><true> " \
	srun --gpus=1 --container-entrypoint --container-writable --container-remap-root \
	--container-entrypoint-log --container-image x true
prints 'a terminal' '*<-it>*' srun --gpus=1 --pty --container-image x bash
prints 'a container that stays' "docker:<run><--init>$host*<--name><keep>*" \
	srun --gpus=1 --container-name keep:create --container-image x true
is 'it says how to remove it' like '*--container-name: docker keeps the container*docker rm*' "$err"
prints 'what is not saved' '*<x><true> ' \
	srun --gpus=1 --container-save=/a.sqsh --container-image x true
is 'it says so' like '*--container-save has no effect: docker*' "$err"
prints 'a command with all kinds of characters' \
	"*<x><python><-c><print('a \"b\" \$c \`d\` *e')><a
b><*><> " srun --gpus=1 --container-image x -- python -c \
	'print('"'"'a "b" $c `d` \\e'"'"')' 'a
b' '*' ''
prints 'options and values that look like options of pyxis' '*<x><echo><--container-image><y> ' \
	srun -J --container-name --gpus=1 -c 4 --container-image x echo --container-image y

# --- several tasks --------------------------------------------------------------------------

prints 'a container for each task' \
	"docker:<run><--rm><--pid><host>$host$gpus2<--env><SLURM_PROCID>*<-i><--entrypoint><><x><true> 0
docker:*<x><true> 1" srun --gpus=2 -n 2 --container-image x true
for each in SLURM_NTASKS SLURM_LOCALID SLURM_JOB_ID SLURMD_NODENAME; do
	is "the container gets $each" grep -qF "<--env><$each>" "$SHOWN".*
done
prints 'each has the GPUs of its task' "docker:*<--gpus><\"device=0\">*<-i>*<x><true> 0
docker:*<--gpus><\"device=1\">*<-i>*<x><true> 1" \
	srun --gpus-per-task=1 -n 2 --container-image x true
prints 'several GPUs of a task' "docker:*<--gpus><\"device=0,1\">*0
docker:*<--gpus><\"device=2,3\">*1" srun --gpus-per-task=2 -n 2 --container-image x true
prints 'tasks do not share a terminal, nor the name of a container' '*<-i>*<x><true> 0
*<-i>*<x><true> 1' srun --gpus=2 -n 2 --pty --container-name a --container-image x true
is 'it says so of the name' like '*--container-name has no effect*' "$err"

# --- other programs ---------------------------------------------------------------------------

with podman
prints 'podman, if there is no docker' \
	"podman:<run><--rm><--init>$host<--device><nvidia.com/gpu=GPU-*>*<-i>*<x><true> " \
	srun --gpus=1 --container-image x true
prints 'podman and tasks with GPUs of their own' "podman:*<--device=nvidia.com/gpu=0><--dev*=1>*0
podman:*<--device=nvidia.com/gpu=2><--device=nvidia.com/gpu=3>*1" \
	srun --gpus-per-task=2 -n 2 --container-image x true
prints "podman keeps the user's id" '*<--userns><keep-id>*' \
	srun --gpus=1 --no-container-remap-root --container-image x true

with docker enroot apptainer
prints 'a squashfs file is for enroot' \
	'enroot:<start><--root><--rw><--mount></a:/b:x-create=auto,rbind,ro><--env><NVIDIA_VISIBLE_DEVICES><--env><A></i.sqsh><sh><-c><cd "$0" && exec "$@"></w><true><a b> ' \
	srun --gpus=1 --container-mounts=/a:/b:ro --container-env=A --container-workdir=/w \
	--container-image /i.sqsh true 'a b'
is 'the message says what docker cannot do' like \
	"*docker cannot run the squashfs file '/i.sqsh'*same with enroot:*" "$err"
prints 'enroot and tasks' 'enroot:<start><--env><SLURM*<--rw><--env><NVID*<./i.sqsh><true> 0
enroot:*<./i.sqsh><true> 1' srun --gpus=2 -n 2 --no-container-remap-root \
	--container-image ./i.sqsh true
prints 'enroot, tasks and --export' 'enroot:*0
enroot:*1' srun --gpus=2 -n 2 --export=FOO --container-image ./i.sqsh true
with docker apptainer
prints 'or for apptainer' \
	'apptainer:<exec><--nv><--no-home><--writable-tmpfs><--bind></a:/b:ro><--pwd></w><i.sqsh><true> ' \
	srun --gpus=1 --container-mounts=/a:/b:ro --container-workdir=/w \
	--container-image=i.sqsh true

prints 'apptainer passes on what --export says' 'apptainer:*' \
	srun --gpus=1 --export=FOO,SHOWN --container-image=i.sqsh true
is 'the line keeps it' like 'srun --gpus=1 --export=FOO,SHOWN -- apptainer *' "$line"

with docker
rm "$S/none/gpulease"
prints 'a gpulease that is not in PATH' "$one*" "$S/bin/srun" --gpus=1 --container-image x true
ln -s "$S/bin/gpulease" "$S/none/gpulease"

with
run 'it says if the program is missing' 125 '' \
	'gpulease: docker is not installed here*the same with docker:*' \
	srun --gpus=1 --container-image x true

# --- refused without a line ---------------------------------------------------------------------

with docker
for each in '--container-mounts=/a|*--container-mounts goes only with --container-image' \
	'--container-image=x --container-mounts=/a:|*/a:*write SRC:DST' \
	'--container-image=x --container-mounts=/a:/b:nodev|*docker has no flag*nodev*' \
	'--container-image=|*--container-image needs a value: *' \
	'--container=/bundle|*runc(8)*--container-image IMAGE' \
	'--container-name=a|*--container-name: *--container-image IMAGE' \
	'--container-image=x --nodes=2|*--nodes*' \
	'--container-image=x --export=A,,B|*--export: *' \
	'--container-image=x -w elsewhere|-w: gpulease knows only this machine*' \
	'--container-image=x --contain|*unknown option*--contain*'; do
	# shellcheck disable=SC2086 # words of a line
	run "refused: ${each%|*}" 125 '' "gpulease: ${each#*|}" srun ${each%|*} true
done
run 'a verb has no container' 125 '' '*--container-image goes only with a command' \
	gpulease --status --container-image=x
run 'a container needs a command' 125 '' '*no command given*' srun --container-image=x
run 'an option without its value' 125 '' '*--container-image needs a value*' srun --container-image
finish
