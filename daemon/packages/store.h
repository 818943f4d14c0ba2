/* The store of packages: a directory of sets. Sessions see a set, and once it is there nobody writes to it. Beside
 * the sets are the directories of builders, and for each request the name of its set. */
#pragma once

#include "proto/base.h"
#include "proto/pin.h"
#include "proto/sha256.h"
#include "proto/wire.h"

#include <limits.h>

struct package_store {
	char path[PATH_MAX]; /* "": there is none */
	int fd;		     /* of the directory; -1 */
};

/* Make what is missing of it, and have removed what builders before us have left. @configured: the setting, or
 * NULL. Returns 0 or -errno; then it is the empty one. */
int package_store_open(struct package_store *store, const char *configured, const char *socket);
void package_store_close(struct package_store *store);

/* Where the sets are. */
int package_store_sets(char path[static PATH_MAX], const char *configured, const char *socket);

/* The name of the set that was made of @key, if it is there. */
bool package_store_find(char set[static SHA256_HEX_SIZE], const struct package_store *store, const char *key);
/* Whether there is such a set; @set may be anything. */
bool package_store_has(const struct package_store *store, struct bytes set);
/* From now on it is found. Returns 0 or -errno. */
int package_store_note(const struct package_store *store, const char *key, const char *set);
/* What is known of a set. */
struct package_record {
	const char *set;
	uint64_t size;	       /* 0: not known */
	double made;	       /* seconds since the epoch */
	bool used;	       /* by somebody, now; or nobody can tell */
	struct bytes projects; /* an array */
};
/* Each set that there is, until @fn returns false. */
void package_store_each(const struct package_store *store,
			bool (*fn)(void *userdata, const struct package_record *record), void *userdata);
/* The bytes that all sets take, and those that uv keeps, as its last builder has added them up. */
uint64_t package_store_size(const struct package_store *store, uint64_t *cachep);
/* Have uv keep nothing. No builder may run. */
void package_store_drop_cache(const struct package_store *store);
/* Remove the set unless somebody has it. Returns 0, -EBUSY or -errno. */
int package_store_remove(const struct package_store *store, const char *set);
/* Forget what was asked for sets that are not there any more. */
void package_store_forget(const struct package_store *store);
/* An empty directory for a builder. Returns 0 or -errno. */
int package_store_work(char path[static PATH_MAX], const struct package_store *store);
