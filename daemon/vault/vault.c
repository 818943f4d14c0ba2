/* Messages to and from the keeper about what is stored. */
#include "vault.h"

#include "base/log.h"
#include "errand.h"

#include "proto/channel.h"

#include <fcntl.h>
#include <poll.h>

static struct store_name name_of(enum vault_kind kind, uint64_t family, uint64_t number)
{
	return (struct store_name){.kind = vault_kind_of(kind), .family = family, .number = number};
}

int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds)
{
	const struct keeper_message message = {
		.op = KEEPER_STORE, .serial = kind == VAULT_PROMISES, .name = name_of(kind, family, number)};
	int r = keeper_tell(&message, fds, n_fds);

	return r > 0 ? -EPIPE : r;
}

int vault_store_ledger(enum vault_kind kind, uint64_t family, struct ledger *ledger)
{
	int r = ledger_put_in_force(ledger);

	if (r || ledger->stored)
		return r;
	r = vault_store(kind, family, 0, &ledger->fd, 1);
	ledger->stored = r == 0;
	ledger->in_force = r == 0; /* or it would not be stored the next time */
	return r;
}

void vault_forget(enum vault_kind kind, uint64_t family, uint64_t number)
{
	const struct keeper_message message = {.op = KEEPER_FORGET, .name = name_of(kind, family, number)};

	(void)keeper_tell(&message, NULL, 0);
}

void vault_forget_family(uint64_t family)
{
	vault_forget((enum vault_kind)0, family, 0);
}

void vault_init(struct vault *vault)
{
	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_init(&vault->buckets[i]);
}

static struct list *bucket_of(struct vault *vault, uint64_t family)
{
	return &vault->buckets[family % STORE_BUCKETS];
}

static int item_add(struct vault *vault, const struct store_name *name, int *fds, size_t n_fds)
{
	struct vault_item *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	held->kind = (enum vault_kind)(uint32_t)name->kind;
	held->family = name->family;
	held->number = name->number;
	held->n_fds = n_fds;
	for (size_t i = 0; i < STORE_FDS_MAX; i++)
		held->fds[i] = i < n_fds ? steal_fd(&fds[i]) : -1;
	list_init(&held->node);
	list_append(bucket_of(vault, name->family), &held->node);
	return 0;
}

int vault_receive(struct vault *vault, int *listenerp, enum router_end *endp)
{
	struct pollfd readable = {.fd = KEEPER_FD, .events = POLLIN};
	struct keeper_message message;
	int fds[CHANNEL_FDS_MAX], r;
	struct bytes data;
	size_t n_fds;

	for (;;) {
		r = channel_recv(KEEPER_FD, (char *)&message, sizeof(message), &data, fds, &n_fds);
		if (r == CHANNEL_E_EMPTY) {
			(void)poll(&readable, 1, -1);
			continue;
		}
		if (r == -EMFILE && message.op == KEEPER_HELD && message.name.kind != STORE_LISTENER) {
			log_error(NULL, "no descriptors are left for all that the last router had");
			continue;
		}
		if (r)
			return r > 0 ? -EPIPE : r;
		if (message.op == KEEPER_END) {
			*endp = (enum router_end)message.error;
			return *listenerp < 0 ? -ENOTSOCK : 0;
		}
		if (message.op == KEEPER_HELD && message.name.kind == STORE_LISTENER)
			*listenerp = steal_fd(&fds[0]);
		else if (message.op == KEEPER_HELD && !vault_kind_is_ours(message.name.kind))
			r = VAULT_E_LAYOUT;
		else if (message.op == KEEPER_HELD)
			r = item_add(vault, &message.name, fds, n_fds);
		for (size_t i = 0; i < n_fds; i++)
			fd_closep(&fds[i]);
		if (r)
			return r;
	}
}

struct vault_item *vault_find(struct vault *vault, enum vault_kind kind, uint64_t family, uint64_t number)
{
	struct vault_item *held;

	list_for_each (held, bucket_of(vault, family), node)
		if (held->kind == kind && held->family == family && held->number == number)
			return held;
	return NULL;
}

static void item_settle(struct vault_item *held)
{
	if (!held->taken)
		vault_forget(held->kind, held->family, held->number);
	for (size_t i = 0; i < STORE_FDS_MAX; i++)
		fd_close(held->fds[i]);
	list_remove(&held->node);
	free(held);
}

void vault_settle(struct vault *vault)
{
	struct vault_item *held;

	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_for_each (held, &vault->buckets[i], node)
			item_settle(held);
}
