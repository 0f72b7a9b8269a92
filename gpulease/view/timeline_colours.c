#include "timeline_colours.h"

const struct timeline_colour timeline_colours[TIMELINE_COLOURS] = {
	{ "#e69f00", "#e69f00", 214, false },
	{ "#56b4e9", "#56b4e9", 74, false },
	{ "#009e73", "#12b886", 36, false },
	{ "#0072b2", "#3a8fd0", 25, true },
	{ "#d55e00", "#e8702a", 166, false },
	{ "#cc79a7", "#cc79a7", 175, false },
	{ "#f0e442", "#f0e442", 227, false },
	[TIMELINE_GREY] = { "#8a8a8a", "#9a9a9a", 246, false },
};

unsigned timeline_hue(size_t place)
{
	return place < TIMELINE_REST ? (unsigned)(place % TIMELINE_HUES) : TIMELINE_GREY;
}

enum timeline_pattern timeline_pattern(size_t place)
{
	if (place >= TIMELINE_REST)
		return PATTERN_NONE;
	return (enum timeline_pattern)(place / TIMELINE_HUES);
}
