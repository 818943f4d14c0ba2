/* Tells clients about their sessions and the daemon, at once and without disturbing either. */
#include "request.h"

#include "session/core/counters.h"
#include "warden/nursery.h"

/* ---- sessions ---- */

static bool is_listed(const struct session *session)
{
	return session->id[0] && session->state != SESSION_CLOSING;
}

void handle_info(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);
	char name[SESSION_NAME_SIZE];
	struct session_info info;

	if (!session)
		return;
	if (request->info.stay)
		session_stay(session);
	info = session_record(session, from->uid, name);
	info.id = request->id;
	client_send(sessions->clients, from, &session_info_schema, &info);
}

void handle_list(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct list_reply reply = {.id = request->id};
	struct session *session = NULL;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	size_t n = 0;
	int r;

	sessions_measure(sessions, from->uid);
	while ((session = sessions_next(sessions, from->uid, session)))
		n += is_listed(session);
	r = wire_put_array(&buffer, n);
	while ((session = sessions_next(sessions, from->uid, session))) {
		char name[SESSION_NAME_SIZE];
		struct session_info info;

		if (!is_listed(session))
			continue;
		info = session_record(session, from->uid, name);
		if (!r)
			r = wire_encode_body(&buffer, &session_info_schema, &info);
	}
	reply.sessions = wire_bytes(&buffer);
	if (r)
		client_error(sessions->clients, from, "internal", "out of memory");
	else
		client_send(sessions->clients, from, &list_reply_schema, &reply);
}

/* ---- the daemon ---- */

static bool is_loading(const struct nursery *nursery)
{
	return nursery->profile->preload.n > 0 && !nursery->makeshift &&
	       (nursery->state == NURSERY_WARMING || (nursery->state == NURSERY_DOWN && nursery->ahead));
}

/* Each user may have a nursery of a profile; who asks is told once. */
static int loading_put(msgpack_sbuffer *names, const struct sessions *sessions)
{
	const struct config *config = sessions->config;
	_cleanup_(freep) bool *loading = calloc(config->n_profiles + 1, sizeof(*loading));
	const struct nursery *nursery;
	size_t n = 0;
	int r;

	if (!loading)
		return -ENOMEM;
	list_for_each (nursery, &sessions->cages->nurseries, node)
		for (size_t i = 0; i < config->n_profiles; i++)
			if (config->profiles[i] == nursery->profile && is_loading(nursery))
				loading[i] = true;
	for (size_t i = 0; i < config->n_profiles; i++)
		n += loading[i];
	r = wire_put_array(names, n);
	for (size_t i = 0; i < config->n_profiles && !r; i++)
		if (loading[i])
			r = wire_put_string(names, bytes_of(config->profiles[i]->name));
	return r;
}

void handle_stats(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct stats_reply reply = {
		.id = request->id,
		.uptime = event_seconds(event_now() - sessions->stats.started),
		.pid = (uint64_t)getpid(),
		.keeper_pid = (uint64_t)getppid(),
		.opened = sessions->stats.opened,
		.ended = sessions->stats.ended,
		.cells = sessions->stats.cells,
		.requests = sessions->stats.requests,
		.refused = counters_refused(sessions),
		.memory = memory_of_process(getpid()),
		.timed_out = sessions->stats.timed_out,
		.out_of_memory = sessions->stats.out_of_memory,
		.crashed = sessions->stats.crashed,
		.rolled_back = sessions->stats.rolled_back,
		.audit_missed = sessions->stats.audit_missed,
		.saving = sessions->cages->stopping ? sessions->stop.n_left : 0,
		.ran = event_seconds(sessions->stats.ran.sum),
		.waited = event_seconds(sessions->stats.waited.sum),
	};
	struct session *session;
	struct nursery *nursery;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer names = {0}, languages = {0}, loading = {0}, times = {0};
	int r;

	r = wire_put_array(&names, sessions->config->n_profiles);
	if (!r)
		r = wire_put_array(&languages, sessions->config->n_profiles);
	for (size_t i = 0; i < sessions->config->n_profiles && !r; i++) {
		r = wire_put_string(&names, bytes_of(sessions->config->profiles[i]->name));
		if (!r)
			r = wire_put_string(&languages, bytes_of(sessions->config->profiles[i]->language));
	}
	reply.profiles = wire_bytes(&names);
	reply.languages = wire_bytes(&languages);
	list_for_each (session, &sessions->all, node)
		reply.sessions += session->state != SESSION_CLOSING;
	if (!r)
		r = loading_put(&loading, sessions);
	reply.loading = wire_bytes(&loading);
	if (!r)
		r = counters_put_times(sessions, &times);
	reply.times = wire_bytes(&times);
	list_for_each (nursery, &sessions->cages->nurseries, node) {
		reply.spares += nursery_spares(nursery);
		reply.templates += nursery->state != NURSERY_DOWN;
	}
	list_for_each (nursery, &sessions->cages->retired, node)
		reply.templates += nursery->state != NURSERY_DOWN;
	if (r)
		client_error(sessions->clients, from, "internal", "out of memory");
	else
		client_send(sessions->clients, from, &stats_reply_schema, &reply);
}

void handle_hello(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct hello_reply reply = {
		.id = request->id,
		.version = WIRE_VERSION,
		.server = BYTES("laird " LAIR_VERSION),
		.pid = (uint64_t)getpid(),
		.frame_max = sessions->clients->front.message_max,
		.instance = bytes_of(sessions->promises->instance),
	};

	client_send(sessions->clients, from, &hello_reply_schema, &reply);
}
