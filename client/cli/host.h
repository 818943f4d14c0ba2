/* Checks of lair doctor beside the cage. */
#pragma once

#include "cli.h"

#define HOST_LINES 8

enum host_state { HOST_OK, HOST_WARN, HOST_FAIL };

struct host {
	struct host_line {
		enum host_state state;
		char text[640];
		const char *command; /* the command that fixes it, or NULL */
	} lines[HOST_LINES];
	size_t n;
};

/* It asks uv for its index, which takes a moment, and changes nothing. */
void host_look(struct host *host);
/* ok, warn or fail */
const char *host_word(enum host_state state);
