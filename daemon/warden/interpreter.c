/* Channel and pipes of one interpreter. */
#include "interpreter.h"

#include "cages.h"
#include "tenant.h"
#include "vault/breaker.h"
#include "vault/records.h"
#include "warden.h"

#include "proto/channel.h"
#include "proto/outbuffer.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define CHUNK 65536
/* A process that outlives the interpreter may go on to speak on its channel, but not for ever. */
#define LAST_WORDS_MAX 64
#define REST_BYTES_PER_US 64
_Static_assert(CHUNK >= OUTBUFFER_SIZE, "a salvaged buffer is one chunk");

/* The router is one thread: it hands on what is read here before it reads anything else. */
static char chunk[CHUNK];

static int make_pipe(int *ours, int *theirs)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ours = pair[0];
	*theirs = pair[1];
	return fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Sealed, so nobody can make it hold more than it should. */
static int make_buffer(int *ours, int *theirs)
{
	int fd = memfd_create("lair-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	*ours = fd;
	if (ftruncate(fd, OUTBUFFERS_FILE_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*theirs = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *theirs < 0 ? -errno : 0;
}

static void peer_make(struct interpreter *interpreter, int channel)
{
	struct cages *cages = interpreter->warden->cages;

	peer_init(&interpreter->peer, cages->loop, &cages->due, channel, interpreter->buffer);
}

static int make_descriptors(struct interpreter *interpreter, int theirs[INTERPRETER_FDS])
{
	int channel, r = channel_pair(&channel, &theirs[0]);

	for (int i = 0; i < 2 && !r && interpreter->role == ROLE_LIVE; i++)
		r = make_pipe(&interpreter->pipes[i], &theirs[i + 1]);
	if (!r && interpreter->role == ROLE_LIVE)
		r = make_buffer(&interpreter->buffer, &theirs[3]);
	if (theirs[0] >= 0) {
		channel_refuse_fds(channel);
		peer_make(interpreter, channel);
	}
	return r;
}

static struct interpreter *interpreter_blank(struct warden *warden, enum interpreter_role role, uint64_t serial)
{
	struct interpreter *interpreter = malloc(sizeof(*interpreter));

	if (!interpreter)
		return NULL;
	*interpreter = (struct interpreter){
		.serial = serial,
		.role = role,
		.warden = warden,
		.pipes = {-1, -1},
		.buffer = -1,
		.pipe_sources = {EVENT_SOURCE_NONE, EVENT_SOURCE_NONE},
	};
	list_init(&interpreter->node);
	peer_make(interpreter, -1);
	return interpreter;
}

int interpreter_new(struct interpreter **interpreterp, struct warden *warden, enum interpreter_role role,
		    uint64_t serial, int theirs[INTERPRETER_FDS])
{
	struct interpreter *interpreter = interpreter_blank(warden, role, serial);
	int r;

	for (int i = 0; i < INTERPRETER_FDS; i++)
		theirs[i] = -1;
	if (!interpreter)
		return -ENOMEM;
	r = make_descriptors(interpreter, theirs);
	if (r) {
		for (int i = 0; i < INTERPRETER_FDS; i++)
			fd_closep(&theirs[i]);
		interpreter_free(interpreter);
		return r;
	}
	*interpreterp = interpreter;
	return 0;
}

int interpreter_revive(struct interpreter **interpreterp, struct warden *warden,
		       const struct interpreter_record *record, int *fds, size_t n_fds)
{
	enum interpreter_role role = record->role == ROLE_FROZEN ? ROLE_FROZEN : ROLE_LIVE;
	size_t ours = role == ROLE_LIVE ? 4 : 1;
	struct interpreter *interpreter;

	if (n_fds < ours)
		return -EBADMSG;
	interpreter = interpreter_blank(warden, role, record->serial);
	if (!interpreter)
		return -ENOMEM;
	for (int i = 0; i < 2 && role == ROLE_LIVE; i++)
		interpreter->pipes[i] = steal_fd(&fds[1 + i]);
	if (role == ROLE_LIVE)
		interpreter->buffer = steal_fd(&fds[3]);
	peer_make(interpreter, steal_fd(&fds[0]));
	LINK_FIELDS(RECORD_TAKE, &interpreter->peer);
	INTERPRETER_VALUES(RECORD_TAKE, interpreter);
	bytes_copy(interpreter->set, sizeof(interpreter->set), record->set);
	interpreter->stored = n_fds > ours ? STORED_BOTH : STORED_OURS;
	*interpreterp = interpreter;
	return 0;
}

void interpreter_ignore(struct interpreter *interpreter)
{
	peer_ignore(&interpreter->peer);
	for (int i = 0; i < 2; i++)
		event_remove(interpreter->warden->cages->loop, &interpreter->pipe_sources[i]);
}

static void interpreter_close(struct interpreter *interpreter)
{
	interpreter_ignore(interpreter);
	list_remove(&interpreter->node);
	peer_deinit(&interpreter->peer);
	fd_closep(&interpreter->buffer);
	for (int i = 0; i < 2; i++)
		fd_closep(&interpreter->pipes[i]);
}

struct interpreter *interpreter_free(struct interpreter *interpreter)
{
	if (interpreter) {
		interpreter_close(interpreter);
		free(interpreter);
	}
	return NULL;
}

void interpreter_free_dead(struct grave *grave)
{
	interpreter_free(container_of(grave, struct interpreter, grave));
}

void interpreter_bury(struct interpreter *interpreter)
{
	interpreter_close(interpreter);
	(void)graveyard_bury(&interpreter->warden->cages->dead_interpreters, &interpreter->grave);
}

/* @why: NULL if it closed the channel, as it does when it dies. */
static void channel_lost(struct interpreter *interpreter, const char *why)
{
	peer_ignore(&interpreter->peer);
	interpreter->tenant->ops->on_lost(interpreter->tenant, interpreter, why);
}

static void blame_interpreter(const struct interpreter *interpreter, enum blame_turn turn)
{
	const struct warden *warden = interpreter->warden;
	const struct thing thing = {
		.kind = BLAME_INTERPRETER, .turn = turn, .whose = warden->family, .number = interpreter->serial};

	blame_note(warden->cages->breaker, &thing, "interpreter", bytes_of(interpreter->tenant->id));
}

static void on_channel(struct event_source *source, uint32_t events)
{
	struct interpreter *interpreter = container_of(source, struct interpreter, peer.source);
	struct bytes frame;

	if (events & EPOLLOUT)
		peer_settle_later(&interpreter->peer);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	blame_interpreter(interpreter, TURN_CHANNEL);
	switch (peer_hear(&interpreter->peer, &frame)) {
	case 0:
		interpreter->tenant->ops->on_frame(interpreter->tenant, interpreter, frame);
		break;
	case PEER_E_EOF:
		channel_lost(interpreter, NULL);
		break;
	case PEER_E_BAD:
		channel_lost(interpreter, "it sent no frame, or one over the limit");
		break;
	}
}

bool interpreter_has_last_words(struct interpreter *interpreter)
{
	if (interpreter->peer.source.fd < 0 || interpreter->last_words >= LAST_WORDS_MAX)
		return false;
	if (!interpreter->peer.handled && !peer_pending(&interpreter->peer))
		return false;
	peer_hurry(&interpreter->peer);
	interpreter->last_words++;
	return true;
}

/* Returns how much there was. A pipe at its end is taken out of the set, or it would be ready for ever. */
static size_t pipe_read(struct interpreter *interpreter, enum interpreter_stream stream)
{
	ssize_t n = transcript_take(&interpreter->tenant->transcripts[stream], interpreter->pipes[stream], chunk,
				    sizeof(chunk));

	if (n > 0) {
		interpreter->tenant->ops->on_output(interpreter->tenant, stream,
						    (struct bytes){.data = chunk, .size = (size_t)n});
		return (size_t)n;
	}
	if (n == 0)
		event_remove(interpreter->warden->cages->loop, &interpreter->pipe_sources[stream]);
	return 0;
}

static void on_stdout(struct event_source *source, uint32_t events)
{
	struct interpreter *interpreter = container_of(source, struct interpreter, pipe_sources[STREAM_STDOUT]);

	blame_interpreter(interpreter, TURN_STDOUT);
	pipe_read(interpreter, STREAM_STDOUT);
}

static void on_stderr(struct event_source *source, uint32_t events)
{
	struct interpreter *interpreter = container_of(source, struct interpreter, pipe_sources[STREAM_STDERR]);

	blame_interpreter(interpreter, TURN_STDERR);
	pipe_read(interpreter, STREAM_STDERR);
}

void interpreter_drain(struct interpreter *interpreter)
{
	for (int stream = STREAM_STDOUT; stream <= STREAM_STDERR; stream++) {
		int held = 0;
		size_t left, n;

		if (ioctl(interpreter->pipes[stream], FIONREAD, &held) < 0)
			continue;
		for (left = (size_t)MAX(held, 0); left > 0; left -= MIN(n, left)) {
			n = pipe_read(interpreter, (enum interpreter_stream)stream);
			if (n == 0)
				break;
		}
	}
}

static void salvage(struct interpreter *interpreter, enum interpreter_stream stream)
{
	off_t at = (off_t)offsetof(struct outbuffers, streams) + (off_t)stream * (off_t)sizeof(struct outbuffer);
	uint32_t bounds[2];
	ssize_t n;

	if (pread(interpreter->buffer, bounds, sizeof(bounds), at) != sizeof(bounds))
		return;
	if (bounds[0] >= bounds[1] || bounds[1] > OUTBUFFER_SIZE)
		return;
	at += (off_t)offsetof(struct outbuffer, data) + bounds[0];
	n = pread(interpreter->buffer, chunk, bounds[1] - bounds[0], at);
	if (n > 0)
		interpreter->tenant->ops->on_words(interpreter->tenant, stream,
						   (struct bytes){.data = chunk, .size = (size_t)n});
}

void interpreter_salvage(struct interpreter *interpreter)
{
	if (interpreter->buffer < 0)
		return;
	salvage(interpreter, STREAM_STDOUT);
	salvage(interpreter, STREAM_STDERR);
}

uint64_t interpreter_noted(const struct interpreter *interpreter)
{
	off_t at = offsetof(struct outbuffers, effects) + offsetof(struct effects_book, last);
	uint64_t last;
	bool known =
		interpreter->buffer >= 0 && pread(interpreter->buffer, &last, sizeof(last), at) == sizeof(last);

	return known ? MAX(last, interpreter->effects) : interpreter->effects;
}

bool interpreter_is_prepared(const struct interpreter *interpreter)
{
	uint64_t prepared;

	return interpreter->buffer >= 0 &&
	       pread(interpreter->buffer, &prepared, sizeof(prepared), offsetof(struct outbuffers, prepared)) ==
		       sizeof(prepared) &&
	       prepared;
}

void interpreter_set(char set[static SHA256_HEX_SIZE], const struct interpreter *interpreter)
{
	ssize_t n;

	memcpy(set, interpreter->set, SHA256_HEX_SIZE);
	if (interpreter->buffer < 0)
		return;
	n = pread(interpreter->buffer, set, SHA256_HEX_SIZE - 1, offsetof(struct outbuffers, set));
	set[MAX(n, 0)] = '\0';
	if (strspn(set, "0123456789abcdef") != SHA256_HEX_SIZE - 1)
		set[0] = '\0'; /* hostile memory: it is written down, and has to be text */
}

void interpreter_mark_interrupted(struct interpreter *interpreter, uint64_t cell)
{
	/* If this fails, an interrupt that comes before its cell has begun is lost, which may happen anyway. */
	(void)!pwrite(interpreter->buffer, &cell, sizeof(cell), offsetof(struct outbuffers, interrupted));
}

int interpreter_attach(struct interpreter *interpreter, struct tenant *tenant)
{
	static void (*const on_pipe[2])(struct event_source *, uint32_t) = {on_stdout, on_stderr};
	int r;

	interpreter->tenant = tenant;
	r = peer_listen(&interpreter->peer, on_channel);
	event_give(&interpreter->peer.source, tenant->party);
	for (int i = 0; i < 2 && !r && interpreter->role == ROLE_LIVE; i++)
		r = event_add(interpreter->warden->cages->loop, &interpreter->pipe_sources[i],
			      interpreter->pipes[i], EPOLLIN, on_pipe[i]);
	for (int i = 0; i < 2; i++)
		event_give(&interpreter->pipe_sources[i], tenant->party);
	return r;
}

int interpreter_send(struct interpreter *interpreter, const struct wire_schema *schema, const void *message)
{
	/* The next router must know its number, or it would take the first message for a repetition. */
	warden_touch(interpreter->warden);
	return peer_say(&interpreter->peer, schema, message, 0, NULL, 0);
}

int interpreter_send_fd(struct interpreter *interpreter, const struct wire_schema *schema, const void *message,
			uint64_t subject, int fd)
{
	return peer_say(&interpreter->peer, schema, message, subject, &fd, 1);
}

/* A large letter takes milliseconds of everybody's time, and one interpreter may take a sixth of it at most. A
 * dead one is read without a rest, so its letters count. */
void interpreter_rest(struct interpreter *interpreter, size_t size)
{
	if (interpreter->last_words > 0)
		interpreter->last_words += (unsigned)(size / (LETTER_MAX / LAST_WORDS_MAX));
	else if (size > LINK_INLINE_MAX)
		peer_rest(&interpreter->peer, size / REST_BYTES_PER_US);
}

void interpreter_push_back(struct interpreter *interpreter, uint64_t us)
{
	peer_push_back(&interpreter->peer);
	peer_rest(&interpreter->peer, us);
}

void interpreter_pause(struct interpreter *interpreter, bool paused)
{
	if (interpreter->paused == paused)
		return;
	interpreter->paused = paused;
	for (int i = 0; i < 2; i++)
		event_change(interpreter->warden->cages->loop, &interpreter->pipe_sources[i], paused ? 0 : EPOLLIN);
	peer_pause(&interpreter->peer, paused);
}
