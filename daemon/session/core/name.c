/* Names of sessions, read and written: the one place that knows what a slash means. */
#include "name.h"

#include "base/printable.h"

#include <stdio.h>

/* (uid_t)-1 is nobody, to every system call. */
#define UID_LAST (UINT32_MAX - 1)

/* As most ids are; the others have to be looked at character by character. */
static bool is_plain(struct bytes id)
{
	for (size_t i = 0; i < id.size; i++)
		if (id.data[i] <= ' ' || id.data[i] > '~')
			return false;
	return true;
}

static bool id_valid(struct bytes id)
{
	return id.size > 0 && id.size <= SESSION_ID_MAX && (is_plain(id) || printable(id));
}

/* How many characters before a slash are digits, if all are; else 0. */
static size_t owner_size(struct bytes text)
{
	size_t n = 0;

	while (n < text.size && text.data[n] >= '0' && text.data[n] <= '9')
		n++;
	return n < text.size && text.data[n] == '/' ? n : 0;
}

static int owner_read(uid_t *ownerp, struct bytes digits)
{
	uint64_t owner = 0;

	for (size_t i = 0; i < digits.size && owner <= UID_LAST; i++)
		owner = owner * 10 + (uint64_t)(digits.data[i] - '0');
	if (owner > UID_LAST)
		return SESSION_NAME_E_INVALID;
	*ownerp = (uid_t)owner;
	return 0;
}

int session_name_read(struct session_name *name, struct bytes text, uid_t asker)
{
	size_t n = asker == 0 ? owner_size(text) : 0;
	int r;

	*name = (struct session_name){.owner = asker, .id = text};
	if (!text.data)
		return 0;
	if (n > 0) {
		r = owner_read(&name->owner, (struct bytes){.data = text.data, .size = n});
		if (r)
			return r;
		name->id = (struct bytes){.data = text.data + n + 1, .size = text.size - n - 1};
	}
	return id_valid(name->id) ? 0 : SESSION_NAME_E_INVALID;
}

char *session_name_write(char out[static SESSION_NAME_SIZE], const char *id, uid_t owner, uid_t asker)
{
	if (owner == asker && (asker != 0 || owner_size(bytes_of(id)) == 0))
		snprintf(out, SESSION_NAME_SIZE, "%s", id);
	else
		snprintf(out, SESSION_NAME_SIZE, "%u/%s", owner, id);
	return out;
}
