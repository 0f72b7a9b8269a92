#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "hosts_ask.h"

static bool is_done(struct answer *answer)
{
	answer_take(answer);
	return answer->fault || answer_is_complete(answer);
}

/* Ends what has not answered in time. */
static void give_up(struct host_answers *answers)
{
	for (size_t i = 0; i < answers->count; i++) {
		struct answer *answer = &answers->list[i].answer;

		if (is_done(answer))
			continue;
		answer_end(answer);
		answer->fault = -ETIMEDOUT;
	}
}

/* Waits for the next output, for @left_ms at most.  Returns false if no host is left to answer. */
static bool wait_for_output(struct host_answers *answers, int64_t left_ms)
{
	struct pollfd fds[2 * HOSTS_MAX];
	nfds_t count = 0;
	bool is_waiting = false;
	int timeout_ms = (int)left_ms;

	for (size_t i = 0; i < answers->count; i++) {
		struct answer *answer = &answers->list[i].answer;
		int most_ms;

		if (is_done(answer))
			continue;
		is_waiting = true;
		most_ms = answer_poll_ms(answer);
		if (most_ms >= 0 && most_ms < timeout_ms)
			timeout_ms = most_ms;
		fds[count++] = (struct pollfd){ answer->out_fd, POLLIN, 0 };
		fds[count++] = (struct pollfd){ answer->err_fd, POLLIN, 0 };
	}
	if (is_waiting && left_ms > 0)
		(void)poll(fds, count, timeout_ms);
	return is_waiting;
}

void hosts_ask(
	const struct host_list *hosts, struct host_words *words, struct host_answers *ret)
{
	int64_t until_ms;

	ret->count = hosts->count;
	for (size_t i = 0; i < ret->count; i++) {
		struct host_answer *each = &ret->list[i];

		each->host = hosts->name[i];
		each->answer = ANSWER_NONE;
		host_words_aim(words, each->host);
		each->answer.fault = answer_begin(&each->answer, words->list);
	}
	until_ms = clock_boot_ms() + HOST_ANSWER_MS;
	for (;;) {
		int64_t left_ms = until_ms - clock_boot_ms();

		if (!wait_for_output(ret, left_ms))
			return;
		if (left_ms <= 0)
			break;
	}
	give_up(ret);
}

void hosts_forget(struct host_answers *answers)
{
	for (size_t i = 0; i < answers->count; i++)
		answer_release(&answers->list[i].answer);
	answers->count = 0;
}
