/* A prompt with a person at it keeps its session alive: now and then it tells the daemon, so the session is not
 * idle. The answer says how long the session may still live, or that it has ended. Nobody waits for the answers. */
#pragma once

#include "cli.h"

struct presence {
	struct lair_call *call; /* a request on its way */
	double due;	/* when the daemon is told next, in clock_seconds(); 0: now; infinite: never again */
	uint64_t birth; /* of the session that the prompt uses; 0: not known */
	bool warned;	/* the user was told that the session will end, which nobody can prevent */
};

/* From now on keep the session of that birth; 0: whichever session has the name. */
void presence_begin(struct presence *presence, uint64_t birth);
void presence_end(struct presence *presence);
/* Do what is due about @session: tell the daemon, and take its answers. @before is called before a notice is
 * printed. Returns in how many milliseconds something is due again, or -1. */
typedef void before_notice(void *userdata);
int presence_turn(struct presence *presence, const struct cli *cli, const char *session, before_notice *before,
		  void *userdata);
