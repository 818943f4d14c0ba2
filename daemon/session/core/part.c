/* What is the same for all parts: their records, one after the other. */
#include "part.h"

#include "sessions.h"
#include "vault/ledger.h"

static const char nil = '\xc0';

int parts_put(msgpack_sbuffer *buffer, const struct session *session)
{
	msgpack_packer packer;
	uint32_t n = 0;
	int r;

	parts_for_each(at, session) n += (*at)->put != NULL;
	msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
	r = msgpack_pack_map(&packer, n) ? -ENOMEM : 0;
	parts_for_each(at, session)
	{
		size_t before;

		if (r || !(*at)->put)
			continue;
		r = wire_put_string(buffer, bytes_of((*at)->name));
		before = buffer->size;
		r = r ? r : (*at)->put(buffer, session);
		if (!r && buffer->size == before)
			r = msgpack_sbuffer_write(buffer, &nil, 1) ? -ENOMEM : 0;
	}
	return r;
}

int parts_take(struct session *session, struct bytes values)
{
	struct bytes name, value;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next_pair(values, &cursor, &name, &value))
		parts_for_each(at, session) if (!r && (*at)->take && bytes_is(name, (*at)->name) &&
						*value.data != nil) r = (*at)->take(session, value);
	return r;
}

static struct kept_list *list_of(const struct session *session, const struct part *part)
{
	return (struct kept_list *)((char *)session + part->list);
}

void parts_init(struct session *session)
{
	parts_for_each(at, session) if ((*at)->schema) kept_init(list_of(session, *at));
	parts_call(init, session);
}

void parts_deinit(struct session *session)
{
	parts_call(deinit, session);
	parts_for_each(at, session) if ((*at)->schema) kept_deinit(list_of(session, *at));
}

int parts_write(struct session *session, struct ledger *ledger)
{
	int r = 0;

	parts_for_each(at, session) if (!r && (*at)->schema) r =
		kept_write(list_of(session, *at), (*at)->schema, ledger, session->tenant.number);
	return r;
}

void parts_rewrite(struct session *session)
{
	parts_for_each(at, session) if ((*at)->schema) kept_rewrite(list_of(session, *at));
}

uint64_t parts_alive(const struct session *session)
{
	uint64_t alive = 0;

	parts_for_each(at, session) if ((*at)->schema) alive +=
		list_of(session, *at)->size + list_of(session, *at)->n * LEDGER_RECORD_OVERHEAD;
	return alive;
}

void parts_branch(struct session *session, const struct session *parent, const struct checkpoint *from)
{
	parts_for_each(at, session) if ((*at)->on_branch)(*at)->on_branch(session, parent, from);
}

bool parts_late(struct session *session)
{
	parts_for_each(at, session) if ((*at)->on_late && (*at)->on_late(session)) return true;
	return false;
}
