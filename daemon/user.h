/* What one user has in the router besides connections: kept answers, and what the cells of the user's sessions hold
 * until they are answered. It is charged before there is memory for it, so no user can take what others need. */
#pragma once

#include "list.h"

#include <sys/types.h>

struct users {
	struct list all;
	uint64_t work_each; /* how much may be at work for one user; 0: any */
};

struct user {
	struct list node;
	struct users *users;
	uid_t uid;
	struct list answered; /* promises, oldest first */
	uint64_t size;	      /* of these */
	uint64_t at_work;     /* bytes of cells that wait or run: code, output, what they show */
	uint64_t letters_due; /* event_now() when the letters that are taken by now have been paid for with time */
};

void users_init(struct users *users);
void users_deinit(struct users *users);
/* The one of @uid, made if need be; it lasts as long as @users. NULL when out of memory. */
struct user *user_get(struct users *users, uid_t uid);

/* Returns false if the user has no room for so much more. A @user of NULL pays for nothing. */
bool user_take(struct user *user, uint64_t size);
/* The same, whatever there is: what a former router had taken. */
void user_charge(struct user *user, uint64_t size);
void user_give_back(struct user *user, uint64_t size);
