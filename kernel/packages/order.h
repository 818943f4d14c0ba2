/* What a builder is told to do: one set of packages. */
#pragma once

#include "proto/message.h"
#include "proto/paths.h"

#include <sys/types.h>

struct order {
	char packages[PATH_SIZE]; /* the directory of all sets */
	char work[PATH_SIZE];	  /* an own one, which whoever has ordered it removes */
	char python[PATH_SIZE], uv[PATH_SIZE];
	char base[80];	/* the set that it grows from; "": none */
	char newer[64]; /* nothing published from then on; "": anything */
	struct bytes requirements, deny;
	uint64_t size;
	bool scarce;
	uid_t uid; /* on the host; 0: our own */
};

/* Where the parts of it are, below @work. */
#define WORK_LOG "log"
#define WORK_LOCK "lock"
#define WORK_PINS "pins.in"
#define WORK_WANTED "wanted.in"
#define WORK_HOME "home"
#define WORK_TARGET "target"

/* The bytes by which the cage and the builder talk. */
enum {
	UV_RESOLVED = 'r', /* the lock is there; it waits for UV_GO_ON */
	UV_DONE = 'd',
	UV_FAILED = 'f',
	UV_NO_CAGE = 'c', /* the reason follows */
	UV_GO_ON = 'g',
};
