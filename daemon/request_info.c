/* What a client is told of its sessions and of the daemon, at once and without disturbing either. */
#include "request.h"

#include "memory.h"

#define USAGE_AGE_US 500000
#define MEASURED_PER_ROUND 8

/* ---- sessions ---- */

static double ttl_left(uint64_t since, uint64_t ttl)
{
	uint64_t end = since + ttl, now = event_now();

	return !ttl ? 0.0 : event_seconds(end > now ? end - now : 1);
}

/* It takes a tenth of a millisecond for each of its processes, so one is not measured again while the last time is
 * not long ago, and in one round only a few are. */
static void warden_measure(struct warden *warden)
{
	struct router *router = warden->router;

	if (router->n_measured == MEASURED_PER_ROUND ||
	    (warden->measured && event_now() - warden->measured < USAGE_AGE_US))
		return;
	router->n_measured++;
	warden->usage = usage_of_tree(warden->pid, warden->baseline);
	warden->measured = event_now();
}

/* Of a family, whose members cannot be told apart by their processes. */
static struct usage usage_of_warden(struct warden *warden)
{
	struct usage usage;
	struct session *session;

	warden_measure(warden);
	usage = warden->usage;
	list_for_each (session, &warden->sessions, kin)
		usage.memory += history_memory(&session->history);
	return usage;
}

/* Root has all. */
static bool is_listed(const struct session *session, uid_t asker)
{
	return session->id[0] && session->state != SESSION_CLOSING && (asker == 0 || asker == session->owner);
}

struct session_info session_record(const struct session *session, uid_t asker, char name[static SESSION_NAME_SIZE])
{
	struct warden *warden = session->warden;
	const struct usage usage = usage_of_warden(warden);
	bool working = session_busy(session) || session->n_queued > 0;

	return (struct session_info){
		.session = bytes_of(session_name_write(name, session->id, session->owner, asker)),
		.profile = bytes_of(session->profile->name),
		.state = bytes_of(session_state_name(session)),
		.uid = session->owner,
		.workspace = bytes_of(session_workspace(session)),
		.created = session->created,
		.idle = working ? 0.0 : event_seconds(event_now() - session->last),
		.cells = session->n_cells,
		.queued = session->n_queued,
		.pid = (uint64_t)warden->pid,
		.memory = usage.memory,
		.cpu = usage.cpu,
		.idle_left = working ? 0.0 : ttl_left(session->last, session->profile->idle_ttl),
		.hard_left = ttl_left(session->opened, session->profile->hard_ttl),
		.level = bytes_of(warden->level),
		.guards = wire_bytes(&warden->guards),
		.checkpoints = session->history.n_automatic + session->history.n_named,
		.checkpoint_memory = history_memory(&session->history),
		.checkpoint_age = history_age(&session->history),
	};
}

void handle_info(struct router *router, const struct address *from, const union request *request)
{
	struct session *session = session_named(router, from, request->info.session);
	char name[SESSION_NAME_SIZE];
	struct session_info info;

	if (!session)
		return;
	info = session_record(session, from->uid, name);
	info.id = request->id;
	client_send(&router->clients, from, &session_info_schema, &info);
}

void handle_list(struct router *router, const struct address *from, const union request *request)
{
	struct list_reply reply = {.id = request->id};
	struct session *session;
	msgpack_sbuffer buffer;
	size_t n = 0;
	int r;

	list_for_each (session, &router->sessions, node)
		n += is_listed(session, from->uid);
	msgpack_sbuffer_init(&buffer);
	r = wire_put_array(&buffer, n);
	list_for_each (session, &router->sessions, node) {
		char name[SESSION_NAME_SIZE];
		struct session_info info;

		if (!is_listed(session, from->uid))
			continue;
		info = session_record(session, from->uid, name);
		if (!r)
			r = wire_encode_body(&buffer, &session_info_schema, &info);
	}
	reply.sessions = wire_bytes(&buffer);
	if (r)
		client_error(&router->clients, from, "internal", "out of memory");
	else
		client_send(&router->clients, from, &list_reply_schema, &reply);
	msgpack_sbuffer_destroy(&buffer);
}

/* ---- the daemon ---- */

void handle_stats(struct router *router, const struct address *from, const union request *request)
{
	struct stats_reply reply = {
		.id = request->id,
		.uptime = event_seconds(event_now() - router->stats.started),
		.pid = (uint64_t)getpid(),
		.keeper_pid = (uint64_t)getppid(),
		.opened = router->stats.opened,
		.ended = router->stats.ended,
		.cells = router->stats.cells,
		.requests = router->stats.requests,
		.refused = front_refusals(&router->clients.front) + router->clients.n_errors,
		.memory = memory_of_process(getpid()),
	};
	struct session *session;
	struct nursery *nursery;
	msgpack_sbuffer names;
	int r;

	msgpack_sbuffer_init(&names);
	r = wire_put_array(&names, router->config->n_profiles);
	for (size_t i = 0; i < router->config->n_profiles && !r; i++)
		r = wire_put_string(&names, bytes_of(router->config->profiles[i]->name));
	reply.profiles = wire_bytes(&names);
	list_for_each (session, &router->sessions, node)
		reply.sessions += session->state != SESSION_CLOSING;
	list_for_each (nursery, &router->nurseries, node) {
		reply.spares += nursery_spares(nursery);
		reply.templates += nursery->state != NURSERY_DOWN;
	}
	list_for_each (nursery, &router->retired, node)
		reply.templates += nursery->state != NURSERY_DOWN;
	if (r)
		client_error(&router->clients, from, "internal", "out of memory");
	else
		client_send(&router->clients, from, &stats_reply_schema, &reply);
	msgpack_sbuffer_destroy(&names);
}

void handle_hello(struct router *router, const struct address *from, const union request *request)
{
	struct hello_reply reply = {
		.id = request->id,
		.version = WIRE_VERSION,
		.server = BYTES("laird " LAIR_VERSION),
		.pid = (uint64_t)getpid(),
		.frame_max = router->frame_max,
		.instance = bytes_of(router->promises.instance),
	};

	client_send(&router->clients, from, &hello_reply_schema, &reply);
}
