/* The places: all that a session can see of the file system, as one sorted list. The mount tree, the Landlock
 * rules and the audit hook's explanations are all made from it, so the three cannot disagree. */
#pragma once

#include "proto/message.h"

enum place_kind {
	PLACE_READ,	 /* a directory or file, read-only */
	PLACE_WRITE,	 /* a directory, writable; text: which one is mounted there, if it is another */
	PLACE_HIDE,	 /* a directory in a readable or writable one, covered by an empty one */
	PLACE_LINK,	 /* a symbolic link of the host; text: its target */
	PLACE_TEXT,	 /* a small file that Lair writes; text: its content */
	PLACE_DEVICES,	 /* /dev with the harmless devices */
	PLACE_PROC,	 /* a fresh /proc */
	PLACE_SCRATCH,	 /* the session's own /tmp */
	PLACE_SHM,	 /* the session's own /dev/shm, which shares one size with /tmp */
	PLACE_TERMINALS, /* the session's own /dev/pts, with the devices that lead to it */
	_PLACE_KIND_N,
};

struct place {
	char *path; /* absolute; no part of it is a symbolic link, but PLACE_LINK is one itself */
	char *text;
	enum place_kind kind;
	bool pinned; /* it must still be the directory with this device and inode, as when the settings were read */
	uint64_t device, inode;
};

struct places {
	struct place *items; /* sorted: a place comes before everything in it; no path twice */
	size_t n;
};

enum {
	_PLACE_E_SUCCESS,
	PLACE_E_CHANGED, /* the directory is another one than when the settings were read */
	PLACE_E_OWN,	 /* a place that sessions see holds laird's own files directly */
};

/* Adds the system's libraries, @language_dirs (NULL-terminated; missing ones are left out), and the profile's
 * directories. Directories with laird's own files are hidden. Returns 0; or PLACE_E_... or -errno with the wrong
 * path in @culprit. */
int places_init(struct places *places, const struct configure_message *configure, char *const language_dirs[],
		char *culprit, size_t culprit_size);
/* Writes the text for error @r of places_init about @culprit: a sentence, or the reason of an errno. */
void places_explain(char *text, size_t size, int r, const char *culprit);
void places_deinit(struct places *places);

/* Add a place. If there is one with this path, it gets the stronger of both kinds. @path and @text are copied.
 * Returns 0 or -errno. */
int places_add(struct places *places, const char *path, enum place_kind kind, const char *text);

/* Opens the place as an O_PATH descriptor, which the caller owns. If the place is pinned, no link is followed on
 * the way. Returns 0, PLACE_E_CHANGED or -errno. */
int place_open(int *fdp, const struct place *place);

/* The innermost place that is or holds @path; NULL if there is none. Borrowed. */
const struct place *places_find(const struct places *places, const char *path, size_t size);

/* Whether @inner is @outer or lies in it. */
bool path_within(const char *inner, const char *outer);
