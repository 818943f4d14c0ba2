/* The parts of a session, in a list; those whose state is an object of core/ have their rows here. */
#include "rows.h"

#include "vault/records.h"

/* ---- lists of records, written once: the journal and effects ---- */

#define LIST_PART(list)                                                                                            \
	static void list##_start(struct session *session)                                                          \
	{                                                                                                          \
		list##_init(&session->list);                                                                       \
	}                                                                                                          \
	static void list##_stop(struct session *session)                                                           \
	{                                                                                                          \
		list##_deinit(&session->list);                                                                     \
	}                                                                                                          \
	static int list##_write_due(struct session *session, struct ledger *ledger)                                \
	{                                                                                                          \
		return session->list.due ? list##_write(&session->list, ledger, session->tenant.number) : 0;       \
	}                                                                                                          \
	static void list##_write_again(struct session *session)                                                    \
	{                                                                                                          \
		list##_rewrite(&session->list);                                                                    \
	}                                                                                                          \
	static uint64_t list##_alive(const struct session *session)                                                \
	{                                                                                                          \
		return session->list.size + session->list.n * LEDGER_RECORD_OVERHEAD;                              \
	}                                                                                                          \
	static void list##_branch(struct session *session, const struct session *parent,                           \
				  const struct checkpoint *from)                                                   \
	{                                                                                                          \
		list##_copy(&session->list, &parent->list, session->n_cells);                                      \
	}                                                                                                          \
	static void list##_take(struct session *session, const void *record)                                       \
	{                                                                                                          \
		list##_read(&session->list, record);                                                               \
	}
#define LIST_HOOKS(list)                                                                                           \
	.name = #list, .init = list##_start, .deinit = list##_stop, .on_branch = list##_branch,                    \
	.write = list##_write_due, .rewrite = list##_write_again, .alive = list##_alive, .read = list##_take

LIST_PART(journal)
static const struct part journal_part = {LIST_HOOKS(journal), .schema = &entry_record_schema};

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

LIST_PART(effects)
static const struct part effects_part = {LIST_HOOKS(effects), .schema = &effect_record_schema,
					 .put = effects_part_put, .take = effects_part_take};

/* ---- all ---- */

/* In the order in which they are initialised. The first that a deadline is for takes it. */
const struct part *const session_parts[] = {
	&journal_part, &effects_part, &deeds_part,	&filing_part,	 &saving_part, &transfers_part,
	&split_part,   &calls_part,   &installing_part, &comparing_part, &asking_part, NULL,
};
