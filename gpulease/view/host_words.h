/*
 * The machines of --host, and the words for ssh that run gpulease on one of them.  Pure.
 *
 *	host_words_begin -> host_words_add … -> answer_begin(…, words.list)
 *		-> host_find, host_trouble
 *
 * ssh asks for nothing (BatchMode), and forwards nothing.  It reads the user's ssh_config(5), so
 * names, users, ports, keys and jumps are there.
 */
#ifndef GPULEASE_HOST_WORDS_H
#define GPULEASE_HOST_WORDS_H

#include "answer.h"
#include "json_read.h"

enum {
	HOSTS_MAX = 64,
	HOST_NAME_SIZE = 256,
	HOST_COMMAND_SIZE = 8192,
	HOST_WORDS_MAX = 20,
	HOST_ANSWER_MS = 5000, /* how long a host may take for its answer */
};

struct host_list {
	char name[HOSTS_MAX][HOST_NAME_SIZE];
	size_t count;
};

/*
 * Reads the value of --host, names with commas between them.  A name that is there twice counts
 * once.  Returns 0, or -EINVAL with the reason in @why: no name may be empty, begin with `-`, or
 * have a character that no name or ssh:// URI needs.
 */
MUST_CHECK int host_list_read(const char *list, struct host_list *ret, struct why *why);

/* The words of ssh.  The struct must not be copied: ->list points into it. */
struct host_words {
	char *list[HOST_WORDS_MAX + 1]; /* for answer_begin() */
	size_t host_at;                 /* the place of the host in ->list */
	char command[HOST_COMMAND_SIZE];
	struct text text; /* on ->command; ->cut: the words are too long */
};

/* Begins with `ssh … HOST gpulease`.  @host has to stay; NULL: host_words_aim() sets it. */
void host_words_begin(struct host_words *words, const char *host);

/* Sets another host, so the same words can be aimed at one host after the other. */
void host_words_aim(struct host_words *words, const char *host);

/* Appends a word to the command of gpulease, quoted for the shell of the host. */
void host_words_add(struct host_words *words, const char *word);

/* Begins another command of gpulease, which runs after the one before, however that ends. */
void host_words_next(struct host_words *words);

/*
 * Finds the JSON object that gpulease has printed among the @size bytes at @text, which may have
 * lines of login scripts before and after it.  @format is what its format begins with, as in
 * "gpulease-status/".  The search begins at *@at and moves it behind the object.  Returns false if
 * there is none, or if it is not complete.  Sets *@ret_schema to the version of its members.
 */
bool host_find(const char *text, size_t size, const char *format, size_t *at,
	struct json_value *ret, uint64_t *ret_schema);

/*
 * Says in one line why a complete @answer of ssh without the object has none, or the fault of this
 * process.
 */
void host_trouble(const struct answer *answer, char *out, size_t size);

#endif
