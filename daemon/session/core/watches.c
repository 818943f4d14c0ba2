/* Each user has a turn, a number that grows with each change of what it may see: calls of its own sessions, and for
 * root those of all. Nobody is told while a change is made, but by a timer: so many changes are one answer. */
#include "watches.h"

#include "sessions.h"

#define SECONDS_MAX 300.0
/* Of one user. A program needs one; a server one for each of its tenants. */
#define WATCHES_MAX 1000

struct looker {
	struct list node;
	struct address from;
	uint64_t seen, due;
};

void watches_init(struct watches *watches)
{
	*watches = (struct watches){.base = event_now()};
	list_init(&watches->all);
}

static void looker_free(struct looker *looker)
{
	list_remove(&looker->node);
	free(looker);
}

void watches_deinit(struct sessions *sessions)
{
	struct looker *looker;

	timer_clear(sessions->loop, &sessions->watches.due);
	list_for_each (looker, &sessions->watches.all, node)
		looker_free(looker);
}

static uint64_t turn_of(const struct sessions *sessions, uid_t uid)
{
	const struct user *user = uid == 0 ? NULL : user_find(sessions->users, uid);

	return sessions->watches.base + (uid == 0 ? sessions->watches.changed : user ? user->calls_changed : 0);
}

static void answer(struct sessions *sessions, const struct address *to)
{
	struct watch_calls_reply reply = {.id = to->id, .turn = turn_of(sessions, to->uid)};

	client_send(sessions->clients, to, &watch_calls_reply_schema, &reply);
}

static void on_due(struct timer *timer);

static void arm(struct sessions *sessions)
{
	uint64_t first = UINT64_MAX;
	struct looker *looker;

	list_for_each (looker, &sessions->watches.all, node)
		first = MIN(first, looker->due);
	if (first < UINT64_MAX)
		(void)timer_set(sessions->loop, &sessions->watches.due, first, on_due);
	else
		timer_clear(sessions->loop, &sessions->watches.due);
}

static void on_due(struct timer *timer)
{
	struct sessions *sessions = container_of(timer, struct sessions, watches.due);
	struct looker *looker;

	list_for_each (looker, &sessions->watches.all, node) {
		if (looker->seen == turn_of(sessions, looker->from.uid) && looker->due > event_now())
			continue;
		answer(sessions, &looker->from);
		looker_free(looker);
	}
	arm(sessions);
}

void watches_note(struct session *session)
{
	struct watches *watches = &session->sessions->watches;

	watches->changed++;
	if (session->user)
		session->user->calls_changed++;
	if (!list_empty(&watches->all))
		(void)timer_set(session->sessions->loop, &watches->due, event_now(), on_due);
}

/* Those who have gone are forgotten. Returns how many of @uid are left. */
static size_t count(struct sessions *sessions, uid_t uid)
{
	struct looker *looker;
	size_t n = 0;

	list_for_each (looker, &sessions->watches.all, node) {
		if (!clients_there(sessions->clients, &looker->from))
			looker_free(looker);
		else
			n += looker->from.uid == uid;
	}
	return n;
}

void watches_add(struct sessions *sessions, const struct address *from, uint64_t seen, double seconds)
{
	uint64_t wait = seconds > 0 ? (uint64_t)(MIN(seconds, SECONDS_MAX) * 1e6) : 0;
	struct looker *looker;

	if (wait == 0 || seen != turn_of(sessions, from->uid)) {
		answer(sessions, from);
		return;
	}
	if (count(sessions, from->uid) >= WATCHES_MAX) {
		client_error(sessions->clients, from, "limit", "%d requests wait for calls already", WATCHES_MAX);
		return;
	}
	looker = calloc(1, sizeof(*looker));
	if (!looker) {
		client_error(sessions->clients, from, "internal", "out of memory");
		return;
	}
	*looker = (struct looker){.from = *from, .seen = seen, .due = event_now() + wait};
	list_init(&looker->node);
	list_append(&sessions->watches.all, &looker->node);
	arm(sessions);
}
