/* Encodes what python/ has made for the router. python/ decides its shape, and the router checks it; this only
 * refuses what msgpack or the wire cannot say. */
#include "pack.h"

#include "owned.h"

#define UNPACK_DEPTH_MAX 64

static int pack(msgpack_packer *packer, PyObject *object, unsigned depth);

PyObject *utf8_of(PyObject *text)
{
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

static int pack_text(msgpack_packer *packer, PyObject *text)
{
	OWNED *encoded = utf8_of(text);

	if (!encoded)
		return -1;
	msgpack_pack_str_with_body(packer, PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded));
	return 0;
}

static int pack_integer(msgpack_packer *packer, PyObject *object)
{
	int overflow;
	long long number = PyLong_AsLongLongAndOverflow(object, &overflow);

	if (overflow > 0) {
		unsigned long long large = PyLong_AsUnsignedLongLong(object);

		if (PyErr_Occurred())
			return -1;
		msgpack_pack_uint64(packer, large);
		return 0;
	}
	if (overflow < 0)
		PyErr_SetString(PyExc_OverflowError, "an int of more than 64 bits");
	if (PyErr_Occurred())
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

int pack_object(msgpack_sbuffer *buffer, PyObject *object, unsigned depth)
{
	msgpack_packer packer;

	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	return pack(&packer, object, depth);
}

static PyObject *unpacked(const msgpack_object *object, unsigned depth);

static PyObject *unpacked_items(const msgpack_object_array *array, unsigned depth)
{
	PyObject *list = PyList_New((Py_ssize_t)array->size);

	for (uint32_t i = 0; list && i < array->size; i++) {
		PyObject *item = unpacked(&array->ptr[i], depth);

		if (item)
			PyList_SET_ITEM(list, (Py_ssize_t)i, item);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *unpacked_pairs(const msgpack_object_map *map, unsigned depth)
{
	PyObject *dict = PyDict_New();

	for (uint32_t i = 0; dict && i < map->size; i++) {
		PyObject *key = unpacked(&map->ptr[i].key, depth), *value = NULL;

		if (key)
			value = unpacked(&map->ptr[i].val, depth);
		if (!value || PyDict_SetItem(dict, key, value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(key);
		Py_XDECREF(value);
	}
	return dict;
}

static PyObject *unpacked(const msgpack_object *object, unsigned depth)
{
	if (depth == 0) {
		PyErr_SetString(PyExc_ValueError, "nested too deeply");
		return NULL;
	}
	switch (object->type) {
	case MSGPACK_OBJECT_NIL:
		Py_INCREF(Py_None);
		return Py_None;
	case MSGPACK_OBJECT_BOOLEAN:
		return PyBool_FromLong(object->via.boolean);
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		return PyLong_FromUnsignedLongLong(object->via.u64);
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		return PyLong_FromLongLong(object->via.i64);
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		return PyFloat_FromDouble(object->via.f64);
	case MSGPACK_OBJECT_STR:
		return PyUnicode_DecodeUTF8(object->via.str.ptr, (Py_ssize_t)object->via.str.size, "replace");
	case MSGPACK_OBJECT_BIN:
		return PyBytes_FromStringAndSize(object->via.bin.ptr, (Py_ssize_t)object->via.bin.size);
	case MSGPACK_OBJECT_ARRAY:
		return unpacked_items(&object->via.array, depth - 1);
	case MSGPACK_OBJECT_MAP:
		return unpacked_pairs(&object->via.map, depth - 1);
	case MSGPACK_OBJECT_EXT:
		break;
	}
	PyErr_SetString(PyExc_ValueError, "a value of a type that is not JSON's");
	return NULL;
}

PyObject *unpack_object(struct bytes raw)
{
	PyObject *object = NULL;
	msgpack_unpacked result;

	msgpack_unpacked_init(&result);
	if (msgpack_unpack_next(&result, raw.data, raw.size, NULL) == MSGPACK_UNPACK_SUCCESS)
		object = unpacked(&result.data, UNPACK_DEPTH_MAX);
	else
		PyErr_SetString(PyExc_ValueError, "not msgpack");
	msgpack_unpacked_destroy(&result);
	return object;
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
