/* Names come out of sessions and are hostile: this file makes sure that none is more than a name. */
#include "walk.h"

#include <stdio.h>

void walk_deinit(struct walk *walk)
{
	struct walk_entry entry;

	while (walk_pop(walk, &entry))
		walk_entry_deinit(&entry);
	free(walk->entries);
	*walk = (struct walk){.entries = NULL};
}

int walk_push(struct walk *walk, const char *session, const char *path, bool directory)
{
	struct walk_entry entry = {
		.session = session ? strdup(session) : NULL, .path = strdup(path), .directory = directory};

	if (walk->n == walk->allocated) {
		size_t allocated = walk->allocated ? 2 * walk->allocated : 64;
		struct walk_entry *grown = reallocarray(walk->entries, allocated, sizeof(*grown));

		if (grown) {
			walk->entries = grown;
			walk->allocated = allocated;
		}
	}
	if (walk->n == walk->allocated || !entry.path || (session && !entry.session)) {
		walk_entry_deinit(&entry);
		return -ENOMEM;
	}
	walk->entries[walk->n++] = entry;
	return 0;
}

bool walk_join(char out[static PATH_MAX], const char *path, struct lair_text name)
{
	const char *slash = *path && path[strlen(path) - 1] != '/' ? "/" : "";

	if (name.size == 0 || name.size > NAME_MAX || memchr(name.data, '/', name.size) ||
	    memchr(name.data, '\0', name.size))
		return false;
	if ((name.size == 1 && name.data[0] == '.') || (name.size == 2 && memcmp(name.data, "..", 2) == 0))
		return false;
	return snprintf(out, PATH_MAX, "%s%s%.*s", path, slash, (int)name.size, name.data) < PATH_MAX;
}

bool walk_pop(struct walk *walk, struct walk_entry *entryp)
{
	if (walk->n == 0)
		return false;
	*entryp = walk->entries[--walk->n];
	return true;
}
