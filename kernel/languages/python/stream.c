/* How the streams of streams.py write: functions that are bound to the number of a stream. */
#include "stream.h"

#include "helpers.h"
#include "owned.h"

static const struct {
	const char *name, *errors;
} kinds[] = {
	[OUTPUT_OUT] = {.name = "<stdout>", .errors = "surrogateescape"},
	[OUTPUT_ERR] = {.name = "<stderr>", .errors = "backslashreplace"},
};

/* -EINTR means that a signal handler has to run, which may end the write. */
static int fail_or_resume(int r)
{
	if (r == -EINTR)
		return PyErr_CheckSignals();
	errno = -r;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

static int put(enum output_stream which, const char *text, size_t size)
{
	if (output_try(which, text, size))
		return 0;
	while (size > 0) {
		PyThreadState *state = PyEval_SaveThread();
		ssize_t n = output_put(which, text, size);

		PyEval_RestoreThread(state);
		if (n >= 0) {
			text += n;
			size -= (size_t)n;
		}
		/* If only a part was written, a signal stopped the write, too. */
		if (size > 0 && fail_or_resume(n < 0 ? (int)n : -EINTR) < 0)
			return -1;
	}
	return 0;
}

static int put_text(enum output_stream which, PyObject *text)
{
	OWNED *bytes = NULL;
	int r;

	if (PyUnicode_READY(text) < 0)
		return -1;
	if (PyUnicode_IS_COMPACT_ASCII(text))
		return put(which, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
	bytes = PyUnicode_AsEncodedString(text, "utf-8", kinds[which].errors);
	if (!bytes)
		return -1;
	r = put(which, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	return r;
}

int stream_write(enum output_stream which, PyObject *text)
{
	if (PyBytes_Check(text))
		return put(which, PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text));
	return put_text(which, text);
}

static enum output_stream which_of(PyObject *self)
{
	return (enum output_stream)PyLong_AsLong(self);
}

static PyObject *text_write(PyObject *self, PyObject *text)
{
	if (!PyUnicode_Check(text))
		return PyErr_Format(PyExc_TypeError, "write() argument must be str, not %.100s",
				    Py_TYPE(text)->tp_name);
	if (put_text(which_of(self), text) < 0)
		return NULL;
	return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *binary_write(PyObject *self, PyObject *data)
{
	Py_buffer view;
	int r;

	if (PyUnicode_Check(data))
		return PyErr_Format(PyExc_TypeError, "a bytes-like object is required, not 'str'");
	if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
		return NULL;
	r = put(which_of(self), view.buf, (size_t)view.len);
	data = r < 0 ? NULL : PyLong_FromSsize_t(view.len);
	PyBuffer_Release(&view);
	return data;
}

static PyObject *flush(PyObject *self, PyObject *unused)
{
	int r;

	do {
		PyThreadState *state = PyEval_SaveThread();

		r = output_flush(which_of(self));
		PyEval_RestoreThread(state);
		if (r && fail_or_resume(r) < 0)
			return NULL;
	} while (r);
	Py_RETURN_NONE;
}

PyObject *stream_new(enum output_stream which)
{
	static PyMethodDef methods[] = {{"write", text_write, METH_O, NULL},
					{"write", binary_write, METH_O, NULL},
					{"flush", flush, METH_NOARGS, NULL}};
	PyObject *number = PyLong_FromLong((long)which); /* lives as long as the process */

	return PyObject_CallFunction(helper(HELPER_STREAM), "issNNN",
				     which == OUTPUT_OUT ? STDOUT_FILENO : STDERR_FILENO, kinds[which].name,
				     kinds[which].errors, PyCFunction_New(&methods[0], number),
				     PyCFunction_New(&methods[1], number), PyCFunction_New(&methods[2], number));
}
