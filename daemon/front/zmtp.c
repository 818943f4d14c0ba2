/* The bytes of ZMTP 3. Everything is checked before it is believed, lengths first. Nothing here allocates. It
 * waits for at most ZMTP_COMMAND_MAX bytes of a command or @message_max of a message. A message of several parts
 * costs no memory: its parts are skipped as they come. */
#include "zmtp.h"

#define MORE_FLAG 1
#define LONG_FLAG 2
#define COMMAND_FLAG 4
#define PING_CONTEXT_MAX 16

/* A frame's header. */
struct frame {
	uint8_t flags;
	size_t header;
	uint64_t size;
};

/* What zmtp_next found so far. */
struct look {
	struct bytes left;
	size_t used;
	uint64_t wanted;
	const char *why;
};

static void look_past(struct look *look, size_t n)
{
	look->left.data += n;
	look->left.size -= n;
	look->used += n;
}

static int broken(struct look *look, const char *why)
{
	look->why = why;
	return ZMTP_E_BROKEN;
}

static int wants(struct look *look, uint64_t size)
{
	look->wanted = size;
	return ZMTP_E_MORE;
}

static uint8_t byte_at(struct bytes data, size_t i)
{
	return (uint8_t)data.data[i];
}

static uint64_t number_at(struct bytes data, size_t i, size_t size)
{
	uint64_t number = 0;

	for (size_t k = 0; k < size; k++)
		number = number << 8 | byte_at(data, i + k);
	return number;
}

static struct bytes part_of(struct bytes data, size_t at, size_t size)
{
	return (struct bytes){.data = data.data + at, .size = size};
}

/* ---- the greeting ---- */

static int greeting_look(struct zmtp *zmtp, struct look *look, struct zmtp_item *item)
{
	static const char mechanism[20] = "NULL";
	struct bytes data = look->left;

	/* A peer of another kind gets an answer at its first bytes, because it may never send a whole greeting. */
	if ((data.size > 0 && byte_at(data, 0) != 0xff) || (data.size > 9 && !(byte_at(data, 9) & 1)))
		return broken(look, "it does not speak ZeroMQ's protocol");
	if (data.size > 10 && byte_at(data, 10) < 3)
		return broken(look, "it speaks a version of ZeroMQ's protocol before 3");
	if (data.size < ZMTP_GREETING_SIZE)
		return wants(look, ZMTP_GREETING_SIZE);
	if (memcmp(data.data + 12, mechanism, sizeof(mechanism)) != 0)
		return broken(look, "it wants a security mechanism other than NULL");
	look_past(look, ZMTP_GREETING_SIZE);
	zmtp->phase = ZMTP_HANDSHAKE;
	item->kind = ZMTP_GREETED;
	return 0;
}

/* ---- frames ---- */

static int frame_look(struct look *look, struct frame *frame)
{
	struct bytes data = look->left;

	if (data.size < 2)
		return wants(look, 2);
	frame->flags = byte_at(data, 0);
	if (frame->flags & ~(MORE_FLAG | LONG_FLAG | COMMAND_FLAG))
		return broken(look, "a frame has unknown flags");
	if ((frame->flags & COMMAND_FLAG) && (frame->flags & MORE_FLAG))
		return broken(look, "a command has several parts");
	frame->header = frame->flags & LONG_FLAG ? 9 : 2;
	if (data.size < frame->header)
		return wants(look, frame->header);
	frame->size = frame->flags & LONG_FLAG ? number_at(data, 1, 8) : byte_at(data, 1);
	return 0;
}

/* The body of a frame, once it is here as a whole. */
static int body_look(struct look *look, const struct frame *frame, struct bytes *body)
{
	if (look->left.size - frame->header < frame->size)
		return wants(look, frame->header + frame->size);
	*body = part_of(look->left, frame->header, (size_t)frame->size);
	look_past(look, frame->header + (size_t)frame->size);
	return 0;
}

/* ---- commands ---- */

/* A command's name goes from @body. */
static bool name_take(struct bytes *body, struct bytes *name)
{
	size_t size = body->size > 0 ? byte_at(*body, 0) : 0;

	if (size == 0 || body->size - 1 < size)
		return false;
	*name = part_of(*body, 1, size);
	*body = part_of(*body, 1 + size, body->size - 1 - size);
	return true;
}

static bool property_take(struct bytes *body, struct bytes *name, struct bytes *value)
{
	uint64_t size;

	if (!name_take(body, name) || body->size < 4)
		return false;
	size = number_at(*body, 0, 4);
	if (size > body->size - 4)
		return false;
	*value = part_of(*body, 4, (size_t)size);
	*body = part_of(*body, 4 + (size_t)size, body->size - 4 - (size_t)size);
	return true;
}

/* Only some sockets work with a ROUTER. The peer's Identity is read and ignored: no client chooses its address. */
static int ready_look(struct zmtp *zmtp, struct look *look, struct bytes body, struct zmtp_item *item)
{
	struct bytes name, value, type = {.data = NULL};

	while (body.size > 0) {
		if (!property_take(&body, &name, &value))
			return broken(look, "its READY is malformed");
		if (bytes_is(name, "Socket-Type"))
			type = value;
	}
	if (!bytes_is(type, "DEALER") && !bytes_is(type, "REQ"))
		return broken(look, "its socket is neither DEALER nor REQ");
	zmtp->delimited = bytes_is(type, "REQ");
	zmtp->phase = ZMTP_OPEN;
	item->kind = ZMTP_READY;
	return 0;
}

static int ping_look(struct look *look, struct bytes body, struct zmtp_item *item)
{
	if (body.size < 2 || body.size > 2 + PING_CONTEXT_MAX)
		return broken(look, "its PING is malformed");
	item->kind = ZMTP_PING;
	item->ttl = (uint16_t)number_at(body, 0, 2);
	item->data = part_of(body, 2, body.size - 2);
	return 0;
}

/* Returns ZMTP_E_MORE with nothing wanted if the command needs no answer. */
static int command_look(struct zmtp *zmtp, struct look *look, const struct frame *frame, struct zmtp_item *item)
{
	struct bytes body, name;
	int r;

	if (frame->size > ZMTP_COMMAND_MAX)
		return broken(look, "a command is too large");
	r = body_look(look, frame, &body);
	if (r)
		return r;
	if (!name_take(&body, &name))
		return broken(look, "a command has no name");
	if (bytes_is(name, "ERROR"))
		return broken(look, "it sent ERROR");
	if (zmtp->phase == ZMTP_HANDSHAKE)
		return bytes_is(name, "READY") ? ready_look(zmtp, look, body, item)
					       : broken(look, "it did not send READY");
	if (bytes_is(name, "READY"))
		return broken(look, "it sent READY twice");
	return bytes_is(name, "PING") ? ping_look(look, body, item) : wants(look, 0);
}

/* ---- messages ---- */

/* Returns 0 when the last part has been skipped. */
static int parts_skip(struct zmtp *zmtp, struct look *look, struct zmtp_item *item)
{
	size_t n = (size_t)MIN(zmtp->skip, look->left.size);

	look_past(look, n);
	zmtp->skip -= n;
	if (zmtp->skip > 0 || zmtp->more)
		return zmtp->skip > 0 ? wants(look, 1) : wants(look, 0);
	zmtp->skipping = false;
	item->kind = ZMTP_PARTS;
	return 0;
}

/* Skip this part and all that follow. */
static int parts_begin(struct zmtp *zmtp, struct look *look, const struct frame *frame, struct zmtp_item *item)
{
	look_past(look, frame->header);
	zmtp->delimiter = false;
	zmtp->skipping = true;
	zmtp->skip = frame->size;
	zmtp->more = frame->flags & MORE_FLAG;
	return parts_skip(zmtp, look, item);
}

static int message_look(struct zmtp *zmtp, struct look *look, const struct frame *frame, struct zmtp_item *item)
{
	bool more = frame->flags & MORE_FLAG;
	int r;

	if (zmtp->phase != ZMTP_OPEN)
		return broken(look, "it sent a message before READY");
	if (frame->size > zmtp->message_max)
		return broken(look, "its message is larger than frame_size allows");
	if (!zmtp->skipping && zmtp->delimited && !zmtp->delimiter && more && frame->size == 0) {
		look_past(look, frame->header);
		zmtp->delimiter = true;
		return wants(look, 0);
	}
	if (zmtp->skipping || more || zmtp->delimited != zmtp->delimiter)
		return parts_begin(zmtp, look, frame, item);
	r = body_look(look, frame, &item->data);
	if (r)
		return r;
	zmtp->delimiter = false;
	item->kind = ZMTP_MESSAGE;
	return 0;
}

/* ---- all of it ---- */

/* Returns ZMTP_E_MORE with nothing wanted if something was read that is no item. */
static int look_once(struct zmtp *zmtp, struct look *look, struct zmtp_item *item)
{
	struct frame frame;
	int r;

	if (zmtp->phase == ZMTP_GREETING)
		return greeting_look(zmtp, look, item);
	if (zmtp->skip > 0)
		return parts_skip(zmtp, look, item);
	r = frame_look(look, &frame);
	if (r)
		return r;
	if (frame.flags & COMMAND_FLAG)
		return command_look(zmtp, look, &frame, item);
	return message_look(zmtp, look, &frame, item);
}

int zmtp_next(struct zmtp *zmtp, struct bytes input, struct zmtp_item *item, size_t *usedp, uint64_t *wantedp,
	      const char **whyp)
{
	struct look look = {.left = input};
	int r;

	*item = (struct zmtp_item){.ttl = 0};
	do {
		look.wanted = 0;
		r = look_once(zmtp, &look, item);
	} while (r == ZMTP_E_MORE && look.wanted == 0);
	*usedp = look.used;
	*wantedp = look.wanted;
	*whyp = look.why;
	return r;
}

/* ---- what is said ---- */

static size_t put(char *to, size_t at, const char *data, size_t size)
{
	memcpy(to + at, data, size);
	return at + size;
}

size_t zmtp_put_greeting(char to[static ZMTP_GREETING_SIZE])
{
	static const char greeting[ZMTP_GREETING_SIZE] = {'\xff', 0,	0, 0, 0,   0,	0,   0,
							  1,	  0x7f, 3, 1, 'N', 'U', 'L', 'L'};

	return put(to, 0, greeting, sizeof(greeting));
}

size_t zmtp_put_ready(char to[static ZMTP_ANSWER_MAX])
{
	static const char ready[] = "\4\51"
				    "\5READY"
				    "\13Socket-Type\0\0\0\6ROUTER"
				    "\10Identity\0\0\0\0";

	_Static_assert(sizeof(ready) - 1 == 2 + 6 + 12 + 10 + 9 + 4, "one byte tells its size");
	return put(to, 0, ready, sizeof(ready) - 1);
}

size_t zmtp_put_error(char to[static ZMTP_ANSWER_MAX], const char *why)
{
	size_t size = MIN(strlen(why), (size_t)ZMTP_ANSWER_MAX - 9), at = 0;

	at = put(to, at, (const char[]){COMMAND_FLAG, (char)(7 + size)}, 2);
	at = put(to, at, "\5ERROR", 6);
	at = put(to, at, (const char[]){(char)size}, 1);
	return put(to, at, why, size);
}

size_t zmtp_put_pong(char to[static ZMTP_ANSWER_MAX], struct bytes context)
{
	size_t at = put(to, 0, (const char[]){COMMAND_FLAG, (char)(5 + context.size)}, 2);

	at = put(to, at, "\4PONG", 5);
	return context.size > 0 ? put(to, at, context.data, context.size) : at;
}

size_t zmtp_put_header(const struct zmtp *zmtp, char to[static ZMTP_HEADER_MAX], uint64_t size)
{
	size_t at = zmtp->delimited ? put(to, 0, (const char[]){MORE_FLAG, 0}, 2) : 0;

	if (size <= UINT8_MAX)
		return put(to, at, (const char[]){0, (char)size}, 2);
	to[at++] = LONG_FLAG;
	for (int shift = 56; shift >= 0; shift -= 8)
		to[at++] = (char)(size >> shift);
	return at;
}
