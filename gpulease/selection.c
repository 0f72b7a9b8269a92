/* Which GPUs of this machine a job may have, by all that the command line says of them. */
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "instance.h"
#include "inventory.h"
#include "parse.h"
#include "request.h"
#include "step.h"

/* --- which GPUs it may have -------------------------------------------------------- */

/* Under way: what is left of the GPUs of this machine, one wish after the other. */
struct selection {
	const struct settings *settings;
	const struct snapshot *view;
	const struct lease *around; /* of a step; else NULL */
	uint64_t margin_mib;
	const struct allocation *allocation; /* that bounds them; else NULL */
	struct gpuset left;
	struct why why;
};

/* The slots that a list names.  0, or -ENOENT with ->why. */
static int read_list(struct selection *selection, const char *list, struct gpuset *ret)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_GPU);
	struct operand operand;
	int r;

	*ret = GPUSET_NONE;
	while ((r = operand_next(&walk, &operand, &selection->why)) == 0) {
		r = inventory_by_operand(selection->view, &operand, ret, &selection->why);
		if (r < 0)
			return r;
	}
	return r == OPERAND_DONE ? 0 : r;
}

static int keep_named(struct selection *selection, const char *list)
{
	struct gpuset named;
	int r = read_list(selection, list, &named);

	selection->left = gpuset_and(&selection->left, &named);
	return r;
}

static int drop_named(struct selection *selection, const char *list)
{
	struct gpuset named;
	int r = read_list(selection, list, &named);

	selection->left = gpuset_minus(&selection->left, &named);
	return r;
}

static int keep_model(struct selection *selection, const char *model)
{
	struct gpuset named = inventory_by_model(selection->view, model);

	selection->left = gpuset_and(&selection->left, &named);
	return 0;
}

static void keep_size(struct selection *selection, uint64_t least_mib)
{
	gpuset_for_each (slot, &selection->left)
		if (selection->view->plan[slot].total_mib < least_mib)
			gpuset_remove(&selection->left, (unsigned)slot);
}

/* Cards have up to 7 % less than they are sold with: 15360 MiB for 16 GB. */
static int keep_card_size(struct selection *selection, const char *unused)
{
	uint64_t mib = selection->settings->min_vram_mib;

	(void)unused;
	keep_size(selection, mib - mib * 7 / 100);
	return 0;
}

/* A step has what the lease is counted with, and takes nothing more. */
static void keep_leased(struct selection *selection)
{
	struct need need = lease_need(selection->around);
	const struct plan_gpu *plan = selection->view->plan;

	gpuset_for_each (slot, &selection->left)
		if (need_mib(&need, plan[slot].total_mib) < selection->settings->vram_mib)
			gpuset_remove(&selection->left, (unsigned)slot);
}

static int keep_declared(struct selection *selection, const char *unused)
{
	(void)unused;
	if (selection->around) {
		keep_leased(selection);
		return 0;
	}
	keep_size(selection,
		selection->settings->vram_mib +
			(selection->settings->exclusive ? 0 : selection->margin_mib));
	return 0;
}

static int keep_visible(struct selection *selection, const char *list)
{
	struct gpuset named = inventory_by_visible(selection->view, list);

	selection->left = gpuset_and(&selection->left, &named);
	return 0;
}

/*
 * Slurm numbers all GPUs of the node.  A process that sees as many GPUs as it was given sees these
 * GPUs only, numbered from 0.
 */
static int keep_allocated(struct selection *selection, const char *list)
{
	char visible[SLURM_GPUS_SIZE];
	unsigned count = slurm_read_gpus(list, visible);

	if (count && count == selection->view->probe.gpu_count)
		return 0;
	return keep_visible(selection, count ? visible : list);
}

/* One wish: its value, "" or NULL where it was not given, and what it keeps. */
struct wish {
	const char *name, *value;
	int (*apply)(struct selection *selection, const char *value);
};

enum { WISHES = 7 };

/* What bounds the GPUs beside the command line. */
static struct wish find_bound(const struct allocation *allocation)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (!allocation || (visible && visible[0]))
		return (struct wish){ "CUDA_VISIBLE_DEVICES", visible, keep_visible };
	return (struct wish){ allocation->gpus_by, allocation->gpus, keep_allocated };
}

static void list_wishes(const struct settings *settings,
	const struct allocation *allocation, char sizes[2][MIB_TEXT_SIZE],
	struct wish wishes[WISHES])
{
	unsigned count = 0;

	sizes[0][0] = sizes[1][0] = '\0';
	if (settings->min_vram_mib)
		format_mib(settings->min_vram_mib, sizes[0]);
	if (settings->vram_mib)
		format_mib(settings->vram_mib, sizes[1]);
	wishes[count++] = (struct wish){ "--gpu-ids", settings->gpu_ids, keep_named };
	wishes[count++] = (struct wish){ "--allow", settings->allow, keep_named };
	wishes[count++] = (struct wish){ "--except", settings->except, drop_named };
	wishes[count++] = (struct wish){ "model", settings->model, keep_model };
	wishes[count++] = (struct wish){ "--min-vram", sizes[0], keep_card_size };
	wishes[count++] = (struct wish){ "--vram", sizes[1], keep_declared };
	wishes[count++] = find_bound(allocation);
}

static bool is_given(const struct wish *wish)
{
	return wish->value && wish->value[0];
}

/* --- what can never be met --------------------------------------------------------- */

static void say_nothing_known(const struct snapshot *view)
{
	const char *trouble = "nvidia-smi did not answer";

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists && gpu_is_parent(view, &view->gpus[slot]))
			trouble = "MIG is enabled, but no instance is there";
	if (view->probe.trouble.text[0])
		trouble = view->probe.trouble.text;
	diag("no GPU is known: %s", trouble);
}

/* What the machine has is not enough, whatever else is wished for. */
static int check_machine(const struct selection *selection)
{
	const struct snapshot *view = selection->view;
	struct gpuset all = inventory_all(view);
	unsigned wants = selection->settings->gpus;
	unsigned has = inventory_count_for(view, &all, wants);

	if (gpuset_is_empty(&all)) {
		say_nothing_known(view);
		return EXIT_MISUSE;
	}
	if (has >= wants)
		return 0;
	if (has < gpuset_count(&all))
		diag("cannot lease %u GPUs: CUDA sees one MIG instance at a time, and there "
		     "%s %u GPU%s without MIG",
			wants, has == 1 ? "is only" : "are only", has,
			has == 1 ? "" : "s");
	else
		diag("cannot lease %u GPU%s: this machine has %u", wants,
			wants == 1 ? "" : "s", has);
	return EXIT_MISUSE;
}

/* Who asks for exactly these has to get as many as he names, each one that can be leased. */
static int check_exact(const struct selection *selection)
{
	unsigned wants = selection->settings->gpus, has = gpuset_count(&selection->left);

	if (has == wants)
		return 0;
	diag("--gpu-ids %s names %u that can be leased, not %u: one stands there twice, or "
	     "has MIG enabled and is leased by its instances, one at a time, as in 0:1",
		quote(selection->settings->gpu_ids).text, has, wants);
	return EXIT_MISUSE;
}

static uint64_t largest_mib(const struct snapshot *view, const struct gpuset *of)
{
	uint64_t largest = 0;

	gpuset_for_each (slot, of)
		if (view->plan[slot].total_mib > largest)
			largest = view->plan[slot].total_mib;
	return largest;
}

/* "; the largest has 80G, of which 512MiB stay free", where it is a matter of size. */
static void tell_largest(const struct selection *selection, const struct wish *wish,
	const struct gpuset *of, struct text *out)
{
	uint64_t largest = largest_mib(selection->view, of);
	uint64_t margin_mib = selection->settings->exclusive ? 0 : selection->margin_mib;
	char size[MIB_TEXT_SIZE];

	if (wish->apply != keep_card_size &&
		(wish->apply != keep_declared || selection->around))
		return;
	format_mib(largest, size);
	text_addf(out, largest ? "; the largest has %s" : "; their size is not known",
		size);
	if (!largest || wish->apply != keep_declared || !margin_mib)
		return;
	format_mib(margin_mib, size);
	text_addf(out, ", of which %s stay free", size);
}

static int refuse_wish(
	const struct selection *selection, const struct wish *wish, struct gpuset before)
{
	unsigned wants = selection->settings->gpus;
	unsigned left = inventory_count_for(selection->view, &selection->left, wants);
	char words[192];
	struct text text = TEXT_ON(words);

	if (left == 0)
		text_add(&text, "none");
	else
		text_addf(&text, "only %u", left);
	text_addf(&text, " of %u", gpuset_count(&before));
	if (selection->around)
		text_addf(&text, " of the lease around this step (ticket %llu)",
			(unsigned long long)lease_job(selection->around));
	tell_largest(selection, wish, &before, &text);
	if (left < gpuset_count(&selection->left))
		text_add(&text, "; CUDA sees one MIG instance at a time");
	diag("cannot %s %u GPU%s: %s %s leaves %s", selection->around ? "use" : "lease",
		wants, wants == 1 ? "" : "s", wish->name, quote(wish->value).text, words);
	return EXIT_MISUSE;
}

static int select_gpus(struct selection *selection)
{
	struct wish wishes[WISHES];
	char sizes[2][MIB_TEXT_SIZE];
	int r = selection->around ? 0 : check_machine(selection);

	list_wishes(selection->settings, selection->allocation, sizes, wishes);
	if (selection->around) /* whoever is within it has that from it */
		wishes[WISHES - 1].value = NULL;
	for (unsigned i = 0; i < WISHES && r == 0; i++) {
		struct gpuset before = selection->left;

		if (!is_given(&wishes[i]))
			continue;
		if (wishes[i].apply(selection, wishes[i].value) < 0) {
			diag("%s: %s", wishes[i].name, selection->why.text);
			return EXIT_MISUSE;
		}
		if (i == 0 && !selection->around)
			r = check_exact(selection);
		if (r == 0 &&
			inventory_count_for(selection->view, &selection->left,
				selection->settings->gpus) < selection->settings->gpus)
			r = refuse_wish(selection, &wishes[i], before);
	}
	return r;
}

static const char *const limit_keys[LIMIT_KINDS] = {
	[LIMIT_USER_GPUS] = "user-gpus",
	[LIMIT_USER_LEASES] = "user-jobs",
	[LIMIT_ALL_GPUS] = "all-gpus",
	[LIMIT_ALL_LEASES] = "all-jobs",
};

static int check_limits(const struct request *request, const struct config *config)
{
	struct plan_limits limits = request_limits(config);
	struct need need = request_need(request);
	struct quota_excess excess;
	struct quota quota;

	quota_begin(&quota, &limits, NULL, 0);
	if (!quota_forbids(&quota, getuid(), request->gpus, &need, &excess))
		return 0;
	diag("cannot lease %u GPUs: %s in the configuration allows %u at once",
		request->gpus, limit_keys[excess.kind],
		excess.kind == LIMIT_USER_GPUS || excess.kind == LIMIT_ALL_GPUS
			? excess.most / WHOLE_PERCENT
			: excess.most);
	return EXIT_MISUSE;
}

/* --- the choice -------------------------------------------------------------------- */

/* The slots of the list in its order, two digits each.  What is configured may be missing. */
static int read_preference(
	struct selection *selection, const char *list, char out[PREFER_SIZE])
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_GPU);
	struct text text = text_on(out, PREFER_SIZE);
	struct operand operand;
	int r;

	while ((r = operand_next(&walk, &operand, &selection->why)) == 0) {
		for (uint64_t index = operand.first; index <= operand.last; index++) {
			struct operand one = operand;
			struct gpuset named = GPUSET_NONE;

			one.first = one.last = index;
			r = inventory_by_operand(
				selection->view, &one, &named, &selection->why);
			if (r < 0)
				return r;
			gpuset_for_each (slot, &named)
				text_addf(&text, "%02x", (unsigned)slot);
			if (operand.uuid)
				break;
		}
	}
	return r == OPERAND_DONE ? 0 : r;
}

static int prefer(
	struct selection *selection, const struct config *config, struct request *request)
{
	const char *list = selection->settings->prefer;

	if (list && read_preference(selection, list, request->prefer) < 0) {
		diag("--prefer: %s", selection->why.text);
		return EXIT_MISUSE;
	}
	if (!list && config->prefer[0] &&
		read_preference(selection, config->prefer, request->prefer) < 0)
		verbose("prefer in the configuration: %s", selection->why.text);
	return 0;
}

/* "limited to GPU 0 by CUDA_VISIBLE_DEVICES" */
static void say_limited(const struct selection *selection, char limited[LIMITED_SIZE])
{
	const struct wish bound = find_bound(selection->allocation);
	struct text text = text_on(limited, LIMITED_SIZE);
	const char *between = gpuset_count(&selection->left) == 1 ? "GPU " : "GPUs ";

	if (!is_given(&bound))
		return;
	text_add(&text, "limited to ");
	gpuset_for_each (slot, &selection->left) {
		text_addf(&text, "%s%s", between,
			snapshot_gpu_name(selection->view, (unsigned)slot).text);
		between = ",";
	}
	text_addf(&text, " by %s", bound.name);
}

static bool has_wishes(const struct settings *settings,
	const struct allocation *allocation, const struct config *config)
{
	struct wish wishes[WISHES];
	char sizes[2][MIB_TEXT_SIZE];

	list_wishes(settings, allocation, sizes, wishes);
	for (unsigned i = 0; i < WISHES; i++)
		if (is_given(&wishes[i]))
			return true;
	return settings->prefer || config->prefer[0];
}

int request_choose(const struct settings *settings, const struct context *context,
	struct broker *broker, struct request *request, char limited[LIMITED_SIZE])
{
	struct selection selection = {
		.settings = settings,
		.view = &broker->view,
		.margin_mib = context->config.margin_mib,
		.allocation = context->has_allocation ? &context->allocation : NULL,
		.left = inventory_all(&broker->view),
	};
	bool is_bound = has_wishes(settings, selection.allocation, &context->config);
	int64_t patience_ms = context_patience_ms(context);
	int r;

	limited[0] = '\0';
	if (!context->prober.nvidia_smi && !settings->sim_gpus)
		return context_no_gpus();
	if (is_bound || inventory_count_for(&broker->view, &selection.left,
				settings->gpus) < settings->gpus) {
		if (broker_probe(broker, clock_boot_ms() + patience_ms) < 0) {
			diag("cannot read the state in '%s'", context->dir.path);
			return EXIT_MISUSE;
		}
		selection.left = inventory_all(&broker->view);
	}
	r = select_gpus(&selection);
	if (r == 0)
		r = check_limits(request, &context->config);
	if (r == 0)
		r = prefer(&selection, &context->config, request);
	if (r != 0)
		return r;
	if (is_bound)
		request->allow = selection.left;
	say_limited(&selection, limited);
	return 0;
}

int request_choose_step(const struct settings *settings, const struct snapshot *view,
	const struct lease *around, struct gpuset *ret)
{
	struct selection selection = {
		.settings = settings, .view = view, .around = around, .left = around->gpus
	};
	int r = select_gpus(&selection);

	if (r == 0)
		*ret = settings->gpus_given || settings->gpu_ids
			       ? step_first_gpus(&selection.left, settings->gpus)
			       : selection.left;
	return r;
}
