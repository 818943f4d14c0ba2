/* What a session has run. Each cell knows the cell whose state it began in. Walking back from the live state
 * finds the cells that it comes from; all others have been undone. */
#include "journal.h"

#include "promise/cell.h"
#include "vault/ledger.h"
#include "vault/records.h"

#include <stdio.h>

#define ENTRIES_MAX 1000
#define SIZE_MAX_ALL ((size_t)1 << 20)
#define CODE_MAX ((size_t)64 << 10)

struct entry {
	struct list node;
	uint64_t cell, after;
	int64_t returncode;
	double duration_ms;
	char cause[32];
	bool undone;	  /* as of the last journal_put */
	bool written;	  /* to the ledger */
	size_t code_size; /* of all of it */
	size_t size;	  /* of what is kept */
	char code[];
};

void journal_init(struct journal *journal)
{
	*journal = (struct journal){.n = 0};
	list_init(&journal->entries);
}

static void entry_drop(struct journal *journal, struct entry *entry)
{
	list_remove(&entry->node);
	journal->n--;
	journal->size -= entry->size;
	free(entry);
}

void journal_deinit(struct journal *journal)
{
	struct entry *entry;

	list_for_each (entry, &journal->entries, node)
		entry_drop(journal, entry);
}

static void entry_append(struct journal *journal, struct entry *entry)
{
	list_init(&entry->node);
	list_append(&journal->entries, &entry->node);
	journal->n++;
	journal->due |= !entry->written;
	journal->size += entry->size;
	while (journal->n > ENTRIES_MAX || journal->size > SIZE_MAX_ALL)
		entry_drop(journal, container_of(list_first(&journal->entries), struct entry, node));
}

void journal_add(struct journal *journal, const struct cell *cell, const struct verdict *verdict)
{
	size_t size = MIN(cell->options.code.size, CODE_MAX);
	struct entry *entry;

	while (size > 0 && size < cell->options.code.size && (cell->options.code.data[size] & 0xc0) == 0x80)
		size--;
	entry = calloc(1, sizeof(*entry) + size);
	if (!entry)
		return;
	entry->cell = cell->number;
	entry->after = cell->after;
	entry->returncode = verdict->returncode;
	entry->duration_ms = cell_duration(cell);
	snprintf(entry->cause, sizeof(entry->cause), "%s", verdict->cause ? verdict->cause : "");
	entry->code_size = cell->options.code.size;
	entry->size = size;
	memcpy(entry->code, cell->options.code.data, size);
	entry_append(journal, entry);
}

void journal_copy(struct journal *journal, const struct journal *from, uint64_t last)
{
	struct entry *entry, *copy;

	list_for_each (entry, &from->entries, node) {
		if (entry->cell > last)
			continue;
		copy = malloc(sizeof(*copy) + entry->size);
		if (!copy)
			return;
		memcpy(copy, entry, sizeof(*copy) + entry->size);
		copy->written = false;
		entry_append(journal, copy);
	}
}

static int entry_write(const struct entry *entry, struct ledger *ledger, uint64_t session)
{
	struct entry_record record = {
		.session = session,
		.cause = bytes_of(entry->cause[0] ? entry->cause : NULL),
		.size = entry->code_size,
		.code = {.data = entry->code, .size = entry->size},
	};

	ENTRY_VALUES(RECORD_PUT, entry);
	return ledger_append(ledger, &entry_record_schema, &record);
}

int journal_write(struct journal *journal, struct ledger *ledger, uint64_t session)
{
	struct list *node = journal->entries.previous;
	int r = 0;

	while (node != &journal->entries && !container_of(node, struct entry, node)->written)
		node = node->previous;
	while (!r && node->next != &journal->entries) {
		struct entry *entry = container_of(node->next, struct entry, node);

		r = entry_write(entry, ledger, session);
		entry->written = r == 0;
		node = node->next;
	}
	journal->due = r != 0;
	return r;
}

void journal_rewrite(struct journal *journal)
{
	struct entry *entry;

	journal->due = true;
	list_for_each (entry, &journal->entries, node)
		entry->written = false;
}

void journal_read(struct journal *journal, const struct entry_record *record)
{
	struct entry *entry = calloc(1, sizeof(*entry) + record->code.size);

	if (!entry)
		return;
	ENTRY_VALUES(RECORD_TAKE, entry);
	snprintf(entry->cause, sizeof(entry->cause), "%.*s", (int)MIN(record->cause.size, sizeof(entry->cause) - 1),
		 record->cause.data ? record->cause.data : "");
	entry->written = true;
	entry->code_size = record->size;
	entry->size = record->code.size;
	memcpy(entry->code, record->code.data, record->code.size);
	entry_append(journal, entry);
}

/* Backwards: each cell leads to the cell before it. */
static void mark_undone(struct journal *journal, uint64_t at)
{
	for (struct list *node = journal->entries.previous; node != &journal->entries; node = node->previous) {
		struct entry *entry = container_of(node, struct entry, node);

		entry->undone = entry->cell != at;
		if (!entry->undone)
			at = entry->after;
	}
}

static int entry_put(const struct entry *entry, msgpack_sbuffer *buffer)
{
	const struct history_record record = {
		.cell = entry->cell,
		.code = {.data = entry->code, .size = entry->size},
		.size = entry->code_size,
		.returncode = entry->returncode,
		.cause = bytes_of(entry->cause[0] ? entry->cause : NULL),
		.duration_ms = entry->duration_ms,
		.undone = entry->undone,
	};

	return wire_encode_body(buffer, &history_record_schema, &record);
}

int journal_put(struct journal *journal, uint64_t at, uint64_t n, msgpack_sbuffer *buffer)
{
	size_t skip = n > 0 && n < journal->n ? journal->n - n : 0;
	struct entry *entry;
	int r;

	mark_undone(journal, at);
	r = wire_put_array(buffer, journal->n - skip);
	list_for_each (entry, &journal->entries, node) {
		if (skip > 0)
			skip--;
		else if (!r)
			r = entry_put(entry, buffer);
	}
	return r;
}
