/* When a connection ends, the daemon usually lives: its router has died, and a new one continues. So the
 * connection is made again, the daemon greeted, and every unanswered request sent once more. A request that
 * changes something has a key, so it is done once; the output of a watched cell continues where it was. Nothing
 * here blocks.
 *
 * If nobody listens any more, or it is another daemon, which does not know the requests, then every call ends
 * with LAIR_E_LOST. Pieces of files end so at once: the router that had the other pieces is gone. */
#include "handle.h"

#include <math.h>
#include <stdio.h>

#define PAUSE_FIRST 0.01
#define PAUSE_MAX 1.0

static void give_up(struct lair *lair, const char *why)
{
	char sentence[PATH_SIZE + 64];

	lair->lost = true;
	resume_stop(lair);
	snprintf(sentence, sizeof(sentence), "the daemon on %s %s", lair->shown, why);
	/* Calls that a callback starts meanwhile are refused, so this loop ends. */
	while (lair->first)
		call_end(lair->first, LAIR_E_LOST, bytes_of(sentence));
}

void resume_stop(struct lair *lair)
{
	struct lair_call *greeting = steal_ptr(&lair->greeting);

	lair->resuming = false;
	lair_call_free(greeting);
}

/* ---- sending again ---- */

/* Changes the request so that its output continues at @from. */
static int request_move(struct lair_call *call, struct lair_point from)
{
	union {
		struct exec_request exec;
		struct attach_request attach;
	} request;
	msgpack_sbuffer buffer;
	struct wire_fault fault;
	struct wire_frame frame;
	int r;

	if (wire_open(&frame, wire_bytes(&call->request)) || wire_decode(&request, call->asked, frame.body, &fault))
		return -EINVAL;
	if (call->asked == &attach_request_schema) {
		request.attach.stdout = from.out;
		request.attach.stderr = from.err;
		request.attach.displays = from.displays;
	} else {
		request.exec.stdout = from.out;
		request.exec.stderr = from.err;
		request.exec.displays = from.displays;
	}
	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, call->asked, &request);
	msgpack_sbuffer_destroy(&call->request);
	call->request = buffer;
	return r;
}

int lair_repeat(struct lair_call *attach, struct lair_point from)
{
	int r;

	if (attach->outcome != -EINPROGRESS || attach->asked != &attach_request_schema)
		return -EINVAL;
	r = request_move(attach, from);
	if (r)
		return lair_fail(attach->lair, r, "%s", strerror(-r));
	attach->seen[LAIR_STDOUT] = from.out;
	attach->seen[LAIR_STDERR] = from.err;
	attach->displays = from.displays;
	return handle_send(attach->lair, attach);
}

static void call_end_unsent(struct lair_call *call, const char *why)
{
	char sentence[sizeof(call->lair->error) + 96];

	snprintf(sentence, sizeof(sentence), "the connection ended, and the request could not be sent again: %s",
		 why);
	call_end(call, LAIR_E_LOST, bytes_of(sentence));
}

static void send_again(struct lair *lair)
{
	struct lair_call *call, *next;

	for (call = lair->first; call; call = next) {
		int r = 0;

		next = call->next;
		if (call->seen[0] || call->seen[1] || call->displays)
			r = request_move(call, lair_point(call));
		if (r)
			(void)lair_fail(lair, r, "%s", strerror(-r));
		else
			r = handle_send(lair, call);
		if (r)
			call_end_unsent(call, lair->error);
	}
}

static void on_greeted(struct lair_call *call, void *userdata)
{
	struct lair *lair = userdata;
	const struct lair_daemon *daemon = lair_daemon(call);
	bool same = daemon && daemon->instance.data && bytes_is(bytes_from(daemon->instance), lair->instance);
	int outcome = lair_outcome(call);

	lair->greeting = NULL;
	if (same) {
		handle_greeted(lair, daemon);
		lair->resuming = false;
		lair->attempts = 0;
		transport_wake_after(lair, 0);
		send_again(lair);
	} else if (lair->resuming) {
		give_up(lair, outcome ? "does not answer any more" : "is another one, which knows of no request");
	}
	lair_call_free(call);
}

/* ---- a new connection ---- */

static unsigned calls_count(const struct lair *lair)
{
	unsigned n = 0;

	for (const struct lair_call *call = lair->first; call; call = call->next)
		n++;
	return n;
}

static double pause_of(unsigned attempts)
{
	return fmin(PAUSE_FIRST * (double)(1U << MIN(attempts, 10U)), PAUSE_MAX);
}

static void attempt(struct lair *lair)
{
	double left = lair->resuming_since + lair->timeout - clock_seconds();

	if (left <= 0 || socket_probe(lair)) {
		give_up(lair, "is gone");
	} else if (transport_connect(lair, calls_count(lair)) || lair_hello(lair, &lair->greeting)) {
		transport_disconnect(lair);
		transport_wake_after(lair, pause_of(lair->attempts));
	} else {
		lair_on_done(lair->greeting, on_greeted, lair);
		transport_wake_after(lair, left);
	}
	lair->attempts++;
}

void resume_on_timer(struct lair *lair)
{
	if (lair->resuming && !lair->dealer)
		attempt(lair);
	else if (lair->resuming)
		give_up(lair, "does not answer any more");
}

/* Calls that a callback starts meanwhile do not end: they have not been sent. */
static void end_pieces(struct lair *lair)
{
	uint64_t last = lair->last_id;
	struct lair_call *call = lair->first;

	while (call && call->id <= last) {
		if (call->reply == &transfer_reply_schema) {
			call_end(call, LAIR_E_LOST, BYTES("the connection ended in the middle of a file"));
			call = lair->first;
		} else {
			call = call->next;
		}
	}
}

void resume_begin(struct lair *lair)
{
	if (!lair->instance[0]) {
		/* The daemon has not been greeted. */
		give_up(lair, "is gone");
		return;
	}
	if (!lair->resuming) {
		lair->resuming_since = clock_seconds();
		lair->attempts = 0;
	}
	resume_stop(lair);
	lair->resuming = true;
	transport_disconnect(lair);
	end_pieces(lair);
	if (lair->attempts == 0)
		attempt(lair);
	else
		transport_wake_after(lair, pause_of(lair->attempts));
}
