/* Paths and queries. Nothing here believes that what it reads is well formed. */
#include "target.h"

#include "proto/wire.h"

#include <stdlib.h>

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* In its place. @plus: a plus is a space. Returns 0 or -EINVAL. */
static int decode(char *text, bool plus)
{
	char *out = text;

	for (const char *at = text; *at; at++) {
		int high, low;

		if (*at == '+' && plus) {
			*out++ = ' ';
			continue;
		}
		if (*at != '%') {
			*out++ = *at;
			continue;
		}
		high = hex_value(at[1]);
		low = high < 0 ? -1 : hex_value(at[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		*out++ = (char)(high << 4 | low);
		at += 2;
	}
	*out = '\0';
	return utf8_valid(bytes_of(text)) ? 0 : -EINVAL;
}

static int path_parse(struct target *target, char *path)
{
	char *rest = path;

	if (*path != '/')
		return -EINVAL;
	while (rest) {
		char *segment = rest + 1;

		rest = strchr(segment, '/');
		if (rest)
			*rest = '\0';
		if (!*segment && !rest) {
			target->slash = true;
			break;
		}
		if (target->n == TARGET_SEGMENTS || decode(segment, false))
			return -EINVAL;
		target->segments[target->n++] = segment;
	}
	return 0;
}

static int query_parse(struct target *target, char *query)
{
	char *rest = query;

	while (rest) {
		char *name = rest, *value;

		rest = strchr(name, '&');
		if (rest)
			*rest++ = '\0';
		if (!*name)
			continue;
		value = strchr(name, '=');
		if (value)
			*value++ = '\0';
		if (decode(name, true) || (value && decode(value, true)))
			return -EINVAL;
		if (json_object_set_new(target->query, name, json_string(value ? value : "")))
			return -ENOMEM;
	}
	return 0;
}

int target_parse(struct target *target, const char *raw)
{
	size_t scheme = strncmp(raw, "http://", 7) == 0 ? 7 : strncmp(raw, "https://", 8) == 0 ? 8 : 0;
	char *query;
	int r;

	/* As a client says it to a proxy. */
	if (scheme)
		raw += scheme + strcspn(raw + scheme, "/");
	*target = (struct target){.text = strdup(raw), .query = json_object()};
	if (!target->text || !target->query) {
		target_deinit(target);
		return -ENOMEM;
	}
	query = strchr(target->text, '?');
	if (query)
		*query++ = '\0';
	r = path_parse(target, target->text);
	if (!r && query)
		r = query_parse(target, query);
	if (r)
		target_deinit(target);
	return r;
}

void target_deinit(struct target *target)
{
	free(target->text);
	json_decref(target->query);
	*target = (struct target){.text = NULL};
}

/* The segment of @pattern at *@at, which moves behind it. Returns its size, or -1 at the end. */
static int pattern_next(const char **at, const char **segment)
{
	size_t size;

	if (**at != '/' || (*at)[1] == '\0')
		return -1;
	*segment = *at + 1;
	size = strcspn(*segment, "/");
	*at = *segment + size;
	return (int)size;
}

static bool segment_is(const char *pattern, int size, const char *segment)
{
	if (pattern[0] == '{')
		return *segment != '\0';
	return strlen(segment) == (size_t)size && memcmp(segment, pattern, (size_t)size) == 0;
}

bool target_matches(const struct target *target, const char *pattern)
{
	const char *segment;
	size_t n = 0;
	int size;

	while ((size = pattern_next(&pattern, &segment)) >= 0) {
		if (size == 3 && memcmp(segment, "{*}", 3) == 0)
			return true;
		if (n == target->n || !segment_is(segment, size, target->segments[n]))
			return false;
		n++;
	}
	return n == target->n && (!target->slash || n == 0);
}

const char *target_value(const struct target *target, const char *pattern, const char *name)
{
	const char *segment;
	size_t n = 0, length = strlen(name);
	int size;

	while ((size = pattern_next(&pattern, &segment)) >= 0 && n < target->n) {
		if ((size_t)size == length + 2 && segment[0] == '{' && memcmp(segment + 1, name, length) == 0)
			return target->segments[n];
		n++;
	}
	return NULL;
}
