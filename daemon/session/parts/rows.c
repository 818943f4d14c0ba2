/* The parts of a session, in a list; those whose state is an object of core/ have their rows here. */
#include "rows.h"

#include "vault/records.h"

/* ---- the journal ---- */

static void journal_on_branch(struct session *session, const struct session *parent, const struct checkpoint *from)
{
	journal_copy(&session->journal, &parent->journal, session->n_cells);
}

static void journal_on_read(struct session *session, const void *record)
{
	journal_take(&session->journal, record, true);
}

static const struct part journal_part = {.name = "journal",
					 .on_branch = journal_on_branch,
					 .schema = &entry_record_schema,
					 .list = offsetof(struct session, journal),
					 .read = journal_on_read};

/* ---- effects ---- */

#define EFFECTS_VALUES(F, m)                                                                                       \
	F(m, UINT, dropped, OPTIONAL)                                                                              \
	F(m, UINT, dropped_at, OPTIONAL)
WIRE_DECLARE(effects_kept, NO_ID, EFFECTS_VALUES);
WIRE_DEFINE(effects_kept, "effects", NO_ID, EFFECTS_VALUES);

static int effects_part_put(msgpack_sbuffer *buffer, const struct session *session)
{
	struct effects_kept record;

	EFFECTS_VALUES(RECORD_PUT, &session->effects)
	return record.dropped > 0 ? wire_encode_body(buffer, &effects_kept_schema, &record) : 0;
}

/* Those that had been dropped may have been read once more. */
static int effects_part_take(struct session *session, struct bytes value)
{
	struct effects_kept kept, *record = &kept;
	struct wire_fault fault;

	if (wire_decode_known(record, &effects_kept_schema, value, &fault))
		return -EBADMSG;
	EFFECTS_VALUES(RECORD_TAKE, &session->effects)
	return 0;
}

static void effects_on_branch(struct session *session, const struct session *parent, const struct checkpoint *from)
{
	effects_copy(&session->effects, &parent->effects, session->n_cells);
}

static void effects_on_read(struct session *session, const void *record)
{
	effects_add(&session->effects, record, true);
}

static const struct part effects_part = {.name = "effects",
					 .on_branch = effects_on_branch,
					 .put = effects_part_put,
					 .take = effects_part_take,
					 .schema = &effect_record_schema,
					 .list = offsetof(struct session, effects.entries),
					 .read = effects_on_read};

/* ---- all ---- */

/* In the order in which they are initialised. The first that a deadline is for takes it. */
const struct part *const session_parts[] = {
	&journal_part, &effects_part, &done_calls_part, &filing_part,	 &saving_part, &transfers_part,
	&split_part,   &calls_part,   &installing_part, &comparing_part, &asking_part, NULL,
};
