/* A mapping keeps a file open, and comes along with every fork: into checkpoints and branches. */
#include "sets.h"

#include "observe/output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAPPED 4096

/* Whether it is at its path still, now that it is held: else it was removed at that moment. */
static bool is_there(int fd, const char *path)
{
	struct stat held, there;

	return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_dev == there.st_dev &&
	       held.st_ino == there.st_ino;
}

static PyObject *hold(PyObject *self, PyObject *path)
{
	const char *text = PyUnicode_AsUTF8(path);
	_cleanup_(fd_closep) int fd = text ? open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	void *mapped;

	if (!text)
		return NULL;
	if (fd < 0)
		return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
	mapped = mmap(NULL, MAPPED, PROT_NONE, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED)
		return PyErr_SetFromErrno(PyExc_OSError);
	if (is_there(fd, text))
		Py_RETURN_NONE;
	(void)munmap(mapped, MAPPED);
	errno = ENOENT;
	return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

static PyObject *have(PyObject *self, PyObject *name)
{
	const char *text = PyUnicode_AsUTF8(name);

	if (!text)
		return NULL;
	output_tell_set(text);
	Py_RETURN_NONE;
}

static PyMethodDef hold_method = {"hold", hold, METH_O, NULL};
static PyMethodDef have_method = {"have", have, METH_O, NULL};

PyObject *sets_hold_new(void)
{
	return PyCFunction_New(&hold_method, NULL);
}

PyObject *sets_have_new(void)
{
	return PyCFunction_New(&have_method, NULL);
}
