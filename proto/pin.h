/* A directory of the host that settings name. It is looked up once, with links; from then on it is known by its
 * real path and by its identity, so that nothing is taken for it that stands in its place later. */
#pragma once

#include "proto/base.h"

enum {
	_PIN_E_SUCCESS,
	PIN_E_CHANGED, /* something else is there now, or a link leads there */
};

struct pin {
	char *path; /* absolute, and without links in it; NULL: it was not there */
	int fd;	    /* O_PATH; as long as it is open, nothing else is given that identity */
	uint64_t device, inode;
};

#define PIN_NONE ((struct pin){.fd = -1})

/* Look @path up, which may be a file if it need not be a @directory. Returns 0, PIN_E_CHANGED (at this very moment)
 * or -errno; then @pin is PIN_NONE. */
int pin_take(struct pin *pin, const char *path, bool directory);
void pin_drop(struct pin *pin);

/* An O_PATH descriptor, the caller's, of the directory of that identity, if it still is at @path and no link leads
 * there. Returns 0, PIN_E_CHANGED or -errno. */
int pin_open(int *fdp, const char *path, uint64_t device, uint64_t inode);
