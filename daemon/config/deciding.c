/* One table for what ends by itself, and one sentence for all. Which section has a setting follows from the tables
 * of settings. */
#include "deciding.h"

#include "keys.h"

#include <stdio.h>

static const struct {
	const char *why, *setting;
} rows[] = {
#define ROW(why_, setting_) {why_, setting_},
	DECIDING(ROW)
#undef ROW
};

static const struct {
	const char *error, *text, *setting;
} errors[] = {
#define ROW(error_, text_, setting_) {error_, text_, setting_},
	DECIDING_ERRORS(ROW)
#undef ROW
};

static const struct {
	const char *text, *settings;
} starts[] = {
#define ROW(text_, settings_) {text_, settings_},
	DECIDING_STARTS(ROW)
#undef ROW
};

const char *deciding_start(const char *reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (strstr(reason, starts[i].text))
			return starts[i].settings;
	return NULL;
}

void deciding_add_setting(struct deciding *deciding, const char *setting)
{
	for (size_t i = 0; i < deciding->n; i++)
		if (strcmp(deciding->settings[i], setting) == 0)
			return;
	if (deciding->n < DECIDING_MAX)
		deciding->settings[deciding->n++] = setting;
}

void deciding_add(struct deciding *deciding, struct bytes why)
{
	for (size_t i = 0; why.data && i < ARRAY_SIZE(rows); i++)
		if (bytes_is(why, rows[i].why))
			deciding_add_setting(deciding, rows[i].setting);
}

void deciding_add_error(struct deciding *deciding, struct bytes name, struct bytes value)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (bytes_is(name, errors[i].error) &&
		    memmem(value.data, value.size, errors[i].text, strlen(errors[i].text)))
			deciding_add_setting(deciding, errors[i].setting);
}

struct bytes deciding_tell(char text[static DECIDING_SIZE], const struct deciding *deciding, const char *profile,
			   const char *file)
{
	size_t used = 0;

	if (deciding->n == 0)
		return (struct bytes){.data = NULL};
	for (size_t i = 0; i < deciding->n; i++)
		used += (size_t)snprintf(text + used, DECIDING_SIZE - used, "%s%s", i ? ", " : "",
					 deciding->settings[i]);
	if (key_find(&daemon_keys, deciding->settings[0]))
		used += (size_t)snprintf(text + used, DECIDING_SIZE - used, " in [daemon]");
	else if (profile)
		used += (size_t)snprintf(text + used, DECIDING_SIZE - used, " in [profile %s]", profile);
	else
		used += (size_t)snprintf(text + used, DECIDING_SIZE - used, " in its profile");
	used += (size_t)snprintf(text + used, DECIDING_SIZE - used, " of %s", file ? file : "laird's settings");
	if (deciding->shows && used < DECIDING_SIZE)
		snprintf(text + used, DECIDING_SIZE - used, ", or --dir DIR:rw,");
	return bytes_of(text);
}
