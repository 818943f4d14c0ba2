/* Places for a template: it finds them again by the identity that they had when the settings were read, not by
 * their names. */
#include "places.h"

#include "config/pins.h"
#include "nursery.h"

static int put_place(msgpack_sbuffer *buffer, const char *kind, const char *path, const struct pin *pin)
{
	const struct place_record record = {
		.kind = bytes_of(kind),
		.path = bytes_of(path),
		.real = bytes_of(pin->path ? pin->path : ""),
		.device = pin->device,
		.inode = pin->inode,
	};

	return wire_encode_body(buffer, &place_record_schema, &record);
}

/* What clients have files copied from is no concern of sessions. */
static bool is_listed(const struct pinned *pinned)
{
	return pinned->kind != PINNED_IMPORT;
}

static bool sees_packages(const struct profile *profile, const struct config *config)
{
	return profile->packages != PACKAGES_OFF && config->sets.path;
}

int places_put(msgpack_sbuffer *buffer, const struct profile *profile, const struct config *config)
{
	size_t n = config->n_own;
	int r = 0;

	for (size_t i = 0; i < profile->n_pinned; i++)
		n += is_listed(&profile->pinned[i]);
	n += sees_packages(profile, config);
	wire_put_array(buffer, n);
	for (size_t i = 0; !r && i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if (is_listed(pinned))
			r = put_place(buffer, pinned_name(pinned->kind), pinned->path, &pinned->pin);
	}
	if (!r && sees_packages(profile, config))
		r = put_place(buffer, pinned_name(PINNED_READ), config->sets.path, &config->sets);
	for (size_t i = 0; !r && i < config->n_own; i++)
		r = put_place(buffer, "own", config->own[i].path, &config->own[i]);
	return r || !buffer->data ? -ENOMEM : 0;
}

/* @buffer: NULL to count. */
static size_t put_writable(msgpack_sbuffer *buffer, const struct profile *profile)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->n_pinned; i++) {
		if (profile->pinned[i].kind != PINNED_WRITE || !profile->pinned[i].pin.path)
			continue;
		if (buffer)
			wire_put_string(buffer, bytes_of(profile->pinned[i].pin.path));
		n++;
	}
	return n;
}

static size_t put_all(msgpack_sbuffer *buffer, struct cages *cages)
{
	struct nursery *nursery;
	size_t n = 1;

	for (size_t i = 0; i < cages->config->n_profiles; i++)
		n += put_writable(buffer, cages->config->profiles[i]);
	list_for_each (nursery, &cages->retired, node)
		n += put_writable(buffer, nursery->profile);
	if (buffer)
		wire_put_string(buffer, bytes_of(cages->workspaces.path));
	return n;
}

int places_put_changeable(msgpack_sbuffer *buffer, struct cages *cages)
{
	wire_put_array(buffer, put_all(NULL, cages));
	(void)put_all(buffer, cages);
	return buffer->data ? 0 : -ENOMEM;
}
