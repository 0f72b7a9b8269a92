/*
 * forge: writes records as any member of the group of a shared state directory can: a ticket of
 * process PID, and a lease of the first GPU unless the ticket waits.
 *
 *	forge DIR PID UID TOKEN [waits]
 *
 * UID is the user in the records.  Prints the number of the ticket.
 */
#include <fcntl.h>
#include <stdio.h>

#include "clock.h"
#include "lease.h"
#include "parse.h"
#include "statedir.h"

static int forge(struct statedir *dir, const struct owner *owner, bool waits)
{
	struct ticket ticket = { .state = waits ? TICKET_WAITING : TICKET_GRANTED,
		.owner = *owner,
		.since_ms = clock_boot_ms(),
		.request = { .gpus = 1 } };
	struct lease lease = { .owner = *owner, .since_ms = ticket.since_ms };
	struct ticket_file tickets;
	struct lease_file file;

	text_copy(ticket.boot, sizeof(ticket.boot), dir->boot);
	text_copy(lease.boot, sizeof(lease.boot), dir->boot);
	if (ticket_open(dir->fd, &tickets) < 0 ||
		ticket_append(&tickets, &ticket, &lease.ticket) < 0)
		return 1;
	gpuset_add(&lease.gpus, 0);
	if (!waits && (lease_open_slot(dir, 0, &file) != 0 ||
			      lease_lock(&file, clock_boot_ms() + 1000) != 0 ||
			      lease_write(&file, 1, &lease) < 0))
		return 1;
	printf("%llu\n", (unsigned long long)lease.ticket);
	return 0;
}

int main(int argc, char **argv)
{
	struct statedir_choice choice = { .system_path = "" };
	struct statedir dir = STATEDIR_NONE;
	struct why why = WHY_NONE;
	struct owner owner;
	uint64_t pid, uid;

	if (argc < 5 || parse_u64(argv[2], INT32_MAX, &pid, NULL) < 0 ||
		parse_u64(argv[3], UINT32_MAX, &uid, NULL) < 0 || !is_token(argv[4])) {
		(void)fprintf(stderr, "usage: forge DIR PID UID TOKEN [waits]\n");
		return 125;
	}
	choice.explicit_path = argv[1];
	if (statedir_open(&choice, &dir, &why) < 0 ||
		owner_of_pid((uint32_t)pid, &owner) < 0) {
		(void)fprintf(stderr, "forge: %s\n", why.text);
		return 1;
	}
	owner.uid = (uint32_t)uid;
	text_copy(owner.token, sizeof(owner.token), argv[4]);
	return forge(&dir, &owner, argc > 5);
}
