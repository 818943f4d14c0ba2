/* The file of tokens: a line for each, with the hash of a secret and its limits. `lair token` writes it, `lair
 * serve` reads it. */
#pragma once

#include "proto/base.h"

#include <sys/stat.h>

#define TOKEN_HASH_SIZE 32
/* "lair_" and 32 bytes in base 64, terminated. */
#define TOKEN_SIZE 64
#define TOKEN_NAME_MAX 32
#define TOKEN_WHY_SIZE 256

struct token {
	struct token *next;
	char *name;
	char **profiles;	     /* that it may name, the first is its default; ended by NULL; NULL: any */
	uint64_t sessions, requests; /* at once; 0: any */
	double rate;		     /* requests a second; 0: any */
	unsigned char hash[TOKEN_HASH_SIZE];
};

/* Where the file is if nothing else is said: $LAIR_TOKENS, or tokens in lair's directory of settings of the user.
 */
int tokens_path(char path[static 4096]);

/* Read the file, in its order. Only its owner, this user or root, may have write access. *st: the file's.
 * Returns 0 or -errno, with a sentence. */
int tokens_read(struct token **tokensp, const char *path, struct stat *st, char why[static TOKEN_WHY_SIZE]);
struct token *tokens_free(struct token *tokens);
/* One line of it; fuzzed. NULL if it is none, or without memory. */
struct token *token_parse(const char *line);

/* Make a secret for @token, whose other fields are set, and add it. Returns 0 or -errno: -EEXIST, the name is used;
 * -EINVAL, it is none, or a profile is none. */
int tokens_add(const char *path, struct token *token, char secret[static TOKEN_SIZE],
	       char why[static TOKEN_WHY_SIZE]);
/* -ENOENT: there is none of that name. */
int tokens_revoke(const char *path, const char *name, char why[static TOKEN_WHY_SIZE]);
void token_hash(unsigned char hash[static TOKEN_HASH_SIZE], const char *secret);
