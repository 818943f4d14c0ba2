/* From records to objects; snapshot.c is the way there. A family that cannot be brought back is ended, and the log
 * says why: half of one would be worse.
 *
 * What had been going on needs no care here. What the last router had heard and not settled is still in the
 * sockets, what it had said and not sent is among the messages, and deadlines are times. */
#include "revive.h"

#include "family.h"
#include "log.h"
#include "router.h"
#include "session_events.h"
#include "vault.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define CHUNK 65536

/* One that has been read and not been made. */
struct remains {
	struct list node;
	uint64_t family;
	struct ledger ledger;
	char *text;
	struct family_record record; /* points into text, like all below */
	struct bytes profile;
};

/* A record of some kind, in the order in which they were written. */
static bool record_of(const struct remains *remains, uint64_t *at, const struct wire_schema *schema, void *record)
{
	struct wire_frame frame;
	struct wire_fault fault;

	while (ledger_next(&remains->ledger, remains->text, at, &frame))
		if (bytes_is(frame.type, schema->type) && !wire_decode(record, schema, frame.body, &fault))
			return true;
	return false;
}

/* What is being made, and what of. */
struct revival {
	struct router *router;
	const struct remains *remains;
	struct warden *warden;
};

/* ---- reading ---- */

static struct remains *remains_free(struct remains *remains)
{
	if (remains) {
		list_remove(&remains->node);
		ledger_deinit(&remains->ledger);
		free(remains->text);
		free(remains);
	}
	return NULL;
}

/* Up to the last family record, which is the last thing that has happened. */
static int ledger_take(struct remains *remains, struct heirloom *heirloom)
{
	struct profile_record profile;
	struct wire_frame frame;
	struct wire_fault fault;
	uint64_t at = 0, end = 0;
	int r = ledger_open(&remains->ledger, steal_fd(&heirloom->fds[0]));

	heirloom->taken = true;
	if (!r)
		r = ledger_read(&remains->ledger, &remains->text);
	if (r)
		return r;
	while (ledger_next(&remains->ledger, remains->text, &at, &frame)) {
		if (!bytes_is(frame.type, family_record_schema.type))
			continue;
		if (wire_decode(&remains->record, &family_record_schema, frame.body, &fault))
			return -EBADMSG;
		end = at;
	}
	r = ledger_cut(&remains->ledger, end);
	at = 0;
	if (!r && !record_of(remains, &at, &profile_record_schema, &profile))
		r = -EBADMSG;
	if (!r)
		remains->profile = profile.text;
	return r;
}

static void family_lost(uint64_t family, int r)
{
	log_error(NULL, "the sessions of family %" PRIu64 " end: what the last router wrote cannot be used: %s",
		  family, strerror(-r));
	vault_forget_family(family);
}

static void family_read(struct router *router, struct heirloom *heirloom)
{
	struct remains *remains = calloc(1, sizeof(*remains));
	int r;

	if (!remains)
		return;
	list_init(&remains->node);
	ledger_init(&remains->ledger);
	remains->family = heirloom->family;
	r = ledger_take(remains, heirloom);
	if (r) {
		family_lost(remains->family, r);
		remains_free(remains);
		return;
	}
	list_append(&router->remains, &remains->node);
	router->last_serial = MAX(router->last_serial, MAX(remains->family, remains->record.serial));
}

void families_read(struct router *router)
{
	struct heirloom *heirloom;

	for (size_t i = 0; i < STORE_SHELVES; i++)
		list_for_each (heirloom, &router->heritage.shelves[i], node)
			if (heirloom->kind == VAULT_FAMILY)
				family_read(router, heirloom);
}

bool families_use(const struct router *router, const char *path)
{
	struct remains *remains;

	list_for_each (remains, (struct list *)&router->remains, node)
		if (bytes_is(remains->record.workspace, path))
			return true;
	return false;
}

/* ---- whose it is ---- */

static bool profile_is(const struct profile *profile, struct bytes text)
{
	char *own = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&own, &size);
	bool same;

	if (!out)
		return false;
	profile_print(profile, out);
	same = fclose(out) == 0 && bytes_equal(text, (struct bytes){own, size});
	free(own);
	return same;
}

/* One whose settings have changed since belongs to no template of today's. */
static struct nursery *nursery_for(struct router *router, struct bytes text)
{
	struct nursery *nursery;
	struct config_error error;
	struct config *config;

	list_for_each (nursery, &router->nurseries, node)
		if (profile_is(nursery->profile, text))
			return nursery;
	list_for_each (nursery, &router->retired, node)
		if (profile_is(nursery->profile, text))
			return nursery;
	if (config_parse(&config, text, "the last router", &error)) {
		log_error(NULL, "%s", error.text);
		return NULL;
	}
	for (size_t i = 0; i < config->n_profiles; i++)
		if (profile_is(config->profiles[i], text) && !nursery_new(&nursery, router, config->profiles[i])) {
			nursery->retired = true;
			list_append(&router->retired, &nursery->node);
			config_free(config);
			return nursery;
		}
	config_free(config);
	return NULL;
}

static struct promise *claim(const struct revival *revival, uint64_t serial, const struct session *session)
{
	const struct profile *profile = session->profile;
	const struct keeping keeping = {
		.ttl = profile->result_ttl, .number = profile->results, .size = profile->results_size};

	return promises_claim(&revival->router->promises, serial, session->owner, bytes_of(session->id), &keeping);
}

/* Nobody, but for a promise, which puts the number of each asker where this one stands. */
static struct address address_of(const struct revival *revival, uint64_t serial, const struct session *session)
{
	struct address address = {.uid = session->owner, .id = 1};

	if (serial > 0)
		address.promise = claim(revival, serial, session);
	return address;
}

/* ---- interpreters ---- */

static int interpreter_from(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct interpreter_record record;
	struct interpreter *interpreter;
	struct heirloom *heirloom;
	struct wire_fault fault;
	int r;

	if (wire_decode(&record, &interpreter_record_schema, body, &fault))
		return -EBADMSG;
	heirloom = heritage_find(&revival->router->heritage, VAULT_INTERPRETER, warden->family, record.serial);
	if (!heirloom) {
		log_error(NULL, "interpreter %" PRIu64 " is not held", record.serial);
		return -ENOENT;
	}
	r = interpreter_revive(&interpreter, &revival->router->loop, &revival->router->due, &record, heirloom->fds,
			       heirloom->n_fds);
	if (r)
		return r;
	heirloom->taken = true;
	interpreter->family = warden->family;
	list_append(&warden->interpreters, &interpreter->node);
	return 0;
}

static struct interpreter *interpreter_named(const struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		if (interpreter->serial == serial)
			return interpreter;
	return NULL;
}

/* Its descriptors go along again if it is not known to have them. */
static int message_from(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct interpreter *to;
	struct message_record record;
	struct heirloom *subject;
	struct wire_fault fault;
	int theirs[PEER_FDS_MAX];
	size_t n = 0;

	if (wire_decode(&record, &message_record_schema, body, &fault) || record.n_fds > PEER_FDS_MAX)
		return -EBADMSG;
	to = record.to ? interpreter_named(warden, record.to) : NULL;
	if (record.to && !to)
		return 0;
	subject = heritage_find(&revival->router->heritage,
				record.subject & SUBJECT_TASK ? VAULT_TASK : VAULT_INTERPRETER, warden->family,
				record.subject & ~SUBJECT_TASK);
	for (size_t i = 0; subject && n < record.n_fds && i < STORE_FDS_MAX; i++)
		if (subject->fds[i] >= 0)
			theirs[n++] = steal_fd(&subject->fds[i]);
	if (n < record.n_fds) {
		while (n > 0)
			fd_close(theirs[--n]);
		return 0;
	}
	if (to && warden->sweeping)
		peer_hold(&to->peer, true);
	return peer_repeat(to ? &to->peer : &warden->peer, record.number, record.datagram, record.subject, theirs,
			   n);
}

/* ---- sessions ---- */

static struct bytes code_of(const struct revival *revival, uint64_t promise)
{
	struct code_record record;
	uint64_t at = 0;

	while (record_of(revival->remains, &at, &code_record_schema, &record))
		if (record.promise == promise)
			return record.code;
	return BYTES("");
}

static void displays_from(const struct revival *revival, struct cell *cell, uint64_t promise,
			  const struct cell_record *cell_record)
{
	struct display_record record;
	struct wire_fault fault;
	struct shown shown;
	uint64_t at = 0;

	while (record_of(revival->remains, &at, &display_record_schema, &record)) {
		if (record.promise != promise || wire_decode(&shown, &shown_schema, record.shown, &fault))
			continue;
		cell->displays.total = shown.at;
		displays_add(&cell->displays, &shown);
	}
	cell->displays.total = cell_record->displays;
	cell->displays.dropped = cell_record->displays_dropped;
}

static void journal_from(const struct revival *revival, struct session *session)
{
	struct entry_record record;
	uint64_t at = 0;

	while (record_of(revival->remains, &at, &entry_record_schema, &record))
		if (record.session == session->number)
			journal_read(&session->journal, &record);
}

/* The file of a task goes along again, so it is only borrowed here. One that had not begun finds it anew. */
static int task_file_from(struct cell *cell, const struct revival *revival, const struct session *session)
{
	struct heirloom *heirloom = cell->number > 0 ? heritage_find(&revival->router->heritage, VAULT_TASK,
								     revival->warden->family, session->number)
						     : NULL;
	int fd = heirloom && heirloom->fds[0] >= 0 ? fcntl(heirloom->fds[0], F_DUPFD_CLOEXEC, 0) : -1;

	if (heirloom)
		heirloom->taken = cell->file_stored = true;
	if (cell->task == CELL_SAVE)
		cell->file = fd;
	else if (fd >= 0)
		return saved_take(&cell->saved, fd, session->owner, bytes_of(session->id));
	else
		(void)saved_find(&cell->saved, &revival->router->saved, session->owner, bytes_of(session->id));
	return 0;
}

static int task_from(struct cell **cellp, const struct revival *revival, struct session *session,
		     const struct cell_record *record, const struct address *address)
{
	int r = cell_new_task(cellp, record->task == CELL_LOAD ? CELL_LOAD : CELL_SAVE, address, record->timeout);

	if (r)
		return r;
	(*cellp)->number = record->number;
	(*cellp)->telling = (enum telling)MIN(record->telling, (uint64_t)TELL_LOAD);
	if (record->last_save)
		session->last_save = *cellp;
	return task_file_from(*cellp, revival, session);
}

static int cell_from(struct cell **cellp, const struct revival *revival, struct session *session, struct bytes body)
{
	struct exec_request request = {.code = BYTES("")};
	struct cell_record record;
	struct wire_fault fault;
	struct address address;
	struct promise *promise;
	struct cell *cell;
	int r;

	if (wire_decode(&record, &cell_record_schema, body, &fault))
		return -EBADMSG;
	address = address_of(revival, record.promise, session);
	promise = address.promise;
	if (!promise)
		return -ENOMEM;
	request.code = code_of(revival, record.promise);
	request.stream = record.stream;
	request.input = record.input;
	request.figure = record.figure;
	request.env = record.env;
	request.directory = record.directory;
	request.values = record.values;
	request.reload = record.reload;
	if (record.task != CELL_CODE)
		r = task_from(&cell, revival, session, &record, &address);
	else
		r = cell_new(&cell, &request, &address, record.timeout, session->profile->output_size);
	if (r)
		return r;
	if (promise->answer)
		promise->running = NULL;
	promise->cell = cell->number = record.number;
	cell->after = record.after;
	cell->started = record.started;
	displays_from(revival, cell, record.promise, &record);
	cell->asking = record.asking;
	cell->prompt = record.prompt.data ? strndup(record.prompt.data, record.prompt.size) : NULL;
	cell->password = record.password;
	cell->timed_out = record.timed_out;
	cell->written = true;
	*cellp = cell;
	return 0;
}

static int queue_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	struct bytes item;
	struct cell *cell;
	size_t cursor = 0;
	int r = record->cell.data ? cell_from(&session->cell, revival, session, record->cell) : 0;

	while (!r && wire_next(record->queue, &cursor, &item)) {
		r = cell_from(&cell, revival, session, item);
		if (!r) {
			list_append(&session->queue, &cell->node);
			session->n_queued++;
		}
	}
	return r;
}

static struct checkpoint *checkpoint_at(const struct session *session, uint64_t place)
{
	struct checkpoint *checkpoint;

	list_for_each (checkpoint, (struct list *)&session->history.checkpoints, node)
		if (--place == 0)
			return checkpoint;
	return NULL;
}

static int checkpoint_from(const struct revival *revival, struct session *session, struct bytes body)
{
	struct kept_checkpoint record;
	struct interpreter *interpreter;
	struct checkpoint *checkpoint;
	struct wire_fault fault;

	if (wire_decode(&record, &kept_checkpoint_schema, body, &fault))
		return -EBADMSG;
	interpreter = interpreter_named(revival->warden, record.interpreter);
	checkpoint = interpreter ? history_add(&session->history, interpreter, record.cell) : NULL;
	if (!checkpoint)
		return interpreter ? -ENOMEM : -EBADMSG;
	if (record.name.data)
		history_name(&session->history, checkpoint, record.name);
	checkpoint->born = record.born;
	checkpoint->memory = record.memory;
	checkpoint->severed = record.severed;
	/* An older one, so it is there already. */
	checkpoint->parent = record.parent ? checkpoint_at(session, record.parent) : NULL;
	return 0;
}

static int history_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(record->checkpoints, &cursor, &item))
		r = checkpoint_from(revival, session, item);
	session->history.base = record->base ? checkpoint_at(session, record->base) : NULL;
	session->history.saved = record->saved;
	session->history.severed = record->severed;
	session->target = record->target ? checkpoint_at(session, record->target) : NULL;
	return r;
}

static int question_from(struct question **questionp, const struct operation_record *record)
{
	int r = question_new(questionp, (enum question_kind)record->question, record->code, record->names);

	if (r)
		return r;
	(*questionp)->serial = record->serial;
	(*questionp)->cursor = record->cursor;
	(*questionp)->source = record->source;
	(*questionp)->changes = record->changes;
	(*questionp)->interrupted = record->interrupted;
	return 0;
}

static int operation_from(struct operation **operationp, const struct revival *revival,
			  const struct session *session, struct bytes body)
{
	struct operation_record record;
	struct wire_fault fault;
	struct address address;
	int r;

	if (wire_decode(&record, &operation_record_schema, body, &fault))
		return -EBADMSG;
	address = address_of(revival, record.promise, session);
	r = operation_new(operationp, (enum operation_kind)record.kind, &address, record.name);
	if (r)
		return r;
	snprintf((*operationp)->branch, sizeof((*operationp)->branch), "%.*s", (int)record.branch.size,
		 record.branch.data ? record.branch.data : "");
	(*operationp)->n = record.n;
	(*operationp)->files = record.files;
	return record.asks ? question_from(&(*operationp)->question, &record) : 0;
}

static int operations_from(const struct revival *revival, struct session *session,
			   const struct kept_session *record)
{
	struct operation *operation;
	struct bytes item;
	size_t cursor = 0;
	int r = record->operation.data ? operation_from(&session->operation, revival, session, record->operation)
				       : 0;

	while (!r && wire_next(record->operations, &cursor, &item)) {
		r = operation_from(&operation, revival, session, item);
		if (!r)
			list_append(&session->operations, &operation->node);
	}
	return r;
}

static int waiters_from(struct list *waiters, const struct revival *revival, const struct session *session,
			struct bytes records)
{
	struct waiter_record record;
	struct wire_fault fault;
	struct waiter *waiter;
	struct bytes item;
	size_t cursor = 0;

	while (wire_next(records, &cursor, &item)) {
		if (wire_decode(&record, &waiter_record_schema, item, &fault))
			return -EBADMSG;
		waiter = calloc(1, sizeof(*waiter));
		if (!waiter)
			return -ENOMEM;
		waiter->request = address_of(revival, record.promise, session);
		list_append(waiters, &waiter->node);
	}
	return 0;
}

/* The head and the tail of what no reply holds; the middle may be gone. */
static void output_from(struct output *output, const struct transcript *transcript, struct bytes words)
{
	uint64_t head = transcript->begin + output->limit - output->limit / 2, at = transcript->begin;
	uint64_t tail = transcript->end > output->limit / 2 ? transcript->end - output->limit / 2 : 0;
	char chunk[CHUNK];

	while (at < transcript->end) {
		size_t wanted = (size_t)MIN(transcript->end - at, sizeof(chunk));
		ssize_t n;

		if (at >= head && at < tail) {
			output_skip(output, tail - at);
			at = tail;
			continue;
		}
		if (at < head)
			wanted = (size_t)MIN(wanted, head - at);
		n = transcript_read(transcript, at, chunk, wanted);
		if (n <= 0)
			break;
		output_add(output, (struct bytes){.data = chunk, .size = (size_t)n});
		at += (uint64_t)n;
	}
	output_add(output, words);
}

static int transcripts_from(const struct revival *revival, struct session *session,
			    const struct kept_session *record)
{
	struct heirloom *heirloom =
		heritage_find(&revival->router->heritage, VAULT_SESSION, revival->warden->family, record->number);
	const uint64_t begins[] = {record->stdout_begin, record->stderr_begin};
	const struct bytes words[] = {record->stdout_words, record->stderr_words};
	struct cell *cell = session->cell;
	int r = 0;

	if (!heirloom || heirloom->n_fds != 2)
		return -ENOENT;
	heirloom->taken = session->transcripts_stored = true;
	for (int i = 0; i < 2 && !r; i++) {
		struct output *output = &session->stray[i];

		if (cell)
			output = i ? &cell->stderr_ : &cell->stdout_;
		r = transcript_open(&session->transcripts[i], steal_fd(&heirloom->fds[i]), begins[i]);
		if (!r)
			output_from(output, &session->transcripts[i], words[i]);
		if (!r && words[i].size > 0)
			(void)msgpack_sbuffer_write(&session->words[i], words[i].data, words[i].size);
	}
	return r;
}

static void text_from(char *text, size_t size, struct bytes from)
{
	snprintf(text, size, "%.*s", (int)MIN(from.size, size - 1), from.data ? from.data : "");
}

static void expiry_from(struct session *session, const struct kept_session *record)
{
	struct tidings *tidings = &session->tidings;

	if (record->expiring.data)
		session->expiring = bytes_is(record->expiring, "hard_ttl") ? "hard_ttl" : "idle_ttl";
	session->save_tried = record->save_tried;
	session->restored = record->restored;
	if (record->tidings_age > 0 &&
	    !msgpack_sbuffer_write(&tidings->loaded, record->loaded.data, record->loaded.size) &&
	    !msgpack_sbuffer_write(&tidings->not_loaded, record->not_loaded.data, record->not_loaded.size))
		tidings->age = record->tidings_age;
}

static void values_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	session->number = record->number;
	session->state = (enum session_state)MIN(record->state, (uint64_t)SESSION_CLOSING);
	session->sweep = (enum sweep)record->sweep;
	session->live = interpreter_named(revival->warden, record->live);
	session->source = interpreter_named(revival->warden, record->source);
	session->freezing = interpreter_named(revival->warden, record->freezing);
	session->n_cells = record->n_cells;
	session->exited = record->exited;
	session->lost_to = record->lost_to;
	session->at = record->at;
	session->growing = record->growing;
	session->was_saved = record->was_saved;
	session->n_questions = record->n_questions;
	session->exact = record->exact;
	session->n_forgotten = record->n_forgotten;
	session->opened = record->opened;
	session->last = record->last;
	session->created = record->created;
	expiry_from(session, record);
	text_from(session->lost_cause, sizeof(session->lost_cause), record->lost_cause);
	text_from(session->kill_text, sizeof(session->kill_text), record->kill_cause);
	session->kill_cause = record->kill_cause.data ? session->kill_text : NULL;
	text_from(session->verdict_cause, sizeof(session->verdict_cause), record->verdict_cause);
	session->verdict = (struct verdict){
		.state = "reset",
		.returncode = record->verdict_returncode,
		.cause = record->verdict_cause.data ? session->verdict_cause : NULL,
	};
}

static int session_from(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct kept_session record;
	struct session *session;
	struct wire_fault fault;
	char id[SESSION_ID_MAX + 1];
	int r;

	if (wire_decode(&record, &kept_session_schema, body, &fault))
		return -EBADMSG;
	text_from(id, sizeof(id), record.id);
	session = session_alloc(revival->router, warden->nursery->profile, id, (uid_t)record.owner);
	if (!session)
		return -ENOMEM;
	session->warden = warden;
	list_append(&warden->sessions, &session->kin);
	values_from(revival, session, &record);
	if (record.workspace.data)
		session->workspace = strndup(record.workspace.data, record.workspace.size);
	journal_from(revival, session);
	r = queue_from(revival, session, &record);
	r = r ? r : history_from(revival, session, &record);
	r = r ? r : operations_from(revival, session, &record);
	r = r ? r : waiters_from(&session->resets, revival, session, record.resets);
	r = r ? r : waiters_from(&session->closers, revival, session, record.closers);
	r = r ? r : transcripts_from(revival, session, &record);
	r = r ? r : router_readmit(revival->router, session);
	if (!r && record.deadline)
		session_deadline(session,
				 record.deadline > event_now() ? record.deadline - event_now() : (uint64_t)1);
	session->patience = record.patience;
	if (!r && session->cell)
		session_watch(session);
	return r;
}

/* ---- a family ---- */

static int each(const struct revival *revival, struct bytes records,
		int (*make)(const struct revival *revival, struct bytes body))
{
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(records, &cursor, &item))
		r = make(revival, item);
	return r;
}

/* Listened to by the session that had it. */
static int interpreter_reattach(const struct revival *revival, struct bytes body)
{
	struct interpreter_record record;
	struct interpreter *interpreter;
	struct wire_fault fault;
	struct session *session;

	if (wire_decode(&record, &interpreter_record_schema, body, &fault))
		return -EBADMSG;
	interpreter = interpreter_named(revival->warden, record.serial);
	list_for_each (session, &revival->warden->sessions, kin)
		if (interpreter && session->number == record.session)
			return interpreter_attach(interpreter, session);
	return 0;
}

/* Its descriptors, which go to the keeper just before the record that says it is ready. One without that record is
 * not taken over but made again: nobody has worked in there yet, and it goes when its control pair is closed. */
static struct heirloom *warden_heirloom(struct router *router, const struct remains *remains)
{
	if (remains->record.state < WARDEN_READY)
		return NULL;
	return heritage_find(&router->heritage, VAULT_WARDEN, remains->family, 0);
}

static int family_revive(struct router *router, struct remains *remains)
{
	const struct family_record *record = &remains->record;
	struct heirloom *heirloom = warden_heirloom(router, remains);
	struct revival revival = {.router = router, .remains = remains};
	struct nursery *nursery = nursery_for(router, remains->profile);
	struct session *session;
	int r;

	if (!nursery)
		return -EINVAL;
	r = warden_revive(&revival.warden, router, nursery, remains->family, record,
			  heirloom ? heirloom->fds : NULL);
	if (r)
		return r;
	if (heirloom)
		heirloom->taken = true;
	list_append(&nursery->wardens, &revival.warden->node);
	r = each(&revival, record->interpreters, interpreter_from);
	r = r ? r : each(&revival, record->sessions, session_from);
	r = r ? r : each(&revival, record->interpreters, interpreter_reattach);
	r = r ? r : each(&revival, record->messages, message_from);
	/* Not before: what is read above is read from it. */
	revival.warden->ledger = remains->ledger;
	ledger_init(&remains->ledger);
	if (r) {
		warden_failed(revival.warden, bytes_of(strerror(-r)));
		return r;
	}
	list_for_each (session, &revival.warden->sessions, kin)
		session_on_revived(session);
	nursery_warm(nursery);
	family_touch(revival.warden);
	return 0;
}

void families_revive(struct router *router)
{
	struct remains *remains;
	struct session *session;
	size_t n = 0;

	list_for_each (remains, &router->remains, node) {
		int r = family_revive(router, remains);

		if (r)
			family_lost(remains->family, r);
		remains_free(remains);
	}
	list_for_each (session, &router->sessions, node)
		n++;
	router->stats.opened = n;
	if (n > 0)
		log_info(NULL,
			 n == 1 ? "%zu session of the last router goes on"
				: "%zu sessions of the last router go on",
			 n);
}
