/* Files in a directory that somebody hostile writes to at the same time: a session's workspace. Whatever the
 * other side swaps, links or grows meanwhile: nothing outside the directory is reached, only regular files and
 * directories are opened, and no call blocks or takes longer than FILE_CHUNK bytes do. */
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
	FILE_E_KIND,   /* not a regular file, or not a directory; the status says which kind it is */
	FILE_E_LINKED, /* a file of more than one name: the others may lie anywhere */
	FILE_E_SIZE,   /* larger than allowed */
	FILE_E_SPARSE, /* nearly all holes: it takes next to nothing there, and would be large here */
	FILE_E_TAKEN,  /* the new file is not there any more */
};

/* Put @path into the form that the functions below need: relative, without "." and empty components; "." for the
 * directory itself. If @root is an absolute path, @path may begin with it; NULL: it may not. Returns 0 or
 * FILE_E_PATH. */
int file_path(char out[PATH_MAX], struct bytes path, const char *root);

/* The directory @path beneath @root, as an O_PATH descriptor, the caller's. Symbolic links are not followed
 * anywhere. Returns 0, FILE_E_KIND or -errno (-ELOOP: a symbolic link on the way). */
int file_directory(int *fdp, int root, const char *path);

/* Open a regular file to read. @size_max: 0 = any. @status is set whenever the return is not negative. Returns 0,
 * FILE_E_KIND, FILE_E_LINKED, FILE_E_SIZE, FILE_E_SPARSE or -errno. */
int file_open(int *fdp, struct stat *status, int root, const char *path, uint64_t size_max);

/* At most @size bytes from @offset. Returns how many, or -errno. */
ssize_t file_read(int fd, char *data, size_t size, uint64_t offset);

/* Add the content of the directory @path to @records, at most FILE_LIST_MAX file records. @after: 0, or
 * *@nextp of the call before; *@nextp is 0 after the last. Returns 0, FILE_E_KIND or -errno. */
int file_list(struct wire_list *records, uint64_t *nextp, int root, const char *path, uint64_t after);

/* "a symbolic link". Static. */
const char *file_kind(mode_t mode);

/* Make @path and missing directories above it, for @uid (0 = ourselves). */
int file_make_directory(int root, const char *path, uid_t uid);

/* A file that is written under a random name, and takes its own name when it is complete. */
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
/* Give it its @mode and its name, and replace a file of that name. Returns 0, FILE_E_KIND (a directory has the
 * name), FILE_E_TAKEN or -errno. */
int new_file_commit(struct new_file *file, mode_t mode);
/* Removes the file if it has not been committed. */
void new_file_deinit(struct new_file *file);
/* Remove a file that another process had begun, if it is still there: @temporary in the directory @above. */
void new_file_remove(int root, const char *above, const char *temporary);
