/* The files of one state of a workspace: their names, what the kernel says of them, and the place of their contents
 * in the store. States that have files in common share their entries. */
#pragma once

#include "store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

struct file {
	unsigned uses;
	mode_t mode;				 /* with the type */
	bool changing;				 /* nothing tells when it is written to, as through a map */
	bool unkept;				 /* its content is not in the store */
	uint64_t inode, links, size, stored;	 /* stored: bytes on the disk */
	struct timespec modified, changed, born; /* born: zeroes where the file system does not tell */
	struct blob *content;			 /* of a file that is kept and not empty */
	char *target;				 /* of a symbolic link */
	char path[];				 /* beneath the workspace */
};

struct manifest {
	unsigned uses;
	size_t n, room;
	struct file **files; /* in the order of their paths, so what lies in a directory comes after it */
	bool changing;	     /* some of them are */
	bool partial;	     /* there were more, or some could not be looked at */
	char why[160];	     /* the first that was not kept; "": all were */
};

/* What the kernel tells of @name in @directory, which lies at @path. NULL with errno set. */
struct file *file_look(int directory, const char *path, const char *name);
/* What it tells of @fd now. Returns 0 or -errno. */
int file_look_again(struct file *file, int fd);
/* Whether somebody may write to @fd without a sign of it: has it open for writing, or mapped so. */
bool file_is_held(int fd);
/* Whether the file system of @fd sets no time when a page is written to that was mapped, and read, before. */
bool files_are_timeless(int fd);
struct file *file_use(struct file *file);
struct file *file_drop(struct store *store, struct file *file);
/* Whether both are one file of the file system. */
bool file_same(const struct file *a, const struct file *b);
/* Whether nobody has touched it in between, as far as the kernel tells. */
bool file_untouched(const struct file *now, const struct file *then);
/* From now on modes and times are not compared: where they cannot be set, they cannot be brought back either. */
void files_look_fixed(void);
/* Whether both are the same to somebody who looks at them, but for links. */
bool file_alike(const struct file *now, const struct file *then);

struct manifest *manifest_new(void);
struct manifest *manifest_use(struct manifest *manifest);
struct manifest *manifest_drop(struct store *store, struct manifest *manifest);
/* Takes @file, whatever comes of it. Returns 0 or -ENOMEM. */
int manifest_add(struct store *store, struct manifest *manifest, struct file *file);
void manifest_sort(struct manifest *manifest);
/* Where a file of that path is or would be. */
size_t manifest_place(const struct manifest *manifest, const char *path);
struct file *manifest_find(const struct manifest *manifest, const char *path);
/* Its files in the order of their inodes; NULL if there is no memory. The caller's to free. */
struct file **manifest_inodes(const struct manifest *manifest);
/* Where in that order the files of @inode begin. */
size_t inodes_place(struct file *const *files, size_t n, uint64_t inode);
/* Note why something is not kept; the first time counts. */
void manifest_lacks(struct manifest *manifest, const char *path, const char *why);
