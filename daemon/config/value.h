/* The values of sessions.conf: how each type of setting is read, checked, written back and released. Which settings
 * there are is in keys.c. */
#pragma once

#include "proto/base.h"

#include <stdio.h>

enum value_type {
	VALUE_INT,	    /* uint64_t */
	VALUE_SIZE,	    /* uint64_t, bytes: 512M */
	VALUE_PROCESSORS,   /* uint64_t, thousandths: 1.5, 1500m */
	VALUE_DURATION,	    /* uint64_t, microseconds: 1h30m */
	VALUE_RANGE,	    /* two uint64_t: 1000-2000 */
	VALUE_MODE,	    /* uint64_t: 0660, of a file that its owner may read and write */
	VALUE_FLAG,	    /* bool: on, off */
	VALUE_CHOICE,	    /* unsigned: which of @words */
	VALUE_WORD,	    /* char *: one of @words */
	VALUE_PATH,	    /* char *: absolute, or below ~ */
	VALUE_SOCKET,	    /* a path that fits a socket's address */
	VALUE_LOG,	    /* "stderr" or a path */
	VALUE_LANGUAGE,	    /* char *: one that has a program */
	VALUE_PYTHON,	    /* a path of something that is there */
	VALUE_GROUP,	    /* the number of a group; or the name of one that is not there */
	VALUE_NETWORK,	    /* "off", "host" or "tcp:PORT,..." */
	VALUE_PATTERNS,	    /* struct string_list of names of functions, with * and ? */
	VALUE_MODULES,	    /* struct string_list of dotted names, "?" for one that may be missing */
	VALUE_ENVIRONMENT,  /* of NAME=value */
	VALUE_DIRECTORIES,  /* of paths of existing directories */
	VALUE_USERS,	    /* of numbers of users; or names of those who are not there */
	VALUE_GROUPS,	    /* the same of groups */
	VALUE_REQUIREMENTS, /* of packages, see requirement.h */
	VALUE_DATE,	    /* char *: 2026-01-31, or 7d for so many days before now */
	VALUE_RULES,	    /* of rules about code, one a line */
};

struct key {
	const char *name;
	enum value_type type;
	size_t offset;	     /* in the struct the section is kept in */
	const char *initial; /* as it would stand in the file; NULL = empty */
	uint64_t min, max;   /* of numbers */
	bool optional;	     /* numbers: 0 and "off" are allowed; strings: empty is, and is NULL */
	const char *absent;  /* numbers: what stands for 0 in place of "off" */
	const char *all;     /* numbers: what stands for VALUE_ALL; NULL: nothing */
	const char *const *words;
	bool at_start;	 /* read when laird starts, not when it reads its settings again */
	const char *doc; /* what it means, in one line */
};

#define VALUE_ALL UINT64_MAX /* of numbers: as many as there are */

#define VALUE_REASON_SIZE 256

/* Read @text into the place @key has in @section, which must be zeroed or set by this function before. A list is
 * added to. Returns 0; -EINVAL with @reason saying what was expected; or -ENOMEM. */
int value_parse(void *section, const struct key *key, const char *text, char reason[static VALUE_REASON_SIZE]);

/* Whether the host has what the value names. Returns 0, or -EINVAL with @reason. */
int value_look(const void *section, const struct key *key, char reason[static VALUE_REASON_SIZE]);

/* Whether the next line may go on with such a value. */
bool value_is_list(const struct key *key);

/* Write "name = value" so that reading it gives the same value. */
void value_print(const void *section, const struct key *key, FILE *out);

/* The value alone, as it is written there; the caller's to free. Returns 0 or -ENOMEM. */
int value_text(char **textp, const void *section, const struct key *key);

/* Release what the value owns and zero it. */
void value_free(void *section, const struct key *key);

/* The number of a VALUE_INT, VALUE_SIZE or VALUE_DURATION as it is printed. */
void value_show(char *text, size_t size, const void *section, const struct key *key);
