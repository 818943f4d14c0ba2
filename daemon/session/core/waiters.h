/* Requests that wait for the same thing, which are answered together. */
#pragma once

#include "promise/client.h"

struct session;

struct waiter {
	struct list node;
	struct address request;
};

/* @request waits, too; without memory it is told now that it will not be told. NULL: nobody does. */
void waiters_add(struct list *waiters, struct clients *clients, const struct address *request);
/* All get @reply, which begins with the id, or an error; none waits any more. */
void waiters_answer(struct list *waiters, struct clients *clients, const struct wire_schema *schema, void *reply);
void waiters_refuse(struct list *waiters, struct clients *clients, const char *why);
void waiters_free(struct list *waiters);

/* For the next router: those of @session as an array; and back. Return 0 or -errno. */
int waiters_put(msgpack_sbuffer *buffer, const struct list *waiters);
int waiters_take(struct list *waiters, const struct session *session, struct bytes records);
