/* The session's record says when to come back: after a third of the time that it may be idle. */
#include "presence.h"

#include "base/text.h"

#include "proto/clock.h"

#include <math.h>

#define SELDOM 60.0
#define OFTEN 0.1
/* How many seconds before the end the user is warned. */
#define WARNING 300.0
/* How often an answer is looked for, in milliseconds. */
#define LOOK_MS 50

void presence_begin(struct presence *presence, uint64_t birth)
{
	presence->call = lair_call_free(presence->call);
	if (birth && birth != presence->birth)
		presence->warned = false;
	presence->birth = birth;
	presence->due = 0;
}

void presence_end(struct presence *presence)
{
	presence->call = lair_call_free(presence->call);
}

static void warn_before_expiry(struct presence *presence, double left, const char *session)
{
	char time[HUMAN_SIZE];

	presence->warned = true;
	cli_notice("session \"%s\" ends in %s, whatever is done in it (hard_ttl): save what is to stay", session,
		   human_seconds(time, left));
}

static void heard(struct presence *presence, const struct lair_session *session, const char *name,
		  before_notice *before, void *userdata)
{
	double next = SELDOM;

	presence->birth = session->birth;
	if (session->idle_left > 0)
		next = fmin(next, session->idle_left / 3);
	if (session->hard_left > 0 && session->hard_left <= WARNING && !presence->warned) {
		before(userdata);
		warn_before_expiry(presence, session->hard_left, name);
	}
	if (session->hard_left > 0)
		next = fmin(next, session->hard_left > WARNING ? session->hard_left - WARNING
							       : session->hard_left + OFTEN);
	presence->due = clock_seconds() + fmax(next, OFTEN);
}

/* If the daemon does not answer, the next cell will say so. */
static void answered(struct presence *presence, const char *name, before_notice *before, void *userdata)
{
	int r = lair_outcome(presence->call);

	if (!r) {
		heard(presence, lair_session(presence->call), name, before, userdata);
	} else {
		presence->due = INFINITY;
		if (r == LAIR_E_GONE || r == LAIR_E_NO_SESSION) {
			before(userdata);
			cli_notice("%s", lair_call_error(presence->call));
		}
	}
	presence->call = lair_call_free(presence->call);
}

int presence_turn(struct presence *presence, const struct cli *cli, const char *session, before_notice *before,
		  void *userdata)
{
	double now = clock_seconds();

	if (!presence->call && now >= presence->due &&
	    lair_stay(cli->lair, &presence->call, session, presence->birth))
		presence->due = INFINITY;
	if (presence->call && lair_outcome(presence->call) == -EINPROGRESS)
		(void)lair_process(cli->lair);
	if (presence->call && lair_outcome(presence->call) == -EINPROGRESS)
		return LOOK_MS;
	if (presence->call)
		answered(presence, session, before, userdata);
	return isinf(presence->due) ? -1 : (int)fmax(1, ceil((presence->due - now) * 1e3));
}
