/* Two settings are the same if they are printed alike. */
#include "changes.h"

#include "keys.h"

struct comparison {
	int (*fn)(void *userdata, const struct setting_delta *delta);
	void *userdata;
};

static int setting_compare(const struct comparison *to, const char *profile, const struct key *key,
			   const void *before, const void *now)
{
	_cleanup_(freep) char *old = NULL, *new = NULL;
	int r = value_text(&old, before, key);

	if (!r)
		r = value_text(&new, now, key);
	if (r || !strcmp(old, new))
		return r;
	return to->fn(to->userdata, &(struct setting_delta){.kind = "changed",
							    .profile = profile,
							    .setting = key->name,
							    .before = old,
							    .after = new,
							    .at_start = key->at_start});
}

static int section_compare(const struct comparison *to, const char *profile, const struct key_table *table,
			   const void *before, const void *now)
{
	int r = 0;

	for (size_t i = 0; !r && i < table->n; i++)
		r = setting_compare(to, profile, &table->keys[i], before, now);
	return r;
}

static int profile_compare(const struct comparison *to, const struct profile *before, const struct profile *now)
{
	if (before && now)
		return section_compare(to, now->name, &profile_keys, before, now);
	return to->fn(to->userdata, &(struct setting_delta){.kind = now ? "added" : "removed",
							    .profile = (now ? now : before)->name});
}

int config_compare(const struct config *before, const struct config *now,
		   int (*fn)(void *userdata, const struct setting_delta *delta), void *userdata)
{
	const struct comparison to = {.fn = fn, .userdata = userdata};
	int r = section_compare(&to, NULL, &daemon_keys, before, now);

	for (size_t i = 0; !r && i < now->n_profiles; i++) {
		const struct profile *profile = now->profiles[i];

		r = profile_compare(&to, config_profile(before, bytes_of(profile->name)), profile);
	}
	for (size_t i = 0; !r && i < before->n_profiles; i++) {
		const struct profile *profile = before->profiles[i];

		if (!config_profile(now, bytes_of(profile->name)))
			r = profile_compare(&to, profile, NULL);
	}
	return r;
}
