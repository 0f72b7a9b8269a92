#include <errno.h>

#include "own_thresholds.h"
#include "parse.h"

static const struct threshold {
	enum config_key key;
	bool is_floor; /* a larger value is stricter */
} thresholds[OWN_THRESHOLDS] = {
	[OWN_MARGIN] = { CONFIG_MARGIN, true },
	[OWN_SPIKE_BUFFER] = { CONFIG_SPIKE_BUFFER, true },
	[OWN_IDLE_THRESHOLD] = { CONFIG_IDLE_THRESHOLD, false },
	[OWN_TOLERANCE] = { CONFIG_TOLERANCE, false },
};

static uint64_t threshold_value(const struct config *config, enum config_key key)
{
	switch (key) {
	case CONFIG_MARGIN:
		return config->margin_mib;
	case CONFIG_SPIKE_BUFFER:
		return config->spike_buffer_percent;
	case CONFIG_TOLERANCE:
		return config->tolerance_percent;
	default:
		return config->idle.percent ? config->idle.percent : config->idle.mib;
	}
}

/* Reads one value.  Returns 0, or -EINVAL with the message in @why. */
static int threshold_apply(const struct threshold *threshold, const char *value,
	struct config *config, struct why *why)
{
	const char *name = config_key_name(threshold->key);
	struct config machine = *config;
	struct why reason = WHY_NONE;
	char of_machine[64];
	struct text text = TEXT_ON(of_machine);
	uint64_t own, most;

	if (config_set(config, threshold->key, value, &reason) < 0) {
		why_wrap(why, &reason, "--");
		return -EINVAL;
	}
	config_format(&machine, threshold->key, &text);
	if (!config->idle.percent != !machine.idle.percent) {
		why_set(why, "--%s: give a %s: this machine's is %s", name,
			machine.idle.percent ? "percentage" : "size", of_machine);
		return -EINVAL;
	}
	own = threshold_value(config, threshold->key);
	most = threshold_value(&machine, threshold->key);
	if (own == most || (own > most) == threshold->is_floor)
		return 0;
	why_set(why, "--%s %s is laxer than this machine's %s; give %s or %s", name,
		quote(value).text, of_machine, of_machine,
		threshold->is_floor ? "more" : "less");
	return -EINVAL;
}

int own_thresholds_apply(
	const struct run_request *request, struct config *config, struct why *why)
{
	int r = 0;

	for (unsigned i = 0; i < OWN_THRESHOLDS && r == 0; i++)
		if (request->thresholds[i])
			r = threshold_apply(
				&thresholds[i], request->thresholds[i], config, why);
	return r;
}
