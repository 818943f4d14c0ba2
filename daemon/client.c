/* Answers to clients. ZeroMQ queues a bounded number of messages per client; what it refuses waits here, in order,
 * and is tried again every few milliseconds until it is out, the client is gone, or it has not read for too long.
 */
#include "client.h"

#include "log.h"
#include "parcel.h"
#include "promise.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <zmq.h>

#define RETRY_US 2000
#define PATIENCE_US (30 * 1000000ULL)
#define COPY_MAX 16384
/* What may wait for one client, and for all of one user. */
#define OUTBOX_MAX ((size_t)64 << 20)
#define USER_MAX (4 * OUTBOX_MAX)

struct waiting {
	struct list node;
	zmq_msg_t frame;
};

struct outbox {
	struct list node;
	struct address to;
	struct list frames;
	size_t size; /* of these */
	uint64_t stuck_since;
};

/* An answer of this round. */
struct held {
	struct list node;
	struct address to;
	zmq_msg_t frame;
};

void clients_init(struct clients *clients, struct event_loop *loop, void *socket,
		  void (*on_drained)(struct clients *clients))
{
	*clients = (struct clients){.loop = loop, .socket = socket, .on_drained = on_drained};
	list_init(&clients->outboxes);
	list_init(&clients->accounts);
	list_init(&clients->held);
}

static void waiting_free(struct waiting *waiting)
{
	list_remove(&waiting->node);
	zmq_msg_close(&waiting->frame);
	free(waiting);
}

static void outbox_free(struct outbox *outbox)
{
	struct waiting *waiting;

	list_for_each (waiting, &outbox->frames, node)
		waiting_free(waiting);
	list_remove(&outbox->node);
	free(outbox);
}

static void held_free(struct held *held)
{
	list_remove(&held->node);
	zmq_msg_close(&held->frame);
	free(held);
}

void clients_deinit(struct clients *clients)
{
	struct outbox *outbox;
	struct held *held;

	if (!clients->socket)
		return;
	timer_clear(clients->loop, &clients->retry);
	list_for_each (outbox, &clients->outboxes, node)
		outbox_free(outbox);
	list_for_each (held, &clients->held, node)
		held_free(held);
}

bool address_same_client(const struct address *a, const struct address *b)
{
	return a->identity_size == b->identity_size && memcmp(a->identity, b->identity, a->identity_size) == 0;
}

bool address_same_request(const struct address *a, const struct address *b)
{
	return a->id == b->id && address_same_client(a, b);
}

static struct outbox *outbox_find(const struct clients *clients, const struct address *to)
{
	struct outbox *outbox;

	list_for_each (outbox, &clients->outboxes, node)
		if (address_same_client(&outbox->to, to))
			return outbox;
	return NULL;
}

bool client_waits(const struct clients *clients, const struct address *to)
{
	return !list_empty(&clients->outboxes) && outbox_find(clients, to);
}

static int message_send(struct clients *clients, const struct address *to, zmq_msg_t *message)
{
	if (zmq_send(clients->socket, to->identity, to->identity_size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
		if (errno == EAGAIN)
			return CLIENT_E_WAITS;
		return errno == EHOSTUNREACH ? CLIENT_E_GONE : -errno;
	}
	return zmq_msg_send(message, clients->socket, ZMQ_DONTWAIT) < 0 ? -errno : 0;
}

/* Hand @frame to ZeroMQ; on success it is ZeroMQ's. Nothing may fail once it has been said for whom it is, or the
 * next one's would go there. */
static int frame_send(struct clients *clients, const struct address *to, zmq_msg_t *frame)
{
	size_t size = zmq_msg_size(frame);
	struct parcel *parcel;
	zmq_msg_t outer;
	int r;

	if (size <= COPY_MAX)
		return message_send(clients, to, frame);
	if (!parcel_fits(&clients->accounts, to, size))
		return CLIENT_E_WAITS;
	r = parcel_wrap(&parcel, &outer, &clients->accounts, to, frame);
	if (r)
		return r;
	r = message_send(clients, to, &outer);
	if (r)
		parcel_unwrap(parcel, &outer, frame);
	return r;
}

/* Returns false while something is still stuck. */
static bool outbox_flush(struct clients *clients, struct outbox *outbox, uint64_t now)
{
	struct waiting *waiting;

	list_for_each (waiting, &outbox->frames, node) {
		size_t size = zmq_msg_size(&waiting->frame);
		int r = frame_send(clients, &outbox->to, &waiting->frame);

		if (r == CLIENT_E_WAITS) {
			if (now - outbox->stuck_since < PATIENCE_US)
				return false;
			log_warn(NULL, "client of uid %u has not read for %d s: what waited for it is dropped",
				 outbox->to.uid, (int)(PATIENCE_US / 1000000));
			return true;
		}
		outbox->stuck_since = now;
		outbox->size -= MIN(outbox->size, size);
		waiting_free(waiting);
	}
	return true;
}

static void on_retry(struct timer *timer)
{
	struct clients *clients = container_of(timer, struct clients, retry);
	uint64_t now = event_now();
	struct outbox *outbox;
	bool drained = false;

	list_for_each (outbox, &clients->outboxes, node) {
		if (outbox_flush(clients, outbox, now)) {
			outbox_free(outbox);
			drained = true;
		}
	}
	if (!list_empty(&clients->outboxes))
		(void)timer_set(clients->loop, &clients->retry, now + RETRY_US, on_retry);
	if (drained)
		clients->on_drained(clients);
}

static struct outbox *outbox_new(struct clients *clients, const struct address *to)
{
	struct outbox *outbox = calloc(1, sizeof(*outbox));

	if (!outbox)
		return NULL;
	outbox->to = *to;
	outbox->stuck_since = event_now();
	list_init(&outbox->node);
	list_init(&outbox->frames);
	list_append(&clients->outboxes, &outbox->node);
	return outbox;
}

static size_t waiting_of(const struct clients *clients, uid_t uid)
{
	struct outbox *outbox;
	size_t size = 0;

	list_for_each (outbox, (struct list *)&clients->outboxes, node)
		size += outbox->to.uid == uid ? outbox->size : 0;
	return size;
}

/* Whoever has so much waiting does not read. The outbox stays, so that what streams to it pauses once more. */
static void outbox_drop(struct clients *clients, struct outbox *outbox)
{
	struct waiting *waiting;

	if (clients->n_dropped == 0)
		log_warn(NULL,
			 "client of uid %u does not read: what waited for it is dropped (further ones are only "
			 "counted, see stats)",
			 outbox->to.uid);
	list_for_each (waiting, &outbox->frames, node) {
		clients->n_dropped++;
		waiting_free(waiting);
	}
	outbox->size = 0;
}

static int frame_queue(struct clients *clients, const struct address *to, zmq_msg_t *frame)
{
	struct outbox *outbox = outbox_find(clients, to);
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	int r;

	if (waiting && !outbox)
		outbox = outbox_new(clients, to);
	if (!waiting || !outbox) {
		free(waiting);
		return -ENOMEM;
	}
	list_init(&waiting->node);
	zmq_msg_init(&waiting->frame);
	zmq_msg_move(&waiting->frame, frame);
	list_append(&outbox->frames, &waiting->node);
	outbox->size += zmq_msg_size(&waiting->frame);
	if (list_first(&outbox->frames) != &waiting->node &&
	    (outbox->size > OUTBOX_MAX || waiting_of(clients, to->uid) > USER_MAX))
		outbox_drop(clients, outbox);
	if (!clients->retry.index) {
		r = timer_set(clients->loop, &clients->retry, event_now() + RETRY_US, on_retry);
		if (r)
			return r;
	}
	return CLIENT_E_WAITS;
}

static void frame_release(void *data, void *hint)
{
	(void)hint;
	free(data);
}

/* Small frames are copied into the message itself; of large ones the buffer is handed over. */
static int frame_make(zmq_msg_t *frame, msgpack_sbuffer *buffer)
{
	size_t size = buffer->size;

	if (size <= COPY_MAX) {
		if (zmq_msg_init_size(frame, size) < 0)
			return -errno;
		memcpy(zmq_msg_data(frame), buffer->data, size);
		return 0;
	}
	return zmq_msg_init_data(frame, msgpack_sbuffer_release(buffer), size, frame_release, NULL) < 0 ? -errno
													: 0;
}

static int frame_pass(struct clients *clients, const struct address *to, zmq_msg_t *frame)
{
	int r = client_waits(clients, to) ? CLIENT_E_WAITS : frame_send(clients, to, frame);

	return r == CLIENT_E_WAITS ? frame_queue(clients, to, frame) : r;
}

static int frame_hold(struct clients *clients, const struct address *to, zmq_msg_t *frame)
{
	struct held *held = malloc(sizeof(*held));

	if (!held)
		return -ENOMEM;
	list_init(&held->node);
	held->to = *to;
	zmq_msg_init(&held->frame);
	zmq_msg_move(&held->frame, frame);
	list_append(&clients->held, &held->node);
	clients->held_size += zmq_msg_size(&held->frame);
	return 0;
}

void clients_settle(struct clients *clients)
{
	struct held *held;

	list_for_each (held, &clients->held, node) {
		int r = frame_pass(clients, &held->to, &held->frame);

		if (r < 0)
			log_error(NULL, "cannot answer request %" PRIu64 ": %s", held->to.id, strerror(-r));
		held_free(held);
	}
	clients->held_size = 0;
}

static bool is_event(const struct wire_schema *schema)
{
	return schema == &stdout_event_schema || schema == &stderr_event_schema || schema == &ask_event_schema ||
	       schema == &display_event_schema || schema == &alive_event_schema;
}

/* Takes what @buffer holds. */
static int buffer_send(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer, bool hold)
{
	zmq_msg_t frame;
	int r;

	/* Somebody that a former router knew. */
	if (to->identity_size == 0)
		return CLIENT_E_GONE;
	r = frame_make(&frame, buffer);
	if (r)
		return r;
	r = hold ? frame_hold(clients, to, &frame) : frame_pass(clients, to, &frame);
	zmq_msg_close(&frame);
	return r;
}

int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, message);
	if (!r && to->promise)
		promise_answer(to->promise, schema, &buffer);
	else if (!r)
		r = buffer_send(clients, to, &buffer, !is_event(schema));
	msgpack_sbuffer_destroy(&buffer);
	if (r < 0)
		log_error(NULL, "cannot send a %s for request %" PRIu64 ": %s", schema->type, to->id, strerror(-r));
	return r;
}

int client_post(struct clients *clients, const struct address *to, struct bytes data)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = data.size == 0 || msgpack_sbuffer_write(&buffer, data.data, data.size)
		    ? -ENOMEM
		    : buffer_send(clients, to, &buffer, true);
	msgpack_sbuffer_destroy(&buffer);
	return r;
}

int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
{
	struct error_reply reply = {.id = to->id, .code = bytes_of(code)};
	char sentence[512];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	reply.message = bytes_of(sentence);
	clients->n_errors++;
	return client_send(clients, to, &error_reply_schema, &reply);
}
