/*
 * What a test has written to a FILE, as text.  Included after <cmocka.h>.
 *
 *	page_begin -> …page.out… -> page_has… -> page_is | page_end
 */
#ifndef GPULEASE_TESTS_PAGE_H
#define GPULEASE_TESTS_PAGE_H

#include <stdio.h>

#include "base.h"

/* What is written, as text. */
struct page {
	FILE *out;
	char *text;
	size_t size;
};

static inline void page_begin(struct page *page)
{
	*page = (struct page){ .out = NULL };
	page->out = open_memstream(&page->text, &page->size);
	assert_non_null(page->out);
}

static inline void page_is(struct page *page, const char *expected)
{
	assert_int_equal(fclose(page->out), 0);
	assert_string_equal(page->text, expected);
	free(page->text);
}

static inline void page_has(struct page *page, const char *part)
{
	assert_int_equal(fflush(page->out), 0);
	if (!strstr(page->text, part))
		fail_msg("no '%s' in:\n%s", part, page->text);
}

static inline void page_has_not(struct page *page, const char *part)
{
	assert_int_equal(fflush(page->out), 0);
	if (strstr(page->text, part))
		fail_msg("'%s' in:\n%s", part, page->text);
}

static inline void page_end(struct page *page)
{
	assert_int_equal(fclose(page->out), 0);
	free(page->text);
}

#endif
