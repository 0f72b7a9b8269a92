/* Jobs files: lines that are read, refused and written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "batch_attributes.h"

static struct batch_list list;
static struct why why;

static int parse_bytes(enum batch_format format, const char *text, size_t size)
{
	batch_list_release(&list);
	why = WHY_NONE;
	return batch_list_parse(
		format, "jobs.txt", text, size, "python3", NULL, &list, &why);
}

static int parse(enum batch_format format, const char *text)
{
	return parse_bytes(format, text, strlen(text));
}

/* Writes each line as "[attributes] command", one after the other. */
static void show(struct text *out)
{
	for (size_t i = 0; i < list.count; i++) {
		const struct batch_line *line = &list.lines[i];

		text_addf(out, "%s%u ", i ? "\n" : "", line->number);
		batch_attributes_write(&line->attributes, out);
		text_addf(out, " %s", line->command);
	}
}

static void check(enum batch_format format, const char *text, const char *wanted)
{
	char is[1024];
	struct text out = TEXT_ON(is);

	if (parse(format, text) < 0)
		fail_msg("'%s': %s", text, why.text);
	show(&out);
	if (strcmp(is, wanted) != 0)
		fail_msg("'%s' is '%s', not '%s'", text, is, wanted);
}

static void check_refused(enum batch_format format, const char *text, const char *reason)
{
	if (parse(format, text) != -EINVAL)
		fail_msg("'%s' is not refused", text);
	if (strncmp(why.text, "jobs.txt, line ", 15) != 0 || !strstr(why.text, reason))
		fail_msg("'%s': '%s' does not say '%s'", text, why.text, reason);
	assert_null(list.lines);
}

#define A64 "a123456789012345678901234567890123456789012345678901234567890123"

struct row {
	const char *text, *wanted;
};

static void check_all(enum batch_format format, const struct row *rows, size_t count,
	void (*check_one)(enum batch_format, const char *, const char *))
{
	for (size_t i = 0; i < count; i++)
		check_one(format, rows[i].text, rows[i].wanted);
	batch_list_release(&list);
}

/* --- lines ------------------------------------------------------------------------- */

static void a_line_is_a_command_with_attributes_before_it(void **state)
{
	static const struct row rows[] = {
		{ "", "" },
		{ "\n \n\t\n# a\n  # b", "" },
		{ "a", "1 [] a" },
		{ "a b\n\n  c", "1 [] a b\n3 [] c" },
		{ "a\r\n\r\nb\r", "1 [] a\n3 [] b" },
		{ "\xef\xbb\xbf# a\nb", "2 [] b" },
		{ "\xef\xbb\xbf[gpus=2] b", "1 [gpus=2] b" },
		{ "a # b", "1 [] a # b" },
		{ "a \t \nb\\ \nc\\  ", "1 [] a\n2 [] b\\ \n3 [] c\\ " },
		{ "\r\r\n \r\r\n\ra", "3 [] a" },
		{ "a\r \r\nb\r\r\n", "1 [] a\n2 [] b" },
		{ "[] a", "1 [] a" },
		{ "[ ]a", "1 [] a" },
		{ "  [gpus=2]a", "1 [gpus=2] a" },
		{ "[ gpus=2\tvram=18G ]  a", "1 [gpus=2 vram=18G] a" },
		{ "[gpus=0.5 vram=18000] a", "1 [gpus=0.5 vram=18000M] a" },
		{ "[gpus=0.05] a", "1 [gpus=0.05] a" },
		{ "[gpus=0] a", "1 [gpus=0] a" },
		{ "[timeout=90] a", "1 [timeout=90s] a" },
		{ "[timeout=1.5h] a", "1 [timeout=90m] a" },
		{ "[timeout=48h] a", "1 [timeout=2d] a" },
		{ "[timeout=1500ms] a", "1 [timeout=1500ms] a" },
		{ "[fail-retries=2 retries=3] a", "1 [retries=3 fail-retries=2] a" },
		{ "[retries=0] a", "1 [retries=0] a" },
		{ "[priority=-1000000] a", "1 [priority=-1000000] a" },
		{ "[allow=0-3,5,GPU-12ab] a", "1 [allow=0-3,5,GPU-12ab] a" },
		{ "[allow=\"0, 1 , 2 \"] a", "1 [allow=0,1,2] a" },
		{ "[after=3,0004] a", "1 [after=3,0004] a" },
		{ "[name=x] a\n[after=x after-ok=x,2] b",
			"1 [name=x] a\n2 [after=x after-ok=x,2] b" },
		{ "[name='x y'] a\n[after=\" x y , 3\"] b",
			"1 [name=\"x y\"] a\n2 [after=\"x y,3\"] b" },
		{ "[name=x] a\n[name=x] b", "1 [name=x] a\n2 [name=x] b" },
		{ "[conda=ml setup=\"cd \\\"a\\\\b\\n\\\" && x]\"] a",
			"1 [conda=ml setup=\"cd \\\"a\\\\b\\\\n\\\" && x]\"] a" },
		{ "[setup='a\\\"b'] a", "1 [setup=\"a\\\\\\\"b\"] a" },
		{ "[setup=\"a,\"] a", "1 [setup=\"a,\"] a" },
		{ "[setup=a\"b'c] a", "1 [setup=\"a\\\"b'c\"] a" },
		{ "[setup=a=b] a", "1 [setup=a=b] a" },
		{ "[cancel] a", "1 [cancel] a" },
		{ "[gpus=2 cancel name=x] a", "1 [gpus=2 name=x cancel] a" },
		{ "[ -f x ] && a", "1 [] [ -f x ] && a" },
		{ "[[ -f x ]] && a", "1 [] [[ -f x ]] && a" },
		{ "[ \"$a\" = b ] && a", "1 [] [ \"$a\" = b ] && a" },
		{ "[", "1 [] [" },
		{ "[] [gpus=2] a", "1 [] [gpus=2] a" },
		{ "[] # a", "1 [] # a" },
	};

	(void)state;
	check_all(BATCH_LINES, rows, ARRAY_SIZE(rows), check);
}

static void a_line_that_is_wrong_is_named_with_what_is_allowed(void **state)
{
	static const struct row rows[] = {
		{ "a\n\n[go=2] b",
			"line 3: 'go' is not an attribute; the attributes are gpus, vram, "
			"timeout, retries, fail-retries, priority, allow, "
			"after, after-ok, name, conda, setup, cancel (" },
		{ "[g=2] b", "'g' is not an attribute" },
		{ "a \\", "it ends with a backslash; a command has to be on one line" },
		{ "b\na \\\\\\\n c", "line 2: it ends with a backslash" },
		{ "[gpuss=2] b", "'gpuss' is not an attribute; did you mean gpus? (for" },
		{ "[gpus=2 =3] b", "'' is not an attribute" },
		{ "[ a = b ] && c", "write test" },
		{ "[gpus=3x] a",
			"gpus: '3x' is not a number of GPUs; write a number from 0" },
		{ "[gpus=129] a", "too many" },
		{ "[gpus=1.5] a", "write 1 or 2" },
		{ "[gpus=] a", "gpus: '' is not" },
		{ "[gpus] a", "gpus needs a value; write gpus=2" },
		{ "[gpus =2] a", "gpus needs a value" },
		{ "[cancel=yes] a", "cancel takes no value" },
		{ "[gpus=2 gpus=2] a", "gpus is given twice" },
		{ "[cancel cancel] a", "cancel is given twice" },
		{ "[gpus=2, vram=3] a", "gpus: '2,' ends with a comma; write blanks" },
		{ "[gpus=2,vram=3] a", "gpus: '2,vram=3' is not" },
		{ "[vram=0] a", "vram: '0'" },
		{ "[vram=2x] a", "vram: '2x' is not a size" },
		{ "[gpus=0 vram=2G] a", "gpus=0 asks for no GPU and vram for" },
		{ "[timeout=2x] a", "timeout: '2x' is not a duration" },
		{ "[retries=-1] a", "retries: '-1' is not a number" },
		{ "[fail-retries=1000001] a", "fail-retries: '1000001' is too large" },
		{ "[priority=1000001] a", "priority: '1000001' is not a priority" },
		{ "[allow=x] a", "allow: 'x' is not a GPU" },
		{ "[allow=3-1] a", "the wrong way round" },
		{ "[name=] a", "name: the value is empty" },
		{ "[name=12] a", "name: '12' is a number" },
		{ "[name=a,b] a", "name: 'a,b' has a comma" },
		{ "[name=' a'] a", "begins or ends with a blank" },
		{ "[name=a\x1b] a", "name: 'a?' has characters that cannot" },
		{ "[name=" A64 A64 A64 A64 "] a",
			"\xe2\x80\xa6' is too long; a name has" },
		{ "[conda=\"\"] a", "conda: the value is empty" },
		{ "[name=\"a] a", "name: the quote before 'a] a' is not closed" },
		{ "[name='a'b] a", "name: 'a' continues after the closing quote" },
		{ "[gpus=2", "the attributes are not closed; write ]" },
		{ "[name='a'", "the attributes are not closed" },
		{ "[gpus=2]", "there is no command after" },
		{ "[gpus=2] \t\r\r", "there is no command after" },
		{ "[]", "there is no command after" },
	};

	(void)state;
	check_all(BATCH_LINES, rows, ARRAY_SIZE(rows), check_refused);
}

static void an_unknown_attribute_is_answered_by_the_one_that_was_meant(void **state)
{
	static const struct row rows[] = {
		{ "[gpu=2] b", "'gpu' is not an attribute; did you mean gpus?" },
		{ "[mem=8G] b", "did you mean vram?" },
		{ "[time=1h] b", "did you mean timeout?" },
		{ "[time_limit=1h] b",
			"'time_limit' is not an attribute; did you mean timeout?" },
		{ "[failretries=1] b", "did you mean fail-retries?" },
		{ "[conda_env=ml] b", "did you mean conda?" },
		{ "[ t = b ] && c",
			"did you mean timeout? (for the shell's [ write test)" },
		{ "[model=a100] b", "the attributes are gpus" },
		{ "[b=12345678901234567890123456789012345] b",
			"the attributes are gpus" },
		{ "[b12345678901234567890123456789012345=2] b",
			"the attributes are gpus" },
	};

	(void)state;
	check_all(BATCH_LINES, rows, ARRAY_SIZE(rows), check_refused);
}

static void a_table_is_distinguished_from_wrong_lines(void **state)
{
	static const char table[] = "# x\nPriority,script,a,b,c\n1,a.sh,,,";

	(void)state;
	assert_int_equal(parse(BATCH_AUTO, table), -EMEDIUMTYPE);
	assert_string_equal(
		why.text, "jobs.txt, line 2: this is a table; add --batch-format csv");
	assert_null(list.lines);
	/* the user has said that these are lines */
	assert_int_equal(parse(BATCH_LINES, table), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.lines[1].command, "1,a.sh,,,");
	batch_list_release(&list);
}

static void the_format_is_that_of_the_name_or_of_the_first_line(void **state)
{
	static const struct {
		const char *file, *text;
		enum batch_format format;
	} rows[] = {
		{ "a.csv", "echo a", BATCH_CSV },
		{ "dir.csv/a.CSV", "", BATCH_CSV },
		{ ".csv", "", BATCH_AUTO },
		{ "a.csv.txt", "", BATCH_AUTO },
		{ "-", "priority,script,conda_env,arguments,allowed_gpus", BATCH_CSV },
		{ "a", "\xef\xbb\xbf \r\n\n # x,y\n#\n\tPriority,Script_path,x",
			BATCH_CSV },
		{ "a", "echo a\npriority,script", BATCH_AUTO },
		{ "a", "#", BATCH_AUTO },
		{ "a", "# priority,script", BATCH_AUTO },
		{ "a", "\n", BATCH_AUTO },
		{ "a", "priority,scrip", BATCH_AUTO },
		{ "a", "", BATCH_AUTO },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t size = strlen(rows[i].text);
		/* no NUL follows, so that a sanitizer finds a read beyond the end */
		autofree char *text = memcpy(malloc(size + !size), rows[i].text, size);

		assert_int_equal(batch_format_of(BATCH_AUTO, rows[i].file, text, size),
			rows[i].format);
		assert_int_equal(batch_format_of(BATCH_LINES, rows[i].file, text, size),
			BATCH_LINES);
	}
}

static void scripts_and_rows_are_no_lines(void **state)
{
	static const char script[] = "this is a script and not a list of commands";
	static const char table[] = "this is a table; add --batch-format csv";
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "#!/bin/sh\ntrue", script },
		{ "#SBATCH -n 1", script },
		{ "true\n#SBATCH -n 1", script },
		{ "1,train.py,,", table },
		{ "true\n-12,a b.sh", table },
	};
	static const char *const lines[] = { "#!/usr/bin/gpulease --batch\na",
		"a\n#!/bin/sh", "# SBATCH\na", "1 ,a", "-,a", "-1;a", "[] 1,a" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(parse(BATCH_AUTO, rows[i].text), -EMEDIUMTYPE);
		assert_non_null(strstr(why.text, rows[i].why));
	}
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(parse(BATCH_AUTO, lines[i]), 0);
		assert_int_equal(list.count, 1);
		batch_list_release(&list);
	}
}

static void unknown_names_and_cycles_are_reported(void **state)
{
	static const struct row rows[] = {
		{ "[after=0] a", "after: '0' is not the number of an entry" },
		{ "[after=4294967296] a", "after: '4294967296' is not the number" },
		{ "[after=99999999999999999999] a", "is not the number" },
		{ "[after=3,,4] a", "after: '3,,4' has one comma too many" },
		{ "[after=',3'] a", "has one comma too many" },
		{ "[after=] a", "after: the value is empty" },
		{ "a\n[after=b] c\n", "line 2: it comes after 'b', and no line has" },
		{ "[after-ok=3,b] c\n", "it comes after 'b', and no line has" },
		{ "[name=bb] a\n[after=b] c\n", "it comes after 'b'" },
		{ "[name=b] a\n[after=bb] c\n", "it comes after 'bb'" },
		{ "[name=a after=a] x", "line 1: 'a' would come after itself" },
		{ "[name=a] x\n[name=a after-ok=a] x", "line 2: 'a' would come after" },
		{ "[name=a after=b] x\n[name=b after=a] x", "comes after 'a', which" },
		{ "[name=a after=b] x\n[name=b] x\n[name=b after=c] x\n"
		  "[name=c after=3 after-ok=d,a] x\n[name=d] x",
			"line 4: 'c' comes after 'a', which would come after it" },
	};

	(void)state;
	check_all(BATCH_LINES, rows, ARRAY_SIZE(rows), check_refused);
}

static void names_may_meet_again_without_a_cycle(void **state)
{
	(void)state;
	assert_int_equal(parse(BATCH_LINES, "[name=d after=b,c] x\n[name=b after=a] x\n"
					    "[name=c after-ok=a] x\n[name=a] x\n"
					    "[after=d,a] x\n[name=e after=d,b,a] x\n"),
		0);
	assert_int_equal(list.count, 6);
	batch_list_release(&list);
}

/* "[name=n0] x", "[name=n1 after=n0] x", …; the first comes after the last if it @is_circle. */
static char *make_chain(unsigned count, bool is_circle, struct text *text)
{
	size_t size = (size_t)count * 48;
	char *at = malloc(size);

	assert_non_null(at);
	*text = text_on(at, size);
	for (unsigned i = 0; i < count; i++)
		if (i || is_circle)
			text_addf(
				text, "[name=n%u after=n%u] x\n", i, (i ? i : count) - 1);
		else
			text_add(text, "[name=n0] x\n");
	assert_false(text->cut);
	return at;
}

static void a_chain_may_be_as_long_as_the_list(void **state)
{
	struct text text;
	autofree char *chain = make_chain(BATCH_LINES_MAX, false, &text);
	autofree char *circle = NULL;

	(void)state;
	assert_int_equal(parse_bytes(BATCH_LINES, chain, text.used), 0);
	assert_int_equal(list.count, BATCH_LINES_MAX);
	circle = make_chain(BATCH_LINES_MAX, true, &text);
	assert_int_equal(parse_bytes(BATCH_LINES, circle, text.used), -EINVAL);
	assert_non_null(strstr(why.text, "which would come after it"));
	batch_list_release(&list);
}

/* --- limits ------------------------------------------------------------------------ */

static void a_line_may_have_so_many_bytes_and_no_more(void **state)
{
	autofree char *text = malloc(BATCH_LINE_MAX + 3);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', BATCH_LINE_MAX + 3);
	text[1] = text[BATCH_LINE_MAX + 2] = '\n';
	assert_int_equal(parse_bytes(BATCH_LINES, text, BATCH_LINE_MAX + 2), 0);
	assert_int_equal(strlen(list.lines[1].command), BATCH_LINE_MAX);
	assert_int_equal(parse_bytes(BATCH_LINES, text, BATCH_LINE_MAX + 3), 0);
	text[BATCH_LINE_MAX + 2] = 'a';
	assert_int_equal(parse_bytes(BATCH_LINES, text, BATCH_LINE_MAX + 3), -EINVAL);
	assert_string_equal(why.text, "jobs.txt, line 2: it has more than 100000 bytes");
}

static void a_list_may_have_so_many_lines_and_no_more(void **state)
{
	autofree char *text = malloc(3 * (BATCH_LINES_MAX + 1) + 1);
	size_t size = 0;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < BATCH_LINES_MAX; i++, size += 2)
		memcpy(text + size, "a\n", 2);
	memcpy(text + size, "\n#\n", 3);
	assert_int_equal(parse_bytes(BATCH_LINES, text, size + 3), 0);
	assert_int_equal(list.count, BATCH_LINES_MAX);
	text[size + 1] = 'a';
	assert_int_equal(parse_bytes(BATCH_LINES, text, size + 3), -EINVAL);
	assert_string_equal(why.text, "jobs.txt, line 100002: it is one too many; "
				      "a jobs file has at most 100000 commands");
	for (size = 0; size < 4 * (BATCH_LINES_MAX / 2); size += 4)
		memcpy(text + size, "0,a\n", 4);
	assert_int_equal(parse_bytes(BATCH_CSV, text, size), 0);
}

static void an_empty_file_is_fine_and_a_nul_byte_is_not(void **state)
{
	static const char text[] = "a\nb\0c\n";

	(void)state;
	assert_int_equal(parse_bytes(BATCH_LINES, text, sizeof(text) - 1), -EINVAL);
	assert_non_null(strstr(why.text, "jobs.txt, line 2: it contains a NUL byte"));
	assert_int_equal(parse_bytes(BATCH_LINES, NULL, 0), 0);
	assert_int_equal(parse_bytes(BATCH_CSV, NULL, 0), 0);
	assert_int_equal(list.count, 0);
	batch_list_release(&list);
}

static void a_long_path_leaves_room_for_the_reason(void **state)
{
	char path[400];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	memcpy(path + 390, "/jobs.txt", 10);
	assert_int_equal(
		batch_list_parse(BATCH_LINES, path, "[", 1, "python", NULL, &list, &why),
		0);
	batch_list_release(&list);
	assert_int_equal(
		batch_list_parse(BATCH_LINES, path, "[x", 2, "python", NULL, &list, &why),
		-EINVAL);
	assert_ptr_equal(strstr(why.text, "jobs.txt, line 1: 'x' is no"), why.text);
}

/* --- the table --------------------------------------------------------------------- */

static void a_row_of_the_table_is_a_command(void **state)
{
	static const struct row rows[] = {
		{ "priority,script,conda_env,arguments,allowed_gpus\n", "" },
		{ "Priority, Script_Path ,conda_env,arguments,allowed_gpus\n", "" },
		{ "# a\n \n1,x", "3 [priority=-1] x" },
		{ "2,/path/to/inference.py,,--llm qwen2.5-32b-inst --batch_size "
		  "1,4,5,6,7",
			"1 [priority=-2 allow=4,5,6,7] python3 /path/to/inference.py "
			"--llm qwen2.5-32b-inst --batch_size 1" },
		{ "2,/path/x.py,,\"--llm m --gpus 1,2\",4,5,6",
			"1 [priority=-2 allow=4,5,6] python3 /path/x.py --llm m --gpus "
			"1,2" },
		{ "1,x.py,ml,-a,", "1 [priority=-1 conda=ml] python x.py -a" },
		{ "1,x.sh,,-a", "1 [priority=-1] bash x.sh -a" },
		{ "1,x.sh,ml", "1 [priority=-1 conda=ml] bash x.sh" },
		{ "-3,./x,,-a", "1 [priority=3] ./x -a" },
		{ "0,x", "1 [priority=0] x" },
		{ "1, x.py , ml , -a  b , 1 , 2 ",
			"1 [priority=-1 allow=1,2 conda=ml] python x.py -a  b" },
		{ "1,a b.py", "1 [priority=-1] python3 'a b.py'" },
		{ "1,\"a,b.py\",,\"say \"\"x\"\"\"",
			"1 [priority=-1] python3 a,b.py say \"x\"" },
		{ " \"1\" , \" x \" ,\"\",\"\",\"4,5\" ", "1 [priority=-1 allow=4,5] x" },
		{ "1,it's.py,,it's", "1 [priority=-1] python3 'it'\\''s.py' it's" },
		{ "1,~/a b.py", "1 [priority=-1] python3 ~/'a b.py'" },
		{ "1,~/", "1 [priority=-1] '~/'" },
		{ "1,.py", "1 [priority=-1] .py" },
		{ "1,x,,-a \"b c\"", "1 [priority=-1] x -a \"b c\"" },
		{ "1,x,,,,,", "1 [priority=-1] x" },
		{ "1,x,,,1,,2,,", "1 [priority=-1 allow=1,2] x" },
		{ "1,x\r\n2,y\r\n", "1 [priority=-1] x\n2 [priority=-2] y" },
		{ "1,x\r,ml \r, a \r ,4\r\r", "1 [priority=-1 allow=4 conda=ml] x a" },
		{ "1,x,,a\\", "1 [priority=-1] x a\\" },
	};

	(void)state;
	check_all(BATCH_CSV, rows, ARRAY_SIZE(rows), check);
}

static void a_row_that_is_wrong_is_named(void **state)
{
	static const struct row rows[] = {
		{ "1,x\nhigh,y", "line 2: priority: 'high' is not a priority" },
		{ ",x", "priority: '' is not" },
		{ "1", "there is no script; write priority,script," },
		{ "1,,ml", "there is no script" },
		{ "1,x,,\"a", "the quote before 'a' is not closed" },
		{ "1,x,,\"a\"b\"", "'b\"' follows the quoted 'a'" },
		{ "1,x,,,\"1\",2", "',2' follows the quoted '1'" },
		{ "1,x,,a,b,1", "allow: 'b' is not a GPU" },
		{ "1,x,,-s \"a,b\",1", "allow: 'b\"' is not a GPU" },
		{ "1000001,x", "is not a priority" },
		{ "python x.py", "there is no script" },
		{ "python,x.py", "priority: 'python' is not a priority" },
	};

	(void)state;
	check_all(BATCH_CSV, rows, ARRAY_SIZE(rows), check_refused);
}

/* A quote takes four bytes. */
static void a_row_of_quotes_fits(void **state)
{
	enum { SIZE = 24000 };
	char text[SIZE + 1];

	(void)state;
	memset(text, '\'', SIZE);
	memcpy(text, "1,", 2);
	memcpy(text + SIZE - 4, ".py\n", 5);
	assert_int_equal(parse(BATCH_CSV, text), 0);
	assert_int_equal(
		strlen(list.lines[0].command), strlen("python3 ''.py") + 4 * (SIZE - 6));
	batch_list_release(&list);
}

/* --- keys -------------------------------------------------------------------------- */

static void a_key_depends_on_command_and_name(void **state)
{
	uint64_t key = batch_key("a b", NULL);

	(void)state;
	assert_true(key != 0);
	assert_true(key == batch_key("a b", ""));
	assert_true(key != batch_key("a c", NULL));
	assert_true(key != batch_key("a b", "x"));
	assert_true(batch_key("a", "bx") != batch_key("ab", "x"));
	assert_int_equal(parse(BATCH_LINES, "[gpus=2] a b\na b  \n[name=x] a b"), 0);
	assert_true(list.lines[0].key == key && list.lines[1].key == key);
	assert_true(list.lines[2].key == batch_key("a b", "x"));
	batch_list_release(&list);
}

/* --- writing ----------------------------------------------------------------------- */

struct written {
	const char *words[6];
	const char *wanted; /* the line, or the reason why it cannot be written */
};

static int write_line(enum batch_format format, const struct batch_attributes *attributes,
	char *const words[], char out[1024])
{
	struct text text = text_on(out, 1024);

	why = WHY_NONE;
	text_add(&text, "before ");
	return batch_line_write(format, attributes, NULL, words, &text, &why);
}

static void check_written(enum batch_format format,
	const struct batch_attributes *attributes, const struct written *row)
{
	char out[1024];

	if (write_line(format, attributes, (char *const *)row->words, out) < 0)
		fail_msg("'%s': %s", row->words[0], why.text);
	if (strcmp(out + 7, row->wanted) != 0)
		fail_msg("it is '%s', not '%s'", out + 7, row->wanted);
}

static void check_unwritten(enum batch_format format,
	const struct batch_attributes *attributes, const struct written *row)
{
	char out[1024];

	if (write_line(format, attributes, (char *const *)row->words, out) != -EINVAL)
		fail_msg("'%s' is written", out);
	if (!strstr(why.text, row->wanted))
		fail_msg("'%s' does not say '%s'", why.text, row->wanted);
	assert_string_equal(out, "before ");
}

static const struct batch_attributes nothing;

static void words_are_quoted_and_a_line_stays(void **state)
{
	static const struct written rows[] = {
		{ { "python", "x.py", "--lr=3", "-a" }, "python x.py --lr=3 -a" },
		{ { "python", "a b", "$x", "it's", "" },
			"python 'a b' '$x' 'it'\\''s' ''" },
		{ { "A=1", "b" }, "'A=1' b" },
		{ { "a", "~/b", "#" }, "a '~/b' '#'" },
		{ { "[", "a", "]" }, "'[' a ']'" },
		{ { "true" }, "true" },
		{ { "cd x && $y" }, "cd x && $y" },
		{ { "  a b \t" }, "a b" },
		{ { "a \r" }, "a" },
		{ { "[ a = b ] && c" }, "[] [ a = b ] && c" },
		{ { "[ -f x ]" }, "[ -f x ]" },
		{ { "# a" }, "[] # a" },
		{ { "\xef\xbb\xbf" }, "[] \xef\xbb\xbf" },
		{ { "priority,script_x" }, "[] priority,script_x" },
	};
	static const struct written wrong[] = {
		{ { "" }, "there is no command" },
		{ { " " }, "there is no command" },
		{ { "a\nb" }, "cannot have a newline" },
		{ { "a", "b\nc" }, "cannot have a newline" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_written(BATCH_LINES, &nothing, &rows[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check_unwritten(BATCH_LINES, &nothing, &wrong[i]);
}

static void attributes_are_written_as_they_are_read(void **state)
{
	static const struct batch_attributes all = {
		.given = (1u << BATCH_ATTRIBUTES) - 1,
		.gpus = 1,
		.share_percent = 25,
		.vram_mib = 18432,
		.limit_ms = 7200000,
		.oom_retries = 3,
		.retries = 1,
		.priority = -5,
		.allow = "0,2-3",
		.after = "a b,3",
		.after_ok = "c",
		.name = "d e",
		.conda = "ml",
		.setup = "x \"y\"",
		.is_cancelled = true,
	};
	static const struct written row = { { "z" },
		"[gpus=0.25 vram=18G timeout=2h retries=3 fail-retries=1 priority=-5 "
		"allow=0,2-3 after=\"a b,3\" after-ok=c name=\"d e\" conda=ml "
		"setup=\"x \\\"y\\\"\" cancel] z" };
	static const struct {
		struct batch_attributes attributes;
		struct written row;
	} wrong[] = {
		{ { .given = 1u << BATCH_NAME, .name = "a,b" },
			{ { "z" }, "name: 'a,b' has a comma" } },
		{ { .given = 1u << BATCH_NAME, .name = "" },
			{ { "z" }, "name: the value is empty" } },
		{ { .given = 1u << BATCH_SETUP, .setup = "a\nb" },
			{ { "z" }, "cannot have a newline" } },
		{ { .given = 1u << BATCH_AFTER, .after = "a,,b" },
			{ { "z" }, "has one comma too many" } },
	};

	(void)state;
	check_written(BATCH_LINES, &all, &row);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check_unwritten(BATCH_LINES, &wrong[i].attributes, &wrong[i].row);
}

static void a_line_that_is_too_long_is_not_written(void **state)
{
	enum { SIZE = 4 * BATCH_LINE_MAX };
	autofree char *at = malloc(SIZE), *word = malloc(BATCH_LINE_MAX + 2);
	char *words[] = { word, NULL };
	struct text out;

	(void)state;
	assert_true(at && word);
	out = text_on(at, SIZE);
	memset(word, 'a', BATCH_LINE_MAX + 1);
	word[BATCH_LINE_MAX + 1] = '\0';
	assert_int_equal(batch_line_write(BATCH_LINES, &nothing, NULL, words, &out, &why),
		-EINVAL);
	assert_string_equal(why.text, "it has more than 100000 bytes");
	assert_int_equal(out.used, 0);
	word[BATCH_LINE_MAX] = '\0';
	assert_int_equal(
		batch_line_write(BATCH_LINES, &nothing, NULL, words, &out, &why), 0);
}

static void the_table_gets_script_and_arguments(void **state)
{
	static const struct batch_attributes said = {
		.given = 1u << BATCH_PRIORITY | 1u << BATCH_CONDA | 1u << BATCH_ALLOW,
		.priority = -2,
		.conda = "a,b",
		.allow = "4,5",
	};
	static const struct batch_attributes gpus = { .given = 1u << BATCH_GPUS,
		.gpus = 2 };
	static const struct written rows[] = {
		{ { "python", "x.py", "-a", "1,2" }, "0,x.py,,\"-a 1,2\"" },
		{ { "python3", "x.py" }, "0,x.py,," },
		{ { "bash", "x y.sh", "a\"b" }, "0,x y.sh,,\"'a\"\"b'\"" },
		{ { "cd x && python y.py" }, "0,cd,,x && python y.py" },
		{ { "python '/a b.py' -x" }, "0,/a b.py,,-x" },
		{ { "python", "-m", "x.py" }, "0,python,,-m x.py" },
		{ { "python3.11", "x.py" }, "0,python3.11,,x.py" },
		{ { "sh", "x.sh" }, "0,sh,,x.sh" },
		{ { "train.py" }, "0,train.py,," },
		{ { "a x.py", "b" }, "0,a x.py,,b" },
		{ { "./x.sh", "a" }, "0,./x.sh,,a" },
	};
	static const struct written conda = { { "python", "x.py" },
		"2,x.py,\"a,b\",,4,5" };
	static const struct written wrong[] = {
		{ { "python  x.py" }, "read as 'python x.py'" },
		{ { "python \"x.py\"" }, "it would be read as" },
		{ { "(cd x; y)" }, "it would be read as" },
		{ { "a;b" }, "it would be read as" },
		{ { "a\nb" }, "cannot have a newline" },
	};
	static const struct written python3 = { { "python3", "x.py" },
		"it would be read as 'python x.py'" };
	static const struct written column = { { "x" }, "csv has no column for gpus" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_written(BATCH_CSV, &nothing, &rows[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check_unwritten(BATCH_CSV, &nothing, &wrong[i]);
	check_written(BATCH_CSV, &said, &conda);
	check_unwritten(BATCH_CSV, &said, &python3);
	check_unwritten(BATCH_CSV, &gpus, &column);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_a_command_with_attributes_before_it),
		cmocka_unit_test(a_line_that_is_wrong_is_named_with_what_is_allowed),
		cmocka_unit_test(
			an_unknown_attribute_is_answered_by_the_one_that_was_meant),
		cmocka_unit_test(a_table_is_distinguished_from_wrong_lines),
		cmocka_unit_test(the_format_is_that_of_the_name_or_of_the_first_line),
		cmocka_unit_test(scripts_and_rows_are_no_lines),
		cmocka_unit_test(unknown_names_and_cycles_are_reported),
		cmocka_unit_test(names_may_meet_again_without_a_cycle),
		cmocka_unit_test(a_chain_may_be_as_long_as_the_list),
		cmocka_unit_test(a_line_may_have_so_many_bytes_and_no_more),
		cmocka_unit_test(a_list_may_have_so_many_lines_and_no_more),
		cmocka_unit_test(an_empty_file_is_fine_and_a_nul_byte_is_not),
		cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
		cmocka_unit_test(a_row_of_the_table_is_a_command),
		cmocka_unit_test(a_row_that_is_wrong_is_named),
		cmocka_unit_test(a_row_of_quotes_fits),
		cmocka_unit_test(a_key_depends_on_command_and_name),
		cmocka_unit_test(words_are_quoted_and_a_line_stays),
		cmocka_unit_test(attributes_are_written_as_they_are_read),
		cmocka_unit_test(a_line_that_is_too_long_is_not_written),
		cmocka_unit_test(the_table_gets_script_and_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
