#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "fixture.h"
#include "ticket.h"

/* --- what others do while we are in the middle -------------------------------------- */

static unsigned torn_reads;           /* so many reads see a half-copied record */
static void (*before_write)(void);    /* once: after the size was looked at */
static void (*before_position)(void); /* once: after the record was written */

ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __real_write(int fd, const void *in, size_t size);
ssize_t __wrap_write(int fd, const void *in, size_t size);
off_t __real_lseek(int fd, off_t offset, int whence);
off_t __wrap_lseek(int fd, off_t offset, int whence);

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset)
{
	ssize_t n = __real_pread(fd, out, size, offset);

	if (torn_reads && n >= RECORD_SIZE) {
		torn_reads--;
		memset((char *)out + 100, '#', 50);
	}
	return n;
}

static void call_once(void (**hook)(void))
{
	void (*call)(void) = *hook;

	*hook = NULL;
	if (call)
		call();
}

ssize_t __wrap_write(int fd, const void *in, size_t size)
{
	if (size == RECORD_SIZE)
		call_once(&before_write);
	return __real_write(fd, in, size);
}

off_t __wrap_lseek(int fd, off_t offset, int whence)
{
	call_once(&before_position);
	return __real_lseek(fd, offset, whence);
}

static int setup(void **state)
{
	torn_reads = 0;
	before_write = before_position = NULL;
	return scratch_setup(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)

/* --- helpers ------------------------------------------------------------------------ */

/* The tickets that were shown, by their marks and numbers; @stop: the last of them. */
struct shown {
	uint64_t count, sum, stop;
};

static int show(void *arg, uint64_t number, const struct ticket *ticket)
{
	struct shown *shown = arg;

	assert_int_equal(ticket->since_ms, number * 10);
	shown->count++;
	shown->sum += number;
	return number == shown->stop ? 77 : 0;
}

static struct ticket make_ticket(int64_t mark)
{
	struct ticket ticket = { .state = TICKET_WAITING, .since_ms = mark };

	ticket.request.gpus = 1;
	assert_int_equal(token_make(ticket.owner.token), 0);
	return ticket;
}

static uint64_t append(struct ticket_file *file, int64_t mark)
{
	struct ticket ticket = make_ticket(mark);
	uint64_t number = 0;

	assert_int_equal(ticket_append(file, &ticket, &number), 0);
	return number;
}

static void check_ticket(struct ticket_file *file, uint64_t number, int64_t mark)
{
	struct ticket ticket;

	assert_int_equal(ticket_read(file, number, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.since_ms, mark);
}

static off_t size_of(const struct ticket_file *file)
{
	struct stat st;

	assert_int_equal(fstat(file->fd, &st), 0);
	return st.st_size;
}

static struct ticket_file open_file(const struct scratch *s)
{
	struct ticket_file file = TICKET_FILE_NONE;

	assert_int_equal(ticket_open(s->dirfd, &file), 0);
	return file;
}

/* Limits the size of files.  A process that appends ignores SIGXFSZ, as this one does. */
static void limit_size(rlim_t bytes)
{
	struct rlimit limit;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* --- numbers ------------------------------------------------------------------------ */

static void numbers_count_from_one_in_the_order_of_arrival(void **state)
{
	struct ticket_file one = open_file(*state), two = open_file(*state);
	uint64_t end;

	assert_int_equal(append(&one, 10), 1);
	assert_int_equal(append(&two, 20), 2);
	assert_int_equal(append(&one, 30), 3);
	assert_int_equal(ticket_end(&two, &end), 0);
	assert_int_equal(end, 4);
	check_ticket(&two, 1, 10);
	check_ticket(&one, 2, 20);
	check_ticket(&two, 3, 30);
	ticket_release(&one);
	ticket_release(&two);
	ticket_release(&two);
}

static void a_ticket_is_rewritten_in_its_place(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = make_ticket(10), seen;
	uint64_t number, end;

	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	(void)append(&file, 20);
	ticket.state = TICKET_GRANTED;
	ticket.turn = 7;
	text_copy(ticket.stuck, STUCK_SIZE, "nvidia-smi:Insufficient_Permissions");
	assert_int_equal(ticket_rewrite(&file, number, &ticket), 0);
	assert_int_equal(ticket_end(&file, &end), 0);
	assert_int_equal(end, 3); /* not appended, as pwrite does with O_APPEND */
	assert_int_equal(ticket_read(&file, number, &seen), TICKET_RECORD);
	assert_int_equal(seen.state, TICKET_GRANTED);
	assert_int_equal(seen.turn, 7);
	assert_string_equal(seen.stuck, ticket.stuck);
	check_ticket(&file, 2, 20);
	ticket_release(&file);
}

static void all_fields_come_back(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket, seen;
	uint64_t number;

	memset(&ticket, 0, sizeof(ticket));
	assert_int_equal(owner_self(&ticket.owner), 0);
	ticket.state = TICKET_WAITING;
	ticket.attempt = 3;
	ticket.job = 17;
	ticket.turn = UINT64_MAX;
	ticket.turn_ms = INT64_MAX;
	ticket.since_ms = 5;
	assert_int_equal(boot_id_read(ticket.boot), 0);
	text_copy(ticket.user, sizeof(ticket.user), "a b=c%");
	ticket.request.gpus = 128;
	ticket.request.share_percent = 50;
	ticket.request.vram_mib = 1 << 20;
	ticket.request.priority = -5;
	ticket.request.limit_ms = 3600000;
	ticket.request.grace_ms = 10000;
	ticket.request.is_singleton = 1;
	text_copy(ticket.request.after, AFTER_SIZE, "3,15");
	ticket.request.after_start = 2;
	text_copy(ticket.request.after_ok, AFTER_SIZE, "7");
	text_copy(ticket.request.prefer, PREFER_SIZE, "0102");
	ticket.request.allow = GPUSET_ALL;
	text_copy(ticket.request.name, NAME_SIZE_MAX, "train 1");
	text_copy(
		ticket.request.command, COMMAND_SIZE_MAX, "python train.py --x=\"1\n\"");
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(ticket_read(&file, number, &seen), TICKET_RECORD);
	assert_same_owner(&seen.owner, &ticket.owner);
	assert_string_equal(seen.user, ticket.user);
	assert_string_equal(seen.boot, ticket.boot);
	assert_string_equal(seen.request.name, ticket.request.name);
	assert_string_equal(seen.request.command, ticket.request.command);
	assert_true(gpuset_equals(&seen.request.allow, &ticket.request.allow));
	assert_true(seen.turn == UINT64_MAX && seen.turn_ms == INT64_MAX);
	assert_int_equal(seen.request.priority, -5);
	assert_int_equal(seen.request.share_percent, 50);
	assert_int_equal(seen.request.limit_ms, 3600000);
	assert_int_equal(seen.request.is_singleton, 1);
	assert_string_equal(seen.request.after, "3,15");
	assert_int_equal(seen.request.after_start, 2);
	assert_string_equal(seen.request.after_ok, "7");
	assert_string_equal(seen.request.prefer, "0102");
	assert_int_equal(seen.job, 17);
	assert_int_equal(seen.attempt, 3);
	ticket_release(&file);
}

static void fields_that_are_not_set_are_not_written(void **state)
{
	struct ticket_file file = open_file(*state);
	char raw[RECORD_SIZE];
	size_t count = 0;

	(void)append(&file, 10);
	assert_int_equal(ticket_read_raw(&file, 1, 1, raw, &count), 0);
	raw[RECORD_SIZE - 1] = '\0';
	assert_null(strstr(raw, "priority"));
	assert_null(strstr(raw, "singleton"));
	assert_null(strstr(raw, "after"));
	assert_null(strstr(raw, "prefer"));
	ticket_release(&file);
}

static void fill_with(char *out, size_t size, const char *pattern)
{
	for (size_t i = 0; i + 1 < size; i++)
		out[i] = pattern[i % strlen(pattern)];
	out[size - 1] = '\0';
}

/* As long as it gets within ten years, but for the lists: a machine of 128 GPUs, long names. */
static struct ticket longest_ticket(void)
{
	struct ticket ticket = { .state = TICKET_WAITING,
		.turn_ms = 315360000000,
		.since_ms = 315360000000,
		.owner = { .pid = 4194304,
			.uid = UINT32_MAX,
			.inode = 999999999999,
			.start = 31536000000,
			.pidns = UINT32_MAX },
		.request = { .gpus = 128,
			.share_percent = 50,
			.vram_mib = 1 << 30,
			.priority = -1000000,
			.limit_ms = 315360000000,
			.grace_ms = 315360000000,
			.is_singleton = 1,
			.allow = GPUSET_ALL } };

	assert_int_equal(token_make(ticket.owner.token), 0);
	assert_int_equal(boot_id_read(ticket.boot), 0);
	fill_with(ticket.user, USER_SIZE, "u");
	fill_with(ticket.request.name, NAME_KEPT_SIZE, "n");
	ticket.request.name_hash =
		UINT64_MAX; /* of a longer name, with these first bytes */
	fill_with(ticket.request.command, COMMAND_SIZE_MAX, "c");
	return ticket;
}

/* What is left of the command in ticket @number after ten years of turns. */
static size_t command_left(
	struct ticket_file *file, uint64_t number, struct ticket ticket)
{
	struct ticket seen;

	ticket.turn = 631152000; /* two a second */
	ticket.turn_ms = 631152000000;
	ticket.state = TICKET_GRANTED;
	assert_int_equal(ticket_rewrite(file, number, &ticket), 0);
	assert_int_equal(ticket_read(file, number, &seen), TICKET_RECORD);
	assert_string_equal(seen.request.after, ticket.request.after);
	assert_string_equal(seen.request.after_ok, ticket.request.after_ok);
	assert_string_equal(seen.request.prefer, ticket.request.prefer);
	/* a long name may be shortened: the rest is elsewhere in any case */
	assert_memory_equal(
		seen.request.name, ticket.request.name, strlen(seen.request.name));
	assert_true(strlen(seen.request.name) >= NAME_LEAST_SIZE - 1);
	assert_int_equal(seen.request.name_hash, ticket.request.name_hash);
	return strlen(seen.request.command);
}

static void no_two_fields_have_the_same_key(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = longest_ticket();
	char raw[RECORD_SIZE], keys[2 * RECORD_SIZE], *rest = raw, *word;
	struct text text = TEXT_ON(keys);
	uint64_t number;
	size_t count = 0;

	fill_with(ticket.request.name, 2, "n");
	ticket.user[9] = '\0';
	text_copy(ticket.request.after, AFTER_SIZE, "1");
	ticket.request.after_start = 1;
	text_copy(ticket.request.after_ok, AFTER_SIZE, "2");
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	assert_int_equal(ticket_read_raw(&file, number, 1, raw, &count), 0);
	raw[RECORD_SIZE - 1] = '\0';
	while ((word = strsep(&rest, " "))) {
		char key[RECORD_SIZE];

		if (!strchr(word, '='))
			continue;
		(void)snprintf(key, sizeof(key), " %.*s ", (int)strcspn(word, "="), word);
		assert_null(strstr(keys, key));
		text_add(&text, key);
	}
	assert_non_null(strstr(keys, " afterstart "));
	assert_non_null(strstr(keys, " start "));
	ticket_release(&file);
}

static void the_longest_ticket_leaves_room_for_the_command(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = longest_ticket();
	uint64_t number;

	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	assert_true(command_left(&file, number, ticket) >= COMMAND_LEAST);
	/* also where its owner has something to say: that is left out then */
	fill_with(ticket.stuck, STUCK_SIZE, "s");
	assert_true(command_left(&file, number, ticket) >= COMMAND_LEAST);
	ticket_release(&file);
}

/* With all the lists there are, on a machine and for a user as there are many. */
static void the_lists_leave_room_for_the_command(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = longest_ticket();
	uint64_t number;

	ticket.request.allow = (struct gpuset){ .bits = { 0xffff } };
	fill_with(ticket.user, 9, "u");
	fill_with(ticket.request.name, 17, "n");
	ticket.request.name_hash = 0;
	ticket.request.limit_ms = 7 * 86400000;
	ticket.request.grace_ms = 600000;
	ticket.request.vram_mib = 81920;
	ticket.owner.uid = 1000;
	text_copy(ticket.request.after, AFTER_SIZE, "12345,12346,12347");
	text_copy(ticket.request.after_ok, AFTER_SIZE, "12348,12349");
	fill_with(ticket.request.prefer, PREFER_SIZE, "0f");
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	assert_true(command_left(&file, number, ticket) >= COMMAND_LEAST);
	/* with a long name, without the list of a user who prefers some GPUs */
	ticket.request.name_hash = UINT64_MAX;
	ticket.request.prefer[0] = '\0';
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	assert_true(command_left(&file, number, ticket) >= COMMAND_LEAST);
	ticket_release(&file);
}

/* A ticket that can be taken can be rewritten for years; one that could not is refused at once. */
static void lists_that_leave_no_room_are_refused_at_once(void **state)
{
	struct ticket_file file = open_file(*state);
	unsigned taken = 0, refused = 0;
	uint64_t number, end;

	for (size_t length = 0; length < 2 * (AFTER_SIZE - 1) + PREFER_SIZE; length++) {
		struct ticket ticket = longest_ticket();
		size_t left = length;
		uint64_t before;
		int r;

		ticket.request.allow = (struct gpuset){ .bits = { 0xff } };
		ticket.request.limit_ms = 0;
		for (int i = 0; i < 3; i++) {
			char *const lists[] = { ticket.request.after,
				ticket.request.after_ok, ticket.request.prefer };
			size_t most = i < 2 ? AFTER_SIZE - 1 : PREFER_SIZE - 1;
			size_t size = left < most ? left : most;

			fill_with(lists[i], size + 1, "1");
			left -= size;
		}
		assert_int_equal(ticket_end(&file, &before), 0);
		r = ticket_append(&file, &ticket, &number);
		if (r == 0) {
			assert_int_equal(refused, 0);
			assert_true(command_left(&file, number, ticket) >= COMMAND_LEAST);
			taken++;
			continue;
		}
		assert_int_equal(r, -EMSGSIZE);
		assert_int_equal(ticket_end(&file, &end), 0);
		assert_int_equal(end, before);
		refused++;
	}
	assert_true(taken >= 20 && refused >= 20);
	ticket_release(&file);
}

static void the_place_is_read_at_a_glance(void **state)
{
	static const int64_t good[] = { 0, 1, -1, 9, -10, 1000000, INT64_MAX - 1,
		INT64_MIN };
	static const char *const bad[] = { "", "x", "-", "5x ", "--5 ", "+5 ",
		"9223372036854775808 ", "-9223372036854775809 ",
		"99999999999999999999 " };
	struct ticket_file file = open_file(*state);

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct ticket ticket = make_ticket(1);

		ticket.request.priority = good[i];
		for (size_t k = 0; k < ARRAY_SIZE(good); k++) {
			char raw[RECORD_SIZE];
			uint64_t number;
			size_t count;
			int64_t priority, order_ms;

			ticket.order_ms = good[k];
			ticket.late_ms = good[i];
			assert_int_equal(ticket_append(&file, &ticket, &number), 0);
			assert_int_equal(
				ticket_read_raw(&file, number, 1, raw, &count), 0);
			ticket_glance_place(raw, &priority, &order_ms);
			assert_true(priority == good[i] && order_ms == good[k]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char raw[RECORD_SIZE] = { 0 };
		int64_t priority, order_ms;

		(void)snprintf(raw, sizeof(raw), "ticket/1 priority=%s", bad[i]);
		ticket_glance_place(raw, &priority, &order_ms);
		assert_true(priority == INT64_MAX && order_ms == 0);
		(void)snprintf(raw, sizeof(raw), "ticket/1 priority=7 order=%s", bad[i]);
		ticket_glance_place(raw, &priority, &order_ms);
		assert_true(priority == 7 && order_ms == 1);
	}
	ticket_release(&file);
}

static void a_control_and_a_ticket_are_told_apart(void **state)
{
	struct control control = { .verb = CONTROL_CANCEL, .uid = 1000, .ticket = 1 };
	struct ticket_file file = open_file(*state);
	char raw[RECORD_SIZE];
	struct ticket ticket;
	struct control seen;
	size_t count = 0;

	(void)append(&file, 10);
	assert_int_equal(ticket_append_control(&file, &control), 0);
	assert_int_equal(ticket_read(&file, 2, &ticket), TICKET_CONTROL);
	assert_int_equal(ticket_read_raw(&file, 2, 1, raw, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ticket_glance(raw), TICKET_CONTROL);
	assert_int_equal(ticket_decode(raw, &ticket, &seen), TICKET_CONTROL);
	assert_int_equal(seen.uid, 1000);
	assert_int_equal(seen.ticket, 1);
	raw[20] ^= 1;
	assert_int_equal(ticket_decode(raw, &ticket, &seen), TICKET_BROKEN);
	memset(raw, 0, sizeof(raw));
	assert_int_equal(ticket_decode(raw, &ticket, &seen), TICKET_VOID);
	assert_int_equal(ticket_glance(raw), TICKET_VOID);
	assert_int_equal(ticket_read_raw(&file, 0, 1, raw, &count), 0);
	assert_int_equal(ticket_decode(raw, &ticket, &seen), TICKET_OTHER);
	assert_int_equal(ticket_read(&file, 3, &ticket), TICKET_VOID);
	ticket_release(&file);
}

static void a_ticket_without_a_token_is_broken(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = make_ticket(1);
	uint64_t number;

	text_copy(ticket.owner.token, TOKEN_SIZE, "../../tickets");
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	assert_int_equal(ticket_read(&file, number, &ticket), TICKET_BROKEN);
	ticket_release(&file);
}

/* --- the header --------------------------------------------------------------------- */

static void the_header_says_where_to_begin(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket_header header;

	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 1);
	header.hint = 5;
	header.punched = 8;
	assert_int_equal(ticket_write_header(&file, &header), 0);
	memset(&header, 0, sizeof(header));
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 5);
	assert_int_equal(header.punched, 8);
	assert_int_equal(append(&file, 1), 1); /* numbers do not depend on it */
	ticket_release(&file);
}

static void a_broken_header_reads_as_the_start(void **state)
{
	static const char garbage[RECORD_SIZE] = "tickets/1 hint=99 sum=00000000\n";
	struct ticket_file file = open_file(*state);
	struct ticket_header header = { .hint = 7 };

	assert_int_equal(ticket_write_header(&file, &header), 0);
	assert_int_equal(pwrite(file.fd, garbage, RECORD_SIZE, 0), RECORD_SIZE);
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 1);
	/* a hint of 0 would be the header itself */
	header.hint = 0;
	assert_int_equal(ticket_write_header(&file, &header), 0);
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 1);
	ticket_release(&file);
}

/* As another version of gpulease writes it. */
static void unknown_keys_stay_in_the_header(void **state)
{
	static const struct record_field fields[] = {
		{ "hint", RECORD_U64, offsetof(struct ticket_header, hint), 0 },
		{ "", RECORD_EXTRA, offsetof(struct ticket_header, extra), 128 },
	};
	static const struct record_schema newer = RECORD_SCHEMA("tickets/1", fields);
	struct ticket_file file = open_file(*state);
	struct ticket_header header = { .hint = 3, .extra = "shape=round color=blue" };
	char raw[RECORD_SIZE];

	assert_int_equal(record_encode(&newer, &header, raw), 0);
	assert_int_equal(pwrite(file.fd, raw, RECORD_SIZE, 0), RECORD_SIZE);
	memset(&header, 0, sizeof(header));
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 3);
	header.hint = 4;
	assert_int_equal(ticket_write_header(&file, &header), 0);
	assert_int_equal(pread(file.fd, raw, RECORD_SIZE, 0), RECORD_SIZE);
	assert_non_null(memmem(raw, RECORD_SIZE, "hint=4 ", 7));
	assert_non_null(memmem(raw, RECORD_SIZE, " shape=round color=blue", 23));
	ticket_release(&file);
}

/* --- reading while others write ----------------------------------------------------- */

static void a_record_half_copied_is_read_again(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket_header header = { .hint = 4 };
	struct ticket ticket;

	(void)append(&file, 10);
	assert_int_equal(ticket_write_header(&file, &header), 0);
	for (unsigned torn = 1; torn <= 3; torn++) {
		torn_reads = torn;
		check_ticket(&file, 1, 10);
		assert_int_equal(torn_reads, 0);
		torn_reads = torn;
		ticket_read_header(&file, &header);
		assert_int_equal(header.hint, 4);
	}
	torn_reads = 1000; /* it stays so: broken, and found so in the end */
	assert_int_equal(ticket_read(&file, 1, &ticket), TICKET_BROKEN);
	torn_reads = 1000;
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 1);
	ticket_release(&file);
}

/* --- short appends ------------------------------------------------------------------ */

static void all_tickets_are_shown_once_in_their_order(void **state)
{
	enum {
		TICKETS = 200
	}; /* 1 to 200, but for a void one, a broken one, a control */
	static const struct {
		uint64_t from, end, stop, count, sum;
		int r;
	} table[] = {
		{ 1, UINT64_MAX, 0, TICKETS - 3, TICKETS * (TICKETS + 1) / 2 - 140, 0 },
		{ 1, 4, 0, 3, 6, 0 },
		{ 60, 72, 0, 11, 716, 0 },
		{ 7, 7, 0, 0, 0, 0 },
		{ TICKETS, TICKETS + 1, 0, 1, TICKETS, 0 },
		{ TICKETS + 1, UINT64_MAX, 0, 0, 0, 0 },
		{ 1, UINT64_MAX, 66, 64, 66 * 67 / 2 - 70, 77 },
	};
	static const char zeros[RECORD_SIZE];
	struct ticket_file file = open_file(*state);
	struct control control = { .verb = CONTROL_CANCEL, .ticket = 1 };

	for (int64_t number = 1; number <= TICKETS; number++)
		if (number == 50)
			assert_int_equal(ticket_append_control(&file, &control), 0);
		else
			(void)append(&file, number * 10);
	assert_int_equal(
		pwrite(file.fd, zeros, RECORD_SIZE, 20 * RECORD_SIZE), RECORD_SIZE);
	assert_int_equal(pwrite(file.fd, "#", 1, 50 + 70 * RECORD_SIZE), 1);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct shown shown = { .stop = table[i].stop };

		torn_reads = 1; /* and is read again */
		assert_int_equal(
			ticket_each(&file, table[i].from, table[i].end, show, &shown),
			table[i].r);
		assert_int_equal(shown.count, table[i].count);
		assert_int_equal(shown.sum, table[i].sum);
	}
	torn_reads = 0;
	ticket_release(&file);
}

static void an_append_cut_short_is_repaired_by_the_next(void **state)
{
	struct ticket_file file = open_file(*state);

	(void)append(&file, 10);
	for (unsigned used = 1; used < RECORD_SIZE; used += 101) {
		struct ticket ticket;
		uint64_t number = append(&file, 20), next;
		off_t size = size_of(&file);

		/* as a process with a limit, that was killed before it could repair */
		assert_int_equal(pwrite(file.fd, "ticket/1 priority=9 state=1",
					 used < 27 ? used : 27, size),
			used < 27 ? used : 27);
		assert_int_equal(ftruncate(file.fd, size + (off_t)used), 0);
		next = append(&file, 30);
		assert_int_equal(next, number + 2);
		check_ticket(&file, number, 20);
		check_ticket(&file, next, 30);
		assert_int_equal(ticket_read(&file, number + 1, &ticket), TICKET_VOID);
		assert_int_equal(size_of(&file) % RECORD_SIZE, 0);
	}
	ticket_release(&file);
}

static void a_reader_of_the_end_repairs_it(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket;
	uint64_t end;

	(void)append(&file, 10);
	assert_int_equal(ftruncate(file.fd, 2 * RECORD_SIZE + 7), 0);
	assert_int_equal(ticket_end(&file, &end), 0);
	assert_int_equal(end, 3);
	assert_int_equal(size_of(&file), 3 * RECORD_SIZE);
	assert_int_equal(ticket_read(&file, 2, &ticket), TICKET_VOID);
	check_ticket(&file, 1, 10);
	ticket_release(&file);
}

/* What ticket_append() says under a limit of @bytes, in a process of its own. */
static int append_limited(struct ticket_file *file, rlim_t bytes)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct ticket ticket = { .state = TICKET_WAITING };
		struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };
		uint64_t number;

		(void)signal(SIGXFSZ, SIG_IGN);
		if (token_make(ticket.owner.token) < 0 ||
			setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(255);
		_exit(-ticket_append(file, &ticket, &number));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void a_file_size_limit_leaves_no_broken_record(void **state)
{
	struct ticket_file file = open_file(*state);

	(void)append(&file, 10);
	for (rlim_t more = 0; more < 2 * RECORD_SIZE; more += 64) {
		off_t size = size_of(&file);
		uint64_t number;
		int r = append_limited(&file, (rlim_t)size + more);

		assert_int_equal(r, more < RECORD_SIZE ? -EFBIG : 0);
		number = append(&file, 20);
		check_ticket(&file, number, 20);
		assert_int_equal(size_of(&file) % RECORD_SIZE, 0);
		check_ticket(&file, 1, 10);
	}
	ticket_release(&file);
}

static struct ticket_file others; /* opened by itself: a position is not shared */
static uint64_t others_number;

/* Another append is cut short between our look at the end and our write. */
static void cut_short_at_100(void)
{
	off_t end = size_of(&others);

	assert_int_equal(ftruncate(others.fd, end + 100), 0);
}

static void append_of_another(void)
{
	limit_size(RLIM_INFINITY);
	others_number = append(&others, 77);
}

static void an_append_shifted_by_another_is_taken_again(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket;
	uint64_t number;

	others = open_file(*state);
	(void)append(&file, 10);
	before_write = cut_short_at_100;
	number = append(&file, 20);
	assert_int_equal(number, 4); /* two blocks were spoiled */
	check_ticket(&file, 1, 10);
	check_ticket(&file, 4, 20);
	assert_int_equal(ticket_read(&file, 2, &ticket), TICKET_VOID);
	assert_int_equal(ticket_read(&file, 3, &ticket), TICKET_VOID);
	ticket_release(&file);
	ticket_release(&others);
}

static void a_shifted_append_spares_the_next_record(void **state)
{
	struct ticket_file file = open_file(*state);
	uint64_t number;

	others = open_file(*state);
	(void)append(&file, 10);
	before_write = cut_short_at_100;
	before_position = append_of_another; /* ours is in, and not yet repaired */
	number = append(&file, 20);
	check_ticket(&file, others_number, 77);
	check_ticket(&file, number, 20);
	assert_int_not_equal(number, others_number);
	ticket_release(&file);
	ticket_release(&others);
}

/* Shifted and cut at once, so that it ends where the next ticket begins. */
static void an_append_both_shifted_and_cut_spares_the_next_record(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket ticket = make_ticket(20);
	uint64_t number;
	int r;

	others = open_file(*state);
	(void)append(&file, 10);
	before_write = cut_short_at_100;
	before_position = append_of_another;
	limit_size(3 * RECORD_SIZE);
	r = ticket_append(&file, &ticket, &number);
	limit_size(RLIM_INFINITY);
	assert_int_equal(r, -EFBIG);
	check_ticket(&file, 1, 10);
	check_ticket(&file, others_number, 77);
	ticket_release(&file);
	ticket_release(&others);
}

/* --- a file that is not what it was ------------------------------------------------- */

static void a_replaced_or_deleted_file_is_noticed(void **state)
{
	struct scratch *s = *state;
	struct ticket_file file = open_file(s), fresh;

	assert_int_equal(ticket_file_check(s->dirfd, &file), 0);
	assert_int_equal(unlinkat(s->dirfd, "tickets", 0), 0);
	assert_int_equal(ticket_file_check(s->dirfd, &file), TICKET_FILE_REPLACED);
	fresh = open_file(s);
	assert_int_equal(ticket_file_check(s->dirfd, &fresh), 0);
	assert_int_equal(ticket_file_check(s->dirfd, &file), TICKET_FILE_REPLACED);
	assert_int_equal(append(&fresh, 10), 1);
	/* what cannot be told is no replacement: the ticket would lose its place */
	assert_int_equal(ticket_file_check(-1, &fresh), -EBADF);
	ticket_release(&file);
	assert_int_equal(ticket_file_check(s->dirfd, &file), TICKET_FILE_REPLACED);
	ticket_release(&fresh);
}

static void an_emptied_file_gets_its_header_again(void **state)
{
	struct ticket_file file = open_file(*state);
	struct ticket_header header;

	(void)append(&file, 10);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(append(&file, 20), 1); /* number 0 is the header's */
	ticket_read_header(&file, &header);
	assert_int_equal(header.hint, 1);
	check_ticket(&file, 1, 20);
	ticket_release(&file);
}

static void only_a_regular_file_is_opened(void **state)
{
	struct scratch *s = *state;
	struct ticket_file file = TICKET_FILE_NONE;

	assert_int_equal(mkdirat(s->dirfd, "tickets", 0700), 0);
	assert_true(ticket_open(s->dirfd, &file) < 0);
	assert_int_equal(unlinkat(s->dirfd, "tickets", AT_REMOVEDIR), 0);
	assert_int_equal(mkfifoat(s->dirfd, "tickets", 0600), 0);
	assert_int_equal(ticket_open(s->dirfd, &file), -EINVAL);
	assert_int_equal(unlinkat(s->dirfd, "tickets", 0), 0);
	assert_int_equal(scratch_write(s, "elsewhere", ""), 0);
	assert_int_equal(symlinkat("elsewhere", s->dirfd, "tickets"), 0);
	assert_int_equal(ticket_open(s->dirfd, &file), -ELOOP);
	assert_int_equal(file.fd, -1);
	assert_int_equal(file.append_fd, -1);
}

static void the_file_is_shared_whatever_the_umask(void **state)
{
	mode_t old = umask(077);
	struct ticket_file file = open_file(*state);
	struct stat st;

	(void)umask(old);
	assert_int_equal(fstat(file.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	ticket_release(&file);
}

/* --- many at once ------------------------------------------------------------------- */

enum { APPENDERS = 8, APPENDS = 150 };

/* Appends, and tells its numbers; every third time it spoils the end of the file first. */
static void run_appender(int dirfd, unsigned which, bool spoils, int out)
{
	struct ticket_file file = TICKET_FILE_NONE;

	if (ticket_open(dirfd, &file) < 0)
		_exit(1);
	for (unsigned i = 0; i < APPENDS; i++) {
		struct ticket ticket = { .state = TICKET_WAITING,
			.since_ms = 1 + which * APPENDS + i };
		uint64_t number;

		if (spoils && i % 3 == 0 && write(file.append_fd, "short", 5) != 5)
			_exit(2);
		if (token_make(ticket.owner.token) < 0 ||
			ticket_append(&file, &ticket, &number) < 0 ||
			write(out, &number, sizeof(number)) != sizeof(number))
			_exit(3);
	}
	_exit(0);
}

static void check_many(const struct scratch *s, bool spoils)
{
	static uint64_t numbers[APPENDERS][APPENDS];
	struct ticket_file file = TICKET_FILE_NONE;
	pid_t pids[APPENDERS];
	int outs[APPENDERS];

	for (unsigned i = 0; i < APPENDERS; i++) {
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		assert_true(fcntl(ends[1], F_SETPIPE_SZ, 65536) >= 4096);
		outs[i] = ends[0];
		pids[i] = fork();
		if (pids[i] == 0)
			run_appender(s->dirfd, i, spoils && i % 2, ends[1]);
		(void)close(ends[1]);
	}
	for (unsigned i = 0; i < APPENDERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
		assert_int_equal(read(outs[i], numbers[i], sizeof(numbers[i])),
			sizeof(numbers[i]));
		(void)close(outs[i]);
	}
	file = open_file(s);
	/* each ticket lies where its owner was told, so no two have the same number */
	for (unsigned i = 0; i < APPENDERS; i++)
		for (unsigned k = 0; k < APPENDS; k++) {
			check_ticket(&file, numbers[i][k], 1 + i * APPENDS + k);
			assert_true(k == 0 || numbers[i][k] > numbers[i][k - 1]);
		}
	if (!spoils)
		assert_int_equal(size_of(&file), (1 + APPENDERS * APPENDS) * RECORD_SIZE);
	ticket_release(&file);
}

static void many_at_once_get_distinct_numbers(void **state)
{
	check_many(*state, false);
}

static void many_appends_at_once_survive_appends_that_are_cut(void **state)
{
	check_many(*state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_count_from_one_in_the_order_of_arrival),
		TEST(a_ticket_is_rewritten_in_its_place),
		TEST(all_fields_come_back),
		TEST(fields_that_are_not_set_are_not_written),
		TEST(no_two_fields_have_the_same_key),
		TEST(the_longest_ticket_leaves_room_for_the_command),
		TEST(the_lists_leave_room_for_the_command),
		TEST(lists_that_leave_no_room_are_refused_at_once),
		TEST(the_place_is_read_at_a_glance),
		TEST(a_control_and_a_ticket_are_told_apart),
		TEST(a_ticket_without_a_token_is_broken),
		TEST(the_header_says_where_to_begin),
		TEST(a_broken_header_reads_as_the_start),
		TEST(unknown_keys_stay_in_the_header),
		TEST(a_record_half_copied_is_read_again),
		TEST(all_tickets_are_shown_once_in_their_order),
		TEST(an_append_cut_short_is_repaired_by_the_next),
		TEST(a_reader_of_the_end_repairs_it),
		TEST(a_file_size_limit_leaves_no_broken_record),
		TEST(an_append_shifted_by_another_is_taken_again),
		TEST(a_shifted_append_spares_the_next_record),
		TEST(an_append_both_shifted_and_cut_spares_the_next_record),
		TEST(a_replaced_or_deleted_file_is_noticed),
		TEST(an_emptied_file_gets_its_header_again),
		TEST(only_a_regular_file_is_opened),
		TEST(the_file_is_shared_whatever_the_umask),
		TEST(many_at_once_get_distinct_numbers),
		TEST(many_appends_at_once_survive_appends_that_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
