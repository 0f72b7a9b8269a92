#include "cancel_choice.h"
#include "parse.h"

struct cancel_choice cancel_choice_of(const struct operand *operand, uint32_t uid)
{
	struct cancel_choice choice = {
		.uid = uid, .first = operand->first, .last = operand->last
	};

	if (!operand->word)
		return choice;
	choice.kind = CHOICE_NAME;
	(void)snprintf(choice.name, sizeof(choice.name), "%.*s", (int)operand->word_size,
		operand->word);
	if (strcmp(choice.name, "mine") == 0)
		choice.kind = CHOICE_MINE;
	else if (strcmp(choice.name, "all") == 0)
		choice.kind = CHOICE_ALL;
	return choice;
}

bool cancel_choice_admits(const struct cancel_choice *choice, const struct live_job *job)
{
	bool is_root = choice->uid == 0, is_own = job->uid == choice->uid;

	switch (choice->kind) {
	case CHOICE_MINE:
		return is_own;
	case CHOICE_ALL:
		return is_root;
	case CHOICE_NAME:
		return (is_own || is_root) && !job->cut_hash &&
		       strcmp(job->name, choice->name) == 0;
	case CHOICE_RANGE:
		break;
	}
	return (is_own || is_root) && job->id >= choice->first && job->id <= choice->last;
}

bool cancel_choice_doubts(const struct cancel_choice *choice, const struct live_job *job)
{
	return choice->kind == CHOICE_NAME && job->cut_hash &&
	       (job->uid == choice->uid || choice->uid == 0) &&
	       job->cut_hash == job_name_hash(choice->name);
}

void cancel_choice_explain_doubt(
	const struct cancel_choice *choice, uint64_t id, struct why *why)
{
	why_set(why,
		"the whole name of job %llu cannot be read, and may be '%s'; "
		"give its id if you mean it",
		(unsigned long long)id, quote(choice->name).text);
}

void cancel_choice_explain_none(const struct cancel_choice *choice, struct why *why)
{
	bool is_root = choice->uid == 0;
	const char *whose = is_root ? "" : " of yours";

	switch (choice->kind) {
	case CHOICE_MINE:
		why_set(why, "no job of yours waits or runs");
		break;
	case CHOICE_ALL:
		why_set(why, is_root ? "no job waits or runs"
				     : "only root may cancel the jobs of all users; "
				       "--cancel mine cancels yours");
		break;
	case CHOICE_NAME:
		why_set(why, "no job%s named '%s' waits or runs; %s", whose,
			quote(choice->name).text,
			choice->name[strspn(choice->name, "0123456789-:")]
				? "--queue and --status show the jobs"
				: "an id is written 12, a range 3-12");
		break;
	case CHOICE_RANGE:
		why_set(why, "no job%s from %llu to %llu waits or runs", whose,
			(unsigned long long)choice->first,
			(unsigned long long)choice->last);
		break;
	}
}
