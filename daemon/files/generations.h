/* The store of saved states as a directory: a file for each user and id, the one that it replaced (.before), and
 * those that were found damaged and are kept aside (.damaged-1 and so on). They all expire, and all count for their
 * user. */
#pragma once

#include "proto/base.h"

#include <sys/stat.h>
#include <sys/types.h>

struct saved_store {
	const char *configured, *socket; /* borrowed: where it is */
	/* How many files one user may have. Which are deleted first: those that were replaced or damaged, of
	 * these and of the others the first to expire. */
	uint64_t per_user;
};

#define SAVED_NAME_SIZE 128
#define SAVED_BEFORE ".before"
#define SAVED_DAMAGED ".damaged-"

/* The name of the file, and its suffix "" or SAVED_BEFORE. */
void saved_name(char name[static SAVED_NAME_SIZE], uid_t owner, struct bytes session, const char *suffix);

/* The directory of the store. It must be ours alone, or it is not used. Returns 0 or -errno. */
int saved_store_open(int *fdp, const struct saved_store *store, bool make);

/* Called for every file of the store; not for what is half written, nor for what begins with a dot. */
void saved_store_walk(int directory,
		      void (*fn)(int directory, const char *name, const struct stat *status, void *userdata),
		      void *userdata);

/* Its time of modification is the time when it expires. */
bool saved_expired(const struct stat *status);

/* A name for a file that is being written. */
#define SAVED_WRITING_SIZE 32
void saved_writing_name(char name[static SAVED_WRITING_SIZE]);

/* The file @writing is the state @owner has saved of @session from now on. The one before it is kept as such, if
 * the file system has hard links. At no moment there is none. Returns 0 or -errno. */
int saved_put(int directory, const char *writing, uid_t owner, struct bytes session);
/* There may be one file too many now; that of @session stays. */
void saved_make_room(int directory, const struct saved_store *store, uid_t owner, struct bytes session);

/* The file @fd of @session is damaged: it keeps its content under another name, and the one before it takes its
 * place.
 */
void saved_set_aside(int directory, int fd, uid_t owner, struct bytes session);
