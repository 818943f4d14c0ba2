/* What a client is told of a session. */
#include "session.h"

#include "base/memory.h"
#include "warden/cages.h"

#define USAGE_AGE_US 500000
#define MEASURED_PER_ROUND 8

static double ttl_left(uint64_t since, uint64_t ttl)
{
	uint64_t end = since + ttl, now = event_now();

	return !ttl ? 0.0 : event_seconds(end > now ? end - now : 1);
}

/* It takes a tenth of a millisecond for each of its processes, so one is not measured again while the last time is
 * not long ago, and in one round only a few are. */
static void warden_measure(struct warden *warden)
{
	struct cages *cages = warden->cages;

	if (cages->n_measured == MEASURED_PER_ROUND ||
	    (warden->measured && event_now() - warden->measured < USAGE_AGE_US))
		return;
	cages->n_measured++;
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
	list_for_each (session, &warden->tenants, tenant.kin)
		usage.memory += history_memory(&session->history);
	return usage;
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
		.birth = session->birth,
	};
}
