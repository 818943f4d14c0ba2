/* Users, by what is kept for them. There are as many as have ever asked for something: few, so they stand in a
 * list.
 */
#include "user.h"

void users_init(struct users *users)
{
	*users = (struct users){.work_each = 0};
	list_init(&users->all);
}

void users_deinit(struct users *users)
{
	struct user *user;

	list_for_each (user, &users->all, node)
		free(user);
	list_init(&users->all);
}

struct user *user_get(struct users *users, uid_t uid)
{
	struct user *user;

	list_for_each (user, &users->all, node)
		if (user->uid == uid)
			return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->users = users;
	user->uid = uid;
	list_init(&user->node);
	list_init(&user->answered);
	list_append(&users->all, &user->node);
	return user;
}

void user_charge(struct user *user, uint64_t size)
{
	if (user)
		user->at_work += size;
}

bool user_take(struct user *user, uint64_t size)
{
	uint64_t most = user ? user->users->work_each : 0;

	if (most && (user->at_work > most || size > most - user->at_work))
		return false;
	user_charge(user, size);
	return true;
}

void user_give_back(struct user *user, uint64_t size)
{
	if (user)
		user->at_work -= size;
}
