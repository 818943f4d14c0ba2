/* A parcel is a frame around another, so that ZeroMQ says when it is done with it. That is said in its own thread:
 * what both threads touch is one counter, which the account it stands in outlives. */
#include "parcel.h"

#include "client.h"

#include <stdatomic.h>

struct account {
	struct list node;
	uint8_t identity_size;
	char identity[IDENTITY_MAX];
	atomic_size_t on_the_way;
};

struct parcel {
	struct account *account;
	size_t size;
	zmq_msg_t frame;
};

/* The one of this client. What is empty on the way there goes. */
static struct account *account_find(struct list *accounts, const struct address *to)
{
	struct account *account, *found = NULL;

	list_for_each (account, accounts, node) {
		if (account->identity_size == to->identity_size &&
		    !memcmp(account->identity, to->identity, to->identity_size)) {
			found = account;
		} else if (atomic_load(&account->on_the_way) == 0) {
			list_remove(&account->node);
			free(account);
		}
	}
	return found;
}

static struct account *account_get(struct list *accounts, const struct address *to)
{
	struct account *account = account_find(accounts, to);

	if (account)
		return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	list_init(&account->node);
	account->identity_size = to->identity_size;
	memcpy(account->identity, to->identity, to->identity_size);
	list_append(accounts, &account->node);
	return account;
}

bool parcel_fits(struct list *accounts, const struct address *to, size_t size)
{
	struct account *account = account_find(accounts, to);
	size_t on_the_way = account ? atomic_load(&account->on_the_way) : 0;

	return on_the_way == 0 || on_the_way + size <= PARCELS_MAX;
}

/* The counter last: the account may be gone at once. */
static void release(void *data, void *hint)
{
	struct parcel *parcel = hint;
	struct account *account = parcel->account;
	size_t size = parcel->size;

	(void)data;
	zmq_msg_close(&parcel->frame);
	free(parcel);
	atomic_fetch_sub(&account->on_the_way, size);
}

int parcel_wrap(struct parcel **parcelp, zmq_msg_t *outer, struct list *accounts, const struct address *to,
		zmq_msg_t *frame)
{
	struct parcel *parcel = malloc(sizeof(*parcel));
	struct account *account = parcel ? account_get(accounts, to) : NULL;

	if (!account) {
		free(parcel);
		return -ENOMEM;
	}
	*parcel = (struct parcel){.account = account, .size = zmq_msg_size(frame)};
	zmq_msg_init(&parcel->frame);
	zmq_msg_move(&parcel->frame, frame);
	atomic_fetch_add(&account->on_the_way, parcel->size);
	if (zmq_msg_init_data(outer, zmq_msg_data(&parcel->frame), parcel->size, release, parcel) < 0) {
		zmq_msg_move(frame, &parcel->frame);
		release(NULL, parcel);
		return -ENOMEM;
	}
	*parcelp = parcel;
	return 0;
}

void parcel_unwrap(struct parcel *parcel, zmq_msg_t *outer, zmq_msg_t *frame)
{
	zmq_msg_move(frame, &parcel->frame);
	zmq_msg_close(outer);
}

void parcels_deinit(struct list *accounts)
{
	struct account *account;

	list_for_each (account, accounts, node)
		free(account);
}
