#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "diag.h"
#include "fdio.h"
#include "models.h"
#include "need.h"
#include "userfile.h"

static int read_table(const char *path, struct model_table *ret, struct why *why)
{
	static char text[MODELS_BYTES_MAX];
	const char *reason = NULL;
	/* a FIFO is refused, not waited for */
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
		why_set(why, "cannot read models '%s': %s", path, reason);
		return r < 0 ? r : -EINVAL;
	}
	*ret = (struct model_table){
		.file = path, .text = text, .size = size, .line = 1
	};
	return models_check(ret, why);
}

static void apply(struct settings *settings, const struct model_need *need)
{
	/* who names GPUs has said how many */
	if (settings->gpu_ids && settings->gpus != need->gpus)
		return;
	settings->gpus = need->gpus;
	settings->share_percent = settings->exclusive ? 0 : need->share_percent;
	/* what was there was raised for want of memory in an earlier run: batch_settings() */
	if (settings->vram_mib < need->vram_mib)
		settings->vram_mib = need->vram_mib;
}

/* The model that the command names; NULL: none.  @out is room for it. */
static const char *named_model(
	const struct settings *settings, const char *option, char out[MODELS_VALUE_SIZE])
{
	if (!settings->line)
		return models_option_value(settings->command, option);
	return models_line_value(settings->line, option, out) ? out : NULL;
}

int need_check(const struct settings *settings, struct why *why)
{
	char path[PATH_MAX];
	struct text text = TEXT_ON(path);
	struct model_table table;

	if (!settings->models)
		return 0;
	if (settings->chdir && settings->models[0] != '/')
		text_addf(&text, "%s/", settings->chdir);
	text_add(&text, settings->models);
	if (text.cut) {
		why_set(why, "the name of the file of models is too long");
		return -ENAMETOOLONG;
	}
	return read_table(path, &table, why);
}

int need_from_model(
	struct settings *settings, const struct context *context, struct why *why)
{
	struct model_table table = context->config.models;
	char value[MODELS_VALUE_SIZE];
	struct model_need need;
	const char *name;
	int r = settings->models ? read_table(settings->models, &table, why) : 0;

	if (r < 0 || settings->need_given)
		return r;
	name = named_model(settings, context->config.model_option, value);
	if (!name)
		return 0;
	r = models_find(&table, name, &need, why);
	if (r == MODELS_UNKNOWN) {
		verbose("the table of models has no '%s'", name);
		return 0;
	}
	if (r == 0)
		apply(settings, &need);
	return r;
}
