/* Places for a template: it finds them again by the identity that they had when the settings were read, not by
 * their names. */
#include "places.h"

#include "config/pins.h"
#include "nursery.h"

static void put_place(struct wire_list *list, const char *kind, const char *path, const struct pin *pin)
{
	const struct place_record record = {
		.kind = bytes_of(kind),
		.path = bytes_of(path),
		.real = bytes_of(pin->path ? pin->path : ""),
		.device = pin->device,
		.inode = pin->inode,
	};

	(void)wire_list_add(list, &place_record_schema, &record);
}

/* What clients have files copied from, or may have shown, is no concern of sessions. */
static bool is_listed(const struct pinned *pinned)
{
	return pinned->kind != PINNED_IMPORT && pinned->kind != PINNED_DIRS;
}

static bool sees_packages(const struct profile *profile, const struct config *config)
{
	return profile->packages != PACKAGES_OFF && config->sets.path;
}

int places_put(struct wire_list *list, const struct profile *profile, const struct config *config)
{
	for (size_t i = 0; i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if (is_listed(pinned))
			put_place(list, pinned_name(pinned->kind), pinned->path, &pinned->pin);
	}
	if (sees_packages(profile, config))
		put_place(list, pinned_name(PINNED_READ), config->sets.path, &config->sets);
	for (size_t i = 0; i < config->n_own; i++)
		put_place(list, "own", config->own[i].path, &config->own[i]);
	return list->r;
}

static void put_writable(struct wire_list *list, const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_pinned; i++)
		if (profile->pinned[i].kind == PINNED_WRITE && profile->pinned[i].pin.path)
			(void)wire_list_add_string(list, bytes_of(profile->pinned[i].pin.path));
}

int places_put_changeable(struct wire_list *list, struct cages *cages)
{
	struct list *const heads[] = {&cages->nurseries, &cages->retired};
	struct nursery *nursery;
	struct warden *warden;

	for (size_t i = 0; i < cages->config->n_profiles; i++)
		put_writable(list, cages->config->profiles[i]);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, heads[i], node)
			list_for_each (warden, &nursery->wardens, node)
				put_writable(list, warden->profile);
	return wire_list_add_string(list, bytes_of(cages->workspaces.path));
}
