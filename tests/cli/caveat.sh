#!/bin/sh
# Commands that start a program without the GPUs of the lease: what gpulease says, and what sudo, su
# and runuser really do.
# shellcheck disable=SC2016 # commands of the jobs

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
real=$PATH
mkdir "$S/bin"
cat >"$S/bin/sudo" <<'END'
#!/bin/sh
exec env -u CUDA_VISIBLE_DEVICES -u GPULEASE_TOKEN "$@"
END
cat >"$S/bin/docker" <<'END'
#!/bin/sh
printf '%s\n' "$*"
END
chmod +x "$S/bin/sudo" "$S/bin/docker"
PATH=$S/bin:$PATH
show='echo "${CUDA_VISIBLE_DEVICES-none}"'
printf '%s\n' "$show" >"$S/show"

sudo_says='gpulease: sudo drops CUDA_VISIBLE_DEVICES (unless sudoers keeps it) and the tag of the'
sudo_says="$sudo_says lease: write sudo gpulease ..., or sudo --preserve-env=CUDA_VISIBLE_DEVICES ..."
run 'sudo: one line with the way out' 0 none "$sudo_says" "$GPULEASE" -n 2 -- sudo sh "$S/show"
run 'sudo: -Q prints nothing' 0 none '' "$GPULEASE" -Q -n 2 -- sudo sh "$S/show"
run 'sudo without GPUs: nothing' 0 none '' "$GPULEASE" -n 0 -- sudo sh "$S/show"
run 'sudo behind nice: one line' 0 none "$sudo_says" "$GPULEASE" -- nice sudo sh "$S/show"
run 'sudo after --setup: one line' 0 none "$sudo_says" "$GPULEASE" --setup : -- sudo sh "$S/show"
delay 10ms
try "$GPULEASE" --config "$S/conf" --retries 1 -- sudo false
is 'sudo with --retries: one line for all attempts' [ \
	"$(printf '%s\n' "$err" | grep -c 'sudo drops')" = 1 ]
run 'sudo gpulease is no command of gpulease' 0 '' '' sudo "$GPULEASE" -- true
run 'a shell that runs sudo is not looked into' 0 none '' "$GPULEASE" -- sh -c "sudo sh '$S/show'"
run '--submit says it on the terminal' 0 '[0-9]*' "$sudo_says" "$GPULEASE" --submit -- sudo sh "$S/show"
id=$out
run '--submit: the job ends' 0 '' '' "$GPULEASE" --wait-for "$id"
run '--submit: the log begins with the output' 0 'none*' '' "$GPULEASE" --log "$id"

run 'docker with all GPUs: one line with the way out' 0 'run --gpus all image' \
	"gpulease: docker: --gpus asks for GPUs outside the lease: write --gpus '\"device={uuids}\"', *" \
	"$GPULEASE" -- docker run --gpus all image
run 'the way out for docker gives the GPUs of the lease' 0 'run --gpus "device=GPU-*,GPU-*" image' '' \
	"$GPULEASE" -n 2 -- docker run --gpus '"device={uuids}"' image

# --- the real programs -------------------------------------------------------------------

PATH=$real
# gets TEXT VALUE COMMAND…: a result, good if the command below gpulease has VALUE
gets() {
	gets_text=$1 gets_value=$2
	shift 2
	run "$gets_text" 0 "$gets_value" '*' "$GPULEASE" -n 8 -- "$@"
}

all=0,1,2,3,4,5,6,7
for program in su runuser; do
	if [ "$(id -u)" -ne 0 ] || ! "$program" root -c true >/dev/null 2>&1; then
		skip "$program drops the variable for a login shell" "$program does not work here"
		continue
	fi
	gets "$program keeps the variable" "$all" "$program" root -c "$show"
	gets "$program with - drops the variable" '*none' "$program" - root -c "sh '$S/show'"
	is "$program with - : one line" like "gpulease: $program drops * login shell: *" "$err"
done
if sudo -n true >/dev/null 2>&1; then
	gets 'sudo drops the variable' none sudo -n sh "$S/show"
	gets 'sudo keeps the variable that it is told to keep' "$all" \
		sudo -n --preserve-env=CUDA_VISIBLE_DEVICES sh "$S/show"
else
	skip 'sudo drops the variable' 'sudo is not installed, or asks for a password'
fi
finish
