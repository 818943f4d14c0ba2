/* The parts of a session, in a list; those whose state is an object that knows no session have their rows here. */
#include "events.h"

#include "comparing.h"
#include "installing.h"
#include "part.h"
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
	static void list##_take(struct session *session, const void *record)                                       \
	{                                                                                                          \
		list##_read(&session->list, record);                                                               \
	}
#define LIST_HOOKS(list)                                                                                           \
	.name = #list, .init = list##_start, .deinit = list##_stop, .write = list##_write_due,                     \
	.rewrite = list##_write_again, .alive = list##_alive, .read = list##_take

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

/* ---- calls ---- */

static void calls_part_on_exit(struct session *session)
{
	if (!session->cell)
		return;
	session->cell->asking = false;
	session_end_calls(session);
}

static void calls_part_on_revived(struct session *session)
{
	if (!session->cell || session->cell->calls.n == 0)
		return;
	session_arm_calls(session);
	session_install_again(session);
}

static const struct part calls_part = {
	.name = "calls", .on_exit = calls_part_on_exit, .on_revived = calls_part_on_revived};
static const struct part comparing_part = {.name = "comparing", .on_revived = comparing_on_revived};
static const struct part split_part = {.name = "split",
				       .init = split_init,
				       .deinit = split_deinit,
				       .on_exit = split_abandon,
				       .on_end = split_abandon,
				       .on_revived = split_on_revived};

/* ---- all ---- */

const struct part *const session_parts[] = {
	&journal_part, &effects_part, &filing_part,    &saving_part, &transfers_part,
	&split_part,   &calls_part,   &comparing_part, NULL,
};

static const char nil = '\xc0';

int parts_put(msgpack_sbuffer *buffer, const struct session *session)
{
	msgpack_packer packer;
	uint32_t n = 0;
	int r;

	parts_for_each(at) n += (*at)->put != NULL;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	r = msgpack_pack_map(&packer, n) ? -ENOMEM : 0;
	parts_for_each(at)
	{
		size_t before;

		if (r || !(*at)->put)
			continue;
		r = wire_put_string(buffer, bytes_of((*at)->name));
		before = buffer->size;
		r = r ? r : (*at)->put(buffer, session);
		if (!r && buffer->size == before)
			r = msgpack_sbuffer_write(buffer, &nil, 1) ? -ENOMEM : 0;
	}
	return r;
}

int parts_take(struct session *session, struct bytes values)
{
	struct bytes name, value;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next_pair(values, &cursor, &name, &value))
		parts_for_each(at) if (!r && (*at)->take && bytes_is(name, (*at)->name) && *value.data != nil) r =
			(*at)->take(session, value);
	return r;
}

int parts_write(struct session *session, struct ledger *ledger)
{
	int r = 0;

	parts_for_each(at) if (!r && (*at)->write) r = (*at)->write(session, ledger);
	return r;
}

uint64_t parts_alive(const struct session *session)
{
	uint64_t alive = 0;

	parts_for_each(at) alive += (*at)->alive ? (*at)->alive(session) : 0;
	return alive;
}
