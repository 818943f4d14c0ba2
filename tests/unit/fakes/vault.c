#include "fakes/vault.h"

#include "vault/errand.h"

#include <fcntl.h>
#include <stdlib.h>

static struct list stored = {.next = &stored, .previous = &stored};

static struct vault_item *find(struct list *list, enum vault_kind kind, uint64_t family, uint64_t number)
{
	struct vault_item *held;

	list_for_each (held, list, node)
		if (held->kind == kind && held->family == family && held->number == number)
			return held;
	return NULL;
}

static void forget(struct vault_item *held)
{
	if (!held)
		return;
	list_remove(&held->node);
	for (size_t i = 0; i < held->n_fds; i++)
		fd_close(held->fds[i]);
	free(held);
}

int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds)
{
	struct vault_item *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	forget(find(&stored, kind, family, number));
	held->kind = kind;
	held->family = family;
	held->number = number;
	held->n_fds = n_fds;
	for (size_t i = 0; i < n_fds; i++)
		held->fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	list_init(&held->node);
	list_append(&stored, &held->node);
	return 0;
}

int vault_store_ledger(enum vault_kind kind, uint64_t family, struct ledger *ledger)
{
	int r = ledger->stored ? 0 : vault_store(kind, family, 0, &ledger->fd, 1);

	ledger->stored |= r == 0;
	return r ? r : ledger_put_in_force(ledger);
}

void vault_forget(enum vault_kind kind, uint64_t family, uint64_t number)
{
	forget(find(&stored, kind, family, number));
}

void vault_forget_family(uint64_t family)
{
	struct vault_item *held;

	list_for_each (held, &stored, node)
		if (held->family == family)
			forget(held);
}

void fake_vault_inherit(struct vault *vault)
{
	struct vault_item *held;

	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_init(&vault->buckets[i]);
	list_for_each (held, &stored, node)
		list_move(&vault->buckets[0], &held->node);
}

void fake_vault_end(struct vault *vault)
{
	struct vault_item *held;

	list_for_each (held, &vault->buckets[0], node)
		forget(held);
	list_for_each (held, &stored, node)
		forget(held);
}

struct vault_item *vault_find(struct vault *vault, enum vault_kind kind, uint64_t family, uint64_t number)
{
	return find(&vault->buckets[0], kind, family, number);
}

void errand_remove_tree(const char *path)
{
	(void)path;
}

void errand_remove_from(int directory, const char *path)
{
	(void)directory;
	(void)path;
}

void errand_beat(void)
{
}

int keeper_tell(const struct keeper_message *message, const int *fds, size_t n_fds)
{
	(void)message;
	(void)fds;
	(void)n_fds;
	return 0;
}

int errand_start_template(const char *profile, const char *language, unsigned python, uint32_t serial, int theirs)
{
	(void)language;
	(void)profile;
	(void)python;
	(void)serial;
	(void)theirs;
	return 0;
}

int errand_start_builder(int theirs)
{
	(void)theirs;
	return 0;
}

int errand_start_copier(int theirs)
{
	(void)theirs;
	return 0;
}
