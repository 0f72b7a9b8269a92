/*
 * Reads the members of a JSON object into a struct, by a table with a row for each member.  Pure;
 * allocates nothing.  Members without a row are skipped, so later versions can add some.
 *
 *	static const struct json_field fields[] = {
 *		{ "user", FIELD_TEXT, offsetof(struct job, user), sizeof(((struct job *)0)->user) },
 *		{ "pid", FIELD_NUMBER, offsetof(struct job, pid) },
 *		{ NULL },
 *	};
 */
#ifndef GPULEASE_JSON_FIELDS_H
#define GPULEASE_JSON_FIELDS_H

#include "json_read.h"

enum json_field_kind {
	FIELD_TEXT,   /* char[]: printable (json_unescape()), and cut if it is too long */
	FIELD_NUMBER, /* int64_t */
	FIELD_DECIMAL, /* double: a number of 0 or more, such as 0.25 */
	FIELD_BOOL,    /* bool */
	FIELD_EACH,    /* an array: ->each reads every element */
	FIELD_WHOLE,   /* anything but null: ->each reads the value */
};

struct json_field {
	const char *key;
	enum json_field_kind kind;
	size_t offset, size; /* ->size: of a text */
	/*
	 * @record is the struct of the whole object, not its field.  Returns 0, or a negative
	 * errno, which ends the reading.
	 */
	int (*each)(const struct json_value *value, void *record);
};

/*
 * Reads @object into @record by @fields, which ends with a row without a key.  A field whose member
 * is missing, null, or of another kind stays as it is.  Returns 0, -EINVAL if @object is no object,
 * or what ->each has returned.
 */
MUST_CHECK int json_fields_read(
	const struct json_field *fields, const struct json_value *object, void *record);

#endif
