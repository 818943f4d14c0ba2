/* The byte vectors of proto/vectors: what the C codec must make of each message, and must refuse. The Python codec
 * is held to the same files. A vector's fields are set through the schema, by name, so a new message needs a
 * vector, and no more. */
#include "check.h"

#include "messages.h"

#include <jansson.h>

/* What a vector's fields point into; all of it goes when the vector is done. */
struct arena {
	char *blocks[64];
	size_t n;
};

static char *arena_keep(struct arena *arena, char *block)
{
	if (!block || arena->n == ARRAY_SIZE(arena->blocks))
		abort();
	return arena->blocks[arena->n++] = block;
}

static void arena_deinit(struct arena *arena)
{
	while (arena->n > 0)
		free(arena->blocks[--arena->n]);
}

static const struct wire_schema *schema_of(const char *name)
{
	messages_for_each(at)
	{
		if (strcmp((*at)->name, name))
			continue;
		(*at)->vectors++;
		return (*at)->schema;
	}
	fprintf(stderr, "no message is called %s\n", name);
	exit(EXIT_FAILURE);
}

static struct bytes unhex(struct arena *arena, const char *text)
{
	size_t size = strlen(text) / 2;
	char *out = arena_keep(arena, calloc(1, size + 1));

	for (size_t i = 0; i < size; i++) {
		const char digits[] = {text[2 * i], text[2 * i + 1], '\0'};

		out[i] = (char)strtoul(digits, NULL, 16);
	}
	return (struct bytes){.data = out, .size = size};
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the vectors are */
static void pack_json(msgpack_packer *packer, json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		msgpack_pack_map(packer, json_object_size(value));
		json_object_foreach(value, key, item)
		{
			msgpack_pack_str(packer, strlen(key));
			msgpack_pack_str_body(packer, key, strlen(key));
			pack_json(packer, item);
		}
		break;
	case JSON_ARRAY:
		msgpack_pack_array(packer, json_array_size(value));
		json_array_foreach(value, i, item) pack_json(packer, item);
		break;
	case JSON_STRING:
		msgpack_pack_str(packer, json_string_length(value));
		msgpack_pack_str_body(packer, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		msgpack_pack_int64(packer, json_integer_value(value));
		break;
	case JSON_REAL:
		msgpack_pack_double(packer, json_real_value(value));
		break;
	case JSON_TRUE:
		msgpack_pack_true(packer);
		break;
	case JSON_FALSE:
		msgpack_pack_false(packer);
		break;
	case JSON_NULL:
		msgpack_pack_nil(packer);
		break;
	}
}

static struct bytes pack(struct arena *arena, json_t *value)
{
	msgpack_sbuffer buffer;
	msgpack_packer packer;

	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	pack_json(&packer, value);
	arena_keep(arena, buffer.data);
	return wire_bytes(&buffer);
}

/* JSON as written here has no numbers of 64 bits: the largest are text. */
static uint64_t number(json_t *value)
{
	if (json_is_string(value)) {
		const char *text = json_string_value(value);

		return *text == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
	}
	return (uint64_t)json_integer_value(value);
}

static void field_set(struct arena *arena, void *slot, enum wire_type type, json_t *value)
{
	switch (type) {
	case WIRE_FLAG:
		*(bool *)slot = json_is_true(value);
		break;
	case WIRE_UINT:
	case WIRE_INT:
		*(uint64_t *)slot = number(value);
		break;
	case WIRE_REAL:
		*(double *)slot = json_number_value(value);
		break;
	case WIRE_STR:
		*(struct bytes *)slot = bytes_of(json_string_value(value));
		break;
	case WIRE_BIN:
		*(struct bytes *)slot = unhex(arena, json_string_value(value));
		break;
	case WIRE_RAW:
		*(struct bytes *)slot = pack(arena, value);
		break;
	}
}

static void message_set(struct arena *arena, char *out, const struct wire_schema *schema, json_t *fields)
{
	size_t known = 0;

	for (size_t i = 0; i < schema->n_fields; i++) {
		json_t *value = json_object_get(fields, schema->fields[i].name.data);

		if (!value)
			continue;
		known++;
		field_set(arena, out + schema->fields[i].offset, schema->fields[i].type, value);
	}
	CHECK(known == json_object_size(fields));
}

static bool encodes_to(const struct wire_schema *schema, const void *message, struct bytes expected)
{
	msgpack_sbuffer buffer;
	bool equal;

	msgpack_sbuffer_init(&buffer);
	CHECK(wire_encode(&buffer, schema, message) == 0);
	equal = bytes_equal(wire_bytes(&buffer), expected);
	if (!equal) {
		for (size_t i = 0; i < buffer.size; i++)
			fprintf(stderr, "%02x", (unsigned)(unsigned char)buffer.data[i]);
		fputs(" is what it encodes to\n", stderr);
	}
	msgpack_sbuffer_destroy(&buffer);
	return equal;
}

static void test_vector(json_t *vector)
{
	const struct wire_schema *schema = schema_of(json_string_value(json_object_get(vector, "message")));
	_Alignas(16) char message[1024] = {0}, decoded[1024];
	struct arena arena = {.n = 0};
	struct bytes expected = unhex(&arena, json_string_value(json_object_get(vector, "frame")));
	struct wire_frame frame;
	struct wire_fault fault;

	if (schema->size > sizeof(message))
		abort();
	message_set(&arena, message, schema, json_object_get(vector, "fields"));
	CHECK(encodes_to(schema, message, expected));
	CHECK(wire_open(&frame, expected) == 0 && bytes_is(frame.type, schema->type));
	CHECK(wire_decode(decoded, schema, frame.body, &fault) == 0);
	CHECK(encodes_to(schema, decoded, expected));
	arena_deinit(&arena);
}

static void test_refused(json_t *vector)
{
	const struct wire_schema *schema = schema_of(json_string_value(json_object_get(vector, "message")));
	_Alignas(16) char decoded[1024];
	struct arena arena = {.n = 0};
	struct bytes data = unhex(&arena, json_string_value(json_object_get(vector, "frame")));
	struct wire_frame frame;
	struct wire_fault fault;
	bool refused = wire_open(&frame, data) || wire_decode(decoded, schema, frame.body, &fault);

	if (!refused)
		fprintf(stderr, "taken: %s\n", json_string_value(json_object_get(vector, "why")));
	CHECK(refused);
	arena_deinit(&arena);
}

static void for_each_vector(const char *path, void (*test)(json_t *vector))
{
	json_error_t error;
	json_t *vectors = json_load_file(path, 0, &error), *vector;
	size_t i;

	if (!vectors) {
		fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
		exit(EXIT_FAILURE);
	}
	json_array_foreach(vectors, i, vector) test(vector);
	json_decref(vectors);
}

int main(void)
{
	for_each_vector(SOURCE_DIR "/proto/vectors/messages.json", test_vector);
	messages_for_each(at)
	{
		if ((*at)->vectors == 0)
			fprintf(stderr, "%s has no vector\n", (*at)->name);
		CHECK((*at)->vectors > 0);
	}
	for_each_vector(SOURCE_DIR "/proto/vectors/refused.json", test_refused);
	return check_report();
}
