/* The metadata of files, which no session can keep: a file's attributes are not counted as part of it. It is known
 * here alone, by the file's path, as that of the sandbox is: until the file is written or removed by this door. */
#include "e2b.h"

#include "base/text.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX "X-Metadata-"
#define MARKS_MAX ((size_t)1 << 20) /* bytes of a sandbox, with what it takes to keep them */
#define MARK_MAX 8192
#define KEEPING 64

struct reading {
	json_t *mark;
	size_t size;
};

static enum MHD_Result mark_read(void *userdata, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct reading *reading = userdata;
	char key[128];
	size_t n = 0;

	(void)kind;
	if (strncasecmp(name, PREFIX, strlen(PREFIX)) != 0)
		return MHD_YES;
	for (name += strlen(PREFIX); *name && n + 1 < sizeof(key); name++)
		key[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
	key[n] = '\0';
	reading->size += n + (*name ? MARK_MAX : 0) + (value ? strlen(value) : 0);
	/* A value that is not text is left out. */
	(void)json_object_set_new(reading->mark, key, json_string(value ? value : ""));
	return MHD_YES;
}

bool mark_asked(struct exchange *exchange, json_t **markp)
{
	struct reading reading = {.mark = json_object()};

	MHD_get_connection_values(exchange->http, MHD_HEADER_KIND, mark_read, &reading);
	*markp = reading.mark;
	if (reading.size <= MARK_MAX &&
	    (json_object_size(reading.mark) == 0 || sandbox_of(exchange)->marks_size < MARKS_MAX))
		return true;
	answer_problem(exchange, 507, "too_large",
		       "a file has at most %d bytes of metadata, and all files of a sandbox %zu", MARK_MAX,
		       MARKS_MAX);
	return false;
}

static size_t mark_size(const char *path, json_t *mark)
{
	size_t size = strlen(path) + KEEPING;
	const char *key;
	json_t *value;

	json_object_foreach(mark, key, value)
	{
		size += strlen(key) + json_string_length(value) + KEEPING;
	}
	return size;
}

const json_t *mark_set(struct sandbox *sandbox, const char *path, json_t *mark)
{
	_cleanup_(freep) char *whole = path_whole(sandbox, path);
	json_t *old = whole ? json_object_get(sandbox->marks, whole) : NULL;

	if (old) {
		sandbox->marks_size -= mark_size(whole, old);
		json_object_del(sandbox->marks, whole);
	}
	/* One form may bring any number of files. */
	if (!whole || json_object_size(mark) == 0 || sandbox->marks_size >= MARKS_MAX)
		return NULL;
	if (!sandbox->marks)
		sandbox->marks = json_object();
	if (json_object_set(sandbox->marks, whole, mark))
		return NULL;
	sandbox->marks_size += mark_size(whole, mark);
	return mark;
}

static bool is_within(const char *path, const char *top)
{
	size_t size = strlen(top);

	return strncmp(path, top, size) == 0 && (!path[size] || path[size] == '/');
}

void marks_move(struct sandbox *sandbox, const char *from, const char *to)
{
	_cleanup_(freep) char *old = path_whole(sandbox, from), *new = to ? path_whole(sandbox, to) : NULL;
	const char *path;
	json_t *mark, *after = json_object();

	if (!old || !after || (to && !new)) {
		json_decref(after);
		return;
	}
	json_object_foreach(sandbox->marks, path, mark)
	{
		_cleanup_(freep) char *moved = NULL;

		if (!is_within(path, old) && (!new || !is_within(path, new)))
			json_object_set(after, path, mark);
		else if (is_within(path, old) && new &&asprintf(&moved, "%s%s", new, path + strlen(old)) >= 0)
			json_object_set(after, moved, mark);
	}
	json_decref(sandbox->marks);
	sandbox->marks = after;
	sandbox->marks_size = 0;
	json_object_foreach(after, path, mark)
	{
		sandbox->marks_size += mark_size(path, mark);
	}
}

void mark_show(const struct sandbox *sandbox, json_t *entry)
{
	const char *path = json_string_value(json_object_get(entry, "path"));
	json_t *mark = path ? json_object_get(sandbox->marks, path) : NULL;

	if (mark)
		json_object_set(entry, "metadata", mark);
}
