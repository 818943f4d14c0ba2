/* The tables of proto/causes.h. */
#include "proto/causes.h"

const struct cause_row causes[] = {
	[CAUSE_NONE] = {.name = ""},
#define CAUSE_ROW(id, name, news, exception, cell, measure, session)                                               \
	[CAUSE_##id] = {name, news, exception, cell, measure, session},
	CAUSES(CAUSE_ROW)
#undef CAUSE_ROW
		[CAUSE_DEATH] = {"", true, DEATH_EXCEPTION, DEATH_CELL, DEATH_CELL, DEATH_SESSION},
};

const struct fate_row fates[] = {
#define FATE_ROW(id, name, goes_on, text) [FATE_##id] = {name, goes_on, text},
	FATES(FATE_ROW)
#undef FATE_ROW
};

static bool is_named(const char *name, size_t size, const char *row)
{
	return strlen(row) == size && memcmp(row, name, size) == 0;
}

enum cause cause_of(const char *name, size_t size)
{
	enum cause cause = CAUSE_NONE + 1;

	if (!name)
		return CAUSE_NONE;
	while (cause < CAUSE_DEATH && !is_named(name, size, causes[cause].name))
		cause++;
	return cause;
}

enum fate fate_of(const char *name, size_t size)
{
	enum fate fate = FATE_KEPT;

	while (fate < N_FATES && !(name && is_named(name, size, fates[fate].name)))
		fate++;
	return fate < N_FATES ? fate : FATE_ENDED;
}
