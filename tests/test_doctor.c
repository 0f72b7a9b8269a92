/*
 * The pure parts of --doctor: what it makes of what it read, and how it shows what it found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "doctor_report.h"
#include "doctor_facts.h"
#include "json_valid.h"
#include "page.h"

static const struct table_style plain = { .width = 0 };

/* --- showing ----------------------------------------------------------------------- */

static void the_worst_result_counts(void **state)
{
	static const struct {
		enum doctor_result results[3], worst;
	} cases[] = {
		{ { DOCTOR_OK, DOCTOR_OK, DOCTOR_OK }, DOCTOR_OK },
		{ { DOCTOR_OK, DOCTOR_WARN, DOCTOR_OK }, DOCTOR_WARN },
		{ { DOCTOR_FAIL, DOCTOR_WARN, DOCTOR_OK }, DOCTOR_FAIL },
		{ { DOCTOR_OK, DOCTOR_OK, DOCTOR_FAIL }, DOCTOR_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct doctor_report report = DOCTOR_REPORT_NONE;

		assert_int_equal(doctor_worst(&report), DOCTOR_OK);
		for (size_t j = 0; j < 3; j++)
			(void)doctor_add(&report, cases[i].results[j], "x");
		assert_int_equal(doctor_worst(&report), cases[i].worst);
		doctor_report_release(&report);
	}
}

static struct doctor_report sample(void)
{
	struct doctor_report report = DOCTOR_REPORT_NONE;
	struct why why;

	why_set(&why, "a; b");
	why_add_remedy(&why, "start it anew");
	report.check = "kernel";
	(void)doctor_add(&report, DOCTOR_OK, "Linux %s", "6.1");
	report.check = "gpus";
	doctor_remedy(doctor_add(&report, DOCTOR_WARN, "GPU 3: \033[31m\xff\nERR!"),
		"reset %d", 3);
	report.check = "set-id";
	(void)doctor_add_why(&report, DOCTOR_FAIL, &why);
	return report;
}

static void each_finding_is_a_line_with_its_remedy(void **state)
{
	struct doctor_report report = sample();
	struct page page;

	(void)state;
	page_begin(&page);
	doctor_print(&report, &plain, page.out);
	page_is(&page, "ok    kernel: Linux 6.1\n"
		       "warn  gpus: GPU 3: ?[31m??ERR!; reset 3\n"
		       "fail  set-id: a; b; start it anew\n");
	doctor_report_release(&report);
}

static void colours_are_those_of_the_words(void **state)
{
	static const struct table_style style = { .width = 20, .has_colour = true };
	struct doctor_report report = sample();
	struct page page;

	(void)state;
	page_begin(&page);
	doctor_print(&report, &style, page.out);
	page_is(&page, "\033[32mok\033[0m    kernel: Linux 6.1\n"
		       "\033[33mwarn\033[0m  gpus: GPU 3: ?[31m??ERR!; reset 3\n"
		       "\033[31mfail\033[0m  set-id: a; b; start it anew\n");
	doctor_report_release(&report);
}

static void the_report_is_valid_json(void **state)
{
	static const char *const parts[] = { "\"format\": \"gpulease-doctor/1\"",
		"\"taken_unix_ms\": 1700000000000", "\"state_directory\": \"/d\"",
		"\n  \"result\": \"fail\"", "\"name\": \"kernel\"", "\"remedy\": null",
		"\"text\": \"GPU 3: \\u001b[31m\\ufffd\\u000aERR!\"",
		"\"text\": \"a; b\"", "\"remedy\": \"start it anew\"" };
	struct doctor_report report = sample();
	struct page page;
	size_t at;

	(void)state;
	page_begin(&page);
	doctor_print_json(&report, "/d", INT64_C(1700000000000), page.out);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
	page_begin(&page);
	doctor_print_json(&report, NULL, 0, page.out);
	page_has(&page, "\"state_directory\": null");
	page_end(&page);
	doctor_report_release(&report);
}

static void a_long_text_is_cut(void **state)
{
	struct doctor_report report = DOCTOR_REPORT_NONE;
	char text[5000];
	struct page page;

	(void)state;
	memset(text, '\a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	report.check = "x";
	doctor_remedy(doctor_add(&report, DOCTOR_OK, "%s", text), "%s", text);
	page_begin(&page);
	doctor_print(&report, &plain, page.out);
	page_has_not(&page, "\a");
	page_has(&page, "??; ??");
	page_end(&page);
	doctor_report_release(&report);
}

/* --- the driver -------------------------------------------------------------------- */

static void the_driver_version_is_found(void **state)
{
	static const struct {
		const char *text, *version;
	} cases[] = {
		{ "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 "
		  "01:15:15 UTC 2023\nGCC version:  gcc version 11.4.0\n",
			"535.104.05" },
		{ "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  "
		  "Release Build  (dvs-builder@U16)\n",
			"550.54.14" },
		{ "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  575.51\n",
			"575.51" },
		{ "NVRM version: none\nGCC version:  gcc version 11.4.0\n", NULL },
		{ "", NULL },
		{ "7", NULL },
		{ ".", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[64] = "";

		assert_int_equal(driver_version(cases[i].text, out, sizeof(out)),
			cases[i].version != NULL);
		assert_string_equal(out, cases[i].version ? cases[i].version : "");
	}
}

static void a_failing_nvidia_smi_gets_a_remedy(void **state)
{
	static const char *const cases[][2] = {
		{ "Failed to initialize NVML: Driver/library version mismatch",
			"reboot" },
		{ "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
		  "driver",
			"modprobe nvidia" },
		{ "nvidia-smi did not answer within 10 s", "state D" },
		{ "an nvidia-smi (pid 3) hangs and cannot be ended", "reboot" },
		{ "No devices were found", "lspci" },
		{ "cannot run '/usr/bin/nvidia-smi': No such file or directory",
			"install" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_non_null(strstr(driver_remedy(cases[i][0]), cases[i][1]));
	assert_string_equal(driver_remedy("something new"), "");
}

static void a_failing_gpu_gets_a_remedy(void **state)
{
	static const struct {
		const char *trouble;
		int index;
		const char *remedy;
	} cases[] = {
		{ "[GPU requires reset]", 3, "--gpu-reset -i 3" },
		{ "memory.used is 'ERR!'", 0, "--gpu-reset -i 0" },
		{ "GPU requires reset", -1, "reboot" },
		{ "Unable to determine the device handle: GPU is lost", 3, "dmesg" },
	};
	char out[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		gpu_remedy(cases[i].trouble, cases[i].index, out, sizeof(out));
		if (!strstr(out, cases[i].remedy))
			fail_msg("'%s': '%s'", cases[i].trouble, out);
	}
	gpu_remedy("something new", 3, out, sizeof(out));
	assert_string_equal(out, "");
}

/* --- the system -------------------------------------------------------------------- */

static void kernel_releases_are_compared(void **state)
{
	static const struct {
		const char *release;
		bool is_enough;
	} cases[] = {
		{ "6.18.44-fc", true },
		{ "4.18.0-553.el8.x86_64", true },
		{ "4.17.19", false },
		{ "3.10.0-1160.el7", false },
		{ "5.4", true },
		{ "?", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			kernel_is_at_least(cases[i].release, 4, 18), cases[i].is_enough);
}

static void hidepid_is_found_in_mountinfo(void **state)
{
	static const struct {
		const char *line, *value;
	} cases[] = {
		{ "22 1 0:21 / /proc rw,nosuid shared:12 - proc proc rw,hidepid=2\n",
			"2" },
		{ "22 1 0:21 / /proc rw - proc proc rw,gid=5,hidepid=invisible,subset=pid",
			"invisible" },
		{ "22 1 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n", NULL },
		{ "22 1 0:21 / /proc rw - proc proc rw,hidepid=0", NULL },
		{ "22 1 0:21 / /proc rw - proc proc rw,hidepid=off\n", NULL },
		{ "22 1 0:21 / /mnt/proc rw - proc proc rw,hidepid=2\n", NULL },
		{ "22 1 0:21 /hidepid=2 /proc rw - ext4 proc rw\n", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[32] = "";

		assert_int_equal(line_hides_processes(cases[i].line, out, sizeof(out)),
			cases[i].value != NULL);
		if (cases[i].value)
			assert_string_equal(out, cases[i].value);
	}
}

static void file_systems_are_local_or_not(void **state)
{
	bool is_local = false;

	(void)state;
	assert_string_equal(file_system_name(0x01021994, &is_local), "tmpfs");
	assert_true(is_local);
	assert_string_equal(file_system_name(0x6969, &is_local), "NFS");
	assert_false(is_local);
	assert_string_equal(file_system_name(0x65735546, &is_local), "FUSE");
	assert_false(is_local);
	assert_string_equal(file_system_name(1, &is_local), "");
	assert_true(is_local);
}

static void little_space_is_short(void **state)
{
	(void)state;
	assert_false(space_is_short(1 << 20, 100, 1000));
	assert_true(space_is_short((1 << 20) - 1, 100, 1000));
	assert_true(space_is_short(1 << 20, 99, 1000));
	assert_false(space_is_short(1 << 20, 0, 0)); /* Btrfs counts none */
}

/* --- the state directory ----------------------------------------------------------- */

static void an_unusable_directory_gets_commands(void **state)
{
	static const struct {
		bool is_hardened;
		uid_t owner;
		gid_t group;
		mode_t mode;
		const char *remedy;
	} cases[] = {
		{ true, 0, 7, 02775, "chmod 2770 /d" },
		{ true, 0, 8, 02770, "chgrp g /d" },
		{ true, 5, 8, 0700, "chown root /d && chgrp g /d && chmod 2770 /d" },
		{ true, 0, 7, 02770, "" },
		{ false, 0, 7, 02777, "chmod o-w /d" },
		{ false, 0, 7, 0770, "chmod g+s /d" },
		{ false, 5, 7, 0700, "chmod 2770 /d" },
		{ false, 0, 7, 02770, "usermod -aG g u, and log in again" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct directory_users users = { .is_hardened = cases[i].is_hardened,
			.lent = 7,
			.group = "g",
			.uid = 3,
			.user = "u" };
		struct stat st = { .st_uid = cases[i].owner,
			.st_gid = cases[i].group,
			.st_mode = S_IFDIR | cases[i].mode };
		char out[200] = "";
		struct text text = TEXT_ON(out);

		directory_remedy(&st, "/d", &users, &text);
		assert_string_equal(out, cases[i].remedy);
	}
}

static void a_bad_state_file_is_described(void **state)
{
	static const struct {
		mode_t directory, mode, type;
		uid_t owner;
		gid_t group;
		nlink_t links;
		const char *trouble; /* a part of it; NULL: none */
	} cases[] = {
		{ 02770, S_IFREG | 0660, S_IFREG, 9, 7, 1, NULL },
		{ 02770, S_IFREG | 0640, S_IFREG, 9, 7, 1, "closed to the group" },
		{ 02770, S_IFREG | 0664, S_IFREG, 9, 7, 1, "open to everybody" },
		{ 02770, S_IFREG | 0660, S_IFREG, 9, 8, 1, "not have the group" },
		{ 02770, S_IFREG | 0660, S_IFREG, 9, 7, 2, "another hard link" },
		{ 02770, S_IFLNK | 0777, S_IFREG, 9, 7, 1, "no regular file" },
		{ 02770, S_IFDIR | 02770, S_IFDIR, 9, 7, 3, NULL },
		{ 02770, S_IFDIR | 02700, S_IFDIR, 9, 7, 3, "closed to the group" },
		{ 02770, S_IFREG | 0660, S_IFDIR, 9, 7, 1, "no folder" },
		{ 0700, S_IFREG | 0600, S_IFREG, 3, 7, 1, NULL },
		{ 0700, S_IFREG | 0660, S_IFREG, 9, 7, 1, "another user" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stat directory = { .st_uid = 3, .st_gid = 7 };
		struct stat st = { .st_uid = cases[i].owner,
			.st_gid = cases[i].group,
			.st_mode = cases[i].mode,
			.st_nlink = cases[i].links };
		const char *trouble;

		directory.st_mode = S_IFDIR | cases[i].directory;
		trouble = state_file_trouble(&st, cases[i].type, &directory);
		if (!cases[i].trouble)
			assert_null(trouble);
		else if (!trouble || !strstr(trouble, cases[i].trouble))
			fail_msg("case %zu: '%s'", i, trouble ? trouble : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worst_result_counts),
		cmocka_unit_test(each_finding_is_a_line_with_its_remedy),
		cmocka_unit_test(colours_are_those_of_the_words),
		cmocka_unit_test(the_report_is_valid_json),
		cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(the_driver_version_is_found),
		cmocka_unit_test(a_failing_nvidia_smi_gets_a_remedy),
		cmocka_unit_test(a_failing_gpu_gets_a_remedy),
		cmocka_unit_test(kernel_releases_are_compared),
		cmocka_unit_test(hidepid_is_found_in_mountinfo),
		cmocka_unit_test(file_systems_are_local_or_not),
		cmocka_unit_test(little_space_is_short),
		cmocka_unit_test(an_unusable_directory_gets_commands),
		cmocka_unit_test(a_bad_state_file_is_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
