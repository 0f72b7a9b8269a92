#include "owner.h"
#include "privacy.h"
#include "proc.h"
#include "process_info.h"

enum { LINE_MAX_BYTES = 16 * 1024 };

/* Appends the @size bytes of NUL-terminated @words, with quotes around words with blanks. */
static void process_info_join(const char *words, size_t size, struct text *out)
{
	for (size_t at = 0; at < size && !out->cut;) {
		size_t length = strnlen(words + at, size - at);
		bool has_blank = !length || memchr(words + at, ' ', length) ||
				 memchr(words + at, '\t', length) ||
				 memchr(words + at, '\n', length);

		text_add(out, out->used ? " " : "");
		text_add(out, has_blank ? "'" : "");
		text_add_bytes(out, words + at, length);
		text_add(out, has_blank ? "'" : "");
		at += length + 1;
	}
}

/*
 * Reads /proc/PID/cmdline, words that end with NUL.  Returns how many bytes were read: 0 for a
 * kernel thread, or if there is no such process.
 */
static size_t process_info_read_words(uint32_t pid, char *out, size_t size)
{
	autofd int fd = proc_open(pid, "cmdline");
	size_t used = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && used < size) {
		n = read(fd, out + used, size - used);
		used += n > 0 ? (size_t)n : 0;
	}
	return used;
}

bool process_info_command(uint32_t pid, char *out, size_t size)
{
	char words[LINE_MAX_BYTES];
	struct process_stat process;
	struct text text = text_on(out, size);
	size_t used = process_info_read_words(pid, words, sizeof(words));

	if (used)
		process_info_join(words, used, &text);
	else if (process_stat_read(pid, &process) == 0)
		text_add(&text, process.comm);
	return out[0] != '\0';
}

void process_info_complete(uint32_t pid, char *command, size_t size)
{
	static const char mark[] = "\xe2\x80\xa6";
	size_t used = strlen(command), mark_size = sizeof(mark) - 1;
	static char line[LINE_MAX_BYTES];
	const char *whole;

	if (!pid || used < mark_size || strcmp(command + used - mark_size, mark) != 0 ||
		!process_info_command(pid, line, sizeof(line)))
		return;
	used -= mark_size;
	command[used] = '\0';
	/* the line of a gpulease that waits has its own options first */
	whole = strstr(line, command);
	if (whole) {
		text_copy(command, size, whole);
		used = strlen(whole) < size ? size : size - 1 - mark_size;
	}
	if (used < size)
		memcpy(command + used, mark, sizeof(mark));
}

void process_info_user(uint32_t pid, char *out, size_t size)
{
	struct text text = text_on(out, size);
	uint32_t uid;

	if (proc_find_user(pid, &uid) == 0)
		describe_user(uid, NULL, &text);
}

bool process_info_is_stopped(uint32_t pid)
{
	struct process_stat process;

	return process_stat_read(pid, &process) == 0 && process.state == 'T';
}
