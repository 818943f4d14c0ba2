/* Pins of a profile: one list of all directories that its settings name, in the order of the kinds. */
#include "pins.h"

const char *pinned_name(enum pinned_kind kind)
{
	static const char *const names[_PINNED_N] = {
		[PINNED_READ] = "read",	    [PINNED_WRITE] = "write", [PINNED_HIDE] = "hide",
		[PINNED_IMPORT] = "import", [PINNED_DIRS] = "dirs",   [PINNED_PYTHON] = "python",
	};

	return names[kind];
}

static void add(struct profile *profile, enum pinned_kind kind, const char *path)
{
	profile->pinned[profile->n_pinned++] = (struct pinned){.kind = kind, .path = path, .pin = PIN_NONE};
}

static int list_all(struct profile *profile)
{
	const struct string_list *const lists[] = {
		[PINNED_READ] = &profile->read, [PINNED_WRITE] = &profile->write,
		[PINNED_HIDE] = &profile->hide, [PINNED_IMPORT] = &profile->import,
		[PINNED_DIRS] = &profile->dirs,
	};
	size_t n = profile->python != NULL;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		n += lists[i]->n;
	profile->pinned = calloc(n + 1, sizeof(*profile->pinned));
	if (!profile->pinned)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->n; j++)
			add(profile, (enum pinned_kind)i, lists[i]->items[j]);
	if (profile->python)
		add(profile, PINNED_PYTHON, profile->python);
	return 0;
}

static int take(struct pinned *pinned)
{
	return pin_take(&pinned->pin, pinned->path, pinned->kind != PINNED_PYTHON);
}

int profile_pin(struct profile *profile, const struct pinned **culpritp, int *errorp)
{
	int r = list_all(profile);

	for (size_t i = 0; !r && i < profile->n_pinned; i++) {
		r = take(&profile->pinned[i]);
		if (!r || r == -ENOMEM)
			continue;
		*culpritp = &profile->pinned[i];
		*errorp = r;
		r = -EINVAL;
	}
	return r;
}

int profile_pin_found(struct profile *profile)
{
	int r = list_all(profile);

	for (size_t i = 0; !r && i < profile->n_pinned; i++)
		(void)take(&profile->pinned[i]);
	return r;
}

void profile_unpin(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_pinned; i++)
		pin_drop(&profile->pinned[i].pin);
	free(profile->pinned);
	profile->pinned = NULL;
	profile->n_pinned = 0;
}
