/* A prompt with a person at it keeps its session alive: now and then it tells the daemon, so the session is not
 * idle. The answer says how long the session may still live, or that it has ended. Nobody waits for the answers. */
#pragma once

#include "cli.h"

struct presence {
	struct lair_call *call; /* on its way */
	double due;		/* when to say so next, in clock_seconds(); 0: now; infinite: never again */
	uint64_t birth;		/* of the session that has been used; 0: not known */
	bool warned;		/* that it will end whatever anybody does */
};

/* From now on it is about the session of that birth, 0 for whichever has the name. */
void presence_begin(struct presence *presence, uint64_t birth);
void presence_end(struct presence *presence);
/* Say and hear what is due about @session. Notices end an unfinished line: *toldp says that there was one. Returns
 * for how many milliseconds there is nothing to be done, or -1. */
int presence_turn(struct presence *presence, const struct cli *cli, const char *session, bool *toldp);
