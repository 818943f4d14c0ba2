/* Clients: they ask for anything that may be asked for, at any time. */
#include "world.h"

struct session *session_at(uint64_t number)
{
	struct session *session;

	list_for_each (session, &world.stage.sessions.all, node)
		if (session->tenant.number == number)
			return session;
	return NULL;
}

struct session *session_of(const struct interpreter *interpreter)
{
	struct session *session;

	list_for_each (session, &world.stage.sessions.all, node)
		if (session->live == interpreter)
			return session;
	return NULL;
}

/* One that the client knows of and that has not ended. */
static struct session *session_pick(void)
{
	struct session *session, *found = NULL;
	uint64_t n = 0;

	list_for_each (session, &world.stage.sessions.all, node)
		if (session->state != SESSION_CLOSING && session->tenant.number < SESSIONS_MAX &&
		    world.views[session->tenant.number].known && chance(++n) == 0)
			found = session;
	return found;
}

void request_note(enum request_kind kind, const struct session *session, const char *branch)
{
	struct request *request = &world.requests[world.stage.last_request + 1];

	if (world.stage.last_request + 2 >= REQUESTS_MAX)
		abort();
	*request = (struct request){.kind = kind, .session = session->tenant.number};
	snprintf(request->branch, sizeof(request->branch), "%s", branch ? branch : "");
}

static void ask_operation(struct session *session)
{
	static const enum operation_kind kinds[] = {OPERATION_CHECKPOINT, OPERATION_RESTORE, OPERATION_UNDO,
						    OPERATION_BRANCH,	  OPERATION_DROP,    OPERATION_QUESTION};
	enum operation_kind kind = kinds[chance(ARRAY_SIZE(kinds))];
	char name[24] = "", branch[16] = "";
	bool named = kind == OPERATION_RESTORE || kind == OPERATION_DROP || chance(3) == 0;

	if (session_busy(session) || session->n_queued > 0 || list_size(&session->operations) > 3)
		return;
	if (kind != OPERATION_QUESTION && session->profile->checkpoint == CHECKPOINT_OFF)
		return;
	/* By the number of a cell, or by a name. */
	if (named && kind == OPERATION_CHECKPOINT)
		snprintf(name, sizeof(name), "name%llu", (unsigned long long)chance(3));
	else if (named && kind != OPERATION_QUESTION)
		snprintf(name, sizeof(name), chance(2) ? "name%llu" : "%llu",
			 (unsigned long long)(chance(session->n_cells + 2) % 10));
	if (kind == OPERATION_BRANCH) {
		if (list_size(&world.stage.sessions.all) > 4 || world.warden->last_session + 2 >= SESSIONS_MAX)
			return;
		snprintf(branch, sizeof(branch), "b%zu", ++world.n_branches);
	}
	request_note(kind == OPERATION_BRANCH				    ? REQUEST_BRANCH
		     : kind == OPERATION_QUESTION || kind == OPERATION_DROP ? REQUEST_OTHER
									    : REQUEST_STATE,
		     session, branch);
	show("  %s: request %llu: operation %d %s %s\n", session->id,
	     (unsigned long long)world.stage.last_request + 1, (int)kind, name, branch);
	stage_operate(&world.stage, session, kind, name[0] ? name : NULL, branch[0] ? branch : NULL, 1 + chance(2));
}

static void ask_split(struct session *session)
{
	struct address address;
	struct operation *operation;
	char branch[16];

	if (!world.splits || session->state != SESSION_BUSY || session->freezing || session->split.copy ||
	    session->cell->asking || session->profile->checkpoint == CHECKPOINT_OFF || !session->id[0] ||
	    list_size(&world.stage.sessions.all) > 4 || world.warden->last_session + 2 >= SESSIONS_MAX)
		return;
	snprintf(branch, sizeof(branch), "b%zu", ++world.n_branches);
	request_note(REQUEST_BRANCH, session, branch);
	show("  %s: request %llu: branch at a call %s\n", session->id,
	     (unsigned long long)world.stage.last_request + 1, branch);
	address = stage_address(&world.stage);
	if (operation_new(&operation, OPERATION_BRANCH, &address, (struct bytes){.data = NULL}))
		abort();
	snprintf(operation->branch, sizeof(operation->branch), "%s", branch);
	split_begin(session, operation);
}

void answer_input(struct session *session)
{
	const struct input_request input = {.text = BYTES("yes")};

	if (session_busy(session) && session->cell->asking)
		session_answer(session, &input);
}

bool step_client(void)
{
	struct session *session = session_pick();
	struct address request = {.fd = 1, .connection = 1, .uid = STAGE_OWNER};
	uint64_t act = chance(world.splits ? 36 : 30);

	if (!session || world.quiet)
		return false;
	if (act >= 30) {
		ask_split(session);
		return true;
	}
	if (act < 14) {
		if (session->n_queued >= 4 || session->n_cells + 10 >= CELLS_MAX)
			return false;
		request_note(REQUEST_EXEC, session, NULL);
		show("  %s: request %llu: exec\n", session->id, (unsigned long long)world.stage.last_request + 1);
		stage_exec(&world.stage, session, chance(3) == 0, chance(4) ? SECOND : 0);
	} else if (act < 20) {
		ask_operation(session);
	} else if (act < 22) {
		show("  %s: interrupt\n", session->id);
		(void)session_interrupt(session, chance(2));
	} else if (act < 25) {
		request.id = world.stage.last_request ? 1 + chance(world.stage.last_request) : 1;
		show("  %s: cancel %llu\n", session->id, (unsigned long long)request.id);
		(void)session_cancel(session, &request, chance(2));
	} else if (act < 27) {
		answer_input(session);
	} else if (act < 29) {
		request_note(REQUEST_RESET, session, NULL);
		show("  %s: request %llu: reset\n", session->id, (unsigned long long)world.stage.last_request + 1);
		stage_reset(&world.stage, session);
	} else if (chance(12) == 0) {
		request_note(REQUEST_OTHER, session, NULL);
		show("  %s: request %llu: shutdown\n", session->id,
		     (unsigned long long)world.stage.last_request + 1);
		stage_close(&world.stage, session);
	}
	return true;
}
