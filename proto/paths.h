/* The usual places of files: the same for the daemon and for every client. */
#pragma once

#include "proto/base.h"

#define PATH_SIZE 4096
/* sun_path, less the terminator: ZeroMQ refuses longer ones. */
#define SOCKET_PATH_MAX 107

/* $LAIR_SOCKET, else $XDG_RUNTIME_DIR/lair/socket, else /run/lair/socket for root, else /tmp/lair-UID/socket.
 * Root ignores XDG_RUNTIME_DIR. Returns 0 or -ENAMETOOLONG. */
int path_default_socket(char path[static PATH_SIZE]);

/* The directory @path is in; "." if it names none. Returns 0 or -ENAMETOOLONG. */
int path_directory(char directory[static PATH_SIZE], const char *path);

/* Make the directory of @socket 0700 if it is missing; refuse one that is not ours or that others may write to.
 * Returns 0 or -errno (-EPERM for a directory that cannot be trusted). */
int path_make_socket_dir(const char *socket);

/* The program @name beside the running executable. Returns 0 or -errno. */
int path_sibling(char path[static PATH_SIZE], const char *name);

/* The program of lair-kernel that speaks @language, beside the running executable. Returns 0, -errno, or -EINVAL if
 * that cannot be the name of a language. */
int path_language(char path[static PATH_SIZE], const char *language);
/* The languages that have one there, "python" first: "python, ...". Cut if there is no room. */
void path_languages(char *text, size_t size);
#define LANGUAGE_OWN "python"
#define LANGUAGE_MAX 10 /* a process has it in its name */

/* A number that stands for @path where a whole path cannot: FNV-1a. */
uint64_t path_hash(const char *path);
