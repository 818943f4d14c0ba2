/* One thread, one blocking call: five sockets of ZeroMQ, the daemon, signals, and the parent's death. */
#include "bridge.h"

#include "base/json.h"
#include "base/signals.h"
#include "base/text.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zmq.h>

#ifdef __SANITIZE_ADDRESS__
#define MEMORY_MAX RLIM_INFINITY /* a sanitizer maps much more than it uses */
#else
#define MEMORY_MAX (1ULL << 30)
#endif
/* While so many requests wait, no more is read from the shell channel. */
#define WAITING_MAX 4096
#define PROTOCOL "5.3"
/* How long the first answer waits for the session, which says the version of Python. */
#define PYTHON_WAIT 1.0
#define PYTHON_POLL_MS 20
/* The daemon's time for the end of a session, when the kernel ends. */
#define END_PATIENCE 4.0
#define STAY_SELDOM 60.0
/* When to look again for room for messages that wait. */
#define HELD_AGAIN 0.001
/* To find a new session that has expired while nobody looked. */
#define STAY_OFTEN 0.5

/* ---- messages out ---- */

static json_t *header_make(struct bridge *bridge, const char *type)
{
	char id[64], date[64];
	double now = clock_date();
	time_t second = (time_t)now;
	struct tm tm;

	snprintf(id, sizeof(id), "%s_%" PRIu64, bridge->identity, ++bridge->n_sent);
	(void)gmtime_r(&second, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(date + strlen(date), 16, ".%06dZ", (int)((now - (double)second) * 1e6) % 1000000);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "msg_id", id, "session", bridge->identity, "username",
			 "lair", "date", date, "msg_type", type, "version", PROTOCOL);
}

static char *document_take(json_t *document)
{
	char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

	json_decref(document);
	return text ? text : strdup("{}");
}

static char *document_of(const json_t *document)
{
	char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

	return text ? text : strdup("{}");
}

static void frame_send(struct bridge *bridge, enum channel channel, struct lair_text frame, bool more)
{
	if (channel == CHANNEL_IOPUB)
		iopub_send(bridge, frame, more);
	else
		(void)sockets_send(&bridge->sockets, channel, frame, more);
}

/* The frames from the delimiter on. */
static void frames_send(struct bridge *bridge, enum channel channel, struct outgoing *message)
{
	char *texts[4] = {
		document_take(header_make(bridge, message->type)),
		document_of(message->parent),
		document_take(message->metadata),
		message->written.data ? NULL : document_take(message->content),
	};
	char signature[SIGNATURE_SIZE];
	struct lair_text documents[4];
	bool signs = bridge->signer.key_size > 0;

	for (size_t i = 0; i < 4; i++)
		documents[i] = lair_text(texts[i] ? texts[i] : "{}");
	if (message->written.data)
		documents[3] = message->written;
	if (signs)
		signer_sign(&bridge->signer, signature, documents);
	frame_send(bridge, channel, lair_text("<IDS|MSG>"), true);
	frame_send(bridge, channel, (struct lair_text){.data = signature, .size = signs ? SIGNATURE_SIZE : 0},
		   true);
	for (size_t i = 0; i < 4; i++)
		frame_send(bridge, channel, documents[i], i < 3 || message->n_buffers > 0);
	for (size_t i = 0; i < message->n_buffers; i++)
		frame_send(bridge, channel, message->buffers[i], i + 1 < message->n_buffers);
	for (size_t i = 0; i < 4; i++)
		free(texts[i]);
}

void publish(struct bridge *bridge, struct outgoing message)
{
	char topic[128];

	output_flush(bridge);
	snprintf(topic, sizeof(topic), "kernel.%s.%s", bridge->identity, message.type);
	iopub_send(bridge, lair_text(topic), true);
	frames_send(bridge, CHANNEL_IOPUB, &message);
}

void publish_status(struct bridge *bridge, const json_t *parent, const char *state)
{
	publish(bridge, (struct outgoing){.type = "status",
					  .content = json_pack("{s:s}", "execution_state", state),
					  .parent = parent});
}

const json_t *job_header(const struct job *job)
{
	return job->message.header;
}

void job_send(struct job *job, enum channel channel, struct outgoing message)
{
	struct bridge *bridge = job->bridge;

	if (job->message.n_identities == 0)
		return;
	message.parent = job_header(job);
	for (size_t i = 0; i < job->message.n_identities; i++)
		(void)sockets_send(&bridge->sockets, channel, job->frames.items[i], true);
	frames_send(bridge, channel, &message);
}

/* ---- requests ---- */

static void job_free(struct job *job)
{
	(void)lair_call_free(job->call);
	json_decref(job->payload);
	json_decref(job->told);
	free(job->words);
	free(job->text);
	free(job->name);
	message_deinit(&job->message);
	frames_deinit(&job->frames);
	free(job);
}

static void job_unlink(struct job *job)
{
	struct bridge *bridge = job->bridge;
	struct job **at = job->handler->at_once ? &bridge->aside : &bridge->first;
	struct job *before = NULL;

	while (*at && *at != job) {
		before = *at;
		at = &(*at)->next;
	}
	if (!*at)
		return;
	*at = job->next;
	if (!job->handler->at_once) {
		bridge->n_waiting--;
		if (bridge->last == job)
			bridge->last = before;
	}
}

struct job *bridge_current(const struct bridge *bridge)
{
	return bridge->first && bridge->first->begun ? bridge->first : NULL;
}

static void job_end(struct job *job)
{
	struct bridge *bridge = job->bridge;
	struct job *current;

	publish_status(bridge, job_header(job), "idle");
	job_unlink(job);
	current = bridge_current(bridge);
	/* Clients take the last status for that of the kernel. */
	if (current)
		publish_status(bridge, job_header(current), "busy");
	job_free(job);
}

void job_reply(struct job *job, json_t *content)
{
	char type[64];

	output_flush(job->bridge);
	snprintf(type, sizeof(type), "%.*s_reply", (int)(strlen(job->handler->type) - strlen("_request")),
		 job->handler->type);
	if (job->handler->silent)
		json_decref(content);
	else
		job_send(job, job->channel, (struct outgoing){.type = type, .content = content});
	job_end(job);
}

void job_fail(struct job *job, const char *name, const char *sentence)
{
	if (job->handler->begin == execute_begin) {
		execute_refuse(job, name, sentence);
		return;
	}
	job_reply(job, json_pack("{s:s, s:s, s:o, s:[o]}", "status", "error", "ename", name, "evalue",
				 json_text(lair_text(sentence)), "traceback", json_text(lair_text(sentence))));
}

static void on_done(struct lair_call *call, void *userdata)
{
	struct job *job = userdata;

	(void)call;
	job->then(job);
}

void job_wait(struct job *job, int started, step *then)
{
	if (started) {
		job->then = then;
		job_fail(job, "LairError", started > 0 ? lair_error(job->bridge->lair) : strerror(-started));
		return;
	}
	job->then = then;
	lair_on_done(job->call, on_done, job);
}

/* ---- the session ---- */

void state_note(struct bridge *bridge, uint64_t cell, bool shown)
{
	if (bridge->n_states == STATES) {
		memmove(bridge->states, bridge->states + STATES / 2, STATES / 2 * sizeof(*bridge->states));
		bridge->n_states = STATES / 2;
	}
	bridge->states[bridge->n_states++] = (struct state){.cell = cell, .shown = shown};
}

void state_back(struct bridge *bridge, uint64_t cell)
{
	while (bridge->n_states > 0 && bridge->states[bridge->n_states - 1].cell > cell)
		bridge->n_states--;
}

/* Of a session that is still being made it is not known yet. */
static void language_note(struct bridge *bridge, const struct lair_session *session)
{
	if (!session->version.data)
		return;
	snprintf(bridge->version, sizeof(bridge->version), "%.*s", (int)session->version.size,
		 session->version.data);
	snprintf(bridge->language, sizeof(bridge->language), "%.*s", (int)session->language.size,
		 session->language.data ? session->language.data : "");
}

static void session_met(struct bridge *bridge, const struct lair_session *session)
{
	bridge->known = true;
	language_note(bridge, session);
	bridge->birth = session->birth;
	bridge->cells = bridge->count = session->cells;
	bridge->comms = bridge->comms || (!session->opened && session->cells > 0);
	bridge->stay_due = clock_seconds() + STAY_OFTEN;
	keep_notices(bridge, session);
}

/* A client may make ZeroMQ keep frames of a message that never ends. Then this process dies, not the host.
 */
static void memory_limit(struct bridge *bridge)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return;
	bridge->memory = limit.rlim_cur;
	limit.rlim_cur = MIN(limit.rlim_cur, (rlim_t)MEMORY_MAX);
	(void)setrlimit(RLIMIT_DATA, &limit);
}

/* This may start the daemon, which is not to inherit the limit. */
static int lair_connect_unlimited(struct bridge *bridge)
{
	struct rlimit limit;
	int r;

	if (lair_fd(bridge->lair) >= 0)
		return 0;
	if (getrlimit(RLIMIT_DATA, &limit) == 0) {
		limit.rlim_cur = bridge->memory;
		(void)setrlimit(RLIMIT_DATA, &limit);
	}
	/* Another connection has another descriptor. */
	event_remove(&bridge->loop, &bridge->on_lair);
	r = lair_connect(bridge->lair);
	memory_limit(bridge);
	return r;
}

/* Returns 0, or an error as lair_connect. */
static int bridge_connect(struct bridge *bridge)
{
	int r = 0;

	if (bridge->lair && lair_fd(bridge->lair) < 0)
		bridge->lair = lair_free(bridge->lair);
	if (!bridge->lair) {
		bridge->known = false;
		bridge->stay = lair_call_free(bridge->stay);
		bridge->opening = lair_call_free(bridge->opening);
		r = lair_new(&bridge->lair, &bridge->options->lair);
	}
	return r ? r : lair_connect_unlimited(bridge);
}

/* Waits. Returns 0 or an error. */
static int session_open(struct bridge *bridge)
{
	struct lair_call *call = NULL;
	int r;

	r = lair_open_with(bridge->lair, &call, bridge->session, bridge->profile,
			   (const char *const *)bridge->options->asked->items);
	if (!r)
		r = lair_wait(call, LAIR_FOREVER);
	if (!r)
		session_met(bridge, lair_session(call));
	(void)lair_call_free(call);
	return r;
}

/* If it could not be opened, the first cell tries it again, and tells. */
static void on_opened(struct lair_call *call, void *userdata)
{
	struct bridge *bridge = userdata;

	bridge->opening = NULL;
	if (!lair_outcome(call))
		session_met(bridge, lair_session(call));
	(void)lair_call_free(call);
}

/* Without waiting: the first session of a profile takes a while, and clients want a sign of life. */
static void session_open_begin(struct bridge *bridge)
{
	if (!lair_open_with(bridge->lair, &bridge->opening, bridge->session, bridge->profile,
			    (const char *const *)bridge->options->asked->items))
		lair_on_done(bridge->opening, on_opened, bridge);
}

struct lair *job_lair(struct job *job)
{
	struct bridge *bridge = job->bridge;
	int r = bridge_connect(bridge);

	if (!r && !bridge->known)
		r = session_open(bridge);
	if (!r)
		return bridge->lair;
	job_fail(job, "LairError", bridge->lair ? lair_error(bridge->lair) : "out of memory");
	return NULL;
}

/* As long as there is a notebook, its session is used. */
static void stay_turn(struct bridge *bridge, double now)
{
	const struct lair_session *session;
	double next;

	if (bridge->stay && lair_outcome(bridge->stay) != -EINPROGRESS) {
		session = lair_outcome(bridge->stay) ? NULL : lair_session(bridge->stay);
		if (session)
			language_note(bridge, session);
		next = *bridge->version ? STAY_SELDOM : STAY_OFTEN;
		if (session && session->idle_left > 0)
			next = fmin(next, session->idle_left / 3);
		bridge->stay_due = now + (session ? fmax(next, STAY_OFTEN) : STAY_SELDOM);
		bridge->stay = lair_call_free(bridge->stay);
	}
	if (bridge->known && !bridge->stay && now >= bridge->stay_due && lair_fd(bridge->lair) >= 0 &&
	    lair_stay(bridge->lair, &bridge->stay, bridge->session, bridge->birth))
		bridge->stay_due = now + STAY_SELDOM;
}

/* ---- requests without the session ---- */

/* Clients keep the version of the language with the notebook. A session that takes longer is the first of its
 * profile, and its client wants a sign of life. */
static const char *version_of(struct bridge *bridge)
{
	double until = clock_seconds() + PYTHON_WAIT;

	while ((bridge->opening || (bridge->known && !*bridge->version)) && clock_seconds() < until) {
		struct pollfd item = {.fd = lair_fd(bridge->lair), .events = POLLIN};

		(void)poll(&item, 1, PYTHON_POLL_MS);
		if (lair_process(bridge->lair))
			break;
		stay_turn(bridge, clock_seconds());
	}
	return *bridge->version ? bridge->version : "3";
}

/* Borrows nothing. */
static json_t *language_info(struct bridge *bridge)
{
	const char *version = version_of(bridge);

	if (*bridge->language && strcmp(bridge->language, "python") != 0)
		return json_pack("{s:s, s:s, s:s, s:s}", "name", bridge->language, "version", version, "mimetype",
				 "text/plain", "file_extension", ".txt");
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}}", "name", "python", "version", version,
			 "mimetype", "text/x-python", "file_extension", ".py", "pygments_lexer", "ipython3",
			 "nbconvert_exporter", "python", "codemirror_mode", "name", "ipython", "version", 3);
}

static void kernel_info_begin(struct job *job)
{
	json_t *info = language_info(job->bridge);
	json_t *banner = json_sprintf("Lair: %s in a session that remembers. %%undo takes the last cell back, "
				      "%%help says more.",
				      strcmp(json_string_value(json_object_get(info, "name")), "python") == 0
					      ? "Python"
					      : job->bridge->language);

	job_reply(job, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:[], s:[{s:s, s:s}]}", "status", "ok",
				 "protocol_version", PROTOCOL, "implementation", "lair", "implementation_version",
				 LAIR_VERSION, "language_info", info, "banner", banner, "debugger", 0,
				 "supported_features", "help_links", "text", "Python", "url",
				 "https://docs.python.org/3"));
}

static void interrupt_begin(struct job *job)
{
	bridge_interrupt(job->bridge);
	job_reply(job, json_pack("{s:s}", "status", "ok"));
}

static void shutdown_done(struct job *job)
{
	struct bridge *bridge = job->bridge;
	bool restart = message_flag(job->message.content, "restart", false);
	json_t *content = json_pack("{s:s, s:b}", "status", "ok", "restart", restart);

	publish(bridge, (struct outgoing){.type = "shutdown_reply",
					  .content = json_incref(content),
					  .parent = job_header(job)});
	job_reply(job, content);
	bridge->ending = true;
}

/* To restart is to reset the session: the next kernel has the same connection file, and so the same session. */
static void shutdown_begin(struct job *job)
{
	struct bridge *bridge = job->bridge;
	bool restart = message_flag(job->message.content, "restart", false);
	int r;

	if (bridge->ending || (!restart && !bridge->own) || bridge_connect(bridge)) {
		shutdown_done(job);
		return;
	}
	r = restart ? lair_reset(bridge->lair, &job->call, bridge->session)
		    : lair_shutdown(bridge->lair, &job->call, bridge->session);
	if (r)
		shutdown_done(job);
	else
		job_wait(job, 0, shutdown_done);
}

static void nothing_begin(struct job *job)
{
	job_reply(job, json_pack("{s:s}", "status", "ok"));
}

const struct handler handlers[] = {
	{"execute_request", execute_begin, false, false, true},
	{"complete_request", complete_begin, false, false, false},
	{"inspect_request", inspect_begin, false, false, false},
	{"is_complete_request", is_complete_begin, false, false, false},
	{"history_request", history_begin, false, false, false},
	{"comm_info_request", comm_info_begin, false, false, false},
	{"comm_open", comm_begin, false, true, true},
	{"comm_msg", comm_begin, false, true, true},
	{"comm_close", comm_begin, false, true, true},
	{"kernel_info_request", kernel_info_begin, true, false, false},
	{"connect_request", nothing_begin, true, false, false},
	{"interrupt_request", interrupt_begin, true, false, false},
	{"shutdown_request", shutdown_begin, true, false, false},
};
const size_t n_handlers = ARRAY_SIZE(handlers);

/* ---- messages in ---- */

static const struct handler *handler_find(const char *type)
{
	for (size_t i = 0; i < n_handlers; i++)
		if (strcmp(handlers[i].type, type) == 0)
			return &handlers[i];
	return NULL;
}

static void job_begin(struct job *job)
{
	job->begun = true;
	publish_status(job->bridge, job_header(job), "busy");
	job->handler->begin(job);
}

void job_add(struct bridge *bridge, struct job *job, const struct handler *handler)
{
	struct job **at = &bridge->aside;

	job->bridge = bridge;
	job->handler = handler;
	if (handler->at_once) {
		while (*at)
			at = &(*at)->next;
		*at = job;
		return;
	}
	if (bridge->last)
		bridge->last->next = job;
	else
		bridge->first = job;
	bridge->last = job;
	bridge->n_waiting++;
}

/* Unsigned and unknown messages are dropped, without an answer. */
static void job_take(struct bridge *bridge, enum channel channel, struct frames *frames)
{
	struct job *job = calloc(1, sizeof(*job));
	const struct handler *handler;
	const char *type;

	if (!job || message_read(&job->message, frames, &bridge->signer)) {
		frames_deinit(frames);
		free(job);
		return;
	}
	job->channel = channel;
	job->frames = *frames;
	*frames = (struct frames){.items = NULL};
	type = message_text(job_header(job), "msg_type");
	handler = handler_find(type);
	if (strcmp(type, "input_reply") == 0)
		input_take(bridge, &job->message);
	if (!handler || bridge->ending)
		job_free(job);
	else
		job_add(bridge, job, handler);
}

static void channel_receive(struct bridge *bridge, enum channel channel)
{
	struct frames frames = {.items = NULL};
	int r;

	while ((channel != CHANNEL_SHELL || bridge->n_waiting < WAITING_MAX) &&
	       (r = sockets_receive(&bridge->sockets, channel, &frames)) != -EAGAIN) {
		if (r)
			frames_deinit(&frames);
		else
			job_take(bridge, channel, &frames);
	}
}

void bridge_receive(struct bridge *bridge)
{
	channel_receive(bridge, CHANNEL_CONTROL);
	channel_receive(bridge, CHANNEL_SHELL);
	channel_receive(bridge, CHANNEL_STDIN);
}

/* A subscriber gets a welcome: then it knows that nothing more is lost. */
static void subscriptions_take(struct bridge *bridge)
{
	struct frames frames = {.items = NULL};
	struct outgoing welcome = {.type = "iopub_welcome"};

	while (sockets_receive(&bridge->sockets, CHANNEL_IOPUB, &frames) != -EAGAIN) {
		if (frames.n == 1 && frames.items[0].size > 0 && frames.items[0].data[0] == 1) {
			struct lair_text topic = {.data = frames.items[0].data + 1,
						  .size = frames.items[0].size - 1};

			bridge->heard = true;
			output_flush(bridge);
			welcome.content = json_pack("{s:o}", "subscription", json_text(topic));
			iopub_send(bridge, topic, true);
			frames_send(bridge, CHANNEL_IOPUB, &welcome);
		}
		frames_deinit(&frames);
	}
}

/* ---- the loop ---- */

/* The cell of an earlier kernel waits until a client listens. */
static bool is_due(const struct bridge *bridge)
{
	const struct job *first = bridge->first;

	return first && !first->begun && !bridge->opening &&
	       (bridge->heard || first->next || first->message.n_identities > 0);
}

static bool messages_wait(const struct bridge *bridge)
{
	for (enum channel i = 0; i < N_CHANNELS; i++)
		if ((i != CHANNEL_SHELL || bridge->n_waiting < WAITING_MAX) &&
		    sockets_readable(&bridge->sockets, i))
			return true;
	return false;
}

/* In milliseconds; -1: for ever. */
static int patience(const struct bridge *bridge)
{
	double due = INFINITY;

	if (is_due(bridge) || messages_wait(bridge))
		return 0;
	if (bridge->gathered.due > 0)
		due = bridge->gathered.due;
	if (bridge->known && !bridge->stay)
		due = fmin(due, bridge->stay_due);
	/* ZeroMQ does not tell when there is room. */
	if (bridge->holding.first)
		due = fmin(due, clock_seconds() + HELD_AGAIN);
	return isinf(due) ? -1 : (int)fmin(ceil(fmax(0, due - clock_seconds()) * 1e3), INT_MAX);
}

static void on_signal(struct event_source *source, uint32_t events)
{
	struct bridge *bridge = container_of(source, struct bridge, on_signal);
	struct signalfd_siginfo info;

	while (read(bridge->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGINT)
			bridge_interrupt(bridge);
		else
			bridge->ending = true;
	}
}

static void on_parent(struct event_source *source, uint32_t events)
{
	container_of(source, struct bridge, on_parent)->ending = true;
}

static void on_lair(struct event_source *source, uint32_t events)
{
	/* If the daemon is gone, each of its calls has said so. */
	(void)lair_process(container_of(source, struct bridge, on_lair)->lair);
}

static void on_channel(struct event_source *source, uint32_t events)
{
	/* Each turn looks at all of them. */
}

static int bridge_watch(struct bridge *bridge)
{
	int r = event_add(&bridge->loop, &bridge->on_signal, bridge->signals, EPOLLIN, on_signal);

	if (!r && bridge->parent >= 0)
		r = event_add(&bridge->loop, &bridge->on_parent, bridge->parent, EPOLLIN, on_parent);
	for (enum channel i = 0; !r && i < N_CHANNELS; i++)
		r = event_add(&bridge->loop, &bridge->on_channel[i], sockets_fd(&bridge->sockets, i),
			      EPOLLIN | EPOLLET, on_channel);
	return r;
}

static void aside_begin(struct bridge *bridge)
{
	struct job *job = bridge->aside;

	/* One that begins may end others. */
	while (job) {
		bool waits = !job->begun;

		if (waits)
			job_begin(job);
		job = waits ? bridge->aside : job->next;
	}
}

static int bridge_turn(struct bridge *bridge)
{
	double now;
	int r = event_set(&bridge->loop, &bridge->on_lair, bridge->lair ? lair_fd(bridge->lair) : -1,
			  bridge->holding.first ? 0 : EPOLLIN, on_lair);

	if (!r)
		r = event_round(&bridge->loop, patience(bridge));
	if (r)
		return r;
	sockets_beat(&bridge->sockets);
	holding_turn(bridge);
	subscriptions_take(bridge);
	bridge_receive(bridge);
	now = clock_seconds();
	if (bridge->gathered.due > 0 && now >= bridge->gathered.due)
		output_flush(bridge);
	stay_turn(bridge, now);
	aside_begin(bridge);
	if (is_due(bridge) && !bridge->ending)
		job_begin(bridge->first);
	return 0;
}

/* ---- beginning and end ---- */

/* A launcher says who it is; a kernel does not outlive it. */
static void parent_watch(struct bridge *bridge)
{
	const char *told = getenv("JPY_PARENT_PID");
	long pid = told ? strtol(told, NULL, 10) : 0;

	if (pid > 1 && pid <= INT_MAX)
		bridge->parent = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/* An id has no blanks and no invisible characters. Returns whether @name is one. */
static bool session_named(struct bridge *bridge, const char *prefix, const char *name)
{
	return snprintf(bridge->session, SESSION_SIZE, "%s%s", prefix, name) < SESSION_SIZE;
}

/* The last name of the path, for people, and a digest of the whole. */
static void session_of_path(struct bridge *bridge, const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	char name[96], digest[2 * 6 + 1];
	size_t n = 0;

	signing_name(digest, 6, lair_text(path));
	for (const char *at = last; *at && n < sizeof(name) - sizeof(digest) - 1; at++)
		name[n++] = (char)(*at > ' ' && *at < 127 ? *at : '_');
	snprintf(name + n, sizeof(name) - n, "-%s", digest);
	(void)session_named(bridge, "notebook:", name);
}

/* A kernel that is started again with the same connection file continues the same session. */
static void session_choose(struct bridge *bridge, const json_t *connection)
{
	const char *path = getenv("JPY_SESSION_NAME");
	char name[2 * 16 + 1], *text;

	if (bridge->options->session && session_named(bridge, "", bridge->options->session))
		return;
	if (bridge->options->by_path && path && *path) {
		session_of_path(bridge, path);
		return;
	}
	text = json_dumps(connection, JSON_COMPACT | JSON_SORT_KEYS);
	signing_name(name, 6, lair_text(text ? text : ""));
	free(text);
	(void)session_named(bridge, "notebook-", name);
	bridge->own = true;
}

/* Beside the connection file, where only its user writes. */
static int outstanding_name(struct bridge *bridge)
{
	const char *connection = bridge->options->connection, *slash = strrchr(connection, '/');
	char name[2 * 16 + 1];

	signing_name(name, 16, lair_text(bridge->session));
	return asprintf(&bridge->outstanding, "%.*slair-%s.json", slash ? (int)(slash + 1 - connection) : 0,
			connection, name) < 0
		       ? -ENOMEM
		       : 0;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "lair jupyter: %s: %s\n", what, strerror(-error));
	return 1;
}

static int bridge_init(struct bridge *bridge, const struct jupyter_options *options)
{
	json_error_t error;
	json_t *connection = json_load_file(options->connection, 0, &error);
	const char *why = "random numbers", *scheme = message_text(connection, "signature_scheme");
	int r;

	*bridge = (struct bridge){.options = options,
				  .loop.epoll_fd = -1,
				  .on_lair = EVENT_SOURCE_NONE,
				  .signals = -1,
				  .parent = -1,
				  .outstanding_fd = -1};
	bridge->profile = options->profile ? options->profile : LAIR_WORKBENCH;
	if (!json_is_object(connection)) {
		json_decref(connection);
		fprintf(stderr, "lair jupyter: %s: %s\n", options->connection, error.text);
		return 1;
	}
	if (*scheme && strcmp(scheme, "hmac-sha256") != 0) {
		json_decref(connection);
		fprintf(stderr, "lair jupyter: this kernel signs with hmac-sha256 alone\n");
		return 1;
	}
	session_choose(bridge, connection);
	r = event_loop_init(&bridge->loop);
	if (!r)
		r = text_random(bridge->identity, IDENTITY_SIZE - 1);
	if (!r)
		r = outstanding_name(bridge);
	if (!r)
		r = signer_init(&bridge->signer, lair_text(message_text(connection, "key")));
	bridge->signals = signals_take();
	if (!r)
		r = MIN(bridge->signals, 0);
	memory_limit(bridge);
	/* The sockets of the transport ipc are for this user alone. */
	(void)umask(077);
	if (!r)
		r = sockets_open(&bridge->sockets, connection, &why);
	json_decref(connection);
	parent_watch(bridge);
	if (!r)
		r = bridge_watch(bridge);
	return r ? fail(why, r) : 0;
}

/* Answers that are not there yet are dropped; the daemon lives on. */
static void bridge_deinit(struct bridge *bridge)
{
	output_flush(bridge);
	while (bridge->first || bridge->aside) {
		struct job *job = bridge->first ? bridge->first : bridge->aside;

		job_unlink(job);
		job_free(job);
	}
	(void)lair_call_free(bridge->stay);
	(void)lair_call_free(bridge->opening);
	lair_free(bridge->lair);
	holding_end(bridge);
	sockets_close(&bridge->sockets);
	signer_deinit(&bridge->signer);
	free(bridge->gathered.data);
	free(bridge->gathered.written);
	free(bridge->outstanding);
	free(bridge->untold);
	bridge->signals = fd_close(bridge->signals);
	bridge->parent = fd_close(bridge->parent);
	bridge->outstanding_fd = fd_close(bridge->outstanding_fd);
	event_loop_deinit(&bridge->loop);
}

static void first_connect(struct bridge *bridge)
{
	if (!bridge_connect(bridge)) {
		session_open_begin(bridge);
		outstanding_take_up(bridge);
	} else if (bridge->lair) {
		fprintf(stderr, "lair jupyter: %s\n", lair_error(bridge->lair));
	}
}

int jupyter_run(const struct jupyter_options *options)
{
	struct bridge bridge;
	int r = bridge_init(&bridge, options);

	if (!r) {
		publish_status(&bridge, NULL, "starting");
		first_connect(&bridge);
		while (!r && !bridge.ending)
			r = bridge_turn(&bridge);
		if (r)
			r = fail("the loop", r);
	}
	bridge_deinit(&bridge);
	return r;
}
