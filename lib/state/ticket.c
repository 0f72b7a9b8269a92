#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "clock.h"
#include "live_fifo.h"
#include "fdio.h"
#include "statedir.h"
#include "ticket.h"

#define FILE_NAME "tickets"

enum {
	BAD_SUM_TRIES = 5,
	APPEND_TRIES = 100,
	EACH_CHUNK = 64,
	EACH_MAX = 1 << 22, /* the most records that ticket_each() reads, beside holes */
};

/*
 * The greatest turn number and time that a ticket has to have room for: ten years of two turns a
 * second.  A record holds numbers as text, so greater ones are longer.
 */
static const uint64_t TURN_MOST = 999999999;
static const int64_t TURN_MS_MOST = 999999999999;

#define AT(field) offsetof(struct ticket, field)
static const struct record_field ticket_fields[] = {
	/* these two first, where ticket_glance_place() finds them */
	{ "priority", RECORD_I64, AT(request.priority), 0 },
	{ "order", RECORD_I64, AT(order_ms), 0 },
	{ "late", RECORD_I64, AT(late_ms), 0 },
	{ "state", RECORD_U32, AT(state), 0 },
	{ "turn", RECORD_U64, AT(turn), 0 },
	{ "at", RECORD_I64, AT(turn_ms), 0 },
	{ "since", RECORD_I64, AT(since_ms), 0 },
	{ "stuck", RECORD_TEXT, AT(stuck), STUCK_SIZE },
	{ "job", RECORD_U64, AT(job), 0 },
	{ "attempt", RECORD_U32, AT(attempt), 0 },
	{ "latest", RECORD_U64, AT(latest), 0 },
	{ "notbefore", RECORD_I64, AT(not_before_ms), 0 },
	OWNER_FIELDS(struct ticket, owner),
	COMMAND_FIELDS(struct ticket, runs),
	{ "boot", RECORD_TEXT, AT(boot), BOOT_SIZE },
	{ "user", RECORD_TEXT, AT(user), USER_SIZE },
	{ "gpus", RECORD_U32, AT(request.gpus), 0 },
	{ "share", RECORD_U32, AT(request.share_percent), 0 },
	{ "vram", RECORD_U64, AT(request.vram_mib), 0 },
	{ "limit", RECORD_MS, AT(request.limit_ms), 0 },
	{ "grace", RECORD_MS, AT(request.grace_ms), 0 },
	{ "singleton", RECORD_U32, AT(request.is_singleton), 0 },
	{ "supervised", RECORD_U32, AT(request.is_supervised), 0 },
	{ "preemptible", RECORD_U32, AT(request.is_preemptible), 0 },
	{ "once", RECORD_U32, AT(request.runs_once), 0 },
	{ "back", RECORD_U32, AT(goes_back), 0 },
	{ "leave", RECORD_MS, AT(request.leave_ms), 0 },
	{ "idleok", RECORD_MS, AT(request.unused_ok_ms), 0 },
	{ "after", RECORD_TEXT, AT(request.after), AFTER_SIZE },
	{ "afterstart", RECORD_U32, AT(request.after_start), 0 },
	{ "afterok", RECORD_TEXT, AT(request.after_ok), AFTER_SIZE },
	{ "mostgpus", RECORD_U32, AT(request.most_gpus), 0 },
	{ "mostjobs", RECORD_U32, AT(request.most_jobs), 0 },
	{ "limitsline", RECORD_U32, AT(request.limits_line), 0 },
	{ "prefer", RECORD_TEXT, AT(request.prefer), PREFER_SIZE },
	{ "allow", RECORD_SET, AT(request.allow), 0 },
	{ "name", RECORD_TEXT, AT(request.name), NAME_KEPT_SIZE },
	{ "nh", RECORD_HEX, AT(request.name_hash), 0 },
	{ "command", RECORD_REST, AT(request.command), COMMAND_SIZE_MAX },
};
#undef AT

static const struct record_field control_fields[] = {
	{ "verb", RECORD_U32, offsetof(struct control, verb), 0 },
	{ "ticket", RECORD_U64, offsetof(struct control, ticket), 0 },
	{ "uid", RECORD_U32, offsetof(struct control, uid), 0 },
	{ "by", RECORD_U64, offsetof(struct control, by), 0 },
	{ "at", RECORD_I64, offsetof(struct control, at_ms), 0 },
	{ "boot", RECORD_TEXT, offsetof(struct control, boot), BOOT_SIZE },
	{ "priority", RECORD_I64, offsetof(struct control, priority), 0 },
};

static const struct record_field header_fields[] = {
	{ "hint", RECORD_U64, offsetof(struct ticket_header, hint), 0 },
	{ "punched", RECORD_U64, offsetof(struct ticket_header, punched), 0 },
	{ "swept", RECORD_U64, offsetof(struct ticket_header, swept), 0 },
	{ "lap", RECORD_U64, offsetof(struct ticket_header, lap), 0 },
	{ "", RECORD_EXTRA, offsetof(struct ticket_header, extra), 128 },
};

static const struct record_schema ticket_schema =
	RECORD_SCHEMA("ticket/1", ticket_fields);
static const struct record_schema control_schema =
	RECORD_SCHEMA("control/1", control_fields);
static const struct record_schema header_schema =
	RECORD_SCHEMA("tickets/1", header_fields);

/* --- the file ---------------------------------------------------------------------- */

/* Makes the file with its header, unless another process makes it first. */
static int ticket_make_file(int dirfd)
{
	struct ticket_header header = { .hint = 1 };
	char raw[RECORD_SIZE], temporary[64], token[TOKEN_SIZE];
	int r = record_encode(&header_schema, &header, raw);

	if (r == 0)
		r = token_make(token);
	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "tmp." FILE_NAME ".%s", token);
	return fdio_publish(
		dirfd, FILE_NAME, temporary, raw, sizeof(raw), FDIO_MODE_SHARED);
}

static int ticket_open_fd(int dirfd, int flags)
{
	autofd int fd =
		openat(dirfd, FILE_NAME, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? take_fd(&fd) : -EINVAL;
}

int ticket_open(int dirfd, struct ticket_file *file)
{
	autofd int fd = ticket_open_fd(dirfd, O_RDWR);
	autofd int append_fd = -1;
	int r;

	if (fd == -ENOENT) {
		r = ticket_make_file(dirfd);
		if (r < 0)
			return r;
		fd = ticket_open_fd(dirfd, O_RDWR);
	}
	if (fd < 0)
		return fd;
	append_fd = ticket_open_fd(dirfd, O_WRONLY | O_APPEND);
	if (append_fd < 0)
		return append_fd;
	file->fd = take_fd(&fd);
	file->append_fd = take_fd(&append_fd);
	/* if the file was replaced between the two, ticket_file_check() says so */
	return 0;
}

int ticket_open_to_read(int dirfd, struct ticket_file *file)
{
	int fd = ticket_open_fd(dirfd, O_RDONLY);

	if (fd < 0)
		return fd;
	*file = (struct ticket_file){ .fd = fd, .append_fd = -1 };
	return 0;
}

void ticket_release(struct ticket_file *file)
{
	close_fd(&file->fd);
	close_fd(&file->append_fd);
}

int ticket_file_check(int dirfd, const struct ticket_file *file)
{
	int second = file->append_fd < 0 ? file->fd : file->append_fd;
	struct stat open_one, append_one, named;

	if (file->fd < 0) /* it was lost and could not be opened again */
		return TICKET_FILE_REPLACED;
	if (fstat(file->fd, &open_one) < 0 || fstat(second, &append_one) < 0)
		return -errno;
	if (fstatat(dirfd, FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? TICKET_FILE_REPLACED : -errno;
	return open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev &&
			       append_one.st_ino == named.st_ino
		       ? 0
		       : TICKET_FILE_REPLACED;
}

/*
 * Fills the block of 512 bytes that contains offset @size with zeros.  It writes to the place and
 * does not append.  So however many processes do it at once, and however late, none of them writes
 * into the next block.
 */
static int ticket_fill_block(struct ticket_file *file, off_t size)
{
	off_t block = size - size % RECORD_SIZE;

	return fdio_pwrite(file->fd, record_void, RECORD_SIZE, block);
}

int ticket_end(struct ticket_file *file, uint64_t *ret_end)
{
	struct stat st;
	int r = fstat(file->fd, &st) < 0 ? -errno : 0;

	if (r == 0 && st.st_size % RECORD_SIZE && file->append_fd >= 0) {
		r = ticket_fill_block(file, st.st_size);
		st.st_size += RECORD_SIZE - st.st_size % RECORD_SIZE;
	}
	if (r == 0)
		*ret_end = (uint64_t)st.st_size / RECORD_SIZE;
	return r;
}

/* Tries once.  -EAGAIN: a short append of another process has shifted the end meanwhile. */
static int ticket_append_once(
	struct ticket_file *file, const char *raw, uint64_t *ret_number)
{
	uint64_t end;
	ssize_t n;
	off_t end_at;
	int r = ticket_end(file, &end);

	if (r == 0 && end == 0) /* the file was emptied: number 0 is the header's */
		r = ticket_write_header(file, &(struct ticket_header){ .hint = 1 });
	if (r < 0)
		return r;
	n = write(file->append_fd, raw, RECORD_SIZE);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	/* O_APPEND has moved the position to the end of our bytes, wherever others wrote */
	end_at = lseek(file->append_fd, 0, SEEK_CUR);
	if (end_at < 0)
		return -errno;
	if (n < RECORD_SIZE) {
		/*
		 * A file size limit or a full disk: void the bytes that went in, and no more.  They
		 * may lie across two blocks.
		 */
		(void)!ticket_fill_block(file, end_at - n);
		(void)!ticket_fill_block(file, end_at - 1);
		return -EFBIG;
	}
	/*
	 * A short append of another process came in between ticket_end() and write(), so our record
	 * lies across two blocks: void both, and try again.
	 */
	if (end_at % RECORD_SIZE) {
		r = ticket_fill_block(file, end_at - RECORD_SIZE);
		if (r == 0)
			r = ticket_fill_block(file, end_at);
		return r < 0 ? r : -EAGAIN;
	}
	*ret_number = (uint64_t)end_at / RECORD_SIZE - 1;
	return 0;
}

static int ticket_append_raw(
	struct ticket_file *file, const char *raw, uint64_t *ret_number)
{
	int r = -EAGAIN;

	for (int i = 0; i < APPEND_TRIES && r == -EAGAIN; i++)
		r = ticket_append_once(file, raw, ret_number);
	return r;
}

/*
 * Whether COMMAND_LEAST bytes of the command will still fit with the longest turn number and time
 * that the owner may write later: 0 or a negative errno.  If the owner could take its ticket but
 * not rewrite it later, its turn would fail, and the job would be lost.
 */
static int ticket_check_room(const struct ticket *ticket)
{
	struct ticket later = *ticket;
	char raw[RECORD_SIZE];
	int r;

	if (later.turn < TURN_MOST)
		later.turn = TURN_MOST;
	later.turn_ms = max_i64(later.turn_ms, TURN_MS_MOST);
	/* a command that is too long is cut without an error, so look at what comes back */
	memset(later.request.command, 'x', COMMAND_LEAST);
	later.request.command[COMMAND_LEAST] = '\0';
	r = record_encode(&ticket_schema, &later, raw);
	if (r == 0)
		r = record_decode(&ticket_schema, raw, &later);
	if (r == 0 && strspn(later.request.command, "x") != COMMAND_LEAST)
		r = -EMSGSIZE;
	return r;
}

/*
 * Encodes the ticket.  Before the command has too little room, this leaves out what the record can
 * do without: most of a long name, then why the owner is stuck.  Returns 0 or a negative errno.
 */
static int ticket_encode(const struct ticket *ticket, char raw[RECORD_SIZE])
{
	struct ticket shorter;

	if ((ticket->stuck[0] || ticket->request.name_hash) &&
		ticket_check_room(ticket) < 0) {
		shorter = *ticket;
		if (ticket->request.name_hash)
			job_name_shorten(shorter.request.name);
		if (ticket_check_room(&shorter) < 0)
			shorter.stuck[0] = '\0';
		ticket = &shorter;
	}
	return record_encode(&ticket_schema, ticket, raw);
}

int ticket_append(
	struct ticket_file *file, const struct ticket *ticket, uint64_t *ret_number)
{
	struct ticket least = *ticket;
	char raw[RECORD_SIZE];
	int r;

	if (ticket->request.name_hash)
		job_name_shorten(least.request.name);
	r = ticket_check_room(&least);
	if (r == 0)
		r = ticket_encode(ticket, raw);
	return r < 0 ? r : ticket_append_raw(file, raw, ret_number);
}

int ticket_append_control(struct ticket_file *file, const struct control *control)
{
	char raw[RECORD_SIZE];
	uint64_t number;
	int r = record_encode(&control_schema, control, raw);

	return r < 0 ? r : ticket_append_raw(file, raw, &number);
}

int ticket_rewrite(struct ticket_file *file, uint64_t number, const struct ticket *ticket)
{
	char raw[RECORD_SIZE];
	int r = ticket_encode(ticket, raw);

	return r < 0 ? r
		     : fdio_pwrite(
			       file->fd, raw, RECORD_SIZE, (off_t)number * RECORD_SIZE);
}

/* --- reading ----------------------------------------------------------------------- */

int ticket_read_raw(struct ticket_file *file, uint64_t number, size_t count, char *raw,
	size_t *ret_count)
{
	size_t bytes = 0;
	int r = fdio_pread(
		file->fd, raw, count * RECORD_SIZE, (off_t)number * RECORD_SIZE, &bytes);

	if (r == 0)
		*ret_count = bytes / RECORD_SIZE;
	return r;
}

uint64_t ticket_skip_hole(const struct ticket_file *file, uint64_t number)
{
	off_t at = (off_t)number * RECORD_SIZE;
	off_t data = lseek(file->fd, at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		return INT64_MAX / RECORD_SIZE / 2; /* no data follows: past the end */
	/* @number also after another failure: the file system cannot tell */
	return data <= at ? number : (uint64_t)data / RECORD_SIZE;
}

enum ticket_kind ticket_glance(const char *raw)
{
	if (raw[0] == '\0')
		return TICKET_VOID;
	if (record_is(raw, ticket_schema.type))
		return TICKET_RECORD;
	return record_is(raw, control_schema.type) ? TICKET_CONTROL : TICKET_OTHER;
}

/*
 * If the field @key is at *@at, returns its number and moves *@at behind the field; 0: it is not.
 * INT64_MAX: it is no number.
 */
static int64_t glance_number(const char **at, const char *key)
{
	size_t size = strlen(key);
	const char *digits = *at + size;
	bool is_negative;
	int64_t value = 0;

	if (memcmp(*at, key, size) != 0)
		return 0;
	is_negative = *digits == '-';
	digits += is_negative;
	do {
		int digit = *digits - '0';

		/* count down: INT64_MIN has no positive counterpart */
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
			__builtin_sub_overflow(value, digit, &value))
			return INT64_MAX;
	} while (*++digits != ' ');
	*at = digits + 1;
	if (is_negative)
		return value;
	return value == INT64_MIN ? INT64_MAX : -value;
}

void ticket_glance_place(const char *raw, int64_t *ret_priority, int64_t *ret_order_ms)
{
	const char *at = raw + strlen(ticket_schema.type) + 1;

	*ret_priority = glance_number(&at, "priority=");
	*ret_order_ms = glance_number(&at, "order=");
	if (*ret_order_ms == INT64_MAX)
		*ret_order_ms = 1;
}

enum ticket_kind ticket_decode(
	const char *raw, struct ticket *ticket, struct control *control)
{
	/* record_decode() checks the sum of these two kinds; the others need record_judge() */
	switch (ticket_glance(raw)) {
	case TICKET_RECORD:
		return record_decode(&ticket_schema, raw, ticket) == 0 &&
				       is_token(ticket->owner.token)
			       ? TICKET_RECORD
			       : TICKET_BROKEN;
	case TICKET_CONTROL:
		return record_decode(&control_schema, raw, control) == 0 ? TICKET_CONTROL
									 : TICKET_BROKEN;
	default:
		break;
	}
	switch (record_judge(raw)) {
	case RECORD_VOID:
		return TICKET_VOID;
	case RECORD_BROKEN:
		return TICKET_BROKEN;
	case RECORD_GOOD:
		break;
	}
	return TICKET_OTHER;
}

int ticket_read(struct ticket_file *file, uint64_t number, struct ticket *ret)
{
	int kind = TICKET_BROKEN;

	/* the owner may be rewriting it: the record is whole a moment later */
	for (int i = 0; i < BAD_SUM_TRIES && kind == TICKET_BROKEN; i++) {
		char raw[RECORD_SIZE];
		struct control control;
		size_t count = 0;
		int r = ticket_read_raw(file, number, 1, raw, &count);

		if (r < 0)
			return r;
		kind = count ? (int)ticket_decode(raw, ret, &control) : TICKET_VOID;
	}
	return kind;
}

/* Calls @each if the record is a ticket.  Reads a record with a bad sum again. */
static int ticket_visit(struct ticket_file *file, uint64_t number, const char *raw,
	ticket_each_fn *each, void *arg)
{
	struct control control;
	struct ticket ticket;
	int kind = (int)ticket_glance(raw);

	if (kind == TICKET_RECORD)
		kind = (int)ticket_decode(raw, &ticket, &control);
	if (kind == TICKET_BROKEN)
		kind = ticket_read(file, number, &ticket);
	return kind == TICKET_RECORD ? each(arg, number, &ticket) : 0;
}

int ticket_each(struct ticket_file *file, uint64_t number, uint64_t end,
	ticket_each_fn *each, void *arg)
{
	static char raw[EACH_CHUNK * RECORD_SIZE];

	for (uint64_t left = EACH_MAX; left > 0;) {
		size_t count = 0;
		int r;

		/* a hole reads as void records; skip it, for it may span millions of them */
		number = ticket_skip_hole(file, number);
		if (number >= end)
			return 0;
		r = ticket_read_raw(file, number, EACH_CHUNK, raw, &count);
		if (r == 0 && count > end - number)
			count = (size_t)(end - number);
		for (size_t i = 0; i < count && r == 0; i++)
			r = ticket_visit(
				file, number + i, raw + i * RECORD_SIZE, each, arg);
		if (r != 0 || count == 0)
			return r;
		number += count;
		left -= count < left ? count : left;
	}
	return -EFBIG;
}

bool ticket_find_cancel(
	struct ticket_file *file, uint64_t job, uint32_t owner_uid, uint32_t *ret_uid)
{
	static char raw[EACH_CHUNK * RECORD_SIZE];
	struct ticket ticket;
	struct control control;
	uint64_t number, end;
	size_t count = 0;

	if (ticket_end(file, &end) < 0)
		return false;
	number = end > TICKET_CANCELS ? end - TICKET_CANCELS : 1;
	number = job >= number ? job + 1 : number;
	for (; number < end; number += count) {
		if (ticket_read_raw(file, number, EACH_CHUNK, raw, &count) < 0 || !count)
			return false;
		for (size_t i = 0; i < count; i++) {
			const char *record = raw + i * RECORD_SIZE;

			if (ticket_glance(record) == TICKET_CONTROL &&
				ticket_decode(record, &ticket, &control) ==
					TICKET_CONTROL &&
				control.verb == CONTROL_CANCEL && control.ticket == job &&
				(control.uid == 0 || control.uid == owner_uid)) {
				*ret_uid = control.uid;
				return true;
			}
		}
	}
	return false;
}

bool ticket_may_live(const struct statedir *dir, const struct ticket *ticket)
{
	const struct owner *owner = &ticket->owner;
	enum owner_state state = OWNER_DEAD;

	/* the job has left this ticket for a later one: its process needs only the first */
	bool is_needed = ticket->state != TICKET_LEFT || !ticket->job;

	if (strcmp(ticket->boot, dir->boot) == 0 && is_needed) {
		state = owner_judge_job(owner, &ticket->runs, dir->pidns);
		/*
		 * Such a job is over with its process.  One process could hold the FIFOs of any
		 * number of these jobs.
		 */
		if (state == OWNER_DEAD && !ticket->request.gpus)
			return false;
	}
	/* an adopted process has no FIFO, so it counts as alive while it cannot be judged */
	if (state == OWNER_ALIVE || (state == OWNER_UNDECIDED && owner->is_adopted))
		return true;
	return live_fifo_look(dir, owner->token, NULL) != LIVE_FIFO_GONE;
}

bool ticket_has_process(const struct statedir *dir, const struct ticket *ticket)
{
	switch (owner_judge_job(&ticket->owner, &ticket->runs, dir->pidns)) {
	case OWNER_ALIVE:
		return true;
	case OWNER_DEAD:
		return false;
	case OWNER_UNDECIDED:
		break;
	}
	return live_fifo_look(dir, ticket->owner.token, NULL) != LIVE_FIFO_GONE;
}

void ticket_read_header(struct ticket_file *file, struct ticket_header *header)
{
	*header = (struct ticket_header){ .hint = 1 };
	/* another process may be writing it: read again */
	for (int i = 0; i < BAD_SUM_TRIES; i++) {
		char raw[RECORD_SIZE];
		size_t count = 0;

		if (ticket_read_raw(file, 0, 1, raw, &count) < 0 || count == 0)
			return;
		if (record_decode(&header_schema, raw, header) == 0)
			break;
	}
	if (header->hint < 1)
		header->hint = 1;
}

int ticket_write_header(struct ticket_file *file, const struct ticket_header *header)
{
	char raw[RECORD_SIZE];
	int r = record_encode(&header_schema, header, raw);

	return r < 0 ? r : fdio_pwrite(file->fd, raw, RECORD_SIZE, 0);
}

/* --- locks on names ---------------------------------------------------------------- */

/* The bytes that stand for names begin here, because no file is so large. */
static const uint64_t NAME_RANGES = UINT64_C(1) << 62;

static struct flock name_range(uint32_t uid, const char *name, short type)
{
	uint64_t hash = text_hash(TEXT_HASH_BEGIN, (const char *)&uid, sizeof(uid));

	hash = text_hash(hash, name, strlen(name));
	return (struct flock){ .l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(NAME_RANGES | hash >> 2),
		.l_len = 1 };
}

int ticket_lock_name(
	const struct ticket_file *file, uint32_t uid, const char *name, int64_t until_ms)
{
	struct flock range = name_range(uid, name, F_WRLCK);

	while (fcntl(file->fd, F_OFD_SETLK, &range) < 0) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return -errno;
		if (clock_boot_ms() >= until_ms)
			return TICKET_LOCKED;
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

void ticket_unlock_name(const struct ticket_file *file, uint32_t uid, const char *name)
{
	struct flock range = name_range(uid, name, F_UNLCK);

	(void)fcntl(file->fd, F_OFD_SETLK, &range);
}
