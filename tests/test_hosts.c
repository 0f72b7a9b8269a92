/* --host: the names, the words for ssh, and what is read and shown of several machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <cmocka.h>

#include "hosts_table.h"
#include "json_check.h"
#include "page.h"

static struct host_list hosts;

/* --- names ------------------------------------------------------------------------------- */

static void hosts_are_split_at_commas(void **state)
{
	struct why why = WHY_NONE;

	(void)state;
	assert_int_equal(host_list_read("lab1,ann@lab2.example,ssh://ann@[fe80::1%eth0]:"
					"2222,lab1",
				 &hosts, &why),
		0);
	assert_int_equal(hosts.count, 3);
	assert_string_equal(hosts.name[0], "lab1");
	assert_string_equal(hosts.name[1], "ann@lab2.example");
	assert_string_equal(hosts.name[2], "ssh://ann@[fe80::1%eth0]:2222");
}

static void names_that_ssh_could_mistake_are_refused(void **state)
{
	static const char *const refused[] = { "", ",", "a,", ",a", "a,,b",
		"-oProxyCommand=x", "a,-F", "a b", "a;b", "a\nb", "a'b", "$(b)",
		"a\033[2J" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct why why = WHY_NONE;

		if (host_list_read(refused[i], &hosts, &why) != -EINVAL)
			fail_msg("accepted: '%s'", refused[i]);
		assert_true(strncmp(why.text, "--host: ", 8) == 0);
		assert_null(strchr(why.text, '\033'));
	}
}

static void there_is_a_most_of_hosts_and_of_a_name(void **state)
{
	char list[HOSTS_MAX * 8], name[HOST_NAME_SIZE + 1];
	struct text text = TEXT_ON(list);
	struct why why = WHY_NONE;

	(void)state;
	for (int i = 0; i < HOSTS_MAX; i++)
		text_addf(&text, "%sh%d", i ? "," : "", i);
	assert_int_equal(host_list_read(list, &hosts, &why), 0);
	assert_int_equal(hosts.count, HOSTS_MAX);
	text_add(&text, ",x");
	assert_int_equal(host_list_read(list, &hosts, &why), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[HOST_NAME_SIZE] = '\0';
	assert_int_equal(host_list_read(name, &hosts, &why), -EINVAL);
	name[HOST_NAME_SIZE - 1] = '\0';
	assert_int_equal(host_list_read(name, &hosts, &why), 0);
}

/* --- the words of ssh -------------------------------------------------------------------- */

static void words_are_quoted_for_the_shell_of_the_host(void **state)
{
	static struct host_words words;
	size_t i = 0;

	(void)state;
	host_words_begin(&words, "other");
	host_words_add(&words, "--user");
	host_words_add(&words, "a'b; reboot $(x)");
	host_words_next(&words);
	host_words_add(&words, "--queue");
	host_words_aim(&words, "lab1");
	while (words.list[i])
		i++;
	assert_string_equal(words.list[0], "ssh");
	assert_string_equal(words.list[i - 3], "--");
	assert_string_equal(words.list[i - 2], "lab1");
	assert_string_equal(words.list[i - 1],
		"gpulease --user 'a'\\''b; reboot $(x)'; gpulease --queue");
	assert_false(words.text.cut);
	for (i = 0; i < HOST_COMMAND_SIZE / 8; i++)
		host_words_add(&words, "a long word");
	assert_true(words.text.cut);
}

/* --- the answer -------------------------------------------------------------------------- */

static void assert_found(
	const char *text, size_t *at, const char *object, uint64_t schema)
{
	struct json_value found;
	uint64_t got = 0;

	assert_true(host_find(text, strlen(text), "gpulease-status/", at, &found, &got));
	assert_int_equal(found.size, strlen(object));
	assert_memory_equal(found.at, object, found.size);
	assert_int_equal(got, schema);
}

static void the_object_is_found_among_other_lines(void **state)
{
	static const char text[] =
		"Welcome to {lab}\n{\n{ \"format\": 1 }\n{\"format\":\"gpulease-queue/1\"}\n"
		" {\"format\":\"gpulease-status/9\"}\n"
		"{\"format\": \"gpulease-status/1\",\n \"a\": {\"b\": \"}\"}\n}\n"
		"{\"format\":\"gpulease-status/12\"} bye\n{\"format\":\"gpulease-status/\"}\n"
		"{\"format\":\"gpulease-status/1x\"}\n{\"format\":\"gpulease-status/1\", ";
	/* behind an object without an end no other one is looked for */
	static const char open[] = "{\"format\":\"gpulease-status/1\", [\n"
				   "{\"format\":\"gpulease-status/1\"}\n";
	struct json_value found;
	uint64_t schema;
	size_t at = 0;

	(void)state;
	assert_found(text, &at,
		"{\"format\": \"gpulease-status/1\",\n \"a\": {\"b\": \"}\"}\n}", 1);
	assert_found(text, &at, "{\"format\":\"gpulease-status/12\"}", 12);
	assert_false(host_find(
		text, sizeof(text) - 1, "gpulease-status/", &at, &found, &schema));
	assert_int_equal(at, sizeof(text) - 1);
	at = 0;
	assert_false(host_find(
		open, sizeof(open) - 1, "gpulease-status/", &at, &found, &schema));
	assert_int_equal(at, sizeof(open) - 1);
	at = 0;
	assert_false(host_find(NULL, 0, "gpulease-status/", &at, &found, &schema));
}

static void only_whole_printable_json_is_clean(void **state)
{
	static const struct {
		const char *text;
		bool is_clean;
	} cases[] = {
		{ "{}", true },
		{ "{ \"a\" : [ 1, -2.5e+3, 0.25, 0, true, null, \"\\u001b\\\"é\" ] }",
			true },
		{ "[]", true },
		{ "{\"a\":01}", false },
		{ "{\"a\":1.}", false },
		{ "{\"a\":1e}", false },
		{ "{\"a\":-}", false },
		{ "{\"a\":+1}", false },
		{ "{\"a\":1-1}", false },
		{ "{\"a\":}", false },
		{ "{\"a\" 1}", false },
		{ "{\"a\":1,}", false },
		{ "{\"a\":[1,]}", false },
		{ "{\"a\":[1 2]}", false },
		{ "{\"a\":{b:1}}", false },
		{ "{\"a\":[true, nul]}", false },
		{ "{\"a\":[\"\\x\"]}", false },
		{ "{\"a\":[\"\xc2\x9b\"]}", false }, /* CSI in one character */
		{ "{\"a\":[\"\xff\"]}", false },     /* no UTF-8 */
		{ "{\"\xe2\x80\xae\":1}", false },   /* turns the direction of text */
		{ "{\"a\":[\"\x7f\"]}", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_value value = { JSON_NESTED, cases[i].text,
			strlen(cases[i].text) };

		if (json_is_clean(&value) != cases[i].is_clean)
			fail_msg("%s", cases[i].text);
	}
}

static void the_trouble_is_that_of_ssh_or_gpulease(void **state)
{
	static const struct {
		struct answer answer;
		const char *trouble;
	} cases[] = {
		{ { .fault = -ETIMEDOUT, .error = "x" }, "no answer within 5s" },
		{ { .fault = -EFBIG }, "its answer is too large" },
		{ { .fault = -ENOMEM }, "Cannot allocate memory" },
		{ { .status = 0, .error = "bash: warning" },
			"its answer cannot be read" },
		{ { .status = 127, .error = "bash: gpulease: command not found" },
			"gpulease is not installed there, or not in PATH for ssh" },
		{ { .status = 127, .error = "cannot execute 'ssh': No such file" },
			"cannot execute 'ssh': No such file" },
		{ { .status = 125, .error = "gpulease: cannot open 'x'" },
			"cannot open 'x'" },
		{ { .status = 255, .error = "ssh: connect to host a: refused" },
			"ssh: connect to host a: refused" },
		{ { .status = 255,
			  .error = "@    WARNING: REMOTE HOST HAS CHANGED!     @" },
			"WARNING: REMOTE HOST HAS CHANGED!" },
		{ { .status = 255 }, "ssh has failed with status 255" },
		{ { .status = 137 }, "ended by signal 9" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[MACHINE_WHY_SIZE];

		host_trouble(&cases[i].answer, line, sizeof(line));
		assert_string_equal(line, cases[i].trouble);
	}
}

static struct host_state state_of(const char *text, enum hosts_kind kind)
{
	struct host_answer answer = { .host = "lab1" };
	struct host_state state;

	answer.answer = ANSWER_NONE;
	answer.answer.text = (char *)text;
	answer.answer.size = strlen(text);
	host_state_read(&answer, kind, &state);
	return state;
}

#define GPU(more) "{\"index\":0," more "}"
#define LEASE(start, limit) \
	"{\"ticket\":3,\"started_unix_ms\":" start ",\"limit_ms\":" limit "}"
#define STATUS                                                                                                            \
	"motd\n{\"format\":\"gpulease-status/1\",\"new\":[{}],\"taken_unix_ms\":1000000,"                                 \
	"\"gpus\":[" GPU(                                                                                                 \
		"\"state\":\"idle\"") "," GPU("\"state\":\"leased\",\"leases\":[" LEASE("900000",                         \
		"500000") "," LEASE("950000",                                                                             \
		"100000") "]") "," GPU("\"state\":\"leased\",\"paused\":"                                                 \
				       "true,\"leases\":[" LEASE("900000",                                                \
					       "200000") "]") "," GPU("\"state\":\"leased\",\"leases\":[" LEASE("900000", \
		"null") "]") "," GPU("\"state\":\"leased\",\"leases\":[" LEASE("9223372036854775807",                     \
		"9223372036854775807") "]") "," GPU("\"state\":\"external\"") "," GPU("\"state\":\"unknown\",\"mig\":[{\"device\":0}]") "," GPU("\"state\":\"idle\",\"instance\":0") "],\"queue\":[{\"ticket\":9}]}\n"
#define DRY_RUN(members) "{\"format\":\"gpulease-dry-run/1\"," members "}\n"

static void gpus_are_counted(void **state)
{
	struct host_state host = state_of(STATUS, HOSTS_STATUS);
	struct host_counts counts = host_counts_of(&host.machine);

	(void)state;
	assert_string_equal(host.trouble, "");
	assert_int_equal(counts.gpus, 7);
	assert_int_equal(counts.idle, 2);
	assert_int_equal(counts.leased, 4);
	assert_int_equal(counts.other, 1);
	assert_int_equal(counts.waiting, 1);
	assert_int_equal(counts.next_free_ms, 400000); /* not the paused one */
	assert_int_equal(host.starts[0].kind, START_NEVER);
	host_state_release(&host);
}

static void starts_are_those_of_the_clock_there(void **state)
{
	struct host_state host = state_of(
		STATUS DRY_RUN("\"taken_unix_ms\":500,\"can_start\":true")
			DRY_RUN("\"taken_unix_ms\":500,\"start_at_unix_ms\":1500"),
		HOSTS_STATUS);

	(void)state;
	assert_int_equal(host.starts[0].kind, START_KNOWN);
	assert_int_equal(host.starts[0].in_ms, 0);
	assert_int_equal(host.starts[1].kind, START_KNOWN);
	assert_int_equal(host.starts[1].in_ms, 1000);
	host_state_release(&host);
	host = state_of(STATUS DRY_RUN("\"taken_unix_ms\":500,\"start_at_unix_ms\":null"),
		HOSTS_STATUS);
	assert_int_equal(host.starts[0].kind, START_UNKNOWN);
	assert_int_equal(host.starts[1].kind, START_NEVER);
	host_state_release(&host);
}

static void assert_trouble(const char *text, enum hosts_kind kind, const char *trouble)
{
	struct host_state host = state_of(text, kind);

	assert_string_equal(host.trouble, trouble);
	assert_null(host.object.at);
	assert_int_equal(host.machine.gpu_count, 0);
	host_state_release(&host);
}

static void what_cannot_be_read_is_told(void **state)
{
	(void)state;
	assert_trouble("hello\n", HOSTS_STATUS, "its answer cannot be read");
	assert_trouble("{\"format\":\"gpulease-status/1\"}", HOSTS_STATUS,
		"its answer cannot be read");
	assert_trouble("{\"format\":\"gpulease-history/1\",\"taken_unix_ms\":1,\"a\":01}",
		HOSTS_HISTORY, "its answer cannot be read");
	assert_trouble("{\"format\":\"gpulease-queue/2\",\"taken_unix_ms\":1}",
		HOSTS_QUEUE,
		"its gpulease prints gpulease-queue/2; this gpulease reads "
		"gpulease-queue/1");
}

/* --- the tables -------------------------------------------------------------------------- */

static struct hosts_states states;

/* Reads the machines, which have the answers @first and @second. */
static void read_two(const char *first, const char *second, enum hosts_kind kind)
{
	states.count = 2;
	states.now_ms = 2000000;
	states.list[0] = state_of(first, kind);
	states.list[1] = state_of(second, kind);
	states.list[1].host = "lab2";
}

static void release_two(void)
{
	host_state_release(&states.list[0]);
	host_state_release(&states.list[1]);
}

static void a_machine_without_an_answer_has_a_row(void **state)
{
	struct table_style style = { .width = 0 };
	struct page page;

	(void)state;
	page_begin(&page);
	read_two(STATUS DRY_RUN("\"taken_unix_ms\":500,\"can_start\":true")
			 DRY_RUN("\"taken_unix_ms\":500"),
		"garbage\033[2J\n", HOSTS_STATUS);
	assert_int_equal(hosts_table_status(&states, &style, page.out), 0);
	release_two();
	page_is(&page,
		"HOST  GPUS  FREE  LEASED  OTHER  WAIT  NEXT FREE  1 GPU  4 GPUS  WHY\n"
		"lab1     7     2       4      1     1      6m40s    now       ?  -\n"
		"lab2     -     -       -      -     -          -      -       -  "
		"its answer cannot be read\n");
}

static void texts_of_other_machines_are_printable(void **state)
{
	struct table_style style = { .width = 0 };
	struct page page;

	(void)state;
	page_begin(&page);
	read_two(
		"{\"format\":\"gpulease-queue/1\",\"taken_unix_ms\":1,\"queue\":["
		"{\"position\":1,\"ticket\":4,\"gpus\":2,\"share\":1e99,\"vram_mib\":18432,"
		"\"user\":\"a\\u001b[2J\",\"waits_ms\":60000,\"why\":\"x\\ny\"}],"
		"\"queue_is_cut\":true}",
		"{\"format\":\"gpulease-queue/1\",\"taken_unix_ms\":1}", HOSTS_QUEUE);
	assert_int_equal(hosts_table_queue(&states, &style, page.out), 0);
	release_two();
	page_is(&page, "HOST  POS  JOB  USER    GPUS  SINCE  WAITS  WHY  COMMAND\n"
		       "lab1    1    4  a?[2J  2x18G  -      1m00s  x?y  -\n"
		       "more jobs wait on lab1\n");
}

static void only_the_reasons_that_there_are_stand_below_their_rows(void **state)
{
	struct table_style style = { .width = 60 };
	struct page page;

	(void)state;
	page_begin(&page);
	read_two("{\"format\":\"gpulease-status/1\",\"taken_unix_ms\":1}", "",
		HOSTS_STATUS);
	assert_int_equal(hosts_table_status(&states, &style, page.out), 0);
	release_two();
	page_is(&page, "HOST  GPUS  FREE  LEASED  WAIT  NEXT FREE  1 GPU  4 GPUS\n"
		       "lab1     0     0       0     0          -      -       -\n"
		       "lab2     -     -       -     -          -      -       -\n"
		       "    its answer cannot be read\n");
}

#define ENDED(id, gone) "{\"ticket\":" id ",\"gone_unix_ms\":" gone ",\"status\":0}"

static void ended_jobs_of_all_machines_are_in_the_order_of_their_ends(void **state)
{
	struct table_style style = { .width = 0 };
	struct page page;

	(void)state;
	page_begin(&page);
	read_two(
		"{\"format\":\"gpulease-history/1\",\"taken_unix_ms\":1,\"jobs\":[" ENDED(
			"1", "10") "," ENDED("2", "30") "," ENDED("3",
			"null") "," ENDED("4", "60") "],\"missing_lines\":1}",
		"{\"format\":\"gpulease-history/1\",\"taken_unix_ms\":1,\"jobs\":[" ENDED(
			"7", "20") "," ENDED("8", "50") "]}",
		HOSTS_HISTORY);
	assert_int_equal(hosts_table_history(&states, 5, &style, page.out), 0);
	release_two();
	page_is(&page,
		"HOST  JOB  USER  GPUS  STATE  STARTED  WAITED  RAN  STATUS  COMMAND\n"
		"lab2    7  -     -     -      -             -    -       0  -\n"
		"lab1    2  -     -     -      -             -    -       0  -\n"
		"lab1    3  -     -     -      -             -    -       0  -\n"
		"lab2    8  -     -     -      -             -    -       0  -\n"
		"lab1    4  -     -     -      -             -    -       0  -\n"
		"lab1: 1 line of the history could not be written\n");
}

/* --- the program that is asked ------------------------------------------------------------ */

/* Runs the shell code, and asserts that it has printed @text and exited with @status. */
static void run_code(const char *code, const char *text, int status, const char *error)
{
	char *words[] = { (char *)"sh", (char *)"-c", (char *)code, NULL };
	struct answer answer = ANSWER_NONE;
	pid_t group;

	assert_int_equal(answer_begin(&answer, words), 0);
	group = answer.pid;
	answer_wait(&answer, 30000);
	(void)kill(-group, SIGKILL);
	assert_int_equal(answer.fault, 0);
	assert_int_equal(answer.status, status);
	assert_string_equal(answer.text, text);
	assert_string_equal(answer.error, error);
	answer_release(&answer);
}

static void an_answer_does_not_wait_for_the_end_of_stderr(void **state)
{
	(void)state;
	run_code("sleep 300 >/dev/null & echo done; echo why >&2", "done\n", 0, "why");
}

static void the_message_is_found_among_other_lines(void **state)
{
	(void)state;
	run_code(
		"printf '\\n @@@@\\nfirst\\033\\ngpulease: own\\ngpulease: next' >&2; exit 3",
		"", 3, "gpulease: own");
	run_code("printf '@@\\nfirst\\033\\nlast\\n' >&2", "", 0, "first?");
	run_code("printf 'x\\r\\nssh: no route\\r\\n' >&2; exit 255", "", 255,
		"ssh: no route");
}

static void slow_hosts_are_given_up_and_others_are_not(void **state)
{
	static struct host_answers answers;
	static struct host_words words;

	(void)state;
	hosts.count = 3;
	for (size_t i = 0; i < hosts.count; i++)
		(void)snprintf(hosts.name[i], HOST_NAME_SIZE, "%zu", i);
	/* the host is $0 */
	words = (struct host_words){
		.list = { (char *)"sh", (char *)"-c",
			(char *)"echo $0; [ $0 != 1 ] || exec sleep 300", NULL },
		.host_at = 3
	};
	hosts_ask(&hosts, &words, &answers);
	assert_int_equal(answers.count, 3);
	for (size_t i = 0; i < 3; i++) {
		struct answer *answer = &answers.list[i].answer;

		assert_string_equal(answers.list[i].host, hosts.name[i]);
		assert_int_equal(answer->fault, i == 1 ? -ETIMEDOUT : 0);
		assert_int_equal(answer->text[0], '0' + (int)i);
		assert_int_equal(answer->pid, 0);
	}
	hosts_forget(&answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_split_at_commas),
		cmocka_unit_test(names_that_ssh_could_mistake_are_refused),
		cmocka_unit_test(there_is_a_most_of_hosts_and_of_a_name),
		cmocka_unit_test(words_are_quoted_for_the_shell_of_the_host),
		cmocka_unit_test(the_object_is_found_among_other_lines),
		cmocka_unit_test(only_whole_printable_json_is_clean),
		cmocka_unit_test(the_trouble_is_that_of_ssh_or_gpulease),
		cmocka_unit_test(gpus_are_counted),
		cmocka_unit_test(starts_are_those_of_the_clock_there),
		cmocka_unit_test(what_cannot_be_read_is_told),
		cmocka_unit_test(a_machine_without_an_answer_has_a_row),
		cmocka_unit_test(only_the_reasons_that_there_are_stand_below_their_rows),
		cmocka_unit_test(texts_of_other_machines_are_printable),
		cmocka_unit_test(
			ended_jobs_of_all_machines_are_in_the_order_of_their_ends),
		cmocka_unit_test(an_answer_does_not_wait_for_the_end_of_stderr),
		cmocka_unit_test(the_message_is_found_among_other_lines),
		cmocka_unit_test(slow_hosts_are_given_up_and_others_are_not),
	};

	return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
