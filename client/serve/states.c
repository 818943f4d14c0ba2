/* States of a session: checkpoints, and the ways back. */
#include "doors.h"

#include "base/json.h"
#include "base/text.h"

static void state_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_state(exchange_path(exchange, "id"), lair_state(exchange->call)));
}

SESSION_HANDLER(v1_checkpoint, state_done,
		lair_checkpoint(lair, &exchange->call, session, exchange_string(exchange, "name")))

static void checkpoints_done(struct exchange *exchange)
{
	answer_json(exchange, 200,
		    json_pack("{s:o}", "checkpoints", json_checkpoints(lair_checkpoint_list(exchange->call))));
}

SESSION_HANDLER(v1_checkpoints, checkpoints_done, lair_checkpoints(lair, &exchange->call, session))

SESSION_HANDLER(v1_drop, empty_done, lair_drop(lair, &exchange->call, session, exchange_path(exchange, "name")))

SESSION_HANDLER(v1_restore, state_done,
		lair_restore(lair, &exchange->call, session, exchange_string(exchange, "name"),
			     exchange_flag(exchange, "keep_files")))

SESSION_HANDLER(v1_undo, state_done,
		lair_undo(lair, &exchange->call, session, (uint64_t)exchange_number(exchange, "n"),
			  exchange_flag(exchange, "keep_files")))

static void diff_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_difference(exchange_path(exchange, "id"), lair_difference(exchange->call)));
}

SESSION_HANDLER(v1_diff, diff_done,
		lair_diff(lair, &exchange->call, session, exchange_query(exchange, "since"),
			  exchange_query(exchange, "until")))

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
