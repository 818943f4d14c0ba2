/* Python tells its hooks of each file that it will open and each library that it will load. Nothing hostile runs
 * while a template starts, so the hook is a guard there. If some code swallows the exception, this is found out
 * afterwards. */
#include "changeable.h"

#include "proto/wire.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

/* In memory that no fork has: sessions are made while it is in use. */
static struct bytes watched;
static char found[512];

int changeable_begin(struct bytes directories)
{
	void *copy;

	if (!directories.data)
		return 0;
	copy = mmap(NULL, directories.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED || madvise(copy, directories.size, MADV_DONTFORK) < 0)
		return -errno;
	memcpy(copy, directories.data, directories.size);
	watched = (struct bytes){copy, directories.size};
	return 0;
}

void changeable_end(void)
{
	watched = (struct bytes){0};
}

const char *changeable_found(void)
{
	return found[0] ? found : NULL;
}

/* Compares without a copy of @outer: a copy would stay on the stack, where sessions could read the names of others'
 * directories. */
static bool lies_in(const char *real, struct bytes outer)
{
	return strncmp(real, outer.data, outer.size) == 0 && (real[outer.size] == '/' || real[outer.size] == '\0');
}

static bool is_changeable(const char *path)
{
	char real[PATH_MAX];
	struct bytes item;
	size_t cursor = 0;

	if (!realpath(path, real))
		return false; /* there is no file that could be opened */
	while (wire_next_string(watched, &cursor, &item)) {
		if (!lies_in(real, item))
			continue;
		snprintf(found, sizeof(found),
			 "Python would take %.150s from %.*s, which sessions may write to: have it look elsewhere",
			 path, (int)MIN(item.size, 150), item.data);
		return true;
	}
	return false;
}

int changeable_check(const char *event, PyObject *args)
{
	bool import = strcmp(event, "import") == 0;
	PyObject *path, *encoded = NULL;
	bool refused;

	if (!watched.data || (!import && strcmp(event, "open") != 0) || PyTuple_GET_SIZE(args) < 2)
		return 0;
	path = PyTuple_GET_ITEM(args, import ? 1 : 0); /* borrowed; None and descriptors are not names */
	if (!PyUnicode_Check(path) && !PyBytes_Check(path))
		return 0;
	if (!PyUnicode_FSConverter(path, &encoded))
		return -1;
	refused = is_changeable(PyBytes_AS_STRING(encoded));
	Py_DECREF(encoded);
	if (refused)
		PyErr_SetString(PyExc_ImportError, found);
	return refused ? -1 : 0;
}
