/* Who uses more of a GPU than he has said. */
#include "report.h"
#include "show_parts.h"

static void add_gpu(struct text *out, const struct view_gpu *gpu, bool is_first)
{
	text_addf(out, "%s%u", is_first ? "" : ",", gpu->index);
	if (gpu->instance >= 0)
		text_addf(out, ":%lld", (long long)gpu->instance);
}

/* The lease of job @ticket on @gpu, where it uses too much; NULL: none. */
static const struct view_holder *find_excess(const struct view_gpu *gpu, uint64_t ticket)
{
	for (size_t i = 0; i < gpu->holder_count; i++)
		if (gpu->holders[i].ticket == ticket && gpu->holders[i].is_over_declared)
			return &gpu->holders[i];
	return NULL;
}

/* @holder is on GPU @first of @view, and on none before it. */
static void print_one(const struct view *view, size_t first,
	const struct view_holder *holder, const struct table_style *style, FILE *out)
{
	char line[1024];
	struct text text = TEXT_ON(line);
	unsigned count = 0;

	for (size_t i = first; i < view->gpu_count; i++)
		count += find_excess(&view->gpus[i], holder->ticket) != NULL;
	text_addf(&text, "job %llu (%s) uses ", (unsigned long long)holder->ticket,
		holder->user);
	report_add_size(holder->peak_mib, &text);
	/* the lease does not say on which of them */
	text_add(&text, count == 1 ? " on GPU " : " on one of GPU ");
	count = 0;
	for (size_t i = first; i < view->gpu_count; i++)
		if (find_excess(&view->gpus[i], holder->ticket))
			add_gpu(&text, &view->gpus[i], count++ == 0);
	text_add(&text, ", declared ");
	report_add_size(holder->need.mib, &text);
	line_print(line, style, out);
}

/* The first place from (*@gpu, *@at) on where a job is that uses too much, on its first GPU. */
static const struct view_holder *next_excess(
	const struct view *view, size_t *gpu, size_t *at)
{
	for (; *gpu < view->gpu_count; ++*gpu, *at = 0) {
		const struct view_gpu *on = &view->gpus[*gpu];

		while (*at < on->holder_count) {
			const struct view_holder *holder = &on->holders[(*at)++];
			bool is_told = !holder->is_over_declared;

			for (size_t before = 0; before < *gpu && !is_told; before++)
				is_told =
					find_excess(&view->gpus[before], holder->ticket);
			if (!is_told)
				return holder;
		}
	}
	return NULL;
}

void show_excess(const struct view *view, const struct table_style *style, FILE *out)
{
	const struct view_holder *holder;
	size_t gpu = 0, at = 0;

	while ((holder = next_excess(view, &gpu, &at)))
		print_one(view, gpu, holder, style, out);
}

void member_excess(struct json *json, const struct view *view)
{
	const struct view_holder *holder;
	size_t gpu = 0, at = 0;

	json_key(json, "over_declared");
	json_begin_array(json);
	while ((holder = next_excess(view, &gpu, &at)))
		json_unsigned(json, holder->ticket);
	json_end(json);
}
