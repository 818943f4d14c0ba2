/* States of a session: checkpoints, and the ways back. */
#include "doors.h"

#include "base/json.h"
#include "base/text.h"

static void state_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_state(exchange_path(exchange, "id"), lair_state(exchange->call)));
}

void v1_checkpoint(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange,
			      lair_checkpoint(lair, &exchange->call, session, exchange_string(exchange, "name")),
			      state_done);
}

static void checkpoints_done(struct exchange *exchange)
{
	json_t *array = json_array();
	struct lair_checkpoint checkpoint;
	size_t cursor = 0;

	while (lair_next_checkpoint(lair_checkpoint_list(exchange->call), &cursor, &checkpoint))
		json_array_append_new(array, json_checkpoint(&checkpoint));
	answer_json(exchange, 200, json_pack("{s:o}", "checkpoints", array));
}

void v1_checkpoints(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange, lair_checkpoints(lair, &exchange->call, session), checkpoints_done);
}

void v1_drop(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange, lair_drop(lair, &exchange->call, session, exchange_path(exchange, "name")),
			      empty_done);
}

void v1_restore(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange,
			      lair_restore(lair, &exchange->call, session, exchange_string(exchange, "name"),
					   exchange_flag(exchange, "keep_files")),
			      state_done);
}

void v1_undo(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange,
			      lair_undo(lair, &exchange->call, session, (uint64_t)exchange_number(exchange, "n"),
					exchange_flag(exchange, "keep_files")),
			      state_done);
}

static void diff_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_difference(exchange_path(exchange, "id"), lair_difference(exchange->call)));
}

void v1_diff(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange,
			      lair_diff(lair, &exchange->call, session, exchange_query(exchange, "since"),
					exchange_query(exchange, "until")),
			      diff_done);
}

static void branch_done(struct exchange *exchange)
{
	const struct lair_session *session = lair_session(exchange->call);
	answer_json(exchange, 201, tenant_document(exchange, json_session(session), session->session));
}

void v1_branch(struct exchange *exchange)
{
	struct lair_branch branch = {
		.from = exchange_string(exchange, "from"),
		.files = exchange_flag(exchange, "files"),
		.at_call = exchange_flag(exchange, "at_call"),
	};
	struct lair *lair = session_lair(exchange, &branch.session);

	if (!lair)
		return;
	branch.branch = exchange_session(exchange, exchange_string(exchange, "branch"));
	if (branch.branch && session_admitted(exchange, branch.branch))
		exchange_wait(exchange, lair_branch(lair, &exchange->call, &branch), branch_done);
}
