/* Transfers: each belongs to one session and one user, and holds two descriptors or three. */
#include "transfer.h"

#include "hand.h"
#include "sessions.h"

#ifndef TRANSFER_PATIENCE_US
#define TRANSFER_PATIENCE_US (60 * 1000000ULL)
#endif

static void on_impatience(struct timer *timer)
{
	struct transfer *transfer = container_of(timer, struct transfer, patience);

	hand_session(transfer->session, TURN_TRANSFER);
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

void transfers_free(struct list *transfers)
{
	struct transfer *transfer;

	list_for_each (transfer, transfers, node)
		transfer_free(transfer);
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
