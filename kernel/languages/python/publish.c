/* A display goes out at once, after everything that was printed before it. */
#include "publish.h"

#include "interpreter/interpreter.h"
#include "observe/output.h"
#include "pack.h"
#include "proto/message.h"
#include "python.h"

static struct bytes text_in(PyObject *text)
{
	Py_ssize_t size = 0;
	const char *data = text == Py_None ? NULL : PyUnicode_AsUTF8AndSize(text, &size);

	return (struct bytes){.data = data, .size = (size_t)size};
}

static PyObject *publish(PyObject *module, PyObject *args)
{
	struct display_message shown = {.data = {.data = NULL}};
	PyObject *data, *metadata, *display_id;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer packed = {0};
	int update, clear, r;

	if (!PyArg_ParseTuple(args, "O!OOpp", &PyDict_Type, &data, &metadata, &display_id, &update, &clear))
		return NULL;
	shown.metadata = text_in(metadata);
	shown.display_id = text_in(display_id);
	shown.update = update;
	shown.clear = clear;
	if (PyErr_Occurred())
		return NULL;
	r = pack_object(&packed, data, PACK_DEPTH);
	shown.data = wire_bytes(&packed);
	if (!r)
		r = python_told(interpreter_show(&display_message_schema, &shown));
	if (r && !PyErr_Occurred())
		PyErr_SetString(PyExc_OSError, "it could not be sent");
	if (r)
		return NULL;
	Py_INCREF(Py_None);
	return Py_None;
}

static PyMethodDef publish_method = {"publish", publish, METH_VARARGS, NULL};

PyObject *publish_new(void)
{
	return PyCFunction_New(&publish_method, NULL);
}
