/* What calls leave behind: an effect, which is told when the session goes back; and of an `effect` function a done
 * call, which the session does not repeat in silence. */
#include "calls.h"

#include "promise/call_text.h"
#include "rows.h"
#include "session/core/sessions.h"
#include "vault/records.h"

#include <inttypes.h>
#include <stdio.h>

/* Of an error's name. */
#define ERROR_SHOWN 40

/* ---- pasts: of the session as it is now, and of its checkpoints ---- */

static bool is_undone_nowhere(void *userdata, size_t place)
{
	struct warden *warden = userdata;
	struct session *session;

	list_for_each (session, &warden->tenants, tenant.node)
		if (!past_calls_have(&session->done_calls, place))
			return false;
	return true;
}

static void forget(struct warden *warden, size_t place)
{
	struct checkpoint *checkpoint;
	struct session *session;

	if (!warden->done_calls.all[place].serial)
		return;
	list_for_each (session, &warden->tenants, tenant.node) {
		past_calls_forget(&session->done_calls, place);
		list_for_each (checkpoint, &session->history.checkpoints, node)
			past_calls_forget(&checkpoint->done_calls, place);
	}
	done_calls_forget(&warden->done_calls, place);
}

static int done_call_add(struct session *session, const struct done_call *done_call)
{
	struct warden *warden = session->warden;
	size_t place;
	int r = done_calls_place(&place, &warden->done_calls, is_undone_nowhere, warden);

	if (r)
		return r;
	forget(warden, place);
	r = done_calls_add(&warden->done_calls, place, done_call);
	if (!r)
		past_calls_add(&session->done_calls, place);
	return r;
}

/* ---- a call has come to its end ---- */

static bool is_again(const struct cell *cell, const struct call *call)
{
	return call->again || cell->options.again;
}

/* One `again` accounts for one earlier call: from now on that counts as done in the past of this state. */
static void account(struct session *session, const uint8_t digest[static SHA256_SIZE])
{
	const struct done_calls *done_calls = &session->warden->done_calls;
	bool unsure;
	const struct done_call *earlier = done_calls_find(&unsure, done_calls, &session->done_calls, digest);

	if (earlier)
		past_calls_add(&session->done_calls, done_call_place(done_calls, earlier));
}

static void done_call_note(struct session *session, const struct call *call, bool maybe, const char *text)
{
	struct done_call done_call = {.session = session->tenant.number,
				      .cell = session->cell->number,
				      .where = session->id,
				      .text = text,
				      .maybe = maybe};

	if (call_digest(done_call.digest, call->function, call->arguments) == 0) {
		if (is_again(session->cell, call))
			account(session, done_call.digest);
		if (done_call_add(session, &done_call) == 0)
			return;
	}
	/* Without memory nobody knows which it was. */
	session->warden->done_calls.forgotten++;
}

static void text_add_error(char text[static CALL_TEXT_SIZE + ERROR_SHOWN], struct bytes error)
{
	size_t used = strlen(text);

	for (size_t i = 0; i < error.size; i++)
		if ((unsigned char)error.data[i] <= ' ' || (unsigned char)error.data[i] >= 0x7f)
			return;
	snprintf(text + used, ERROR_SHOWN, ": %.*s", (int)MIN(error.size, (size_t)ERROR_SHOWN - 3), error.data);
}

/* Nobody has begun with it. If it has an answer, somebody gave that instead. */
static bool is_untouched(const struct call *call)
{
	return call->state == CALL_ASKS || (call->state == CALL_OUT && !call->turned);
}

void session_note_call(struct session *session, const struct call *call, enum call_end end, struct bytes error)
{
	char text[CALL_TEXT_SIZE + ERROR_SHOWN];
	const struct function *function;
	bool effect;

	if (!session->id[0] || is_untouched(call) || call_is_install(call))
		return;
	/* Its provider had put it aside, and then it was refused. */
	if (call->state == CALL_HELD && bytes_is(error, "PermissionError"))
		return;
	warden_touch(session->warden);
	function = calls_function(&session->cell->calls, session->cell->options.functions, call->function);
	effect = !function || function->effect; /* it was offered, so without memory alone there is none */
	call_text(text, call->function, call->arguments);
	if (effect)
		done_call_note(session, call, end != CALL_ANSWERED || error.data, text);
	if (error.data)
		text_add_error(text, error);
	effects_call(&session->effects, end != CALL_ANSWERED, effect, text, EFFECTS_DURING(session->cell->number));
}

/* ---- a call begins ---- */

static void where_write(char out[static SESSION_NAME_SIZE + 48], const struct session *session,
			const struct done_call *done_call)
{
	if (done_call->session == session->tenant.number)
		snprintf(out, SESSION_NAME_SIZE + 48, "cell %" PRIu64, done_call->cell);
	else
		snprintf(out, SESSION_NAME_SIZE + 48, "cell %" PRIu64 " of session \"%s\"", done_call->cell,
			 done_call->where);
}

int session_repeats(char out[static REPEAT_TEXT_SIZE], struct session *session, const struct call_message *message)
{
	static const char *const again = "tools.%.*s.again(...) does it once more";
	const struct done_calls *done_calls = &session->warden->done_calls;
	int name = (int)message->function.size, r;
	char where[SESSION_NAME_SIZE + 48];
	uint8_t digest[SHA256_SIZE];
	const struct done_call *done_call;
	bool unsure;
	size_t used;

	if (message->again || session->cell->options.again || done_calls->last + done_calls->forgotten == 0)
		return 0;
	r = call_digest(digest, message->function, message->arguments);
	if (r)
		return r;
	done_call = done_calls_find(&unsure, done_calls, &session->done_calls, digest);
	if (!done_call && !unsure)
		return 0;
	if (done_call) {
		where_write(where, session, done_call);
		used = (size_t)snprintf(
			out, REPEAT_TEXT_SIZE,
			done_call->maybe ? "%s may have been done in %s, and going back did not undo that; "
					   "look whether it was. If it has to be, "
					 : "%s was done in %s, and going back did not undo that. If it is to "
					   "be repeated, ",
			done_call->text, where);
	} else {
		used = (size_t)snprintf(out, REPEAT_TEXT_SIZE,
					"so much was done, and undone since, that nobody knows whether this was. "
					"If it is to be done, ");
	}
	snprintf(out + used, REPEAT_TEXT_SIZE - used, again, name, message->function.data);
	return 1;
}

/* ---- as a part ---- */

static void on_branch(struct session *session, const struct session *parent, const struct checkpoint *from)
{
	session->done_calls = from ? from->done_calls : parent->done_calls;
}

#define DONE_CALLS_FIELDS(F, m) F(m, BIN, past, OPTIONAL)
WIRE_DECLARE(past_record, NO_ID, DONE_CALLS_FIELDS);
WIRE_DEFINE(past_record, "done_calls", NO_ID, DONE_CALLS_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct past_record record = {.past = past_calls_bytes(&session->done_calls)};

	return record.past.data ? wire_encode_body(buffer, &past_record_schema, &record) : 0;
}

static int take(struct session *session, struct bytes value)
{
	struct past_record record;
	struct wire_fault fault;

	if (wire_decode_known(&record, &past_record_schema, value, &fault))
		return -EBADMSG;
	past_calls_read(&session->done_calls, record.past);
	return 0;
}

const struct part done_calls_part = {.name = "done_calls", .on_branch = on_branch, .put = put, .take = take};
