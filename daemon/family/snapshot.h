/* A family as a record: everything that the next router must know about a warden, its sessions and its
 * interpreters. */
#pragma once

#include "vault/records.h"

struct session;
struct warden;

/* The memory that making one takes, to be used again. */
enum snapshot_part {
	PART_INTERPRETERS,
	PART_SESSIONS,
	PART_MESSAGES,
	PART_QUEUE,
	PART_CELL,
	PART_CHECKPOINTS,
	PART_OPERATIONS,
	PART_OPERATION,
	PART_RESETS,
	PART_CLOSERS,
	PART_PARTS,
	_PART_N,
};

struct snapshot {
	msgpack_sbuffer parts[_PART_N];
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_deinit(struct snapshot *snapshot);

/* *@recordp points into @snapshot and @warden until either changes. Returns 0 or -ENOMEM. */
int snapshot_take(struct snapshot *snapshot, struct family_record *recordp, struct warden *warden);
