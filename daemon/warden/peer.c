/* Links to wardens and interpreters. Receiving uses MSG_PEEK and has no room for descriptors, so a hostile peer
 * can pass none. A letter is read by pread from a file that the router has made. */
#include "peer.h"

#include "proto/outbuffer.h"

#include <fcntl.h>
#include <sys/socket.h>

/* Those a peer sent twice, which are passed over in one look: a flood of them waits for the next round. */
#define REPEATS_MAX 64
#define RETRY_US 10000
/* At a letter that there was no memory for. */
#define LETTER_RETRY_US 50000

static char buffer[CHANNEL_SIZE_MAX];

void peer_init(struct peer *peer, struct event_loop *loop, struct list *due, int fd, int letters)
{
	*peer = (struct peer){.loop = loop, .due = due, .fd = fd, .letters = letters, .source = EVENT_SOURCE_NONE};
	list_init(&peer->node);
	list_init(&peer->messages);
}

static void message_free(struct peer_message *message)
{
	list_remove(&message->node);
	for (size_t i = 0; i < message->n_fds; i++)
		fd_close(message->fds[i]);
	msgpack_sbuffer_destroy(&message->datagram);
	free(message);
}

static void letter_drop(struct peer *peer)
{
	free(peer->letter);
	peer->letter = NULL;
}

void peer_deinit(struct peer *peer)
{
	struct peer_message *message;

	list_remove(&peer->node);
	list_for_each (message, &peer->messages, node)
		message_free(message);
	event_remove(peer->loop, &peer->source);
	timer_clear(peer->loop, &peer->rest);
	timer_clear(peer->loop, &peer->retry);
	fd_closep(&peer->fd);
	letter_drop(peer);
}

int peer_listen(struct peer *peer, void (*fn)(struct event_source *source, uint32_t events))
{
	return event_add(peer->loop, &peer->source, peer->fd, EPOLLIN, fn);
}

void peer_ignore(struct peer *peer)
{
	event_remove(peer->loop, &peer->source);
}

void peer_settle_later(struct peer *peer)
{
	list_move(peer->due, &peer->node);
}

/* A peer that ended without having read everything is reported once, before what it had sent. */
static ssize_t receive(const struct peer *peer, char *data, size_t size, int flags)
{
	ssize_t n;

	do
		n = recv(peer->fd, data, size, flags | MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n;
}

static void take_out(const struct peer *peer)
{
	(void)receive(peer, NULL, 0, 0);
}

static int letter_read(struct peer *peer, const struct link_header *header, struct bytes *frame)
{
	uint64_t wait;
	int r;

	letter_drop(peer);
	if (peer->letters < 0 || header->size > LETTER_MAX || header->offset > LETTER_MAX)
		return PEER_E_BAD;
	wait = peer->hurried ? 0 : party_waits(peer->source.party, peer->loop);
	if (wait > 0) {
		peer_rest(peer, wait);
		return PEER_E_EMPTY;
	}
	peer->letter_at = LETTERS_OFFSET + (uint64_t)header->offset;
	peer->letter_size = header->size;
	r = link_read_letter(&peer->letter, peer->letters,
			     &(struct link_header){.size = header->size, .offset = (uint32_t)peer->letter_at});
	*frame = (struct bytes){.data = peer->letter, .size = header->size};
	if (r == -ENOMEM) {
		/* Ours is the want: it is looked at again. */
		peer_rest(peer, LETTER_RETRY_US);
		return PEER_E_EMPTY;
	}
	return r ? PEER_E_BAD : 0;
}

int peer_hear(struct peer *peer, struct bytes *frame)
{
	struct link_header header;

	for (int i = 0; !peer->handled && i < REPEATS_MAX; i++) {
		ssize_t n = receive(peer, buffer, sizeof(buffer), MSG_PEEK);
		int r;

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? PEER_E_EMPTY : PEER_E_EOF;
		if ((size_t)n > sizeof(buffer) ||
		    !link_unpack(&header, frame, (struct bytes){.data = buffer, .size = (size_t)n}))
			return PEER_E_BAD;
		if (header.number <= peer->received) {
			take_out(peer);
			continue;
		}
		/* A link loses nothing: only who forges messages skips a number. */
		if (header.number != peer->received + 1)
			return PEER_E_BAD;
		r = header.size ? letter_read(peer, &header, frame) : 0;
		if (r)
			return r;
		peer->received++;
		peer->handled = true;
		peer_settle_later(peer);
		return 0;
	}
	return PEER_E_EMPTY;
}

void peer_push_back(struct peer *peer)
{
	peer->received--;
	peer->handled = false;
}

bool peer_pending(const struct peer *peer)
{
	char byte;

	return peer->fd >= 0 && !peer->handled && receive(peer, &byte, 1, MSG_PEEK) > 0;
}

static struct peer_message *message_new(uint64_t subject, int *fds, size_t n_fds)
{
	struct peer_message *message = calloc(1, sizeof(*message));

	for (size_t i = 0; i < n_fds; i++) {
		if (message)
			message->fds[message->n_fds++] = steal_fd(&fds[i]);
		else
			fd_closep(&fds[i]);
	}
	if (!message)
		return NULL;
	list_init(&message->node);
	msgpack_sbuffer_init(&message->datagram);
	message->subject = subject;
	return message;
}

static void message_queue(struct peer *peer, struct peer_message *message, uint64_t number)
{
	message->number = number;
	list_append(&peer->messages, &message->node);
	peer_settle_later(peer);
}

int peer_say(struct peer *peer, const struct wire_schema *schema, const void *message, uint64_t subject, int *fds,
	     size_t n_fds)
{
	static const char header[LINK_HEADER];
	struct peer_message *said = message_new(subject, fds, n_fds);
	int r;

	if (!said)
		return -ENOMEM;
	r = msgpack_sbuffer_write(&said->datagram, header, sizeof(header)) ? -ENOMEM : 0;
	if (!r)
		r = wire_encode(&said->datagram, schema, message);
	if (r)
		message_free(said);
	else
		message_queue(peer, said, ++peer->sent);
	return r;
}

int peer_repeat(struct peer *peer, uint64_t number, struct bytes datagram, uint64_t subject, int *fds, size_t n_fds)
{
	struct peer_message *said = message_new(subject, fds, n_fds);

	if (!said)
		return -ENOMEM;
	if (msgpack_sbuffer_write(&said->datagram, datagram.data, datagram.size)) {
		message_free(said);
		return -ENOMEM;
	}
	message_queue(peer, said, number);
	return 0;
}

static uint32_t wanted_events(const struct peer *peer)
{
	bool sends = !peer->held && !peer->retry.index && !list_empty(&peer->messages);

	return (peer->paused || peer->rest.index ? 0 : EPOLLIN) | (sends ? EPOLLOUT : 0);
}

void peer_pause(struct peer *peer, bool paused)
{
	peer->paused = paused;
	peer_settle_later(peer);
}

void peer_hold(struct peer *peer, bool held)
{
	peer->held = held;
	peer_settle_later(peer);
}

static void on_rested(struct timer *timer)
{
	peer_settle_later(container_of(timer, struct peer, rest));
}

void peer_hurry(struct peer *peer)
{
	peer->hurried = true;
	peer_rest(peer, 0);
}

void peer_rest(struct peer *peer, uint64_t us)
{
	if (us > 0)
		(void)timer_set(peer->loop, &peer->rest, event_now() + us, on_rested);
	else
		timer_clear(peer->loop, &peer->rest);
	peer_settle_later(peer);
}

static void on_retry(struct timer *timer)
{
	peer_settle_later(container_of(timer, struct peer, retry));
}

static void flush(struct peer *peer)
{
	struct peer_message *message;

	list_for_each (message, &peer->messages, node) {
		int r = peer->held ? CHANNEL_E_EMPTY
				   : link_send(peer->fd, message->number, message->datagram.data,
					       message->datagram.size, message->fds, message->n_fds);

		if (is_scarcity(r))
			(void)timer_set(peer->loop, &peer->retry, event_now() + RETRY_US, on_retry);
		if (r == CHANNEL_E_EMPTY || is_scarcity(r))
			break;
		/* One that is gone is told of by its warden, or by the end of the warden. */
		message_free(message);
	}
	event_change(peer->loop, &peer->source, wanted_events(peer));
}

/* Its memory goes back before the next but one is written, which takes the same place. */
static void letter_discard(struct peer *peer)
{
	(void)fallocate(peer->letters, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)peer->letter_at,
			(off_t)peer->letter_size);
	letter_drop(peer);
}

void peer_settle(struct peer *peer)
{
	list_remove(&peer->node);
	if (peer->handled)
		take_out(peer);
	if (peer->handled && peer->letter)
		letter_discard(peer);
	letter_drop(peer);
	peer->handled = false;
	flush(peer);
}

void peers_settle(struct list *due)
{
	struct peer *peer;

	list_for_each (peer, due, node)
		peer_settle(peer);
}
