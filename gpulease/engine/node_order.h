/*
 * What a node has to do before, during and after the command: the words between `node` and `--`
 * with which gpulease-engine is started there.  Pure, but for memory that is never freed.
 *
 * A node may have another version of gpulease, or none.  A word that it does not know is refused.
 * Where gpulease-engine is not found, a shell does the part that it can, and refuses the rest.
 */
#ifndef GPULEASE_NODE_ORDER_H
#define GPULEASE_NODE_ORDER_H

#include "settings.h"
#include "slurm_ask.h"

struct node_order {
	const char
		*folder; /* where the command runs: Slurm takes /tmp if it is missing */
	bool merges;     /* stderr goes where stdout goes */
	bool unbuffered; /* as -u */
	bool fills;      /* the command has placeholders, which a shell does not know */
	int64_t limit_ms, grace_ms; /* 0: no limit */
	int64_t warn_signal, warn_ms;
	int64_t retries, done_status;               /* 0, -1 */
	int64_t retry_delay_ms, retry_delay_max_ms; /* with ->retries */
	const char *setup, *conda, *inject, *export_list;
	int64_t inject_style; /* enum inject_style */
	char **command;
};

#define NODE_ORDER_NONE ((struct node_order){ .done_status = -1 })

/*
 * Sets all but ->folder, ->merges, ->fills and the delays, as the settings of a command ask.
 */
void node_order_make(const struct settings *settings, struct node_order *ret);

/* The text for `/bin/sh -c` that node_order_add() writes. */
extern const char node_order_script[];

/*
 * Appends the words that a node executes, with @engine as the path of gpulease-engine there.
 */
void node_order_add(
	const struct node_order *order, const char *engine, struct slurm_words *words);

/*
 * Reads @words, which come after `node`; ->command points into them.  Returns 0, or -EINVAL with
 * the message in @why.
 */
MUST_CHECK int node_order_read(char **words, struct node_order *ret, struct why *why);

#endif
