/* The codec: what it takes, what it refuses, and that a frame survives the way through it. */
#include "check.h"

#include "proto/message.h"

#include <math.h>

static struct bytes hex(const char *text)
{
	static char out[4096];
	size_t n = 0;

	for (; *text; text++) {
		unsigned value;

		if (*text == ' ')
			continue;
		sscanf(text, "%2x", &value);
		out[n++] = (char)value;
		text++;
	}
	return (struct bytes){.data = out, .size = n};
}

static int open_hex(const char *text)
{
	struct wire_frame frame;

	return wire_open(&frame, hex(text));
}

static void test_open(void)
{
	struct wire_frame frame;

	CHECK(wire_open(&frame, hex("93 01 a1 78 80")) == 0);
	CHECK(bytes_is(frame.type, "x") && frame.body.size == 1);
	CHECK(wire_open(&frame, hex("93 02 a1 78 80")) == WIRE_E_VERSION && frame.version == 2);
	CHECK(open_hex("") == WIRE_E_MALFORMED);
	CHECK(open_hex("93 01 a1 78") == WIRE_E_MALFORMED);		      /* a part missing */
	CHECK(open_hex("93 01 a1 78 80 00") == WIRE_E_MALFORMED);	      /* something behind it */
	CHECK(open_hex("92 01 a1 78") == WIRE_E_MALFORMED);		      /* two parts */
	CHECK(open_hex("94 01 a1 78 80 80") == WIRE_E_MALFORMED);	      /* four */
	CHECK(open_hex("93 a1 31 a1 78 80") == WIRE_E_MALFORMED);	      /* version as text */
	CHECK(open_hex("93 01 c4 01 78 80") == WIRE_E_MALFORMED);	      /* type as bin */
	CHECK(open_hex("93 01 a1 78 90") == WIRE_E_MALFORMED);		      /* body as array */
	CHECK(open_hex("93 01 a1 78 81 c1 00") == WIRE_E_MALFORMED);	      /* the byte msgpack never uses */
	CHECK(open_hex("93 01 a1 78 81 a1 61 d4 00 00") == WIRE_E_MALFORMED); /* an extension type */
}

static void test_lengths_are_not_believed(void)
{
	CHECK(wire_scan(hex("dd ff ff ff ff"), 16, 100) == 0);
	CHECK(wire_scan(hex("df 7f ff ff ff 01 02"), 16, 100) == 0);
	CHECK(wire_scan(hex("c6 ff ff ff ff 00"), 16, 100) == 0);
	CHECK(wire_scan(hex("db 00 00 00 02 61 62"), 16, 100) == 7);
	CHECK(wire_scan(hex("db 00 00 00 03 61 62"), 16, 100) == 0);
	CHECK(wire_scan(hex("91 91 91 c0"), 3, 100) == 0);
	CHECK(wire_scan(hex("91 91 91 c0"), 4, 100) == 4);
	CHECK(wire_scan(hex("93 c0 c0 c0"), 16, 3) == 0);
	CHECK(wire_scan(hex("93 c0 c0 c0"), 16, 4) == 4);
}

static struct bytes body_of(msgpack_sbuffer *buffer)
{
	struct wire_frame frame;

	CHECK(wire_open(&frame, wire_bytes(buffer)) == 0);
	return frame.body;
}

static void test_round_trip(void)
{
	struct exec_request in = {.id = UINT64_MAX,
				  .session = BYTES("s"),
				  .code = BYTES("print('\xc3\xa4')"),
				  .timeout = 0.25,
				  .input = true};
	struct exec_request out;
	struct wire_fault fault;
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	CHECK(wire_encode(&buffer, &exec_request_schema, &in) == 0);
	CHECK(wire_decode(&out, &exec_request_schema, body_of(&buffer), &fault) == 0);
	CHECK(out.id == in.id && bytes_equal(out.session, in.session) && bytes_equal(out.code, in.code));
	CHECK(out.timeout == 0.25 && out.input && !out.stream && !out.profile.data);
	msgpack_sbuffer_destroy(&buffer);
}

static void test_nested(void)
{
	struct cell_error error = {.name = BYTES("E"), .value = BYTES(""), .traceback = BYTES("t")}, error_out;
	struct done_message in = {.cell = 7, .returncode = -3}, out;
	msgpack_sbuffer inner, buffer;
	struct wire_fault fault;

	msgpack_sbuffer_init(&inner);
	msgpack_sbuffer_init(&buffer);
	CHECK(wire_encode_body(&inner, &cell_error_schema, &error) == 0);
	in.error = wire_bytes(&inner);
	CHECK(wire_encode(&buffer, &done_message_schema, &in) == 0);
	CHECK(wire_decode(&out, &done_message_schema, body_of(&buffer), &fault) == 0);
	CHECK(out.returncode == -3 && !out.blocked.data);
	CHECK(wire_decode(&error_out, &cell_error_schema, out.error, &fault) == 0);
	CHECK(bytes_is(error_out.name, "E") && error_out.value.data && error_out.value.size == 0);
	msgpack_sbuffer_destroy(&inner);
	msgpack_sbuffer_destroy(&buffer);
}

static int decode_hex(const char *text, struct wire_fault *fault)
{
	struct input_request out;

	return wire_decode(&out, &input_request_schema, hex(text), fault);
}

static void test_faults(void)
{
	struct wire_fault fault;

	/* {"id": 1, "exec": 2} is well */
	CHECK(decode_hex("82 a2 69 64 01 a4 65 78 65 63 02", &fault) == 0);
	CHECK(decode_hex("81 a2 69 64 01", &fault) == WIRE_E_FIELD && !strcmp(fault.field, "exec"));
	CHECK(decode_hex("82 a2 69 64 01 a2 69 64 01", &fault) == WIRE_E_FIELD && !strcmp(fault.field, "id"));
	CHECK(decode_hex("81 a2 69 7f 01", &fault) == WIRE_E_FIELD && !strcmp(fault.field, "i?"));
	CHECK(decode_hex("82 a2 69 64 ff a4 65 78 65 63 02", &fault) == WIRE_E_FIELD); /* a negative id */
	CHECK(decode_hex("83 a2 69 64 01 a4 65 78 65 63 02 a4 74 65 78 74 a1 ff", &fault) == WIRE_E_FIELD);
	CHECK(decode_hex("81 01 01", &fault) == WIRE_E_FIELD && !strcmp(fault.field, "body"));
}

/* For who may be older than what it reads. What it knows is held to the same rules. */
static void test_known(void)
{
	struct interrupt_reply out;
	struct wire_fault fault;
	/* {"later": {"a": [1]}, "id": 7, "interrupted": true} */
	struct bytes later =
		hex("83 a5 6c 61 74 65 72 81 a1 61 91 01 a2 69 64 07 ab 69 6e 74 65 72 72 75 70 74 65 64 c3");

	CHECK(wire_decode_known(&out, &interrupt_reply_schema, later, &fault) == 0 && out.id == 7 &&
	      out.interrupted);
	CHECK(wire_decode(&out, &interrupt_reply_schema, later, &fault) == WIRE_E_FIELD &&
	      !strcmp(fault.field, "later"));
	/* {"later": 1, "id": 7}; {"id": 7, "later": 1, "id": 8} */
	later = hex("82 a5 6c 61 74 65 72 01 a2 69 64 07");
	CHECK(wire_decode_known(&out, &interrupt_reply_schema, later, &fault) == WIRE_E_FIELD &&
	      !strcmp(fault.field, "interrupted"));
	later = hex("83 a2 69 64 07 a5 6c 61 74 65 72 01 a2 69 64 08");
	CHECK(wire_decode_known(&out, &interrupt_reply_schema, later, &fault) == WIRE_E_FIELD &&
	      !strcmp(fault.field, "id"));
}

static void test_find_id(void)
{
	uint64_t id = 0;

	CHECK(wire_find_id(&id, hex("82 a1 78 c0 a2 69 64 2a")) && id == 42);
	CHECK(!wire_find_id(&id, hex("81 a2 69 64 ff")));
	CHECK(!wire_find_id(&id, hex("80")));
}

static double real_of(const char *text)
{
	struct wire_fault fault;
	struct session_info out;
	static const struct wire_field field[] = {{.name = {"r", 1},
						   .type = WIRE_REAL,
						   .need = WIRE_REQUIRED,
						   .offset = offsetof(struct session_info, created)}};
	static const struct wire_schema schema = {.type = "x", .size = sizeof(out), .n_fields = 1, .fields = field};

	return wire_decode(&out, &schema, hex(text), &fault) ? -1.0 : out.created;
}

static void test_reals(void)
{
	CHECK(real_of("81 a1 72 cb 3f f8 00 00 00 00 00 00") == 1.5);
	CHECK(real_of("81 a1 72 ca 3f c0 00 00") == 1.5);
	CHECK(real_of("81 a1 72 07") == 7.0);
	CHECK(real_of("81 a1 72 d1 ff 00") == -256.0);
	CHECK(real_of("81 a1 72 d0 80") == -128.0);
	CHECK(real_of("81 a1 72 cb 7f f8 00 00 00 00 00 00") == -1.0); /* NaN */
	CHECK(real_of("81 a1 72 cb 7f f0 00 00 00 00 00 00") == -1.0); /* infinity */
}

static void test_strings(void)
{
	struct bytes item, raw = hex("92 a1 61 a2 62 63");
	size_t cursor = 0;

	CHECK(wire_next_string(raw, &cursor, &item) && bytes_is(item, "a"));
	CHECK(wire_next_string(raw, &cursor, &item) && bytes_is(item, "bc"));
	CHECK(!wire_next_string(raw, &cursor, &item));
	cursor = 0;
	CHECK(!wire_next_string((struct bytes){.data = NULL}, &cursor, &item));
}

/* Whoever asks whether all of them were numbers looks at how far it went. */
static void test_numbers(void)
{
	struct bytes raw = hex("93 07 cd 01 00 00");
	uint64_t number = 1;
	size_t cursor = 0;

	CHECK(wire_next_uint(raw, &cursor, &number) && number == 7);
	CHECK(wire_next_uint(raw, &cursor, &number) && number == 256);
	CHECK(wire_next_uint(raw, &cursor, &number) && number == 0);
	CHECK(!wire_next_uint(raw, &cursor, &number) && cursor == raw.size);
	raw = hex("92 07 a1 61");
	cursor = 0;
	CHECK(wire_next_uint(raw, &cursor, &number) && !wire_next_uint(raw, &cursor, &number));
	CHECK(cursor == 2);
	raw = hex("90");
	cursor = 0;
	CHECK(!wire_next_uint(raw, &cursor, &number) && cursor == raw.size);
}

/* More records than a request may have values. */
static void test_large_answer(void)
{
	const struct checkpoint_record record = {.cell = 3};
	struct checkpoints_reply in = {.id = 1}, out;
	_cleanup_(wire_list_deinit) struct wire_list records = {0};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	struct wire_frame frame;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0, n = 0;

	for (int i = 0; i < WIRE_OBJECTS_MAX; i++)
		CHECK(wire_list_add(&records, &checkpoint_record_schema, &record) == 0);
	in.checkpoints = wire_list_bytes(&records);
	CHECK(wire_encode(&buffer, &checkpoints_reply_schema, &in) == 0);
	CHECK(wire_open(&frame, wire_bytes(&buffer)) == WIRE_E_MALFORMED);
	CHECK(wire_open_answer(&frame, wire_bytes(&buffer)) == 0);
	CHECK(wire_decode(&out, &checkpoints_reply_schema, frame.body, &fault) == 0);
	while (wire_next(out.checkpoints, &cursor, &item))
		n++;
	CHECK(n == WIRE_OBJECTS_MAX);
}

/* A list is the same bytes as an array whose length was known before, at each length of its head. */
static void test_lists(void)
{
	static const size_t sizes[] = {0, 1, 15, 16, 255, 65535, 65536, 70000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(wire_list_deinit) struct wire_list list = {0};
		_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer array = {0};

		CHECK(wire_put_array(&array, sizes[i]) == 0);
		for (size_t k = 0; k < sizes[i]; k++)
			CHECK(wire_put_string(&array, BYTES("x")) == 0 &&
			      wire_list_add_string(&list, BYTES("x")) == 0);
		CHECK(bytes_equal(wire_list_bytes(&list), wire_bytes(&array)));
		CHECK(wire_list_add_uint(&list, 7) == 0 && wire_count(wire_list_bytes(&list)) == sizes[i] + 1);
	}
}

static void test_utf8(void)
{
	CHECK(utf8_valid(BYTES("")) && utf8_valid(BYTES("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d")));
	CHECK(!utf8_valid(BYTES("\xc0\x80")) && !utf8_valid(BYTES("\xe0\x80\x80"))); /* overlong */
	CHECK(!utf8_valid(BYTES("\xed\xa0\x80")));				     /* a surrogate */
	CHECK(!utf8_valid(BYTES("\xf4\x90\x80\x80")) && !utf8_valid(BYTES("\xff")));
	CHECK(!utf8_valid(BYTES("\xe2\x82")) && !utf8_valid(BYTES("\x80")));
}

int main(void)
{
	test_open();
	test_lengths_are_not_believed();
	test_round_trip();
	test_nested();
	test_faults();
	test_known();
	test_find_id();
	test_reals();
	test_strings();
	test_numbers();
	test_large_answer();
	test_lists();
	test_utf8();
	return check_report();
}
