#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "diag.h"
#include "fdio.h"
#include "models.h"
#include "model_need.h"
#include "userfile.h"

static int model_need_read_table(
	const char *path, struct model_table *ret, struct why *why)
{
	static char text[MODELS_BYTES_MAX];
	const char *reason = NULL;
	/* O_NONBLOCK: open() of a FIFO would wait for a writer; it is refused below */
	autofd int fd = userfile_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	size_t size = 0;
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !S_ISREG(st.st_mode))
		reason = "it is not a regular file";
	else if (r == 0 && st.st_size > MODELS_BYTES_MAX)
		reason = "it is bigger than 64 KiB";
	else if (r == 0)
		r = fdio_pread(fd, text, sizeof(text), 0, &size);
	if (r < 0)
		reason = strerror(-r);
	if (reason) {
		why_set(why, "cannot read the models in '%s': %s", path, reason);
		return r < 0 ? r : -EINVAL;
	}
	*ret = (struct model_table){
		.file = path, .text = text, .size = size, .line = 1
	};
	return models_check(ret, why);
}

/* Copies @need to @request. */
static void model_need_copy(struct run_request *request, const struct model_need *need)
{
	/* the number of GPUs that --gpu-ids names decides */
	if (request->gpu_ids && request->gpus != need->gpus)
		return;
	request->gpus = need->gpus;
	request->share_percent = request->exclusive ? 0 : need->share_percent;
	/* batch_settings() has set more if an attempt in an earlier run was out of memory */
	if (request->vram_mib < need->vram_mib)
		request->vram_mib = need->vram_mib;
}

/* Returns the model that the command names; NULL: none.  May use @out to hold it. */
static const char *model_need_find_name(const struct run_environment *environment,
	const char *option, char out[MODELS_VALUE_SIZE])
{
	if (!environment->line)
		return models_option_value(environment->command, option);
	return models_line_value(environment->line, option, out) ? out : NULL;
}

int model_need_check(const char *models, const char *folder, struct why *why)
{
	char path[PATH_MAX];
	struct text text = TEXT_ON(path);
	struct model_table table;

	if (!models)
		return 0;
	if (folder && models[0] != '/')
		text_addf(&text, "%s/", folder);
	text_add(&text, models);
	if (text.cut) {
		why_set(why, "--models: the path of the file is too long");
		return -ENAMETOOLONG;
	}
	return model_need_read_table(path, &table, why);
}

int model_need_apply(struct run_request *request,
	const struct run_environment *environment, const struct context *context,
	struct why *why)
{
	struct model_table table = context->config.models;
	char value[MODELS_VALUE_SIZE];
	struct model_need need;
	const char *name;
	int r = request->models ? model_need_read_table(request->models, &table, why) : 0;

	if (r < 0 || request->need_given)
		return r;
	name = model_need_find_name(environment, context->config.model_option, value);
	if (!name) {
		/* with --batch, other lines may name one */
		if (request->models && !environment->line)
			note("--models has no effect: the command has no %s MODEL",
				context->config.model_option);
		return 0;
	}
	r = models_find(&table, name, &need, why);
	if (r == MODELS_UNKNOWN) {
		verbose("the table of models has neither '%s' nor a default", name);
		return 0;
	}
	if (r == 0)
		model_need_copy(request, &need);
	return r;
}
