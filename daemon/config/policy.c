/* Patterns against names of functions. A name comes from a client, so no pattern takes longer than both are long,
 * multiplied. */
#include "policy.h"

/* * stands for any characters, ? for one. A mismatch after a star goes on one character later. */
static bool matches(const char *pattern, struct bytes name)
{
	const char *star = NULL;
	size_t at = 0, since = 0;

	while (at < name.size) {
		if (*pattern == '*') {
			star = ++pattern;
			since = at;
		} else if (*pattern == '?' || (*pattern && *pattern == name.data[at])) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star;
			at = ++since;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool any_matches(const struct string_list *patterns, struct bytes name)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (matches(patterns->items[i], name))
			return true;
	return false;
}

enum function_ruling profile_ruling(const struct profile *profile, struct bytes name)
{
	static const enum function_ruling others[] = {[FUNCTIONS_OFF] = FUNCTION_DENIED,
						      [FUNCTIONS_ASK] = FUNCTION_ASKED_FOR,
						      [FUNCTIONS_ON] = FUNCTION_ALLOWED};

	if (any_matches(&profile->functions_deny, name))
		return FUNCTION_DENIED;
	if (any_matches(&profile->functions_ask, name))
		return FUNCTION_ASKED_FOR;
	return any_matches(&profile->functions_allow, name) ? FUNCTION_NAMED : others[profile->functions];
}

bool profile_lets_install(const struct profile *profile, struct bytes name)
{
	return !any_matches(&profile->packages_deny, name) &&
	       (profile->packages_allow.n == 0 || any_matches(&profile->packages_allow, name));
}

bool profile_lets_call(const struct profile *profile)
{
	return profile->functions != FUNCTIONS_OFF || profile->functions_ask.n > 0 ||
	       profile->functions_allow.n > 0;
}
