/* How sessions begin. */
#include "base/log.h"
#include "life.h"
#include "session/core/audit_log.h"
#include "session/core/events.h"
#include "session/core/part.h"
#include "session/parts/installing.h"
#include "session/parts/rows.h"
#include "stop.h"
#include "warden/nursery.h"
#include "warden/prepared.h"

#include <stdio.h>

void life_init(struct sessions *sessions)
{
	sessions->on_event = session_on_event;
	sessions->tenant_ops = &session_tenant_ops;
	sessions->parts = session_parts;
	sessions_init(sessions);
	stop_init(&sessions->stop);
}

/* Find it a warden, which may be READY already: the event is the caller's. Returns as sessions_open. */
static int session_new(struct session **sessionp, struct sessions *sessions, struct profile *profile,
		       const char *id, uid_t owner, const struct beginning *with)
{
	struct profile *own = with->profile ? with->profile : profile;
	struct session *session = session_alloc(sessions, own, id, owner);
	/* Another network takes a template of its own, which lasts as long as the session. */
	bool apart = own != profile && strcmp(own->network, profile->network) != 0;
	struct nursery *nursery = apart ? cages_nursery(sessions->cages, own, owner)
					: cages_nursery_for(sessions->cages, profile, owner, with->code);
	int r = session && nursery ? session_create_transcripts(session) : -ENOMEM;
	char set[SHA256_HEX_SIZE];
	bool ahead = !r && prepared_any(nursery) && session_first_set(set, sessions, profile, with);

	if (!r)
		r = nursery_claim(nursery, own == profile ? nursery->profile : own, ahead ? set : NULL,
				  &session->tenant, &session->warden);
	if (apart && nursery)
		cages_retire(sessions->cages, nursery);
	if (r) {
		session_free(session);
		return r;
	}
	session_arm_hard(session);
	*sessionp = session;
	return 0;
}

int sessions_open(struct session **sessionp, struct sessions *sessions, struct profile *profile, struct bytes id,
		  uid_t owner, const struct beginning *with)
{
	char key[SESSION_ID_MAX + 1];
	struct session *session;
	int r;

	snprintf(key, sizeof(key), "%.*s", (int)id.size, id.size ? id.data : "");
	r = session_new(&session, sessions, profile, key, owner, with);
	if (r)
		return r;
	if (sessions_admit(sessions, session)) {
		session_end(session, "internal");
		return -ENOMEM;
	}
	if (session->id[0])
		session->untold = past_begin(&sessions->past, owner, session->id, session->birth);
	log_info(session->name, "%s for uid %u, profile %s, workspace %s", session->id[0] ? "opened" : "one-shot",
		 owner, profile->name, session->warden->workspace);
	audit_log_opened(session);
	/* Not before it can be found, and forgotten: it may end of this. */
	if (session->warden->state == WARDEN_READY)
		session_event(session, EVENT_READY, &session_nothing);
	if (session->state == SESSION_CLOSING)
		return -ENOBUFS;
	*sessionp = session;
	return 0;
}
