/* msgpack of a session as JSON. Its length and depth are checked before it is decoded. */
#include "arguments.h"

#include "proto/wire.h"

#include <stdio.h>

/* Of msgpack in a line. */
#define ARGUMENTS_MAX ((size_t)64 << 10)

static json_t *json_of(const msgpack_object *object);

static json_t *text_of(const char *data, size_t size)
{
	json_t *json = json_stringn(data, size);

	return json ? json : json_string("<text that is not UTF-8>");
}

static json_t *number_of(const msgpack_object *object)
{
	char digits[24];

	if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		return json_integer(object->via.i64);
	if (object->via.u64 <= INT64_MAX)
		return json_integer((json_int_t)object->via.u64);
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)object->via.u64);
	return json_string(digits);
}

static json_t *bytes_of_size(size_t size)
{
	char text[40];

	snprintf(text, sizeof(text), "<%zu bytes>", size);
	return json_string(text);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a message may be */
static json_t *array_of(const msgpack_object_array *array)
{
	json_t *json = json_array();

	for (uint32_t i = 0; i < array->size; i++)
		(void)json_array_append_new(json, json_of(&array->ptr[i]));
	return json;
}

/* A key that is no text has no place in an object. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static json_t *map_of(const msgpack_object_map *map)
{
	json_t *json = json_object();

	for (uint32_t i = 0; i < map->size; i++) {
		const msgpack_object *key = &map->ptr[i].key;
		char name[256];

		if (key->type == MSGPACK_OBJECT_STR && key->via.str.size < sizeof(name))
			snprintf(name, sizeof(name), "%.*s", (int)key->via.str.size, key->via.str.ptr);
		else
			snprintf(name, sizeof(name), "<key %u>", i);
		if (json_object_set_new(json, name, json_of(&map->ptr[i].val)))
			(void)json_object_set_new(json, "<a key that is not UTF-8>", json_true());
	}
	return json;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static json_t *json_of(const msgpack_object *object)
{
	json_t *json = NULL;

	switch (object->type) {
	case MSGPACK_OBJECT_NIL:
		return json_null();
	case MSGPACK_OBJECT_BOOLEAN:
		return json_boolean(object->via.boolean);
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		return number_of(object);
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		json = json_real(object->via.f64);
		return json ? json : json_string("<no number>");
	case MSGPACK_OBJECT_STR:
		return text_of(object->via.str.ptr, object->via.str.size);
	case MSGPACK_OBJECT_BIN:
		return bytes_of_size(object->via.bin.size);
	case MSGPACK_OBJECT_EXT:
		return bytes_of_size(object->via.ext.size);
	case MSGPACK_OBJECT_ARRAY:
		return array_of(&object->via.array);
	case MSGPACK_OBJECT_MAP:
		return map_of(&object->via.map);
	}
	return json_null();
}

json_t *arguments_as_json(struct bytes arguments)
{
	msgpack_unpacked result;
	json_t *json = NULL;
	size_t offset = 0;

	/* msgpack-c would allocate what a header announces. */
	if (arguments.size > ARGUMENTS_MAX ||
	    wire_scan(arguments, WIRE_DEPTH_MAX, arguments.size) != arguments.size)
		return json_null();
	msgpack_unpacked_init(&result);
	if (msgpack_unpack_next(&result, arguments.data, arguments.size, &offset) == MSGPACK_UNPACK_SUCCESS)
		json = json_of(&result.data);
	msgpack_unpacked_destroy(&result);
	return json ? json : json_null();
}
