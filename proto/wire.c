/* The codec. All reading goes through head_read, which decodes the head of a value within the bounds of the
 * frame. The scanner uses it to walk a whole frame before anything is believed, the decoder to find the fields.
 * msgpack-c does the writing. Extension types are not supported. */
#include "proto/wire.h"

#include <math.h>

struct head {
	enum wire_kind kind;
	union {
		uint64_t number; /* flag, uint; int as two's complement; length of str and bin; count of array and
				    map */
		double real;
	};
};

struct cursor {
	const uint8_t *at, *end;
};

/* The heads 0xc0 to 0xdf: what they begin and how many bytes of number follow. */
static const struct {
	uint8_t kind, width;
} heads[32] = {
	[0x00] = {WIRE_KIND_NIL, 0},  [0x02] = {WIRE_KIND_FLAG, 0},  [0x03] = {WIRE_KIND_FLAG, 0},
	[0x04] = {WIRE_KIND_BIN, 1},  [0x05] = {WIRE_KIND_BIN, 2},   [0x06] = {WIRE_KIND_BIN, 4},
	[0x0a] = {WIRE_KIND_REAL, 4}, [0x0b] = {WIRE_KIND_REAL, 8},  [0x0c] = {WIRE_KIND_UINT, 1},
	[0x0d] = {WIRE_KIND_UINT, 2}, [0x0e] = {WIRE_KIND_UINT, 4},  [0x0f] = {WIRE_KIND_UINT, 8},
	[0x10] = {WIRE_KIND_INT, 1},  [0x11] = {WIRE_KIND_INT, 2},   [0x12] = {WIRE_KIND_INT, 4},
	[0x13] = {WIRE_KIND_INT, 8},  [0x19] = {WIRE_KIND_STR, 1},   [0x1a] = {WIRE_KIND_STR, 2},
	[0x1b] = {WIRE_KIND_STR, 4},  [0x1c] = {WIRE_KIND_ARRAY, 2}, [0x1d] = {WIRE_KIND_ARRAY, 4},
	[0x1e] = {WIRE_KIND_MAP, 2},  [0x1f] = {WIRE_KIND_MAP, 4},
};

static struct cursor cursor_of(struct bytes data)
{
	const uint8_t *at = (const uint8_t *)data.data;

	return (struct cursor){.at = at, .end = at ? at + data.size : at};
}

static size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static bool number_read(struct cursor *cursor, unsigned width, uint64_t *number)
{
	*number = 0;
	if (cursor_left(cursor) < width)
		return false;
	for (unsigned i = 0; i < width; i++)
		*number = *number << 8 | *cursor->at++;
	return true;
}

static void head_signed(struct head *head, unsigned width)
{
	unsigned unused = 64 - 8 * width;
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): no WIRE_KIND_INT has a width of 0 */
	int64_t value = (int64_t)(head->number << unused) >> unused;

	head->number = (uint64_t)value;
	if (value >= 0)
		head->kind = WIRE_KIND_UINT;
}

static void head_real(struct head *head, unsigned width)
{
	if (width == 4) {
		uint32_t bits = (uint32_t)head->number;
		float value;

		memcpy(&value, &bits, sizeof(value));
		head->real = (double)value;
	} else {
		uint64_t bits = head->number;

		memcpy(&head->real, &bits, sizeof(head->real));
	}
}

static bool head_read_wide(struct cursor *cursor, uint8_t byte, struct head *head)
{
	unsigned width = heads[byte - 0xc0].width;

	head->kind = heads[byte - 0xc0].kind;
	if (head->kind == WIRE_KIND_NONE || !number_read(cursor, width, &head->number))
		return false;
	if (head->kind == WIRE_KIND_FLAG)
		head->number = byte == 0xc3;
	else if (head->kind == WIRE_KIND_INT)
		head_signed(head, width);
	else if (head->kind == WIRE_KIND_REAL)
		head_real(head, width);
	return true;
}

/* Read one head. Afterwards the bytes of a str or bin are known to be there. The elements of an array or map are
 * not, but there cannot be fewer bytes than elements. */
static bool head_read(struct cursor *cursor, struct head *head)
{
	uint8_t byte;

	if (cursor->at == cursor->end)
		return false;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a cursor of nothing is at its end */
	byte = *cursor->at++;
	if (byte <= 0x7f)
		*head = (struct head){.kind = WIRE_KIND_UINT, .number = byte};
	else if (byte <= 0x8f)
		*head = (struct head){.kind = WIRE_KIND_MAP, .number = byte & 0x0f};
	else if (byte <= 0x9f)
		*head = (struct head){.kind = WIRE_KIND_ARRAY, .number = byte & 0x0f};
	else if (byte <= 0xbf)
		*head = (struct head){.kind = WIRE_KIND_STR, .number = byte & 0x1f};
	else if (byte >= 0xe0)
		*head = (struct head){.kind = WIRE_KIND_INT, .number = (uint64_t)(int64_t)(int8_t)byte};
	else if (!head_read_wide(cursor, byte, head))
		return false;

	switch (head->kind) {
	case WIRE_KIND_STR:
	case WIRE_KIND_BIN:
	case WIRE_KIND_ARRAY:
		return head->number <= cursor_left(cursor);
	case WIRE_KIND_MAP:
		return head->number <= cursor_left(cursor) / 2;
	case WIRE_KIND_NONE:
	case WIRE_KIND_NIL:
	case WIRE_KIND_FLAG:
	case WIRE_KIND_UINT:
	case WIRE_KIND_INT:
	case WIRE_KIND_REAL:
		break;
	}
	return true;
}

static struct bytes take(struct cursor *cursor, uint64_t size)
{
	struct bytes taken = {.data = (const char *)cursor->at, .size = size};

	cursor->at += size;
	return taken;
}

static bool scan_value(struct cursor *cursor, unsigned depth, size_t *objects)
{
	struct head head;
	uint64_t children = 0;

	if (depth == 0 || *objects == 0 || !head_read(cursor, &head))
		return false;
	--*objects;
	if (head.kind == WIRE_KIND_STR || head.kind == WIRE_KIND_BIN)
		take(cursor, head.number);
	else if (head.kind == WIRE_KIND_ARRAY)
		children = head.number;
	else if (head.kind == WIRE_KIND_MAP)
		children = 2 * head.number;
	for (; children > 0; children--)
		if (!scan_value(cursor, depth - 1, objects))
			return false;
	return true;
}

size_t wire_scan(struct bytes data, unsigned depth_max, size_t objects_max)
{
	struct cursor cursor = cursor_of(data);
	size_t objects = objects_max;

	return scan_value(&cursor, depth_max, &objects) ? data.size - cursor_left(&cursor) : 0;
}

/* The next value as a span. Only for data that has been scanned. */
static struct bytes span_read(struct cursor *cursor)
{
	struct bytes rest = {.data = (const char *)cursor->at, .size = cursor_left(cursor)};

	return take(cursor, wire_scan(rest, WIRE_DEPTH_MAX, rest.size));
}

static int frame_open(struct wire_frame *frame, struct bytes data, size_t objects_max)
{
	struct cursor cursor = cursor_of(data);
	struct head head;

	*frame = (struct wire_frame){0};
	if (data.size == 0 || wire_scan(data, WIRE_DEPTH_MAX, objects_max) != data.size)
		return WIRE_E_MALFORMED;
	if (!head_read(&cursor, &head) || head.kind != WIRE_KIND_ARRAY || head.number < 1)
		return WIRE_E_MALFORMED;
	if (head.number == 3) {
		if (!head_read(&cursor, &head) || head.kind != WIRE_KIND_UINT)
			return WIRE_E_MALFORMED;
		frame->version = head.number;
		if (frame->version != WIRE_VERSION)
			return WIRE_E_VERSION;
		if (!head_read(&cursor, &head) || head.kind != WIRE_KIND_STR)
			return WIRE_E_MALFORMED;
		frame->type = take(&cursor, head.number);
		frame->body = (struct bytes){.data = (const char *)cursor.at, .size = cursor_left(&cursor)};
		if (head_read(&cursor, &head) && head.kind == WIRE_KIND_MAP)
			return 0;
	}
	return WIRE_E_MALFORMED;
}

int wire_open(struct wire_frame *frame, struct bytes data)
{
	return frame_open(frame, data, WIRE_OBJECTS_MAX);
}

int wire_open_answer(struct wire_frame *frame, struct bytes data)
{
	return frame_open(frame, data, data.size);
}

static const char *const expectations[] = {
	[WIRE_FLAG] = "true or false",	  [WIRE_UINT] = "a whole number, 0 or more",
	[WIRE_INT] = "a whole number",	  [WIRE_REAL] = "a finite number",
	[WIRE_STR] = "text (str, UTF-8)", [WIRE_BIN] = "bytes (bin or str)",
	[WIRE_RAW] = "a value",
};

static bool value_read(void *slot, enum wire_type type, struct bytes span)
{
	struct cursor cursor = cursor_of(span);
	struct head head;

	if (!head_read(&cursor, &head))
		return false;
	switch (type) {
	case WIRE_FLAG:
		*(bool *)slot = head.number;
		return head.kind == WIRE_KIND_FLAG;
	case WIRE_UINT:
		*(uint64_t *)slot = head.number;
		return head.kind == WIRE_KIND_UINT;
	case WIRE_INT:
		*(int64_t *)slot = (int64_t)head.number;
		return head.kind == WIRE_KIND_INT || (head.kind == WIRE_KIND_UINT && head.number <= INT64_MAX);
	case WIRE_REAL:
		if (head.kind == WIRE_KIND_REAL)
			*(double *)slot = head.real;
		else if (head.kind == WIRE_KIND_UINT)
			*(double *)slot = (double)head.number;
		else if (head.kind == WIRE_KIND_INT)
			*(double *)slot = (double)(int64_t)head.number;
		else
			return false;
		return isfinite(*(double *)slot);
	case WIRE_STR:
		if (head.kind != WIRE_KIND_STR)
			return false;
		*(struct bytes *)slot = take(&cursor, head.number);
		return utf8_valid(*(struct bytes *)slot);
	case WIRE_BIN:
		if (head.kind != WIRE_KIND_STR && head.kind != WIRE_KIND_BIN)
			return false;
		*(struct bytes *)slot = take(&cursor, head.number);
		return true;
	case WIRE_RAW:
		*(struct bytes *)slot = span;
		return true;
	}
	return false;
}

static int fault_set(struct wire_fault *fault, struct bytes field, const char *expected)
{
	size_t n = MIN(field.size, sizeof(fault->field) - 1);

	/* The name may come from a stranger, and it goes into messages and logs. */
	for (size_t i = 0; i < n; i++)
		fault->field[i] = field.data[i] > ' ' && field.data[i] < 0x7f ? field.data[i] : '?';
	fault->field[n] = '\0';
	fault->expected = expected;
	return WIRE_E_FIELD;
}

static size_t field_find(const struct wire_schema *schema, struct bytes name)
{
	size_t i;

	for (i = 0; i < schema->n_fields; i++)
		if (bytes_equal(name, schema->fields[i].name))
			break;
	return i;
}

static int fields_missing(const struct wire_schema *schema, uint64_t seen, struct wire_fault *fault)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].need == WIRE_REQUIRED && !(seen & 1ULL << i))
			return fault_set(fault, schema->fields[i].name, "to be there");
	return 0;
}

static int decode(void *out, const struct wire_schema *schema, struct bytes body, bool known_only,
		  struct wire_fault *fault)
{
	struct cursor cursor = cursor_of(body);
	struct head head, key;
	uint64_t seen = 0;

	memset(out, 0, schema->size);
	if (!head_read(&cursor, &head) || head.kind != WIRE_KIND_MAP)
		return fault_set(fault, BYTES("body"), "a map");
	for (uint64_t n = head.number; n > 0; n--) {
		struct bytes name, value;
		const struct wire_field *field;
		size_t i;

		if (!head_read(&cursor, &key) || key.kind != WIRE_KIND_STR)
			return fault_set(fault, BYTES("body"), "a map with keys of str");
		name = take(&cursor, key.number);
		value = span_read(&cursor);
		i = field_find(schema, name);
		if (i == schema->n_fields && known_only)
			continue;
		if (i == schema->n_fields)
			return fault_set(fault, name, "not to be there: no such field");
		if (seen & 1ULL << i)
			return fault_set(fault, name, "to be there once");
		seen |= 1ULL << i;
		field = &schema->fields[i];
		if (!value_read((char *)out + field->offset, field->type, value))
			return fault_set(fault, name, expectations[field->type]);
	}
	return fields_missing(schema, seen, fault);
}

int wire_decode(void *out, const struct wire_schema *schema, struct bytes body, struct wire_fault *fault)
{
	return decode(out, schema, body, false, fault);
}

int wire_decode_known(void *out, const struct wire_schema *schema, struct bytes body, struct wire_fault *fault)
{
	return decode(out, schema, body, true, fault);
}

struct bytes wire_find(struct bytes body, struct bytes wanted)
{
	struct cursor cursor = cursor_of(body);
	struct head head, key;

	if (!head_read(&cursor, &head) || head.kind != WIRE_KIND_MAP)
		return (struct bytes){.data = NULL};
	for (uint64_t n = head.number; n > 0; n--) {
		struct bytes name, value;

		if (!head_read(&cursor, &key) || key.kind != WIRE_KIND_STR)
			break;
		name = take(&cursor, key.number);
		value = span_read(&cursor);
		if (bytes_equal(name, wanted))
			return value;
	}
	return (struct bytes){.data = NULL};
}

bool wire_find_id(uint64_t *idp, struct bytes body)
{
	struct bytes span = wire_find(body, BYTES("id"));

	return span.data && value_read(idp, WIRE_UINT, span);
}

static void put_str(msgpack_packer *packer, struct bytes string)
{
	msgpack_pack_str(packer, string.size);
	msgpack_pack_str_body(packer, string.data, string.size);
}

bool wire_field_present(const struct wire_field *field, const void *slot)
{
	if (field->need == WIRE_REQUIRED)
		return true;
	switch (field->type) {
	case WIRE_FLAG:
		return *(const bool *)slot;
	case WIRE_UINT:
	case WIRE_INT:
		return *(const uint64_t *)slot != 0;
	case WIRE_REAL:
		return *(const double *)slot != 0.0;
	case WIRE_STR:
	case WIRE_BIN:
	case WIRE_RAW:
		return ((const struct bytes *)slot)->data != NULL;
	}
	return false;
}

static void value_put(msgpack_packer *packer, enum wire_type type, const void *slot)
{
	const struct bytes *span = slot;

	switch (type) {
	case WIRE_FLAG:
		if (*(const bool *)slot)
			msgpack_pack_true(packer);
		else
			msgpack_pack_false(packer);
		break;
	case WIRE_UINT:
		msgpack_pack_uint64(packer, *(const uint64_t *)slot);
		break;
	case WIRE_INT:
		msgpack_pack_int64(packer, *(const int64_t *)slot);
		break;
	case WIRE_REAL:
		msgpack_pack_double(packer, *(const double *)slot);
		break;
	case WIRE_STR:
		put_str(packer, *span);
		break;
	case WIRE_BIN:
		msgpack_pack_bin(packer, span->size);
		msgpack_pack_bin_body(packer, span->data, span->size);
		break;
	case WIRE_RAW:
		if (span->size > 0)
			msgpack_sbuffer_write(packer->data, span->data, span->size);
		else
			msgpack_pack_nil(packer);
		break;
	}
}

/* An sbuffer that cannot grow keeps what it has, so its size would have to tell whether everything arrived. If
 * it grows ahead of time, only this can fail. */
static int buffer_reserve(msgpack_sbuffer *buffer, size_t size)
{
	size_t wanted = buffer->size + size, allocated = MAX(buffer->alloc, (size_t)MSGPACK_SBUFFER_INIT_SIZE);
	char *grown;

	if (wanted <= buffer->alloc)
		return 0;
	while (allocated < wanted)
		allocated *= 2;
	grown = realloc(buffer->data, allocated);
	if (!grown)
		return -ENOMEM;
	buffer->data = grown;
	buffer->alloc = allocated;
	return 0;
}

/* An upper bound: every head takes at most nine bytes. */
static size_t body_bound(const struct wire_schema *schema, const void *in)
{
	size_t bound = 16;

	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct wire_field *field = &schema->fields[i];

		bound += 9 + field->name.size + 9;
		if (field->type == WIRE_STR || field->type == WIRE_BIN || field->type == WIRE_RAW)
			bound += ((const struct bytes *)((const char *)in + field->offset))->size;
	}
	return bound;
}

int wire_encode_body(msgpack_sbuffer *buffer, const struct wire_schema *schema, const void *in)
{
	msgpack_packer packer;
	uint32_t n = 0;
	int r;

	r = buffer_reserve(buffer, body_bound(schema, in));
	if (r)
		return r;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	for (size_t i = 0; i < schema->n_fields; i++)
		n += wire_field_present(&schema->fields[i], (const char *)in + schema->fields[i].offset);
	msgpack_pack_map(&packer, n);
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct wire_field *field = &schema->fields[i];
		const void *slot = (const char *)in + field->offset;

		if (!wire_field_present(field, slot))
			continue;
		put_str(&packer, field->name);
		value_put(&packer, field->type, slot);
	}
	return 0;
}

static size_t head_bound(const struct wire_schema *schema)
{
	return 32 + strlen(schema->type);
}

size_t wire_bound(const struct wire_schema *schema, const void *in)
{
	return head_bound(schema) + body_bound(schema, in);
}

int wire_encode(msgpack_sbuffer *buffer, const struct wire_schema *schema, const void *in)
{
	msgpack_packer packer;
	int r;

	r = buffer_reserve(buffer, head_bound(schema));
	if (r)
		return r;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	msgpack_pack_array(&packer, 3);
	msgpack_pack_uint64(&packer, WIRE_VERSION);
	put_str(&packer, bytes_of(schema->type));
	return wire_encode_body(buffer, schema, in);
}

int wire_readdress(msgpack_sbuffer *buffer, struct bytes data, uint64_t id)
{
	struct bytes span = {.data = NULL};
	struct wire_frame frame;
	msgpack_packer packer;
	size_t before;
	int r;

	if (!wire_open_answer(&frame, data))
		span = wire_find(frame.body, BYTES("id"));
	if (!span.data)
		return -EINVAL;
	r = buffer_reserve(buffer, data.size + 9);
	if (r)
		return r;
	before = (size_t)(span.data - data.data);
	msgpack_sbuffer_write(buffer, data.data, before);
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	msgpack_pack_uint64(&packer, id);
	return msgpack_sbuffer_write(buffer, span.data + span.size, data.size - before - span.size);
}

size_t wire_count(struct bytes raw)
{
	struct cursor cursor = cursor_of(raw);
	struct head head;

	return raw.data && head_read(&cursor, &head) && head.kind == WIRE_KIND_ARRAY ? head.number : 0;
}

struct wire_value wire_value_of(struct bytes raw)
{
	struct cursor cursor = cursor_of(raw);
	struct wire_value value = {.kind = WIRE_KIND_NONE};
	struct head head;

	if (!head_read(&cursor, &head))
		return value;
	value.kind = head.kind;
	if (head.kind == WIRE_KIND_REAL)
		value.real = head.real;
	else
		value.number = head.number;
	value.inside =
		take(&cursor,
		     head.kind == WIRE_KIND_STR || head.kind == WIRE_KIND_BIN ? head.number : cursor_left(&cursor));
	return value;
}

struct bytes wire_take(struct bytes *rest)
{
	struct cursor cursor = cursor_of(*rest);
	struct bytes value = span_read(&cursor);

	*rest = (struct bytes){.data = (const char *)cursor.at, .size = cursor_left(&cursor)};
	return value;
}

/* The elements of @raw from *@cursorp on; absent if it is not of @kind, or at its end. */
static struct bytes elements_from(struct bytes raw, enum wire_kind kind, size_t *cursorp)
{
	struct wire_value value = wire_value_of(raw);

	if (value.kind != kind)
		return (struct bytes){.data = NULL};
	if (*cursorp == 0)
		*cursorp = (size_t)(value.inside.data - raw.data);
	return (struct bytes){.data = raw.data + *cursorp, .size = raw.size - MIN(*cursorp, raw.size)};
}

bool wire_next(struct bytes raw, size_t *cursorp, struct bytes *item)
{
	struct bytes rest = elements_from(raw, WIRE_KIND_ARRAY, cursorp);

	if (rest.size == 0)
		return false;
	*item = wire_take(&rest);
	*cursorp += item->size;
	return item->size > 0;
}

bool wire_next_string(struct bytes raw, size_t *cursorp, struct bytes *item)
{
	struct bytes rest = elements_from(raw, WIRE_KIND_ARRAY, cursorp);
	struct wire_value value = wire_value_of(rest);

	if (value.kind != WIRE_KIND_STR)
		return false;
	*item = value.inside;
	*cursorp = (size_t)(item->data + item->size - raw.data);
	return utf8_valid(*item);
}

bool wire_next_pair(struct bytes raw, size_t *cursorp, struct bytes *key, struct bytes *value)
{
	struct bytes rest = elements_from(raw, WIRE_KIND_MAP, cursorp);
	struct wire_value name = wire_value_of(rest);

	if (name.kind != WIRE_KIND_STR)
		return false;
	*key = name.inside;
	(void)wire_take(&rest);
	*value = wire_take(&rest);
	*cursorp = (size_t)(value->data + value->size - raw.data);
	return value->size > 0 && utf8_valid(*key);
}

bool wire_read_span(struct bytes value, struct bytes *span, bool *binary)
{
	struct wire_value read = wire_value_of(value);

	if (read.kind != WIRE_KIND_STR && read.kind != WIRE_KIND_BIN)
		return false;
	*span = read.inside;
	*binary = read.kind == WIRE_KIND_BIN;
	return *binary || utf8_valid(*span);
}

bool wire_next_uint(struct bytes raw, size_t *cursorp, uint64_t *number)
{
	size_t before = *cursorp;
	struct bytes item;

	if (!wire_next(raw, cursorp, &item))
		return false;
	if (value_read(number, WIRE_UINT, item))
		return true;
	*cursorp = before;
	return false;
}

int wire_put_array(msgpack_sbuffer *buffer, size_t n)
{
	msgpack_packer packer;

	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	return msgpack_pack_array(&packer, n) ? -ENOMEM : 0;
}

int wire_put_string(msgpack_sbuffer *buffer, struct bytes string)
{
	msgpack_packer packer;
	int r = buffer_reserve(buffer, string.size + 5);

	if (r)
		return r;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	put_str(&packer, string);
	return 0;
}

/* ---- arrays whose length is known at the end ---- */

#define LIST_HEAD 5 /* of the longest */

static bool list_open(struct wire_list *list)
{
	static const char room[LIST_HEAD];

	if (!list->r && list->buffer.size == 0 && msgpack_sbuffer_write(&list->buffer, room, sizeof(room)))
		list->r = -ENOMEM;
	return !list->r;
}

static int list_added(struct wire_list *list, int r)
{
	list->r = r;
	list->n += !r;
	return r;
}

int wire_list_add(struct wire_list *list, const struct wire_schema *schema, const void *record)
{
	return list_open(list) ? list_added(list, wire_encode_body(&list->buffer, schema, record)) : list->r;
}

int wire_list_add_string(struct wire_list *list, struct bytes string)
{
	return list_open(list) ? list_added(list, wire_put_string(&list->buffer, string)) : list->r;
}

int wire_list_add_uint(struct wire_list *list, uint64_t number)
{
	msgpack_packer packer;

	msgpack_packer_init(&packer, &list->buffer, msgpack_sbuffer_write);
	return list_open(list) ? list_added(list, msgpack_pack_uint64(&packer, number) ? -ENOMEM : 0) : list->r;
}

/* The head lies right before the elements, in the room for the longest. */
struct bytes wire_list_bytes(struct wire_list *list)
{
	size_t n = list->n, size = n < 16 ? 1 : n < 65536 ? 3 : LIST_HEAD;
	char *head;

	if (n == 0)
		return BYTES("\x90");
	head = list->buffer.data + LIST_HEAD - size;
	head[0] = (char)(size == 1 ? 0x90 | n : size == 3 ? 0xdc : 0xdd);
	for (size_t i = size - 1; i > 0; i--, n >>= 8)
		head[i] = (char)n;
	return (struct bytes){.data = head, .size = list->buffer.size - LIST_HEAD + size};
}

void wire_list_deinit(struct wire_list *list)
{
	msgpack_sbuffer_destroy(&list->buffer);
}

/* ---- text ---- */

/* How many bytes the sequence that begins with @first has, and the range its second byte must be in: that excludes
 * overlong forms, surrogates and what lies beyond U+10FFFF. */
static unsigned utf8_sequence(uint8_t first, uint8_t *low, uint8_t *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef) {
		if (first == 0xe0)
			*low = 0xa0;
		if (first == 0xed)
			*high = 0x9f;
		return 3;
	}
	if (first >= 0xf0 && first <= 0xf4) {
		if (first == 0xf0)
			*low = 0x90;
		if (first == 0xf4)
			*high = 0x8f;
		return 4;
	}
	return 0;
}

/* How many bytes at the beginning are ASCII, counted eight at a time. */
static size_t ascii_prefix(const uint8_t *at, size_t size)
{
	size_t n = 0;
	uint64_t word;

	for (; size - n >= sizeof(word); n += sizeof(word)) {
		memcpy(&word, at + n, sizeof(word));
		if (word & 0x8080808080808080ULL)
			break;
	}
	while (n < size && at[n] < 0x80)
		n++;
	return n;
}

bool utf8_valid(struct bytes text)
{
	const uint8_t *at = (const uint8_t *)text.data, *end = at ? at + text.size : at;
	uint8_t low, high;

	while (at < end) {
		unsigned n;

		at += ascii_prefix(at, (size_t)(end - at));
		if (at == end)
			return true;
		n = utf8_sequence(*at, &low, &high);
		if (n == 0 || (size_t)(end - at) < n)
			return false;
		if (n > 1 && (at[1] < low || at[1] > high))
			return false;
		for (unsigned i = 2; i < n; i++)
			if (at[i] < 0x80 || at[i] > 0xbf)
				return false;
		at += n;
	}
	return true;
}
