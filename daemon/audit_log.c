/* Each line is one write(2) to a file opened to append, so that lines never mix and rotation by rename is safe.
 * When lines begin to be missed the other log says so, and when that is over, how many. */
#include "audit_log.h"

#include "log.h"
#include "router.h"
#include "sha256.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <sys/stat.h>

#define TEXT_MAX 4096

int audit_log_open(int *fdp, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;

	if (path) {
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
		if (fd < 0 || fstat(fd, &status) < 0)
			return -errno;
		if (!S_ISREG(status.st_mode))
			return -EINVAL;
	}
	fd_close(*fdp);
	*fdp = steal_fd(&fd);
	return 0;
}

static bool line_put(int fd, char *line)
{
	static bool torn;
	size_t size = strlen(line);
	ssize_t n;

	line[size++] = '\n';
	/* A full disk may have taken half of the last one. */
	if (torn && write(fd, "\n", 1) == 1)
		torn = false;
	n = torn ? -1 : write(fd, line, size);
	torn |= n > 0 && n < (ssize_t)size;
	if (torn)
		errno = ENOSPC;
	return n == (ssize_t)size;
}

/* @object is ours; NULL when there was no memory for it. */
static void put(const struct session *session, json_t *object)
{
	static uint64_t missed;
	char *line = object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16)) : NULL;

	json_decref(object);
	if (line && line_put(session->router->audit_log, line)) {
		if (missed > 0)
			log_warn(NULL, "the audit log is written again; it misses %" PRIu64 " lines", missed);
		missed = 0;
	} else if (missed++ == 0) {
		log_error(session->name, "the audit log misses lines from now on: %s",
			  strerror(line ? errno : ENOMEM));
	}
	free(line);
}

/* What every line begins with. */
static json_t *entry(const struct session *session, const char *event)
{
	return json_pack("{s:f, s:s*, s:I, s:s}", "time", clock_date(), "session",
			 session->id[0] ? session->id : NULL, "uid", (json_int_t)session->owner, "event", event);
}

static bool off(const struct session *session)
{
	return session->router->audit_log < 0;
}

void audit_log_opened(const struct session *session)
{
	json_t *object;

	if (off(session))
		return;
	object = entry(session, "open");
	(void)json_object_set_new(object, "profile", json_string(session->profile->name));
	(void)json_object_set_new(object, "workspace", json_string(session_workspace(session)));
	put(session, object);
}

void audit_log_exec(const struct session *session, const struct cell *cell)
{
	struct bytes code = cell->code;
	char digest[SHA256_HEX_SIZE];
	json_t *object;

	if (off(session) || cell->task != CELL_CODE)
		return;
	object = entry(session, "exec");
	(void)json_object_set_new(object, "cell", json_integer((json_int_t)cell->number));
	(void)json_object_set_new(object, "sha256", json_string(sha256_hex(digest, code)));
	put(session, object);
}

/* No more than a path can be: each byte takes six, and time. */
static json_t *text(struct bytes bytes)
{
	size_t size = MIN(bytes.size, (size_t)TEXT_MAX);

	while (size > 0 && size < bytes.size && (bytes.data[size] & 0xc0) == 0x80)
		size--;
	return bytes.data ? json_stringn(bytes.data, size) : json_null();
}

void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked)
{
	struct blocked_act act;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	if (off(session))
		return;
	for (unsigned n = 0; n < AUDIT_BLOCKED_MAX && wire_next(blocked, &cursor, &item); n++) {
		json_t *object = entry(session, "blocked");

		(void)json_object_set_new(object, "cell", json_integer((json_int_t)cell->number));
		if (wire_decode(&act, &blocked_act_schema, item, &fault)) {
			(void)json_object_set_new(object, "reason", json_string("unreadable"));
		} else {
			(void)json_object_set_new(object, "act", text(act.event));
			(void)json_object_set_new(object, "target", text(act.target));
			(void)json_object_set_new(object, "reason", text(act.reason));
		}
		put(session, object);
	}
}

void audit_log_ended(const struct session *session, const char *cause)
{
	json_t *object;

	if (off(session))
		return;
	object = entry(session, "end");
	(void)json_object_set_new(object, "cause", json_string(cause));
	(void)json_object_set_new(object, "cells", json_integer((json_int_t)session->n_cells));
	put(session, object);
}
