/* Saving and loading are cells: they wait in the queue, have a time limit, can be interrupted and killed, and
 * the answer tells what happened to the session. Only the code that they run and their answers differ. The bytes
 * go through a memory file that the router makes, and from there into a file of its own; the router never looks
 * at them. */
#include "saving.h"

#include "base/log.h"
#include "files/saved.h"
#include "rows.h"
#include "session/core/blame.h"
#include "session/core/events.h"
#include "session/core/sessions.h"
#include "vault/records.h"

#include "proto/causes.h"
#include "proto/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

/* More than python/saving.py takes. */
#define NAMES_MAX 20000
/* Why such a session is not saved when it ends. */
#define UNLOADED "that would replace a saved state which could not be loaded"

/* ---- asking for one ---- */

static int task_new(struct cell **cellp, struct session *session, enum cell_task task,
		    const struct address *request)
{
	const struct keeping keeping = profile_keeping(session->profile);
	struct address address = {.uid = session->owner};
	struct promise *promise;
	int r = 0;

	if (request) {
		address = *request;
	} else {
		r = promise_new(&promise, session->sessions->promises, session->owner, bytes_of(session->id),
				(struct bytes){.data = NULL}, 0, &keeping);
		if (!r)
			address.promise = promise;
	}
	if (!r)
		r = cell_new_task(cellp, task, &address, session->profile->save_timeout);
	return r;
}

int saving_save(struct session *session, const struct address *request)
{
	struct cell *cell;
	int r = task_new(&cell, session, CELL_SAVE, request);

	if (!r)
		session_exec(session, cell);
	return r;
}

int saving_load(struct session *session, struct saved *saved, const struct address *request, enum telling telling)
{
	struct cell *cell;
	int r = task_new(&cell, session, CELL_LOAD, request);

	if (r) {
		saved_free(saved);
		return r;
	}
	cell->saved = saved;
	cell->telling = telling;
	session_exec(session, cell);
	return 0;
}

/* ---- the end of a session ---- */

bool saving_is_due(const struct session *session)
{
	return session->profile->on_expire == EXPIRE_SAVE && session->id[0] && session->n_cells > 0;
}

void saving_expire(struct session *session, const char *cause)
{
	bool saves = saving_is_due(session);

	warden_touch(session->warden);
	if (saves && session->unloaded) {
		session->expiring = cause;
		snprintf(session->not_saved, sizeof(session->not_saved), "%s", UNLOADED);
		log_warn(session->name, "is not saved: %s", UNLOADED);
		saves = false;
	}
	if (!saves) {
		session_end(session, cause);
		return;
	}
	if (session->expiring) {
		/* The session ends when it is saved, which has a time limit of its own. A client that comes
		 * meanwhile may keep a session that was idle. */
		if (cause_is(cause, CAUSE_HARD_TTL))
			session->expiring = cause;
		return;
	}
	session->expiring = cause;
	session->save_tried = false;
	if (session->state == SESSION_BUSY)
		session_event(session, EVENT_DEADLINE, &session_nothing);
	else
		session_proceed(session);
}

/* Before all cells that wait. */
static void last_save_enqueue(struct session *session)
{
	session->save_tried = true;
	if (task_new(&session->last_save, session, CELL_SAVE, NULL)) {
		snprintf(session->not_saved, sizeof(session->not_saved), "%s", strerror(ENOMEM));
		return;
	}
	list_append(session->queue.next, &session->last_save->node);
	session->n_queued++;
}

bool saving_proceed(struct session *session)
{
	bool work = !list_empty(&session->queue) || !list_empty(&session->operations);

	if (session->state != SESSION_IDLE || session->operation || session->last_save)
		return false;
	if (!session->save_tried)
		last_save_enqueue(session);
	if (session->last_save)
		return false;
	/* A client came while it was being saved, so it is not idle. */
	if (work && cause_is(session->expiring, CAUSE_IDLE_TTL)) {
		session->expiring = NULL;
		return false;
	}
	session_end(session, session->expiring);
	return true;
}

void saving_close(struct session *session)
{
	if (session->restored)
		(void)saved_remove(session->sessions->saved, session->owner, bytes_of(session->id), false);
}

/* ---- running one ---- */

static void on_fetched(void *userdata)
{
	struct session *session = userdata;

	blame_session(session, TURN_COPY);
	session_proceed(session);
}

bool saving_fetch(struct session *session, struct cell *cell)
{
	/* A load that waited while there was no router may be over its time. */
	int r = cell->saved ? saved_fetch(cell->saved, session_loop(session), on_fetched, session) : -ENOENT;
	struct verdict verdict = {.state = "kept"};

	/* It is not idle while its state is on its way. */
	if (r == SAVED_E_UNDER_WAY)
		timer_clear(session_loop(session), &session->idle);
	if (r == 0 || r == SAVED_E_UNDER_WAY)
		return r == 0;
	session_stay(session);
	verdict.cause = r == SAVED_E_DAMAGED ? cell->saved->damage : strerror(-r);
	list_remove(&cell->node);
	session->n_queued--;
	saving_reply(session, cell, &verdict);
	cell_free(cell);
	session_proceed(session);
	return false;
}

/* It holds at most save_size, whatever is written to it. */
static int state_file(int *fdp, uint64_t size)
{
	_cleanup_(fd_closep) int fd = memfd_create("lair-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*fdp = steal_fd(&fd);
	return 0;
}

int saving_send(struct session *session, struct cell *cell)
{
	struct task_message task = {.cell = cell->number};
	int r = 0, fd;

	if (cell->task == CELL_SAVE) {
		task.task = BYTES("save");
		task.size = session->profile->save_size;
		task.budget = event_seconds(session->profile->save_timeout);
		r = state_file(&cell->file, task.size);
	} else {
		task.task = BYTES("load");
		task.offset = cell->saved->offset;
	}
	if (r)
		return r;
	fd = fcntl(cell->task == CELL_SAVE ? cell->file : cell->saved->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	return interpreter_send_fd(session->live, &task_message_schema, &task,
				   SUBJECT_TASK | session->tenant.number, fd);
}

/* ---- what came of it ---- */

static bool report_read(struct task_report *report, struct bytes body)
{
	struct wire_fault fault;

	return body.data && !wire_decode(report, &task_report_schema, body, &fault) &&
	       wire_count(report->names) <= NAMES_MAX && wire_count(report->refused) <= NAMES_MAX;
}

/* Why there is no report. */
static void failure(char *why, size_t size, const struct verdict *verdict)
{
	struct cell_error error;
	struct wire_fault fault;

	if (verdict->error.data && !wire_decode(&error, &cell_error_schema, verdict->error, &fault))
		snprintf(why, size, "%.*s: %.*s", (int)MIN(error.name.size, 60U), error.name.data,
			 (int)MIN(error.value.size, 200U), error.value.data);
	else
		snprintf(why, size, "%s", verdict->cause ? verdict->cause : "its interpreter did not tell");
}

/* The session's interpreter is heard again. */
static void on_written(void *userdata)
{
	struct session *session = userdata;

	blame_session(session, TURN_COPY);
	if (session->live)
		peer_rest(&session->live->peer, 0);
}

static int state_write(struct session *session, struct cell *cell, const struct task_report *report)
{
	struct saved_state state = {
		.owner = session->owner,
		.session = bytes_of(session->id),
		.size = report->size,
		.names = report->names,
		.refused = report->refused,
	};

	if (report->size > session->profile->save_size)
		return -EBADMSG;
	state.created = clock_date();
	return saved_write(&cell->writing, session->sessions->saved, session_loop(session), &state, cell->file,
			   session->profile->save_ttl, on_written, session);
}

bool saving_is_written(struct session *session, const struct done_message *done)
{
	struct cell *cell = session_busy(session) && !session->freezing ? session->cell : NULL;
	struct task_report report;

	if (!cell || done->cell != cell->number || !report_read(&report, done->report))
		return true;
	if (!cell->writing && !cell->not_begun) {
		/* The interpreter has done what had a time. */
		session_deadline(session, 0);
		cell->not_begun = state_write(session, cell, &report);
	}
	return !cell->writing || saved_written(cell->writing) != SAVED_E_UNDER_WAY;
}

static void reply_saved(struct session *session, struct cell *cell, const struct verdict *verdict)
{
	struct save_reply reply = {.id = cell->reply.id};
	struct task_report report = {.size = 0};
	char why[300];
	int r = 0;

	if (!report_read(&report, verdict->report))
		failure(why, sizeof(why), verdict);
	else if ((r = cell->writing ? saved_written(cell->writing) : cell->not_begun))
		snprintf(why, sizeof(why), "%s", strerror(-r));
	else
		*why = '\0';
	/* If the session ended in the middle of a save, the reason is known already. */
	if (!fate_is(verdict->state, FATE_ENDED) || !session->not_saved[0])
		snprintf(session->not_saved, sizeof(session->not_saved), "%s", why);
	if (*why) {
		log_warn(session->name, "its state could not be saved: %s", why);
		client_error(session->sessions->clients, &cell->reply, r ? "internal" : "unsupported",
			     "the state of session \"%s\" could not be saved: %s", session->id, why);
		return;
	}
	session->restored = session->unloaded = false;
	log_info(session->name, "saved, %" PRIu64 " bytes: %zu names, and %zu not", report.size,
		 wire_count(report.names), wire_count(report.refused));
	reply.saved = report.names;
	reply.not_saved = report.refused;
	reply.size = report.size;
	client_send(session->sessions->clients, &cell->reply, &save_reply_schema, &reply);
}

/* Refuse all names that should have come back, for the reason @why. */
static int refuse_all(msgpack_sbuffer *buffer, struct bytes names, const char *why)
{
	struct refused_name refused = {.reason = bytes_of(why)};
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next_string(names, &cursor, &refused.name))
		r = wire_encode_body(buffer, &refused_name_schema, &refused);
	return r;
}

static int append_all(msgpack_sbuffer *buffer, struct bytes items)
{
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(items, &cursor, &item))
		r = msgpack_sbuffer_write(buffer, item.data, item.size);
	return r;
}

void load_report_deinit(struct load_report *load_report)
{
	msgpack_sbuffer_destroy(&load_report->loaded);
	msgpack_sbuffer_destroy(&load_report->not_loaded);
	*load_report = (struct load_report){.age = 0};
}

/* Names that were not even saved have not come back either. Returns 0; or -ENOMEM: then there is only the age to
 * tell. */
static int load_report_make(struct load_report *load_report, const struct saved *saved,
			    const struct verdict *verdict)
{
	size_t n = wire_count(saved->state.refused);
	struct task_report report;
	char why[300];
	int r;

	load_report_deinit(load_report);
	if (report_read(&report, verdict->report)) {
		r = wire_put_array(&load_report->not_loaded, n + wire_count(report.refused));
		r = r ? r : append_all(&load_report->not_loaded, report.refused);
		if (!r)
			r = msgpack_sbuffer_write(&load_report->loaded, report.names.data, report.names.size);
	} else {
		failure(why, sizeof(why), verdict);
		r = wire_put_array(&load_report->not_loaded, n + wire_count(saved->state.names));
		r = r ? r : refuse_all(&load_report->not_loaded, saved->state.names, why);
		r = r ? r : wire_put_array(&load_report->loaded, 0);
	}
	if (!r)
		r = append_all(&load_report->not_loaded, saved->state.refused);
	if (r)
		load_report_deinit(load_report);
	load_report->age = saved_age(saved);
	return r;
}

/* What an expiring session would replace is now the state before, if there is one. */
static void reply_damaged(struct session *session, struct cell *cell)
{
	const struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};
	struct load_report *load_report = &session->load_report;

	session->restored = false;
	session->unloaded = cell->saved->before;
	past_lose(&session->sessions->past, &name, cell->saved->damage);
	if (cell->telling == TELL_LOAD) {
		client_error(session->sessions->clients, &cell->reply, "gone", "session \"%s\": %s", session->id,
			     cell->saved->damage);
		return;
	}
	load_report_deinit(load_report);
	snprintf(load_report->damaged, sizeof(load_report->damaged), "%s", cell->saved->damage);
	if (cell->telling == TELL_OPEN)
		session_tell_opened(session, &cell->reply, true);
}

static void reply_loaded(struct session *session, struct cell *cell, const struct verdict *verdict)
{
	struct load_report *load_report = &session->load_report;
	struct load_reply reply = {.id = cell->reply.id};
	struct task_report report;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer ended = {0};
	bool came = report_read(&report, verdict->report), whole = came && wire_count(report.refused) == 0;

	if (fate_is(verdict->state, FATE_ENDED)) {
		client_error(session->sessions->clients, &cell->reply, "gone",
			     "the session ended while its saved state was loaded: %s", verdict->cause);
		return;
	}
	if (cell->saved && cell->saved->fetched == SAVED_E_DAMAGED) {
		reply_damaged(session, cell);
		return;
	}
	session->restored = whole;
	session->unloaded = !came && cell->saved;
	if (!cell->saved || load_report_make(load_report, cell->saved, verdict)) {
		/* Without memory the next reply tells of the age alone. */
		client_error(session->sessions->clients, &cell->reply, cell->saved ? "internal" : "gone",
			     cell->saved ? "no memory is left to list the names that were loaded"
					 : "the saved state is no more");
		return;
	}
	log_info(session->name, "loaded the state that was saved %.0f s ago: %zu names; %zu could not be loaded",
		 load_report->age, wire_count(wire_bytes(&load_report->loaded)),
		 wire_count(wire_bytes(&load_report->not_loaded)));
	if (cell->telling == TELL_OPEN)
		session_tell_opened(session, &cell->reply, true);
	reply.saved_age = load_report->age;
	reply.loaded = wire_bytes(&load_report->loaded);
	reply.not_loaded = wire_bytes(&load_report->not_loaded);
	reply.birth = session->birth;
	if (!session_put_ended(session, &ended))
		reply.ended = wire_bytes(&ended);
	if (cell->telling != TELL_OPEN)
		client_send(session->sessions->clients, &cell->reply, &load_reply_schema, &reply);
	/* After an open the next cell tells it again, beside what has ended. */
	if (cell->telling == TELL_LOAD)
		load_report_deinit(load_report);
}

void saving_reply(struct session *session, struct cell *cell, const struct verdict *verdict)
{
	if (cell == session->last_save)
		session->last_save = NULL;
	if (cell->task == CELL_SAVE)
		reply_saved(session, cell, verdict);
	else
		reply_loaded(session, cell, verdict);
}

/* ---- as a part ---- */

static void deinit(struct session *session)
{
	load_report_deinit(&session->load_report);
}

#define SAVING_VALUES(F, m)                                                                                        \
	F(m, FLAG, save_tried, OPTIONAL)                                                                           \
	F(m, FLAG, restored, OPTIONAL)                                                                             \
	F(m, FLAG, unloaded, OPTIONAL)
#define REPORT_BUFFERS(F, m)                                                                                       \
	F(m, BIN, loaded, OPTIONAL)                                                                                \
	F(m, BIN, not_loaded, OPTIONAL)
/* age, damaged: of what a load has brought back, until somebody has been told. */
#define SAVING_FIELDS(F, m)                                                                                        \
	SAVING_VALUES(F, m)                                                                                        \
	F(m, STR, expiring, OPTIONAL)                                                                              \
	F(m, STR, not_saved, OPTIONAL)                                                                             \
	F(m, REAL, age, OPTIONAL)                                                                                  \
	REPORT_BUFFERS(F, m)                                                                                       \
	F(m, STR, damaged, OPTIONAL)
WIRE_DECLARE(saving_record, NO_ID, SAVING_FIELDS);
WIRE_DEFINE(saving_record, "saving", NO_ID, SAVING_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct load_report *report = &session->load_report;
	struct saving_record record = {
		.expiring = bytes_of(session->expiring),
		.not_saved = record_text(session->not_saved),
		.age = report->age,
		.damaged = record_text(report->damaged),
	};

	SAVING_VALUES(RECORD_PUT, session)
	if (load_report_any(report)) {
		REPORT_BUFFERS(BUFFER_PUT, report)
	}
	return wire_encode_body(buffer, &saving_record_schema, &record);
}

static int take(struct session *session, struct bytes value)
{
	struct load_report *report = &session->load_report;
	struct saving_record kept, *record = &kept;
	struct wire_fault fault;

	if (wire_decode_known(record, &saving_record_schema, value, &fault))
		return -EBADMSG;
	SAVING_VALUES(RECORD_TAKE, session)
	if (record->expiring.data)
		session->expiring = causes[cause_of(record->expiring.data, record->expiring.size) == CAUSE_HARD_TTL
						   ? CAUSE_HARD_TTL
						   : CAUSE_IDLE_TTL]
					    .name;
	bytes_copy(session->not_saved, sizeof(session->not_saved), record->not_saved);
	bytes_copy(report->damaged, sizeof(report->damaged), record->damaged);
	REPORT_BUFFERS(BUFFER_TAKE, report)
	report->age = record->age;
	return 0;
}

const struct part saving_part = {.name = "saving", .deinit = deinit, .put = put, .take = take};
