#include <errno.h>

#include "exitcodes.h"
#include "host_words.h"
#include "parse.h"
#include "words.h"

enum { SSH_FAILED = 255 }; /* the exit status of ssh if it was ssh that failed */

/* --- names ------------------------------------------------------------------------------- */

/* What names, addresses and the URIs of ssh consist of; `%` is for fe80::1%eth0. */
static const char in_names[] = "abcdefghijklmnopqrstuvwxyz"
			       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:/[]%+";

static bool is_listed(const struct host_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->name[i], name) == 0)
			return true;
	return false;
}

/* Appends the @size bytes at @name, unless they are listed. */
static int add_name(
	struct host_list *list, const char *name, size_t size, struct why *why)
{
	if (!size)
		why_set(why, "--host: a name is empty; write --host lab1,lab2");
	else if (*name == '-')
		why_set(why, "--host: '%s' begins with '-'; no host is named so",
			quote_bytes(name, size).text);
	else if (strspn(name, in_names) < size || size >= HOST_NAME_SIZE)
		why_set(why, "--host: '%s' is not a name of a host",
			quote_bytes(name, size).text);
	else if (list->count == HOSTS_MAX)
		why_set(why, "--host: more than %d hosts", HOSTS_MAX);
	else {
		char *copy = list->name[list->count];

		memcpy(copy, name, size);
		copy[size] = '\0';
		list->count += !is_listed(list, copy);
		return 0;
	}
	return -EINVAL;
}

int host_list_read(const char *list, struct host_list *ret, struct why *why)
{
	ret->count = 0;
	for (;;) {
		size_t size = strcspn(list, ",");
		int r = add_name(ret, list, size, why);

		if (r < 0 || !list[size])
			return r;
		list += size + 1;
	}
}

/* --- the words of ssh -------------------------------------------------------------------- */

void host_words_begin(struct host_words *words, const char *host)
{
	static const char *const ssh[] = { "ssh", "-axT", "-oBatchMode=yes",
		"-oConnectTimeout=5",
		/* a banner would hide the reason of a failure */
		"-oLogLevel=ERROR",
		/* of ssh_config(5): ports that another ssh has open, and a command of its own */
		"-oClearAllForwardings=yes", "-oRemoteCommand=none", "--" };
	size_t count = 0;

	while (count < ARRAY_SIZE(ssh)) {
		words->list[count] = (char *)ssh[count];
		count++;
	}
	words->host_at = count;
	words->list[count++] = (char *)host;
	words->list[count++] = words->command;
	words->list[count] = NULL;
	words->text = TEXT_ON(words->command);
	text_add(&words->text, "gpulease");
}

void host_words_aim(struct host_words *words, const char *host)
{
	words->list[words->host_at] = (char *)host;
}

void host_words_add(struct host_words *words, const char *word)
{
	text_add(&words->text, " ");
	words_add_quoted(&words->text, word);
}

void host_words_next(struct host_words *words)
{
	text_add(&words->text, "; gpulease");
}

/* --- the answer -------------------------------------------------------------------------- */

/* Whether an object that begins with "format", of this @format, begins at @text. */
static bool has_format(
	const char *text, size_t size, const char *format, uint64_t *ret_schema)
{
	struct json_walk walk = JSON_WALK(text, size);
	struct json_value key, value;
	size_t length = strlen(format);
	char schema[24];

	if (!json_take(&walk, '{') || !json_take(&walk, '"') ||
		json_take_string(&walk, &key) != 0 || key.size != 6 ||
		memcmp(key.at, "format", 6) != 0 || !json_take(&walk, ':') ||
		!json_take(&walk, '"') || json_take_string(&walk, &value) != 0 ||
		value.size <= length || memcmp(value.at, format, length) != 0)
		return false;
	(void)snprintf(schema, sizeof(schema), "%.*s", (int)(value.size - length),
		value.at + length);
	return parse_u64(schema, UINT64_MAX, ret_schema, NULL) == 0;
}

/*
 * The end of an object may be far away.  So it is looked for only in the object that is wanted, and
 * once: an answer of 128 MB that is full of brackets must not hold up the other hosts.
 */
bool host_find(const char *text, size_t size, const char *format, size_t *at,
	struct json_value *ret, uint64_t *ret_schema)
{
	while (*at < size) {
		const char *line = text + *at;
		const char *end = memchr(line, '\n', size - *at);
		struct json_walk walk = JSON_WALK(line, size - *at);

		if (*line == '{' && has_format(line, size - *at, format, ret_schema)) {
			bool is_whole = json_take_nested(&walk, ret) == 0;

			*at = is_whole ? (size_t)(walk.at - text) : size;
			return is_whole;
		}
		*at = end ? (size_t)(end + 1 - text) : size;
	}
	return false;
}

/*
 * Copies the first line of stdout: nologin(8) and the commands of keys say there why there is no
 * login.
 */
static void copy_line(const struct answer *answer, char *out, size_t size)
{
	struct text text = text_on(out, size);

	text_addf(&text, "status %d: ", answer->status);
	text_add_printable(&text, answer->text, strcspn(answer->text, "\r\n"));
}

/* Copies the message without what ssh frames its loudest one with. */
static void copy_message(const char *message, char *out, size_t size)
{
	size_t length;

	message += strspn(message, "@ ");
	text_copy(out, size, message);
	for (length = strlen(out); length && strchr("@ ", out[length - 1]); length--)
		out[length - 1] = '\0';
}

void host_trouble(const struct answer *answer, char *out, size_t size)
{
	static const char own[] = "gpulease: ";
	bool is_own = strncmp(answer->error, own, sizeof(own) - 1) == 0;

	if (answer->fault == -ETIMEDOUT)
		(void)snprintf(out, size, "no answer within %ds", HOST_ANSWER_MS / 1000);
	else if (answer->fault == -EFBIG)
		text_copy(out, size, "its answer is too large");
	else if (answer->fault)
		text_copy(out, size, strerror(-answer->fault));
	else if (answer->status == 0)
		text_copy(out, size, "its answer cannot be read");
	else if (is_own)
		text_copy(out, size, answer->error + sizeof(own) - 1);
	else if (answer->status == EXIT_NOT_FOUND &&
		 strncmp(answer->error, "cannot execute", 14) != 0)
		text_copy(out, size,
			"gpulease is not installed there, or not in PATH for ssh");
	else if (answer->error[0])
		copy_message(answer->error, out, size);
	else if (answer->status > 128 && answer->status != SSH_FAILED)
		(void)snprintf(out, size, "ended by signal %d", answer->status - 128);
	else if (answer->status != SSH_FAILED && answer->size)
		copy_line(answer, out, size);
	else
		(void)snprintf(
			out, size, "ssh has failed with status %d", answer->status);
}
