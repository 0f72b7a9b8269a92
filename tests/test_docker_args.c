#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>

#include "docker_args.h"
#include "spawn.h"

enum { WORDS_MAX = 40, TEXT_MAX = 16384, ROUNDS = 200 };

static char line[TEXT_MAX], path[] = "PATH=/usr/bin:/bin";
static char *const environment[] = { path, NULL };

/* Has sh split @text into the words of a command, each followed by a NUL. */
static size_t read_by_shell(const char *text, char *words, size_t size)
{
	char *argv[] = { (char *)"sh", (char *)"-c",
		(char *)"eval \"set -- $1\"; [ $# -eq 0 ] || printf '%s\\0' \"$@\"",
		(char *)"sh", (char *)text, NULL };
	struct spawn spawn = SPAWN_INIT;
	size_t used;

	assert_int_equal(spawn_start("/bin/sh", argv, environment, &spawn), 0);
	while (spawn_step(&spawn) == SPAWN_RUNNING) {
		struct pollfd fds[SPAWN_POLL_FDS];

		(void)poll(fds, spawn_poll_fds(&spawn, fds), 100);
	}
	assert_int_equal(spawn.exit_code, 0);
	assert_int_equal(spawn.err.used, 0);
	used = spawn.out.used;
	assert_true(used < size);
	if (used)
		memcpy(words, spawn.out.text, used);
	words[used] = '\0';
	spawn_release(&spawn);
	return used;
}

/* Formats @args and checks what sh reads from it, word by word up to NULL. */
static void check_args(const struct docker_args *args, const char *const *wanted)
{
	static char words[TEXT_MAX];
	struct text text = TEXT_ON(line);
	size_t size, at = 0;

	docker_args_format(args, &text);
	assert_false(text.cut);
	size = read_by_shell(line, words, sizeof(words));
	for (; *wanted; wanted++) {
		assert_true(at < size);
		assert_string_equal(words + at, *wanted);
		at += strlen(words + at) + 1;
	}
	assert_int_equal(at, size);
}

static void words_are_quoted_if_needed(void **state)
{
	static const char *const cases[][2] = { { "plain-1.2/3:4,5=6",
							"plain-1.2/3:4,5=6" },
		{ "", "''" }, { "a b", "'a b'" }, { "it's", "'it'\\''s'" },
		{ "\"device=x\"", "'\"device=x\"'" }, { "$HOME", "'$HOME'" },
		{ "a\nb", "'a\nb'" }, { "~", "'~'" }, { "*", "'*'" }, { "#", "'#'" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct text text = TEXT_ON(line);

		docker_args_quote(cases[i][0], &text);
		assert_string_equal(line, cases[i][1]);
	}
}

static void every_word_survives_the_shell(void **state)
{
	static const char bytes[] =
		"'\"\\$`!*?[]{}()<>|&;#~=%^ \t\n\r\001\177\303\244-a:,";
	static char words[TEXT_MAX];
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct text text = TEXT_ON(line);
		char word[33] = "";
		size_t size, length = (unsigned)round % 32;

		for (size_t i = 0; i < length; i++) {
			seed = seed * 1103515245 + 12345;
			word[i] = bytes[(seed >> 16) % (sizeof(bytes) - 1)];
		}
		word[length] = '\0';
		docker_args_quote(word, &text);
		size = read_by_shell(line, words, sizeof(words));
		if (size != length + 1 || strcmp(words, word) != 0)
			fail_msg("round %d: %s", round, line);
	}
}

static void docker_gets_the_gpus_of_the_lease(void **state)
{
	const struct docker_args args = { .uuids = "GPU-1,GPU-2",
		.id = "7",
		.token = "abc",
		.directory = "/var/lib/gpulease",
		.config = "/etc/gpulease.conf",
		.program = "/usr/bin/gpulease",
		.view = "/usr/lib/gpulease/gpulease-view",
		.group = 123 };
	static const char *const wanted[] = { "--gpus", "\"device=GPU-1,GPU-2\"",
		"--group-add", "123", "--volume", "/var/lib/gpulease:/var/lib/gpulease",
		"--volume", "/etc/gpulease.conf:/etc/gpulease.conf:ro", "--volume",
		"/usr/bin/gpulease:/usr/local/bin/gpulease:ro", "--volume",
		"/usr/lib/gpulease/gpulease-view:"
		"/usr/local/lib/gpulease/gpulease-view:ro",
		"--env", "GPULEASE_ID=7", "--env", "GPULEASE_TOKEN=abc", "--env",
		"GPULEASE_UUIDS=GPU-1,GPU-2", NULL };

	(void)state;
	check_args(&args, wanted);
	assert_non_null(strstr(line, "--gpus '\"device=GPU-1,GPU-2\"' "));
	assert_null(strchr(line, '\n'));
}

static void podman_gets_each_gpu_and_the_groups(void **state)
{
	const struct docker_args args = { .is_podman = true,
		.uuids = "GPU-1,MIG-2/3",
		.directory = "/d",
		.is_directory_named = true,
		.group = 123 };
	static const char *const wanted[] = { "--device", "nvidia.com/gpu=GPU-1",
		"--device", "nvidia.com/gpu=MIG-2/3", "--group-add", "keep-groups",
		"--volume", "/d:/d", "--env", "GPULEASE_UUIDS=GPU-1,MIG-2/3", "--env",
		"GPULEASE_DIR=/d", NULL };

	(void)state;
	check_args(&args, wanted);
}

static void without_a_lease_all_gpus_and_without_gpus_none(void **state)
{
	static const struct {
		struct docker_args args;
		const char *wanted[5];
	} cases[] = {
		{ { .uuids = NULL }, { "--gpus", "all" } },
		{ { .uuids = "" }, { "--env", "NVIDIA_VISIBLE_DEVICES=void", "--env",
					   "GPULEASE_UUIDS=" } },
		{ { .is_podman = true }, { "--device", "nvidia.com/gpu=all",
						 "--group-add", "keep-groups" } },
		{ { .is_podman = true, .uuids = "" },
			{ "--group-add", "keep-groups", "--env", "GPULEASE_UUIDS=" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_args(&cases[i].args, cases[i].wanted);
}

static void paths_with_a_colon_are_mounted(void **state)
{
	static const struct {
		const char *directory, *option, *value;
	} cases[] = {
		{ "/a b/it's", "--volume", "/a b/it's:/a b/it's" },
		{ "/a,b", "--volume", "/a,b:/a,b" },
		{ "/a\nb", "--volume", "/a\nb:/a\nb" },
		{ "/a:b", "--mount", "type=bind,source=/a:b,target=/a:b" },
		{ "/a:b,c", "--mount", "type=bind,\"source=/a:b,c\",\"target=/a:b,c\"" },
		{ "/a:\"b\"", "--mount",
			"type=bind,\"source=/a:\"\"b\"\"\",\"target=/a:\"\"b\"\"\"" },
		{ "/a:\nb", "--mount", "type=bind,\"source=/a:\nb\",\"target=/a:\nb\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct docker_args args = { .uuids = NULL,
			.directory = cases[i].directory };
		const char *const wanted[] = { "--gpus", "all", cases[i].option,
			cases[i].value, NULL };

		check_args(&args, wanted);
	}
	{
		const struct docker_args args = { .program = "/x:y/gpulease" };
		const char *const wanted[] = { "--gpus", "all", "--mount",
			"type=bind,source=/x:y/gpulease,target=/usr/local/bin/gpulease,"
			"readonly",
			NULL };

		check_args(&args, wanted);
	}
}

static void the_longest_paths_fit_or_are_reported(void **state)
{
	static char longest[4096], large[300 * 1024];
	struct docker_args args = { .directory = longest,
		.is_directory_named = true,
		.config = longest,
		.program = longest };
	struct text text = TEXT_ON(large), small = TEXT_ON(line);

	(void)state;
	memset(longest, '\'', sizeof(longest) - 1);
	longest[0] = '/';
	docker_args_format(&args, &text);
	assert_false(text.cut);
	docker_args_format(&args, &small);
	assert_true(small.cut);
	memset(longest + 1, '"', sizeof(longest) - 2);
	longest[1] = ':';
	text = TEXT_ON(large);
	docker_args_format(&args, &text);
	assert_false(text.cut);
	assert_non_null(strstr(large, "target=/usr/local/bin/gpulease,readonly"));
}

static void a_list_with_special_characters_is_refused(void **state)
{
	static const char *const good[] = { "", "GPU-1", "GPU-1,MIG-2/3/4",
		"GPU-51111111-0000-4000-8000-000000000000" };
	static const char *const bad[] = { ",", "GPU-1,", ",GPU-1", "GPU-1,,GPU-2",
		"GPU 1", "a=b", "\"", "GPU-1\n", "a:b", "\303\244" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!docker_args_are_uuids(good[i]))
			fail_msg("'%s'", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (docker_args_are_uuids(bad[i]))
			fail_msg("'%s'", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_quoted_if_needed),
		cmocka_unit_test(every_word_survives_the_shell),
		cmocka_unit_test(docker_gets_the_gpus_of_the_lease),
		cmocka_unit_test(podman_gets_each_gpu_and_the_groups),
		cmocka_unit_test(without_a_lease_all_gpus_and_without_gpus_none),
		cmocka_unit_test(paths_with_a_colon_are_mounted),
		cmocka_unit_test(the_longest_paths_fit_or_are_reported),
		cmocka_unit_test(a_list_with_special_characters_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
