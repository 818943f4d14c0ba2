/* The file that names the servers, in the form that most programs have agreed on: {"mcpServers": {NAME: {command,
 * args, env, cwd} or {url, headers}}}. Everything is checked before anything is started. */
#include "upstream.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#define SERVERS_MAX 100

static int refuse(char **whyp, const char *format, ...) _printf_(2, 3);

static int refuse(char **whyp, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(whyp, format, args);
	va_end(args);
	if (n < 0)
		*whyp = NULL;
	return n < 0 ? -ENOMEM : -EINVAL;
}

static bool all_texts(const json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_object(value)) {
		json_object_foreach((json_t *)value, key, item)
		{
			if (!json_is_string(item))
				return false;
		}
		return true;
	}
	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item))
			return false;
	}
	return true;
}

/* The members of an entry; others are for other programs. */
static const struct {
	const char *key;
	json_type type;
	const char *expected;
} members[] = {
	{"command", JSON_STRING, "a string"},
	{"args", JSON_ARRAY, "a list of strings"},
	{"env", JSON_OBJECT, "an object of strings"},
	{"cwd", JSON_STRING, "a string"},
	{"url", JSON_STRING, "a string"},
	{"headers", JSON_OBJECT, "an object of strings"},
	{"type", JSON_STRING, "a string"},
	{"description", JSON_STRING, "a string"},
	{"alwaysAllow", JSON_ARRAY, "a list of strings"},
	{"autoApprove", JSON_ARRAY, "a list of strings"},
};

bool config_is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static int entry_check(const char *name, const json_t *entry, char **whyp)
{
	const char *type = json_string_value(json_object_get(entry, "type")), *url;

	if (!json_is_object(entry))
		return refuse(whyp, "%s: expected an object", name);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const json_t *member = json_object_get(entry, members[i].key);

		if (member && (json_typeof(member) != members[i].type || !all_texts(member)))
			return refuse(whyp, "%s: %s: expected %s", name, members[i].key, members[i].expected);
	}
	url = json_string_value(json_object_get(entry, "url"));
	if (!json_object_get(entry, "command") == !url)
		return refuse(whyp, "%s: expected either command or url", name);
	if (url && !config_is_http(url) && url[0] != '$')
		return refuse(whyp, "%s: url: expected http:// or https://", name);
	if (type && strcmp(type, "sse") == 0)
		return refuse(whyp,
			      "%s: type sse is the transport of 2024; give the server's url of streamable HTTP",
			      name);
	return 0;
}

static bool alias_taken(const struct servers *servers, const char *alias)
{
	for (const struct upstream *it = servers->upstreams; it; it = it->next)
		if (strcmp(it->alias, alias) == 0)
			return true;
	return false;
}

static int entry_take(struct servers *servers, struct upstream ***endp, const char *name, json_t *entry)
{
	struct upstream *upstream;
	char alias[ALIAS_SIZE];
	int r;

	alias_make(alias, name, true);
	for (unsigned n = 2; alias_taken(servers, alias); n++)
		alias_next(alias, n);
	r = upstream_new(&upstream, servers, name, entry);
	if (r)
		return r;
	**endp = upstream;
	*endp = &upstream->next;
	upstream->alias = strdup(alias);
	return upstream->alias ? 0 : -ENOMEM;
}

static int entries_take(struct servers *servers, json_t *entries, char **whyp)
{
	struct upstream **end = &servers->upstreams;
	const char *name;
	json_t *entry;
	int r = 0;

	json_object_foreach(entries, name, entry)
	{
		r = entry_check(name, entry, whyp);
		if (!r && !json_is_true(json_object_get(entry, "disabled")))
			r = entry_take(servers, &end, name, entry);
		if (r)
			return r;
	}
	return 0;
}

int config_read(struct servers *servers, const char *path, char **whyp)
{
	json_error_t error;
	json_t *document, *entries;
	int r;

	errno = 0;
	document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!document && json_error_code(&error) == json_error_cannot_open_file)
		return refuse(whyp, "%s: %s", path, strerror(errno));
	if (!document)
		return refuse(whyp, "%s:%d: %s", path, error.line, error.text);
	entries = json_object_get(document, "mcpServers");
	if (!json_is_object(entries))
		r = refuse(whyp, "%s: expected {\"mcpServers\": {...}}", path);
	else if (json_object_size(entries) > SERVERS_MAX)
		r = refuse(whyp, "%s: more than %d servers", path, SERVERS_MAX);
	else
		r = entries_take(servers, entries, whyp);
	json_decref(document);
	return r;
}

bool config_allows(const json_t *entry, const char *tool)
{
	static const char *const keys[] = {"alwaysAllow", "autoApprove"};
	const json_t *allowed;
	size_t i;

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		json_array_foreach(json_object_get(entry, keys[k]), i, allowed)
		{
			const char *name = json_string_value(allowed);

			if (strcmp(name, "*") == 0 || strcmp(name, tool) == 0)
				return true;
		}
	}
	return false;
}

/* ---- ${NAME} and ${NAME:-VALUE} ---- */

/* How long the reference at @at is, 0 if there is none; its name is the first *n_namep bytes after "${". */
static size_t reference(const char *at, size_t *n_namep)
{
	const char *end;
	size_t n = 0;

	if (at[0] != '$' || at[1] != '{')
		return 0;
	while (isalnum((unsigned char)at[2 + n]) || at[2 + n] == '_')
		n++;
	end = strchr(at, '}');
	*n_namep = n;
	if (n == 0 || !end || (at[2 + n] != '}' && strncmp(at + 2 + n, ":-", 2) != 0))
		return 0;
	return (size_t)(end - at) + 1;
}

static int reference_write(FILE *out, const char *at, size_t size, size_t n_name, char **whyp)
{
	_cleanup_(freep) char *name = strndup(at + 2, n_name);
	const char *value = name ? getenv(name) : NULL;

	if (!name)
		return -ENOMEM;
	if (value && (*value || at[2 + n_name] == '}'))
		fputs(value, out);
	else if (at[2 + n_name] == ':')
		fwrite(at + n_name + 4, 1, size - n_name - 5, out);
	else
		return refuse(whyp, "the environment has no %s", name) == -ENOMEM ? -ENOMEM : -ENOENT;
	return 0;
}

int config_expand(char **outp, const char *text, char **whyp)
{
	size_t size, n_name, n;
	FILE *out = open_memstream(outp, &size);
	int r = out ? 0 : -ENOMEM;

	*whyp = NULL;
	while (!r && *text) {
		n = reference(text, &n_name);
		if (n)
			r = reference_write(out, text, n, n_name, whyp);
		else
			fputc(*text, out);
		text += n ? n : 1;
	}
	if (out && fclose(out) != 0 && !r)
		r = -ENOMEM;
	if (r && out) {
		free(*outp);
		*outp = NULL;
	}
	return r;
}
