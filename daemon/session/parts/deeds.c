/* What calls leave behind: an effect, which is told when the session goes back; and of an `effect` function a deed,
 * which the session does not repeat in silence. */
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
		if (!past_deeds_have(&session->deeds, place))
			return false;
	return true;
}

static void forget(struct warden *warden, size_t place)
{
	struct checkpoint *checkpoint;
	struct session *session;

	if (!warden->deeds.all[place].serial)
		return;
	list_for_each (session, &warden->tenants, tenant.node) {
		past_deeds_forget(&session->deeds, place);
		list_for_each (checkpoint, &session->history.checkpoints, node)
			past_deeds_forget(&checkpoint->deeds, place);
	}
	deeds_forget(&warden->deeds, place);
}

static int deed_add(struct session *session, const struct deed *deed)
{
	struct warden *warden = session->warden;
	size_t place;
	int r = deeds_place(&place, &warden->deeds, is_undone_nowhere, warden);

	if (r)
		return r;
	forget(warden, place);
	r = deeds_add(&warden->deeds, place, deed);
	if (!r)
		past_deeds_add(&session->deeds, place);
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
	const struct deeds *deeds = &session->warden->deeds;
	bool unsure;
	const struct deed *earlier = deeds_find(&unsure, deeds, &session->deeds, digest);

	if (earlier)
		past_deeds_add(&session->deeds, deed_place(deeds, earlier));
}

static void deed_note(struct session *session, const struct call *call, bool maybe, const char *text)
{
	struct deed deed = {.session = session->tenant.number,
			    .cell = session->cell->number,
			    .where = session->id,
			    .text = text,
			    .maybe = maybe};

	if (call_digest(deed.digest, call->function, call->arguments) == 0) {
		if (is_again(session->cell, call))
			account(session, deed.digest);
		if (deed_add(session, &deed) == 0)
			return;
	}
	/* Without memory nobody knows which it was. */
	session->warden->deeds.forgotten++;
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
		deed_note(session, call, end != CALL_ANSWERED || error.data, text);
	if (error.data)
		text_add_error(text, error);
	effects_call(&session->effects, end != CALL_ANSWERED, effect, text, EFFECTS_DURING(session->cell->number));
}

/* ---- a call begins ---- */

static void where_write(char out[static SESSION_NAME_SIZE + 48], const struct session *session,
			const struct deed *deed)
{
	if (deed->session == session->tenant.number)
		snprintf(out, SESSION_NAME_SIZE + 48, "cell %" PRIu64, deed->cell);
	else
		snprintf(out, SESSION_NAME_SIZE + 48, "cell %" PRIu64 " of session \"%s\"", deed->cell,
			 deed->where);
}

int session_repeats(char out[static REPEAT_TEXT_SIZE], struct session *session, const struct call_message *message)
{
	static const char *const again = "tools.%.*s.again(...) does it once more";
	const struct deeds *deeds = &session->warden->deeds;
	int name = (int)message->function.size, r;
	char where[SESSION_NAME_SIZE + 48];
	uint8_t digest[SHA256_SIZE];
	const struct deed *deed;
	bool unsure;
	size_t used;

	if (message->again || session->cell->options.again || deeds->last + deeds->forgotten == 0)
		return 0;
	r = call_digest(digest, message->function, message->arguments);
	if (r)
		return r;
	deed = deeds_find(&unsure, deeds, &session->deeds, digest);
	if (!deed && !unsure)
		return 0;
	if (deed) {
		where_write(where, session, deed);
		used = (size_t)snprintf(
			out, REPEAT_TEXT_SIZE,
			deed->maybe ? "%s may have been done in %s, and going back did not undo that; "
				      "look whether it was. If it has to be, "
				    : "%s was done in %s, and going back did not undo that. If it is to "
				      "be repeated, ",
			deed->text, where);
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
	session->deeds = from ? from->deeds : parent->deeds;
}

#define DEEDS_FIELDS(F, m) F(m, BIN, past, OPTIONAL)
WIRE_DECLARE(past_record, NO_ID, DEEDS_FIELDS);
WIRE_DEFINE(past_record, "deeds", NO_ID, DEEDS_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct past_record record = {.past = past_deeds_bytes(&session->deeds)};

	return record.past.data ? wire_encode_body(buffer, &past_record_schema, &record) : 0;
}

static int take(struct session *session, struct bytes value)
{
	struct past_record record;
	struct wire_fault fault;

	if (wire_decode_known(&record, &past_record_schema, value, &fault))
		return -EBADMSG;
	past_deeds_read(&session->deeds, record.past);
	return 0;
}

const struct part deeds_part = {.name = "deeds", .on_branch = on_branch, .put = put, .take = take};
