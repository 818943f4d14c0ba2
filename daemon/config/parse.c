/* Reading sessions.conf. libinih splits the lines. The reader is ours, since only a reader knows line numbers,
 * sections without a setting, and lines that continue the one before. The first error ends the reading; settings
 * that are read in part are never handed out. */
#include "config.h"

#include "keys.h"
#include "paths.h"
#include "pins.h"

#include <ctype.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>

#define PROFILE_NAME_MAX 32

struct parser {
	const char *name; /* of the file */
	struct bytes rest;
	unsigned line;
	bool indented;
	struct config *config;
	bool in_force; /* it has been: what the host has by now does not count */

	/* the section at hand */
	const struct key_table *table; /* NULL before the first */
	void *section;
	const struct key *last;	  /* set last, which an indented line continues */
	unsigned lines[KEYS_MAX]; /* where each key was set, 0 = nowhere */
	bool daemon_seen;

	int r;
	unsigned error_line;
	struct config_error *error;
};

/* ---- errors ---- */

static int parser_fail(struct parser *parser, unsigned line, const char *format, ...) _printf_(3, 4);

static int parser_fail(struct parser *parser, unsigned line, const char *format, ...)
{
	char *text = parser->error->text;
	size_t size = sizeof(parser->error->text);
	va_list args;
	int n;

	n = snprintf(text, size, "%.250s:%u: ", parser->name, line);
	va_start(args, format);
	(void)vsnprintf(text + n, size - (size_t)n, format, args);
	va_end(args);
	parser->error_line = line;
	parser->r = -EINVAL;
	return parser->r;
}

static int parser_fail_memory(struct parser *parser)
{
	(void)snprintf(parser->error->text, sizeof(parser->error->text), "%.250s: not enough memory", parser->name);
	parser->r = -ENOMEM;
	return parser->r;
}

/* How many letters to insert, delete or replace to turn @b into @a; both shorter than 64. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t replaced = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = MIN(replaced, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

static int parser_fail_key(struct parser *parser, const char *name)
{
	const char *section = parser->table == &daemon_keys ? "[daemon]" : "[profile]";
	const struct key *nearest = NULL;
	size_t least = 3;

	for (size_t i = 0; strlen(name) < 64 && i < parser->table->n; i++) {
		size_t distance = edit_distance(name, parser->table->keys[i].name);

		if (distance < least) {
			least = distance;
			nearest = &parser->table->keys[i];
		}
	}
	if (!nearest)
		return parser_fail(parser, parser->line, "%s has no setting %s", section, name);
	return parser_fail(parser, parser->line, "%s has no setting %s; did you mean %s?", section, name,
			   nearest->name);
}

/* ---- sections ---- */

static int section_defaults(struct parser *parser, void *section, const struct key_table *table)
{
	char reason[VALUE_REASON_SIZE];

	for (size_t i = 0; i < table->n; i++) {
		const struct key *key = &table->keys[i];

		switch (key->initial ? value_parse(section, key, key->initial, reason) : 0) {
		case 0:
			break;
		case -ENOMEM:
			return parser_fail_memory(parser);
		default:
			abort(); /* the table contradicts itself */
		}
	}
	return 0;
}

static int profile_add(struct parser *parser, const char *name, size_t size)
{
	struct config *config = parser->config;
	struct profile *profile, **profiles;

	profiles = reallocarray(config->profiles, config->n_profiles + 2, sizeof(struct profile *));
	if (!profiles)
		return parser_fail_memory(parser);
	config->profiles = profiles;
	profile = calloc(1, sizeof(*profile));
	profiles[config->n_profiles] = profile;
	if (!profile)
		return parser_fail_memory(parser);
	profiles[++config->n_profiles] = NULL;
	profile->refs = 1;
	profile->name = strndup(name, size);
	if (!profile->name)
		return parser_fail_memory(parser);
	parser->section = profile;
	return section_defaults(parser, profile, &profile_keys);
}

static bool profile_name_ok(const char *name, size_t size)
{
	if (size == 0 || size > PROFILE_NAME_MAX || !isalnum((unsigned char)*name))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	}
	return true;
}

static int profile_begin(struct parser *parser, const char *name, size_t size)
{
	if (!profile_name_ok(name, size))
		return parser_fail(
			parser, parser->line,
			"%.*s cannot name a profile: expected 1 to %d letters, digits and . _ - (not first)",
			(int)MIN(size, 80), name, PROFILE_NAME_MAX);
	if (config_profile(parser->config, (struct bytes){.data = name, .size = size}))
		return parser_fail(parser, parser->line, "there is already a profile %.*s", (int)size, name);
	parser->table = &profile_keys;
	return profile_add(parser, name, size);
}

static uint64_t number_of(const struct parser *parser, const struct key *key)
{
	return *(const uint64_t *)((const char *)parser->section + key->offset);
}

static int check_order(struct parser *parser, const struct key_order *order)
{
	const struct key *low = key_find(&profile_keys, order->low), *high = key_find(&profile_keys, order->high);
	unsigned low_line = parser->lines[low - profile_keys.keys],
		 high_line = parser->lines[high - profile_keys.keys];
	uint64_t a = number_of(parser, low), b = number_of(parser, high);
	char low_text[32], high_text[32];

	if (b == 0 || a == VALUE_ALL || (a <= b && (a > 0 || !order->off_is_over)))
		return 0;
	value_show(low_text, sizeof(low_text), parser->section, low);
	value_show(high_text, sizeof(high_text), parser->section, high);
	return parser_fail(parser, MAX(low_line, high_line), "%s = %s%s is over %s = %s%s", low->name, low_text,
			   low_line ? "" : " (the default)", high->name, high_text,
			   high_line ? "" : " (the default)");
}

static unsigned line_of(const struct parser *parser, const char *name)
{
	return parser->lines[key_find(&profile_keys, name) - profile_keys.keys];
}

static int find_paths(struct parser *parser)
{
	const struct pinned *culprit = NULL;
	int error = 0, r;

	r = parser->in_force ? profile_pin_found(parser->section) : profile_pin(parser->section, &culprit, &error);
	if (!culprit)
		return r ? parser_fail_memory(parser) : 0;
	return parser_fail(parser, line_of(parser, pinned_name(culprit->kind)), "%s = %.150s: %s",
			   pinned_name(culprit->kind), culprit->path,
			   error < 0 ? strerror(-error) : "it changes while it is looked at");
}

static int check_paths(struct parser *parser)
{
	char reason[PATHS_REASON_SIZE];
	const char *name;
	int r = find_paths(parser);

	if (r != 0 || parser->in_force)
		return r;
	name = profile_paths_check(parser->section, reason);
	return name ? parser_fail(parser, line_of(parser, name), "%s", reason) : 0;
}

static int section_end(struct parser *parser)
{
	int r = 0;

	if (parser->table == &profile_keys) {
		struct profile *profile = parser->section;

		profile->write_line = line_of(parser, "write");
		for (size_t i = 0; r == 0 && i < n_profile_orders; i++)
			r = check_order(parser, &profile_orders[i]);
		if (r == 0)
			r = check_paths(parser);
	}
	parser->table = NULL;
	parser->last = NULL;
	memset(parser->lines, 0, sizeof(parser->lines));
	return r;
}

static int daemon_begin(struct parser *parser)
{
	if (parser->daemon_seen)
		return parser_fail(parser, parser->line, "there is already a section [daemon]");
	parser->daemon_seen = true;
	parser->table = &daemon_keys;
	parser->section = parser->config;
	return 0;
}

/* @line begins with '['. */
static int section_begin(struct parser *parser, const char *line)
{
	const char *start = line + 1 + strspn(line + 1, " \t"), *end = strchr(start, ']');
	size_t word = strcspn(start, " \t]");
	int r = section_end(parser);

	if (r != 0)
		return r;
	if (end && !strchr(";#", end[1 + strspn(end + 1, " \t\r\n")]))
		end = NULL;
	while (end && end > start && strchr(" \t", end[-1]))
		end--;
	if (end && end - start == 6 && memcmp(start, "daemon", 6) == 0)
		return daemon_begin(parser);
	if (end && word == 7 && memcmp(start, "profile", 7) == 0) {
		start = MIN(start + word + strspn(start + word, " \t"), end);
		return profile_begin(parser, start, (size_t)(end - start));
	}
	return parser_fail(parser, parser->line, "expected [daemon] or [profile NAME], not %.80s", line);
}

/* ---- lines ---- */

static int line_check(struct parser *parser, const char *line, size_t size, size_t max)
{
	if (size > max)
		return parser_fail(parser, parser->line,
				   "a line may have %zu characters; a list may go on in the next, after a blank",
				   max);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c < 0x20 && c != '\t' && !(c == '\r' && i == size - 1)) || c == 0x7f)
			return parser_fail(parser, parser->line, "a control character (%#x)", c);
	}
	return 0;
}

/* libinih's fgets. */
static char *parser_read(char *buffer, int buffer_size, void *user)
{
	struct parser *parser = user;
	const char *start = parser->rest.data, *newline;
	size_t size = parser->rest.size;

	if (parser->r != 0 || size == 0)
		return NULL;
	newline = memchr(start, '\n', size);
	if (newline)
		size = (size_t)(newline - start);
	parser->line++;
	if (line_check(parser, start, size, (size_t)buffer_size - 3) != 0)
		return NULL;
	memcpy(buffer, start, size);
	buffer[size] = '\0';
	parser->rest.data += size + (newline != NULL);
	parser->rest.size -= size + (newline != NULL);
	parser->indented = *buffer == ' ' || *buffer == '\t';
	if (*buffer == '[' && section_begin(parser, buffer) != 0)
		return NULL;
	return buffer;
}

/* libinih's handler: nonzero is success. */
static int parser_set(void *user, const char *section, const char *name, const char *value)
{
	struct parser *parser = user;
	char reason[VALUE_REASON_SIZE];
	const struct key *key;
	unsigned *line;
	bool more;
	int r;

	if (!parser->table)
		return !parser_fail(parser, parser->line,
				    "expected a section, at the start of its line, before any setting");
	key = key_find(parser->table, name);
	if (!key)
		return !parser_fail_key(parser, name);
	more = parser->indented && key == parser->last;
	if (more && !value_is_list(key))
		return !parser_fail(parser, parser->line,
				    "a line that begins with a blank continues the setting before it, "
				    "but %s is no list",
				    name);
	line = &parser->lines[key - parser->table->keys];
	if (!more && *line)
		return !parser_fail(parser, parser->line, "%s has been set in line %u", name, *line);
	if (!more)
		value_free(parser->section, key);
	*line = parser->line;
	parser->last = key;
	r = value_parse(parser->section, key, value, reason);
	if (r == 0 && !parser->in_force)
		r = value_look(parser->section, key, reason);
	if (r == -ENOMEM)
		return !parser_fail_memory(parser);
	return r == 0 || !parser_fail(parser, parser->line, "%s = %.80s: expected %s", name, value, reason);
}

static int parser_run(struct parser *parser)
{
	static const char bom[] = "\xef\xbb\xbf";
	int r;

	if (parser->rest.size >= 3 && memcmp(parser->rest.data, bom, 3) == 0)
		parser->rest = (struct bytes){.data = parser->rest.data + 3, .size = parser->rest.size - 3};
	r = section_defaults(parser, parser->config, &daemon_keys);
	if (r != 0)
		return r;
	r = ini_parse_stream(parser_read, parser, parser_set, parser);
	if (r > 0 && (unsigned)r != parser->error_line)
		return parser_fail(parser, (unsigned)r, "expected NAME = VALUE");
	if (r < 0)
		return parser_fail_memory(parser);
	if (parser->r == 0)
		(void)section_end(parser);
	if (parser->r == 0 && !config_profile(parser->config, BYTES("default")))
		(void)profile_add(parser, "default", strlen("default"));
	if (parser->r == 0 && !parser->in_force)
		parser->r = config_check_paths(parser->config, parser->name, &(struct in_use){0}, parser->error);
	return parser->r;
}

static int parse(struct parser *parser, struct config **configp, struct bytes text)
{
	int r;

	parser->config = calloc(1, sizeof(*parser->config));
	if (parser->config)
		parser->config->sets = PIN_NONE;
	if (parser->config)
		parser->config->text = strndup(text.data, text.size);
	r = parser->config && parser->config->text ? parser_run(parser) : parser_fail_memory(parser);
	if (r == 0)
		*configp = steal_ptr(&parser->config);
	config_free(parser->config);
	return r;
}

int config_parse(struct config **configp, struct bytes text, const char *name, struct config_error *error)
{
	struct parser parser = {.name = name, .rest = text, .error = error};

	return parse(&parser, configp, text);
}

int config_parse_in_force(struct config **configp, struct bytes text, const char *name, struct config_error *error)
{
	struct parser parser = {.name = name, .rest = text, .error = error, .in_force = true};

	return parse(&parser, configp, text);
}
