/* Wardens as the router sees them. A warden's death is learnt from its pidfd where the host has them, else from the
 * end of its control pair, whose other end it alone holds. */
#include "warden.h"

#include "log.h"
#include "nursery.h"
#include "router.h"
#include "session.h"
#include "workspace.h"

#include "proto/channel.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define PATIENCE_US (20 * 1000000ULL)

int warden_new(struct warden **wardenp, struct router *router, struct nursery *nursery, struct profile *profile)
{
	struct warden *warden = malloc(sizeof(*warden));
	int r;

	if (!warden)
		return -ENOMEM;
	*warden = (struct warden){
		.router = router,
		.nursery = nursery,
		.state = WARDEN_WANTED,
		.serial = ++router->last_serial,
		.control = -1,
		.theirs = -1,
		.pidfd = -1,
		.control_source = EVENT_SOURCE_NONE,
		.pidfd_source = EVENT_SOURCE_NONE,
		.keep = profile->workspace,
	};
	msgpack_sbuffer_init(&warden->guards);
	list_init(&warden->node);
	warden->uid = router_take_uid(router);
	r = workspace_create(&warden->workspace, &router->workspaces, warden->serial, warden->uid);
	if (!r)
		r = channel_pair(&warden->control, &warden->theirs);
	if (r) {
		log_error(NULL, "cannot make a workspace for profile %s: %s", profile->name, strerror(-r));
		warden_free(warden);
		return r;
	}
	*wardenp = warden;
	return 0;
}

struct warden *warden_free(struct warden *warden)
{
	if (!warden)
		return NULL;
	interpreter_free(warden->interpreter);
	event_remove(&warden->router->loop, &warden->control_source);
	event_remove(&warden->router->loop, &warden->pidfd_source);
	timer_clear(&warden->router->loop, &warden->patience);
	fd_closep(&warden->control);
	fd_closep(&warden->theirs);
	fd_closep(&warden->pidfd);
	list_remove(&warden->node);
	msgpack_sbuffer_destroy(&warden->guards);
	free(warden->workspace);
	free(warden->level);
	free(warden);
	return NULL;
}

/* Nothing of it runs any more. A kept workspace is one that a session has used; a spare's is nobody's. */
static void warden_gone(struct warden *warden)
{
	struct session *session = warden->session;

	event_remove(&warden->router->loop, &warden->control_source);
	event_remove(&warden->router->loop, &warden->pidfd_source);
	timer_clear(&warden->router->loop, &warden->patience);
	list_remove(&warden->node);
	if (!session || warden->keep == WORKSPACE_DELETE)
		router_remove_tree(warden->router, warden->workspace);
	nursery_on_warden_gone(warden->nursery, warden);
	if (session)
		session_on_warden_gone(session);
	router_bury_warden(warden->router, warden);
}

static void on_pidfd(struct event_source *source, uint32_t events)
{
	struct warden *warden = container_of(source, struct warden, pidfd_source);

	(void)events;
	if (warden->state != WARDEN_DYING && !warden->reason[0])
		snprintf(warden->reason, sizeof(warden->reason), "its warden died");
	warden_gone(warden);
}

static void on_impatience(struct timer *timer)
{
	struct warden *warden = container_of(timer, struct warden, patience);

	warden_failed(warden, BYTES("its cage was not ready in time"));
}

static void patience_start(struct warden *warden)
{
	(void)timer_set(&warden->router->loop, &warden->patience, event_now() + PATIENCE_US, on_impatience);
}

int warden_request(struct warden *warden, int template_channel)
{
	struct warden_message message = {
		.serial = warden->serial, .workspace = bytes_of(warden->workspace), .uid = warden->uid};
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, &warden_message_schema, &message);
	if (!r)
		r = channel_send(template_channel, wire_bytes(&buffer), &warden->theirs, 1);
	msgpack_sbuffer_destroy(&buffer);
	if (r)
		return r;
	fd_closep(&warden->theirs);
	warden->state = WARDEN_MAKING;
	patience_start(warden);
	return 0;
}

static int warden_send(struct warden *warden, const struct wire_schema *schema, const void *message, const int *fds,
		       size_t n_fds)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, message);
	if (!r)
		r = channel_send(warden->control, wire_bytes(&buffer), fds, n_fds);
	msgpack_sbuffer_destroy(&buffer);
	return r > 0 ? -EPIPE : r;
}

int warden_spawn(struct warden *warden)
{
	struct spawn_message message = {.serial = ++warden->last_interpreter};
	int theirs[3], r;

	warden->interpreter = interpreter_free(warden->interpreter);
	r = interpreter_new(&warden->interpreter, &warden->router->loop, message.serial, theirs);
	if (r)
		return r;
	r = warden_send(warden, &spawn_message_schema, &message, theirs, 3);
	for (int i = 0; i < 3; i++)
		fd_close(theirs[i]);
	return r;
}

int warden_signal(struct warden *warden, int signal)
{
	struct signal_message message = {.serial = warden->last_interpreter, .signal = (uint64_t)signal};
	int r = warden_send(warden, &signal_message_schema, &message, NULL, 0);

	if (!r)
		warden->signals_unanswered++;
	return r;
}

void warden_kill(struct warden *warden)
{
	if (warden->state == WARDEN_DYING)
		return;
	if (warden->state < WARDEN_CAGING) {
		/* No process to wait for yet: one still being made finds its control pair closed and goes. */
		warden->state = WARDEN_DYING;
		warden_gone(warden);
		return;
	}
	warden->state = WARDEN_DYING;
	timer_clear(&warden->router->loop, &warden->patience);
	if (warden->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, warden->pidfd, SIGKILL, NULL, 0);
	else
		(void)kill(warden->pid, SIGKILL);
}

void warden_failed(struct warden *warden, struct bytes reason)
{
	snprintf(warden->reason, sizeof(warden->reason), "%.*s", (int)MIN(reason.size, sizeof(warden->reason) - 1),
		 reason.data);
	if (warden->session)
		session_on_warden_failed(warden->session);
	else
		log_error(NULL, "a spare could not be made: %s", warden->reason);
	warden_kill(warden);
}

/* ---- what a warden says ---- */

static int on_ready(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct warden_ready ready;
	int r = wire_decode(&ready, &warden_ready_schema, body, fault);

	if (r || warden->state != WARDEN_CAGING)
		return WIRE_E_FIELD;
	timer_clear(&warden->router->loop, &warden->patience);
	warden->level = strndup(ready.level.data, ready.level.size);
	msgpack_sbuffer_write(&warden->guards, ready.guards.data, ready.guards.size);
	r = warden_spawn(warden);
	if (r) {
		warden_failed(warden, bytes_of(strerror(-r)));
		return 0;
	}
	warden->state = WARDEN_READY;
	if (warden->session)
		session_on_ready(warden->session);
	else
		nursery_on_spare(warden->nursery, warden);
	return 0;
}

static int on_failed(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct failed_message failed;

	if (wire_decode(&failed, &failed_message_schema, body, fault))
		return WIRE_E_FIELD;
	warden_failed(warden, failed.reason);
	return 0;
}

static int on_spawned(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct spawned_message spawned;

	(void)warden;
	return wire_decode(&spawned, &spawned_message_schema, body, fault);
}

static int on_signalled(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct signalled_message signalled;

	if (wire_decode(&signalled, &signalled_message_schema, body, fault) || warden->signals_unanswered == 0)
		return WIRE_E_FIELD;
	if (--warden->signals_unanswered == 0 && warden->session)
		session_on_signalled(warden->session);
	return 0;
}

static int on_exited(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct exited_message exited;

	if (wire_decode(&exited, &exited_message_schema, body, fault))
		return WIRE_E_FIELD;
	if (exited.serial != warden->last_interpreter)
		return 0;
	if (warden->session)
		session_on_exited(warden->session, (int)exited.status, exited.oom);
	else
		warden_failed(warden, BYTES("its interpreter died before any use"));
	return 0;
}

static const struct {
	const char *type;
	int (*fn)(struct warden *warden, struct bytes body, struct wire_fault *fault);
} handlers[] = {
	{"ready", on_ready},	     {"failed", on_failed}, {"spawned", on_spawned},
	{"signalled", on_signalled}, {"exited", on_exited},
};

static int message_handle(struct warden *warden, struct bytes data)
{
	struct wire_fault fault = {.field = "type", .expected = "known"};
	struct wire_frame frame;
	int r = wire_open(&frame, data);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (bytes_is(frame.type, handlers[i].type))
			return handlers[i].fn(warden, frame.body, &fault);
	return WIRE_E_FIELD;
}

static void on_control(struct event_source *source, uint32_t events)
{
	struct warden *warden = container_of(source, struct warden, control_source);
	static char buffer[CHANNEL_SIZE_MAX];
	int fds[CHANNEL_FDS_MAX];
	struct bytes data;
	size_t n_fds;
	int r;

	(void)events;
	r = channel_recv(warden->control, buffer, sizeof(buffer), &data, fds, &n_fds);
	if (r == CHANNEL_E_EMPTY)
		return;
	if (r == CHANNEL_E_EOF) {
		event_remove(&warden->router->loop, source);
		if (warden->pidfd < 0)
			warden_gone(warden);
		return;
	}
	while (!r && n_fds > 0)
		fd_closep(&fds[--n_fds]);
	if (r || message_handle(warden, data))
		warden_failed(warden, BYTES("its warden broke the protocol"));
}

void warden_made(struct warden *warden, pid_t pid, int pidfd)
{
	int r;

	warden->pid = pid;
	warden->pidfd = pidfd;
	warden->state = WARDEN_CAGING;
	patience_start(warden);
	r = event_add(&warden->router->loop, &warden->control_source, warden->control, EPOLLIN, on_control);
	if (!r && pidfd >= 0)
		r = event_add(&warden->router->loop, &warden->pidfd_source, pidfd, EPOLLIN, on_pidfd);
	if (r)
		warden_failed(warden, bytes_of(strerror(-r)));
}
