/*
 * Asks several machines at once, by ssh.
 *
 *	host_words_begin … -> hosts_ask -> host_find in ->answer.text -> hosts_forget
 */
#ifndef GPULEASE_HOSTS_ASK_H
#define GPULEASE_HOSTS_ASK_H

#include "host_words.h"

/*
 * What one host has said: ->text and ->size, which a fault leaves as far as it has come.  Of a
 * host that is too slow ->fault is -ETIMEDOUT.  host_trouble() says why there is no object in it.
 */
struct host_answer {
	const char *host; /* in the list of the hosts */
	struct answer answer;
};

/* As many as the list has hosts, in their order. */
struct host_answers {
	struct host_answer list[HOSTS_MAX];
	size_t count;
};

/*
 * Runs @words on all of @hosts, which have to stay, and waits for their answers: HOST_ANSWER_MS
 * for each at most.  Then no ssh runs any more.  The caller forgets *@ret.
 */
void hosts_ask(const struct host_list *hosts, struct host_words *words,
	struct host_answers *ret);

void hosts_forget(struct host_answers *answers);

#endif
