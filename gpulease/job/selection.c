#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "gpu_order.h"
#include "instance.h"
#include "inventory.h"
#include "namespaces.h"
#include "parse.h"
#include "request.h"
#include "job_step.h"
#include "own_limits.h"
#include "selection.h"
#include "wait_reason.h"

/* --- which GPUs it may have -------------------------------------------------------- */

/* A selection under way: each wish in turn removes GPUs from ->left. */
struct selection {
	const struct run_request *asked;
	const struct snapshot *view;
	const struct lease *around; /* the lease that a step belongs to; else NULL */
	uint64_t margin_mib;
	const struct slurm_allocation *allocation; /* bounds the GPUs; NULL: none */
	struct gpuset left;
	struct why why; /* of a list that names an unknown GPU */
};

/* Reads the GPUs that a list names.  Returns 0, or a negative errno with ->why. */
static int selection_read_list(
	struct selection *selection, const char *list, struct gpuset *ret)
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
	int r = selection_read_list(selection, list, &named);

	selection->left = gpuset_and(&selection->left, &named);
	return r;
}

static int drop_named(struct selection *selection, const char *list)
{
	struct gpuset named;
	int r = selection_read_list(selection, list, &named);

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

/* Cards have up to 7 % less memory than they are sold with: 15360 MiB for 16 GB. */
static int keep_card_size(struct selection *selection, const char *unused)
{
	uint64_t mib = selection->asked->min_vram_mib;

	(void)unused;
	keep_size(selection, mib - mib * 7 / 100);
	return 0;
}

/* Keeps the GPUs on which the lease around a step has the memory that the step declares. */
static void keep_leased(struct selection *selection)
{
	struct need need = lease_need(selection->around);
	const struct plan_gpu *plan = selection->view->plan;

	gpuset_for_each (slot, &selection->left)
		if (need_mib(&need, plan[slot].total_mib) < selection->asked->vram_mib)
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
		selection->asked->vram_mib +
			(selection->asked->exclusive ? 0 : selection->margin_mib));
	return 0;
}

static int keep_visible(struct selection *selection, const char *list)
{
	struct gpuset named = inventory_by_visible(selection->view, list);

	selection->left = gpuset_and(&selection->left, &named);
	return 0;
}

/*
 * Keeps the GPUs of the Slurm allocation.  Slurm numbers all GPUs of the node.  A process that sees
 * exactly as many GPUs as it was given sees only these, numbered from 0: then all are kept.
 */
static int keep_allocated(struct selection *selection, const char *list)
{
	char visible[SLURM_GPUS_SIZE];
	unsigned count = slurm_read_gpus(list, visible);

	if (count && count == selection->view->probe.gpu_count)
		return 0;
	return keep_visible(selection, count ? visible : list);
}

/* One wish: the option, its value ("" or NULL: not given), and what applies it. */
struct wish {
	const char *name, *value;
	int (*apply)(struct selection *selection, const char *value);
};

enum { WISHES = 7 };

/* Returns what bounds the GPUs apart from the command line: the environment, or an allocation. */
static struct wish environment_wish(const struct slurm_allocation *allocation)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (!allocation || (visible && visible[0]))
		return (struct wish){ "CUDA_VISIBLE_DEVICES", visible, keep_visible };
	return (struct wish){ allocation->gpus_by, allocation->gpus, keep_allocated };
}

static void list_wishes(const struct run_request *request,
	const struct slurm_allocation *allocation, char sizes[2][MIB_TEXT_SIZE],
	struct wish wishes[WISHES])
{
	const uint64_t asked[] = { request->min_vram_mib, request->vram_mib };
	unsigned count = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct text size = TEXT_ON(sizes[i]);

		if (asked[i])
			explain_size(asked[i], true, &size);
	}
	wishes[count++] = (struct wish){ "--gpu-ids", request->gpu_ids, keep_named };
	wishes[count++] = (struct wish){ "--allow", request->allow, keep_named };
	wishes[count++] = (struct wish){ "--except", request->except, drop_named };
	wishes[count++] = (struct wish){ "model", request->model, keep_model };
	wishes[count++] = (struct wish){ "--min-vram", sizes[0], keep_card_size };
	wishes[count++] = (struct wish){ "--vram", sizes[1], keep_declared };
	wishes[count++] = environment_wish(allocation);
}

static bool wish_is_given(const struct wish *wish)
{
	return wish->value && wish->value[0];
}

/* --- refusals ---------------------------------------------------------------------- */

static void refuse_without_gpus(const struct snapshot *view)
{
	const char *trouble = "nvidia-smi did not answer";

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists && gpu_is_parent(view, &view->gpus[slot]))
			trouble =
				"MIG is enabled, but there is no MIG instance; create one";
	if (view->probe.trouble.text[0])
		trouble = view->probe.trouble.text;
	diag("no GPU is known: %s", trouble);
}

/* Refuses a request for more GPUs than the machine has, whatever the other wishes are. */
static int check_machine(const struct selection *selection)
{
	const struct snapshot *view = selection->view;
	struct gpuset all = inventory_all(view);
	unsigned wants = selection->asked->gpus;
	unsigned has = inventory_count_for(view, &all, wants);

	if (gpuset_is_empty(&all)) {
		refuse_without_gpus(view);
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

/*
 * --gpu-ids means exactly these GPUs: refuses a list of which not every item is one leasable GPU.
 */
static int check_exact(const struct selection *selection)
{
	unsigned wants = selection->asked->gpus, has = gpuset_count(&selection->left);

	if (has == wants)
		return 0;
	diag("--gpu-ids %s names %u GPU%s that can be leased, not %u: name each GPU once, and "
	     "a GPU with MIG enabled by one of its instances, as in 0:1",
		quote(selection->asked->gpu_ids).text, has, has == 1 ? "" : "s", wants);
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

/* Appends "; the largest has 80G, of which 0.5G stay free", if the wish is about memory. */
static void add_largest(const struct selection *selection, const struct wish *wish,
	const struct gpuset *of, struct text *out)
{
	uint64_t largest = largest_mib(selection->view, of);
	uint64_t margin_mib = selection->asked->exclusive ? 0 : selection->margin_mib;

	if (wish->apply != keep_card_size &&
		(wish->apply != keep_declared || selection->around))
		return;
	text_add(out, largest ? "; the largest has " : "; their size is not known");
	if (!largest)
		return;
	explain_size(largest, false, out);
	if (wish->apply != keep_declared || !margin_mib)
		return;
	text_add(out, ", of which ");
	explain_size(margin_mib, true, out);
	text_add(out, " stay free");
}

/* Prints which wish leaves too few of the GPUs @before. */
static int refuse_wish(
	const struct selection *selection, const struct wish *wish, struct gpuset before)
{
	unsigned wants = selection->asked->gpus;
	unsigned left = inventory_count_for(selection->view, &selection->left, wants);
	char words[192];
	struct text text = TEXT_ON(words);

	if (left == 0)
		text_add(&text, "none");
	else
		text_addf(&text, "only %u", left);
	text_addf(&text, " of %u", gpuset_count(&before));
	if (selection->around)
		text_addf(&text, " of the lease around this step (job %llu)",
			(unsigned long long)lease_job(selection->around));
	add_largest(selection, wish, &before, &text);
	if (wish->apply == keep_visible && !selection->allocation)
		text_add(&text, "; unset it to have all GPUs");
	if (left < gpuset_count(&selection->left))
		text_add(&text, "; CUDA sees one MIG instance at a time");
	diag("cannot %s %u GPU%s: %s %s leaves %s", selection->around ? "use" : "lease",
		wants, wants == 1 ? "" : "s", wish->name, quote(wish->value).text, words);
	return EXIT_MISUSE;
}

/* Applies all wishes in order.  Returns 0, or EXIT_MISUSE once one leaves too few GPUs. */
static int selection_apply(struct selection *selection)
{
	struct wish wishes[WISHES];
	char sizes[2][MIB_TEXT_SIZE];
	int r = selection->around ? 0 : check_machine(selection);

	list_wishes(selection->asked, selection->allocation, sizes, wishes);
	/* gpulease has set this to the GPUs of the step or task around; another job has others */
	if (selection->around)
		wishes[WISHES - 1] = (struct wish){ "GPULEASE_UUIDS",
			selection->asked->job ? NULL : getenv("GPULEASE_UUIDS"),
			keep_visible };
	for (unsigned i = 0; i < WISHES && r == 0; i++) {
		struct gpuset before = selection->left;

		if (!wish_is_given(&wishes[i]))
			continue;
		if (wishes[i].apply(selection, wishes[i].value) < 0) {
			diag("%s: %s", wishes[i].name, selection->why.text);
			return EXIT_MISUSE;
		}
		/* a value that names no GPU of the lease is not gpulease's */
		if (i == WISHES - 1 && selection->around &&
			gpuset_count(&selection->left) == 0)
			selection->left = before;
		if (i == 0 && !selection->around)
			r = check_exact(selection);
		if (r == 0 && inventory_count_for(selection->view, &selection->left,
				      selection->asked->gpus) < selection->asked->gpus)
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

/* Refuses a request that exceeds a limit of the configuration even on an idle machine. */
static int check_limits(const struct request *request, const struct config *config)
{
	struct plan_limits limits = request_limits(config);
	const struct ticket ticket = { .owner.uid = namespaces_own_user(),
		.request = *request };
	struct plan_row row = plan_row_of(0, &ticket);
	char by[256];
	struct text source = TEXT_ON(by);
	bool is_own;
	struct quota_excess excess;
	struct quota quota;

	quota_begin(&quota, &limits, NULL, 0);
	if (!quota_forbids(&quota, &row, NULL, &excess))
		return 0;
	is_own = excess.kind == LIMIT_USER_GPUS     ? row.most_percent
		 : excess.kind == LIMIT_USER_LEASES ? row.most_leases
						    : false;
	own_limits_add_source(
		excess.line, is_own ? "[limits]" : limit_keys[excess.kind], &source);
	diag("cannot lease %u GPU%s: %s allows %u at once", request->gpus,
		request->gpus == 1 ? "" : "s", by,
		excess.kind == LIMIT_USER_GPUS || excess.kind == LIMIT_ALL_GPUS
			? excess.most / WHOLE_PERCENT
			: excess.most);
	return EXIT_MISUSE;
}

/* --- the choice -------------------------------------------------------------------- */

/*
 * Writes the first slots of the list to @out in its order, two hex digits each.  Returns 0, or a
 * negative errno with ->why.
 */
static int selection_read_preference(
	struct selection *selection, const char *list, char out[PREFER_SIZE])
{
	struct text text = text_on(out, PREFER_SIZE);
	struct gpu_order order;
	int r = gpu_order_read(selection->view, list, &order, &selection->why);

	for (unsigned i = 0; i < order.count; i++)
		text_addf(&text, "%02x", order.slots[i]);
	return r;
}

/*
 * Sets the order of preference: --prefer-gpus, or prefer of the configuration, which may name GPUs
 * that this machine does not have.
 */
static int selection_prefer(
	struct selection *selection, const struct config *config, struct request *request)
{
	const char *list = selection->asked->prefer;

	if (list && selection_read_preference(selection, list, request->prefer) < 0) {
		diag("--prefer-gpus: %s", selection->why.text);
		return EXIT_MISUSE;
	}
	if (!list && config->prefer[0] &&
		selection_read_preference(selection, config->prefer, request->prefer) < 0)
		verbose("prefer in the configuration: %s", selection->why.text);
	return 0;
}

/* Writes "limited to GPU 0 by CUDA_VISIBLE_DEVICES", if the environment bounds the choice. */
static void selection_describe_bound(
	const struct selection *selection, char limited[LIMITED_SIZE])
{
	const struct wish bound = environment_wish(selection->allocation);
	struct text text = text_on(limited, LIMITED_SIZE);
	const char *between = gpuset_count(&selection->left) == 1 ? "GPU " : "GPUs ";

	if (!wish_is_given(&bound))
		return;
	text_add(&text, "limited to ");
	gpuset_for_each (slot, &selection->left) {
		text_addf(&text, "%s%s", between,
			snapshot_gpu_name(selection->view, (unsigned)slot).text);
		between = ",";
	}
	text_addf(&text, " by %s", bound.name);
}

/* Whether the choice needs to know the GPUs. */
static bool has_wishes(const struct run_request *request,
	const struct slurm_allocation *allocation, const struct config *config)
{
	struct wish wishes[WISHES];
	char sizes[2][MIB_TEXT_SIZE];

	list_wishes(request, allocation, sizes, wishes);
	for (unsigned i = 0; i < WISHES; i++)
		if (wish_is_given(&wishes[i]))
			return true;
	return request->prefer || config->prefer[0];
}

int selection_choose(const struct run_request *asked, const struct context *context,
	struct broker *broker, struct request *request, char limited[LIMITED_SIZE])
{
	struct selection selection = {
		.asked = asked,
		.view = &broker->view,
		.margin_mib = context->usage.margin_mib,
		.allocation = context->has_allocation ? &context->allocation : NULL,
		.left = inventory_all(&broker->view),
	};
	bool is_bound = has_wishes(asked, selection.allocation, &context->config);
	int64_t patience_ms = context_patience_ms(context);
	int r;

	limited[0] = '\0';
	if (!context->prober.nvidia_smi && !context->settings->machine.sim_gpus)
		return context_no_gpus();
	if (is_bound || inventory_count_for(&broker->view, &selection.left, asked->gpus) <
				asked->gpus) {
		if (broker_probe(broker, clock_boot_ms() + patience_ms) < 0) {
			diag("cannot read the state in '%s'", context->dir.path);
			return EXIT_MISUSE;
		}
		selection.left = inventory_all(&broker->view);
	}
	r = selection_apply(&selection);
	if (r == 0)
		r = check_limits(request, &context->config);
	if (r == 0)
		r = selection_prefer(&selection, &context->config, request);
	if (r != 0)
		return r;
	if (is_bound)
		request->allow = selection.left;
	selection_describe_bound(&selection, limited);
	return 0;
}

int selection_choose_step(const struct run_request *asked, const struct snapshot *view,
	const struct lease *around, struct gpu_order *ret, unsigned *ret_wanted)
{
	struct selection selection = {
		.asked = asked, .view = view, .around = around, .left = around->gpus
	};
	unsigned has = gpuset_count(&around->gpus);
	int r;

	if (asked->gpus_given && asked->gpus > has) {
		diag("cannot use %u GPUs: the lease around this step (job %llu) has %u",
			asked->gpus, (unsigned long long)lease_job(around), has);
		return EXIT_MISUSE;
	}
	r = selection_apply(&selection);
	if (r != 0)
		return r;
	*ret = gpu_order_of(view, &selection.left, job_step_order(asked));
	*ret_wanted = asked->gpus_given || asked->gpu_ids ? asked->gpus : ret->count;
	return 0;
}
