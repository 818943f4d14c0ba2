/* The copier: laird executed once more, for one saved state. It copies files, computes digests, and waits until a
 * file is on the disk, so the router waits for no disk. It ends when the router closes its channel, or dies. */
#pragma once

#include "proto/event.h"
#include "proto/sha256.h"

#include <sys/types.h>

/* The descriptor at which the process finds its channel. */
#define COPIER_FD 3

struct copier {
	struct event_loop *loop;
	int channel;
	struct event_source source;
	/* @r: 0 or -errno; -EPIPE: the process has died. @digest: of a copy. */
	void (*on_done)(struct copier *copier, int r, const uint8_t *digest);
};

#define COPIER_NONE ((struct copier){.channel = -1, .source = EVENT_SOURCE_NONE})

struct copy_order {
	uint64_t from_at, to_at, size;
	uint64_t skip; /* so many of these bytes are not in the digest */
};

/* Start the process. Returns 0 or -errno. */
int copier_begin(struct copier *copier, struct event_loop *loop);
/* Copy to @to, or with -1 only compute the digest. Both descriptors stay the caller's. @on_done gets -EBADMSG if
 * @from is shorter. One order at a time: @on_done is called in a later round, and may give the next one. Returns 0
 * or -errno. */
int copier_copy(struct copier *copier, const struct copy_order *order, int from, int to,
		void (*on_done)(struct copier *copier, int r, const uint8_t *digest));
/* Have what was written to @fd on the disk: a file, or a directory with those above it. */
int copier_sync(struct copier *copier, int fd,
		void (*on_done)(struct copier *copier, int r, const uint8_t *digest));
/* End the process; @on_done is not called any more. Harmless on COPIER_NONE. */
void copier_end(struct copier *copier);

/* The process itself. Returns its exit status. */
int copier_run(void);
