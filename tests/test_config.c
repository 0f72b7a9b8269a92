/*
 * The configuration as a text: tables of good values, and of bad values with their reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "config.h"

static struct config config;
static struct why why;

/* Reads @text over the defaults; -EINVAL leaves its reason in `why`. */
static int parse_bytes(const char *text, size_t size)
{
	config_default(&config);
	why = WHY_NONE;
	return config_parse("x.conf", text, size, &config, &why);
}

static int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void must_parse(const char *text)
{
	if (parse(text) < 0)
		fail_msg("'%s': %s", text, why.text);
}

/* "KEY = VALUE" for the value that `config` has now. */
static const char *formatted(enum config_key key)
{
	static char line[CONFIG_PATH_SIZE + 64];
	struct text text = TEXT_ON(line);

	text_addf(&text, "%s = ", config_key_name(key));
	config_format(&config, key, &text);
	assert_false(text.cut);
	return line;
}

static enum config_key find_key(const char *line)
{
	for (int key = 0; key < CONFIG_KEYS; key++) {
		const char *name = config_key_name((enum config_key)key);

		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ')
			return (enum config_key)key;
	}
	fail_msg("no key in '%s'", line);
	return CONFIG_KEYS;
}

/* The reason is one printable line without a final period. */
static void check_refused(const char *text, size_t size, const char *reason)
{
	char printable[sizeof(why.text)];
	struct text shown = TEXT_ON(printable);

	if (parse_bytes(text, size) != -EINVAL)
		fail_msg("'%s' is read", text);
	if (!strstr(why.text, reason))
		fail_msg("'%s': '%s' does not say '%s'", text, why.text, reason);
	text_add_printable(&shown, why.text, strlen(why.text));
	assert_string_equal(printable, why.text);
	assert_int_not_equal(why.text[strlen(why.text) - 1], '.');
}

/* --- values ------------------------------------------------------------------------ */

static const char *const defaults[CONFIG_KEYS] = {
	"directory = /var/lib/gpulease",
	"nvidia-smi = ",
	"probe-deadline = 10s",
	"idle-threshold = 200M",
	"busy-utilization = off",
	"margin = 512M",
	"spike-buffer = 10%",
	"settle-time = 1m",
	"linger-time = 1m",
	"admin-group = ",
	"max-waiting = 300",
	"all-waiting = none",
	"user-gpus = none",
	"user-jobs = none",
	"all-gpus = none",
	"all-jobs = none",
	"max-time = none",
	"default-time = none",
	"max-priority = 0",
	"fair-share = none",
	"prefer = ",
	"bind = no",
	"model-option = --llm",
	"show-commands = all",
	"record-ends = no",
	"history-size = 16M",
	"sample-interval = 5s",
	"tolerance = 10%",
	"idle-after = 30m",
	"idle-end = none",
	"idle-below = 1%",
	"idle-interval = 1m",
	"retry-delay = 5s",
	"retry-delay-max = 5m",
	"slurm-allocation = own",
	"engine = local",
};

static void keys_that_are_not_set_have_their_default(void **state)
{
	(void)state;
	must_parse("");
	for (int key = 0; key < CONFIG_KEYS; key++) {
		assert_string_equal(formatted((enum config_key)key), defaults[key]);
		assert_int_equal(config.lines[key], 0);
	}
	assert_true(config.idle.mib == 200 && config.idle.percent == 0);
	assert_true(config.settle_ms == 60000 && config.linger_ms == 60000);
	assert_true(config.probe_deadline_ms == 10000 && config.busy_percent == 0);
	assert_true(config.margin_mib == 512 && config.spike_buffer_percent == 10);
	assert_int_equal(config.max_waiting, 300);
	assert_false(config.shows_own_commands_only || config.records_ends);
	assert_true(config.all_waiting == 0 && config.user_gpus == 0);
	assert_true(
		config.user_jobs == 0 && config.all_gpus == 0 && config.all_jobs == 0);
	assert_true(config.max_time_ms == 0 && config.default_time_ms == 0);
	assert_true(config.max_priority == 0 && !config.binds);
	assert_true(config.history_mib == 16 && config.tolerance_percent == 10);
	assert_int_equal(config.sample_interval_ms, 5000);
	assert_true(config.retry_delay_ms == 5000);
	assert_true(config.retry_delay_max_ms == 300000);
	assert_string_equal(config.prefer, "");
	assert_string_equal(config.model_option, "--llm");
	assert_null(config.models.text);
}

/* A value as written, and as read if that differs. */
static const char *const good_lines[][2] = {
	{ "directory = /srv/gpu lease", NULL },
	{ "directory = /", NULL },
	{ "nvidia-smi = /opt/nvidia/bin/nvidia-smi=1", NULL },
	{ "probe-deadline = 2500ms", NULL },
	{ "probe-deadline = 100ms", NULL },
	{ "probe-deadline = 10m", NULL },
	{ "idle-threshold = 1GiB", "idle-threshold = 1G" },
	{ "idle-threshold = 300", "idle-threshold = 300M" },
	{ "idle-threshold = 5%", NULL },
	{ "idle-threshold = 100%", NULL },
	{ "busy-utilization = 1%", NULL },
	{ "busy-utilization = 100%", NULL },
	{ "busy-utilization = off", NULL },
	{ "margin = 0", NULL },
	{ "margin = 500MiB", "margin = 500M" },
	{ "margin = 2G", NULL },
	{ "spike-buffer = 0%", NULL },
	{ "spike-buffer = 100%", NULL },
	{ "settle-time = 0", "settle-time = 0s" },
	{ "settle-time = 1.5m", "settle-time = 90s" },
	{ "linger-time = 1s", NULL },
	{ "linger-time = 2h", NULL },
	{ "admin-group = gpu-admins", NULL },
	{ "admin-group = 1004", NULL },
	{ "max-waiting = 1", NULL },
	{ "max-waiting = 1000000", NULL },
	{ "max-waiting = none", NULL },
	{ "all-waiting = 1", NULL },
	{ "all-waiting = none", NULL },
	{ "user-gpus = 128", NULL },
	{ "user-gpus = none", NULL },
	{ "user-jobs = 1000000", NULL },
	{ "all-gpus = 1", NULL },
	{ "all-jobs = 007", "all-jobs = 7" },
	{ "max-time = 2d", NULL },
	{ "max-time = 1s", NULL },
	{ "max-time = none", NULL },
	{ "default-time = 1.5h", "default-time = 90m" },
	{ "default-time = none", NULL },
	{ "max-priority = 0", NULL },
	{ "max-priority = 1000000", NULL },
	{ "fair-share = none", NULL },
	{ "fair-share = 15m/7d/1d", NULL },
	{ "fair-share = 15m/168h/24h", "fair-share = 15m/7d/1d" },
	{ "fair-share = 1s/30d/1000d", NULL },
	{ "prefer = 3", NULL },
	{ "prefer = 0-15", NULL },
	{ "prefer = 7,0:1,GPU-5ab1,MIG-GPU-1/2/3,0-3", NULL },
	{ "bind = yes", NULL },
	{ "bind = no", NULL },
	{ "model-option = -m", NULL },
	{ "model-option = --a234567890123456789012345678d", NULL },
	{ "show-commands = own", NULL },
	{ "show-commands = all", NULL },
	{ "record-ends = yes", NULL },
	{ "record-ends = no", NULL },
	{ "history-size = 1M", NULL },
	{ "history-size = 1T", "history-size = 1024G" },
	{ "sample-interval = 1s", NULL },
	{ "sample-interval = 1h", NULL },
	{ "idle-after = 1s", NULL },
	{ "idle-after = none", NULL },
	{ "idle-end = 2h", NULL },
	{ "idle-below = 100%", NULL },
	{ "idle-interval = 100ms", NULL },
	{ "tolerance = 0%", NULL },
	{ "tolerance = 100%", NULL },
	{ "retry-delay = 0", "retry-delay = 0s" },
	{ "retry-delay = 5m", NULL },
	{ "retry-delay-max = 5s", NULL },
	{ "retry-delay-max = 1d", NULL },
	{ "slurm-allocation = own", NULL },
	{ "slurm-allocation = shared", NULL },
	{ "engine = local", NULL },
	{ "engine = slurm", NULL },
};

static void every_key_is_read_and_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good_lines); i++) {
		const char *wanted =
			good_lines[i][1] ? good_lines[i][1] : good_lines[i][0];
		enum config_key key = find_key(good_lines[i][0]);
		char written[CONFIG_PATH_SIZE + 64];

		must_parse(good_lines[i][0]);
		assert_int_equal(config.lines[key], 1);
		assert_string_equal(formatted(key), wanted);
		/* reading the written form gives the same value */
		text_copy(written, sizeof(written), formatted(key));
		must_parse(written);
		assert_string_equal(formatted(key), wanted);
	}
}

static void values_are_read_with_their_units(void **state)
{
	(void)state;
	must_parse("idle-threshold = 5%\nbusy-utilization=30%\nmargin=1G\n"
		   "spike-buffer = 7%\nsettle-time = 2m\nlinger-time = 90s\n"
		   "max-waiting = none\nshow-commands = own\nrecord-ends = yes\n"
		   "admin-group = staff\nprobe-deadline = 3s\nnvidia-smi = /a\n"
		   "directory = /b\nall-waiting = 1\nuser-gpus = 2\nuser-jobs = 3\n"
		   "all-gpus = 4\nall-jobs = 5\nmax-time = 2h\ndefault-time = 1h\n"
		   "max-priority = 6\nprefer = 3,1\nbind = yes\nmodel-option = -m\n"
		   "history-size = 1G\ntolerance = 7%\nretry-delay = 1s\n"
		   "retry-delay-max = 2s\n");
	assert_true(config.history_mib == 1024 && config.tolerance_percent == 7);
	assert_true(config.retry_delay_ms == 1000 && config.retry_delay_max_ms == 2000);
	assert_true(config.all_waiting == 1 && config.user_gpus == 2);
	assert_true(
		config.user_jobs == 3 && config.all_gpus == 4 && config.all_jobs == 5);
	assert_true(config.max_time_ms == 7200000 && config.default_time_ms == 3600000);
	assert_true(config.max_priority == 6 && config.binds);
	assert_string_equal(config.prefer, "3,1");
	assert_string_equal(config.model_option, "-m");
	assert_true(config.idle.mib == 0 && config.idle.percent == 5);
	assert_int_equal(config.busy_percent, 30);
	assert_true(config.margin_mib == 1024 && config.spike_buffer_percent == 7);
	assert_true(config.settle_ms == 120000 && config.linger_ms == 90000);
	assert_int_equal(config.max_waiting, 0);
	assert_true(config.shows_own_commands_only && config.records_ends);
	assert_string_equal(config.admin_group, "staff");
	assert_true(config.probe_deadline_ms == 3000);
	assert_string_equal(config.nvidia_smi, "/a");
	assert_string_equal(config.directory, "/b");
}

static const char *const bad_values[][2] = {
	{ "directory = lib", "directory: 'lib' is not an absolute path; write one" },
	{ "nvidia-smi = ./x", "nvidia-smi: './x' is not an absolute path; write" },
	{ "probe-deadline = soon", "'soon' is not a duration; write 100ms to 10m" },
	{ "probe-deadline = 99ms", "'99ms' is out of range; write 100ms to 10m" },
	{ "probe-deadline = 0", "'0' is out of range" },
	{ "probe-deadline = 601s", "'601s' is out of range" },
	{ "idle-threshold = some",
		"'some' is not a threshold; write a size, like 200M, or 1% to 100%" },
	{ "idle-threshold = 0%", "'0%' is out of range" },
	{ "idle-threshold = 101%", "'101%' is out of range" },
	{ "idle-threshold = -1", "'-1' is not a threshold" },
	{ "idle-threshold = 5 %", "'5 %' is not a threshold" },
	{ "idle-threshold = %", "'%' is not a threshold" },
	{ "idle-threshold = 5%%", "'5%%' is not a threshold" },
	{ "idle-threshold = 0", "'0' is not a threshold" },
	{ "busy-utilization = 50", "'50' is not a percentage; write 1% to 100%, or" },
	{ "busy-utilization = 0%", "'0%' is out of range" },
	{ "busy-utilization = OFF", "'OFF' is not a percentage" },
	{ "busy-utilization = 4294967297%", "write 1% to 100%, or off" },
	{ "margin = 5%", "margin: '5%' is not a size; write a size, like 512M, or 0" },
	{ "margin = 2000T", "margin: '2000T' is not a size" },
	{ "spike-buffer = 10", "'10' is not a percentage; write 0% to 100%" },
	{ "spike-buffer = 101%", "'101%' is out of range" },
	{ "settle-time = 30m1h", "'30m1h' is not a duration; write one like 60s" },
	{ "settle-time = 11y", "'11y' is not a duration" },
	{ "linger-time = 999ms", "'999ms' is out of range; write one like 60s or 5m, "
				 "at least 1s" },
	{ "admin-group = a b", "'a b' is not a group; write its name or its number" },
	{ "admin-group = a,b", "'a,b' is not a group" },
	{ "max-waiting = 0", "'0' is out of range; write 1 to 1000000, or none" },
	{ "max-waiting = 1000001", "'1000001' is out of range" },
	{ "max-waiting = 18446744073709551615", "is out of range" },
	{ "max-waiting = many", "'many' is not a number" },
	{ "all-waiting = 0", "'0' is out of range; write 1 to 1000000, or none" },
	{ "user-gpus = 0", "'0' is out of range; write 1 to 128, or none" },
	{ "user-gpus = 129", "'129' is out of range" },
	{ "user-gpus = 0.5", "'0.5' is not a number" },
	{ "user-jobs = -1", "'-1' is not a number" },
	{ "all-gpus = all", "'all' is not a number; write 1 to 128, or none" },
	{ "all-jobs = 1000001", "'1000001' is out of range" },
	{ "max-time = 8:00",
		"'8:00' is not a duration; write one like 90m or 2d, at least 1s, "
		"or none" },
	{ "max-time = 0", "'0' is out of range; write one like 90m" },
	{ "max-time = unlimited", "'unlimited' is not a duration" },
	{ "default-time = 999ms", "'999ms' is out of range" },
	{ "max-priority = -1", "'-1' is not a number; write 0 to 1000000" },
	{ "max-priority = none", "'none' is not a number" },
	{ "max-priority = 1000001", "'1000001' is out of range" },
	{ "fair-share = 15m",
		"'15m' is not three durations; write one like 15m/7d/24h, or none" },
	{ "fair-share = 15m/7d", "'15m/7d' is not three durations" },
	{ "fair-share = 15m/7d/1d/1d", "is not three durations" },
	{ "fair-share = 15m/7d/", "is not three durations" },
	{ "fair-share = /7d/1d", "is not three durations" },
	{ "fair-share = 15m/x/1d", "is not three durations" },
	{ "fair-share = 15m/111111111111111111111111111d/1d", "is not three durations" },
	{ "fair-share = 0/7d/1d", "'0/7d/1d' is out of range" },
	{ "fair-share = 15m/7d/0", "'15m/7d/0' is out of range" },
	{ "fair-share = 15m/7h/1d", "'15m/7h/1d' is out of range" },
	{ "fair-share = 15m/31d/1d", "'15m/31d/1d' is out of range" },
	{ "prefer = x", "'x' is not a list of GPUs; write at most 16, as 3,0-2" },
	{ "prefer = 3-0", "'3-0' is not a list of GPUs" },
	{ "prefer = 1,", "'1,' is not a list of GPUs" },
	{ "prefer = 1, 2", "'1, 2' is not a list of GPUs" },
	{ "prefer = 0-16", "'0-16' is out of range; write at most 16" },
	{ "prefer = 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7,8", "is out of range" },
	{ "bind = on", "'on' is not a choice; write no or yes" },
	{ "model-option = llm",
		"'llm' is not an option; write one like --llm, of at most 31" },
	{ "model-option = --", "'--' is not an option" },
	{ "model-option = --llm x", "'--llm x' is not an option" },
	{ "model-option = --llm=x", "'--llm=x' is not an option" },
	{ "model-option = --a2345678901234567890123456789e", "is not an option" },
	{ "show-commands = mine", "'mine' is not a choice; write all or own" },
	{ "show-commands = All", "'All' is not a choice" },
	{ "record-ends = true", "'true' is not a choice; write no or yes" },
	{ "history-size = 0", "'0' is out of range; write a size, like 16M, from 1M" },
	{ "history-size = 1048577", "'1048577' is out of range" },
	{ "history-size = big", "'big' is not a size" },
	{ "idle-after = 999ms",
		"out of range; write one like 30m or 2h, at least 1s, or none" },
	{ "idle-end = 0", "out of range; write one like 2h, at least 1s, or none" },
	{ "idle-below = 0%", "out of range; write 1% to 100%" },
	{ "idle-interval = 99ms", "out of range; write 100ms to 1h" },
	{ "tolerance = 10", "'10' is not a percentage; write 0% to 100%" },
	{ "retry-delay = often", "'often' is not a duration; write one like 5s or 1m" },
	{ "record-ends = \x1b[2J", "'?[2J' is not a choice" },
};

static void a_bad_value_is_refused_and_the_allowed_ones_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++) {
		char begin[64];

		check_refused(
			bad_values[i][0], strlen(bad_values[i][0]), bad_values[i][1]);
		(void)snprintf(begin, sizeof(begin), "x.conf, line 1: %s: ",
			config_key_name(find_key(bad_values[i][0])));
		assert_int_equal(strncmp(why.text, begin, strlen(begin)), 0);
	}
}

static void a_long_value_is_refused(void **state)
{
	char line[512] = "directory = /";
	size_t begin = strlen("directory = ");

	(void)state;
	memset(line + begin + 1, 'x', CONFIG_PATH_SIZE - 2);
	line[begin + CONFIG_PATH_SIZE - 1] = '\0';
	must_parse(line);
	assert_int_equal(strlen(config.directory), CONFIG_PATH_SIZE - 1);
	assert_string_equal(formatted(CONFIG_DIRECTORY), line);
	line[begin + CONFIG_PATH_SIZE - 1] = 'x';
	line[begin + CONFIG_PATH_SIZE] = '\0';
	check_refused(line, strlen(line), "' is too long; write one like");
	text_copy(line, sizeof(line), "admin-group = ");
	begin = strlen(line);
	memset(line + begin, 'g', CONFIG_GROUP_SIZE);
	line[begin + CONFIG_GROUP_SIZE] = '\0';
	check_refused(line, strlen(line), "is not a group");
	line[begin + CONFIG_GROUP_SIZE - 1] = '\0';
	must_parse(line);
}

/* --- lines ------------------------------------------------------------------------- */

static void lines_have_blanks_comments_and_ends_of_any_kind(void **state)
{
	static const char *const texts[] = {
		"margin=1G",
		"margin = 1G\n",
		"\t margin\t =\t1G  \n",
		"margin = 1G\r\n",
		"\r\n# a comment\r\nmargin = 1G\r\n\r\n",
		"margin = 1G # as much as that\n",
		"margin = 1G#so\n",
		"# margin = 5G\nmargin = 1G\n#margin = 7G",
		"\n\n\n   \nmargin = 1G",
		"#\n##\n # #\nmargin = 1G\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		must_parse(texts[i]);
		if (config.margin_mib != 1024)
			fail_msg("'%s'", texts[i]);
	}
	must_parse("# one\n\nmargin = 1G\n\nsettle-time = 5s");
	assert_int_equal(config.lines[CONFIG_MARGIN], 3);
	assert_int_equal(config.lines[CONFIG_SETTLE_TIME], 5);
	assert_int_equal(config.lines[CONFIG_LINGER_TIME], 0);
}

static void a_malformed_line_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "margin", "line 1: margin: the = is missing; write margin = VALUE" },
		{ "\nmargin 5G", "line 2: unknown key 'margin 5G'" },
		{ "margin =", "line 1: margin: the value is missing; write a size" },
		{ "margin = # 5G", "line 1: margin: the value is missing" },
		{ "margin = \r\n", "line 1: margin: the value is missing" },
		{ "= 5", "line 1: unknown key ''" },
		{ "margin : 5G", "unknown key 'margin : 5G'" },
		{ "margin = 1G\n# two\nmargin = 1G",
			"line 3: margin: is set twice, also in line 1" },
		{ "Margin = 1G", "unknown key 'Margin'" },
		{ "marg = 1G", "unknown key 'marg'" },
		{ "margins = 1G", "unknown key 'margins'" },
		{ "margin = = 1G", "margin: '= 1G' is not a size" },
		{ "margin = 1G\n\x1b]0;x\a = 1", "line 2: unknown key '?]0;x?'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

static void a_nul_is_never_part_of_a_line(void **state)
{
	static const char in_value[] = "admin-group = a\0b\n", in_key[] = "mar\0gin = 1G",
			  behind[] = "admin-group = a\0", alone[] = "\0";

	(void)state;
	check_refused(in_value, sizeof(in_value) - 1,
		"x.conf, line 1: admin-group: 'a?b' has a NUL in it; write its name");
	check_refused(in_key, sizeof(in_key) - 1, "unknown key 'mar?gin'");
	check_refused(behind, sizeof(behind) - 1, "has a NUL in it");
	check_refused(alone, sizeof(alone) - 1, "unknown key '?'");
}

static void an_unknown_key_is_answered_with_similar_keys(void **state)
{
	static const char *const bad[][2] = {
		{ "\n\nidle = 5",
			"x.conf, line 3: unknown key 'idle'; is it idle-threshold, idle-after, idle-end, idle-below, idle-interval? "
			"see gpulease.conf(5)" },
		{ "Margin = 1",
			"'Margin'; is it margin, max-waiting, max-time, max-priority, "
			"model-option? see gpulease.conf(5)" },
		{ "xyz = 1", "unknown key 'xyz'; see gpulease.conf(5)" },
		{ "= 1", "unknown key ''; see gpulease.conf(5)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

static void a_time_is_not_longer_than_its_maximum(void **state)
{
	static const char *const good[] = { "max-time = 1h\ndefault-time = 1h",
		"default-time = 1h", "default-time = 1h\nmax-time = none",
		"max-time = 1h", "max-time = 1h\ndefault-time = none",
		"retry-delay = 1h\nretry-delay-max = 1h",
		"retry-delay-max = 0\nretry-delay = 0" };
	static const char *const bad[][2] = {
		{ "max-time = 1h\n\ndefault-time = 2h",
			"x.conf, line 3: default-time: is longer than max-time, which is "
			"1h" },
		{ "default-time = 3601s\nmax-time = 1h\n[models]\na = 1\n",
			"x.conf, line 1: default-time: is longer than max-time" },
		{ "retry-delay-max = 1m\nretry-delay = 61s",
			"x.conf, line 2: retry-delay: is longer than retry-delay-max, "
			"which is 1m" },
		{ "retry-delay-max = 1s",
			"x.conf, line 1: retry-delay: is longer than retry-delay-max" },
		{ "\nretry-delay = 6m",
			"x.conf, line 2: retry-delay: is longer than retry-delay-max" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		must_parse(good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

static void a_section_ends_the_keys(void **state)
{
	static const char text[] = "margin = 1G\n [models] # of all\n\n"
				   "qwen = 0.5\nmargins = 2\ndefault = 18G\n";
	static const char *const bad[][2] = {
		{ "[gpus]", "x.conf, line 1: unknown section '[gpus]'; there may be one "
			    "[limits], and after it [models]" },
		{ "margin = 1G\n[Models]", "line 2: unknown section '[Models]'" },
		{ "[models", "unknown section '[models'" },
		{ "[models]\na = 1\n[other]",
			"x.conf, line 3: '[other]' is not a model" },
		{ "\n[models]\n\na = lots", "x.conf, line 4: a: 'lots' is not a number" },
		{ "[models]\na = 1\nb = 2\na = 2", "x.conf, line 4: 'a' is set twice" },
		{ "[models]\nq = 0.5 # user-gpus = 3\n\n user-gpus = 2",
			"x.conf, line 4: user-gpus: is a key, not a model; write keys "
			"above [models]" },
		{ "\n[models]\r\nmargin\r\nbind = yes",
			"x.conf, line 3: margin: is a key" },
		{ "margin = x\n[models]\na = y", "x.conf, line 1: margin: 'x' is not" },
	};
	struct model_need need;

	(void)state;
	must_parse(text);
	assert_int_equal(config.margin_mib, 1024);
	assert_int_equal(config.models.line, 3);
	assert_int_equal(models_find(&config.models, "qwen", &need, &why), 0);
	assert_int_equal(need.share_percent, 50);
	assert_int_equal(models_find(&config.models, "other", &need, &why), 0);
	assert_int_equal(need.vram_mib, 18432);
	must_parse("[models]");
	assert_int_equal(models_find(&config.models, "a", &need, &why), MODELS_UNKNOWN);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_are_not_set_have_their_default),
		cmocka_unit_test(every_key_is_read_and_written),
		cmocka_unit_test(values_are_read_with_their_units),
		cmocka_unit_test(a_bad_value_is_refused_and_the_allowed_ones_are_named),
		cmocka_unit_test(a_long_value_is_refused),
		cmocka_unit_test(lines_have_blanks_comments_and_ends_of_any_kind),
		cmocka_unit_test(a_malformed_line_is_refused),
		cmocka_unit_test(a_nul_is_never_part_of_a_line),
		cmocka_unit_test(an_unknown_key_is_answered_with_similar_keys),
		cmocka_unit_test(a_time_is_not_longer_than_its_maximum),
		cmocka_unit_test(a_section_ends_the_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
