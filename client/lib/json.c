/* Values of calls, which are msgpack on the wire, as JSON for programs that would rather have text. */
#include "handle.h"

#include "proto/json.h"

#include <jansson.h>

/* ---- JSON to msgpack ---- */

static void pack(msgpack_packer *packer, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_NULL:
		msgpack_pack_nil(packer);
		break;
	case JSON_TRUE:
		msgpack_pack_true(packer);
		break;
	case JSON_FALSE:
		msgpack_pack_false(packer);
		break;
	case JSON_INTEGER:
		msgpack_pack_int64(packer, json_integer_value(value));
		break;
	case JSON_REAL:
		msgpack_pack_double(packer, json_real_value(value));
		break;
	case JSON_STRING:
		msgpack_pack_str_with_body(packer, json_string_value(value), json_string_length(value));
		break;
	case JSON_ARRAY:
		msgpack_pack_array(packer, json_array_size(value));
		for (size_t i = 0; i < json_array_size(value); i++)
			pack(packer, json_array_get(value, i));
		break;
	case JSON_OBJECT:
		msgpack_pack_map(packer, json_object_size(value));
		for (void *it = json_object_iter(value); it; it = json_object_iter_next(value, it)) {
			const char *key = json_object_iter_key(it);

			msgpack_pack_str_with_body(packer, key, strlen(key));
			pack(packer, json_object_iter_value(it));
		}
		break;
	}
}

int json_pack_text(msgpack_sbuffer *buffer, struct lair_text json)
{
	json_t *value = json_loadb(json.data, json.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	msgpack_packer packer;

	if (!value)
		return -EINVAL;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	pack(&packer, value);
	json_decref(value);
	return buffer->size ? 0 : -ENOMEM;
}

/* ---- msgpack to JSON ---- */

char *lair_json(struct lair_text packed)
{
	if (packed.size == 0 || wire_scan(bytes_from(packed), WIRE_DEPTH_MAX, WIRE_OBJECTS_MAX) != packed.size)
		return NULL;
	return json_written(bytes_from(packed), SIZE_MAX, NULL);
}
