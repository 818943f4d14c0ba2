/* What a person asks of a session beside its profile, as lair_exec.settings: directories of this machine, and
 * limits. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <limits.h>

#define ASKED_MAX 48

struct asked_settings {
	char *items[ASKED_MAX + 1]; /* owned, ended by NULL */
	size_t n;
	char here[PATH_MAX]; /* the directory that is a wish; "": none */
	const char *
		not_here; /* why the present directory is no wish; NULL: it is one, or another was named. Static. */
};

/* Add NAME=VALUE. Returns 0, -E2BIG or -ENOMEM. */
int asked_add(struct asked_settings *asked, const char *name, const char *value);
/* Add DIR, DIR:ro or DIR:rw. Returns the same, or -errno of looking it up. */
int asked_add_directory(struct asked_settings *asked, const char *directory);
/* Add the present directory, read-only, as a wish; unless it is /, a home directory, holds one, or has secrets by
 * name. Nobody is told of the first. Returns the same. */
int asked_add_here(struct asked_settings *asked);
/* Whether the present directory is not shown in @session, with a sentence of why, and what helps. */
bool asked_left_out(const struct asked_settings *asked, const struct lair_session *session, char *text,
		    size_t size);
void asked_deinit(struct asked_settings *asked);
