#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine_doctor.h"

static void a_setting_is_found_by_its_whole_name(void **state)
{
	static const char config[] = "Configuration data as of 2026-11-24\n"
				     "AuthAltTypes            = (null)\n"
				     "KillWait                = 30 sec\n"
				     "SelectTypeParameters    = CR_CORE\n"
				     "SelectType              = select/cons_tres\n"
				     "Empty                   =\n"
				     "SLURM_VERSION           = 22.05.8";
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "SelectType", "select/cons_tres" },
		{ "KillWait", "30 sec" },
		{ "SLURM_VERSION", "22.05.8" },
		{ "Empty", "" },
		{ "Kill", "" },
		{ "Types", "" },
	};
	char value[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		engine_doctor_setting(config, rows[i].name, value, sizeof(value));
		assert_string_equal(value, rows[i].value);
	}
	engine_doctor_setting(NULL, "KillWait", value, sizeof(value));
	assert_string_equal(value, "");
	engine_doctor_setting(config, "SelectType", value, 7);
	assert_string_equal(value, "select");
}

static void the_socket_of_munge_is_that_of_slurm_conf(void **state)
{
	static const struct {
		const char *conf, *socket; /* NULL: munge is not used */
	} rows[] = {
		{ "", "/run/munge/munge.socket.2" },
		{ "AuthType=auth/munge\n", "/run/munge/munge.socket.2" },
		{ "ClusterName=a\nAuthInfo=socket=/a/b\n", "/a/b" },
		{ "  authinfo=ttl=60,socket=/a/b # mine\n", "/a/b" },
		{ "AuthInfo=socket=/a/b,ttl=60", "/a/b" },
		{ "AuthInfo=ttl=60\n", "/run/munge/munge.socket.2" },
		{ "#AuthInfo=socket=/a/b\n", "/run/munge/munge.socket.2" },
		{ "AuthType=auth/slurm\nAuthInfo=socket=/a/b\n", NULL },
		{ "AuthType=auth/munge", "/run/munge/munge.socket.2" },
	};
	char socket[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool is_used =
			engine_doctor_munge_socket(rows[i].conf, socket, sizeof(socket));

		assert_int_equal(is_used, rows[i].socket != NULL);
		if (is_used)
			assert_string_equal(socket, rows[i].socket);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_setting_is_found_by_its_whole_name),
		cmocka_unit_test(the_socket_of_munge_is_that_of_slurm_conf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
