/* Checkpoint, restore, undo, branch, drop. An operation that needs a copy of the live state has it frozen, and goes
 * on when that is done. An operation that gives the live state up goes on when the new interpreter is ready.
 * Questions are parts' own. */
#include "base/log.h"
#include "session/parts/asking.h"
#include "session/parts/comparing.h"
#include "session/parts/filing.h"
#include "steps.h"

#include <inttypes.h>
#include <stdio.h>

static struct clients *clients_of(const struct session *session)
{
	return session->sessions->clients;
}

/* @back: the session went back to it, so the effects since then are told. */
static void reply_state(struct session *session, bool back)
{
	const struct checkpoint *base = session->history.base;
	struct state_reply reply = {
		.id = session->operation->request.id,
		.cell = base ? base->cell : 0,
		.name = bytes_of(base && base->name[0] ? base->name : NULL),
	};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer effects = {0};

	if (back && (session->effects.entries.n > 0 || session->effects.dropped > 0))
		reply.effects_more = effects_put(&session->effects, reply.cell, EFFECTS_FOREVER, &effects);
	reply.effects = wire_bytes(&effects);
	if (back) {
		reply.files = wire_bytes(&session->filing.back);
		reply.files_more = session->filing.more;
		reply.files_stay = bytes_of(session->filing.stay[0] ? session->filing.stay : NULL);
	}
	client_send(clients_of(session), &session->operation->request, &state_reply_schema, &reply);
	if (back)
		filing_told(session);
	operation_done(session);
}

static void reply_nothing(struct session *session)
{
	struct empty_reply reply = {.id = session->operation->request.id};

	client_send(clients_of(session), &session->operation->request, &empty_reply_schema, &reply);
	operation_done(session);
}

/* The named checkpoint, or NULL when the client has been told. */
static struct checkpoint *checkpoint_named(struct session *session)
{
	struct operation *operation = session->operation;
	struct checkpoint *found = history_find(&session->history, bytes_of(operation->name));

	if (!found) {
		client_error(clients_of(session), &operation->request, "bad_request",
			     "session \"%s\" has no checkpoint \"%s\"; checkpoints lists them", session->id,
			     operation->name);
		operation_done(session);
	}
	return found;
}

/* ---- the kinds ---- */

/* The live state is that of base, which only needs its name. */
static void name_base(struct session *session)
{
	struct checkpoint *base = session->history.base;

	if (session->operation->name[0]) {
		history_name(&session->history, base, bytes_of(session->operation->name));
	}
	reply_state(session, false);
}

static void begin_checkpoint(struct session *session)
{
	const struct operation *operation = session->operation;
	const struct history *history = &session->history;
	const struct checkpoint *base = history->saved ? history->base : NULL;
	const struct checkpoint *found =
		operation->name[0] ? history_find(&session->history, bytes_of(operation->name)) : NULL;

	if (base && (found == base || !operation->name[0])) {
		reply_state(session, false);
	} else if (found) {
		client_error(clients_of(session), &operation->request, "bad_request",
			     "session \"%s\" has a checkpoint \"%s\" already; drop it or choose another name",
			     session->id, operation->name);
		operation_done(session);
	} else if (operation->name[0] && history->n_named >= session->profile->checkpoints) {
		client_limit(clients_of(session), &operation->request, "limit", session->profile->name,
			     "checkpoints",
			     "there are %zu named checkpoints already, as many as checkpoints = %" PRIu64
			     " allows; drop one first",
			     history->n_named, session->profile->checkpoints);
		operation_done(session);
	} else if (base && !base->name[0]) {
		name_base(session);
	} else {
		session_freeze(session);
	}
}

static void begin_restore(struct session *session)
{
	struct checkpoint *target = checkpoint_named(session);

	if (target)
		session_rewind(session, target);
}

static void begin_undo(struct session *session)
{
	bool lost = session->lost_cause[0] && session->lost_step;
	uint64_t n = session->operation->n;
	struct checkpoint *target;

	if (history_back(&session->history, lost && n > 0 ? n - 1 : n, &target)) {
		session_rewind(session, target);
		return;
	}
	client_error(clients_of(session), &session->operation->request, "gone",
		     "session \"%s\" does not remember the state %" PRIu64 " back; checkpoints lists what it has",
		     session->id, session->operation->n);
	operation_done(session);
}

static void branch_from(struct session *session, struct checkpoint *from)
{
	struct operation *operation = session->operation;

	if (operation->by_default && !filing_has_all(session, from)) {
		client_error(
			clients_of(session), &operation->request, "too_large",
			"the files of this state are not all kept, so the branch cannot begin with them: share "
			"those of session \"%s\", or ask for files, which are copies of those of now",
			session->id);
		operation_done(session);
		return;
	}
	session->operation = NULL;
	session_branch(session, from, operation);
}

static void begin_branch(struct session *session)
{
	struct checkpoint *from;

	if (session->operation->name[0]) {
		from = checkpoint_named(session);
		if (from)
			branch_from(session, from);
	} else if (session->history.saved && session->history.base) {
		branch_from(session, session->history.base);
	} else {
		session_freeze(session);
	}
}

static void begin_drop(struct session *session)
{
	struct checkpoint *checkpoint = checkpoint_named(session);

	if (!checkpoint)
		return;
	session_forget(session, checkpoint);
	reply_nothing(session);
}

static void begin_asking(struct session *session)
{
	session->state = SESSION_ANSWERING;
	if (session->operation->question)
		session_ask(session);
	else
		comparing_begin(session);
}

static void (*const begin[])(struct session *session) = {
	[OPERATION_CHECKPOINT] = begin_checkpoint,
	[OPERATION_RESTORE] = begin_restore,
	[OPERATION_UNDO] = begin_undo,
	[OPERATION_BRANCH] = begin_branch,
	[OPERATION_DROP] = begin_drop,
	[OPERATION_QUESTION] = begin_asking,
	[OPERATION_DIFF] = begin_asking,
};

void operation_begin(struct session *session, struct operation *operation)
{
	list_remove(&operation->node);
	session->operation = operation;
	begin[operation->kind](session);
}

void operation_on_born(struct session *session)
{
	const struct address *request = &session->operation->request;
	char name[SESSION_NAME_SIZE];
	struct session_info info = session_record(session, request->uid, name);

	info.id = request->id;
	info.opened = true;
	info.own_files = session->operation->files;
	info.key = bytes_of(session->cell ? session->cell->reply.promise->key : NULL);
	info.effects = wire_bytes(&session->operation->effects);
	info.effects_more = session->operation->effects_more;
	client_send(clients_of(session), request, &session_info_schema, &info);
	operation_done(session);
}

/* Nobody has asked for the copy, so the next answers tell. */
static void note_unkept(struct session *session, const char *why)
{
	struct history *history = &session->history;

	if (!why)
		return;
	if (strcmp(history->unkept, why))
		log_warn(session->name, "the state after cell %" PRIu64 " cannot be kept: %s", session->at, why);
	snprintf(history->unkept, sizeof(history->unkept), "%s", why);
}

void operation_on_frozen(struct session *session, const char *why)
{
	struct operation *operation = session->operation;

	/* The state after a question is frozen after its answer. */
	if (!operation || operation->kind == OPERATION_QUESTION) {
		note_unkept(session, why);
	} else if (operation_is_birth(session)) {
		operation_on_born(session);
	} else if (why) {
		client_error(clients_of(session), &operation->request, "unsupported",
			     "the state of session \"%s\" cannot be saved now: %s", session->id, why);
		operation_done(session);
	} else if (operation->kind == OPERATION_BRANCH && session->filing.state == FILING_KEEPS) {
		/* Not before it is known whether its files are kept. */
		session->operation = NULL;
		list_append(session->operations.next, &operation->node);
	} else if (operation->kind == OPERATION_BRANCH) {
		branch_from(session, session->history.base);
	} else {
		name_base(session);
	}
}

void operation_on_restored(struct session *session)
{
	if (session->operation)
		reply_state(session, true);
}
