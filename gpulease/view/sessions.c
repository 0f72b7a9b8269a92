#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "json_members.h"
#include "render_table.h"
#include "session_list.h"
#include "sessions.h"
#include "terminal.h"

static int sessions_print_table(const struct session *all, size_t count)
{
	static const struct table_column columns[] = {
		{ .title = "JOB", .is_right = true },
		{ .title = "SESSION" },
		{ .title = "IN" },
		{ .title = "ATTACHED" },
	};
	struct table table = TABLE_ON(columns);
	struct table_style style = terminal_style();
	int r;

	for (size_t i = 0; i < count; i++) {
		table_row(&table);
		if (all[i].job)
			table_putf(&table, 0, "%llu", (unsigned long long)all[i].job);
		table_put(&table, 1, all[i].name);
		table_put(&table, 2, session_programs[all[i].program]);
		table_put(&table, 3, all[i].is_attached ? "yes" : "no");
	}
	r = table_print(&table, &style, stdout);
	table_release(&table);
	return r;
}

static void sessions_print_json(const struct session *all, size_t count)
{
	struct json json = JSON_ON(stdout);

	document_begin(&json, "sessions", clock_real_ms(), NULL);
	json_key(&json, "sessions");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&json);
		member_number_if(&json, "ticket", all[i].job, all[i].job);
		json_put_text(&json, "session", all[i].name);
		json_put_text(&json, "program", session_programs[all[i].program]);
		member_bool(&json, "attached", all[i].is_attached);
		json_end(&json);
	}
	json_end(&json);
	document_finish(&json);
}

int sessions_main(const struct settings *settings)
{
	struct session *all;
	size_t count;
	int r = session_list(&all, &count);

	if (r < 0) {
		diag("cannot list the sessions: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	if (settings->output.json)
		sessions_print_json(all, count);
	else if (count)
		r = sessions_print_table(all, count);
	else
		printf("no sessions\n");
	free(all);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}
