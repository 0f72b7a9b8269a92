#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "array.h"
#include "clock.h"
#include "cluster_ended.h"
#include "cluster_gres.h"
#include "diag.h"
#include "exitcodes.h"
#include "parse.h"
#include "slurm_ask.h"
#include "slurm_state.h"

/* The fields, in the order of FIELDS; a name that a user chose comes last. */
enum {
	END_ID,
	END_USER,
	END_UID,
	END_STATE,
	END_EXIT,
	END_SUBMIT,
	END_START,
	END_END,
	END_ELAPSED,
	END_TRES,
	END_NODES,
	END_LIMIT,
	END_NAME,
	END_FIELDS,
};

/* These are the same in all versions. */
#define FIELDS \
	"JobIDRaw,User,UID,State,ExitCode,Submit,Start,End,ElapsedRaw,AllocTRES,NodeList,TimelimitRaw,JobName"

/* --- one attempt ------------------------------------------------------------------- */

/* Reads a whole number; 0 for any other text, such as Unknown, and for a time that cannot be. */
static uint64_t number_of(const char *text)
{
	return slurm_number(text, UINT64_C(1) << 40);
}

/* Writes how it ended, in the words of the history. */
static void put_how(const struct slurm_state *state, struct history_end *end)
{
	static const char *const words[END_STATES] = {
		[END_CANCELLED] = HISTORY_CANCEL,
		[END_TIMED_OUT] = HISTORY_LIMIT,
		[END_PREEMPTED] = HISTORY_PREEMPT,
		[END_LOST] = HISTORY_LOST,
	};

	if (words[state->end])
		text_copy(end->how, sizeof(end->how), words[state->end]);
}

/*
 * gpulease ends a job at a limit in seconds, and Slurm, whose limit is the next full minute, only
 * sees the exit status.
 */
static void find_limit(int64_t limit_s, struct history_end *end)
{
	int64_t ran_ms = end->since_ms ? end->gone_ms - end->since_ms : 0;

	if (limit_s && end->since_ms && ran_ms >= (limit_s - 60) * 1000 &&
		strcmp(end->status, "124") == 0)
		text_copy(end->how, sizeof(end->how), HISTORY_LIMIT);
}

/* "CANCELLED by 1000" */
static void read_by(const char *state, struct history_end *end)
{
	const char *by = strstr(state, " by ");

	if (by)
		text_copy(end->by, sizeof(end->by), by + strlen(" by "));
}

static void put_status(
	const struct slurm_state *state, int wait_status, struct history_end *end)
{
	(void)snprintf(end->status, sizeof(end->status), "%d",
		slurm_state_status(state, wait_status) & 255);
}

static void put_nodes(const char *nodes, struct history_end *end)
{
	struct text gpus = TEXT_ON(end->gpus);

	if (slurm_has_nodes(nodes))
		text_addf(&gpus, "%u on %s", end->gpu_count, nodes);
}

/* Sets the times of an attempt, from seconds. */
static void put_times(
	int64_t submit_s, int64_t start_s, int64_t end_s, struct history_end *end)
{
	end->since_ms = start_s * 1000;
	end->alive_ms = end->gone_ms = max_i64(end_s * 1000, end->since_ms);
	if (submit_s)
		end->waited_ms =
			max_i64(0, (start_s ? start_s : end_s) * 1000 - submit_s * 1000);
}

/* Reads the times, in seconds.  Returns false if the job has neither begun nor ended. */
static bool read_times(char **fields, int64_t now_ms, struct cluster_end *ret)
{
	int64_t start_s = (int64_t)number_of(fields[END_START]);
	int64_t end_s = (int64_t)number_of(fields[END_END]);

	ret->submit_s = (int64_t)number_of(fields[END_SUBMIT]);
	if (!ret->is_over)
		end_s = now_ms / 1000;
	if (!end_s || (!ret->is_over && !start_s))
		return false;
	put_times(ret->submit_s, slurm_has_nodes(fields[END_NODES]) ? start_s : 0, end_s,
		&ret->end);
	return true;
}

/* Reads a line.  Returns whether it is of an attempt that has begun or ended. */
static bool read_end(char **fields, int64_t now_ms, struct cluster_end *ret)
{
	const struct slurm_state *state =
		slurm_state_accounted(fields[END_STATE], fields[END_NODES]);
	struct history_end *end = &ret->end;
	int wait_status;
	bool is_requeued = strncmp(fields[END_STATE], "REQUEUED", 8) == 0;

	*ret = (struct cluster_end){ .is_over =
					     state->phase == SLURM_ENDED || is_requeued };
	end->ticket = number_of(fields[END_ID]);
	if (!end->ticket || (state->phase == SLURM_WAITS && !is_requeued) ||
		!read_times(fields, now_ms, ret))
		return false;
	ret->goes_on =
		is_requeued || state->end == END_PREEMPTED || state->end == END_LOST;
	end->uid = (uint32_t)number_of(fields[END_UID]);
	end->gpu_count = gres_count(fields[END_TRES], false);
	end->attempt = 1;
	text_copy(end->user, sizeof(end->user),
		fields[END_USER][0] ? fields[END_USER] : fields[END_UID]);
	end->name_hash = job_name_copy(end->name, fields[END_NAME]);
	put_nodes(fields[END_NODES], end);
	if (state->phase == SLURM_ENDED) {
		put_how(state, end);
		read_by(fields[END_STATE], end);
		if (slurm_state_read_exit(fields[END_EXIT], &wait_status) == 0)
			put_status(state, wait_status, end);
		find_limit((int64_t)number_of(fields[END_LIMIT]) * 60, end);
	}
	return true;
}

void cluster_end_of_job(const struct cluster_job *job, struct history_end *ret)
{
	const struct slurm_state *state =
		slurm_state_with_reason(job->state, job->reason);

	*ret = (struct history_end){
		.ticket = job->id,
		.attempt = job->attempt,
		.uid = job->uid,
		.gpu_count = job->gpus,
	};
	put_times(job->submit_s, slurm_has_nodes(job->node_list) ? job->start_s : 0,
		job->end_s, ret);
	put_nodes(job->node_list, ret);
	put_how(state, ret);
	put_status(state, job->wait_status, ret);
	find_limit(job->limit_s, ret);
	text_copy(ret->user, sizeof(ret->user), job->user);
	ret->name_hash = job_name_copy(ret->name, job->name);
	text_copy(ret->command, sizeof(ret->command), job->command);
}

/* --- all of them ------------------------------------------------------------------- */

/* Splits the next line of *@text at each @mark.  Returns how many fields there are; -1: no line. */
static int next_line(char **text, const char *mark, char **fields)
{
	static char empty[] = "";
	char *line = *text;
	int count = 0;

	if (!*line)
		return -1;
	*text += strcspn(line, "\n");
	if (**text)
		*(*text)++ = '\0';
	for (; line && count < END_FIELDS; count++) {
		char *end = strstr(line, mark);

		fields[count] = line;
		if (end)
			*end = '\0';
		line = end ? end + strlen(mark) : NULL;
	}
	for (int i = count; i < END_FIELDS; i++)
		fields[i] = empty;
	return count;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The attempts of a job follow each other. */
static int compare_attempts(const void *a, const void *b)
{
	const struct cluster_end *x = a, *y = b;

	if (x->end.ticket != y->end.ticket)
		return COMPARE(x->end.ticket, y->end.ticket);
	if (x->submit_s != y->submit_s)
		return COMPARE(x->submit_s, y->submit_s);
	return COMPARE(x->line, y->line);
}

static int compare_ends(const void *a, const void *b)
{
	const struct cluster_end *x = a, *y = b;

	if (x->end.gone_ms != y->end.gone_ms)
		return COMPARE(x->end.gone_ms, y->end.gone_ms);
	if (x->end.ticket != y->end.ticket)
		return COMPARE(x->end.ticket, y->end.ticket);
	return COMPARE(x->end.attempt, y->end.attempt);
}

/* Slurm uses ids again: only an attempt that went on has a further one. */
static void number_attempts(struct cluster_ends *ends)
{
	for (size_t i = 1; i < ends->count; i++) {
		const struct cluster_end *before = &ends->list[i - 1];
		struct cluster_end *end = &ends->list[i];

		if (before->end.ticket == end->end.ticket && before->goes_on &&
			before->end.uid == end->end.uid &&
			strcmp(before->end.name, end->end.name) == 0)
			end->end.attempt = before->end.attempt + 1;
	}
}

int cluster_ends_read(
	char *text, const char *mark, int64_t now_ms, struct cluster_ends *ret)
{
	char *fields[END_FIELDS];
	size_t line = 0;
	int count;

	while ((count = next_line(&text, mark, fields)) >= 0) {
		struct cluster_end *list;

		line++;
		/* a line feed in the name goes on in lines that have no fields */
		if (count < END_FIELDS)
			continue;
		if (ret->count == CLUSTER_ENDS_MAX)
			return -E2BIG;
		list = array_grow(ret->list, sizeof(*list), ret->count, &ret->room);
		if (!list)
			return -ENOMEM;
		ret->list = list;
		if (!read_end(fields, now_ms, &list[ret->count]))
			continue;
		list[ret->count++].line = line;
	}
	if (!ret->count)
		return 0;
	qsort(ret->list, ret->count, sizeof(*ret->list), compare_attempts);
	number_attempts(ret);
	qsort(ret->list, ret->count, sizeof(*ret->list), compare_ends);
	return 0;
}

/* --- the question ------------------------------------------------------------------ */

/* Appends --NAME=TIME, as local time, which is how sacct reads it. */
static void add_time(struct slurm_words *words, const char *name, int64_t at_ms)
{
	time_t at = (time_t)(at_ms / 1000);
	struct tm local;
	char text[32];

	if (localtime_r(&at, &local) &&
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &local))
		slurm_words_addf(words, "--%s=%s", name, text);
}

static void add_question(struct slurm_words *words, const struct ended_question *question,
	const struct slurm_mark *mark)
{
	slurm_words_add(words, "sacct");
	slurm_words_add(words, "-X");
	slurm_words_add(words, "-n");
	slurm_words_add(words, "-P");
	slurm_words_add(words, "-D"); /* each attempt of a job */
	slurm_words_addf(words, "--delimiter=%s", mark->text);
	slurm_words_add(words, "-o");
	slurm_words_add(words, FIELDS);
	add_time(words, "starttime", max_i64(1000, question->from_ms));
	if (question->until_ms < INT64_MAX)
		add_time(words, "endtime", question->until_ms + 1000);
	if (question->ids)
		slurm_words_addf(words, "--jobs=%s", question->ids);
	if (question->user)
		slurm_words_addf(words, "--user=%s", question->user);
	else
		slurm_words_add(words, "--allusers");
}

static int refuse(const struct answer *answer, const char *wanted_by)
{
	bool has_none = strstr(answer->error, "accounting storage is disabled") != NULL;

	if (!wanted_by) {
		verbose("sacct has failed with status %d: %s", answer->status,
			answer->error);
		return 0;
	}
	if (has_none)
		diag("%s needs the accounting of the cluster (slurmdbd), which is not set "
		     "up; ask its administrator",
			wanted_by);
	else
		diag("sacct has failed with status %d%s%s", answer->status,
			answer->error[0] ? ": " : "", answer->error);
	return EXIT_MISUSE;
}

int cluster_ends_ask(const struct ended_question *question, struct cluster_ends *ret)
{
	struct slurm_words words = { .count = 0 };
	struct slurm_mark mark = slurm_mark();
	struct answer answer;
	int r;

	*ret = CLUSTER_ENDS_NONE;
	if (question->from_ms >= min_i64(question->until_ms, clock_real_ms()))
		return 0; /* sacct refuses such a time */
	add_question(&words, question, &mark);
	r = slurm_ask(&words, -1, question->deadline_ms, &answer);
	if (r != 0)
		return r;
	if (answer.status != 0) {
		r = refuse(&answer, question->wanted_by);
	} else if (answer.text) {
		r = cluster_ends_read(answer.text, mark.text, clock_real_ms(), ret);
		if (r == -E2BIG)
			diag("more than %d jobs ran in this time; give a later --since",
				CLUSTER_ENDS_MAX);
		else if (r < 0)
			diag("%s", strerror(-r));
		r = r < 0 ? EXIT_MISUSE : 0;
	}
	answer_release(&answer);
	if (r != 0)
		cluster_ends_release(ret);
	return r;
}

void cluster_ends_release(struct cluster_ends *ends)
{
	free(ends->list);
	*ends = CLUSTER_ENDS_NONE;
}
