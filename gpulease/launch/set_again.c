#include <errno.h>
#include <string.h>

#include "childenv.h"
#include "process_lease.h"
#include "set_again.h"
#include "slurm_allocation.h"
#include "words.h"

#define AGAIN_VARIABLE "GPULEASE_AGAIN"

static const char cuda[] = "CUDA_VISIBLE_DEVICES";

/* job_environment.c sets them. */
static const char *const names[] = { cuda, "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
	"GPULEASE_ID", "GPULEASE_ATTEMPT", PROCESS_LEASE_TOKEN_VARIABLE, "GPULEASE_GPUS",
	"GPULEASE_UUIDS", "GPULEASE_STEP", PROCESS_LEASE_STEP_VARIABLE, "GPULEASE_SHARE",
	"GPULEASE_VRAM_MIB", "GPULEASE_LIMIT", "GPULEASE_SIM", "GPULEASE_DIR",
	ALLOCATION_VARIABLE };

static const char *value_in(char *const environment[], const char *name)
{
	size_t size = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
			return *environment + size + 1;
	return NULL;
}

/* Writes what the shell evaluates: a call for each variable. */
static void write_calls(char *const environment[], unsigned flags, struct text *out)
{
	const char *gpus = value_in(environment, cuda),
		   *token = value_in(environment, PROCESS_LEASE_TOKEN_VARIABLE);

	if (flags & SET_AGAIN_QUIET)
		text_add(out, "gpulease_quiet=yes\n");
	if (gpus && !*gpus && token)
		text_addf(out,
			"case ${" PROCESS_LEASE_TOKEN_VARIABLE
			"-} in ''|%s) ;; *) return 0 ;; esac\n",
			token);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = value_in(environment, names[i]);

		if (!value && (flags & SET_AGAIN_ONLY_SET))
			continue;
		text_addf(out, "gpulease_keep %s ", names[i]);
		if (value)
			words_add_in_quotes(out, value);
		text_add(out, "\n");
	}
}

int set_again_add(char *const environment[], unsigned flags, char ***ret)
{
	struct childenv_change change = { .name = AGAIN_VARIABLE };
	size_t size = 256;
	autofree char *calls = NULL;
	struct text text;

	/* quoting makes four characters of one at most */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = value_in(environment, names[i]);

		size += 64 + (value ? 4 * strlen(value) : 0);
	}
	calls = malloc(size);
	if (!calls)
		return -ENOMEM;
	text = text_on(calls, size);
	write_calls(environment, flags, &text);
	change.value = calls;
	return childenv_make(environment, NULL, NULL, NULL, &change, 1, ret);
}

/*
 * The functions work under `set -eu`, too.  A variable is removed before it is set: it may have
 * become a list or a number.
 */
void set_again_begin(struct text *out)
{
	text_add(out,
		"gpulease_again=${" AGAIN_VARIABLE "-}\n"
		"unset " AGAIN_VARIABLE "\n"
		"gpulease_keep() {\n"
		"eval \"gpulease_has=\\${$1+x} gpulease_had=\\${$1-}\"\n"
		"case ${#}$gpulease_has in\n"
		"1) return 0 ;;\n"
		"1x) unset \"$1\" || exit; gpulease_now=unset ;;\n"
		"*) [ \"$gpulease_has:$gpulease_had\" = \"x:$2\" ] && export \"$1\" && return 0\n"
		"unset \"$1\" || exit; export \"$1=$2\"; gpulease_now=\"'$2'\" ;;\n"
		"esac\n"
		"case $gpulease_has in x) gpulease_had=\"'$gpulease_had'\" ;; *) gpulease_had=unset ;; esac\n"
		"gpulease_said=\"$gpulease_said, $1 ($gpulease_had, now $gpulease_now)\"\n"
		"}\n"
		"gpulease_keep_all() {\n"
		"gpulease_quiet= gpulease_said=\n"
		"eval \"$gpulease_again\"\n"
		"case $gpulease_quiet$gpulease_said in ,*) printf '%s\\n' \"gpulease: $1 has set "
		"variables of the job, which are set again: ${gpulease_said#, }\" >&2 ;; esac\n"
		"}\n");
}

void set_again_check(const char *after, struct text *out)
{
	text_add(out, "gpulease_keep_all ");
	words_add_in_quotes(out, after);
	text_add(out, "\n");
}

void set_again_end(struct text *out)
{
	text_add(out, "unset gpulease_again gpulease_has gpulease_had gpulease_now "
		      "gpulease_said gpulease_quiet\n"
		      "unset -f gpulease_keep gpulease_keep_all\n");
}
