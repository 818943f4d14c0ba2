/* Filing. A number stands for the files of one moment. Checkpoints whose files are the same have the same number.
 * When none has it any more, the warden forgets the files. What comes from the warden, and the deadline, is in one
 * table of states and events, below. What a session says decides only when its files are kept: to bring them back,
 * the warden looks at all of them. */
#include "filing.h"

#include "base/log.h"
#include "rows.h"
#include "session/core/events.h"
#include "session/core/sessions.h"
#include "vault/records.h"

#include <inttypes.h>
#include <stdio.h>

/* How long the warden may take to get any further with bringing files back. */
#define BRING_US (120 * 1000000ULL)
/* How long an operation waits for files to be kept; a cell waits longer while the warden gets further. */
#define KEEP_US (120 * 1000000ULL)
#define MAPPED_SIZE_MAX 1024

enum event {
	EVENT_FILES_KEPT,
	EVENT_FILES_GOING, /* the warden gets further */
	EVENT_FILES_BACK,
	EVENT_FILES_LATE, /* it does not, or somebody will not wait */
	_EVENT_FILES_N,
};

static void filing_event(struct session *session, enum event event, const void *message);

bool filing_is_on(const struct session *session)
{
	return session->id[0] && session->profile->files == FILES_RESTORE &&
	       session->profile->checkpoint != CHECKPOINT_OFF;
}

/* Its directory in the family's, if it has one. */
static const char *directory_of(const struct session *session)
{
	return session->workspace ? strrchr(session->workspace, '/') + 1 : NULL;
}

static bool same_workspace(const struct session *a, const struct session *b)
{
	return !strcmp(session_workspace(a), session_workspace(b));
}

/* Another session works in the same files, and would lose what it has done. */
static bool is_shared(const struct session *session)
{
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node)
		if (member != session && member->state != SESSION_CLOSING && same_workspace(member, session))
			return true;
	return false;
}

/* ---- numbers ---- */

static bool has_number(const struct session *session, uint64_t number)
{
	struct checkpoint *checkpoint;

	if (session->filing.now == number || session->filing.first == number || session->filing.base == number ||
	    session->filing.origin == number)
		return true;
	list_for_each (checkpoint, (struct list *)&session->history.checkpoints, node)
		if (checkpoint->files == number)
			return true;
	return false;
}

void filing_unused(struct session *session, uint64_t number)
{
	struct session *member;

	if (!number || !session->warden)
		return;
	list_for_each (member, &session->warden->tenants, tenant.node)
		if (has_number(member, number))
			return;
	warden_drop_files(session->warden, number);
}

static void number_set(struct session *session, uint64_t *numberp, uint64_t number)
{
	uint64_t old = *numberp;

	*numberp = number;
	if (old != number)
		filing_unused(session, old);
}

/* ---- keeping ---- */

void filing_note(struct session *session, const struct done_message *done)
{
	if (!filing_is_on(session)) {
		session->filing.stale |= done->changed;
		return;
	}
	session->filing.stale |= done->changed || session->filing.restless;
	session->filing.mapped.size = 0;
	if (done->mapped.data && done->mapped.size < MAPPED_SIZE_MAX)
		(void)msgpack_sbuffer_write(&session->filing.mapped, done->mapped.data, done->mapped.size);
	session->filing.restless = done->restless || session->filing.mapped.size > 0 || is_shared(session);
}

void filing_doubt(struct session *session)
{
	session->filing.stale |= session->filing.restless;
}

/* What the warden is asked for, from now on. */
static void ask(struct session *session, enum filing_state state, uint64_t number)
{
	session->filing.state = state;
	session->filing.asked = number;
}

bool filing_is_under_way(const struct session *session)
{
	return session->filing.state > FILING_KEEPS;
}

/* They are those of the present state, if no cell has run since. */
static void belong(struct session *session, uint64_t number)
{
	struct checkpoint *base = session->history.base;

	if (!session->history.saved)
		return;
	number_set(session, &session->filing.base, number);
	if (session->filing.aside)
		return;
	number_set(session, base ? &base->files : &session->filing.first, number);
}

void filing_keep(struct session *session)
{
	bool is_copied = operation_is_birth(session) && session->operation->files;
	uint64_t number;

	if (!filing_is_on(session) || !session->filing.stale || filing_is_under_way(session) || is_copied)
		return;
	number = warden_keep_files(session->warden, directory_of(session), session->profile->checkpoint_files,
				   wire_bytes(&session->filing.mapped));
	if (!number)
		return;
	session->filing.stale = session->filing.lack = session->filing.put = false;
	ask(session, FILING_KEEPS, number);
	number_set(session, &session->filing.now, number);
	belong(session, number);
}

/* A client was told that it is there: it is to survive a crash before the next cell, too. */
static void keep_put(struct session *session)
{
	if (session->filing.put && session->state == SESSION_IDLE && session->filing.state == FILING_QUIET)
		filing_keep(session);
}

void filing_note_put(struct session *session)
{
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node) {
		if (!same_workspace(member, session) || !filing_is_on(member))
			continue;
		member->filing.stale = member->filing.put = true;
		keep_put(member);
	}
}

bool filing_waits(struct session *session)
{
	filing_keep(session);
	if (session->filing.state != FILING_QUIET && session->state == SESSION_IDLE && !session->deadline.index)
		session_deadline(session, KEEP_US);
	return session->filing.state != FILING_QUIET;
}

/* Whether one has them. */
static bool note_checkpoints(struct session *session, const struct files_kept_message *kept)
{
	struct checkpoint *checkpoint;
	bool found = false;

	list_for_each (checkpoint, &session->history.checkpoints, node) {
		if (checkpoint->files != kept->serial)
			continue;
		checkpoint->n_files = kept->files;
		checkpoint->files_size = kept->size;
		checkpoint->files_lack = kept->why.size > 0;
		found = true;
	}
	return found;
}

static void note_now(struct session *session, uint64_t files, uint64_t size, bool lack)
{
	session->filing.n = files;
	session->filing.size = size;
	session->filing.lack = lack;
}

void filing_on_kept(struct tenant *tenant, const struct files_kept_message *kept)
{
	struct session *session = session_of_tenant(tenant);
	bool noted = note_checkpoints(session, kept);

	if (session->filing.now == kept->serial && kept->why.size > 0)
		snprintf(session->filing.unkept, sizeof(session->filing.unkept), "%.*s", (int)kept->why.size,
			 kept->why.data);
	if (session->filing.now == kept->serial)
		note_now(session, kept->files, noted ? 0 : kept->size, kept->why.size > 0);
	if (session->filing.asked == kept->serial)
		filing_event(session, EVENT_FILES_KEPT, kept);
}

static void on_kept(struct session *session, const void *message)
{
	(void)message;
	ask(session, FILING_QUIET, 0);
	if (session->state == SESSION_IDLE)
		session_deadline(session, 0);
	session_proceed(session);
	keep_put(session);
}

/* What makes and removes files all the time could keep the warden busy for ever, and an operation that ends it
 * waiting. */
static void on_keeping(struct session *session, const void *message)
{
	(void)message;
	if (session->state == SESSION_IDLE && list_empty(&session->operations))
		session_deadline(session, KEEP_US);
}

static void keep_no_longer(struct session *session, const void *message)
{
	struct filing *filing = &session->filing;

	log_warn(session->name, "its files are not kept in time: it goes on");
	filing->lack = true;
	snprintf(filing->unkept, sizeof(filing->unkept), "the files were not kept in time");
	on_kept(session, message);
}

void filing_on_frozen(struct session *session, struct checkpoint *checkpoint)
{
	checkpoint->files = session->filing.now;
	checkpoint->n_files = session->filing.n;
	checkpoint->files_lack = session->filing.lack;
	checkpoint->files_size = session->filing.size;
	session->filing.size = 0; /* the next one shares them */
	session->filing.aside = false;
	number_set(session, &session->filing.base, session->filing.now);
}

/* ---- bringing back ---- */

/* A cell that is lost had begun in the files of the base, which may be others than those that the base was saved
 * with. */
static uint64_t number_wanted(const struct session *session)
{
	const struct checkpoint *target = session->target;

	if (session->filing.origin)
		return session->filing.origin;
	if (!session->operation && target == session->history.base)
		return session->filing.base;
	return target ? target->files : session->filing.first;
}

static void stay(struct session *session, const char *why)
{
	session->filing.stale = true;
	session->filing.aside = true;
	session->filing.back.size = 0;
	session->filing.more = 0;
	snprintf(session->filing.stay, sizeof(session->filing.stay), "%s", why);
}

/* If there is no state to go back to, what the session has worked for must not be lost with its variables. */
static bool goes_back(const struct session *session)
{
	bool exact = session->cell ? session->exact : session->history.saved;

	return list_empty(&session->resets) && !session->growing &&
	       (session->target || exact || session->operation);
}

/* Whoever has changed no file expects none to go back. */
static void stay_kept(struct session *session)
{
	if (session->profile->checkpoint != CHECKPOINT_OFF && (session->filing.stale || !session->operation))
		stay(session, "going back leaves them as they are here");
}

static int bring(struct session *session)
{
	uint64_t number = number_wanted(session);
	int r = number ? warden_bring_files(session->warden, &session->tenant, directory_of(session), number)
		       : -ESTALE;

	if (r)
		return r;
	ask(session, FILING_BRINGS, number);
	session_deadline(session, BRING_US);
	return 0;
}

bool filing_bring(struct session *session)
{
	ask(session, FILING_QUIET, 0);
	if (!goes_back(session)) {
		session->filing.stale = session->filing.aside = true;
		return false;
	}
	if (!filing_is_on(session)) {
		stay_kept(session);
		return false;
	}
	if (session->operation && session->operation->keep_files) {
		stay(session, "");
		return false;
	}
	if (is_shared(session)) {
		stay(session, "another session works in them, too");
		return false;
	}
	if (bring(session)) {
		stay(session, "they were not kept");
		return false;
	}
	return true;
}

static void note_back(struct session *session, const struct files_back_message *back)
{
	session->filing.back.size = 0;
	session->filing.more = back->more;
	if (back->files.data)
		(void)msgpack_sbuffer_write(&session->filing.back, back->files.data, back->files.size);
	snprintf(session->filing.stay, sizeof(session->filing.stay), "%s%.*s",
		 back->refused ? "none was brought back: " : "", (int)MIN(back->why.size, (size_t)200),
		 back->why.data ? back->why.data : "");
	if (back->why.size > 0)
		log_warn(session->name, "its files were not all brought back: %s", session->filing.stay);
}

/* What is there now is the state that was wanted, but for what is told. */
static void note_state(struct session *session, const struct files_back_message *back)
{
	session->filing.stale = session->filing.aside = back->why.size > 0;
	session->filing.restless = false;
	session->filing.mapped.size = 0;
	if (back->refused)
		return;
	number_set(session, &session->filing.now, back->serial);
	number_set(session, &session->filing.base, back->serial);
	note_now(session, session->target ? session->target->n_files : 0, 0,
		 session->target && session->target->files_lack);
}

/* A branch without all of its files would be another state. */
static void refuse_birth(struct session *session, struct bytes why)
{
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(why.size, sizeof(text) - 1), why.data);
	operation_on_homeless(session, "unsupported", text);
	session_end(session, "files");
}

static void on_back(struct session *session, const void *message)
{
	const struct files_back_message *back = message;
	bool born = operation_is_birth(session);

	ask(session, FILING_QUIET, 0);
	session->filing.stale = true;
	quota_on_back(session->warden);
	if (session->state != SESSION_SWEEPING)
		return;
	if (born && back->why.size > 0) {
		refuse_birth(session, back->why);
		return;
	}
	if (!born) {
		note_back(session, back);
		note_state(session, back);
	}
	session_event(session, EVENT_FILES, &session_nothing);
}

static void on_going(struct session *session, const void *message)
{
	(void)message;
	session_deadline(session, BRING_US);
}

static void leave(struct session *session, const void *message)
{
	(void)message;
	log_warn(session->name, "bringing its files back is given up");
	warden_leave_files(session->warden, directory_of(session), session->filing.asked);
	ask(session, FILING_LEAVES, session->filing.asked);
	session_deadline(session, PATIENCE_US);
}

/* Whatever holds the warden up, the session does not wait for it. What the warden still does is seen by the next
 * look. */
static void go_without(struct session *session, const void *message)
{
	const struct files_back_message back = {
		.serial = session->filing.asked, .refused = true, .why = BYTES("the warden does not answer")};

	(void)message;
	on_back(session, &back);
}

/* An empty place: it is too late, or too early, for that. */
static void (*const table[_FILING_STATE_N][_EVENT_FILES_N])(struct session *, const void *) = {
	[FILING_QUIET] = {NULL},
	[FILING_KEEPS] =
		{
			[EVENT_FILES_KEPT] = on_kept,
			[EVENT_FILES_GOING] = on_keeping,
			[EVENT_FILES_LATE] = keep_no_longer,
		},
	[FILING_BRINGS] =
		{
			[EVENT_FILES_GOING] = on_going,
			[EVENT_FILES_BACK] = on_back,
			[EVENT_FILES_LATE] = leave,
		},
	[FILING_LEAVES] =
		{
			[EVENT_FILES_BACK] = on_back,
			[EVENT_FILES_LATE] = go_without,
		},
};

static void filing_event(struct session *session, enum event event, const void *message)
{
	if (table[session->filing.state][event])
		table[session->filing.state][event](session, message);
}

void filing_on_back(struct tenant *tenant, const struct files_back_message *back)
{
	struct session *session = session_of_tenant(tenant);

	/* Two branches may begin with the same files. */
	if (session->filing.asked == back->serial && bytes_equal(bytes_of(directory_of(session)), back->directory))
		filing_event(session, EVENT_FILES_BACK, back);
}

void filing_on_going(struct tenant *tenant)
{
	filing_event(session_of_tenant(tenant), EVENT_FILES_GOING, NULL);
}

bool filing_on_late(struct session *session)
{
	bool under_way = filing_is_under_way(session);

	filing_event(session, EVENT_FILES_LATE, NULL);
	return under_way;
}

void filing_told(struct session *session)
{
	session->filing.back.size = 0;
	session->filing.more = 0;
	session->filing.stay[0] = session->filing.unkept[0] = '\0';
}

/* ---- branches ---- */

bool filing_has_all(const struct session *session, const struct checkpoint *checkpoint)
{
	return filing_is_on(session) && checkpoint->files && !checkpoint->files_lack;
}

static void branch(struct session *session, const struct checkpoint *from, bool copy)
{
	session->filing.now = session->filing.first = session->filing.base = copy ? 0 : from->files;
	session->filing.origin = copy && filing_has_all(session, from) ? from->files : 0;
	session->filing.lack = !copy && from->files_lack;
	session->filing.stale = true;
}

/* It begins in the middle of a cell, in the same files. */
static void split(struct session *session, const struct session *parent)
{
	session->filing.now = parent->filing.now;
	session->filing.first = parent->filing.first;
	session->filing.base = parent->filing.base;
	session->filing.stale = session->filing.restless = true;
}

void filing_fill(struct session *session)
{
	if (bring(session))
		refuse_birth(session, BYTES("they were not kept"));
}

void filing_filled(struct session *session, struct spawn_message *how)
{
	if (!session->filing.origin)
		return;
	how->directory = bytes_of(directory_of(session));
	how->filled = true;
	number_set(session, &session->filing.origin, 0);
}

/* ---- as a part ---- */

static void init(struct session *session)
{
	msgpack_sbuffer_init(&session->filing.mapped);
	msgpack_sbuffer_init(&session->filing.back);
	session->filing.now = session->filing.first = session->filing.base = FILES_FIRST;
}

static void deinit(struct session *session)
{
	msgpack_sbuffer_destroy(&session->filing.mapped);
	msgpack_sbuffer_destroy(&session->filing.back);
}

#define FILING_VALUES(F, m)                                                                                        \
	F(m, UINT, now, OPTIONAL)                                                                                  \
	F(m, UINT, n, OPTIONAL)                                                                                    \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, first, OPTIONAL)                                                                                \
	F(m, UINT, base, OPTIONAL)                                                                                 \
	F(m, UINT, origin, OPTIONAL)                                                                               \
	F(m, UINT, asked, OPTIONAL)                                                                                \
	F(m, UINT, more, OPTIONAL)                                                                                 \
	F(m, UINT, state, OPTIONAL)                                                                                \
	F(m, FLAG, lack, OPTIONAL)                                                                                 \
	F(m, FLAG, stale, OPTIONAL)                                                                                \
	F(m, FLAG, aside, OPTIONAL)                                                                                \
	F(m, FLAG, restless, OPTIONAL)
/* What comes of its files when it goes back, and why its memory would go back further than to the last cell. */
#define FILING_BUFFERS(F, m)                                                                                       \
	F(m, BIN, mapped, OPTIONAL)                                                                                \
	F(m, BIN, back, OPTIONAL)
#define FILING_TEXTS(F, m)                                                                                         \
	F(m, STR, stay, OPTIONAL)                                                                                  \
	F(m, STR, unkept, OPTIONAL)
#define FILING_FIELDS(F, m)                                                                                        \
	FILING_VALUES(F, m)                                                                                        \
	FILING_BUFFERS(F, m)                                                                                       \
	FILING_TEXTS(F, m)                                                                                         \
	F(m, STR, state_unkept, OPTIONAL)
WIRE_DECLARE(filing_record, NO_ID, FILING_FIELDS);
WIRE_DEFINE(filing_record, "filing", NO_ID, FILING_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct filing *filing = &session->filing;
	struct filing_record record = {.state_unkept = record_text(session->history.unkept)};

	FILING_VALUES(RECORD_PUT, filing)
	FILING_BUFFERS(BUFFER_PUT, filing)
	FILING_TEXTS(TEXT_PUT, filing)
	return wire_encode_body(buffer, &filing_record_schema, &record);
}

static int take(struct session *session, struct bytes value)
{
	struct filing *filing = &session->filing;
	struct filing_record kept, *record = &kept;
	struct wire_fault fault;

	if (wire_decode_known(record, &filing_record_schema, value, &fault))
		return -EBADMSG;
	FILING_VALUES(RECORD_TAKE, filing)
	filing->state = MIN(filing->state, FILING_LEAVES);
	FILING_BUFFERS(BUFFER_TAKE, filing)
	FILING_TEXTS(TEXT_TAKE, filing)
	bytes_copy(session->history.unkept, sizeof(session->history.unkept), record->state_unkept);
	return 0;
}

static void on_branch(struct session *session, const struct session *parent, const struct checkpoint *from)
{
	if (from)
		branch(session, from, session->operation->files);
	else
		split(session, parent);
}

const struct part filing_part = {.name = "filing",
				 .init = init,
				 .deinit = deinit,
				 .on_branch = on_branch,
				 .on_idle = keep_put,
				 .on_late = filing_on_late,
				 .put = put,
				 .take = take};
