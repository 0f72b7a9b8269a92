#include <inttypes.h>

#include "parse.h"
#include "top_text.h"

/* --- columns --------------------------------------------------------------------- */

struct range {
	uint16_t from, to;
};

/* What terminals show in two columns although text_columns() counts one, in order. */
static const struct range wide[] = {
	{ 0x1100, 0x115f }, /* Hangul Jamo */
	{ 0x231a, 0x231b }, { 0x2329, 0x232a }, { 0x23e9, 0x23ec }, { 0x23f0, 0x23f0 },
	{ 0x23f3, 0x23f3 }, { 0x25fd, 0x25fe }, { 0x2614, 0x2615 }, { 0x2630, 0x2637 },
	{ 0x2648, 0x2653 }, { 0x267f, 0x267f }, { 0x268a, 0x268f }, { 0x2693, 0x2693 },
	{ 0x26a1, 0x26a1 }, { 0x26aa, 0x26ab }, { 0x26bd, 0x26be }, { 0x26c4, 0x26c5 },
	{ 0x26ce, 0x26ce }, { 0x26d4, 0x26d4 }, { 0x26ea, 0x26ea }, { 0x26f2, 0x26f3 },
	{ 0x26f5, 0x26f5 }, { 0x26fa, 0x26fa }, { 0x26fd, 0x26fd }, { 0x2705, 0x2705 },
	{ 0x270a, 0x270b }, { 0x2728, 0x2728 }, { 0x274c, 0x274c }, { 0x274e, 0x274e },
	{ 0x2753, 0x2755 }, { 0x2757, 0x2757 }, { 0x2795, 0x2797 }, { 0x27b0, 0x27b0 },
	{ 0x27bf, 0x27bf }, { 0x2b1b, 0x2b1c }, { 0x2b50, 0x2b50 }, { 0x2b55, 0x2b55 },
	{ 0x2e80, 0x2fff },                                         /* radicals */
	{ 0xf900, 0xfaff }, { 0xfe10, 0xfe19 }, { 0xfe30, 0xfe6f }, /* CJK forms */
	{ 0xff01, 0xff60 }, { 0xffe0, 0xffe6 },                     /* full width */
};

static bool is_wide(uint32_t point)
{
	for (size_t i = 0; i < ARRAY_SIZE(wide) && point >= wide[i].from; i++)
		if (point <= wide[i].to)
			return true;
	return false;
}

/* A character, or a byte that is none and becomes `?`. */
struct glyph {
	size_t size;
	unsigned columns;
	bool is_shown; /* false: `?` in its place */
};

static bool is_character(uint32_t point, uint32_t least)
{
	return point >= least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

static struct glyph glyph_at(const char *at, bool has_utf8)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = { { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 } };
	unsigned char first = (unsigned char)*at;
	struct glyph glyph = { 1, 1, first >= ' ' && first < 0x7f };

	for (size_t n = 0; n < ARRAY_SIZE(forms); n++) {
		uint32_t point = first & (unsigned char)~forms[n].mask;
		size_t size = 1;

		if ((first & forms[n].mask) != forms[n].lead)
			continue;
		for (; size < n + 2 && ((unsigned char)at[size] & 0xc0) == 0x80; size++)
			point = point << 6 | ((unsigned char)at[size] & 0x3f);
		if (size != n + 2 || !is_character(point, forms[n].least))
			return glyph;
		glyph.size = size;
		if (has_utf8) {
			glyph.is_shown = true;
			glyph.columns =
				is_wide(point) ? 2 : (unsigned)text_columns(at, 1);
		}
	}
	return glyph;
}

unsigned top_columns(const struct top_view *view, const char *text)
{
	unsigned columns = 0;

	while (*text) {
		struct glyph glyph = glyph_at(text, view->has_utf8);

		columns += glyph.columns;
		text += glyph.size;
	}
	return columns;
}

/* --- the pen --------------------------------------------------------------------- */

static const char *const ink_codes[INK_COUNT] = {
	[INK_BOLD] = "\033[1m",
	[INK_FAINT] = "\033[2m",
	[INK_GREEN] = "\033[32m",
	[INK_YELLOW] = "\033[33m",
	[INK_RED] = "\033[31m",
	[INK_BLUE] = "\033[34m",
	[INK_CYAN] = "\033[36m",
};

#define REVERSE "\033[7m"
#define PLAIN "\033[0m"

unsigned top_width(const struct top_view *view)
{
	return view->columns < TOP_COLUMNS_MAX ? view->columns : TOP_COLUMNS_MAX;
}

static unsigned screen_rows(const struct top_view *view)
{
	return view->rows < TOP_ROWS_MAX ? view->rows : TOP_ROWS_MAX;
}

bool pen_begin(struct pen *pen, struct top_frame *frame, const struct top_view *view,
	bool is_chosen)
{
	if (frame->rows >= screen_rows(view))
		return false;
	*pen = (struct pen){ .view = view,
		.row = TEXT_ON(frame->row[frame->rows]),
		.width = top_width(view),
		.is_chosen = is_chosen && view->has_colour };
	frame->rows++;
	if (pen->is_chosen)
		text_add(&pen->row, REVERSE);
	return true;
}

static void pen_pay(struct pen *pen)
{
	static const char blanks[] = "                                ";

	while (pen->owed) {
		size_t size = (size_t)min_i64(pen->owed, sizeof(blanks) - 1);

		text_add_bytes(&pen->row, blanks, size);
		pen->owed -= (unsigned)size;
	}
}

/* Returns the bytes of @text that fit into @width columns, and sets *@ret to their columns. */
static size_t bytes_that_fit(
	const struct top_view *view, const char *text, unsigned width, unsigned *ret)
{
	size_t size = 0;

	*ret = 0;
	while (text[size]) {
		struct glyph glyph = glyph_at(text + size, view->has_utf8);

		if (*ret + glyph.columns > width)
			break;
		*ret += glyph.columns;
		size += glyph.size;
	}
	return size;
}

static void pen_write(struct pen *pen, const char *text, size_t size)
{
	size_t plain = 0;

	while (plain < size && text[plain] >= ' ' && text[plain] < 0x7f)
		plain++;
	text_add_bytes(&pen->row, text, plain);
	for (size_t i = plain; i < size;) {
		struct glyph glyph = glyph_at(text + i, pen->view->has_utf8);

		if (glyph.is_shown)
			text_add_printable(&pen->row, text + i, glyph.size);
		else
			text_add_bytes(&pen->row, "?", 1);
		i += glyph.size;
	}
}

/* Writes @text in at most @width columns.  Returns how many it has taken. */
static unsigned pen_text(struct pen *pen, const char *text, unsigned width, enum ink ink)
{
	bool has_ink = pen->view->has_colour && ink != INK_NONE && *text;
	unsigned columns;
	size_t size = bytes_that_fit(pen->view, text, width, &columns);
	bool is_cut = text[size] && pen->view->has_utf8 && width > 1;

	if (is_cut)
		size = bytes_that_fit(pen->view, text, width - 1, &columns);
	if (size || is_cut)
		pen_pay(pen);
	if (has_ink)
		text_add(&pen->row, ink_codes[ink]);
	pen_write(pen, text, size);
	if (is_cut) {
		text_add(&pen->row, "\xe2\x80\xa6");
		columns++;
	}
	if (has_ink)
		text_add(&pen->row, pen->is_chosen ? PLAIN REVERSE : PLAIN);
	pen->used += columns;
	return columns;
}

void pen_put(struct pen *pen, const char *text, enum ink ink)
{
	(void)pen_text(pen, text, pen->width - pen->used, ink);
}

bool pen_has_room(const struct pen *pen, const char *text)
{
	return top_columns(pen->view, text) <= pen->width - pen->used;
}

void pen_skip(struct pen *pen, unsigned columns)
{
	columns = (unsigned)min_i64(columns, pen->width - pen->used);
	pen->owed += columns;
	pen->used += columns;
}

void pen_cell(
	struct pen *pen, const char *text, unsigned width, bool is_right, enum ink ink)
{
	unsigned columns = is_right ? top_columns(pen->view, text) : 0;

	width = (unsigned)min_i64(width, pen->width - pen->used);
	if (is_right && columns < width) {
		pen_skip(pen, width - columns);
		width = columns;
	}
	columns = pen_text(pen, text, width, ink);
	pen_skip(pen, width - columns);
}

void pen_end(struct pen *pen)
{
	if (!pen->is_chosen)
		return;
	pen_skip(pen, pen->width);
	pen_pay(pen);
	text_add(&pen->row, PLAIN);
}

void pen_row(struct top_frame *frame, const struct top_view *view, const char *text,
	enum ink ink)
{
	struct pen pen;

	if (!pen_begin(&pen, frame, view, false))
		return;
	pen_put(&pen, text, ink);
	pen_end(&pen);
}

/* --- words ----------------------------------------------------------------------- */

enum { DAY_S = 24 * 3600 };

void top_add_span(struct text *out, int64_t span_ms)
{
	char span[DURATION_SIZE];

	if (span_ms < 0) {
		text_add(out, "-");
		return;
	}
	format_duration(span_ms, span);
	text_add(out, span);
}

/* Returns the day of the local time, from 1970, and sets *@ret_s to the second of that day. */
static int64_t local_day(const struct top_view *view, int64_t unix_ms, unsigned *ret_s)
{
	int64_t local_s = unix_ms / 1000 + view->utc_offset_s;

	*ret_s = local_s < 0 ? 0 : (unsigned)(local_s % DAY_S);
	return local_s < 0 ? 0 : local_s / DAY_S;
}

/* Sets month and day, from 1, of the @day since 1970 (Gregorian calendar). */
static void month_and_day(int64_t day, unsigned *ret_month, unsigned *ret_day)
{
	/* days since 1 March of the year 0, so that a leap day is the last one of its year */
	int64_t shifted = day + 719468, of_era = shifted % 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153; /* March is 0 */

	*ret_day = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
	*ret_month = (unsigned)(month < 10 ? month + 3 : month - 9);
}

void top_add_time(struct text *out, const struct top_view *view, int64_t unix_ms)
{
	unsigned second, now, month, of_month;
	int64_t day = local_day(view, unix_ms, &second);

	if (unix_ms <= 0) {
		text_add(out, "-");
		return;
	}
	if (day != local_day(view, view->now_unix_ms, &now)) {
		month_and_day(day, &month, &of_month);
		text_addf(out, "%02u-%02u ", month, of_month);
	}
	text_addf(out, "%02u:%02u", second / 3600, second / 60 % 60);
}

void top_add_clock(struct text *out, const struct top_view *view, int64_t unix_ms)
{
	unsigned second;

	(void)local_day(view, unix_ms, &second);
	text_addf(out, "%02u:%02u:%02u", second / 3600, second / 60 % 60, second % 60);
}

void top_add_size(struct text *out, int64_t mib)
{
	int64_t tenths = mib < 1024 * 1024 ? (mib * 10 + 512) / 1024 : 0;

	if (mib < 0)
		text_add(out, "-");
	else if (tenths < 100 && tenths % 10)
		text_addf(out, "%d.%dG", (int)(tenths / 10), (int)(tenths % 10));
	else
		text_addf(out, "%" PRId64 "G", mib / 1024 + (mib % 1024 >= 512));
}

void top_add_need(struct text *out, double share, int64_t vram_mib)
{
	int percent = (int)(share < 100 ? share * 100 + 0.5 : 0);

	if (percent > 0)
		text_addf(out, percent % 10 ? "%d.%02d" : "%d.%d", percent / 100,
			percent % 10 ? percent % 100 : percent % 100 / 10);
	if (vram_mib <= 0)
		return;
	text_add(out, percent > 0 ? "+" : "");
	top_add_size(out, vram_mib);
}

int64_t top_sum(int64_t a_ms, int64_t b_ms)
{
	return b_ms > INT64_MAX - a_ms ? INT64_MAX : a_ms + b_ms;
}
