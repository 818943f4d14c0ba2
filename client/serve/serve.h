/* `lair serve`: sessions over HTTP. A process of its own, which is a client of laird like any other. */
#pragma once

#include "proto/base.h"

#include "lair.h"

struct door;

struct serve_options {
	struct lair_options lair;
	const struct door *const *doors; /* in the order in which they are asked; NULL ends them */
	const char *listen;		 /* HOST:PORT, [HOST]:PORT or PORT; NULL: 127.0.0.1:8888 */
	const char *tokens; /* the file of tokens; NULL: none are needed, and only loopback is listened on */
	const char *certificate, *key; /* PEM files, both or none: TLS */
	const char *origins;	       /* of other sites' pages that may ask, with commas between them; or NULL */
};

/* Returns when SIGTERM or SIGINT comes: 0, or an error, which was told on stderr. */
int serve_run(const struct serve_options *options);
