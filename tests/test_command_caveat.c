/* Which commands lose the GPUs of the lease, and which must not raise an alarm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command_caveat.h"
#include "split.h"

static const char SUDO[] = "sudo drops ", SU[] = "su drops ",
		  RUNUSER[] = "runuser drops ",
		  GPUS[] = ": --gpus asks for GPUs outside the lease: write --gpus "
			   "'\"device={uuids}\"',";

/* Checks that the message for @line has @part; NULL: that there is none. */
static void check(const char *line, const char *part)
{
	struct words words;
	char message[256];
	struct text text = TEXT_ON(message);
	bool is_found;

	split(line, &words);
	is_found = command_caveat(words.argv, &text);
	if (is_found != (part != NULL) || (part && !strstr(message, part)))
		fail_msg("'%s': '%s'", line, is_found ? message : "nothing");
	assert_false(text.cut);
}

struct example {
	const char *line, *part;
};

static void check_all(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(examples[i].line, examples[i].part);
}

static void usual_commands_raise_no_alarm(void **state)
{
	static const struct example table[] = {
		{ "", NULL },
		{ "python train.py", NULL },
		{ "sudoku --gpus all", NULL },
		{ "echo sudo", NULL },
		{ "sh -c sudo\tpython", NULL },
		{ "env", NULL },
		{ "nice -n 5 python sudo", NULL },
		{ "timeout 5m python train.py", NULL },
		{ "timeout", NULL },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void programs_that_ask_slurm_need_no_gpu(void **state)
{
	static const char asks[] = " only asks Slurm, and now waits for a GPU";
	static const struct example table[] = {
		{ "squeue", asks },
		{ "/usr/bin/sbatch job.sh", asks },
		{ "env A=b scontrol show nodes", asks },
		{ "srun python", NULL },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void sudo_drops_the_variable(void **state)
{
	static const struct example table[] = {
		{ "sudo python train.py", SUDO },
		{ "/usr/bin/sudo -n python", SUDO },
		{ "sudo -u bob -- python -E train.py", SUDO },
		{ "sudo -ubob python", SUDO },
		{ "sudo --user bob python --preserve-env", SUDO },
		{ "sudo A=b python -E", SUDO },
		{ "sudo -p E python", SUDO },
		{ "sudo -i", SUDO },
		{ "sudo --preserve-env=HOME,PATH python", SUDO },
		{ "env A=b sudo python", SUDO },
		{ "env --chdir=/tmp sudo python", SUDO },
		{ "nice -- sudo python", SUDO },
		{ "sudo -pE python", SUDO },
		{ "sudo python /home/gpulease/gpulease.py --name=gpulease", SUDO },
		{ "env -u HOME -C /tmp sudo python", SUDO },
		{ "nice -n 5 sudo python", SUDO },
		{ "nice -5 nohup sudo python", SUDO },
		{ "time -o file sudo python", SUDO },
		{ "timeout -k 5 --signal INT 1h sudo python", SUDO },
		{ "sudo nice python", SUDO },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void sudo_that_keeps_the_variable_raises_no_alarm(void **state)
{
	static const struct example table[] = {
		{ "sudo -E python", NULL },
		{ "sudo -nE python", NULL },
		{ "sudo -En python", NULL },
		{ "sudo --user bob -E python", NULL },
		{ "sudo --preserve-env python", NULL },
		{ "sudo --preserve-env=CUDA_VISIBLE_DEVICES python", NULL },
		{ "sudo --preserve-env=HOME,CUDA_VISIBLE_DEVICES python", NULL },
		{ "sudo CUDA_VISIBLE_DEVICES={gpus} python", NULL },
		{ "sudo env CUDA_VISIBLE_DEVICES={gpus} python", NULL },
		{ "sudo gpulease --status", NULL },
		{ "sudo /usr/local/bin/gpulease -n 1 python", NULL },
		{ "sudo -u bob gpulease -n 1 python", NULL },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void login_shells_drop_the_variable(void **state)
{
	static const struct example table[] = {
		{ "su -", SU },
		{ "su - bob", SU },
		{ "su -l bob -c python", SU },
		{ "su bob -l", SU },
		{ "su -c python - bob", SU },
		{ "su -fl bob", SU },
		{ "su --login bob", SU },
		{ "runuser - bob -c python", RUNUSER },
		{ "runuser -l bob", RUNUSER },
		{ "sudo su - bob", SU },
		{ "su", NULL },
		{ "su bob -c python", NULL },
		{ "su bob -c -l", NULL },
		{ "su bob -s -l", NULL },
		{ "su bob script -l", NULL },
		{ "su -- bob -l", NULL },
		{ "su -w CUDA_VISIBLE_DEVICES - bob", NULL },
		{ "runuser bob -c python", NULL },
		{ "runuser -u bob python -l", NULL },
		{ "runuser -u bob -- python -l", NULL },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void engines_of_containers_ignore_the_variable(void **state)
{
	static const struct example table[] = {
		{ "docker run --gpus all image", GPUS },
		{ "docker run --rm -it --gpus all image python", GPUS },
		{ "docker run --rm --gpus all image", GPUS },
		{ "docker run --gpus=all image", ": --gpus=all asks for GPUs" },
		{ "docker run --gpus 2 image", GPUS },
		{ "docker run --gpus \"count=2\" image", GPUS },
		{ "docker run --gpus \"device={gpus}\" image", GPUS },
		{ "docker run --gpus device=0 image", GPUS },
		{ "docker --context far container run -v /a:/b --gpus all image", GPUS },
		{ "docker run -v/a:/b --ipc=host --name run --gpus all image", GPUS },
		{ "docker run -v/a:/b --gpus all image", GPUS },
		{ "docker run -itv /a:/b --gpus all image", GPUS },
		{ "docker run --init=false --gpus all image", GPUS },
		{ "sudo docker run --gpus all image", GPUS },
		{ "sudo -E docker run --gpus all image", GPUS },
		{ "nerdctl run --gpus all image", "nerdctl: --gpus asks" },
		{ "podman run --device nvidia.com/gpu=all image",
			"--docker-args podman" },
		{ "podman run --device=nvidia.com/gpu=all image",
			"--docker-args podman" },
		{ "podman run --gpus all image", "--docker-args podman" },
		{ "docker run --device nvidia.com/gpu=all image", "outside the lease" },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

static void containers_with_chosen_gpus_raise_no_alarm(void **state)
{
	static const struct example table[] = {
		{ "docker", NULL },
		{ "docker run", NULL },
		{ "docker ps", NULL },
		{ "docker pull --gpus all", NULL },
		{ "docker run --gpus", NULL },
		{ "docker run --gpus 0 image", NULL },
		{ "docker run --gpus \"device={uuids}\" image", NULL },
		{ "docker run --gpus=\"device=GPU-1,GPU-2\" image", NULL },
		{ "docker run --rm image python --gpus all", NULL },
		{ "docker run -it image python --gpus all", NULL },
		{ "docker run --name a image --gpus all", NULL },
		{ "docker run --gpus all -e CUDA_VISIBLE_DEVICES image", NULL },
		{ "docker run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0 image",
			NULL },
		{ "docker run --gpus all image gpulease python", NULL },
		{ "sudo docker run --gpus \"device={uuids}\" image", NULL },
		{ "sudo docker ps", NULL },
		{ "podman run --device nvidia.com/gpu=GPU-1 image", NULL },
		{ "podman run --device /dev/fuse image", NULL },
	};

	(void)state;
	check_all(table, ARRAY_SIZE(table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_commands_raise_no_alarm),
		cmocka_unit_test(programs_that_ask_slurm_need_no_gpu),
		cmocka_unit_test(sudo_drops_the_variable),
		cmocka_unit_test(sudo_that_keeps_the_variable_raises_no_alarm),
		cmocka_unit_test(login_shells_drop_the_variable),
		cmocka_unit_test(engines_of_containers_ignore_the_variable),
		cmocka_unit_test(containers_with_chosen_gpus_raise_no_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
