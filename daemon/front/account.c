/* Users, by the time and the bytes that they take. There are as many as have connections: few, so they stand in a
 * list. */
#include "front/account.h"

void accounts_init(struct accounts *accounts)
{
	*accounts = (struct accounts){.incoming_max = UINT64_MAX, .incoming_each = UINT64_MAX};
	list_init(&accounts->all);
}

struct account *account_get(struct accounts *accounts, uid_t uid)
{
	struct account *account;

	list_for_each (account, &accounts->all, node)
		if (account->uid == uid)
			return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->uid = uid;
	account->spent = accounts->clock;
	list_init(&account->node);
	list_init(&account->ready);
	list_init(&account->starved);
	list_append(&accounts->all, &account->node);
	return account;
}

struct account *account_free(struct account *account)
{
	list_remove(&account->node);
	free(account);
	return NULL;
}

void account_charge(struct accounts *accounts, struct account *account, uint64_t size)
{
	account->incoming += size;
	accounts->incoming += size;
}

bool account_reserve(struct accounts *accounts, struct account *account, uint64_t size)
{
	if (account->incoming + size > accounts->incoming_each ||
	    accounts->incoming + size > accounts->incoming_max)
		return false;
	account_charge(accounts, account, size);
	return true;
}

void account_release(struct accounts *accounts, struct account *account, uint64_t size)
{
	account->incoming -= size;
	accounts->incoming -= size;
}

struct account *accounts_turn(struct accounts *accounts)
{
	struct account *account, *next = NULL;

	list_for_each (account, &accounts->all, node)
		if (!list_empty(&account->ready) && (!next || account->spent < next->spent))
			next = account;
	if (next)
		accounts->clock = MAX(accounts->clock, next->spent);
	return next;
}

void account_spend(struct account *account, uint64_t us)
{
	account->spent += us;
}

void account_wake(const struct accounts *accounts, struct account *account)
{
	account->spent = MAX(account->spent, accounts->clock);
}
