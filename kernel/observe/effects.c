/* Effects are noted where they happen, in functions of libc. This executable takes these over for every library
 * in the process, as output.c does with write(). So Python and libraries in C are seen alike, also in children
 * that a cell forks. If a call by name failed, nothing is noted. If a cell starts a program, only the start is
 * noted.
 *
 * Notes are written without a lock, since threads, children and a child of vfork() write them at any time.
 * Nothing in here may fail a call or change its errno. It is no guard: code that makes system calls without
 * libc, or writes through a mapping, leaves no note, and the book is the session's own memory. */
#undef _FORTIFY_SOURCE
#include "effects.h"

#include "refusal/policy.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define PROBES_MAX 32
#define LOOKED_MAX 256

static struct {
	struct effects_book *book;
	bool files, network;
	uint64_t looked[LOOKED_MAX]; /* open files and sockets that have been looked at since the cell began */
} self;

/* ---- notes ---- */

static uint64_t hash_of(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash;
}

/* Whether it has not been noted since the cell began. If there are too many, an old one may be taken for new. */
static bool is_new(uint64_t hash)
{
	uint64_t *hashes = self.book->hashes;

	hash = hash ? hash : 1;
	for (size_t i = 0; i < PROBES_MAX; i++) {
		uint64_t *at = &hashes[(hash + i) % EFFECT_HASHES_MAX], none = 0;

		if (__atomic_load_n(at, __ATOMIC_RELAXED) == hash)
			return false;
		if (__atomic_compare_exchange_n(at, &none, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (none == hash)
			return false;
	}
	return true;
}

/* Text that does not fit is cut. */
static uint16_t text_put(char *to, size_t room, const char *text, size_t size)
{
	static const char cut[] = {'.', '.', '.'};

	if (size <= room) {
		memcpy(to, text, size);
		return (uint16_t)size;
	}
	memcpy(to, text, room - sizeof(cut));
	memcpy(to + room - sizeof(cut), cut, sizeof(cut));
	return (uint16_t)room;
}

static uint64_t act_hash(enum effect_act act, const char *target, const char *to)
{
	uint64_t hash = hash_of(0xcbf29ce484222325 + act, target, strlen(target) + 1);

	return to ? hash_of(hash, to, strlen(to)) : hash;
}

/* @to: the second name, or NULL. */
static void note(enum effect_act act, const char *target, const char *to)
{
	struct effects_book *book = self.book;
	size_t room = to ? EFFECT_TEXT_MAX / 2 : EFFECT_TEXT_MAX;
	struct effect_note *place;
	uint64_t number;

	if (!book || !is_new(act_hash(act, target, to)))
		return;
	number = __atomic_add_fetch(&book->last, 1, __ATOMIC_RELAXED);
	if (number - __atomic_load_n(&book->begin, __ATOMIC_RELAXED) > EFFECT_NOTES_MAX)
		return;
	place = &book->notes[number % EFFECT_NOTES_MAX];
	__atomic_store_n(&place->number, 0, __ATOMIC_RELEASE);
	place->act = (uint16_t)act;
	place->target = text_put(place->text, room, target, strlen(target));
	place->to = to ? text_put(place->text + place->target, room, to, strlen(to)) : 0;
	__atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
}

/* ---- files ---- */

/* Where an open file is. False if there is no /proc. */
static bool fd_path(char path[PATH_MAX], int fd)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	path[MAX(n, 0)] = '\0';
	return path[0] == '/';
}

/* Where @name is, relative to @directory. Its last component is not resolved, because it may be a link, or may be
 * gone. */
static bool name_path(char path[PATH_MAX], int directory, const char *name)
{
	char parent[2 * PATH_MAX], last[NAME_MAX + 1];
	size_t size = strlen(name), start;

	while (size > 1 && name[size - 1] == '/')
		size--;
	for (start = size; start > 0 && name[start - 1] != '/'; start--)
		;
	if (size >= PATH_MAX || size == start || size - start > NAME_MAX)
		return false;
	memcpy(last, name + start, size - start);
	last[size - start] = '\0';
	parent[0] = '\0';
	if (name[0] != '/' && directory != AT_FDCWD) {
		if (!fd_path(parent, directory))
			return false;
		strcat(parent, "/");
	}
	strncat(parent, name, start);
	if (!realpath(parent[0] ? parent : ".", path) || strlen(path) + strlen(last) + 2 > PATH_MAX)
		return false;
	strcat(strcmp(path, "/") == 0 ? path : strcat(path, "/"), last);
	return true;
}

static void note_file(enum effect_act act, const char *path)
{
	if (policy_path_outside(path))
		note(act, path, NULL);
}

static void opened(int fd, int directory, const char *name, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
	char path[PATH_MAX];
	int error = errno;

	if (fd < 0 || !self.book || !self.files || !writes || (flags & O_PATH) == O_PATH)
		return;
	if (fd_path(path, fd) || (directory == AT_FDCWD && realpath(name, path)))
		note_file(EFFECT_WROTE, path);
	errno = error;
}

static void opened_file(FILE *file, const char *path, const char *mode)
{
	if (file)
		opened(fileno(file), AT_FDCWD, path, mode[0] != 'r' || strchr(mode, '+') ? O_WRONLY : O_RDONLY);
}

/* The name has been made or removed, or the file behind it was written. */
static void named(enum effect_act act, int r, int directory, const char *name)
{
	char path[PATH_MAX];
	int error = errno;

	if (r == 0 && self.book && self.files &&
	    (act == EFFECT_WROTE ? realpath(name, path) != NULL : name_path(path, directory, name)))
		note_file(act, path);
	errno = error;
}

static void renamed(int r, int old_directory, const char *old, int new_directory, const char *new)
{
	char from[PATH_MAX], to[PATH_MAX];
	int error = errno;

	if (r == 0 && self.book && self.files && name_path(from, old_directory, old) &&
	    name_path(to, new_directory, new) && (policy_path_outside(from) || policy_path_outside(to)))
		note(EFFECT_RENAMED, from, to);
	errno = error;
}

/* ---- addresses ---- */

static bool address_text(char *text, size_t size, const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	char host[INET6_ADDRSTRLEN];

	if (address->ss_family == AF_INET && inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host)))
		snprintf(text, size, "%s:%u", host, ntohs(four->sin_port));
	else if (address->ss_family == AF_INET6 && inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host)))
		snprintf(text, size, "[%s]:%u", host, ntohs(six->sin6_port));
	else
		return false;
	return true;
}

static void note_address(enum effect_act act, const struct sockaddr *given, socklen_t size)
{
	struct sockaddr_storage address = {0};
	char text[INET6_ADDRSTRLEN + 16];

	memcpy(&address, given, MIN(size, sizeof(address)));
	if (!address_text(text, sizeof(text), &address))
		return;
	note(act, text, NULL);
	if (act == EFFECT_CONNECTED && self.book) /* then data that is sent there is no other effect */
		(void)is_new(act_hash(EFFECT_SENT, text, NULL));
}

/* To connect a stream sends a packet at once. To connect a datagram socket sends none. */
static void connected(int r, int fd, const struct sockaddr *address, socklen_t size)
{
	int error = errno, type = 0;
	socklen_t room = sizeof(type);

	if (self.book && self.network && (r == 0 || error == EINPROGRESS) &&
	    (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &room) < 0 || type == SOCK_STREAM))
		note_address(EFFECT_CONNECTED, address, size);
	errno = error;
}

static void note_peer(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	if (getpeername(fd, (struct sockaddr *)&address, &size) == 0)
		note_address(EFFECT_SENT, (const struct sockaddr *)&address, size);
}

/* ---- files and sockets that were open before ----
 *
 * These are noted before the act, since that may take long, or end with the interpreter. */

/* Whether the file or socket was looked at before in this cell. */
static bool looked_at(const struct stat *status)
{
	uint64_t key = hash_of(self.book->begin + 1, &status->st_ino, sizeof(status->st_ino)), *at;

	key = hash_of(key, &status->st_dev, sizeof(status->st_dev));
	at = &self.looked[key % LOOKED_MAX];
	if (*at == key)
		return true;
	*at = key;
	return false;
}

void effects_writing(int fd)
{
	char path[PATH_MAX];
	struct stat status;
	int error = errno;

	if (!self.book || (!self.files && !self.network) || fstat(fd, &status) < 0) {
		errno = error;
		return;
	}
	if (self.files && S_ISREG(status.st_mode) && !looked_at(&status) && fd_path(path, fd))
		note_file(EFFECT_WROTE, path);
	if (self.network && S_ISSOCK(status.st_mode) && !looked_at(&status))
		note_peer(fd);
	errno = error;
}

static void sending(int fd, const struct sockaddr *address, socklen_t size)
{
	int error = errno;

	if (address && size > 0 && self.book && self.network)
		note_address(EFFECT_SENT, address, size);
	else
		effects_writing(fd);
	errno = error;
}

static void sending_all(int fd, const struct mmsghdr *messages, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sending(fd, messages[i].msg_hdr.msg_name, messages[i].msg_hdr.msg_namelen);
}

/* ---- programs ---- */

/* If it can be seen beforehand that a program cannot be started, nothing is noted. */
static void running(const char *path)
{
	int error = errno;

	if (path && self.book && policy.subprocess && (!strchr(path, '/') || access(path, X_OK) == 0))
		note(EFFECT_RAN, path, NULL);
	errno = error;
}

static void running_fd(int fd)
{
	char path[PATH_MAX];

	if (fd_path(path, fd))
		running(path);
}

/* ---- the book ---- */

void effects_adopt(struct effects_book *book)
{
	self.files = policy_writes_outside();
	self.network = policy.network;
	self.book = book;
	effects_mark();
}

void effects_mark(void)
{
	struct effects_book *book = self.book;

	if (!book || book->begin == book->last)
		return;
	memset(book->hashes, 0, sizeof(book->hashes));
	__atomic_store_n(&book->begin, __atomic_load_n(&book->last, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* ---- libc's functions ---- */

/* Name, type of the result, parameters, arguments; what is noted before the call, and what after it, where r is its
 * result. */
/* clang-format off */
#define FUNCTIONS(F) \
	F(fopen64, FILE *, (const char *path, const char *mode), (path, mode), , opened_file(r, path, mode)) \
	F(freopen64, FILE *, (const char *path, const char *mode, FILE *file), (path, mode, file), , \
	  opened_file(r, path ? path : "", mode)) \
	F(pwrite64, ssize_t, (int fd, const void *data, size_t size, off_t offset), (fd, data, size, offset), \
	  effects_writing(fd), ) \
	F(pwritev64, ssize_t, (int fd, const struct iovec *parts, int n, off_t offset), (fd, parts, n, offset), \
	  effects_writing(fd), ) \
	F(pwritev64v2, ssize_t, (int fd, const struct iovec *parts, int n, off_t offset, int flags), \
	  (fd, parts, n, offset, flags), effects_writing(fd), ) \
	F(ftruncate64, int, (int fd, off_t size), (fd, size), effects_writing(fd), ) \
	F(truncate64, int, (const char *path, off_t size), (path, size), , named(EFFECT_WROTE, r, AT_FDCWD, path)) \
	F(sendfile64, ssize_t, (int to, int from, off_t *offset, size_t size), (to, from, offset, size), \
	  effects_writing(to), ) \
	F(copy_file_range, ssize_t, \
	  (int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags), \
	  (from, from_offset, to, to_offset, size, flags), effects_writing(to), ) \
	F(rename, int, (const char *old, const char *new), (old, new), , renamed(r, AT_FDCWD, old, AT_FDCWD, new)) \
	F(renameat, int, (int from, const char *old, int to, const char *new), (from, old, to, new), , \
	  renamed(r, from, old, to, new)) \
	F(renameat2, int, (int from, const char *old, int to, const char *new, unsigned flags), \
	  (from, old, to, new, flags), , renamed(r, from, old, to, new)) \
	F(remove, int, (const char *path), (path), , named(EFFECT_REMOVED, r, AT_FDCWD, path)) \
	F(unlink, int, (const char *path), (path), , named(EFFECT_REMOVED, r, AT_FDCWD, path)) \
	F(unlinkat, int, (int directory, const char *path, int flags), (directory, path, flags), , \
	  named(EFFECT_REMOVED, r, directory, path)) \
	F(rmdir, int, (const char *path), (path), , named(EFFECT_REMOVED, r, AT_FDCWD, path)) \
	F(mkdir, int, (const char *path, mode_t mode), (path, mode), , named(EFFECT_MADE, r, AT_FDCWD, path)) \
	F(mkdirat, int, (int directory, const char *path, mode_t mode), (directory, path, mode), , \
	  named(EFFECT_MADE, r, directory, path)) \
	F(mkfifo, int, (const char *path, mode_t mode), (path, mode), , named(EFFECT_MADE, r, AT_FDCWD, path)) \
	F(mkfifoat, int, (int directory, const char *path, mode_t mode), (directory, path, mode), , \
	  named(EFFECT_MADE, r, directory, path)) \
	F(mknod, int, (const char *path, mode_t mode, dev_t device), (path, mode, device), , \
	  named(EFFECT_MADE, r, AT_FDCWD, path)) \
	F(mknodat, int, (int directory, const char *path, mode_t mode, dev_t device), \
	  (directory, path, mode, device), , named(EFFECT_MADE, r, directory, path)) \
	F(link, int, (const char *path, const char *new), (path, new), , named(EFFECT_MADE, r, AT_FDCWD, new)) \
	F(linkat, int, (int from, const char *path, int to, const char *new, int flags), \
	  (from, path, to, new, flags), , named(EFFECT_MADE, r, to, new)) \
	F(symlink, int, (const char *text, const char *path), (text, path), , \
	  named(EFFECT_MADE, r, AT_FDCWD, path)) \
	F(symlinkat, int, (const char *text, int directory, const char *path), (text, directory, path), , \
	  named(EFFECT_MADE, r, directory, path)) \
	F(connect, int, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size), , \
	  connected(r, fd, address, size)) \
	F(send, ssize_t, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags), \
	  effects_writing(fd), ) \
	F(sendto, ssize_t, \
	  (int fd, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t room), \
	  (fd, data, size, flags, address, room), sending(fd, address, room), ) \
	F(sendmsg, ssize_t, (int fd, const struct msghdr *message, int flags), (fd, message, flags), \
	  sending(fd, message->msg_name, message->msg_namelen), ) \
	F(sendmmsg, int, (int fd, struct mmsghdr *messages, unsigned n, int flags), (fd, messages, n, flags), \
	  sending_all(fd, messages, n), ) \
	F(execve, int, (const char *path, char *const arguments[], char *const environment[]), \
	  (path, arguments, environment), running(path), ) \
	F(execv, int, (const char *path, char *const arguments[]), (path, arguments), running(path), ) \
	F(execvp, int, (const char *file, char *const arguments[]), (file, arguments), running(file), ) \
	F(execvpe, int, (const char *file, char *const arguments[], char *const environment[]), \
	  (file, arguments, environment), running(file), ) \
	F(fexecve, int, (int fd, char *const arguments[], char *const environment[]), \
	  (fd, arguments, environment), running_fd(fd), ) \
	F(posix_spawn, int, \
	  (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]), \
	  (pid, path, actions, attributes, arguments, environment), running(path), ) \
	F(posix_spawnp, int, \
	  (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]), \
	  (pid, file, actions, attributes, arguments, environment), running(file), ) \
	F(system, int, (const char *command), (command), running(command ? "/bin/sh" : NULL), ) \
	F(popen, FILE *, (const char *command, const char *mode), (command, mode), running("/bin/sh"), )

#define INDEX_OF(name, type, parameters, arguments, before, after) FUNCTION_##name,
#define NAME_OF(name, type, parameters, arguments, before, after) [FUNCTION_##name] = #name,
#define DEFINITION_OF(name, type, parameters, arguments, before, after) \
	type name parameters \
	{ \
		type r; \
		before; \
		r = LIBC(name) arguments; \
		after; \
		return r; \
	}
/* clang-format on */

enum { FUNCTION_open64, FUNCTION_openat64, FUNCTIONS(INDEX_OF) FUNCTIONS_N };

static const char *const names[FUNCTIONS_N] = {
	[FUNCTION_open64] = "open64", [FUNCTION_openat64] = "openat64", FUNCTIONS(NAME_OF)};
static void *functions[FUNCTIONS_N];

/* Libraries may call a function before effects_install. */
static void *function_of(size_t i)
{
	if (!functions[i])
		functions[i] = dlsym(RTLD_NEXT, names[i]);
	return functions[i];
}

#define LIBC(name) ((__typeof__(&(name)))function_of(FUNCTION_##name))

void effects_install(void)
{
	for (size_t i = 0; i < FUNCTIONS_N; i++)
		(void)function_of(i);
}

static mode_t mode_of(int flags, va_list args)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

/* Compilers insist on declarations; these are libc's. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name, bugprone-reserved-identifier): libc's names
FUNCTIONS(DEFINITION_OF)

int open64(const char *path, int flags, ...)
{
	va_list args;
	int fd;

	va_start(args, flags);
	fd = LIBC(open64)(path, flags, mode_of(flags, args));
	va_end(args);
	opened(fd, AT_FDCWD, path, flags);
	return fd;
}

int openat64(int directory, const char *path, int flags, ...)
{
	va_list args;
	int fd;

	va_start(args, flags);
	fd = LIBC(openat64)(directory, path, flags, mode_of(flags, args));
	va_end(args);
	opened(fd, directory, path, flags);
	return fd;
}

int __open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

int __openat64_2(int directory, const char *path, int flags)
{
	return openat64(directory, path, flags);
}

int creat64(const char *path, mode_t mode)
{
	return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* Offsets have 64 bits under either name. */
_Static_assert(sizeof(off_t) == sizeof(off64_t), "one function serves both names");
#define ALSO(other, name) extern __typeof__(name) other __attribute__((alias(#name)))
ALSO(open, open64);
ALSO(openat, openat64);
ALSO(__open_2, __open64_2);
ALSO(__openat_2, __openat64_2);
ALSO(creat, creat64);
ALSO(fopen, fopen64);
ALSO(freopen, freopen64);
ALSO(pwrite, pwrite64);
ALSO(pwritev, pwritev64);
ALSO(pwritev2, pwritev64v2);
ALSO(ftruncate, ftruncate64);
ALSO(truncate, truncate64);
ALSO(sendfile, sendfile64);
// NOLINTEND(readability-inconsistent-declaration-parameter-name, bugprone-reserved-identifier)
