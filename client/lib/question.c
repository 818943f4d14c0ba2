/* Questions about the state of a session, and about code alone. */
#include "handle.h"

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
