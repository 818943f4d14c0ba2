/* What there is to say in the audit log, from the router to the scribe, who writes it: a ring of records in a
 * memory file. It costs the router no system call and no waiting, and what has been put into it is there whichever
 * of the two dies. A record is a line of the log. */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"

#include <stdatomic.h>

#define AUDIT_RING_SIZE ((uint64_t)64 << 20)
#define AUDIT_TEXTS 4 /* the first is the name of the session */
#define AUDIT_ABSENT UINT32_MAX

enum audit_event { AUDIT_OPEN, AUDIT_EXEC, AUDIT_BLOCKED, AUDIT_END, _AUDIT_N };

struct audit_record {
	uint32_t size; /* with its texts, and up to the next one */
	uint32_t event;
	double time;
	uint64_t number; /* of the cell; at the end of the session of all cells */
	uint64_t missed; /* lines before it for which there was no room, since the ring was made */
	uint64_t uid;
	uint32_t sizes[AUDIT_TEXTS]; /* or AUDIT_ABSENT */
	char texts[];		     /* one after the other */
};

/* Each number has one that stores it, and only goes up. Positions count from when the ring was made. */
struct audit_page {
	_Atomic uint64_t put, lines; /* the router's: the end of what is in there, and how many lines that were */
	_Atomic uint64_t missed;     /* the router's: lines for which there was no room */
	_Atomic uint64_t taken, written; /* the scribe's: up to where, and how many lines, it is done */
	_Atomic uint64_t freed;		 /* the scribe's: up to there the kernel has the memory back */
	_Atomic uint64_t told;		 /* the scribe's: of those that are missed, how many the log tells of */
	_Atomic uint64_t tried;		 /* the scribe's: how many have begun with what is at @taken */
	_Atomic uint32_t asleep;	 /* set by the scribe, cleared by the router that wakes it */
	uint64_t device, inode;		 /* the file that is written */
	char path[PATH_SIZE];
};

struct audit_ring {
	int fd; /* -1: none */
	struct audit_page *page;
	char *data;
	uint64_t reserved; /* up to there the router has memory */
};

#define AUDIT_RING_NONE ((struct audit_ring){.fd = -1})

enum {
	_AUDIT_RING_E_SUCCESS,
	AUDIT_RING_E_FULL,
	AUDIT_RING_E_EMPTY,
};

/* A new one; or one from its file, which becomes the ring's if it is one. Returns 0, -EBADMSG (no ring) or -errno.
 */
int audit_ring_new(struct audit_ring *ring);
int audit_ring_open(struct audit_ring *ring, int fd);
void audit_ring_close(struct audit_ring *ring);

/* The router: how many bytes could be put. */
uint64_t audit_ring_room(const struct audit_ring *ring);
/* Put @record with @texts; sizes and what is missed are filled in here. Returns 0, AUDIT_RING_E_FULL or -errno:
 * then the line counts as missed. */
int audit_ring_put(struct audit_ring *ring, const struct audit_record *record,
		   const struct bytes texts[static AUDIT_TEXTS]);

/* The scribe: a copy of what is next, the caller's to free, of which all sizes are right. Returns 0,
 * AUDIT_RING_E_EMPTY, -EBADMSG (no record) or -errno. */
int audit_ring_next(const struct audit_ring *ring, struct audit_record **recordp);
/* It is written. */
void audit_ring_take(struct audit_ring *ring, const struct audit_record *record);
/* All that is in there is given up. Returns how many lines. */
uint64_t audit_ring_give_up(struct audit_ring *ring);

/* Anybody: how many lines of a ring's file are not in the log, with those that it does not tell of. */
uint64_t audit_ring_left(int fd);
