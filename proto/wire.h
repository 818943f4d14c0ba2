/* The codec: msgpack frames in and out of C structs, driven by tables.
 *
 * A frame is one msgpack array [version, type, body]; body is a map with string keys. Decoding never allocates
 * and never trusts a length: a bounded scanner walks the whole frame once before any value is read. Every str,
 * bin and raw field of the decoded struct points into the frame, which must outlive it. */
#pragma once

#include "proto/base.h"

#include <msgpack.h>

#define WIRE_VERSION 1
#define WIRE_DEPTH_MAX 16
#define WIRE_OBJECTS_MAX 65536 /* except in an answer to a client */
#define WIRE_FIELDS_MAX 64

enum {
	_WIRE_E_SUCCESS,
	WIRE_E_MALFORMED, /* not one complete [version, type, body] of bounded depth and size */
	WIRE_E_VERSION,	  /* a version other than WIRE_VERSION */
	WIRE_E_FIELD,	  /* unknown, duplicate, missing or ill-typed field; the name is reported */
};

enum wire_type {
	WIRE_FLAG, /* bool */
	WIRE_UINT, /* uint64_t */
	WIRE_INT,  /* int64_t */
	WIRE_REAL, /* double; integers are accepted; never NaN or infinite */
	WIRE_STR,  /* struct bytes, valid UTF-8 */
	WIRE_BIN,  /* struct bytes, anything; str is accepted */
	WIRE_RAW,  /* struct bytes, one encoded msgpack value, passed through as it is */
};

/* An absent optional field decodes to zero (NULL data), and a zero optional field is not encoded. */
enum wire_need { WIRE_OPTIONAL, WIRE_REQUIRED };

struct wire_field {
	struct bytes name; /* a literal */
	enum wire_type type;
	enum wire_need need;
	size_t offset;
};

struct wire_schema {
	const char *type; /* the type the message travels under */
	size_t size;	  /* of the struct */
	size_t n_fields;
	const struct wire_field *fields;
};

struct wire_frame {
	uint64_t version;
	struct bytes type;
	struct bytes body; /* the encoded map */
};

/* Why a decode failed: the field and what was expected of it, for the sentence an error carries. */
struct wire_fault {
	char field[64];
	const char *expected;
};

/* Scan @data as one frame. On success @frame points into @data. Returns 0, WIRE_E_MALFORMED, WIRE_E_VERSION
 * (then frame->version is set). */
int wire_open(struct wire_frame *frame, struct bytes data);

/* The same for answers of laird, which clients trust. They have as many records as there are sessions or
 * results. */
int wire_open_answer(struct wire_frame *frame, struct bytes data);

/* Decode @body, which one of these has scanned, into the struct that @schema describes. Zeroes it first. Returns
 * 0 or WIRE_E_FIELD with @fault filled in. */
int wire_decode(void *out, const struct wire_schema *schema, struct bytes body, struct wire_fault *fault);

/* The same, but unknown fields are ignored: for clients, whose daemon may be of a later build, and for routers,
 * which read records of another build. */
int wire_decode_known(void *out, const struct wire_schema *schema, struct bytes body, struct wire_fault *fault);

/* The encoded value under a key of @body, which may be ill-formed otherwise; absent if there is none. */
struct bytes wire_find(struct bytes body, struct bytes wanted);
/* The number under the key "id", also of a body that is ill-formed otherwise. Returns whether there is one. */
bool wire_find_id(uint64_t *idp, struct bytes body);

/* Append a whole frame to @buffer. Returns 0 or -ENOMEM. */
int wire_encode(msgpack_sbuffer *buffer, const struct wire_schema *schema, const void *in);

/* How much room a whole frame needs at most: with so much left, @buffer does not grow. */
size_t wire_bound(const struct wire_schema *schema, const void *in);

/* Append only the body map, to build nested values for a WIRE_RAW field. Returns 0 or -ENOMEM. */
int wire_encode_body(msgpack_sbuffer *buffer, const struct wire_schema *schema, const void *in);

/* Append a copy of @data, a whole frame, with @id in the place of its own. Returns 0, -EINVAL if it has none, or
 * -ENOMEM.
 */
int wire_readdress(msgpack_sbuffer *buffer, struct bytes data, uint64_t id);

enum wire_kind {
	WIRE_KIND_NONE,
	WIRE_KIND_NIL,
	WIRE_KIND_FLAG,
	WIRE_KIND_UINT,
	WIRE_KIND_INT,
	WIRE_KIND_REAL,
	WIRE_KIND_STR,
	WIRE_KIND_BIN,
	WIRE_KIND_ARRAY,
	WIRE_KIND_MAP
};

struct wire_value {
	enum wire_kind kind;
	uint64_t number; /* of a flag, uint or int (as two's complement); count of an array or map */
	double real;
	struct bytes inside; /* a str or bin; all after the head of an array or map */
};

/* The value at the start of @raw, already scanned; WIRE_KIND_NONE if there is none. */
struct wire_value wire_value_of(struct bytes raw);
/* Cut the first value off *@rest, already scanned. Its size is 0 if there is none. */
struct bytes wire_take(struct bytes *rest);

/* Walk an already scanned array of strings. Start with *@cursor == 0. Returns true and sets @item while there is
 * one; false at the end, or when @raw is absent or anything but an array of str. */
bool wire_next_string(struct bytes raw, size_t *cursor, struct bytes *item);

/* The same for an array of anything: @item is one encoded value, such as the map wire_encode_body wrote. */
bool wire_next(struct bytes raw, size_t *cursor, struct bytes *item);

/* How many elements an already scanned array has; 0 for anything else. */
size_t wire_count(struct bytes raw);

/* The same for a map with str keys: @value is one encoded value. */
bool wire_next_pair(struct bytes raw, size_t *cursor, struct bytes *key, struct bytes *value);

/* The content of a str or bin. False if @value is neither, or a str that is not valid UTF-8. */
bool wire_read_span(struct bytes value, struct bytes *span, bool *binary);
/* The same for an array of uint. */
bool wire_next_uint(struct bytes raw, size_t *cursor, uint64_t *number);

/* Whether the field at @slot is sent: it is not if it is absent, or optional and zero. */
bool wire_field_present(const struct wire_field *field, const void *slot);

/* Room for the struct of any message. */
struct wire_any {
	_Alignas(max_align_t) char data[1024];
};

/* Append an array header, or one str. Returns 0 or -ENOMEM. */
int wire_put_array(msgpack_sbuffer *buffer, size_t n);
int wire_put_string(msgpack_sbuffer *buffer, struct bytes string);

/* An array that is added to one by one; {0} is empty. After an error nothing more is added. */
struct wire_list {
	msgpack_sbuffer buffer;
	size_t n;
	int r; /* 0 or -ENOMEM */
};

/* Each returns the list's `r`. */
int wire_list_add(struct wire_list *list, const struct wire_schema *schema, const void *record);
int wire_list_add_string(struct wire_list *list, struct bytes string);
int wire_list_add_uint(struct wire_list *list, uint64_t number);
/* The array so far, borrowed until the next call. */
struct bytes wire_list_bytes(struct wire_list *list);
void wire_list_deinit(struct wire_list *list);

/* The length of the one value at the start of @data if it is complete and within the bounds, else 0. */
size_t wire_scan(struct bytes data, unsigned depth_max, size_t objects_max);

bool utf8_valid(struct bytes text);

static inline struct bytes wire_bytes(const msgpack_sbuffer *buffer)
{
	return (struct bytes){.data = buffer->data, .size = buffer->size};
}

/* Messages are declared once, as a list of fields, from which both the struct and its table are made, so the two
 * cannot disagree:
 *
 *	#define PING_FIELDS(F, m) \
 *		F(m, STR, text, REQUIRED) \
 *		F(m, UINT, n, OPTIONAL)
 *	WIRE_MESSAGE(ping, "ping", ID, PING_FIELDS);
 *
 * in a header: struct ping and ping_schema, whose table is in the one .c file that has WIRE_TABLES. With ID, the
 * field id comes first. With MAYBE_ID, it may be absent. With NO_ID, there is none. */
#define WIRE_CTYPE_FLAG bool
#define WIRE_CTYPE_UINT uint64_t
#define WIRE_CTYPE_INT int64_t
#define WIRE_CTYPE_REAL double
#define WIRE_CTYPE_STR struct bytes
#define WIRE_CTYPE_BIN struct bytes
#define WIRE_CTYPE_RAW struct bytes

#define WIRE_MEMBER_(m, kind, name_, need_) WIRE_CTYPE_##kind name_;
#define WIRE_ENTRY_(m, kind, name_, need_)                                                                         \
	{.name = {#name_, sizeof(#name_) - 1},                                                                     \
	 .type = WIRE_##kind,                                                                                      \
	 .need = WIRE_##need_,                                                                                     \
	 .offset = offsetof(struct m, name_)},

#define WIRE_NOTHING(F, m)
#define WIRE_FIRST_NO_ID(F, m)
#define WIRE_FIRST_ID(F, m) F(m, UINT, id, REQUIRED)
#define WIRE_FIRST_MAYBE_ID(F, m) F(m, UINT, id, OPTIONAL)

#define WIRE_DECLARE(message, first, FIELDS)                                                                       \
	struct message {                                                                                           \
		WIRE_FIRST_##first(WIRE_MEMBER_, message) FIELDS(WIRE_MEMBER_, message)                            \
	};                                                                                                         \
	extern const struct wire_schema message##_schema

#define WIRE_DEFINE(message, type_, first, FIELDS)                                                                 \
	static const struct wire_field message##_fields[] = {WIRE_FIRST_##first(WIRE_ENTRY_, message)              \
								     FIELDS(WIRE_ENTRY_, message)};                \
	_Static_assert(ARRAY_SIZE(message##_fields) <= WIRE_FIELDS_MAX, "too many fields");                        \
	_Static_assert(sizeof(struct message) <= sizeof(struct wire_any), "too large");                            \
	const struct wire_schema message##_schema = {                                                              \
		.type = (type_),                                                                                   \
		.size = sizeof(struct message),                                                                    \
		.n_fields = ARRAY_SIZE(message##_fields),                                                          \
		.fields = message##_fields,                                                                        \
	}

#ifdef WIRE_TABLES
#define WIRE_MESSAGE(message, type, first, FIELDS)                                                                 \
	WIRE_DECLARE(message, first, FIELDS);                                                                      \
	WIRE_DEFINE(message, type, first, FIELDS)
#else
#define WIRE_MESSAGE(message, type, first, FIELDS) WIRE_DECLARE(message, first, FIELDS)
#endif
