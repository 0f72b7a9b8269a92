#include <errno.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "hosts.h"
#include "hosts_table.h"
#include "terminal.h"

static enum hosts_kind kind_of(enum verb verb)
{
	if (verb == VERB_HISTORY)
		return HOSTS_HISTORY;
	return verb == VERB_QUEUE ? HOSTS_QUEUE : HOSTS_STATUS;
}

/* Returns the message for options that mean one machine; NULL: there is none. */
static const char *misuse_of(const struct settings *settings)
{
	const struct machine_settings *machine = &settings->machine;

	if (settings->verb.operand_count)
		return "an id belongs to one machine; ask it with ssh HOST gpulease "
		       "--status ID";
	if (machine->sim_gpus || machine->dir || machine->config)
		return "--sim, --dir and --config are for this machine; leave them out "
		       "with --host";
	return NULL;
}

/* --- the words of --history -------------------------------------------------------------- */

static void add_text(struct host_words *words, const char *option, const char *value)
{
	if (!value)
		return;
	host_words_add(words, option);
	host_words_add(words, value);
}

/* As seconds since 1970: the time zone of the host may be another. */
static void add_time(struct host_words *words, const char *option, int64_t at_ms)
{
	char at[24];

	(void)snprintf(at, sizeof(at), "@%lld", (long long)(at_ms / 1000));
	add_text(words, option, at);
}

static void add_filter(struct host_words *words, const struct settings *settings)
{
	const struct verb_settings *verb = &settings->verb;
	char count[24] = "all";

	if (verb->history_count != UINT64_MAX)
		(void)snprintf(count, sizeof(count), "%llu",
			(unsigned long long)verb->history_count);
	add_text(words, "--last", count);
	add_text(words, "--user", verb->user);
	add_text(words, "--name", settings->request.name);
	add_text(words, "--state", verb->states);
	if (verb->from_ms > 0)
		add_time(words, "--since", verb->from_ms);
	if (verb->until_ms < INT64_MAX)
		add_time(words, "--until", verb->until_ms);
}

/* --- the whole --------------------------------------------------------------------------- */

static int print_table(const struct hosts_states *states, enum hosts_kind kind,
	const struct settings *settings)
{
	struct table_style style = terminal_style();

	switch (kind) {
	case HOSTS_STATUS:
		return hosts_table_status(states, &style, stdout);
	case HOSTS_QUEUE:
		return hosts_table_queue(states, &style, stdout);
	default:
		return hosts_table_history(
			states, settings->verb.history_count, &style, stdout);
	}
}

/* Prints what was read.  Returns the exit status. */
static int print(const struct hosts_states *states, enum hosts_kind kind,
	const struct settings *settings)
{
	int status = EXIT_DONE, r = 0;

	if (settings->output.json)
		hosts_json(states, kind, stdout);
	else
		r = print_table(states, kind, settings);
	for (size_t i = 0; i < states->count; i++) {
		const struct host_state *state = &states->list[i];

		if (!state->trouble[0])
			continue;
		status = EXIT_NOT_DONE;
		/* the table of --status and the JSON say it themselves */
		if (kind != HOSTS_STATUS && !settings->output.json)
			diag("%s: %s", state->host, state->trouble);
	}
	if (r == 0)
		return status;
	diag("%s", strerror(-r));
	return EXIT_MISUSE;
}

static int ask(const struct host_list *hosts, struct host_words *words,
	const struct settings *settings)
{
	static struct host_answers answers;
	static struct hosts_states states;
	enum hosts_kind kind = kind_of(settings->verb.kind);
	int status;

	hosts_ask(hosts, words, &answers);
	states.count = answers.count;
	states.now_ms = clock_real_ms();
	for (size_t i = 0; i < answers.count; i++)
		host_state_read(&answers.list[i], kind, &states.list[i]);
	status = print(&states, kind, settings);
	for (size_t i = 0; i < states.count; i++)
		host_state_release(&states.list[i]);
	hosts_forget(&answers);
	return status;
}

int hosts_main(const struct settings *settings)
{
	static struct host_list hosts;
	static struct host_words words;
	const char *misuse = misuse_of(settings);
	enum hosts_kind kind = kind_of(settings->verb.kind);
	struct why why = WHY_NONE;

	if (misuse) {
		diag("%s", misuse);
		return EXIT_MISUSE;
	}
	if (host_list_read(settings->look.hosts, &hosts, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	host_words_begin(&words, NULL);
	hosts_add_words(&words, kind);
	if (kind == HOSTS_HISTORY)
		add_filter(&words, settings);
	if (words.text.cut) {
		diag("the options are too long for --host");
		return EXIT_MISUSE;
	}
	return ask(&hosts, &words, settings);
}
