/* What goes into the audit log. A text is cut at the length of the longest path. Code is copied as it is, since
 * the scribe makes the digest; but if it would take half of the room that is left for lines, the line has no
 * digest. */
#include "audit_log.h"

#include "audit/scribe.h"
#include "base/log.h"
#include "sessions.h"
#include "vault/errand.h"
#include "vault/vault.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#define TEXT_MAX 4096

/* ---- which log ---- */

static int scribe_start(struct audit_log *log)
{
	_cleanup_(fd_closep) int theirs = -1;
	int r = channel_pair(&log->scribe, &theirs);

	return r ? r : errand_start_scribe(theirs, log->ring.fd);
}

static void page_name(struct audit_page *page, const char *path)
{
	(void)snprintf(page->path, sizeof(page->path), "%s", path);
}

int audit_log_begin(struct audit_log *log, const char *path)
{
	int r;

	*log = AUDIT_LOG_NONE;
	r = audit_ring_new(&log->ring);
	if (r)
		return r;
	page_name(log->ring.page, path);
	r = scribe_start(log);
	if (r)
		audit_log_close(log);
	return r;
}

int audit_log_hear(const struct audit_log *log)
{
	struct scribe_report report;
	int fds[CHANNEL_FDS_MAX];
	struct bytes data;
	size_t n_fds;
	int r = channel_recv(log->scribe, (char *)&report, sizeof(report), &data, fds, &n_fds);

	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_closep(&fds[i]);
	if (r == CHANNEL_E_EMPTY)
		return AUDIT_LOG_E_WAIT;
	if (r || data.size != sizeof(report))
		return r < 0 ? r : -EPIPE;
	return report.error;
}

int audit_log_open(struct audit_log *log, const char *path)
{
	int r = audit_log_begin(log, path);
	struct pollfd told = {.fd = log->scribe, .events = POLLIN};

	if (!r && poll(&told, 1, AUDIT_LOG_PATIENCE_MS) == 0)
		r = AUDIT_LOG_E_WAIT;
	if (!r)
		r = audit_log_hear(log);
	if (r)
		audit_log_close(log);
	return r;
}

const char *audit_log_trouble(char out[static AUDIT_LOG_TROUBLE_SIZE], const char *path, int r)
{
	char late[64];

	(void)snprintf(late, sizeof(late), "it did not open within %d s", AUDIT_LOG_PATIENCE_MS / 1000);
	(void)snprintf(out, AUDIT_LOG_TROUBLE_SIZE, "cannot append to audit_log = %.300s: %s", path,
		       r == AUDIT_LOG_E_WAIT ? late
		       : r == -EINVAL	     ? "not a regular file"
					     : strerror(-r));
	return out;
}

static bool same_file(const struct audit_log *log, const struct audit_log *other)
{
	const struct audit_page *page = log->ring.page, *of_other = other->ring.page;

	return page && of_other && page->device == of_other->device && page->inode == of_other->inode;
}

void audit_log_inherit(struct audit_log *log, struct vault_item *left, const char *path)
{
	int r;

	if (!left || !path || left->n_fds != 2)
		return;
	r = audit_ring_open(&log->ring, left->fds[0]);
	if (r) {
		log_warn(NULL, "cannot go on with the audit log of the last router: %s", strerror(-r));
		return;
	}
	left->fds[0] = -1;
	log->scribe = steal_fd(&left->fds[1]);
	if (strncmp(log->ring.page->path, path, PATH_SIZE) != 0)
		audit_log_close(log);
	else
		left->taken = true;
}

uint64_t audit_log_left_out(const struct audit_log *log)
{
	return log->ring.page ? atomic_load(&log->ring.page->left_out) : 0;
}

void audit_log_replace(struct sessions *sessions, struct audit_log *fresh)
{
	struct audit_log *log = &sessions->audit_log;
	int r = 0;

	if (same_file(log, fresh)) {
		page_name(log->ring.page, fresh->ring.page->path);
		audit_log_close(fresh);
		return;
	}
	sessions->stats.audit_missed += audit_log_left_out(log);
	audit_log_close(log);
	*log = *fresh;
	*fresh = AUDIT_LOG_NONE;
	if (log->ring.page)
		r = vault_store(VAULT_AUDIT_LOG, 0, 0, (const int[]){log->ring.fd, log->scribe}, 2);
	else
		vault_forget(VAULT_AUDIT_LOG, 0, 0);
	if (r)
		log_warn(NULL, "the next router will begin another audit log: %s", strerror(-r));
}

void audit_log_close(struct audit_log *log)
{
	audit_ring_close(&log->ring);
	fd_close(log->scribe);
	*log = AUDIT_LOG_NONE;
}

/* ---- lines ---- */

static bool off(const struct session *session)
{
	return !session->sessions->audit_log.ring.page;
}

static void missed(struct audit_log *log, struct stats *stats, const char *session, int r)
{
	stats->audit_missed++;
	if (log->missed++ == 0)
		log_error(session, "the audit log misses lines from now on: %s",
			  r > 0 ? "they come faster than they are written" : strerror(-r));
}

/* A few lines now and then do not end it. */
static void found_room(struct audit_log *log)
{
	if (log->missed == 0 || audit_ring_room(&log->ring) < AUDIT_RING_SIZE / 2)
		return;
	log_warn(NULL, "the audit log has all lines again; it misses %" PRIu64, log->missed);
	log->missed = 0;
}

/* What every line begins with is the same. */
static void put(const struct session *session, enum audit_event event, uint64_t number,
		const struct bytes texts[static AUDIT_TEXTS - 1])
{
	struct audit_log *log = &session->sessions->audit_log;
	const struct audit_record record = {
		.event = event, .time = clock_date(), .number = number, .uid = session->owner};
	struct bytes all[AUDIT_TEXTS] = {bytes_of(session->id[0] ? session->id : NULL)};
	int r;

	memcpy(all + 1, texts, (AUDIT_TEXTS - 1) * sizeof(*texts));
	r = audit_ring_put(&log->ring, &record, all);
	if (r) {
		missed(log, &session->sessions->stats, session->name, r);
		return;
	}
	found_room(log);
	if (atomic_exchange(&log->ring.page->asleep, 0))
		(void)channel_send(log->scribe, BYTES("!"), NULL, 0);
}

void audit_log_opened(const struct session *session)
{
	if (!off(session))
		put(session, AUDIT_OPEN, 0,
		    (const struct bytes[AUDIT_TEXTS - 1]){bytes_of(session->profile->name),
							  bytes_of(session_workspace(session))});
}

void audit_log_exec(const struct session *session, const struct cell *cell)
{
	struct bytes code = cell->options.code;

	if (off(session) || cell->task != CELL_CODE)
		return;
	if (code.size > audit_ring_room(&session->sessions->audit_log.ring) / 2)
		code = (struct bytes){.data = NULL};
	put(session, session->sessions->config->audit_code ? AUDIT_CODE : AUDIT_EXEC, cell->number,
	    (const struct bytes[AUDIT_TEXTS - 1]){code});
}

/* No more than a path can be: each byte takes six, and time. */
static struct bytes text(struct bytes bytes)
{
	size_t size = MIN(bytes.size, (size_t)TEXT_MAX);

	while (size > 0 && size < bytes.size && (bytes.data[size] & 0xc0) == 0x80)
		size--;
	return (struct bytes){.data = bytes.data, .size = size};
}

void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked)
{
	struct blocked_act act;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	if (off(session))
		return;
	while (wire_next(blocked, &cursor, &item)) {
		if (wire_decode(&act, &blocked_act_schema, item, &fault))
			act = (struct blocked_act){.reason = BYTES("unreadable")};
		put(session, AUDIT_BLOCKED, cell->number,
		    (const struct bytes[AUDIT_TEXTS - 1]){text(act.event), text(act.target), text(act.reason)});
	}
}

static struct bytes number(char out[static 24], uint64_t value)
{
	snprintf(out, 24, "%" PRIu64, value);
	return bytes_of(out);
}

/* @answered, @by: absent if there is no such thing. */
static void put_call(const struct session *session, const struct call *call, const char *outcome,
		     struct bytes answered, struct bytes by)
{
	bool with_arguments = session->profile->call_log == CALL_LOG_ARGUMENTS;
	struct bytes arguments = {.data = NULL};
	char seconds[32], size[24];

	if (with_arguments && call->arguments.size <= audit_ring_room(&session->sessions->audit_log.ring) / 2)
		arguments = call->arguments;
	snprintf(seconds, sizeof(seconds), "%.3f", event_seconds(event_now() - call->since));
	put(session, AUDIT_CALL, session->cell->number,
	    (const struct bytes[AUDIT_TEXTS - 1]){text(call->function), bytes_of(outcome), bytes_of(seconds),
						  number(size, call->arguments.size), answered, by, arguments});
}

void audit_log_call(const struct session *session, const struct call *call, const char *outcome)
{
	const struct bytes nothing = {.data = NULL};

	if (!off(session))
		put_call(session, call, outcome, nothing, nothing);
}

void audit_log_answer(const struct session *session, const struct call *call, const struct returned_message *answer,
		      const uid_t *by)
{
	struct bytes answered, whose = {.data = NULL};
	char outcome[128] = "answered", size[24], uid[24];

	if (off(session))
		return;
	answered = number(size, answer->value.size + answer->error.size + answer->text.size);
	if (by)
		whose = number(uid, *by);
	if (answer->error.data)
		snprintf(outcome, sizeof(outcome), "error %.*s", (int)MIN(answer->error.size, (size_t)100),
			 answer->error.data);
	put_call(session, call, outcome, answered, whose);
}

void audit_log_approval(const struct session *session, const struct call *call, uid_t by)
{
	const struct bytes nothing = {.data = NULL};
	char uid[24];

	if (!off(session))
		put_call(session, call, "approved", nothing, number(uid, by));
}

void audit_log_ended(const struct session *session, const char *cause)
{
	if (!off(session))
		put(session, AUDIT_END, session->n_cells, (const struct bytes[AUDIT_TEXTS - 1]){bytes_of(cause)});
}
