/* Transfers: each belongs to one session and one user, and holds two descriptors or three. */
#include "transfer.h"

#include "rows.h"
#include "session/core/blame.h"
#include "session/core/sessions.h"
#include "vault/records.h"

#include <limits.h>

#ifndef TRANSFER_PATIENCE_US
#define TRANSFER_PATIENCE_US (60 * 1000000ULL)
#endif

static void on_impatience(struct timer *timer)
{
	struct transfer *transfer = container_of(timer, struct transfer, patience);

	blame_session(transfer->session, TURN_TRANSFER);
	transfer_free(transfer);
}

static void patience_start(struct transfer *transfer)
{
	(void)timer_set(transfer->session->sessions->loop, &transfer->patience, event_now() + TRANSFER_PATIENCE_US,
			on_impatience);
}

struct transfer *transfer_new(struct session *session, uid_t owner)
{
	struct transfer *transfer = malloc(sizeof(*transfer));

	if (!transfer)
		return NULL;
	*transfer = (struct transfer){
		.session = session,
		.number = ++session->sessions->last_transfer,
		.owner = owner,
		.file = NEW_FILE_NONE,
		.source = -1,
	};
	list_init(&transfer->node);
	list_append(&session->transfers, &transfer->node);
	patience_start(transfer);
	return transfer;
}

struct transfer *transfer_free(struct transfer *transfer)
{
	if (!transfer)
		return NULL;
	timer_clear(transfer->session->sessions->loop, &transfer->patience);
	list_remove(&transfer->node);
	new_file_deinit(&transfer->file);
	fd_closep(&transfer->source);
	free(transfer);
	return NULL;
}

bool transfers_full(const struct session *session)
{
	const struct list *node;
	unsigned n = 0;

	for (node = session->transfers.next; node != &session->transfers; node = node->next)
		n++;
	return n >= TRANSFERS_MAX;
}

struct transfer *transfer_find(struct session *session, uint64_t number, uid_t owner)
{
	struct transfer *transfer;

	list_for_each (transfer, &session->transfers, node) {
		if (transfer->number != number || transfer->owner != owner)
			continue;
		patience_start(transfer);
		return transfer;
	}
	return NULL;
}

/* ---- as a part ---- */

static void init(struct session *session)
{
	list_init(&session->transfers);
}

static void deinit(struct session *session)
{
	struct transfer *transfer;

	list_for_each (transfer, &session->transfers, node)
		transfer_free(transfer);
}

#define TRANSFER_FIELDS(F, m)                                                                                      \
	F(m, BIN, directory, REQUIRED)                                                                             \
	F(m, STR, temporary, REQUIRED)
WIRE_DECLARE(transfer_record, NO_ID, TRANSFER_FIELDS);
WIRE_DEFINE(transfer_record, "transfer", NO_ID, TRANSFER_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct transfer *transfer;
	int r = list_empty(&session->transfers) ? 0 : wire_put_array(buffer, list_size(&session->transfers));

	list_for_each (transfer, (struct list *)&session->transfers, node) {
		const struct transfer_record record = {.directory = bytes_of(transfer->file.above),
						       .temporary = bytes_of(transfer->file.temporary)};

		r = r ? r : wire_encode_body(buffer, &transfer_record_schema, &record);
	}
	return r;
}

/* The next router does not go on with them: nothing stays. */
static int take(struct session *session, struct bytes records)
{
	_cleanup_(fd_closep) int root = -1;
	char above[PATH_MAX], temporary[NAME_MAX + 1];
	struct transfer_record record;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	while (wire_next(records, &cursor, &item)) {
		if (wire_decode_known(&record, &transfer_record_schema, item, &fault))
			return -EBADMSG;
		bytes_copy(above, sizeof(above), record.directory);
		bytes_copy(temporary, sizeof(temporary), record.temporary);
		if (root >= 0 || session_directory(&root, session) == 0)
			new_file_remove(root, above, temporary);
	}
	return 0;
}

const struct part transfers_part = {.name = "transfers", .init = init, .deinit = deinit, .put = put, .take = take};
