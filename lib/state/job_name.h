/*
 * The names of jobs, up to 255 bytes.
 *
 *	live/TOKEN.name		a symbolic link to "name:" and the name of the job, if that is long
 *
 * A record keeps the first bytes of a name, which is all of it for most names.  Of a longer name it
 * also keeps a hash, and the whole name is in the link.  The process that takes a ticket makes the
 * link after the live FIFO and before the ticket, so that every ticket has its link.  Records of an
 * earlier version have no hash: the bytes in them are the whole name.
 *
 * The text of a link is written at once with the link and never changes; no process follows it.
 * The link leads nowhere, whatever the name is, because of its first bytes.
 *
 * A name that was read from a record is only its beginning until job_name_complete() has read the
 * rest, and stays that if the link is lost.  Names are then told apart by their keys.  A job is
 * chosen by a name that a user has written only if its name is whole.
 *
 * The process that replaces the lease in the file of its lowest GPU, or that gives the ticket up,
 * removes the link.  A crash leaves it, and a sweep of live/ removes it once no process holds the
 * FIFO and no lease has the token.
 */
#ifndef GPULEASE_JOB_NAME_H
#define GPULEASE_JOB_NAME_H

#include "base.h"

struct statedir;

/*
 * NAME_KEPT_SIZE: what a record keeps of a name, escaped, with a NUL.  NAME_LEAST_SIZE: what it
 * keeps of a long name if there is no room for more.
 */
enum { NAME_SIZE_MAX = 256, NAME_KEPT_SIZE = 33, NAME_LEAST_SIZE = 5 };

/* Returns the hash that a record keeps of @name; 0: it keeps the name itself.  Pure. */
uint64_t job_name_hash(const char *name);

/* Shortens what a record keeps of a long name to the least.  Pure. */
void job_name_shorten(char name[NAME_SIZE_MAX]);

/*
 * Copies @name to @out and returns its hash.  Of a text that is too long for a name only the
 * beginning has room, which then counts as such.  Pure.
 */
uint64_t job_name_copy(char out[NAME_SIZE_MAX], const char *name);

/* Whether @name is the whole name with the hash @hash, and not its beginning.  Pure. */
bool job_name_is_whole(const char *name, uint64_t hash);

/*
 * Returns the key of a name: equal names have equal keys, whether they are whole or not.  Two names
 * may share a key by chance; so a key decides only between jobs of one user.  Pure.
 */
uint64_t job_name_key(const char *name, uint64_t hash);

/* Makes the link of @token for @name.  Returns 0, also if it is there, or a negative errno. */
MUST_CHECK int job_name_write(
	const struct statedir *dir, const char *token, const char *name);

/*
 * Makes @name whole, if it is not and the link of @token can be read.  Returns whether it is whole
 * now.
 */
bool job_name_complete(const struct statedir *dir, const char *token, uint64_t hash,
	char name[NAME_SIZE_MAX]);

/* Removes the link of @token, if it is there. */
void job_name_remove(const struct statedir *dir, const char *token);

/* Whether @entry of live/ is such a link, so that only job_name_is_old() may remove it. */
bool job_name_is_link(const char *entry);

/* Whether the link @entry is so old that its lease must have been written, if it has one. */
bool job_name_is_old(int live_fd, const char *entry);

#endif
