/*
 * tellend: writes entries into a history, as if jobs had ended.
 *
 *	tellend DIR [-s BYTES] [-n TIMES] KEY=VALUE…
 *
 * The keys are those of a line of the history, numbers are decimal; missing keys are 0 or empty.
 * -n: writes TIMES entries, each with the next ticket and a minute later.  -s: the size at which
 * the history is put aside.
 */
#include <fcntl.h>
#include <stdio.h>

#include "history.h"
#include "parse.h"

#define AT(field) offsetof(struct history_end, field)
#define TEXT(key_, field)                                                    \
	{                                                                    \
		key_, AT(field), sizeof(((struct history_end *)0)->field), 0 \
	}
#define NUMBER(key_, field)                                                  \
	{                                                                    \
		key_, AT(field), 0, sizeof(((struct history_end *)0)->field) \
	}

static const struct {
	const char *key;
	size_t offset, text_size, number_size;
} keys[] = {
	NUMBER("ticket", ticket),
	NUMBER("attempt", attempt),
	NUMBER("uid", uid),
	TEXT("user", user),
	TEXT("gpus", gpus),
	NUMBER("count", gpu_count),
	NUMBER("share", share_percent),
	NUMBER("vram", vram_mib),
	NUMBER("waited", waited_ms),
	NUMBER("since", since_ms),
	NUMBER("alive", alive_ms),
	NUMBER("gone", gone_ms),
	TEXT("peaks", peaks),
	NUMBER("spans", spans_run),
	TEXT("busy", utilization),
	NUMBER("logfull", log_is_full),
	NUMBER("provisional", is_provisional),
	NUMBER("exact", is_exact),
	TEXT("how", how),
	TEXT("by", by),
	TEXT("status", status),
	TEXT("name", name),
	TEXT("command", command),
};

static int set(struct history_end *end, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t size = strlen(keys[i].key);
		char *at = (char *)end + keys[i].offset;
		uint64_t number;

		if (strncmp(word, keys[i].key, size) != 0 || word[size] != '=')
			continue;
		if (keys[i].text_size) {
			text_copy(at, keys[i].text_size, word + size + 1);
			return 0;
		}
		if (parse_u64(word + size + 1, INT64_MAX, &number, NULL) < 0)
			return -1;
		if (keys[i].number_size == sizeof(uint32_t))
			*(uint32_t *)at = (uint32_t)number;
		else
			*(uint64_t *)at = number;
		return 0;
	}
	return -1;
}

static void go_on(struct history_end *end)
{
	end->ticket++;
	end->since_ms += 60000;
	end->alive_ms += 60000;
	end->gone_ms += 60000;
}

int main(int argc, char **argv)
{
	struct history_end end = { .ticket = 0 };
	struct statedir dir = STATEDIR_NONE;
	struct history_file file;
	uint64_t times = 1;

	if (argc < 2)
		return 125;
	dir.fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 2; i < argc; i++) {
		bool is_option = argv[i][0] == '-' && i + 1 < argc;
		uint64_t *option = argv[i][1] == 's' ? &dir.history_bytes : &times;

		if ((is_option ? parse_u64(argv[++i], INT64_MAX, option, NULL)
			       : set(&end, argv[i])) < 0) {
			(void)fprintf(stderr, "tellend: what is '%s'?\n", argv[i]);
			return 125;
		}
	}
	end.name_hash = job_name_hash(end.name);
	if (history_open(&dir, &file) < 0)
		return 1;
	for (; times; times--, go_on(&end))
		if (history_write(&file, &end) < 0)
			return 1;
	return 0;
}
