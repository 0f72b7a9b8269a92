/* Lists of hosts.  What scontrol 22.05 makes of each was tried, unless a row says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "hostlist.h"

static void add(const char *name, void *context)
{
	text_addf(context, "%s ", name);
}

static void count(const char *name, void *context)
{
	assert_non_null(name);
	++*(size_t *)context;
}

static void a_list_means_these_hosts(void **state)
{
	static const struct {
		const char *list, *hosts;
	} rows[] = {
		{ "", "" },
		{ " ,", "" },
		{ "a", "a " },
		{ "a,b,a", "a b a " },
		{ ",a,,b c\n", "a b c " },
		{ "n[1-3,7]", "n1 n2 n3 n7 " },
		{ "n[08-10],m", "n08 n09 n10 m " },
		{ "n[001-2]", "n001 n002 " },
		{ "n[1-003]", "n1 n2 n3 " },
		{ "n[9-11]", "n9 n10 n11 " },
		{ "n[5]", "n5 " },
		{ "[1-2]", "1 2 " },
		{ "n[1-2][3-4]", "n13 n14 n23 n24 " },
		{ "a[1-2]-[3-4]", "a1-3 a1-4 a2-3 a2-4 " },
		{ "n1-3", "n1-3 " },
		/* Slurm refuses text behind the last bracket */
		{ "a[1-2]-[3-4]b", "a1-3b a1-4b a2-3b a2-4b " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[256];
		struct text text = TEXT_ON(out);
		size_t hosts = 99;

		assert_int_equal(
			hostlist_expand(rows[i].list, add, &text, &hosts, NULL), 0);
		assert_string_equal(out, rows[i].hosts);
	}
}

static void what_is_no_list_is_refused_as_a_whole(void **state)
{
	static const char *const lists[] = { "n[", "n]", "n[1", "n[]", "n[3-1]", "n[-1]",
		"n[1-]", "n[a]", "n[1,,2]", "n[1,]", "n[1-2-3]", "n[1-2]]", "n[[1]]",
		"n[ 1]", "n[1:2]", "n[0x1]", "n[1234567890123456789]", "a,n[",
		"n[1-65537]", "n[1-300]m[1-300]", "a[1-40000],b[1-40000]",
		"a[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct why why = WHY_NONE;
		size_t taken = 0, hosts;

		assert_int_equal(
			hostlist_expand(lists[i], count, &taken, &hosts, &why), -EINVAL);
		assert_int_equal(taken, 0);
		assert_non_null(strstr(why.text, "Invalid hostlist"));
	}
}

static void as_many_hosts_as_allowed_are_listed(void **state)
{
	char name[HOSTLIST_NAME_SIZE + 1];
	size_t taken = 0, hosts = 0;

	(void)state;
	assert_int_equal(hostlist_expand("n[1-65536]", count, &taken, &hosts, NULL), 0);
	assert_int_equal(taken, HOSTLIST_HOSTS_MAX);
	assert_int_equal(hosts, HOSTLIST_HOSTS_MAX);
	memset(name, 'n', sizeof(name));
	name[HOSTLIST_NAME_SIZE - 1] = '\0';
	assert_int_equal(hostlist_expand(name, count, &taken, &hosts, NULL), 0);
	name[HOSTLIST_NAME_SIZE - 1] = 'n';
	name[HOSTLIST_NAME_SIZE] = '\0';
	assert_int_equal(hostlist_expand(name, count, &taken, &hosts, NULL), -EINVAL);
}

static void fold(const char *name, void *context)
{
	hostlist_fold(context, name);
}

static void names_are_folded(void **state)
{
	static const struct {
		const char *list, *folded;
	} rows[] = {
		{ "", "" },
		{ "a", "a" },
		{ "a1", "a1" },
		{ "a1,a2,a3,b7", "a[1-3],b7" },
		{ "a1,a3,a2", "a[1,3,2]" },
		{ "a1,a1", "a[1,1]" },
		{ "a1,a2,b1,a3", "a[1-2],b1,a3" },
		{ "n01,n02,n3", "n[01-02,3]" },
		{ "n9,n10,n11", "n[9-11]" },
		{ "n09,n10,n011", "n[09-10,011]" },
		{ "n99,n100", "n[99-100]" },
		{ "n099,n100", "n[099-100]" },
		{ "n001,n1", "n[001,1]" },
		{ "x1y,x2y", "x1y,x2y" },
		{ "n1,n2,m", "n[1-2],m" },
		{ "a[1-2]-[3-4]", "a1-[3-4],a2-[3-4]" },
		{ "n1,n3,n5-n7", "n[1,3],n5-n7" },
		{ "n12345678901234567890,n2", "n12345678901234567890,n2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *out = NULL;
		size_t size, hosts;
		FILE *file = open_memstream(&out, &size);
		struct hostlist_fold folder = { .out = file };

		assert_non_null(file);
		assert_int_equal(
			hostlist_expand(rows[i].list, fold, &folder, &hosts, NULL), 0);
		hostlist_fold_end(&folder);
		assert_int_equal(fclose(file), 0);
		assert_string_equal(out, rows[i].folded);
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_means_these_hosts),
		cmocka_unit_test(what_is_no_list_is_refused_as_a_whole),
		cmocka_unit_test(as_many_hosts_as_allowed_are_listed),
		cmocka_unit_test(names_are_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
