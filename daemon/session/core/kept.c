#include "kept.h"

#include "vault/ledger.h"

void kept_init(struct kept_list *list)
{
	*list = (struct kept_list){.n = 0};
	list_init(&list->all);
}

void kept_drop(struct kept_list *list, struct kept *kept)
{
	list_remove(&kept->node);
	list->n--;
	list->size -= kept->size;
	free(kept);
}

void kept_deinit(struct kept_list *list)
{
	struct kept *kept;

	list_for_each (kept, &list->all, node)
		kept_drop(list, kept);
}

/* NULL after the last field that has bytes. */
static struct bytes *next_bytes(size_t *i, const struct wire_schema *schema, void *record)
{
	while (*i < schema->n_fields) {
		const struct wire_field *field = &schema->fields[(*i)++];

		if (field->type >= WIRE_STR)
			return (struct bytes *)((char *)record + field->offset);
	}
	return NULL;
}

struct kept *kept_add(struct kept_list *list, const struct wire_schema *schema, const void *record, bool written)
{
	size_t size = 0, i = 0;
	struct bytes *bytes;
	struct kept *kept;
	char *to;

	while ((bytes = next_bytes(&i, schema, (void *)record)))
		size += bytes->size;
	kept = malloc(sizeof(*kept) + schema->size + size);
	if (!kept)
		return NULL;
	*kept = (struct kept){.size = size, .written = written};
	memcpy(kept->record, record, schema->size);
	to = kept->record + schema->size;
	i = 0;
	while ((bytes = next_bytes(&i, schema, kept->record))) {
		if (!bytes->data)
			continue;
		memcpy(to, bytes->data, bytes->size);
		bytes->data = to;
		to += bytes->size;
	}
	list_init(&kept->node);
	list_append(&list->all, &kept->node);
	list->n++;
	list->size += size;
	list->due |= !written;
	return kept;
}

int kept_write(struct kept_list *list, const struct wire_schema *schema, struct ledger *ledger, uint64_t session)
{
	struct list *node = list->all.previous;
	int r = 0;

	if (!list->due)
		return 0;
	while (node != &list->all && !container_of(node, struct kept, node)->written)
		node = node->previous;
	for (node = node->next; !r && node != &list->all; node = node->next) {
		struct kept *kept = container_of(node, struct kept, node);

		*(uint64_t *)kept->record = session;
		r = ledger_append(ledger, schema, kept->record);
		kept->written = r == 0;
	}
	list->due = r != 0;
	return r;
}

void kept_rewrite(struct kept_list *list)
{
	struct kept *kept;

	list->due = true;
	list_for_each (kept, &list->all, node)
		kept->written = false;
}
