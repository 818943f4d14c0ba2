/* Files in a directory that somebody hostile writes to at the same time: a session's workspace. Whatever the other
 * side swaps, links or grows meanwhile, nothing is reached that does not lie beneath the directory, nothing but
 * regular files and directories is ever opened, and no call blocks or takes longer than FILE_CHUNK bytes do. */
#pragma once

#include "proto/wire.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FILE_CHUNK ((size_t)1 << 20)
#define FILE_DEPTH_MAX 64
#define FILE_LIST_MAX 1000

enum {
	_FILE_E_SUCCESS,
	FILE_E_PATH,   /* absolute, or with "..", or too long or too deep */
	FILE_E_KIND,   /* not a regular file, or not a directory; the status tells what it is */
	FILE_E_LINKED, /* a file of more than one name: the others may lie anywhere */
	FILE_E_SIZE,   /* larger than allowed */
	FILE_E_SPARSE, /* nearly all holes: next to nothing in there would be large out here */
	FILE_E_TAKEN,  /* the new file is not there any more */
};

/* @path as the functions below want it: relative, without "." and empty components; "." for the directory itself.
 * What lies beneath @root, an absolute path or NULL, may be given with it. Returns 0 or FILE_E_PATH. */
int file_path(char out[PATH_MAX], struct bytes path, const char *root);

/* The directory @path beneath @root, as an O_PATH descriptor, the caller's. Symbolic links are not followed
 * anywhere. Returns 0, FILE_E_KIND or -errno (-ELOOP: a symbolic link on the way). */
int file_directory(int *fdp, int root, const char *path);

/* Open a regular file to read. @size_max: 0 = any. @status is set whenever the return is not negative. Returns 0,
 * FILE_E_KIND, FILE_E_LINKED, FILE_E_SIZE, FILE_E_SPARSE or -errno. */
int file_open(int *fdp, struct stat *status, int root, const char *path, uint64_t size_max);

/* At most @size bytes from @offset. Returns how many, or -errno. */
ssize_t file_read(int fd, char *data, size_t size, uint64_t offset);

/* Append an array of at most FILE_LIST_MAX file records, what is in the directory @path, to @records. @after: 0, or
 * *@nextp of the part before; *@nextp is 0 after the last. Returns 0, FILE_E_KIND or -errno. */
int file_list(msgpack_sbuffer *records, uint64_t *nextp, int root, const char *path, uint64_t after);

/* "a symbolic link". Static. */
const char *file_kind(mode_t mode);

/* Make @path and the directories above it, as far as they are missing, for @uid (0 = ourselves). */
int file_make_directory(int root, const char *path, uid_t uid);

/* A file that is being written under a name nobody looks for, and takes its own when it is complete. */
struct new_file {
	int directory, fd;
	uint64_t size;
	char above[PATH_MAX], name[NAME_MAX + 1], temporary[40];
};

#define NEW_FILE_NONE ((struct new_file){.directory = -1, .fd = -1})

/* Begin; missing directories above @path are made. Returns 0, FILE_E_KIND (@path is "." or a directory) or -errno.
 */
int new_file_begin(struct new_file *file, int root, const char *path, uid_t uid);
int new_file_append(struct new_file *file, struct bytes data);
/* Give it its @mode and its name, replacing what had that. Returns 0, FILE_E_KIND (a directory has), FILE_E_TAKEN
 * or -errno. */
int new_file_commit(struct new_file *file, mode_t mode);
/* What has not been committed goes. */
void new_file_deinit(struct new_file *file);
/* So does what another process had begun, if it still lies there: @temporary in the directory @above. */
void new_file_remove(int root, const char *above, const char *temporary);
