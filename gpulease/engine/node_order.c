#include <errno.h>

#include "exitcodes.h"
#include "node_order.h"
#include "parse.h"

enum kind { FLAG, NUMBER, TEXT };

struct part {
	const char *name;
	unsigned short offset;
	unsigned char kind;
	signed char none; /* NUMBER: the value that stands for no word */
};

#define PART(kind_, name_, field)                                       \
	{                                                               \
		(name_), offsetof(struct node_order, field), (kind_), 0 \
	}

static const struct part parts[] = {
	PART(TEXT, "folder", folder),
	PART(FLAG, "merge", merges),
	PART(FLAG, "unbuffered", unbuffered),
	PART(FLAG, "fill", fills),
	PART(NUMBER, "limit", limit_ms),
	PART(NUMBER, "grace", grace_ms),
	PART(NUMBER, "warn", warn_signal),
	PART(NUMBER, "warn-ms", warn_ms),
	PART(NUMBER, "retries", retries),
	PART(NUMBER, "retry-delay", retry_delay_ms),
	PART(NUMBER, "retry-delay-max", retry_delay_max_ms),
	{ "done-status", offsetof(struct node_order, done_status), NUMBER, -1 },
	PART(TEXT, "setup", setup),
	PART(TEXT, "conda", conda),
	PART(TEXT, "inject", inject),
	PART(NUMBER, "inject-style", inject_style),
	PART(TEXT, "export", export_list),
};

/* --- from the settings --------------------------------------------------------------------- */

void node_order_make(const struct settings *settings, struct node_order *ret)
{
	const struct run_care *care = &settings->care;
	const struct run_environment *environment = &settings->environment;

	*ret = (struct node_order){
		.unbuffered = environment->unbuffered || environment->submit ||
			      settings->output.out,
		.limit_ms = care->limit_ms,
		.retries = care->retries,
		.done_status = care->done_status,
		.setup = environment->setup,
		.conda = environment->conda,
		.inject = environment->inject,
		.inject_style = environment->inject_style,
		.export_list = environment->export_list,
		.command = environment->command,
	};
	if (care->limit_ms)
		ret->grace_ms = care->grace_ms;
	if (care->limit_ms && care->warn_signal && !care->warns_steps) {
		ret->warn_signal = care->warn_signal;
		ret->warn_ms = care->warn_ms;
	}
}

/* --- words --------------------------------------------------------------------------------- */

/*
 * What a node without gpulease-engine does.  $1 is its path, and the words of this module follow.
 * A shell counts seconds.  The shell of the set-up works as that in setup.c.
 */
const char node_order_script[] =
	"e=$1; shift\n"
	"[ -x \"$e\" ] && exec \"$e\" node \"$@\"\n"
	"l= k=10 s=\n"
	"n() { echo \"gpulease: $1\" >&2; exit 125; }\n"
	"no() { n \"$1 needs gpulease on the nodes, and $e is missing there\"; }\n"
	"while [ \"$1\" != -- ]; do case $1 in\n"
	"folder=*) cd \"${1#*=}\" || n \"there is no folder '${1#*=}' on the node\" ;;\n"
	"merge) exec 2>&1 ;;\n"
	"unbuffered) export PYTHONUNBUFFERED=1 ;;\n"
	"limit=*) l=$(((${1#*=} + 999) / 1000)) ;;\n"
	"grace=*) k=$(((${1#*=} + 999) / 1000)) ;;\n"
	"setup=*) s=${1#*=} ;;\n"
	"fill) no '{gpus} or {id} in an argument' ;;\n"
	"warn=*) no --signal ;;\n"
	"*) no \"--${1%%=*}\" ;;\n"
	"esac; shift; done; shift\n"
	"unset GPULEASE_ENGINE\n"
	"if [ \"$s\" ]; then\n"
	"x='exec \"$@\"'\n"
	"case $#=$1 in 1=*[\\ \\|\\&\\;\\<\\>\\(\\)\\$\\`]*)\n"
	"command -v \"$1\" >/dev/null || x='l=$1; set --; eval \"$l\"' ;; esac\n"
	"set -- sh -c 'trap \"case \\$? in\n"
	"0) echo gpulease: the set-up stopped before its end\\; the command was not run >&2; exit 125 ;;\n"
	"*) echo gpulease: the set-up failed with status \\$?\\; the command was not run >&2 ;; esac\" EXIT\n"
	"s=$1; shift\n"
	"f() { eval \"$s\"; }\n"
	"f\n"
	"case $? in 0) ;; *) exit ;; esac\n"
	"trap - EXIT\n"
	"'\"$x\" sh \"$s\" \"$@\"\n"
	"fi\n"
	"[ -z \"$l\" ] || set -- timeout -k $k $l \"$@\"\n"
	"exec \"$@\"";

static void add_part(const struct part *part, const struct node_order *order,
	struct slurm_words *words)
{
	const char *at = (const char *)order + part->offset;

	if (part->kind == FLAG && *(const bool *)at) {
		slurm_words_add(words, part->name);
	} else if (part->kind == NUMBER && *(const int64_t *)at != part->none) {
		slurm_words_addf(
			words, "%s=%lld", part->name, (long long)*(const int64_t *)at);
	} else if (part->kind == TEXT && *(const char *const *)at) {
		slurm_words_addf(words, "%s=%s", part->name, *(const char *const *)at);
	}
}

void node_order_add(
	const struct node_order *order, const char *engine, struct slurm_words *words)
{
	slurm_words_add(words, "/bin/sh");
	slurm_words_add(words, "-c");
	slurm_words_add(words, node_order_script);
	slurm_words_add(words, "gpulease");
	slurm_words_add(words, engine);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		add_part(&parts[i], order, words);
	slurm_words_add(words, "--");
	for (char **word = order->command; *word; word++)
		slurm_words_add(words, *word);
}

/* Reads the word @word, which is that of @part and has its value behind @size characters. */
static int read_part(
	const struct part *part, const char *word, size_t size, struct node_order *ret)
{
	char *at = (char *)ret + part->offset;
	uint64_t number;

	if (part->kind == FLAG && !word[size]) {
		*(bool *)at = true;
		return 0;
	}
	if (word[size++] != '=')
		return -EINVAL;
	if (part->kind == TEXT)
		*(const char **)at = word + size;
	else if (part->kind == NUMBER &&
		 parse_u64(word + size, INT64_MAX, &number, NULL) == 0)
		*(int64_t *)at = (int64_t)number;
	else
		return -EINVAL;
	return 0;
}

static int read_word(const char *word, struct node_order *ret)
{
	size_t size = strcspn(word, "=");

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strlen(parts[i].name) == size &&
			memcmp(parts[i].name, word, size) == 0)
			return read_part(&parts[i], word, size, ret);
	return -EINVAL;
}

int node_order_read(char **words, struct node_order *ret, struct why *why)
{
	*ret = NODE_ORDER_NONE;
	for (; *words && strcmp(*words, "--") != 0; words++) {
		if (read_word(*words, ret) == 0)
			continue;
		why_set(why,
			"gpulease on this node does not know '%s'; install the same "
			"version there",
			quote(*words).text);
		return -EINVAL;
	}
	if (!*words || !words[1]) {
		why_set(why, "gpulease-engine was started without a command");
		return -EINVAL;
	}
	ret->command = words + 1;
	return 0;
}
