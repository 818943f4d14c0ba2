/* Encodes what python/ has made for the router. python/ decides its shape, and the router checks it; this only
 * refuses what msgpack or the wire cannot say. */
#include "pack.h"

#include "interpreter/cell.h"

#define DEPTH_MAX 8
/* pack_trim frees a buffer that is larger. */
#define KEPT_MAX (256 << 10)

static int pack(msgpack_packer *packer, PyObject *object, unsigned depth);

static int pack_text(msgpack_packer *packer, PyObject *text)
{
	PyObject *encoded = utf8_of(text);

	if (!encoded)
		return -1;
	msgpack_pack_str_with_body(packer, PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded));
	Py_DECREF(encoded);
	return 0;
}

static int pack_integer(msgpack_packer *packer, PyObject *object)
{
	long long number = PyLong_AsLongLong(object);

	if (number == -1 && PyErr_Occurred())
		return -1;
	msgpack_pack_int64(packer, number);
	return 0;
}

/* A list or tuple. */
static int pack_items(msgpack_packer *packer, PyObject *items, unsigned depth)
{
	Py_ssize_t n = PySequence_Fast_GET_SIZE(items);

	msgpack_pack_array(packer, (size_t)n);
	for (Py_ssize_t i = 0; i < n; i++)
		if (pack(packer, PySequence_Fast_GET_ITEM(items, i), depth) < 0)
			return -1;
	return 0;
}

static int pack_pairs(msgpack_packer *packer, PyObject *dict, unsigned depth)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	msgpack_pack_map(packer, (size_t)PyDict_GET_SIZE(dict));
	while (PyDict_Next(dict, &at, &key, &value))
		if (pack(packer, key, depth) < 0 || pack(packer, value, depth) < 0)
			return -1;
	return 0;
}

static int pack(msgpack_packer *packer, PyObject *object, unsigned depth)
{
	if (depth == 0) {
		PyErr_SetString(PyExc_ValueError, "nested too deeply");
		return -1;
	}
	if (PyUnicode_Check(object))
		return pack_text(packer, object);
	if (PyLong_CheckExact(object))
		return pack_integer(packer, object);
	if (PyDict_CheckExact(object))
		return pack_pairs(packer, object, depth - 1);
	if (PyList_CheckExact(object) || PyTuple_CheckExact(object))
		return pack_items(packer, object, depth - 1);
	if (PyBytes_Check(object))
		msgpack_pack_bin_with_body(packer, PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object));
	else if (PyFloat_CheckExact(object))
		msgpack_pack_double(packer, PyFloat_AS_DOUBLE(object));
	else if (object == Py_None)
		msgpack_pack_nil(packer);
	else if (PyBool_Check(object))
		object == Py_True ? msgpack_pack_true(packer) : msgpack_pack_false(packer);
	else {
		PyErr_Format(PyExc_TypeError, "%.100s cannot be sent", Py_TYPE(object)->tp_name);
		return -1;
	}
	return 0;
}

int pack_object(msgpack_sbuffer *buffer, PyObject *object)
{
	msgpack_packer packer;

	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	return pack(&packer, object, DEPTH_MAX);
}

void pack_trim(msgpack_sbuffer *buffer)
{
	if (buffer->alloc <= KEPT_MAX)
		return;
	msgpack_sbuffer_destroy(buffer);
	msgpack_sbuffer_init(buffer);
}

PyObject *unpack_strings(struct bytes raw)
{
	PyObject *list = PyList_New(0);
	struct bytes item;
	size_t cursor = 0;

	while (list && wire_next_string(raw, &cursor, &item)) {
		PyObject *string = PyUnicode_DecodeUTF8(item.data, (Py_ssize_t)item.size, NULL);

		if (!string || PyList_Append(list, string) < 0)
			Py_CLEAR(list);
		Py_XDECREF(string);
	}
	return list;
}
