/* Checkpoints on request: each is an operation of the session, which answers when it is done. */
#include "request.h"

#include "session/parts/filing.h"
#include "session/parts/split.h"

/* The profile may say that there are none: then none is made on request either. @session: NULL if the client has
 * been told already. */
static struct session *session_that_keeps(struct sessions *sessions, const struct address *from,
					  struct session *session)
{
	if (!session || session->profile->checkpoint != CHECKPOINT_OFF)
		return session;
	client_limit(sessions->clients, from, "unsupported", session->profile->name, "checkpoint",
		     "session \"%s\" keeps no checkpoints: its profile has checkpoint = off", session->id);
	return NULL;
}

static void tell_name(struct sessions *sessions, const struct address *from)
{
	client_error(sessions->clients, from, "bad_request",
		     "the name of a checkpoint is 1 to %d printable characters without space", CHECKPOINT_NAME_MAX);
}

static struct operation *operation_make(struct sessions *sessions, const struct address *from,
					const struct session *session, enum operation_kind kind, struct bytes name)
{
	struct operation *operation = NULL;

	if (!session_room_for_operation(sessions, from, session))
		return NULL;
	if (name.data && !checkpoint_name_valid(name))
		tell_name(sessions, from);
	else if (operation_new(&operation, kind, from, name))
		client_error(sessions->clients, from, "internal", "out of memory");
	return operation;
}

static void operate(struct sessions *sessions, const struct address *from, const struct request *request,
		    enum operation_kind kind, struct bytes name, uint64_t n, bool keep_files)
{
	struct session *session =
		session_that_keeps(sessions, from, session_between_cells(sessions, from, request));
	struct operation *operation = session ? operation_make(sessions, from, session, kind, name) : NULL;

	if (!operation)
		return;
	operation->n = n;
	operation->keep_files = keep_files;
	session_operate(session, operation);
}

void handle_checkpoint(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct checkpoint_request *checkpoint = &request->checkpoint;

	operate(sessions, from, request, OPERATION_CHECKPOINT, checkpoint->name, 0, false);
}

void handle_restore(struct sessions *sessions, const struct address *from, const struct request *request)
{
	operate(sessions, from, request, OPERATION_RESTORE, request->restore.name, 0, request->restore.keep_files);
}

void handle_undo(struct sessions *sessions, const struct address *from, const struct request *request)
{
	uint64_t n = request->undo.n;

	operate(sessions, from, request, OPERATION_UNDO, (struct bytes){.data = NULL}, n ? n : 1,
		request->undo.keep_files);
}

void handle_drop(struct sessions *sessions, const struct address *from, const struct request *request)
{
	operate(sessions, from, request, OPERATION_DROP, request->drop.name, 0, false);
}

void handle_diff(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct diff_request *diff = &request->diff;
	struct session *session =
		session_that_keeps(sessions, from, session_between_cells(sessions, from, request));
	struct operation *operation;

	if (session && diff->until.data && !checkpoint_name_valid(diff->until)) {
		tell_name(sessions, from);
		return;
	}
	operation = session ? operation_make(sessions, from, session, OPERATION_DIFF, diff->since) : NULL;
	if (!operation)
		return;
	bytes_copy(operation->branch, sizeof(operation->branch), diff->until);
	filing_doubt(session);
	session_operate(session, operation);
}

/* NULL, or why there can be no branch in the middle of its cell. */
static const char *why_not_at_call(const char **codep, const struct session *session,
				   const struct branch_request *branch)
{
	const struct cell *cell = session_busy(session) ? session->cell : NULL;

	*codep = "bad_request";
	if (branch->origin.data || branch->files)
		return "at_call: without origin, and without files";
	*codep = "gone";
	if (!cell || !cell->options.functions.data)
		return "at_call: that session runs no cell that may call functions";
	if (session->state != SESSION_BUSY || cell->timed_out)
		return "at_call: the cell that waits is being interrupted";
	*codep = "unsupported";
	if (cell->asking)
		return "at_call: the cell waits for input, too";
	*codep = "busy";
	return session->split.copy ? "at_call: another branch of that cell is being made; try again" : NULL;
}

/* The session, if it can be branched now; NULL when the client has been told why not. */
static struct session *session_to_branch(struct sessions *sessions, const struct address *from,
					 const struct request *request)
{
	const struct branch_request *branch = &request->branch;
	struct session *session;
	const char *why, *code;

	if (!branch->at_call)
		return session_that_keeps(sessions, from, session_between_cells(sessions, from, request));
	session = session_that_keeps(sessions, from, session_named(sessions, from, request));
	why = session ? why_not_at_call(&code, session, branch) : NULL;
	if (why)
		client_error(sessions->clients, from, code, "%s", why);
	return why ? NULL : session;
}

/* What a copy of its cell takes of its user's room. */
static uint64_t price_of_cell(const struct session *session)
{
	const struct cell *cell = session->cell;

	return cell->paid + 2 * cell->calls.size + cell->stdout_.limit + cell->stderr_.limit;
}

void handle_branch(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct branch_request *branch = &request->branch;
	struct session *session = session_to_branch(sessions, from, request);
	struct operation *operation;
	struct session_name name;

	if (!session || !session_name_given(&name, sessions, from, branch->branch))
		return;
	if (branch->files && branch->share) {
		client_error(sessions->clients, from, "bad_request", "files, or share: not both");
		return;
	}
	if (name.owner != session->owner) {
		client_error(sessions->clients, from, "bad_request",
			     "a branch is of the user whose session it grows from: call it \"%u/%.*s\"",
			     session->owner, (int)name.id.size, name.id.data);
		return;
	}
	if (sessions_find(sessions, &name)) {
		client_error(sessions->clients, from, "denied", "the id \"%.*s\" is taken; choose another",
			     (int)branch->branch.size, branch->branch.data);
		return;
	}
	if (!sessions_room(sessions, from, session->owner) ||
	    (branch->at_call && !user_room(sessions, from, session->owner, price_of_cell(session))))
		return;
	operation = operation_make(sessions, from, session, OPERATION_BRANCH, branch->origin);
	if (!operation)
		return;
	operation->by_default = !branch->files && !branch->share && !branch->at_call && filing_is_on(session);
	operation->files = branch->files || operation->by_default;
	bytes_copy(operation->branch, sizeof(operation->branch), name.id);
	if (branch->at_call)
		split_begin(session, operation);
	else
		session_operate(session, operation);
}

void handle_checkpoints(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);
	struct checkpoints_reply reply = {.id = request->id};
	_cleanup_(wire_list_deinit) struct wire_list list = {0};
	struct checkpoint *checkpoint;
	uint64_t n = 0;

	if (!session)
		return;
	list_for_each (checkpoint, &session->history.checkpoints, node) {
		struct checkpoint_record record = {
			.name = bytes_of(checkpoint->name[0] ? checkpoint->name : NULL),
			.cell = checkpoint->cell,
			.age = event_seconds(event_now() - checkpoint->born),
			.memory = checkpoint->memory,
			.files = checkpoint->files ? checkpoint->n_files : 0,
			.files_size = checkpoint->files ? checkpoint->files_size : 0,
			.files_lack = checkpoint->files_lack,
			.parent = checkpoint->parent ? checkpoint->parent->position : 0,
			.gap = checkpoint->severed,
			.base = checkpoint == session->history.base,
		};

		checkpoint->position = ++n;
		(void)wire_list_add(&list, &checkpoint_record_schema, &record);
	}
	reply.checkpoints = wire_list_bytes(&list);
	client_reply(sessions->clients, from, list.r, &checkpoints_reply_schema, &reply);
}
