/* Values of calls, which are msgpack on the wire, as JSON for programs that would rather have text. JSON has no
 * bytes: they become text in base 64. */
#include "handle.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

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

static void write_value(FILE *out, const msgpack_object *object);

static void write_character(FILE *out, unsigned char c)
{
	static const char escapes[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};

	if (c < sizeof(escapes) && escapes[c])
		fprintf(out, "\\%c", escapes[c]);
	else if (c < ' ' || c == 0x7f)
		fprintf(out, "\\u%04x", c);
	else
		fputc(c, out);
}

/* What is no UTF-8 becomes the character that stands for it, byte by byte. */
static void write_text(FILE *out, struct bytes text)
{
	bool valid = utf8_valid(text);

	fputc('"', out);
	for (size_t i = 0; i < text.size; i++) {
		if (valid || !(text.data[i] & 0x80))
			write_character(out, (unsigned char)text.data[i]);
		else
			fputs("\xef\xbf\xbd", out);
	}
	fputc('"', out);
}

static void write_base64(FILE *out, const unsigned char *data, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	fputc('"', out);
	for (size_t at = 0; at < size; at += 3) {
		size_t left = MIN(size - at, (size_t)3);
		uint32_t bits = 0;

		for (size_t i = 0; i < 3; i++)
			bits = bits << 8 | (i < left ? data[at + i] : 0);
		for (size_t i = 0; i < 4; i++)
			fputc(i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=', out);
	}
	fputc('"', out);
}

/* As short as it can be and still be the same number, and never like an integer. */
static void write_real(FILE *out, double number)
{
	char text[32], *comma;

	if (!isfinite(number)) {
		fputs("null", out);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	comma = strchr(text, ','); /* of the locale */
	if (comma)
		*comma = '.';
	fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

/* A name in JSON is text, so another key is what it would be as a value, as text. */
static void write_key(FILE *out, const msgpack_object *key)
{
	char *text = NULL;
	size_t size = 0;
	FILE *inner;

	if (key->type == MSGPACK_OBJECT_STR) {
		write_value(out, key);
		return;
	}
	inner = open_memstream(&text, &size);
	if (!inner)
		return;
	write_value(inner, key);
	if (fclose(inner) == 0)
		write_text(out, (struct bytes){.data = text, .size = size});
	free(text);
}

static void write_map(FILE *out, const msgpack_object_map *map)
{
	fputc('{', out);
	for (uint32_t i = 0; i < map->size; i++) {
		fputs(i ? ", " : "", out);
		write_key(out, &map->ptr[i].key);
		fputs(": ", out);
		write_value(out, &map->ptr[i].val);
	}
	fputc('}', out);
}

static void write_array(FILE *out, const msgpack_object_array *array)
{
	fputc('[', out);
	for (uint32_t i = 0; i < array->size; i++) {
		fputs(i ? ", " : "", out);
		write_value(out, &array->ptr[i]);
	}
	fputc(']', out);
}

static void write_value(FILE *out, const msgpack_object *object)
{
	switch (object->type) {
	case MSGPACK_OBJECT_NIL:
	case MSGPACK_OBJECT_EXT:
		fputs("null", out);
		break;
	case MSGPACK_OBJECT_BOOLEAN:
		fputs(object->via.boolean ? "true" : "false", out);
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		fprintf(out, "%llu", (unsigned long long)object->via.u64);
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		fprintf(out, "%lld", (long long)object->via.i64);
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		write_real(out, object->via.f64);
		break;
	case MSGPACK_OBJECT_STR:
		write_text(out, (struct bytes){.data = object->via.str.ptr, .size = object->via.str.size});
		break;
	case MSGPACK_OBJECT_BIN:
		write_base64(out, (const unsigned char *)object->via.bin.ptr, object->via.bin.size);
		break;
	case MSGPACK_OBJECT_ARRAY:
		write_array(out, &object->via.array);
		break;
	case MSGPACK_OBJECT_MAP:
		write_map(out, &object->via.map);
		break;
	}
}

char *lair_json(struct lair_text packed)
{
	msgpack_unpacked result;
	char *text = NULL;
	size_t size = 0;
	FILE *out;

	/* This bounds what is allocated, and how deep it is. */
	if (packed.size == 0 || wire_scan(bytes_from(packed), WIRE_DEPTH_MAX, WIRE_OBJECTS_MAX) != packed.size)
		return NULL;
	msgpack_unpacked_init(&result);
	out = open_memstream(&text, &size);
	if (out && msgpack_unpack_next(&result, packed.data, packed.size, NULL) == MSGPACK_UNPACK_SUCCESS)
		write_value(out, &result.data);
	msgpack_unpacked_destroy(&result);
	if (!out || fclose(out) != 0 || size == 0) {
		free(text);
		return NULL;
	}
	return text;
}
