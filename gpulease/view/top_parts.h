/*
 * The parts of the screen of --top: lists of rows with columns, and single rows.  Pure.
 *
 * A list is an array of struct top_line, which a part collects; top_table_draw() draws those of
 * them that fit.
 */
#ifndef GPULEASE_TOP_PARTS_H
#define GPULEASE_TOP_PARTS_H

#include "top_text.h"

#define NO_ITEM SIZE_MAX

enum { TOP_CELL_SIZE = 640, TOP_TABLE_COLUMNS = 20 };

/* Which jobs ->frame may have already: a bit for each remainder of the id. */
struct noted_jobs {
	uint64_t bits[128];
};

/* What is drawn, and for whom. */
struct top_sheet {
	const struct top_host *hosts;
	size_t host_count;
	const struct top_host *host; /* the shown one */
	const struct machine *machine;
	const struct top_view *view;
	const char *only; /* the one user whose jobs are shown; NULL: all */
	bool is_wide;
	bool models_differ; /* of the GPUs; otherwise the first row names the model */
	struct top_frame *frame;
	struct noted_jobs *noted;
};

/* A row of a list. */
struct top_line {
	size_t gpu;      /* index, or NO_ITEM */
	size_t item;     /* index of the lease, the ticket or the host, or NO_ITEM */
	bool is_further; /* a further lease of the GPU of the line above */
	bool is_foreign; /* the job of a user who is not ->only */
	bool is_chosen;
};

#define LINE_NONE ((struct top_line){ .gpu = NO_ITEM, .item = NO_ITEM })

struct top_cell {
	struct text text;
	enum ink ink;
	bool takes_rest; /* of the row: the columns to the right of it are not drawn */
};

struct top_column {
	const char *title;
	void (*cell)(const struct top_sheet *sheet, const struct top_line *line,
		struct top_cell *out);
	const char
		*clock_title; /* with clock times in the place of spans; NULL: ->title */
	uint8_t most, wide_most; /* columns; 0: all that are left */
	uint8_t usual; /* at least, so that columns do not move with each frame */
	uint8_t least; /* without room, it is cut down to this width; 0: it is not cut */
	bool is_right;
	bool is_wide_only, is_optional; /* left out if it is empty in all rows */
};

/*
 * Draws titles, and @count lines of @columns, which end with a column without a title, below them.
 */
void top_table_draw(const struct top_sheet *sheet, const struct top_column *columns,
	const struct top_line *lines, size_t count);

/* A walk over all lines of a list.  It keeps those from ->first on, ->room at most. */
struct top_walk {
	const struct top_sheet *sheet;
	size_t first, room;
	struct top_line *lines;
	size_t count;  /* of all lines */
	size_t chosen; /* the first chosen line, or NO_ITEM */
	bool has_jobs; /* to be noted in ->sheet->frame */
};

/* Adds the next line, which belongs to @job; -1: to none, so it cannot be chosen. */
void top_walk_add(struct top_walk *walk, struct top_line line, int64_t job);

struct top_list {
	const struct top_column *columns;
	void (*walk)(struct top_walk *walk);
};

extern const struct top_list top_gpu_list, top_queue_list, top_host_list, top_help_list;

/* Whether jobs of @user are shown. */
bool top_is_shown(const struct top_sheet *sheet, const char *user);

/* Appends the model of a GPU without its maker; of a MIG instance, its profile: "MIG 3g.40gb". */
void top_add_model(struct text *out, const char *model);

/* How much is in use on a machine. */
struct top_counts {
	unsigned gpus,
		places; /* ->places: GPUs that are not divided, and MIG instances */
	unsigned idle, leased, others;
	size_t waiting;
	int64_t longest_ms; /* wait; -1: none */
};

struct top_counts top_count(const struct machine *machine);

/* The name of a machine, and why nothing is known of it or of its GPUs; "": something is. */
const char *top_host_name(const struct top_host *host);
const char *top_host_trouble(const struct top_host *host);

/* Single rows; each draws as much as fits, and nothing if there is nothing to show. */
void top_draw_title(const struct top_sheet *sheet);
void top_draw_trouble(const struct top_sheet *sheet);
bool top_has_trouble(const struct top_sheet *sheet);
/* In @rows rows, the windows that have begun first; the last row counts those without a row. */
void top_draw_windows(const struct top_sheet *sheet, unsigned rows);
void top_draw_today(const struct top_sheet *sheet);
void top_draw_log(const struct top_sheet *sheet, unsigned rows);
void top_draw_keys(const struct top_sheet *sheet);

/* Draws the jobs that ended last, the latest first, in at most @rows rows. */
void top_draw_ended(const struct top_sheet *sheet, unsigned rows);

/* Whether there is an ended job to show. */
bool top_has_ended(const struct top_sheet *sheet);

#endif
