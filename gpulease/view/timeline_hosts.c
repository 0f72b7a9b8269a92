#include <stdio.h>

#include "diag.h"
#include "exitcodes.h"
#include "hosts_ask.h"
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

/* Finds and reads both objects.  Returns whether they are there. */
static bool read_answer(
	const struct host_answer *from, struct machine *machine, struct ended_jobs *ended)
{
	const struct answer *answer = &from->answer;
	struct json_value status, history;
	uint64_t schema;
	size_t at = 0;

	return answer->text && !answer->fault &&
	       host_find(answer->text, answer->size, "gpulease-status/", &at, &status,
		       &schema) &&
	       schema == 1 && machine_read(status.at, status.size, machine) == 0 &&
	       host_find(answer->text, answer->size, "gpulease-history/", &at, &history,
		       &schema) &&
	       schema == 1 && ended_jobs_read(history.at, history.size, ended) == 0;
}

/* Shows one machine.  Returns the exit status. */
static int show(const struct settings *settings, const struct host_answer *answer)
{
	struct machine machine = MACHINE_NONE;
	struct ended_jobs ended = ENDED_JOBS_NONE;
	char trouble[MACHINE_WHY_SIZE] = "its answer cannot be read";
	int r = EXIT_NOT_DONE;

	if (read_answer(answer, &machine, &ended)) {
		r = timeline_show(settings, &ended, &machine);
	} else {
		if (answer->answer.fault || answer->answer.status != EXIT_DONE)
			host_trouble(&answer->answer, trouble, sizeof(trouble));
		diag("%s: %s", answer->host, trouble);
	}
	machine_release(&machine);
	ended_jobs_release(&ended);
	return r;
}

int timeline_hosts(const struct settings *settings, int64_t from_ms)
{
	static struct host_answers answers;
	static struct host_list hosts;
	static struct host_words words;
	struct why why = WHY_NONE;
	const char *misuse;
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
		int r;

		if (i)
			(void)putchar('\n');
		r = show(settings, &answers.list[i]);
		status = r > status ? r : status;
	}
	hosts_forget(&answers);
	return status;
}
