/*
 * Whether a text of another machine is JSON all through, so that it can be a part of ours.
 * json_read.h reads only what it is asked for.  Pure.
 */
#ifndef GPULEASE_JSON_CHECK_H
#define GPULEASE_JSON_CHECK_H

#include "json_read.h"

/* Whether @value is JSON, and a terminal may show its bytes as they are. */
bool json_is_clean(const struct json_value *value);

#endif
