/* The byte vectors of proto/vectors: what the C codec must make of each message, and must refuse. The Python codec
 * is held to the same files. A vector's fields are set through the schema, by name, so a new message needs a line
 * in the table below and a vector, and no more. */
#include "check.h"

#include "proto/message.h"

#include <jansson.h>

#define MESSAGE(which)                                                                                             \
	{                                                                                                          \
		.name = #which, .schema = &which##_schema                                                          \
	}

static struct {
	const char *name;
	const struct wire_schema *schema;
	unsigned vectors;
} messages[] = {
	MESSAGE(hello_request),
	MESSAGE(open_request),
	MESSAGE(exec_request),
	MESSAGE(input_request),
	MESSAGE(interrupt_request),
	MESSAGE(reset_request),
	MESSAGE(shutdown_request),
	MESSAGE(info_request),
	MESSAGE(list_request),
	MESSAGE(stats_request),
	MESSAGE(error_reply),
	MESSAGE(hello_reply),
	MESSAGE(exec_reply),
	MESSAGE(empty_reply),
	MESSAGE(interrupt_reply),
	MESSAGE(session_info),
	MESSAGE(list_reply),
	MESSAGE(stats_reply),
	MESSAGE(stdout_event),
	MESSAGE(stderr_event),
	MESSAGE(ask_event),
	MESSAGE(place_record),
	MESSAGE(configure_message),
	MESSAGE(warden_message),
	MESSAGE(template_ready),
	MESSAGE(failed_message),
	MESSAGE(made_message),
	MESSAGE(spawn_message),
	MESSAGE(signal_message),
	MESSAGE(discard_message),
	MESSAGE(warden_ready),
	MESSAGE(spawned_message),
	MESSAGE(signalled_message),
	MESSAGE(exited_message),
	MESSAGE(run_message),
	MESSAGE(answer_message),
	MESSAGE(done_message),
	MESSAGE(ask_message),
	MESSAGE(checkpoint_request),
	MESSAGE(checkpoints_request),
	MESSAGE(restore_request),
	MESSAGE(drop_request),
	MESSAGE(undo_request),
	MESSAGE(branch_request),
	MESSAGE(state_reply),
	MESSAGE(checkpoint_record),
	MESSAGE(checkpoints_reply),
	MESSAGE(adopt_message),
	MESSAGE(sweep_message),
	MESSAGE(swept_message),
	MESSAGE(freeze_message),
	MESSAGE(frozen_message),
	MESSAGE(measure_message),
	MESSAGE(measured_message),
	MESSAGE(files_request),
	MESSAGE(get_request),
	MESSAGE(put_request),
	MESSAGE(copy_in_request),
	MESSAGE(transfer_reply),
	MESSAGE(get_reply),
	MESSAGE(file_record),
	MESSAGE(files_reply),
	MESSAGE(ended_record),
	MESSAGE(saves_request),
	MESSAGE(unsave_request),
	MESSAGE(stop_request),
	MESSAGE(save_record),
	MESSAGE(saves_reply),
	MESSAGE(stop_reply),
	MESSAGE(cell_error),
	MESSAGE(blocked_act),
	MESSAGE(attach_request),
	MESSAGE(results_request),
	MESSAGE(detached_reply),
	MESSAGE(result_record),
	MESSAGE(results_reply),
	MESSAGE(survey_message),
	MESSAGE(surveyed_message),
	MESSAGE(shown),
	MESSAGE(artifact),
	MESSAGE(error_frame),
	MESSAGE(display_event),
	MESSAGE(alive_event),
	MESSAGE(display_message),
	MESSAGE(complete_request),
	MESSAGE(inspect_request),
	MESSAGE(vars_request),
	MESSAGE(history_request),
	MESSAGE(stray_request),
	MESSAGE(stray_reply),
	MESSAGE(check_request),
	MESSAGE(is_complete_request),
	MESSAGE(complete_reply),
	MESSAGE(completion_match),
	MESSAGE(inspect_reply),
	MESSAGE(vars_reply),
	MESSAGE(variable_record),
	MESSAGE(is_complete_reply),
	MESSAGE(check_reply),
	MESSAGE(history_reply),
	MESSAGE(history_record),
	MESSAGE(question_message),
	MESSAGE(told_message),
	MESSAGE(save_request),
	MESSAGE(load_request),
	MESSAGE(save_reply),
	MESSAGE(load_reply),
	MESSAGE(refused_name),
	MESSAGE(task_report),
	MESSAGE(saved_state),
	MESSAGE(task_message),
	MESSAGE(reset_reply),
	MESSAGE(effect),
};

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
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (strcmp(messages[i].name, name))
			continue;
		messages[i].vectors++;
		return messages[i].schema;
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
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (messages[i].vectors == 0)
			fprintf(stderr, "%s has no vector\n", messages[i].name);
		CHECK(messages[i].vectors > 0);
	}
	for_each_vector(SOURCE_DIR "/proto/vectors/refused.json", test_refused);
	return check_report();
}
