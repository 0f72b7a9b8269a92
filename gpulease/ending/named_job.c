#include "cancel_choice.h"
#include "diag.h"
#include "exitcodes.h"
#include "named_job.h"
#include "namespaces.h"
#include "parse.h"
#include "shared_state.h"
#include "slurm_program.h"

/* What a word has chosen so far. */
struct naming {
	struct cancel_choice choice;
	uint64_t first,
		last;      /* the first job, and the last that is another one; 0: none */
	uint64_t doubtful; /* a job that the word may mean */
};

/* Notes @job, which may come twice, if the word chooses it. */
static int naming_note(void *arg, const struct live_job *job)
{
	struct naming *naming = arg;

	if (cancel_choice_doubts(&naming->choice, job))
		naming->doubtful = job->id;
	if (!cancel_choice_admits(&naming->choice, job) || job->id == naming->first)
		return 0;
	*(naming->first ? &naming->last : &naming->first) = job->id;
	return 0;
}

int named_job_find(const struct context *context, struct queue *queue,
	const struct snapshot *view, struct operand *operand)
{
	struct naming naming = { .choice = cancel_choice_of(
					 operand, namespaces_own_user()) };
	struct why why;
	int r;

	if (!operand->word)
		return 0;
	naming.choice.kind = CHOICE_NAME; /* `mine` and `all` are no words here */
	r = live_jobs_each(queue, view, naming_note, &naming);
	if (r != 0)
		return shared_state_report(context, r);
	operand->first = naming.first;
	if (naming.first && !naming.last && !naming.doubtful)
		return 0;
	if (!naming.first && !naming.doubtful)
		slurm_program_ask(naming.choice.name);
	if (naming.doubtful)
		cancel_choice_explain_doubt(&naming.choice, naming.doubtful, &why);
	else if (naming.first)
		why_set(&why, "'%s' means several jobs, as %llu and %llu; give an id",
			quote(naming.choice.name).text, (unsigned long long)naming.first,
			(unsigned long long)naming.last);
	else
		cancel_choice_explain_none(&naming.choice, &why);
	diag("%s", why.text);
	return EXIT_NOT_DONE;
}
