#include <errno.h>
#include <pwd.h>

#include "parse.h"
#include "privacy.h"
#include "slurm_operands.h"

/* --- ids ----------------------------------------------------------------------------- */

size_t slurm_id_length(const char *list)
{
	size_t size = 0;
	bool is_inside = false;

	for (; list[size] && (is_inside || list[size] != ','); size++)
		if (list[size] == '[' || list[size] == ']')
			is_inside = list[size] == '[';
	return size;
}

static size_t count_digits(const char *text)
{
	size_t size = 0;

	while (is_digit(text[size]))
		size++;
	return size;
}

bool is_slurm_array_id(const char *id, size_t size)
{
	return memchr(id, '_', size) != NULL;
}

static bool is_id(const char *text, size_t size)
{
	size_t digits = count_digits(text);
	const char *rest = text + digits + 1;

	if (!digits || digits > 18 || strspn(text, "0") >= digits)
		return false;
	if (digits == size)
		return true;
	if (text[digits] != '_' || digits + 1 == size)
		return false;
	size -= digits + 1;
	return count_digits(rest) == size || (size == 1 && *rest == '*') ||
	       (*rest == '[' && rest[size - 1] == ']' &&
		       strspn(rest + 1, "0123456789,-:*") == size - 2);
}

const char *slurm_find_bad_id(const char *list)
{
	for (size_t size; *list; list += size + (list[size] != '\0')) {
		size = slurm_id_length(list);
		if (size && !is_id(list, size))
			return list;
	}
	return NULL;
}

size_t slurm_count_ids(const char *list)
{
	size_t count = 0;

	for (size_t size; *list; list += size + (list[size] != '\0')) {
		size = slurm_id_length(list);
		count += size != 0;
	}
	return count;
}

/* --- users --------------------------------------------------------------------------- */

static void add_uid(uid_t uid, struct slurm_users *users)
{
	struct text name = TEXT_ON(users->names[users->count]);

	describe_user(uid, NULL, &name);
	users->count++;
	users->is_chosen = true;
}

int slurm_users_add(const char *text, size_t size, struct slurm_users *users)
{
	const struct passwd *entry;
	char name[64];
	uint64_t uid;

	if (!size || size >= sizeof(name) || users->count == ARRAY_SIZE(users->names))
		return -ENOENT;
	(void)snprintf(name, sizeof(name), "%.*s", (int)size, text);
	entry = parse_u64(name, UINT32_MAX, &uid, NULL) == 0 ? getpwuid((uid_t)uid)
							     : getpwnam(name);
	if (!entry)
		return -ENOENT;
	add_uid(entry->pw_uid, users);
	return 0;
}

int slurm_users_add_own(struct slurm_users *users)
{
	users->count = 0;
	add_uid(getuid(), users);
	return 0;
}

bool has_slurm_user(const struct slurm_users *users, const char *name)
{
	if (!users->is_chosen)
		return true;
	for (size_t i = 0; i < users->count; i++)
		if (strcmp(users->names[i], name) == 0)
			return true;
	return false;
}
