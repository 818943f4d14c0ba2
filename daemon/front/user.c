/* Users, found by a table. Those with something to do are in a list, which is short. Everybody who has ever
 * connected or had a session has an entry, for ever. */
#include "user.h"

void users_init(struct users *users)
{
	*users = (struct users){.incoming_max = UINT64_MAX, .incoming_each = UINT64_MAX};
	list_init(&users->all);
	table_init(&users->by_uid);
	list_init(&users->asking);
}

void users_deinit(struct users *users)
{
	struct user *user;

	table_deinit(&users->by_uid);
	list_for_each (user, &users->all, node)
		free(user);
	list_init(&users->all);
}

static struct user *user_new(struct users *users, uid_t uid)
{
	struct user *user = calloc(1, sizeof(*user));

	if (!user)
		return NULL;
	user->users = users;
	user->uid = uid;
	party_init(&user->party);
	list_init(&user->node);
	list_init(&user->asking);
	list_init(&user->ready);
	list_init(&user->starved);
	list_init(&user->resting);
	list_init(&user->sessions);
	list_init(&user->answered);
	if (table_add(&users->by_uid, &user->by_uid, hash_of_number(uid))) {
		free(user);
		return NULL;
	}
	list_append(&users->all, &user->node);
	return user;
}

struct user *user_find(const struct users *users, uid_t uid)
{
	struct user *user;

	table_for_each (user, &users->by_uid, hash_of_number(uid), by_uid)
		if (user->uid == uid)
			return user;
	return NULL;
}

struct user *user_get(struct users *users, uid_t uid)
{
	struct user *user = user_find(users, uid);

	return user ? user : user_new(users, uid);
}

/* ---- what is held ---- */

uint64_t user_holds(const struct user *user)
{
	return user->at_work + user->outgoing + 2 * user->kept;
}

static bool fits(const struct user *user, uint64_t size)
{
	uint64_t share = user->users->share, holds = user_holds(user);

	return share == 0 || (holds <= share && size <= share - holds);
}

/* Nothing is forgotten for what has no room without any kept answer either. */
bool user_has_room(struct user *user, uint64_t size)
{
	const struct users *users = user->users;
	uint64_t others = user->at_work + user->outgoing;

	if (users->share && (others > users->share || size > users->share - others))
		return false;
	while (!fits(user, size))
		if (!users->make_room || !users->make_room(user))
			return false;
	return true;
}

void user_charge(struct user *user, uint64_t size)
{
	if (user)
		user->at_work += size;
}

bool user_take(struct user *user, uint64_t size)
{
	if (user && !user_has_room(user, size))
		return false;
	user_charge(user, size);
	return true;
}

void user_give_back(struct user *user, uint64_t size)
{
	if (user)
		user->at_work -= size;
}

/* ---- what is on its way in ---- */

void user_hold(struct user *user, uint64_t size)
{
	user->incoming += size;
	user->users->incoming += size;
}

bool user_reserve(struct user *user, uint64_t size)
{
	const struct users *users = user->users;

	if (user->incoming + size > users->incoming_each || users->incoming + size > users->incoming_max)
		return false;
	user_hold(user, size);
	return true;
}

void user_release(struct user *user, uint64_t size)
{
	user->incoming -= size;
	user->users->incoming -= size;
}

/* ---- whose request is next ---- */

void user_asks(struct user *user, struct event_loop *loop, struct list *turn)
{
	if (list_empty(&user->ready)) {
		party_wake(&user->party, loop);
		list_append(&user->users->asking, &user->asking);
	}
	list_append(&user->ready, turn);
}

void user_leave(struct user *user, struct list *turn)
{
	list_remove(turn);
	if (list_empty(&user->ready))
		list_remove(&user->asking);
}

struct user *users_turn(struct users *users)
{
	struct user *user, *next = NULL;

	list_for_each (user, &users->asking, asking)
		if (!next || user->party.spent < next->party.spent)
			next = user;
	return next;
}

struct list *user_next(struct user *user)
{
	struct list *turn = list_first(&user->ready);

	user_leave(user, turn);
	return turn;
}
