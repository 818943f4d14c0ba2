/* While @busy, the thread owns the lines, the descriptor and what is known of the file; else the caller does. The
 * thread frees the file, since the caller does not wait for a blocked one. */
#include "append.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define STACK_SIZE (64 << 10)

struct append_file {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy, closing;
	int result; /* of the last append */
	char *path, *lines;
	size_t size;
	int fd;
	bool torn; /* the file does not end with the end of a line */
};

/* ---- the thread ---- */

/* A writer before us may have been killed in the middle of a line. */
static bool ends_in_a_line(int file)
{
	char path[32], last = '\n';
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 || fstat(fd, &status) < 0 || status.st_size == 0 ||
	       pread(fd, &last, 1, status.st_size - 1) != 1 || last == '\n';
}

/* A lease of another process is waited for; a FIFO is not. */
static int file_open(struct append_file *file)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC;
	_cleanup_(fd_closep) int fd = open(file->path, flags | O_NONBLOCK, 0600);
	struct stat status;

	if (fd < 0 && errno == EWOULDBLOCK)
		fd = open(file->path, flags, 0600);
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	file->torn = !ends_in_a_line(fd);
	file->fd = steal_fd(&fd);
	return 0;
}

static int append(struct append_file *file)
{
	int r = file->fd < 0 ? file_open(file) : 0;
	ssize_t n;

	if (r || file->size == 0)
		return r;
	if (file->torn && write(file->fd, "\n", 1) != 1)
		return -errno;
	file->torn = false;
	n = write(file->fd, file->lines, file->size);
	if (n < 0)
		return -errno;
	file->torn = (size_t)n < file->size;
	return file->torn ? -ENOSPC : 0;
}

static void file_free(struct append_file *file)
{
	fd_close(file->fd);
	free(file->lines);
	free(file->path);
	(void)pthread_cond_destroy(&file->changed);
	(void)pthread_mutex_destroy(&file->lock);
	free(file);
}

static void *serve(void *userdata)
{
	struct append_file *file = userdata;
	int r;

	pthread_mutex_lock(&file->lock);
	while (!file->closing || file->busy) {
		if (!file->busy) {
			pthread_cond_wait(&file->changed, &file->lock);
			continue;
		}
		pthread_mutex_unlock(&file->lock);
		r = append(file);
		pthread_mutex_lock(&file->lock);
		free(file->lines);
		file->lines = NULL;
		file->result = r;
		file->busy = false;
		pthread_cond_broadcast(&file->changed);
	}
	pthread_mutex_unlock(&file->lock);
	file_free(file);
	return NULL;
}

/* ---- the caller ---- */

static int thread_start(struct append_file *file)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r = pthread_attr_init(&attributes);

	if (r)
		return -r;
	(void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, serve, file);
	(void)pthread_attr_destroy(&attributes);
	return -r;
}

int append_new(struct append_file **filep, const char *path)
{
	struct append_file *file = calloc(1, sizeof(*file));
	int r = -ENOMEM;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	(void)pthread_mutex_init(&file->lock, NULL);
	(void)pthread_cond_init(&file->changed, NULL);
	file->path = strdup(path);
	if (file->path)
		r = thread_start(file);
	if (r)
		file_free(file);
	else
		*filep = file;
	return r;
}

static struct timespec patience_end(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += APPEND_PATIENCE_MS / 1000;
	return until;
}

int append_lines(struct append_file *file, char *lines, size_t size)
{
	const struct timespec until = patience_end();
	int r = 0;

	pthread_mutex_lock(&file->lock);
	if (file->busy) {
		pthread_mutex_unlock(&file->lock);
		free(lines);
		return -EBUSY;
	}
	file->lines = lines;
	file->size = size;
	file->busy = true;
	pthread_cond_broadcast(&file->changed);
	while (file->busy && r == 0)
		r = -pthread_cond_clockwait(&file->changed, &file->lock, CLOCK_MONOTONIC, &until);
	if (!file->busy)
		r = file->result;
	pthread_mutex_unlock(&file->lock);
	return r;
}

struct append_file *append_free(struct append_file *file)
{
	if (!file)
		return NULL;
	pthread_mutex_lock(&file->lock);
	file->closing = true;
	pthread_cond_broadcast(&file->changed);
	pthread_mutex_unlock(&file->lock);
	return NULL;
}
