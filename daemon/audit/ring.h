/* The ring of the audit log: records in a memory file, from the router to the scribe, who writes them. The
 * router puts a record without a system call and without waiting. If either process dies, the record is still
 * there. A record is a line of the log. */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"

#include <stdatomic.h>

#define AUDIT_RING_SIZE ((uint64_t)64 << 20)
#define AUDIT_TEXTS 8 /* the first is the name of the session */
#define AUDIT_ABSENT UINT32_MAX

enum audit_event { AUDIT_OPEN, AUDIT_EXEC, AUDIT_BLOCKED, AUDIT_END, AUDIT_CODE, AUDIT_CALL, _AUDIT_N };

struct audit_record {
	uint32_t size; /* of the record with its texts, up to the next one */
	uint32_t event;
	double time;
	uint64_t number; /* of the cell; at the end of the session of all cells */
	uint64_t missed; /* lines before it for which there was no room, since the ring was made */
	uint64_t uid;
	uint32_t sizes[AUDIT_TEXTS]; /* or AUDIT_ABSENT */
	char texts[];		     /* one after the other */
};

/* Each number has one writer, and only goes up. Positions count from when the ring was made. */
struct audit_page {
	_Atomic uint64_t put,
		lines;		 /* by the router: the end of the ring's content, and how many lines that were */
	_Atomic uint64_t missed; /* by the router: lines for which there was no room */
	_Atomic uint64_t taken, written; /* by the scribe: up to where, and how many lines, it has written */
	_Atomic uint64_t freed;		 /* the scribe's: up to there the kernel has the memory back */
	_Atomic uint64_t told;		 /* by the scribe: how many of the missed lines the log tells of */
	_Atomic uint64_t left_out;	 /* by the scribe: how many lines it could not make of what is here */
	_Atomic uint64_t tried;		 /* by the scribe: how many scribes have begun with the record at @taken */
	_Atomic uint32_t asleep;	 /* set by the scribe, cleared by the router that wakes it */
	uint64_t device, inode;		 /* by the scribe: the file that it writes; 0: none has been opened */
	char path[PATH_SIZE];		 /* by the router */
};

struct audit_ring {
	int fd; /* -1: none */
	struct audit_page *page;
	char *data;
	uint64_t reserved; /* the router has memory up to there */
};

#define AUDIT_RING_NONE ((struct audit_ring){.fd = -1})

enum {
	_AUDIT_RING_E_SUCCESS,
	AUDIT_RING_E_FULL,
	AUDIT_RING_E_EMPTY,
};

/* A new ring; or an old one from its file, which the ring owns then. Returns 0, -EBADMSG (no ring) or -errno. */
int audit_ring_new(struct audit_ring *ring);
int audit_ring_open(struct audit_ring *ring, int fd);
void audit_ring_close(struct audit_ring *ring);

/* For the router: how many bytes there is room for. */
uint64_t audit_ring_room(const struct audit_ring *ring);
/* Put @record with @texts; its sizes and the number of missed lines are filled in here. Returns 0,
 * AUDIT_RING_E_FULL or -errno: then the line counts as missed. */
int audit_ring_put(struct audit_ring *ring, const struct audit_record *record,
		   const struct bytes texts[static AUDIT_TEXTS]);

/* For the scribe: a copy of the next record, with checked sizes, for the caller to free. Returns 0,
 * AUDIT_RING_E_EMPTY, -EBADMSG (no record) or -errno. */
int audit_ring_next(const struct audit_ring *ring, struct audit_record **recordp);
/* The record is written: take it out. */
void audit_ring_take(struct audit_ring *ring, const struct audit_record *record);
/* Give up everything in the ring. Returns how many lines. */
uint64_t audit_ring_give_up(struct audit_ring *ring);

/* For anybody: how many lines of a ring's file are not in the log, including those that the log does not tell
 * of. */
uint64_t audit_ring_left(int fd);
