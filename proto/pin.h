/* A directory of the host that settings name. It is looked up once, following links. From then on it is its real
 * path and its identity, so nothing that takes its place later is mistaken for it. */
#pragma once

#include "proto/base.h"

enum {
	_PIN_E_SUCCESS,
	PIN_E_CHANGED, /* another directory is there now, or a link leads there */
};

struct pin {
	char *path; /* absolute, and without links in it; NULL: it did not exist */
	int fd;	    /* O_PATH; as long as it is open, no other file can get this identity */
	uint64_t device, inode;
};

#define PIN_NONE ((struct pin){.fd = -1})

/* Look @path up. It may be a file, unless it must be a @directory. Returns 0, PIN_E_CHANGED (at this very
 * moment) or -errno; then @pin is PIN_NONE. */
int pin_take(struct pin *pin, const char *path, bool directory);
void pin_drop(struct pin *pin);

/* An O_PATH descriptor, the caller's, of the directory of that identity, if it is still at @path and no link
 * leads there. Returns 0, PIN_E_CHANGED or -errno. */
int pin_open(int *fdp, const char *path, uint64_t device, uint64_t inode);
