/* What a session has run. Each cell knows the cell whose state it began in. Walking back from the live state
 * finds the cells that it comes from; all others have been undone. */
#include "journal.h"

#include "promise/cell.h"
#include "vault/records.h"

#define ENTRIES_MAX 1000
#define SIZE_MAX_ALL ((size_t)1 << 20)
#define CODE_MAX ((size_t)64 << 10)

static struct entry_record *record_of(struct kept *kept)
{
	return (struct entry_record *)kept->record;
}

void journal_take(struct kept_list *journal, const struct entry_record *record, bool written)
{
	if (!kept_add(journal, &entry_record_schema, record, written))
		return;
	while (journal->n > ENTRIES_MAX || journal->size > SIZE_MAX_ALL)
		kept_drop(journal, container_of(list_first(&journal->all), struct kept, node));
}

void journal_add(struct kept_list *journal, const struct cell *cell, const struct verdict *verdict)
{
	const struct bytes code = cell->options.code;
	size_t size = MIN(code.size, CODE_MAX);
	struct entry_record record;

	while (size > 0 && size < code.size && (code.data[size] & 0xc0) == 0x80)
		size--;
	record = (struct entry_record){
		.cell = cell->number,
		.after = cell->after,
		.returncode = verdict->returncode,
		.duration_ms = cell_duration(cell),
		.cause = record_text(verdict->cause),
		.size = code.size,
		.code = {.data = code.data, .size = size},
	};
	journal_take(journal, &record, false);
}

void journal_copy(struct kept_list *journal, const struct kept_list *from, uint64_t last)
{
	struct kept *kept;

	list_for_each (kept, (struct list *)&from->all, node)
		if (record_of(kept)->cell <= last)
			journal_take(journal, record_of(kept), false);
}

/* Backwards: each cell leads to the cell before it. Undone ones have a mark. */
static void mark_undone(struct kept_list *journal, uint64_t at)
{
	for (struct list *node = journal->all.previous; node != &journal->all; node = node->previous) {
		struct kept *kept = container_of(node, struct kept, node);

		kept->mark = record_of(kept)->cell != at;
		if (!kept->mark)
			at = record_of(kept)->after;
	}
}

static int entry_put(struct kept *kept, msgpack_sbuffer *buffer)
{
	const struct entry_record *entry = record_of(kept);
	const struct history_record record = {
		.cell = entry->cell,
		.code = entry->code,
		.size = entry->size,
		.returncode = entry->returncode,
		.cause = entry->cause,
		.duration_ms = entry->duration_ms,
		.undone = kept->mark,
	};

	return wire_encode_body(buffer, &history_record_schema, &record);
}

int journal_put(struct kept_list *journal, uint64_t at, uint64_t n, msgpack_sbuffer *buffer)
{
	size_t skip = n > 0 && n < journal->n ? journal->n - n : 0;
	struct kept *kept;
	int r;

	mark_undone(journal, at);
	r = wire_put_array(buffer, journal->n - skip);
	list_for_each (kept, &journal->all, node) {
		if (skip > 0)
			skip--;
		else if (!r)
			r = entry_put(kept, buffer);
	}
	return r;
}
