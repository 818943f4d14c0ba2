/* What a client asks of a session beside its profile: NAME=VALUE, where NAME is read, write (a directory), memory,
 * cpu or network. laird's own user may ask for anything, others for what the profile allows. Before it a ? makes it
 * a wish, which is passed over where it cannot be granted. */
#pragma once

#include "paths.h"

struct asked {
	struct bytes settings; /* an array of str */
	bool by_own_user;
	const struct config *config;
	const struct in_use *in_use;
};

struct asked_refusal {
	const char *setting; /* that decides it, static; NULL: what is asked for is wrong */
	char text[PATHS_REASON_SIZE];
};

/* The settings of a session that is opened with @base: a reference, to @base itself if nothing is asked for. Its
 * first directory is where the session starts. Returns 0, -ENOMEM, or -EINVAL with @refusal. */
int profile_ask(struct profile **profilep, struct profile *base, const struct asked *asked,
		struct asked_refusal *refusal);

/* Whether @profile, of an open session, has all that is asked for. Returns 0 or -EINVAL with @refusal. */
int profile_has(const struct profile *profile, struct bytes settings, struct asked_refusal *refusal);
