/*
 * --accounting: finished sums (accounting.h) as a table, as JSON, and for spreadsheets.  Pure but
 * for memory; local times follow $TZ.
 *
 * The columns of the table are columns[] in show_accounting.c.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-accounting/1"
 *	taken_unix_ms       integer
 *	state_directory     string
 *	since_unix_ms, until_unix_ms    integer | null: the period
 *	gpus                integer: GPUs of the machine in this boot
 *	users               array of objects, the largest use first; the members of ->total and
 *	    user            string
 *	    uid             integer
 *	total               object
 *	    jobs            integer: each job once, however many attempts it had
 *	    attempts        integer
 *	    running         integer: attempts that still run
 *	    gpu_hours_least, gpu_hours_most    number
 *	    wait_mean_ms, wait_p95_ms    integer | null: of an attempt
 *	    utilization_mean_percent     integer | null: weighted by GPU time, where measured
 *	    machine_share_percent        number | null: of all GPU time in the period
 *	missing_lines, missing_unix_ms    as in show_history.h, for the whole history
 */
#ifndef GPULEASE_SHOW_ACCOUNTING_H
#define GPULEASE_SHOW_ACCOUNTING_H

#include "accounting.h"
#include "render_table.h"

/*
 * In each of these, @accounting is finished and its users have names.
 *
 * Prints the table, with a total.  Returns 0, or -ENOMEM after part of it was printed.
 */
MUST_CHECK int show_accounting(
	const struct accounting *accounting, const struct table_style *style, FILE *out);

/* Prints the JSON above. */
void show_accounting_json(const struct accounting *accounting, int64_t now_ms,
	const char *directory, FILE *out);

/*
 * Prints lines of RFC 4180 under a line of titles, without the total:
 *
 *	user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,wait_mean_seconds,
 *	wait_p95_seconds,utilization_mean_percent,machine_share_percent
 */
void show_accounting_csv(const struct accounting *accounting, FILE *out);

#endif
