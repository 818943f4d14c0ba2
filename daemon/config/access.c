/* Users and groups are numbers here. A name that was none of anybody's stays a name, and fits nobody. */
#include "access.h"

#include "base/quantity.h"

static bool is_in(const struct string_list *list, uint64_t wanted)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *at = list->items[i];
		uint64_t number;

		if (digits_parse(&number, &at) && !*at && number == wanted)
			return true;
	}
	return false;
}

bool profile_is_for(const struct profile *profile, const struct membership *membership)
{
	bool is_for = (profile->users.n == 0 && profile->groups.n == 0) || membership->uid == 0 ||
		      membership->uid == geteuid() || is_in(&profile->users, membership->uid);

	for (size_t i = 0; !is_for && i < membership->n; i++)
		is_for = is_in(&profile->groups, membership->groups[i]);
	return is_for;
}

char *config_profiles_for(const struct config *config, const struct membership *membership)
{
	char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);

	for (size_t i = 0; out && i < config->n_profiles; i++)
		if (profile_is_for(config->profiles[i], membership))
			fprintf(out, "%s%s", ftell(out) > 0 ? ", " : "", config->profiles[i]->name);
	if (out && fclose(out) == 0)
		return names;
	free(names);
	return NULL;
}
