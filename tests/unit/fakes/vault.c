#include "fakes/vault.h"

#include "vault/errand.h"

#include <fcntl.h>
#include <stdlib.h>

static struct list stored = {.next = &stored, .previous = &stored};

static struct heirloom *find(struct list *list, enum vault_kind kind, uint64_t family, uint64_t number)
{
	struct heirloom *heirloom;

	list_for_each (heirloom, list, node)
		if (heirloom->kind == kind && heirloom->family == family && heirloom->number == number)
			return heirloom;
	return NULL;
}

static void forget(struct heirloom *heirloom)
{
	if (!heirloom)
		return;
	list_remove(&heirloom->node);
	for (size_t i = 0; i < heirloom->n_fds; i++)
		fd_close(heirloom->fds[i]);
	free(heirloom);
}

int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds)
{
	struct heirloom *heirloom = calloc(1, sizeof(*heirloom));

	if (!heirloom)
		return -ENOMEM;
	forget(find(&stored, kind, family, number));
	heirloom->kind = kind;
	heirloom->family = family;
	heirloom->number = number;
	heirloom->n_fds = n_fds;
	for (size_t i = 0; i < n_fds; i++)
		heirloom->fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	list_init(&heirloom->node);
	list_append(&stored, &heirloom->node);
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
	struct heirloom *heirloom;

	list_for_each (heirloom, &stored, node)
		if (heirloom->family == family)
			forget(heirloom);
}

void fake_vault_inherit(struct heritage *heritage)
{
	struct heirloom *heirloom;

	for (size_t i = 0; i < STORE_SHELVES; i++)
		list_init(&heritage->shelves[i]);
	list_for_each (heirloom, &stored, node)
		list_move(&heritage->shelves[0], &heirloom->node);
}

void fake_vault_end(struct heritage *heritage)
{
	struct heirloom *heirloom;

	list_for_each (heirloom, &heritage->shelves[0], node)
		forget(heirloom);
	list_for_each (heirloom, &stored, node)
		forget(heirloom);
}

struct heirloom *heritage_find(struct heritage *heritage, enum vault_kind kind, uint64_t family, uint64_t number)
{
	return find(&heritage->shelves[0], kind, family, number);
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

int errand_start_template(const char *profile, uint32_t serial, int theirs)
{
	(void)profile;
	(void)serial;
	(void)theirs;
	return 0;
}

int errand_start_scribe(int theirs, int ring, int file)
{
	(void)theirs;
	(void)ring;
	(void)file;
	return 0;
}
