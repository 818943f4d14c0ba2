/* The end of sessions, and other calls whose answer nobody waits for. */
#include "e2b.h"

#include <stdlib.h>

void call_forget(struct lair_call *call, int started)
{
	if (!started)
		(void)lair_call_free(call);
}

static void session_end(struct tenant *tenant, const char *session)
{
	struct lair_call *call = NULL;
	int r = lair_shutdown(tenant->lair, &call, session);

	call_forget(call, r);
}

void sandbox_end_branch(struct sandbox *sandbox, const char *session)
{
	session_end(sandbox->tenant, session);
}

/* Whether @name is a session of the sandbox whose own is @session. */
static bool belongs(struct lair_text name, const char *session)
{
	size_t size = strlen(session);

	return name.size >= size && memcmp(name.data, session, size) == 0 &&
	       (name.size == size || name.data[size] == '~');
}

struct ending {
	struct tenant *tenant;
	char *session;
};

static void on_listed(struct lair_call *call, void *userdata)
{
	struct ending *ending = userdata;
	struct lair_session found;
	size_t cursor = 0;

	if (!lair_outcome(call)) {
		struct lair_items sessions = lair_sessions(call);

		while (lair_next_session(sessions, &cursor, &found)) {
			_cleanup_(freep) char *name = strndup(found.session.data, found.session.size);

			if (name && belongs(found.session, ending->session))
				session_end(ending->tenant, name);
		}
	}
	free(ending->session);
	free(ending);
	(void)lair_call_free(call);
}

void sandbox_end_sessions(struct tenant *tenant, const char *session)
{
	struct ending *ending = calloc(1, sizeof(*ending));
	struct lair_call *call = NULL, *unsave = NULL;
	int r;

	if (!ending)
		return;
	ending->tenant = tenant;
	ending->session = strdup(session);
	r = ending->session ? lair_list(tenant->lair, &call) : -ENOMEM;
	if (r) {
		free(ending->session);
		free(ending);
		return;
	}
	lair_on_done(call, on_listed, ending);
	r = lair_unsave(tenant->lair, &unsave, session);
	call_forget(unsave, r);
}
