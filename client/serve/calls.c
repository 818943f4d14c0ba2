/* Calls of functions that wait, and answers to them. */
#include "doors.h"

#include "json.h"
#include "text.h"

#include <stdlib.h>

static void calls_done(struct exchange *exchange)
{
	const struct lair_waiting_list *list = lair_waiting_list(exchange->call);
	json_t *array = json_array(), *document;
	struct lair_waiting waiting;
	size_t cursor = 0;

	while (lair_next_waiting(list->calls, &cursor, &waiting)) {
		struct lair_text own = tenant_own(exchange->tenant, waiting.session);

		/* One of a one-shot is nobody's whom we could tell. */
		if (!own.data && *exchange->tenant->prefix)
			continue;
		document = json_waiting(&waiting);
		json_object_set_new(document, "session", json_text(own));
		json_array_append_new(array, document);
	}
	answer_json(exchange, 200, json_pack("{s:o, s:I}", "calls", array, "more", (json_int_t)list->more));
}

/* Of the session, or of all of them, if the path has none. */
void v1_calls(struct exchange *exchange)
{
	const char *id = exchange_path(exchange, "id"), *session = NULL;
	struct lair *lair;

	if (id) {
		session = exchange_session(exchange, id);
		if (!session)
			return;
	}
	lair = exchange_lair(exchange);
	if (lair)
		exchange_wait(exchange, lair_calls(lair, &exchange->call, session), calls_done);
}

/* Exactly one of value, error and approve. */
static bool answer_take(struct exchange *exchange, struct lair_answer *answer, char **textp)
{
	const json_t *value = json_object_get(exchange->json, "value");
	const char *number = exchange_path(exchange, "number");

	*answer = (struct lair_answer){
		.cell = (uint64_t)exchange_number(exchange, "cell"),
		.number = strtoull(number, NULL, 10),
		.approve = exchange_flag(exchange, "approve"),
		.error = exchange_string(exchange, "error"),
		.text = exchange_string(exchange, "text"),
	};
	if ((value != NULL) + (answer->error != NULL) + answer->approve != 1 || answer->number == 0 ||
	    strspn(number, "0123456789") != strlen(number)) {
		answer_problem(exchange, 400, "bad_request",
			       "expected the number of a call, and one of value, error and approve");
		return false;
	}
	*textp = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	answer->value = lair_text(*textp);
	return true;
}

void v1_answer_call(struct exchange *exchange)
{
	_cleanup_(freep) char *text = NULL;
	struct lair_answer answer;
	struct lair *lair;

	if (!answer_take(exchange, &answer, &text))
		return;
	lair = session_lair(exchange, &answer.session);
	if (lair)
		exchange_wait(exchange, lair_answer_call(lair, &exchange->call, &answer), empty_done);
}
