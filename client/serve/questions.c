/* Questions about a session, and about code. */
#include "doors.h"

#include "base/json.h"
#include "base/text.h"

static struct lair_text code_of(const struct exchange *exchange)
{
	const json_t *code = json_object_get(exchange->json, "code");

	return (struct lair_text){.data = json_string_value(code), .size = json_string_length(code)};
}

static void vars_done(struct exchange *exchange)
{
	answer_json(exchange, 200, discreet(exchange, json_variables(lair_variables(exchange->call))));
}

SESSION_HANDLER(v1_vars, vars_done, lair_vars(lair, &exchange->call, session, NULL))

void v1_forget(struct exchange *exchange)
{
	const char *session, *names[] = {exchange_path(exchange, "name"), NULL};
	struct lair *lair = session_lair(exchange, &session);

	if (lair)
		exchange_wait(exchange, lair_vars(lair, &exchange->call, session, names), empty_done);
}

static void complete_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_completions(lair_completions(exchange->call)));
}

SESSION_HANDLER(v1_complete, complete_done,
		lair_complete(lair, &exchange->call, session, code_of(exchange),
			      (uint64_t)exchange_number(exchange, "cursor")))

static void inspect_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_inspection(lair_inspection(exchange->call)));
}

void v1_inspect(struct exchange *exchange)
{
	struct lair_inspect inspect = {
		.code = code_of(exchange),
		.cursor = (uint64_t)exchange_number(exchange, "cursor"),
		.source = exchange_flag(exchange, "source"),
	};
	struct lair *lair = session_lair(exchange, &inspect.session);

	if (lair)
		exchange_wait(exchange, lair_inspect(lair, &exchange->call, &inspect), inspect_done);
}

static void history_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_pack("{s:o}", "cells", json_history(lair_past_cells(exchange->call))));
}

SESSION_HANDLER(v1_history, history_done,
		lair_history(lair, &exchange->call, session, exchange_query_number(exchange, "n")))

static void stray_done(struct exchange *exchange)
{
	const struct lair_stray *stray = lair_stray_output(exchange->call);
	json_t *document = json_object();

	json_add_output(document, "stdout", stray->out);
	json_add_output(document, "stderr", stray->err);
	json_object_set_new(document, "at", json_integer((json_int_t)stray->at));
	answer_json(exchange, 200, document);
}

SESSION_HANDLER(v1_stray, stray_done, lair_stray(lair, &exchange->call, session))

/* ---- about code alone ---- */

static bool code_take(struct exchange *exchange, struct lair_code *code)
{
	const char *session = exchange_string(exchange, "session");

	*code = (struct lair_code){.code = code_of(exchange)};
	if (session) {
		code->session = exchange_session(exchange, session);
		return code->session;
	}
	return profile_of(exchange, exchange_string(exchange, "profile"), &code->profile);
}

static void check_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_checked(lair_checked(exchange->call)));
}

void v1_check(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);
	struct lair_code code;

	if (lair && code_take(exchange, &code))
		exchange_wait(exchange, lair_check(lair, &exchange->call, &code), check_done);
}

static void is_complete_done(struct exchange *exchange)
{
	const struct lair_completeness *found = lair_completeness(exchange->call);

	answer_json(
		exchange, 200,
		json_pack("{s:o, s:o}", "status", json_text(found->status), "indent", json_text(found->indent)));
}

void v1_is_complete(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);
	struct lair_code code;

	if (lair && code_take(exchange, &code))
		exchange_wait(exchange, lair_is_complete(lair, &exchange->call, &code), is_complete_done);
}
