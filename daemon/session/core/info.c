/* What a client is told of a session. */
#include "sessions.h"

#include "base/memory.h"
#include "warden/cages.h"

#define USAGE_AGE_US 500000
#define MEASURED_PER_ROUND 8

static double ttl_left(uint64_t since, uint64_t ttl)
{
	uint64_t end = since + ttl, now = event_now();

	return !ttl ? 0.0 : event_seconds(end > now ? end - now : 1);
}

static bool is_stale(const struct warden *warden)
{
	return !warden->measured || event_now() - warden->measured >= USAGE_AGE_US;
}

/* It takes a tenth of a millisecond for each of its processes. So a warden is not measured again soon after the
 * last time, and only a few are measured in one round. */
static void warden_measure(struct warden *warden)
{
	struct cages *cages = warden->cages;

	if (cages->n_measured == MEASURED_PER_ROUND || !is_stale(warden))
		return;
	cages->n_measured++;
	warden->usage = usage_of_tree(warden->pid, warden->baseline);
	warden->measured = event_now();
}

/* The one that was measured longest ago is never left out for others. */
void sessions_measure(const struct sessions *sessions, uid_t uid)
{
	struct warden *oldest[MEASURED_PER_ROUND];
	struct session *session = NULL;
	size_t n = 0;

	while ((session = sessions_next(sessions, uid, session))) {
		struct warden *warden = session->warden;
		size_t at = n;

		if (!is_stale(warden))
			continue;
		while (at > 0 && oldest[at - 1]->measured > warden->measured)
			at--;
		if (at == MEASURED_PER_ROUND)
			continue;
		n = MIN(n + 1, (size_t)MEASURED_PER_ROUND);
		memmove(&oldest[at + 1], &oldest[at], (n - 1 - at) * sizeof(*oldest));
		oldest[at] = warden;
	}
	for (size_t i = 0; i < n; i++)
		warden_measure(oldest[i]);
}

/* Of a family: its members cannot be told apart by their processes. */
static struct usage usage_of_warden(struct warden *warden)
{
	struct usage usage;
	struct session *session;

	warden_measure(warden);
	usage = warden->usage;
	list_for_each (session, &warden->tenants, tenant.node)
		usage.memory += history_memory(&session->history);
	return usage;
}

static bool is_written(const struct profile *profile, const char *directory)
{
	for (size_t i = 0; directory && i < profile->write.n; i++)
		if (strcmp(profile->write.items[i], directory) == 0)
			return true;
	return false;
}

struct session_info session_record(const struct session *session, uid_t asker, char name[static SESSION_NAME_SIZE])
{
	const struct profile *profile = session->profile;
	struct warden *warden = session->warden;
	const struct usage usage = usage_of_warden(warden);
	bool working = session_busy(session) || session->n_queued > 0;
	const struct bytes version = bytes_of(warden->version[0] ? warden->version : NULL);

	return (struct session_info){
		.session = bytes_of(session_name_write(name, session->id, session->owner, asker)),
		.profile = bytes_of(profile->name),
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
		.disk = warden->quota.size,
		.files = warden->quota.files,
		.tasks = usage.tasks,
		.memory_limit = profile->memory,
		.tasks_limit = profile->processes,
		.disk_limit = profile->workspace_size,
		.cpu_limit = (double)profile->cpu / 1000,
		.cell_timeout = event_seconds(profile->cell_timeout),
		.idle_ttl = event_seconds(profile->idle_ttl),
		.hard_ttl = event_seconds(profile->hard_ttl),
		.idle_left = working ? 0.0 : ttl_left(session->last, profile->idle_ttl),
		.hard_left = ttl_left(session->opened, profile->hard_ttl),
		.level = bytes_of(warden->level),
		.language = bytes_of(warden->language[0] ? warden->language : profile->language),
		.version = version,
		.python = strcmp(warden->language, LANGUAGE_OWN) == 0 ? version : (struct bytes){.data = NULL},
		.guards = wire_bytes(&warden->guards),
		.checkpoints = session->history.n_automatic + session->history.n_named,
		.checkpoint_memory = history_memory(&session->history),
		.checkpoint_age = history_age(&session->history),
		.birth = session->birth,
		.directory = bytes_of(profile->directory),
		.writable = is_written(profile, profile->directory),
	};
}

void session_tell_opened(const struct session *session, const struct address *request, bool made)
{
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer ended = {0};
	const struct load_report *report = &session->load_report;
	char name[SESSION_NAME_SIZE];
	struct session_info info = session_record(session, request->uid, name);

	info.id = request->id;
	info.opened = made;
	if (!session_put_ended(session, &ended))
		info.ended = wire_bytes(&ended);
	if (made) {
		info.saved_age = report->age;
		info.saved_damaged = bytes_of(report->damaged[0] ? report->damaged : NULL);
		info.loaded = wire_bytes(&report->loaded);
		info.not_loaded = wire_bytes(&report->not_loaded);
	}
	client_send(session->sessions->clients, request, &session_info_schema, &info);
}
