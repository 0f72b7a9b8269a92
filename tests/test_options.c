/*
 * Command lines into settings: tables of what a line means, and of how a wrong one is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <cmocka.h>

#include "command_line.h"
#include "option_table.h"
#include "help.h"
#include "file_pattern.h"
#include "operands.h"
#include "split.h"

struct row {
	const char *line; /* as split() reads it */
	const char *expected;
};

static void add_list(struct text *out, const char *name, char *const *words)
{
	text_addf(out, " %s[", name);
	for (size_t i = 0; words[i]; i++)
		text_addf(out, "%s%s", i ? " " : "", words[i]);
	text_add(out, "]");
}

static void add_number(struct text *out, const char *name, int64_t value, int64_t usual)
{
	if (value != usual)
		text_addf(out, " %s=%lld", name, (long long)value);
}

static void add_text(struct text *out, const char *name, const char *value)
{
	if (value)
		text_addf(out, " %s=%s", name, value);
}

static void describe_sharing(const struct settings *s, struct text *out)
{
	static const char *const binds[] = { NULL, "yes", "no" };

	if (!s->request.gpus_given && s->request.gpus != 1)
		text_addf(out, " (%u)", s->request.gpus);
	add_number(out, "share", s->request.share_percent, 0);
	add_number(out, "vram", (int64_t)s->request.vram_mib, 0);
	if (s->request.need_given != (s->request.gpus_given || s->request.vram_mib))
		text_add(out, " need-given is wrong");
	add_number(out, "exclusive", s->request.exclusive, 0);
	add_number(out, "overlap", s->request.overlap, 0);
	add_number(out, "job", (int64_t)s->request.job, 0);
	add_number(out, "min-vram", (int64_t)s->request.min_vram_mib, 0);
	add_text(out, "ids", s->request.gpu_ids);
	add_text(out, "allow", s->request.allow);
	add_text(out, "except", s->request.except);
	add_text(out, "prefer", s->request.prefer);
	add_text(out, "bind", binds[s->environment.bind]);
	add_text(out, "models", s->request.models);
	if (s->request.priority_given)
		text_addf(out, " priority=%lld", (long long)s->request.priority);
	add_text(out, "after", s->request.after);
	add_number(out, "start", s->request.after_start, 0);
	add_text(out, "after-ok", s->request.after_ok);
	add_number(out, "singleton", s->request.singleton, 0);
	add_number(out, "dry-run", s->request.dry_run, 0);
}

static void describe_care(const struct settings *s, struct text *out)
{
	add_number(out, "signal", s->care.warn_signal, 0);
	add_number(out, "steps", s->care.warns_steps, 0);
	add_number(out, "before", s->care.warn_ms, 60000);
	add_number(out, "on-limit", s->care.on_limit, ON_LIMIT_KILL);
	add_number(out, "max-requeues", s->care.max_requeues, UINT_MAX);
	add_number(out, "done-status", s->care.done_status, -1);
	add_number(out, "preemptible", s->care.preemptible, 0);
	add_number(out, "retries", s->care.retries, 0);
	add_number(out, "oom-retries", s->care.oom_retries, 0);
	add_number(out, "report", s->output.report, 0);
	add_number(out, "submit", s->environment.submit, 0);
	add_number(out, "follow", s->environment.follow, 0);
	add_number(out, "unbuffered", s->environment.unbuffered, 0);
	add_number(out, "screen", s->environment.screen, 0);
	add_text(out, "setup", s->environment.setup);
	add_text(out, "conda", s->environment.conda);
	add_text(out, "inject", s->environment.inject);
	add_number(out, "inject-style", s->environment.inject_style, INJECT_LOCAL);
	add_number(out, "lease-only", s->request.lease_only, 0);
	add_number(out, "shell", s->request.shell, 0);
	add_number(out, "pid", s->request.adopt_pid, 0);
	add_number(out, "sig", s->verb.signal, 0);
	add_number(out, "csv", s->output.csv, 0);
	add_text(out, "user", s->verb.user);
}

/* Everything about @s that is not the default. */
static void describe(const struct settings *s, struct text *out)
{
	static const char *const verbs[] = { "run", "status", "queue", "history",
		"cancel", "pause", "resume", "doctor", "show-config", "docker-args",
		"log", "follow", "wait-for", "signal-job", "attach", "sessions",
		"enter-session", "accounting", "batch", "add", "help", "script",
		"version", "list-options",
		"complete", [VERB_SET_PRIORITY] = "set-priority" };

	text_add(out, verbs[s->verb.kind]);
	if (s->request.gpus_given)
		text_addf(out, " gpus=%u", s->request.gpus);
	describe_sharing(s, out);
	add_text(out, "model", s->request.model[0] ? s->request.model : NULL);
	add_text(out, "name", s->request.name);
	add_number(out, "max-wait", s->request.max_wait_ms, -1);
	if (s->request.immediate)
		text_addf(out, " immediate=%lld", (long long)s->request.immediate_ms);
	add_number(out, "limit", s->care.limit_ms, 0);
	add_number(out, "grace", s->care.grace_ms, 10000);
	describe_care(s, out);
	add_number(out, "tasks", s->tasks.count, 1);
	add_number(out, "per-node", s->tasks.per_node, 0);
	add_text(out, "cpus", s->tasks.cpus);
	add_text(out, "gpu-bind", s->tasks.bind);
	add_number(out, "label", s->tasks.labels, 0);
	add_number(out, "kills", s->tasks.kills, 0);
	add_number(out, "wait", s->tasks.wait_ms, 0);
	add_text(out, "note", s->tasks.note ? "yes" : NULL);
	add_text(out, "chdir", s->environment.chdir);
	add_text(out, "output", s->output.out);
	add_text(out, "error", s->output.err);
	add_text(out, "input", s->output.in);
	add_number(out, "json", s->output.json, 0);
	if (s->verb.history_count != 20)
		add_number(out, "count", (int64_t)s->verb.history_count, 20);
	add_text(out, "reason", s->verb.reason);
	if (s->machine.sim_gpus)
		text_addf(out, " sim=%ux%llu", s->machine.sim_gpus,
			(unsigned long long)s->machine.sim_mib);
	add_number(out, "verbose", s->output.verbose, 0);
	add_number(out, "quiet", s->output.quiet, 0);
	for (unsigned i = 0; i < s->ignored_count; i++)
		text_addf(
			out, " ~%s%s", s->ignored[i].name, s->ignored[i].note ? "!" : "");
	if (s->environment.command)
		add_list(out, "", s->environment.command);
	if (s->verb.operand_count)
		add_list(out, "operands", s->verb.operands);
}

static void check_line(const char *line, const char *expected)
{
	struct words words;
	struct settings settings;
	struct why why = WHY_NONE;
	char described[1024];
	struct text text = TEXT_ON(described);

	split(line, &words);
	if (command_line_parse(words.argv, &settings, &why) < 0)
		fail_msg("%s: %s", line, why.text);
	describe(&settings, &text);
	if (strcmp(described, expected) != 0)
		fail_msg("%s\n  is       %s\n  expected %s", line, described, expected);
	if (settings.verb.operand_count)
		assert_null(settings.verb.operands[settings.verb.operand_count]);
}

static void check_refusal(const char *line, const char *expected)
{
	struct words words;
	struct settings settings;
	struct why why = WHY_NONE;
	char printable[sizeof(why.text)];
	struct text text = TEXT_ON(printable);

	split(line, &words);
	if (command_line_parse(words.argv, &settings, &why) != -EINVAL)
		fail_msg("%s: is not refused", line);
	if (!strstr(why.text, expected))
		fail_msg("%s: '%s' does not say '%s'", line, why.text, expected);
	text_add_printable(&text, why.text, strlen(why.text));
	assert_string_equal(printable, why.text);
	assert_true(strlen(why.text) < sizeof(why.text) - 1);
}

static void check_lines(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_line(rows[i].line, rows[i].expected);
}

static void check_refusals(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_refusal(rows[i].line, rows[i].expected);
}

#define CHECK_LINES(rows) check_lines(rows, ARRAY_SIZE(rows))
#define CHECK_REFUSALS(rows) check_refusals(rows, ARRAY_SIZE(rows))

/* --- gpulease's own ---------------------------------------------------------------- */

static void options_end_where_the_command_begins(void **state)
{
	static const struct row rows[] = {
		{ "gpulease x", "run [x]" },
		{ "gpulease -n 2 -- python train.py", "run gpus=2 [python train.py]" },
		{ "gpulease -n2 python -n 3 --status",
			"run gpus=2 [python -n 3 --status]" },
		{ "gpulease -- --status", "run [--status]" },
		{ "gpulease - x", "run [- x]" },
		{ "gpulease -vvn2 x", "run gpus=2 verbose=2 [x]" },
		{ "gpulease -QI5 x", "run immediate=5000 quiet=1 [x]" },
		{ "gpulease -I 5", "run immediate=0 [5]" },
		{ "gpulease --immediate x", "run immediate=0 [x]" },
		{ "gpulease --immediate=2m x", "run immediate=120000 [x]" },
		{ "gpulease --name a --name=b x", "run name=b [x]" },
		{ "gpulease --name=a=b x", "run name=a=b [x]" },
		{ "gpulease --max-wait 90 x", "run max-wait=90000 [x]" },
		{ "gpulease --time 90 --grace 3 x", "run limit=5400000 grace=3000 [x]" },
		{ "gpulease -t 0 --grace=1m x", "run grace=60000 [x]" },
		{ "gpulease -n 0 x", "run gpus=0 [x]" },
		{ "gpulease -n 1 -n 128 x", "run gpus=128 [x]" },
		{ "gpulease --sim 4 x", "run sim=4x24576 [x]" },
		{ "gpulease --sim=128x80G x", "run sim=128x81920 [x]" },
		{ "gpulease -o out/%j.txt -e %x-%u -i in x",
			"run output=out/%j.txt error=%x-%u input=in [x]" },
		{ "gpulease -o none -e all -i 0 x", "run output=/dev/null [x]" },
		{ "gpulease ''", "run []" },
	};

	(void)state;
	CHECK_LINES(rows);
}

static void options_may_stand_between_the_operands_of_a_verb(void **state)
{
	static const struct row rows[] = {
		{ "gpulease --status", "status" },
		{ "gpulease --status --json --sim 4 -v",
			"status json=1 sim=4x24576 verbose=1" },
		{ "gpulease --json --queue", "queue json=1" },
		{ "gpulease --history", "history" },
		{ "gpulease --history 5 --json", "history json=1 count=5" },
		{ "gpulease --history=7", "history count=7" },
		{ "gpulease --history all", "history count=-1" },
		{ "gpulease --cancel 12", "cancel operands[12]" },
		{ "gpulease --cancel=12,13 --grace 1 14 -v -- 15",
			"cancel grace=1000 verbose=1 operands[12,13 14 15]" },
		{ "gpulease --cancel 1 --cancel 2", "cancel operands[1 2]" },
		{ "gpulease --reason broken --pause 0-3,5 GPU-0a1b",
			"pause reason=broken operands[0-3,5 GPU-0a1b]" },
		{ "gpulease --pause 0 --reason fan 1", "pause reason=fan operands[0 1]" },
		{ "gpulease --resume MIG-GPU-1/2/3,0",
			"resume operands[MIG-GPU-1/2/3,0]" },
		{ "gpulease --doctor --json", "doctor json=1" },
		{ "gpulease --show-config --config x", "show-config" },
		{ "gpulease --docker-args", "docker-args" },
		{ "gpulease --docker-args podman", "docker-args" },
		{ "gpulease --help", "help" },
		{ "gpulease -h --no-such-option", "help" },
		{ "gpulease -n 2 --status --help", "help" },
		{ "gpulease -vV x", "version verbose=1" },
		{ "gpulease --list-options", "list-options" },
		{ "gpulease --batch jobs.txt --jobs 2", "batch operands[jobs.txt]" },
		{ "gpulease --batch -", "batch operands[-]" },
		{ "gpulease --batch a -n 0", "batch gpus=0 operands[a]" },
		{ "gpulease --add jobs.txt python --name run1 -n 4",
			"add [python --name run1 -n 4] operands[jobs.txt python --name run1 -n 4]" },
		{ "gpulease --add jobs.txt -- python --version",
			"add [python --version] operands[jobs.txt python --version]" },
	};

	(void)state;
	CHECK_LINES(rows);
}

static void a_wrong_command_line_is_refused_with_advice(void **state)
{
	static const struct row rows[] = {
		{ "gpulease", "no command given" },
		{ "gpulease -v", "no command given" },
		{ "gpulease --", "no command given" },
		{ "gpulease -n", "-n needs a value: -n N" },
		{ "gpulease --max-wait", "--max-wait needs a value: --max-wait DUR" },
		{ "gpulease -n -1 x", "-n: '-1' is negative" },
		{ "gpulease -n abc x", "-n: 'abc' is not a number of GPUs" },
		{ "gpulease -n 1e99 x", "-n: '1e99' is not a number of GPUs" },
		{ "gpulease -n '' x", "-n needs a value: -n N" },
		{ "gpulease -n 0.125 x",
			"-n: '0.125' is not a whole percentage of a GPU" },
		{ "gpulease -G 1.5 x", "-G: '1.5' is above 1 and not a whole number" },
		{ "gpulease -n129 x", "-n: '129' GPUs are too many" },
		{ "gpulease --gpus= x", "--gpus needs a value: --gpus [TYPE:]N" },
		{ "gpulease --name= x", "--name needs a value: --name TEXT" },
		{ "gpulease --max-wait 3x x",
			"--max-wait: '3x' is not a duration; write 90s" },
		{ "gpulease -t noon x", "-t: 'noon' is not a time limit" },
		{ "gpulease -Ix x", "-I: 'x' is not a duration" },
		{ "gpulease --immediate --max-wait 5 x", "exclude each other" },
		{ "gpulease -vQ x", "-v and -Q exclude each other" },
		{ "gpulease --quiet=1 x", "--quiet takes no value, not '1'" },
		{ "gpulease --queue=1", "--queue takes no value, not '1'" },
		{ "gpulease --sim 0 x",
			"--sim: '0' is not a number of GPUs to simulate" },
		{ "gpulease --sim 129 x", "--sim: '129' is not" },
		{ "gpulease --sim 4x x", "--sim: '' is not a size" },
		{ "gpulease --sim 4y2 x", "--sim: '4y2' is not" },
		{ "gpulease --sim 00000000004 x", "--sim: '00000000004' is not" },
		{ "gpulease -o %T x",
			"-o: '%T' has a % that stands for nothing; write %j" },
		{ "gpulease -o 3 x", "-o: '3' is the number of a task" },
	};

	(void)state;
	CHECK_REFUSALS(rows);
}

static void indices_of_gpus_are_not_their_number(void **state)
{
	static const struct row rows[] = {
		{ "gpulease --batch a --gpus 0",
			"--gpus 0 is no GPU at all; write --allow 0 for GPU 0, or -n 0" },
		{ "gpulease -G0 --batch a", "-G 0 is no GPU at all" },
		{ "gpulease --add a --gpus=0 x", "--gpus 0 is no GPU at all" },
		{ "gpulease --batch a --gpus 0,1,3",
			"--gpus: '0,1,3' is not a number of GPUs; --allow, --gpu-ids" },
		{ "gpulease -G 0-3 x", "-G: '0-3' is not a number of GPUs; --allow" },
		{ "gpulease --gpus a100:1,h100:2 x", "asks for several kinds of GPU" },
	};

	(void)state;
	CHECK_REFUSALS(rows);
}

static void a_wrong_command_line_with_a_verb_is_refused_with_advice(void **state)
{
	static const struct row rows[] = {
		{ "gpulease --status --queue",
			"--status and --queue are two things to do" },
		{ "gpulease --status -n 2", "--status and -n do not go together" },
		{ "gpulease --status --mem=4G", "--status and --mem do not go together" },
		{ "gpulease --resume 1 --reason x",
			"--resume and --reason do not go together" },
		{ "gpulease --cancel 1 --reason x",
			"--cancel and --reason do not go together" },
		{ "gpulease --pause 1 --json", "--pause and --json do not go together" },
		{ "gpulease --queue --grace 1",
			"--queue and --grace do not go together" },
		{ "gpulease --json x",
			"--json goes only with --dry-run, --batch and reports such as "
			"--status, --queue and --history" },
		{ "gpulease --reason y x", "--reason goes only with --pause" },
		{ "gpulease --queue python",
			"operand, not 'python'; --status ID shows one job" },
		{ "gpulease --status python",
			"--status: 'python' is not the id of a job; see gpulease --status" },
		{ "gpulease --history 1 2",
			"--history takes no command or operand, not '2'" },
		{ "gpulease --batch", "--batch needs the name of a jobs file" },
		{ "gpulease --batch a b", "--batch takes one file, not 'b' as well" },
		{ "gpulease --batch a -I", "--batch and -I do not go together" },
		{ "gpulease --batch a --submit",
			"--batch and --submit do not go together" },
		{ "gpulease --cancel 3 --submit",
			"--cancel and --submit do not go together" },
		{ "gpulease --batch a --jobs 0",
			"--jobs: 0 jobs at once would never end" },
		{ "gpulease --batch a --batch-format=xml",
			"--batch-format: 'xml' is neither lines nor csv" },
		{ "gpulease --add a", "--add needs a command: --add a -- python" },
		{ "gpulease --add - -- x", "--add" },
		{ "gpulease --add a --preemptible -- x",
			"--add and --preemptible do not go together" },
		{ "gpulease --watch x", "--watch goes only with --batch" },
		{ "gpulease --history x", "--history: 'x' is not a number of jobs" },
		{ "gpulease --history 0", "--history: '0' is not a number of jobs" },
		{ "gpulease --history --last x", "--last: 'x' is not a number of jobs" },
		{ "gpulease --status --last 3",
			"--status and --last do not go together" },
		{ "gpulease --submit --json x", "--json goes only with --dry-run" },
		{ "gpulease --cancel", "--cancel needs the id of a job" },
		{ "gpulease --cancel 1,,2", "--cancel: '' is not the id of a job" },
		{ "gpulease --cancel 12-3", "'12-3' is the wrong way round; write 3-12" },
		{ "gpulease --cancel -5", "unknown option '-5'" },
		{ "gpulease --pause", "--pause needs a GPU" },
		{ "gpulease --pause 3-1", "--pause: '3-1' is the wrong way round" },
		{ "gpulease --pause 128", "--pause: '128' is not a GPU" },
		{ "gpulease --resume GPU-", "--resume: 'GPU-' is not a GPU" },
		{ "gpulease --resume 1-", "--resume: '1-' is not a GPU" },
	};

	(void)state;
	CHECK_REFUSALS(rows);
}

static void an_unknown_option_suggests_a_similar_one(void **state)
{
	static const struct row rows[] = {
		{ "gpulease --stauts",
			"unknown option '--stauts'; did you mean --status?" },
		{ "gpulease --stat x", "did you mean --status?" },
		{ "gpulease -status",
			"unknown option '-status'; did you mean --status?" },
		{ "gpulease -log 3", "unknown option '-log'; did you mean --log?" },
		{ "gpulease -time=5 x", "unknown option '-time'; did you mean --time?" },
		{ "gpulease --max-wiat=5 x", "'--max-wiat'; did you mean --max-wait?" },
		{ "gpulease --gpu 2 x", "did you mean --gpus N for " },
		{ "gpulease --tiem 2 x", "did you mean --time?" },
		{ "gpulease --cancle 2", "did you mean --cancel?" },
		{ "gpulease --nodelits=a x",
			"unknown option '--nodelits'; did you mean --nodelist?" },
		{ "gpulease --list-option", "unknown option '--list-option'; see" },
		{ "gpulease --vrma 5G x", "did you mean --vram?" },
		{ "gpulease --prioritiy 1 x", "did you mean --priority?" },
		{ "gpulease --xubmit x",
			"unknown option '--xubmit'; did you mean --submit?" },
		{ "gpulease --xyzzy x", "unknown option '--xyzzy'; see gpulease --help" },
		{ "gpulease --hurry x", "unknown option '--hurry'; see" },
		{ "gpulease --requeue x", "--requeue: 'x' is not the id of a job" },
		{ "gpulease --requeue", "--requeue needs" },
		{ "gpulease --no-requeue --preemptible x",
			"--no-requeue excludes --preemptible" },
		{ "gpulease -Y x", "unknown option '-Y'; see gpulease --help" },
		{ "gpulease -vY x", "unknown option '-Y' in '-vY'" },
		{ "gpulease --=x x", "unknown option '--'; see" },
		{ "gpulease --st\xff\033 x", "unknown option '--st?\?'" },
		{ "gpulease -\xff x", "unknown option '-?'" },
		{ "gpulease --"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"aaa\xe2\x80\xa6'; see gpulease --help" },
	};

	(void)state;
	CHECK_REFUSALS(rows);
}

/* --- as srun ----------------------------------------------------------------------- */

static void srun_lines_of_training_scripts_are_understood(void **state)
{
	static const struct row rows[] = {
		{ "srun -n 4 torchrun --nproc_per_node=4 train.py",
			"run gpus=4 note=yes [torchrun --nproc_per_node=4 train.py]" },
		{ "srun --gres=gpu:4 --ntasks=1 --cpus-per-task=8 --mem=64G -p gpu -t "
		  "2:00:00 torchrun --standalone --nproc-per-node 4 train.py",
			"run gpus=4 limit=7200000 cpus=8 ~cpus-per-task! ~mem! ~partition [torchrun --standalone --nproc-per-node 4 train.py]" },
		{ "srun -N 1 -n 1 -c 16 --gpus-per-node=a100:8 --cpu-bind=none "
		  "--mpi=none accelerate launch --num_processes 8 run.py",
			"run gpus=8 model=a100 cpus=16 ~nodes ~mpi ~cpus-per-task! ~cpu-bind! [accelerate launch --num_processes 8 run.py]" },
		{ "srun --nodes=1 --ntasks-per-node=1 --gres=gpu:a100:2 "
		  "--job-name=llama-ft --output=logs/%x-%j.out --error=logs/%x-%j.err "
		  "deepspeed --num_gpus 2 ft.py",
			"run gpus=2 model=a100 name=llama-ft per-node=1 output=logs/%x-%j.out error=logs/%x-%j.err ~nodes [deepspeed --num_gpus 2 ft.py]" },
		{ "srun --gres=gpu:1 --pty bash -i", "run gpus=1 [bash -i]" },
		{ "srun -A proj -q high -p a100 -G 1 -u -l python -u train.py --lr 1e-4",
			"run gpus=1 unbuffered=1 label=1 ~partition ~account ~qos [python -u train.py --lr 1e-4]" },
		{ "srun --kill-on-bad-exit=1 --export=ALL -D /data/exp1 "
		  "--gres=gpu:v100:1 -J pl python lit.py --trainer.devices 1",
			"run gpus=1 model=v100 name=pl kills=1 chdir=/data/exp1 [python lit.py --trainer.devices 1]" },
		{ "srun -K --wait=60 --ntasks=1 --gpus-per-task=4 --hint=nomultithread "
		  "--mem-per-gpu=32G -t 1-00:00:00 ./run.sh",
			"run gpus=4 limit=86400000 kills=1 wait=60000 ~mem-per-gpu! ~hint! [./run.sh]" },
		{ "srun --overlap --jobid 12 -n 2 x",
			"run overlap=1 job=12 tasks=2 [x]" },
		{ "srun --overlap -W 0 -I60 -Q --gpus=h100:2 apptainer exec --nv "
		  "img.sif python t.py",
			"run gpus=2 overlap=1 model=h100 immediate=60000 quiet=1 [apptainer exec --nv img.sif python t.py]" },
		{ "srun -v -n1 -G2 --mem-per-cpu 4G -i none bash -c train",
			"run gpus=2 input=/dev/null verbose=1 ~mem-per-cpu! [bash -c "
			"train]" },
		{ "srun --mem=0 --gres=none python prepare.py",
			"run gpus=0 ~mem! [python prepare.py]" },
		{ "srun -G2 --gpu-bind=closest --cpus-per-gpu=8 -k -s -m block:cyclic "
		  "--open-mode=truncate --nice --propagate=ALL --comment x a",
			"run gpus=2 gpu-bind=closest ~cpus-per-gpu! ~nice! ~distribution ~oversubscribe ~no-kill ~comment ~propagate [a]" },
		{ "srun -K0 --mem-bind=local --ntasks 1 hostname",
			"run note=yes ~mem-bind! [hostname]" },
	};

	(void)state;
	CHECK_LINES(rows);
}

static void n_counts_gpus_unless_a_gpu_option_is_given(void **state)
{
	static const struct row good[] = {
		{ "srun -n 4 x", "run gpus=4 note=yes [x]" },
		{ "srun -n 1 --gres=gpu:4 x", "run gpus=4 [x]" },
		{ "srun --gres=gpu:4 -n1 x", "run gpus=4 [x]" },
		{ "srun -n 4 --ntasks=1 x", "run gpus=4 note=yes [x]" },
		{ "srun --gres gpu x", "run gpus=1 [x]" },
		{ "srun --gres gpu:tesla x", "run gpus=1 model=tesla [x]" },
		{ "srun --gres=gpu:4090:1 x", "run gpus=1 model=4090 [x]" },
		{ "srun --gres=gpu:0 x", "run gpus=0 [x]" },
		{ "srun -G 2 --gres=gpu:2 x", "run gpus=2 [x]" },
		{ "srun -G 2 -G 4 x", "run gpus=4 [x]" },
		{ "srun -N 1-4 x", "run note=yes ~nodes [x]" },
	};
	static const struct row bad[] = {
		{ "srun -n 0 --gpus=1 x", "-n: 0 is no number of tasks; write 1 to 512" },
		{ "srun -n 513 --gpus=1 x", "-n: 513 is no number of tasks" },
		{ "srun -n 256 --gpus-per-task=1 x", "need 256 GPUs; at most 128" },
		{ "srun -n a --gpus=1 x", "-n: 'a' is not a number" },
		{ "srun -G 2 --gres=gpu:4 x", "-G and --gres ask for different GPUs" },
		{ "srun --gpus 2 --gpus-per-node=a:2 x",
			"--gpus and --gpus-per-node ask for" },
		{ "srun --gres=gpu:2,shard:1 x",
			"gpulease leases GPUs and nothing else" },
		{ "srun --gres=shard:1 x", "gpulease leases GPUs and nothing else" },
		{ "srun --gres=gpus:1 x", "gpulease leases GPUs and nothing else" },
		{ "srun --gres=gpu:a100: x", "--gres: '' is not a number of GPUs" },
		{ "srun --gres=gpu: x", "--gres: '' is not a number of GPUs" },
		{ "srun --gres=gpu:: x", "--gres: 'gpu::' has no TYPE" },
		{ "srun --gres=gpu:a:b:1 x", "--gres: 'b:1' is not a number of GPUs" },
		{ "srun --gres=gpu:0.005 x",
			"--gres: '0.005' is less than the smallest" },
		{ "srun -G 0.5 --gres=gpu:1 x", "-G and --gres ask for different GPUs" },
		{ "srun --gres=gpu:-1 x", "--gres: '-1' is negative" },
		{ "srun --gpus=:2 x", "--gpus: ':2' has no TYPE" },
		{ "srun --gpus=a100 x", "--gpus: 'a100' is not a number of GPUs" },
		{ "srun --gpus=a100:1,v100:1 x", "several kinds of GPU" },
		{ "srun --gpus="
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1 x",
			"too long a TYPE" },
	};

	(void)state;
	CHECK_LINES(good);
	CHECK_REFUSALS(bad);
}

static void tasks_are_counted_as_srun_counts_them(void **state)
{
	static const struct row good[] = {
		{ "srun -n 4 --gres=gpu:4 x", "run gpus=4 tasks=4 [x]" },
		{ "srun -G 4 -n 4 x", "run gpus=4 tasks=4 [x]" },
		{ "srun --ntasks 2 --gpus-per-node=8 x", "run gpus=8 tasks=2 [x]" },
		{ "srun --ntasks-per-node=8 --gres=gpu:8 x",
			"run gpus=8 tasks=8 per-node=8 [x]" },
		{ "srun --tasks-per-node=2 -G 2 x", "run gpus=2 tasks=2 per-node=2 [x]" },
		{ "srun -n 4 --ntasks-per-node=8 -G 2 x",
			"run gpus=2 tasks=4 per-node=8 [x]" },
		{ "srun -n 2 --gpus-per-task=3 x",
			"run gpus=6 tasks=2 gpu-bind=per_task:3 [x]" },
		{ "srun -n 2 --gpus-per-task=a100:1 --gpus=a100:2 x",
			"run gpus=2 model=a100 tasks=2 gpu-bind=per_task:1 [x]" },
		{ "srun --gpus=4 --gpus-per-task=2 x",
			"run gpus=4 tasks=2 gpu-bind=per_task:2 [x]" },
		{ "srun --gpus=2 --ntasks-per-gpu=3 x",
			"run gpus=2 tasks=6 gpu-bind=single:3 [x]" },
		{ "srun -n 6 --ntasks-per-gpu=3 x",
			"run gpus=2 tasks=6 gpu-bind=single:3 [x]" },
		{ "srun --ntasks=6 --ntasks-per-gpu=3 x",
			"run gpus=2 tasks=6 gpu-bind=single:3 [x]" },
		{ "srun --ntasks=6 --ntasks-per-gpu=3 --gpu-bind=none x",
			"run gpus=2 tasks=6 gpu-bind=none [x]" },
		{ "srun -n 2 --gpus-per-task=0 x",
			"run gpus=0 tasks=2 gpu-bind=per_task:0 [x]" },
		{ "srun --ntasks=4 x", "run tasks=4 note=yes [x]" },
		{ "gpulease --ntasks=4 x", "run tasks=4 [x]" },
		{ "gpulease --ntasks=4 --gpu-ids 0,1 x", "run (2) ids=0,1 tasks=4 [x]" },
		{ "srun -G 1 -l -c 3 -K -W 5 -n 2 x",
			"run gpus=1 tasks=2 cpus=3 label=1 kills=1 wait=5000 "
			"~cpus-per-task! [x]" },
		{ "srun -G 1 -n 2 -o 1 x", "run gpus=1 tasks=2 output=1 [x]" },
		{ "srun -G 1 -o 0 x", "run gpus=1 [x]" },
		{ "srun -G 1 -w localhost --cpu_bind=v --accel-bind=gn x",
			"run gpus=1 ~nodelist ~cpu-bind! ~accel-bind [x]" },
		{ "srun -G 1 --mpi=pmix x", "run gpus=1 note=yes ~mpi [x]" },
		{ "srun -G 1 --mpi=none --cpus_per_task 2 x",
			"run gpus=1 cpus=2 ~mpi ~cpus-per-task! [x]" },
	};

	(void)state;
	CHECK_LINES(good);
}

static void tasks_that_do_not_fit_are_refused(void **state)
{
	static const struct row bad[] = {
		{ "srun -n 16 --ntasks-per-node=8 -G 8 x",
			"-n 16 with --ntasks-per-node 8" },
		{ "srun -n 2 --ntasks=3 -G 8 x",
			"-n and --ntasks ask for different tasks" },
		{ "srun --ntasks=2 --ntasks-per-gpu=2 -G 8 x",
			"2 tasks with --ntasks-per-gpu 2 do not fit 8 GPUs" },
		{ "srun --ntasks=3 --ntasks-per-gpu=2 x", "do not fit 1 GPU" },
		{ "srun -n 2 --gpus-per-task=3 --gpus=4 x", "ask for different GPUs" },
		{ "srun -n 2 -G 0.5 x", "several tasks cannot share a part of a GPU" },
		{ "srun --ntasks=b x", "--ntasks: 'b' is not a number" },
		{ "srun --ntasks-per-gpu=0 -G 2 x", "--ntasks-per-gpu: 0 is no number" },
		{ "srun -n 2 -G 2 -o 2 x",
			"-o: '2' is the number of a task, and there are 2" },
		{ "srun -G 128 --ntasks-per-gpu=5 x", "tasks are too many" },
		{ "gpulease --ntasks 2 --inject --cuda x", "--inject gives one process" },
		{ "gpulease -G 2 -n 2 --batch jobs",
			"a line of a jobs file is one task" },
		{ "gpulease -K2 x", "-K: '2' is too large" },
	};

	(void)state;
	CHECK_REFUSALS(bad);
}

/* --- sharing, choosing, ordering --------------------------------------------------- */

static void needs_are_shares_and_memory(void **state)
{
	static const struct row good[] = {
		{ "gpulease -n 0.5 x", "run gpus=1 share=50 [x]" },
		{ "gpulease -n.05 x", "run gpus=1 share=5 [x]" },
		{ "gpulease -n 1.0 x", "run gpus=1 [x]" },
		{ "gpulease -n 2.0 x", "run gpus=2 [x]" },
		{ "gpulease -n 0.5 -n 2 x", "run gpus=2 [x]" },
		{ "gpulease --gpus=a100:0.25 x", "run gpus=1 share=25 model=a100 [x]" },
		{ "srun --gres=gpu:0.5 x", "run gpus=1 share=50 [x]" },
		{ "srun -n1 -G 0.5 --gpus-per-task=0.50 x", "run gpus=1 share=50 [x]" },
		{ "gpulease --vram 18G x", "run vram=18432 [x]" },
		{ "gpulease -n 2 --vram=500 x", "run gpus=2 vram=500 [x]" },
		{ "gpulease -n 0.5 --vram 10G x", "run gpus=1 share=50 vram=10240 [x]" },
		{ "gpulease --min-vram 40G x", "run min-vram=40960 [x]" },
		{ "gpulease --exclusive x", "run exclusive=1 [x]" },
		{ "gpulease --exclusive=user --vram 1T x",
			"run vram=1048576 exclusive=1 [x]" },
		{ "gpulease --exclusive -n 2 x", "run gpus=2 exclusive=1 [x]" },
		{ "gpulease --model H100 x", "run model=H100 [x]" },
		{ "gpulease --model a100 --gpus=A100:2 x", "run gpus=2 model=A100 [x]" },
		{ "gpulease --model a100 -G 2 x", "run gpus=2 model=a100 [x]" },
		{ "gpulease --models m.conf x --llm q", "run models=m.conf [x --llm q]" },
		{ "gpulease --dry-run -n 8 x", "run gpus=8 dry-run=1 [x]" },
	};
	static const struct row bad[] = {
		{ "gpulease --vram 0 x", "--vram: '0' is no memory" },
		{ "gpulease --vram 18X x", "--vram: '18X' is not a size" },
		{ "gpulease --vram= x", "--vram needs a value: --vram SIZE" },
		{ "gpulease --min-vram 0 x", "--min-vram: '0' is no memory" },
		{ "gpulease --model= x", "--model needs a value: --model TEXT" },
		{ "gpulease --model "
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x",
			"a' is too long" },
		{ "gpulease --model a100 --gpus=h100:2 x",
			"--gpus asks for 'h100' and --model for 'a100'; give one" },
		{ "gpulease --exclusive -n 0.5 x",
			"-n asks for a share of a GPU and --exclusive for all of it" },
		{ "gpulease --exclusive --gres=gpu:0.5 x", "--gres asks for a share of" },
		{ "gpulease -n 0 --vram 1G x",
			"-n asks for no GPU and --vram for memory of one" },
		{ "gpulease --gres=none --vram 1G x", "--gres asks for no GPU" },
		{ "gpulease --status --vram 1G", "--status and --vram do not go" },
		{ "gpulease --dry-run --cancel 1", "--cancel and --dry-run do not go" },
	};

	(void)state;
	CHECK_LINES(good);
	CHECK_REFUSALS(bad);
}

static void gpus_are_named_in_lists(void **state)
{
	static const struct row good[] = {
		{ "gpulease --gpu-ids 3 x", "run ids=3 [x]" },
		{ "gpulease --gpu-ids 0-3,5 x", "run (5) ids=0-3,5 [x]" },
		{ "gpulease -n 2 --gpu-ids 7,1 x", "run gpus=2 ids=7,1 [x]" },
		{ "gpulease -n 0.5 --gpu-ids 3 x", "run gpus=1 share=50 ids=3 [x]" },
		{ "gpulease --gpu-ids 0:1 x", "run ids=0:1 [x]" },
		{ "gpulease --gpu-ids 0:1,0:2,0 x", "run (3) ids=0:1,0:2,0 [x]" },
		{ "gpulease --gpu-ids 0,0:0 x", "run (2) ids=0,0:0 [x]" },
		{ "gpulease --gpu-ids GPU-1a,MIG-GPU-7/1/0 x",
			"run (2) ids=GPU-1a,MIG-GPU-7/1/0 [x]" },
		{ "gpulease --gpu-ids 0-127 x", "run (128) ids=0-127 [x]" },
		{ "gpulease --gpu-ids 1-2 --vram 4G x", "run (2) vram=4096 ids=1-2 [x]" },
		{ "gpulease --allow 0-3,1-2 --except 2,2 x",
			"run allow=0-3,1-2 except=2,2 [x]" },
		{ "gpulease --prefer-gpus 7,0-3,GPU-5 x", "run prefer=7,0-3,GPU-5 [x]" },
		{ "gpulease --prefer-gpus 0-15 x", "run prefer=0-15 [x]" },
		{ "gpulease --bind x", "run bind=yes [x]" },
		{ "gpulease --bind=yes --bind=no x", "run bind=no [x]" },
	};

	(void)state;
	CHECK_LINES(good);
}

static void a_malformed_list_of_gpus_is_refused(void **state)
{
	static const struct row bad[] = {
		{ "gpulease --gpu-ids , x", "--gpu-ids: '' is not a GPU; write its" },
		{ "gpulease --gpu-ids 3-0 x",
			"--gpu-ids: '3-0' is the wrong way round; write 0-3" },
		{ "gpulease --gpu-ids 0- x",
			"--gpu-ids: '0-' is not a GPU; write its index (0), several "
			"(0-3,5), an instance (0:1) or its UUID" },
		{ "gpulease --gpu-ids x x", "'x' is not a GPU" },
		{ "gpulease --gpu-ids 0, x", "'' is not a GPU" },
		{ "gpulease --gpu-ids 0,,1 x", "'' is not a GPU" },
		{ "gpulease --gpu-ids 0: x", "'0:' is not a GPU" },
		{ "gpulease --gpu-ids :1 x", "':1' is not a GPU" },
		{ "gpulease --gpu-ids 0:1-2 x", "'0:1-2' is not a GPU" },
		{ "gpulease --gpu-ids 0-1:2 x", "'0-1:2' is not a GPU" },
		{ "gpulease --gpu-ids 128 x", "'128' is not a GPU" },
		{ "gpulease --gpu-ids GPU- x", "'GPU-' is not a GPU" },
		{ "gpulease --gpu-ids GPU-a.b x", "'GPU-a.b' is not a GPU" },
		{ "gpulease --gpu-ids gpu-1 x", "'gpu-1' is not a GPU" },
		{ "gpulease --gpu-ids 0,1,0 x", "--gpu-ids: '0,1,0' names '0' twice" },
		{ "gpulease --gpu-ids 0-3,2 x", "names '2' twice" },
		{ "gpulease --gpu-ids 5,0:1,0:1 x", "names '0:1' twice" },
		{ "gpulease --gpu-ids GPU-1,2,GPU-1 x", "names 'GPU-1' twice" },
		{ "gpulease --gpu-ids 0-127,GPU-1 x", "names more than 128 GPUs" },
		{ "gpulease -n 2 --gpu-ids 0 x",
			"-n asks for 2 GPUs and --gpu-ids names 1; leave one out" },
		{ "gpulease -G 1 --gpu-ids 0-1 x",
			"-G asks for 1 GPU and --gpu-ids names 2; leave one out" },
		{ "gpulease -n 0 --gpu-ids 0 x",
			"-n asks for 0 GPUs and --gpu-ids names 1" },
		{ "gpulease -n 0.5 --gpu-ids 0,1 x",
			"-n asks for a share of one GPU and --gpu-ids names 2" },
		{ "gpulease --allow 2-1 x", "--allow: '2-1' is the wrong way round" },
		{ "gpulease --except y x", "--except: 'y' is not a GPU" },
		{ "gpulease --prefer-gpus 0-16 x",
			"--prefer-gpus: '0-16' names more than 16 GPUs" },
		{ "gpulease --bind=maybe x", "--bind: 'maybe' is neither yes nor no" },
	};

	(void)state;
	CHECK_REFUSALS(bad);
}

static void options_for_the_order_are_read(void **state)
{
	static const struct row good[] = {
		{ "gpulease --priority 5 x", "run priority=5 [x]" },
		{ "gpulease --priority -1000000 x", "run priority=-1000000 [x]" },
		{ "gpulease --priority=0 x", "run priority=0 [x]" },
		{ "gpulease --after 12 x", "run after=12 [x]" },
		{ "gpulease --after 1,2,3,4,5,06 x", "run after=1,2,3,4,5,6 [x]" },
		{ "gpulease --after 1 --after 2 --after-ok 3 x",
			"run after=2 after-ok=3 [x]" },
		{ "gpulease --after 1234567890123456789,1234567890123456789 x",
			"run after=1234567890123456789,1234567890123456789 [x]" },
		{ "gpulease --singleton --name a x", "run singleton=1 name=a [x]" },
		{ "srun -d singleton -J a x", "run singleton=1 name=a note=yes [x]" },
		{ "gpulease --singleton --name 12345678901234567890123456789012 x",
			"run singleton=1 name=12345678901234567890123456789012 [x]" },
		{ "gpulease --name 12345678901234567890123456789012+ x",
			"run name=12345678901234567890123456789012+ [x]" },
		{ "srun -d afterany:12 x", "run after=12 note=yes [x]" },
		{ "srun --dependency=afterok:12:13,afterany:7,afterany:8 x",
			"run after=7,8 after-ok=12,13 note=yes [x]" },
		{ "srun --after 1 -d afterok:2,singleton --after-ok 3 -J n x",
			"run after=1 after-ok=3 singleton=1 name=n note=yes [x]" },
		{ "srun -dafterany:1 -dafterany:2 x", "run after=2 note=yes [x]" },
		{ "srun -d after:5 x", "run after=5 start=1 note=yes [x]" },
		{ "srun -d afterok:1,afterany:2,after:3:4,afterany:5,after:6 x",
			"run after=2,3,4,5,6 start=22 after-ok=1 note=yes [x]" },
		{ "srun -d after:1 -d afterok:2 x",
			"run after=1 start=1 after-ok=2 note=yes [x]" },
		{ "srun -d after:1 -d afterany:2 x", "run after=2 note=yes [x]" },
		{ "srun -d after:1 --after 2 x", "run after=2 note=yes [x]" },
	};

	(void)state;
	CHECK_LINES(good);
}

static void malformed_options_for_the_order_are_refused(void **state)
{
	static const struct row bad[] = {
		{ "gpulease --priority high x",
			"--priority: 'high' is not a priority; write a whole number "
			"from -1000000 to 1000000" },
		{ "gpulease --priority 1000001 x", "'1000001' is not a priority" },
		{ "gpulease --priority -1000001 x", "'-1000001' is not a priority" },
		{ "gpulease --priority 1.5 x", "'1.5' is not a priority" },
		{ "gpulease --priority - x", "'-' is not a priority" },
		{ "gpulease --priority --1 x", "'--1' is not a priority" },
		{ "gpulease --priority= x", "--priority needs a value: --priority N" },
		{ "gpulease --after x x", "--after: 'x' is not the id of a job" },
		{ "gpulease --after 0 x",
			"--after: '0' is not the id of a job; they begin at 1" },
		{ "gpulease --after 1,0,2 x", "'0' is not the id of a job" },
		{ "gpulease --after -5 x", "'-5' is not the id of a job" },
		{ "gpulease --after 1,,2 x", "'' is not the id of a job" },
		{ "gpulease --after-ok '' x", "--after-ok needs a value: --after-ok ID" },
		{ "gpulease --after 1,2,3,4,5,6,7 x",
			"--after: '1,2,3,4,5,6,7' names too many jobs; at most 6, in 47 "
			"characters; let jobs with -n 0 wait for some of them" },
		{ "gpulease --after 1234567890123456789,1234567890123456789,"
		  "1234567890123456789,1234567890123456789 x",
			"names too many jobs" },
		{ "gpulease --singleton x", "--singleton needs --name" },
		{ "srun -d singleton x", "--singleton needs --name" },
		{ "srun -d afternotok:5 x",
			"-d: 'afternotok:5' is not supported; write singleton, "
			"after:ID, afterany:ID or afterok:ID" },
		{ "srun -d after:5+1 x", "-d: '5+1' is not the id of a job" },
		{ "srun -d after x", "'after' is not supported" },
		{ "srun --dependency afterany:1?afterok:2 x",
			"--dependency: 'afterany:1?afterok:2' is not supported" },
		{ "srun -d afterany x", "'afterany' is not supported" },
		{ "srun -d afterany: x", "-d: '' is not the id of a job" },
		{ "srun -d afterok:1:0 x", "'0' is not the id of a job" },
		{ "srun -d afterok:1, x", "'' is not supported" },
		{ "srun -d afterany:1:2:3,afterany:4:5:6:7 x", "too many jobs" },
	};

	(void)state;
	CHECK_REFUSALS(bad);
}

static void options_for_the_supervisor_are_read(void **state)
{
	static const struct row rows[] = {
		{ "gpulease --signal USR1@30 x", "run signal=10 before=30000 [x]" },
		{ "gpulease --signal=sigterm x", "run signal=15 [x]" },
		{ "gpulease --signal=S:USR1@30 x",
			"run signal=10 steps=1 before=30000 [x]" },
		{ "gpulease --signal=RB:USR1@30 x", "run signal=10 before=30000 [x]" },
		{ "srun --signal=R:12@2m x", "run signal=12 before=120000 note=yes [x]" },
		{ "gpulease --preemptible --done-status 0 x",
			"run done-status=0 preemptible=1 [x]" },
		{ "gpulease --on-limit requeue --max-requeues 3 -t 5 x",
			"run limit=300000 on-limit=1 max-requeues=3 [x]" },
		{ "gpulease --retries 2 --oom-retries=1 --grace 5 x",
			"run grace=5000 retries=2 oom-retries=1 [x]" },
		{ "gpulease --preemptible --report x", "run preemptible=1 report=1 [x]" },
		{ "gpulease --submit -n 2 x -n 3", "run gpus=2 submit=1 [x -n 3]" },
		{ "gpulease --submit --follow x --log 1",
			"run submit=1 follow=1 [x --log 1]" },
		{ "gpulease --follow --submit -- x -v", "run submit=1 follow=1 [x -v]" },
		{ "gpulease --screen --name a x", "run name=a submit=1 screen=1 [x]" },
		{ "gpulease --setup a --conda b x", "run setup=a conda=b [x]" },
		{ "gpulease --inject=--cuda --inject-style physical x",
			"run inject=--cuda inject-style=1 [x]" },
		{ "gpulease --lease-only -n 2", "run gpus=2 lease-only=1 []" },
		{ "gpulease --lease-only --pid 77", "run lease-only=1 pid=77 []" },
		{ "gpulease --shell -n 1", "run gpus=1 shell=1 []" },
		{ "gpulease --log 12", "log operands[12]" },
		{ "gpulease --follow=12", "follow operands[12]" },
		{ "gpulease --wait-for 12,13 15", "wait-for operands[12,13 15]" },
		{ "gpulease --wait-for mine", "wait-for operands[mine]" },
		{ "gpulease --wait-for all 3", "wait-for operands[all 3]" },
		{ "gpulease --signal-job 12 usr1",
			"signal-job sig=10 operands[12 usr1]" },
		{ "gpulease --set-priority 12 5",
			"set-priority priority=5 operands[12 5]" },
		{ "gpulease --set-priority=12 -5 -Q",
			"set-priority priority=-5 quiet=1 operands[12 -5]" },
		{ "gpulease -a 12", "attach operands[12]" },
		{ "gpulease --sessions --json", "sessions json=1" },
		{ "gpulease --accounting --csv --user eva", "accounting csv=1 user=eva" },
	};

	(void)state;
	check_lines(rows, ARRAY_SIZE(rows));
}

static void wrong_options_for_the_supervisor_are_refused(void **state)
{
	static const struct row wrong[] = {
		{ "gpulease --signal NO@3 x",
			"--signal: there is no signal 'NO'; write" },
		{ "gpulease --signal USR1@x x", "--signal: " },
		{ "gpulease --on-limit stay x", "'stay' is neither kill nor requeue" },
		{ "gpulease --max-requeues 1 x", "goes only with --on-limit requeue" },
		{ "gpulease --done-status 0 x", "goes only with --preemptible" },
		{ "gpulease --preemptible --done-status 256 x", "is too large" },
		{ "gpulease --retries -1 x", "--retries: " },
		{ "gpulease --inject-style odd x", "neither local nor physical" },
		{ "gpulease --inject== x", "--inject: its value is not an option" },
		{ "gpulease --pid 1 --lease-only", "--pid: '1' is not the number" },
		{ "gpulease --pid 12 x", "--pid goes only with --lease-only" },
		{ "gpulease --lease-only x", "--lease-only takes no command, not 'x'" },
		{ "gpulease --shell x", "--shell takes no command, not 'x'" },
		{ "gpulease --lease-only --retries 1", "no command to supervise" },
		{ "gpulease --shell --conda a", "no command to set up" },
		{ "gpulease --lease-only --shell", "exclude each other" },
		{ "gpulease --submit --screen x", "exclude each other" },
		{ "gpulease --submit --dry-run x", "exclude each other" },
		{ "gpulease --screen --dry-run x", "--screen and --dry-run exclude" },
		{ "gpulease --lease-only --pid 12 --dry-run",
			"--lease-only --pid and --dry-run exclude each other" },
		{ "gpulease --submit", "no command given" },
		{ "gpulease --follow 12 --submit x",
			"'12' is not an option; the command comes" },
		{ "gpulease --log", "--log needs the id of a job" },
		{ "gpulease --log 1 2", "--log takes one job, not '2' as well" },
		{ "gpulease --signal-job 12", "needs the id of a job and a signal" },
		{ "gpulease --signal-job 12 NO",
			"--signal-job: there is no signal 'NO'" },
		{ "gpulease --signal-job 12 999", "there is no signal '999'" },
		{ "gpulease --set-priority 12", "needs the id of a job and a priority" },
		{ "gpulease --set-priority 12 5 6",
			"needs the id of a job and a priority" },
		{ "gpulease --set-priority 12 x",
			"--set-priority: 'x' is not a priority; write a whole number from "
			"-1000000 to 1000000" },
		{ "gpulease --set-priority 12 1000001", "is not a priority" },
		{ "gpulease --set-priority a 5", "--set-priority: 'a' is not" },
		{ "gpulease --sessions 3", "--sessions takes no command or operand" },
	};

	(void)state;
	check_refusals(wrong, ARRAY_SIZE(wrong));
}

static void options_without_effect_are_refused(void **state)
{
	static const struct row wrong[] = {
		{ "gpulease --gpu-ids 1 --prefer-gpus 2 x",
			"--gpu-ids and --prefer-gpus exclude each other; give one" },
		{ "gpulease --vram 4G --exclusive --margin 1G x",
			"--exclusive and --margin exclude each other" },
		{ "gpulease --batch a --margin 1G --exclusive",
			"--exclusive and --margin exclude each other" },
		{ "srun --exclusive --overlap x",
			"--exclusive and --overlap exclude each other" },
		{ "gpulease --submit --jobid 12 x",
			"--submit and --jobid exclude each other" },
		{ "gpulease --submit --pty x", "--submit and --pty exclude each other" },
		{ "gpulease --batch a --fail-fast --keep-going",
			"--keep-going and --fail-fast exclude each other" },
		{ "gpulease --accounting --csv --json", "--json and --csv exclude each" },
		{ "gpulease --batch - --watch", "read to its end; leave out --watch" },
		{ "gpulease --history 5 --last 20",
			"--history: --last gives the number, too" },
		{ "gpulease --inject-style physical x {id}", "and neither is given" },
		{ "gpulease --lease-only -D /", "no command to set up; leave out" },
		{ "gpulease --lease-only -o a", "no command to set up; leave out" },
		{ "gpulease --lease-only -e a", "no command to set up; leave out" },
		{ "gpulease --lease-only -i a", "no command to set up; leave out" },
		{ "gpulease --shell --export NONE", "no command to set up; leave out" },
		{ "gpulease --shell --bind", "no command to set up; leave out" },
		{ "gpulease --shell --inject-style physical", "no command to set up" },
		{ "gpulease --lease-only --pid 9 --model A", "options that choose GPUs" },
		{ "gpulease --lease-only --pid 9 --min-vram 8G", "options that choose" },
		{ "gpulease --lease-only --pid 9 --idle-threshold 0", "that choose" },
		{ "gpulease --lease-only --pid 9 --after 3", "options that choose" },
	};

	(void)state;
	check_refusals(wrong, ARRAY_SIZE(wrong));
}

static void options_without_effect_are_noted(void **state)
{
	static const struct row rows[] = {
		{ "gpulease -n 0 --bind --min-vram 8G x",
			"run gpus=0 min-vram=8192 bind=yes ~min-vram! ~bind! [x]" },
		{ "srun --gres=none --exclusive x",
			"run gpus=0 exclusive=1 ~exclusive! [x]" },
		{ "gpulease --add a -n 0 --allow 1 x", "add gpus=0 allow=1 ~allow! [x]"
						       " operands[a x]" },
		/* a line of the file may ask for GPUs */
		{ "gpulease --batch a -n 0 --bind", "batch gpus=0 bind=yes operands[a]" },
		{ "gpulease --models m -n 1 x", "run gpus=1 models=m ~models! [x]" },
		{ "gpulease --models m --batch a --vram 4G",
			"batch vram=4096 models=m ~models! operands[a]" },
		{ "gpulease --models m x", "run models=m [x]" },
		{ "gpulease --inject-style physical x a={gpus}",
			"run inject-style=1 [x a={gpus}]" },
		{ "gpulease --shell --pid 9 --model A", "run model=A shell=1 pid=9 []" },
	};

	(void)state;
	check_lines(rows, ARRAY_SIZE(rows));
}

static void srun_options_that_one_machine_cannot_honour_are_refused(void **state)
{
	static const struct row rows[] = {
		{ "srun -N 2 x",
			"-N: gpulease knows only this machine, not 2 nodes; leave" },
		{ "srun --nodes=2-4 x",
			"--nodes: gpulease knows only this machine, not 2-4" },
		{ "srun -N0 x", "-N: gpulease knows only this machine, not 0 nodes" },
		{ "srun -Nx x", "-N: 'x' is not a number of nodes" },
		{ "srun -N 1-0 x", "-N: gpulease knows only this machine" },
		{ "srun -w node1 x", "-w: gpulease knows only this machine, " },
		{ "srun --nodelist= x", "--nodelist needs a value: --nodelist" },
		{ "srun --nodelist=node1 x",
			"--nodelist: gpulease knows only this machine" },
		{ "srun -xnode1 x", "-x: gpulease knows only this machine; leave" },
		{ "srun --exclude node1 x", "--exclude: gpulease knows only" },
		{ "srun --multi-prog conf", "--multi-prog: gpulease starts one command" },
		{ "srun --jobid node1 x", "--jobid: 'node1' is not " },
		{ "srun --export=NONE,A x", "--export: NONE must be the only item" },
		{ "srun --export=ALL,A=1,2 x", "--export: '2' is not ALL, NONE" },
	};

	(void)state;
	CHECK_REFUSALS(rows);
}

/* --- the table, operands, patterns ------------------------------------------------- */

/*
 * Every accepted or refused option of srun does what its group says, in both spellings.
 */
static void rows_of_the_table_behave_as_their_group_says(void **state)
{
	(void)state;
	for (const struct option_def *def = option_table; def->kind; def++) {
		for (int by_letter = !def->name; by_letter <= (def->letter != 0);
			by_letter++) {
			char line[128], expected[128];
			bool value = option_takes(def) == TAKES_REQUIRED;

			(void)snprintf(line, sizeof(line), "gpulease %s%s%s x",
				option_spell(def, by_letter).text, value ? " " : "",
				value ? def->metavar : "");
			(void)snprintf(expected, sizeof(expected), "run%s ~%s%s [x]",
				def->letter == 'c' ? " cpus=N" : "", def->name,
				def->kind == OPTION_NOTED ? "!" : "");
			if (def->group == GROUP_IGNORED)
				check_line(line, expected);
			if (def->kind == OPTION_REFUSED)
				check_refusal(line, option_spell(def, by_letter).text);
		}
	}
}

static void no_two_rows_share_a_spelling(void **state)
{
	(void)state;
	for (const struct option_def *a = option_table; a->kind; a++)
		for (const struct option_def *b = a + 1; b->kind; b++) {
			assert_false(a->letter && a->letter == b->letter);
			assert_false(a->name && b->name && strcmp(a->name, b->name) == 0);
		}
}

/* Returns the help on @topic and counts its lines; freed by the caller. */
static char *help_on(const char *topic, size_t *ret_lines)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(help_print(topic, out), 0);
	assert_int_equal(fclose(out), 0);
	*ret_lines = 0;
	for (char *at = text; *at; at += strcspn(at, "\n") + 1, ++*ret_lines)
		if (strcspn(at, "\n") > 80)
			fail_msg("too wide: %.100s", at);
	return text;
}

/* A default of the configuration counts only for an option that was not given. */
static void a_given_option_is_told_from_another(void **state)
{
	static const struct {
		const char *line;
		bool limit, grace, retries, oom_retries;
	} rows[] = {
		{ "gpulease x", false, false, false, false },
		{ "gpulease -t 0 x", true, false, false, false },
		{ "gpulease --signal USR1 x", false, false, false, false },
		{ "gpulease --grace 1s x", false, true, false, false },
		{ "gpulease --retries 1 x", false, false, true, false },
		{ "gpulease --oom-retries 1 x", false, false, false, true },
		{ "gpulease --idle-ok x", false, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct words words;
		struct settings settings;
		struct why why = WHY_NONE;

		split(rows[i].line, &words);
		assert_int_equal(command_line_parse(words.argv, &settings, &why), 0);
		assert_int_equal(settings.care.limit_given, rows[i].limit);
		assert_int_equal(settings.care.grace_given, rows[i].grace);
		assert_int_equal(settings.care.retries_given, rows[i].retries);
		assert_int_equal(settings.care.oom_retries_given, rows[i].oom_retries);
	}
}

static void help_fits_a_terminal(void **state)
{
	size_t lines;

	(void)state;
	free(help_on(NULL, &lines));
	assert_true(lines <= 76);
	free(help_on("care", &lines));
	assert_true(lines > 5 && lines < 30);
	assert_int_equal(help_print("nothing", stdout), -ENOENT);
}

static void help_on_all_has_every_option(void **state)
{
	size_t lines;
	char *text = help_on("all", &lines);

	(void)state;
	for (const struct option_def *def = option_table; def->kind; def++)
		if (def->group != GROUP_HIDDEN && def->name && !strstr(text, def->name))
			fail_msg("--help=all lacks --%s", def->name);
	free(text);
}

static void operands_are_walked_item_by_item(void **state)
{
	char first[] = "0-3,5", second[] = "GPU-12,7,2:1";
	char *words[] = { first, second, NULL };
	struct operand_walk walk = OPERAND_WALK(words, 2, OPERAND_GPU);
	struct operand o;

	(void)state;
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(!o.word && o.first == 0 && o.last == 3);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(!o.word && o.first == 5 && o.last == 5);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(o.word && o.word_size == 6 && memcmp(o.word, "GPU-12", 6) == 0);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(!o.word && o.first == 7 && !o.has_instance);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(!o.word && o.first == 2 && o.last == 2);
	assert_true(o.has_instance && o.instance == 1);
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);
}

static void jobs_are_ids_ranges_and_words(void **state)
{
	char list[] = "12,3-12,7-7,mine,3-x,-4,5-,12x,1-2-3";
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOBS);
	static const char *const words[] = { "mine", "3-x", "-4", "5-", "12x", "1-2-3" };
	static const uint64_t numbers[][2] = { { 12, 12 }, { 3, 12 }, { 7, 7 } };
	struct operand o;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		assert_int_equal(operand_next(&walk, &o, NULL), 0);
		assert_null(o.word);
		assert_true(o.first == numbers[i][0] && o.last == numbers[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(operand_next(&walk, &o, NULL), 0);
		assert_non_null(o.word);
		assert_int_equal(o.word_size, strlen(words[i]));
		assert_memory_equal(o.word, words[i], o.word_size);
	}
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);
}

static void one_job_is_an_id_or_a_name(void **state)
{
	char list[] = "12,train,3-x";
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_NAME);
	static const char *const none[] = { "3-12", "3-", "1:2", "", "," };
	struct operand o;

	(void)state;
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(!o.word && o.first == 12);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(o.word == list + 3 && o.word_size == 5);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(o.word == list + 9 && o.word_size == 3);
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct why why;

		walk = (struct operand_walk)OPERAND_LIST(none[i], OPERAND_NAME);
		assert_int_equal(operand_next(&walk, &o, &why), -EINVAL);
		assert_non_null(strstr(why.text, "' is not the id of a job"));
	}
}

static void lists_are_walked_counted_and_compared(void **state)
{
	struct operand_walk walk = OPERAND_LIST("1-2,GPU-5", OPERAND_GPU);
	struct operand o;
	struct why why = WHY_NONE;
	unsigned count = 77;

	(void)state;
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(o.first == 1 && o.last == 2);
	assert_int_equal(operand_next(&walk, &o, NULL), 0);
	assert_true(o.word && o.word_size == 5);
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);
	assert_int_equal(operand_next(&walk, &o, NULL), OPERAND_DONE);

	assert_int_equal(operand_count_gpus("1-2,x", 9, &count, &why), -EINVAL);
	assert_int_equal(operand_count_gpus("0-3,9", 4, &count, &why), -EINVAL);
	assert_int_equal(count, 77);
	assert_int_equal(operand_count_gpus("0-3,9,9,1:1", 7, &count, &why), 0);
	assert_int_equal(count, 7);
	assert_false(operand_has_twice("0-3,4-7,1:1,1:2,GPU-1,GPU-12", &why));
	assert_true(operand_has_twice("1-3,0,3", &why));
	assert_string_equal(why.text, "'1-3,0,3' names '3' twice");
	assert_true(operand_has_twice("2,0-3", &why));
	assert_string_equal(why.text, "'2,0-3' names '2' twice");
	assert_true(operand_has_twice("4,0:1,0:1", &why));
	assert_string_equal(why.text, "'4,0:1,0:1' names '0:1' twice");
}

static void patterns_are_filled_in(void **state)
{
	static const struct file_pattern_values values = {
		.job = 42, .name = "llama", .user = "ada", .host = "gpu1.example.org"
	};
	static const struct row rows[] = { { "plain", "plain" }, { "%j", "42" },
		{ "%5j.txt", "00042.txt" }, { "%x-%u@%h", "llama-ada@gpu1" },
		{ "%3x", "llama" }, { "100%%", "100%" }, { "%t", "0" }, { "%3t", "000" },
		{ "%99999999999j", "0000000042" }, { "%J %A %N", "42.0 42 gpu1" },
		{ "%n%s%a", "004294967294" } };
	static const struct file_pattern_values in_array = {
		.job = 44, .array = 42, .index = 3, .name = "", .user = "", .host = ""
	};
	static const char *const bad[] = { "%", "a%", "%T", "%5", "%H", "% j" };
	char out[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(file_pattern_expand(
					 rows[i].line, &values, out, sizeof(out), NULL),
			0);
		assert_string_equal(out, rows[i].expected);
		assert_int_equal(file_pattern_check(rows[i].line, NULL), 0);
	}
	assert_int_equal(
		file_pattern_expand("%A_%3a %j", &in_array, out, sizeof(out), NULL), 0);
	assert_string_equal(out, "42_003 44");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct why why = WHY_NONE;

		assert_int_equal(file_pattern_check(bad[i], &why), -EINVAL);
		assert_non_null(strstr(why.text, "%j (job id)"));
	}
	assert_int_equal(
		file_pattern_expand("%x%x%x%x%x%x%x", &values, out, sizeof(out), NULL),
		-ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_of_gpus_are_not_their_number),
		cmocka_unit_test(options_end_where_the_command_begins),
		cmocka_unit_test(options_may_stand_between_the_operands_of_a_verb),
		cmocka_unit_test(a_wrong_command_line_is_refused_with_advice),
		cmocka_unit_test(a_wrong_command_line_with_a_verb_is_refused_with_advice),
		cmocka_unit_test(an_unknown_option_suggests_a_similar_one),
		cmocka_unit_test(srun_lines_of_training_scripts_are_understood),
		cmocka_unit_test(n_counts_gpus_unless_a_gpu_option_is_given),
		cmocka_unit_test(tasks_are_counted_as_srun_counts_them),
		cmocka_unit_test(tasks_that_do_not_fit_are_refused),
		cmocka_unit_test(needs_are_shares_and_memory),
		cmocka_unit_test(gpus_are_named_in_lists),
		cmocka_unit_test(a_malformed_list_of_gpus_is_refused),
		cmocka_unit_test(options_for_the_order_are_read),
		cmocka_unit_test(malformed_options_for_the_order_are_refused),
		cmocka_unit_test(options_for_the_supervisor_are_read),
		cmocka_unit_test(wrong_options_for_the_supervisor_are_refused),
		cmocka_unit_test(options_without_effect_are_refused),
		cmocka_unit_test(options_without_effect_are_noted),
		cmocka_unit_test(srun_options_that_one_machine_cannot_honour_are_refused),
		cmocka_unit_test(rows_of_the_table_behave_as_their_group_says),
		cmocka_unit_test(no_two_rows_share_a_spelling),
		cmocka_unit_test(a_given_option_is_told_from_another),
		cmocka_unit_test(help_fits_a_terminal),
		cmocka_unit_test(help_on_all_has_every_option),
		cmocka_unit_test(operands_are_walked_item_by_item),
		cmocka_unit_test(jobs_are_ids_ranges_and_words),
		cmocka_unit_test(one_job_is_an_id_or_a_name),
		cmocka_unit_test(lists_are_walked_counted_and_compared),
		cmocka_unit_test(patterns_are_filled_in),
	};

	option_table_make();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
