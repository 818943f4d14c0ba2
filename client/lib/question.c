/* Questions about the state of a session, and about code alone. */
#include "handle.h"

static bool next_record(void *record, const struct wire_schema *schema, struct lair_items items, size_t *cursor)
{
	struct wire_fault fault;
	struct bytes body;

	return wire_next(bytes_from_items(items), cursor, &body) &&
	       !wire_decode_known(record, schema, body, &fault);
}

/* An array of the strings up to NULL; absent if there are none. */
static struct bytes names_pack(msgpack_sbuffer *buffer, const char *const *names)
{
	size_t n = 0;

	msgpack_sbuffer_init(buffer);
	while (names && names[n])
		n++;
	if (n == 0)
		return (struct bytes){.data = NULL};
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n; i++)
		wire_put_string(buffer, bytes_of(names[i]));
	return wire_bytes(buffer);
}

int lair_vars(struct lair *lair, struct lair_call **callp, const char *session, const char *const *forget)
{
	struct vars_request request = {.session = bytes_of(session)};
	msgpack_sbuffer names;
	int r;

	request.forget = names_pack(&names, forget);
	r = call_start(callp, lair, &vars_request_schema, &request, &vars_reply_schema);
	msgpack_sbuffer_destroy(&names);
	return r;
}

int lair_keep(struct lair *lair, struct lair_call **callp, const char *session, const char *const *keep)
{
	struct reset_request request = {.session = bytes_of(session)};
	msgpack_sbuffer names;
	int r;

	request.keep = names_pack(&names, keep);
	r = call_start(callp, lair, &reset_request_schema, &request, &reset_reply_schema);
	msgpack_sbuffer_destroy(&names);
	return r;
}

int lair_complete(struct lair *lair, struct lair_call **callp, const char *session, struct lair_text code,
		  uint64_t cursor)
{
	struct complete_request request = {
		.session = bytes_of(session), .code = bytes_from(code), .cursor = cursor};

	return call_start(callp, lair, &complete_request_schema, &request, &complete_reply_schema);
}

int lair_inspect(struct lair *lair, struct lair_call **callp, const struct lair_inspect *inspect)
{
	struct inspect_request request = {
		.session = bytes_of(inspect->session),
		.code = bytes_from(inspect->code),
		.cursor = inspect->cursor,
		.source = inspect->source,
	};

	return call_start(callp, lair, &inspect_request_schema, &request, &inspect_reply_schema);
}

int lair_history(struct lair *lair, struct lair_call **callp, const char *session, uint64_t n)
{
	struct history_request request = {.session = bytes_of(session), .n = n};

	return call_start(callp, lair, &history_request_schema, &request, &history_reply_schema);
}

int lair_stray(struct lair *lair, struct lair_call **callp, const char *session)
{
	struct stray_request request = {.session = bytes_of(session)};

	return call_start(callp, lair, &stray_request_schema, &request, &stray_reply_schema);
}

int lair_check(struct lair *lair, struct lair_call **callp, const struct lair_code *code)
{
	struct check_request request = {.session = bytes_of(code->session),
					.profile = bytes_of(code->profile),
					.code = bytes_from(code->code)};

	return call_start(callp, lair, &check_request_schema, &request, &check_reply_schema);
}

int lair_is_complete(struct lair *lair, struct lair_call **callp, const struct lair_code *code)
{
	struct is_complete_request request = {.session = bytes_of(code->session),
					      .profile = bytes_of(code->profile),
					      .code = bytes_from(code->code)};

	return call_start(callp, lair, &is_complete_request_schema, &request, &is_complete_reply_schema);
}

/* ---- answers ---- */

void take_completions(struct lair_call *call, const void *message)
{
	const struct complete_reply *reply = message;

	call->answer.completions = (struct lair_completions){
		.matches = items_from(reply->matches), .start = reply->start, .end = reply->end};
}

void take_inspection(struct lair_call *call, const void *message)
{
	const struct inspect_reply *reply = message;

	call->answer.inspection = (struct lair_inspection){
		.found = reply->found,
		.name = text_from(reply->name),
		.type = text_from(reply->type),
		.signature = text_from(reply->signature),
		.docstring = text_from(reply->docstring),
		.text = text_from(reply->text),
		.file = text_from(reply->file),
		.line = reply->line,
		.source = text_from(reply->source),
	};
}

void take_variables(struct lair_call *call, const void *message)
{
	const struct vars_reply *reply = message;

	call->answer.variables = (struct lair_variables){.variables = items_from(reply->variables),
							 .total = reply->total,
							 .directory = text_from(reply->directory)};
}

void take_checked(struct lair_call *call, const void *message)
{
	const struct check_reply *reply = message;

	call->answer.checked = (struct lair_checked){
		.valid = reply->valid,
		.error = text_from(reply->error),
		.line = reply->line,
		.offset = reply->offset,
		.context = text_from(reply->context),
		.rule = text_from(reply->rule),
	};
}

void take_completeness(struct lair_call *call, const void *message)
{
	const struct is_complete_reply *reply = message;

	call->answer.completeness =
		(struct lair_completeness){.status = text_from(reply->status), .indent = text_from(reply->indent)};
}

void take_history(struct lair_call *call, const void *message)
{
	call->answer.history = items_from(((const struct history_reply *)message)->cells);
}

void take_stray(struct lair_call *call, const void *message)
{
	const struct stray_reply *reply = message;

	call->answer.stray = (struct lair_stray){.out = text_from(reply->stdout), .err = text_from(reply->stderr)};
}

const struct lair_stray *lair_stray_output(const struct lair_call *call)
{
	return call_answered(call, &stray_reply_schema) ? &call->answer.stray : NULL;
}

const struct lair_completions *lair_completions(const struct lair_call *call)
{
	return call_answered(call, &complete_reply_schema) ? &call->answer.completions : NULL;
}

const struct lair_inspection *lair_inspection(const struct lair_call *call)
{
	return call_answered(call, &inspect_reply_schema) ? &call->answer.inspection : NULL;
}

const struct lair_variables *lair_variables(const struct lair_call *call)
{
	return call_answered(call, &vars_reply_schema) ? &call->answer.variables : NULL;
}

const struct lair_checked *lair_checked(const struct lair_call *call)
{
	return call_answered(call, &check_reply_schema) ? &call->answer.checked : NULL;
}

const struct lair_completeness *lair_completeness(const struct lair_call *call)
{
	return call_answered(call, &is_complete_reply_schema) ? &call->answer.completeness : NULL;
}

struct lair_items lair_past_cells(const struct lair_call *call)
{
	return call_answered(call, &history_reply_schema) ? call->answer.history
							  : (struct lair_items){.data = NULL};
}

bool lair_next_match(struct lair_items items, size_t *cursor, struct lair_match *item)
{
	struct completion_match match;

	if (!next_record(&match, &completion_match_schema, items, cursor))
		return false;
	*item = (struct lair_match){.text = text_from(match.text), .type = text_from(match.type)};
	return true;
}

bool lair_next_variable(struct lair_items items, size_t *cursor, struct lair_variable *item)
{
	struct variable_record record;

	if (!next_record(&record, &variable_record_schema, items, cursor))
		return false;
	*item = (struct lair_variable){
		.name = text_from(record.name),
		.type = text_from(record.type),
		.shape = items_from(record.shape),
		.size = record.size,
		.text = text_from(record.text),
	};
	return true;
}

bool lair_next_past(struct lair_items items, size_t *cursor, struct lair_past *item)
{
	struct history_record record;

	if (!next_record(&record, &history_record_schema, items, cursor))
		return false;
	*item = (struct lair_past){
		.cell = record.cell,
		.code = text_from(record.code),
		.size = record.size,
		.returncode = (int)record.returncode,
		.cause = text_from(record.cause),
		.duration_ms = record.duration_ms,
		.undone = record.undone,
	};
	return true;
}

bool lair_next_number(struct lair_items items, size_t *cursor, uint64_t *item)
{
	return wire_next_uint(bytes_from_items(items), cursor, item);
}
