#include <stdio.h>

#include "diag.h"
#include "exitcodes.h"
#include "hosts_read.h"
#include "timeline.h"
#include "timeline_hosts.h"

/* Returns the message for options that do not go with the @count machines; NULL: there is none. */
static const char *misuse_of(const struct settings *settings, size_t count)
{
	const struct machine_settings *machine = &settings->machine;

	if (machine->sim_gpus || machine->dir || machine->config)
		return "--sim, --dir and --config are for this machine; leave them out "
		       "with --host";
	if (count > 1 && (settings->look.svg || settings->look.html))
		return "--svg and --html show one machine; give one to --host";
	return NULL;
}

/* The status comes first: a job that ends in between is in both, and its end counts. */
static void add_words(
	struct host_words *words, const struct settings *settings, int64_t from_ms)
{
	char since[32];

	(void)snprintf(since, sizeof(since), "@%lld", (long long)from_ms / 1000);
	host_words_begin(words, NULL);
	host_words_add(words, "--status");
	host_words_add(words, "--json");
	host_words_next(words);
	host_words_add(words, "--history");
	host_words_add(words, "all");
	host_words_add(words, "--json");
	host_words_add(words, "--since");
	host_words_add(words, since);
	if (!settings->verb.user)
		return;
	host_words_add(words, "--user");
	host_words_add(words, settings->verb.user);
}

/* Shows one machine, below those that *@shown counts.  Returns the exit status. */
static int show(const struct settings *settings, const struct host_answer *answer,
	unsigned *shown)
{
	struct host_state status, history;
	const char *trouble;
	int r = EXIT_NOT_DONE;

	host_state_read(answer, HOSTS_STATUS, &status);
	host_state_read(answer, HOSTS_HISTORY, &history);
	trouble = status.trouble[0] ? status.trouble : history.trouble;
	if (*trouble) {
		diag("%s: %s", answer->host, trouble);
	} else {
		if ((*shown)++)
			(void)putchar('\n');
		/* as --host names it: several machines may have one name of their own */
		text_copy(status.machine.host, sizeof(status.machine.host), answer->host);
		r = timeline_show(settings, &history.ended, &status.machine);
	}
	host_state_release(&status);
	host_state_release(&history);
	return r;
}

int timeline_hosts(const struct settings *settings, int64_t from_ms)
{
	static struct host_answers answers;
	static struct host_list hosts;
	static struct host_words words;
	struct why why = WHY_NONE;
	const char *misuse;
	unsigned shown = 0;
	int status = EXIT_DONE;

	if (host_list_read(settings->look.hosts, &hosts, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	misuse = misuse_of(settings, hosts.count);
	add_words(&words, settings, from_ms);
	if (!misuse && words.text.cut)
		misuse = "the options are too long for --host";
	if (misuse) {
		diag("%s", misuse);
		return EXIT_MISUSE;
	}
	hosts_ask(&hosts, &words, &answers);
	for (size_t i = 0; i < answers.count; i++) {
		int r = show(settings, &answers.list[i], &shown);

		status = r > status ? r : status;
	}
	hosts_forget(&answers);
	return status;
}
