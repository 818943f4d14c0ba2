#include "waiters.h"

#include "session.h"
#include "vault/records.h"

void waiters_add(struct list *waiters, struct clients *clients, const struct address *request)
{
	struct waiter *waiter = request ? calloc(1, sizeof(*waiter)) : NULL;

	if (request && !waiter)
		(void)client_error(clients, request, "internal",
				   "out of memory to wait for this, which is being done");
	if (!waiter)
		return;
	waiter->request = *request;
	list_init(&waiter->node);
	list_append(waiters, &waiter->node);
}

void waiters_free(struct list *waiters)
{
	struct waiter *waiter;

	list_for_each (waiter, waiters, node) {
		list_remove(&waiter->node);
		free(waiter);
	}
}

void waiters_answer(struct list *waiters, struct clients *clients, const struct wire_schema *schema, void *reply)
{
	struct waiter *waiter;

	list_for_each (waiter, waiters, node) {
		*(uint64_t *)reply = waiter->request.id;
		client_send(clients, &waiter->request, schema, reply);
	}
	waiters_free(waiters);
}

void waiters_refuse(struct list *waiters, struct clients *clients, const char *why)
{
	struct waiter *waiter;

	list_for_each (waiter, waiters, node)
		client_error(clients, &waiter->request, "gone", "%s", why);
	waiters_free(waiters);
}

int waiters_put(msgpack_sbuffer *buffer, const struct list *waiters)
{
	struct waiter *waiter;
	int r = wire_put_array(buffer, list_size(waiters));

	list_for_each (waiter, (struct list *)waiters, node) {
		const struct waiter_record record = {.promise = promise_serial(&waiter->request)};

		r = r ? r : wire_encode_body(buffer, &waiter_record_schema, &record);
	}
	return r;
}

int waiters_take(struct list *waiters, const struct session *session, struct bytes records)
{
	struct waiter_record record;
	struct wire_fault fault;
	struct waiter *waiter;
	struct bytes item;
	size_t cursor = 0;

	while (wire_next(records, &cursor, &item)) {
		if (wire_decode_known(&record, &waiter_record_schema, item, &fault))
			return -EBADMSG;
		waiter = calloc(1, sizeof(*waiter));
		if (!waiter)
			return -ENOMEM;
		waiter->request = session_claim(session, record.promise);
		list_init(&waiter->node);
		list_append(waiters, &waiter->node);
	}
	return 0;
}
