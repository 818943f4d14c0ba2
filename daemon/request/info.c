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
	_cleanup_(wire_list_deinit) struct wire_list list = {0};
	struct session *session = NULL;

	sessions_measure(sessions, from->uid);
	while ((session = sessions_next(sessions, from->uid, session))) {
		char name[SESSION_NAME_SIZE];
		struct session_info info;

		if (!is_listed(session))
			continue;
		info = session_record(session, from->uid, name);
		(void)wire_list_add(&list, &session_info_schema, &info);
	}
	reply.sessions = wire_list_bytes(&list);
	client_reply(sessions->clients, from, list.r, &list_reply_schema, &reply);
}

/* ---- the daemon ---- */

static bool is_loading(const struct nursery *nursery)
{
	return nursery->profile->preload.n > 0 && !nursery->makeshift &&
	       (nursery->state == NURSERY_WARMING || (nursery->state == NURSERY_DOWN && nursery->ahead));
}

/* Each user may have a nursery of a profile; who asks is told once. */
static bool any_loads(const struct sessions *sessions, const struct profile *profile)
{
	const struct nursery *nursery;

	list_for_each (nursery, &sessions->cages->nurseries, node)
		if (nursery->profile == profile && is_loading(nursery))
			return true;
	return false;
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
	_cleanup_(wire_list_deinit) struct wire_list names = {0}, languages = {0}, loading = {0}, times = {0};
	struct session *session;
	struct nursery *nursery;

	for (size_t i = 0; i < sessions->config->n_profiles; i++) {
		const struct profile *profile = sessions->config->profiles[i];

		(void)wire_list_add_string(&names, bytes_of(profile->name));
		(void)wire_list_add_string(&languages, bytes_of(profile->language));
		if (any_loads(sessions, profile))
			(void)wire_list_add_string(&loading, bytes_of(profile->name));
	}
	counters_put_times(sessions, &times);
	reply.profiles = wire_list_bytes(&names);
	reply.languages = wire_list_bytes(&languages);
	reply.loading = wire_list_bytes(&loading);
	reply.times = wire_list_bytes(&times);
	list_for_each (session, &sessions->all, node)
		reply.sessions += session->state != SESSION_CLOSING;
	list_for_each (nursery, &sessions->cages->nurseries, node) {
		reply.spares += nursery_spares(nursery);
		reply.templates += nursery->state != NURSERY_DOWN;
	}
	list_for_each (nursery, &sessions->cages->retired, node)
		reply.templates += nursery->state != NURSERY_DOWN;
	client_reply(sessions->clients, from, names.r | languages.r | loading.r | times.r, &stats_reply_schema,
		     &reply);
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
