/* All is asked at once: the warden for the files, and each state for its variables. A frozen copy tells what its
 * state has, and stays as it is; the live interpreter does so only if its state has no copy. Every byte of theirs
 * is hostile: it is bounded, and decoded by its tables. */
#include "comparing.h"

#include "filing.h"
#include "rows.h"
#include "session/core/events.h"
#include "session/core/sessions.h"

#include <inttypes.h>
#include <stdio.h>

#define COMPARE_US (6 * 1000000ULL)
#define DESCRIBED_MAX (600U << 10)
#define VARIABLES_MAX 1000
#define TOLD_MAX 256
#define TOLD_SIZE_MAX (96U << 10)
#define UNSURE_MAX 64

/* One of the two states, and what it has said of its variables. */
struct side {
	uint64_t cell, files;
	struct interpreter *interpreter; /* NULL: the state before the first cell, which has none */
	uint64_t serial;		 /* of the question; 0: it is answered */
	msgpack_sbuffer frame;
	struct descriptions_record described;
	char lack[160]; /* why it is not known; "": it is */
};

struct comparison {
	struct side since, until;
	uint64_t files_serial; /* of the question; 0: it is answered */
	msgpack_sbuffer files;
	uint64_t files_more;
	char files_lack[160];
};

static void forget(struct session *session)
{
	struct comparison *comparison = session->comparison;

	session->comparison = NULL;
	if (!comparison)
		return;
	msgpack_sbuffer_destroy(&comparison->since.frame);
	msgpack_sbuffer_destroy(&comparison->until.frame);
	msgpack_sbuffer_destroy(&comparison->files);
	free(comparison);
}

static bool is_asked(const struct session *session)
{
	return session->operation && session->operation->kind == OPERATION_DIFF;
}

static struct comparison *under_way(const struct session *session)
{
	return is_asked(session) ? session->comparison : NULL;
}

static void lack(char out[static 160], struct bytes why)
{
	size_t size = MIN(why.size, (size_t)159);

	while (size > 0 && size < why.size && (why.data[size] & 0xc0) == 0x80)
		size--;
	for (size_t i = 0; i < size; i++)
		out[i] = (unsigned char)why.data[i] < ' ' || why.data[i] == 0x7f ? '?' : why.data[i];
	out[size] = '\0';
}

/* ---- which states ---- */

static void side_of(struct side *side, const struct session *session, const struct checkpoint *checkpoint)
{
	side->cell = checkpoint ? checkpoint->cell : 0;
	side->files = checkpoint ? checkpoint->files : session->filing.first;
	side->interpreter = checkpoint ? checkpoint->interpreter : NULL;
}

static void side_of_now(struct side *side, const struct session *session)
{
	const struct history *history = &session->history;

	side->cell = session->at;
	side->files = session->filing.now;
	if (history->saved)
		side->interpreter = history->base ? history->base->interpreter : NULL;
	else
		side->interpreter = session->live;
}

static bool side_named(struct side *side, struct session *session, const char *name)
{
	const struct checkpoint *found = history_find(&session->history, bytes_of(name));

	if (found)
		side_of(side, session, found);
	else
		client_error(session->sessions->clients, &session->operation->request, "bad_request",
			     "session \"%s\" has no checkpoint \"%s\"; checkpoints lists them", session->id, name);
	return found;
}

static bool side_before(struct side *side, struct session *session)
{
	struct checkpoint *target;
	bool found = history_back(&session->history, 1, &target);

	if (found)
		side_of(side, session, target);
	else if (list_empty(&session->history.checkpoints))
		side_of_now(side, session); /* nothing has been run */
	else
		client_error(session->sessions->clients, &session->operation->request, "gone",
			     "session \"%s\" does not remember the state before; checkpoints lists what it has",
			     session->id);
	return found || list_empty(&session->history.checkpoints);
}

static bool sides_find(struct comparison *comparison, struct session *session)
{
	const struct operation *operation = session->operation;

	if (operation->name[0] ? !side_named(&comparison->since, session, operation->name)
			       : !side_before(&comparison->since, session))
		return false;
	if (operation->branch[0])
		return side_named(&comparison->until, session, operation->branch);
	side_of_now(&comparison->until, session);
	return true;
}

/* ---- asking ---- */

static int ask_variables(struct session *session, struct side *side)
{
	struct describe_message describe = {.serial = warden_next_number(session->warden)};

	if (!side->interpreter)
		return 0;
	side->serial = describe.serial;
	return interpreter_send(side->interpreter, &describe_message_schema, &describe);
}

static void ask_files(struct session *session, struct comparison *comparison)
{
	uint64_t since = comparison->since.files, until = comparison->until.files;

	if (!filing_is_on(session))
		lack(comparison->files_lack, BYTES("the files of states are not kept here"));
	else if (!since || !until)
		lack(comparison->files_lack, BYTES("they were not kept"));
	else if (since != until)
		comparison->files_serial = warden_compare_files(session->warden, since, until);
}

static int ask(struct session *session, struct comparison *comparison)
{
	int r = 0;

	ask_files(session, comparison);
	if (comparison->since.interpreter == comparison->until.interpreter)
		return 0;
	r = ask_variables(session, &comparison->since);
	return r ? r : ask_variables(session, &comparison->until);
}

static void proceed(struct session *session);

static struct comparison *comparison_new(void)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));

	if (!comparison)
		return NULL;
	msgpack_sbuffer_init(&comparison->since.frame);
	msgpack_sbuffer_init(&comparison->until.frame);
	msgpack_sbuffer_init(&comparison->files);
	return comparison;
}

static void end(struct session *session)
{
	forget(session);
	operation_done(session);
	session_event(session, EVENT_ANSWERED, &session_nothing);
}

void comparing_begin(struct session *session)
{
	const struct operation *operation = session->operation;

	forget(session);
	session->comparison = comparison_new();
	if (!session->comparison)
		client_error(session->sessions->clients, &operation->request, "internal", "out of memory");
	if (!session->comparison || !sides_find(session->comparison, session)) {
		end(session);
		return;
	}
	session_deadline(session, COMPARE_US);
	if (ask(session, session->comparison))
		session_end(session, "internal");
	else
		proceed(session);
}

/* ---- variables ---- */

struct differences {
	struct wire_list variables, unsure;
	uint64_t more;
};

static void differ(struct differences *all, const struct description_record *before,
		   const struct description_record *after)
{
	const struct description_record *shown = after ? after : before;
	const char *change = !before ? "new" : after ? "changed" : "gone";
	struct variable_difference record;

	if (!shown)
		return;
	record = (struct variable_difference){
		.name = shown->name,
		.change = bytes_of(change),
		.type = shown->type,
		.text = shown->text,
		.size = shown->size,
	};
	if (before && after) {
		record.type_before = before->type;
		record.text_before = before->text;
		record.size_before = before->size;
	}
	if (all->variables.n == TOLD_MAX || all->variables.buffer.size > TOLD_SIZE_MAX)
		all->more++;
	else
		(void)wire_list_add(&all->variables, &variable_difference_schema, &record);
}

static void compare(struct differences *all, const struct description_record *before,
		    const struct description_record *after)
{
	bool looks_same = bytes_equal(before->type, after->type) && bytes_equal(before->text, after->text) &&
			  before->size == after->size;
	bool known = before->digest.data && after->digest.data;

	if (known ? !bytes_equal(before->digest, after->digest) : !looks_same)
		differ(all, before, after);
	else if ((!known || before->partial || after->partial) && all->unsure.n < UNSURE_MAX)
		(void)wire_list_add_string(&all->unsure, after->name);
}

static bool next(struct bytes raw, size_t *cursor, struct description_record *record)
{
	struct wire_fault fault;
	struct bytes item;

	return wire_next(raw, cursor, &item) && !wire_decode(record, &description_record_schema, item, &fault);
}

static int order_of(struct bytes a, struct bytes b)
{
	int order = memcmp(a.data, b.data, MIN(a.size, b.size));

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Both are in the order of their names. */
static void compare_all(struct differences *all, struct bytes since, struct bytes until)
{
	struct description_record before, after;
	size_t i = 0, j = 0;
	bool left = next(since, &i, &before), right = next(until, &j, &after);

	while (left || right) {
		int order = !left ? 1 : !right ? -1 : order_of(before.name, after.name);

		if (order == 0)
			compare(all, &before, &after);
		else
			differ(all, order < 0 ? &before : NULL, order < 0 ? NULL : &after);
		if (order <= 0)
			left = next(since, &i, &before);
		if (order >= 0)
			right = next(until, &j, &after);
	}
}

/* Whether @raw is an array of descriptions, and nothing is left over. */
static bool descriptions_valid(struct bytes raw)
{
	struct description_record record;
	size_t cursor = 0;

	for (size_t n = 0; next(raw, &cursor, &record); n++)
		if (n == VARIABLES_MAX)
			return false;
	return cursor > 0 && cursor == raw.size;
}

static bool frame_read(struct side *side)
{
	struct wire_frame frame;
	struct wire_fault fault;

	return !wire_open(&frame, wire_bytes(&side->frame)) &&
	       !wire_decode(&side->described, &descriptions_record_schema, frame.body, &fault) &&
	       descriptions_valid(side->described.variables);
}

static struct side *side_asked(struct comparison *comparison, const struct interpreter *interpreter,
			       uint64_t serial)
{
	struct side *sides[] = {&comparison->since, &comparison->until};

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		if (sides[i]->serial == serial && serial && sides[i]->interpreter == interpreter)
			return sides[i];
	return NULL;
}

bool comparing_on_described(struct session *session, struct interpreter *interpreter,
			    const struct described_message *described)
{
	struct comparison *comparison = under_way(session);
	struct side *side = comparison ? side_asked(comparison, interpreter, described->serial) : NULL;

	if (!side)
		return false;
	if (described->why.data)
		lack(side->lack, described->why);
	else if (side->frame.size + described->data.size > DESCRIBED_MAX)
		lack(side->lack, BYTES("they are too many"));
	else if (described->data.size > 0 &&
		 msgpack_sbuffer_write(&side->frame, described->data.data, described->data.size))
		lack(side->lack, BYTES("out of memory"));
	if (described->more && !side->lack[0])
		return true;
	if (!side->lack[0] && !frame_read(side))
		lack(side->lack, BYTES("its interpreter has told something else"));
	side->serial = 0;
	proceed(session);
	return true;
}

/* ---- files ---- */

void comparing_on_files(struct tenant *tenant, const struct files_compared_message *compared)
{
	struct session *session = session_of_tenant(tenant);
	struct comparison *comparison = under_way(session);

	if (!comparison || !comparison->files_serial || comparison->files_serial != compared->serial)
		return;
	comparison->files_serial = 0;
	comparison->files_more = compared->more;
	if (compared->why.data)
		lack(comparison->files_lack, compared->why);
	else if (msgpack_sbuffer_write(&comparison->files, compared->files.data, compared->files.size))
		lack(comparison->files_lack, BYTES("out of memory"));
	proceed(session);
}

/* ---- the answer ---- */

static const char *variables_lack(const struct comparison *comparison)
{
	return comparison->since.lack[0]   ? comparison->since.lack
	       : comparison->until.lack[0] ? comparison->until.lack
					   : NULL;
}

static void answer(struct session *session)
{
	const struct comparison *comparison = session->comparison;
	const struct address *request = &session->operation->request;
	struct differences all = {.more = 0};
	struct diff_reply reply = {
		.id = request->id,
		.since = comparison->since.cell,
		.until = comparison->until.cell,
		.files = comparison->files.size > 0 ? wire_bytes(&comparison->files)
						    : wire_list_bytes(&all.variables),
		.files_more = comparison->files_more,
		.files_lack = bytes_of(comparison->files_lack[0] ? comparison->files_lack : NULL),
		.variables_lack = bytes_of(variables_lack(comparison)),
	};

	if (!reply.variables_lack.data)
		compare_all(&all, comparison->since.described.variables, comparison->until.described.variables);
	reply.variables = wire_list_bytes(&all.variables);
	reply.variables_more = all.more + MAX(comparison->since.described.more, comparison->until.described.more);
	if (all.unsure.n > 0)
		reply.unsure = wire_list_bytes(&all.unsure);
	client_reply(session->sessions->clients, request, all.variables.r | all.unsure.r, &diff_reply_schema,
		     &reply);
	wire_list_deinit(&all.unsure);
	wire_list_deinit(&all.variables);
	end(session);
}

static void proceed(struct session *session)
{
	const struct comparison *comparison = under_way(session);

	if (session->state == SESSION_ANSWERING && !comparison->since.serial && !comparison->until.serial &&
	    !comparison->files_serial)
		answer(session);
}

/* ---- as a part ---- */

/* What is known is told. */
static bool on_late(struct session *session)
{
	struct comparison *comparison = under_way(session);
	struct side *sides[2];

	if (!comparison)
		return false;
	sides[0] = &comparison->since;
	sides[1] = &comparison->until;
	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		if (sides[i]->serial)
			lack(sides[i]->lack, BYTES("nobody could look at them in time"));
	if (comparison->files_serial)
		lack(comparison->files_lack, BYTES("they were not compared in time"));
	answer(session);
	return true;
}

static void on_exit_of_interpreter(struct session *session)
{
	if (is_asked(session))
		operation_refuse(session, session->operation,
				 "its interpreter ended before the states were compared");
	forget(session);
}

/* A former router had begun it. */
static void on_revived(struct session *session)
{
	if (is_asked(session) && session->state == SESSION_ANSWERING)
		comparing_begin(session);
}

const struct part comparing_part = {.name = "comparing",
				    .deinit = forget,
				    .on_exit = on_exit_of_interpreter,
				    .on_revived = on_revived,
				    .on_late = on_late};
