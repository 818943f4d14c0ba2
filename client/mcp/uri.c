/* Names may be any bytes. All characters are percent-encoded except those that every program leaves unchanged,
 * and the slashes of a path. */
#include "uri.h"

#include <ctype.h>
#include <stdio.h>

#define BEFORE "lair://sessions/"

/* ---- writing ---- */

static size_t encode(char *out, struct lair_text text, const char *also)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t size = 0;

	for (size_t i = 0; i < text.size; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c < 0x80 && c && (isalnum(c) || strchr("-._~", c) || strchr(also, c))) {
			out[size++] = (char)c;
			continue;
		}
		out[size++] = '%';
		out[size++] = digits[c >> 4];
		out[size++] = digits[c & 15];
	}
	return size;
}

json_t *uri_of(struct lair_text session, struct lair_text path)
{
	char *uri = malloc(sizeof(BEFORE) + 3 * (session.size + path.size) + 1);
	size_t size = sizeof(BEFORE) - 1;
	json_t *string;

	if (!uri)
		return json_null();
	memcpy(uri, BEFORE, size);
	size += encode(uri + size, session, "");
	uri[size++] = '/';
	size += encode(uri + size, path, "/");
	string = json_stringn_nocheck(uri, size);
	free(uri);
	return string;
}

/* ---- reading ---- */

static int digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* The byte that %XX at @text stands for; -1 if there is no such escape. */
static int escaped(const char *text, size_t left)
{
	if (left < 3 || digit(text[1]) < 0 || digit(text[2]) < 0)
		return -1;
	return digit(text[1]) * 16 + digit(text[2]);
}

/* New; NULL if @text is not well-formed or contains a NUL, or without memory. */
static char *decode(const char *text, size_t size)
{
	char *out = malloc(size + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < size; i += text[i] == '%' ? 3 : 1) {
		int value = text[i] == '%' ? escaped(text + i, size - i) : (unsigned char)text[i];

		if (value <= 0) {
			free(out);
			return NULL;
		}
		out[n++] = (char)value;
	}
	if (out)
		out[n] = '\0';
	return out;
}

bool uri_parse(const char *uri, char **sessionp, char **pathp)
{
	const char *session = uri + sizeof(BEFORE) - 1, *slash;

	if (strncmp(uri, BEFORE, sizeof(BEFORE) - 1) != 0)
		return false;
	slash = strchr(session, '/');
	if (!slash || slash == session || !slash[1])
		return false;
	*sessionp = decode(session, (size_t)(slash - session));
	*pathp = decode(slash + 1, strlen(slash + 1));
	if (*sessionp && *pathp)
		return true;
	freep(sessionp);
	freep(pathp);
	return false;
}

/* ---- types ---- */

const char *uri_type(struct lair_text path)
{
	static const struct {
		const char *ending, *type;
	} types[] = {
		{".csv", "text/csv"},	       {".gif", "image/gif"},	 {".htm", "text/html"},
		{".html", "text/html"},	       {".jpeg", "image/jpeg"},	 {".jpg", "image/jpeg"},
		{".json", "application/json"}, {".md", "text/markdown"}, {".pdf", "application/pdf"},
		{".png", "image/png"},	       {".py", "text/x-python"}, {".svg", "image/svg+xml"},
		{".txt", "text/plain"},	       {".webp", "image/webp"},	 {".xml", "application/xml"},
		{".zip", "application/zip"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		size_t size = strlen(types[i].ending);

		if (path.size > size && strncasecmp(path.data + path.size - size, types[i].ending, size) == 0)
			return types[i].type;
	}
	return NULL;
}
