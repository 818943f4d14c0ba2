/* Effects of a session. The notes of an interpreter are hostile: a note counts if it has its number and a known
 * act, and its texts are bytes to show, no more. Numbers without a note are counted as well. */
#include "effects.h"

#include "vault/ledger.h"
#include "vault/records.h"

#include "proto/message.h"
#include "proto/outbuffer.h"

#define ENTRIES_MAX 2000
#define SIZE_MAX_ALL ((size_t)256 << 10)
/* In one answer. */
#define TOLD_MAX 64
/* Numbers come from the session, and sums of them must not overflow. */
#define COUNT_MAX ((uint64_t)1 << 40)

static const char *const acts[_EFFECT_ACT_N] = {
	[EFFECT_CONNECTED] = "connected",
	[EFFECT_SENT] = "sent",
	[EFFECT_WROTE] = "wrote",
	[EFFECT_MADE] = "made",
	[EFFECT_RENAMED] = "renamed",
	[EFFECT_REMOVED] = "removed",
	[EFFECT_RAN] = "ran",
	[EFFECT_CALLED] = "called",
	[EFFECT_MAYBE_CALLED] = "maybe_called",
};

/* What is told before others, and forgotten after them. */
enum weight { WEIGHT_CALL, WEIGHT_SEEN, WEIGHT_EFFECT, _WEIGHT_N };

struct entry {
	struct list node;
	uint64_t when, count;
	unsigned act; /* 0: only that there were @count of them */
	enum weight weight;
	bool written; /* to the ledger */
	size_t target, to;
	char text[];
};

void effects_init(struct effects *effects)
{
	*effects = (struct effects){.n = 0};
	list_init(&effects->entries);
}

static void entry_drop(struct effects *effects, struct entry *entry)
{
	list_remove(&entry->node);
	effects->n--;
	effects->size -= sizeof(*entry) + entry->target + entry->to;
	free(entry);
}

void effects_deinit(struct effects *effects)
{
	struct entry *entry;

	list_for_each (entry, &effects->entries, node)
		entry_drop(effects, entry);
}

static void count_dropped(struct effects *effects, uint64_t when, uint64_t count)
{
	effects->dropped = MIN(effects->dropped + count, COUNT_MAX);
	effects->dropped_at = MAX(effects->dropped_at, when);
}

static struct bytes target_of(const struct entry *entry)
{
	return (struct bytes){.data = entry->text, .size = entry->target};
}

static struct bytes to_of(const struct entry *entry)
{
	return (struct bytes){.data = entry->to ? entry->text + entry->target : NULL, .size = entry->to};
}

static enum weight weight_of(const struct effect_record *record)
{
	if (record->act != EFFECT_CALLED && record->act != EFFECT_MAYBE_CALLED)
		return WEIGHT_SEEN;
	return record->effect ? WEIGHT_EFFECT : WEIGHT_CALL;
}

/* The oldest of those that weigh least. */
static struct entry *lightest(struct effects *effects)
{
	struct entry *entry, *found = NULL;

	list_for_each (entry, &effects->entries, node) {
		if (!found || entry->weight < found->weight)
			found = entry;
		if (found->weight == WEIGHT_CALL)
			break;
	}
	return found;
}

/* Without memory it is only counted. */
static void entry_add(struct effects *effects, const struct effect_record *record, bool written)
{
	size_t size = record->target.size + record->to.size;
	struct entry *entry = malloc(sizeof(*entry) + size);

	if (!entry) {
		count_dropped(effects, record->when, record->count);
		return;
	}
	*entry = (struct entry){
		.when = record->when,
		.count = MIN(record->count, COUNT_MAX),
		.act = record->act < _EFFECT_ACT_N ? (unsigned)record->act : 0,
		.weight = weight_of(record),
		.written = written,
		.target = record->target.size,
		.to = record->to.size,
	};
	if (record->target.size > 0)
		memcpy(entry->text, record->target.data, record->target.size);
	if (record->to.size > 0)
		memcpy(entry->text + entry->target, record->to.data, record->to.size);
	list_init(&entry->node);
	list_append(&effects->entries, &entry->node);
	effects->due |= !written;
	effects->n++;
	effects->size += sizeof(*entry) + size;
	while (effects->n > ENTRIES_MAX || effects->size > SIZE_MAX_ALL) {
		entry = lightest(effects);
		count_dropped(effects, entry->when, entry->count);
		entry_drop(effects, entry);
	}
}

/* ---- from an interpreter ---- */

static bool note_valid(const struct effect_note *note, uint64_t number)
{
	return note->number == number && note->act > 0 && note->act < EFFECT_CALLED && note->target > 0 &&
	       (size_t)note->target + note->to <= sizeof(note->text);
}

static bool note_take(struct effects *effects, int file, uint64_t number, uint64_t when)
{
	off_t at = (off_t)(offsetof(struct outbuffers, effects) + offsetof(struct effects_book, notes) +
			   number % EFFECT_NOTES_MAX * sizeof(struct effect_note));
	struct effect_note note;
	struct effect_record record;

	if (pread(file, &note, sizeof(note), at) != sizeof(note) || !note_valid(&note, number))
		return false;
	record = (struct effect_record){
		.when = when,
		.count = 1,
		.act = note.act,
		.target = {.data = note.text, .size = note.target},
		.to = {.data = note.to ? note.text + note.target : NULL, .size = note.to},
	};
	entry_add(effects, &record, false);
	return true;
}

void effects_gather(struct effects *effects, int file, uint64_t heard, uint64_t last, uint64_t when)
{
	struct effect_record others = {.when = when, .count = last - heard};

	for (uint64_t i = 1; i <= MIN(last - heard, (uint64_t)EFFECT_NOTES_MAX); i++)
		others.count -= note_take(effects, file, heard + i, when);
	if (others.count > 0)
		entry_add(effects, &others, false);
}

void effects_call(struct effects *effects, bool maybe, bool effect, const char *text, uint64_t when)
{
	const struct effect_record record = {
		.when = when,
		.count = 1,
		.act = maybe ? EFFECT_MAYBE_CALLED : EFFECT_CALLED,
		.effect = effect,
		.target = bytes_of(text),
	};

	entry_add(effects, &record, false);
}

/* ---- to clients ---- */

static bool already_listed(const struct entry *const told[], size_t n, const struct entry *entry)
{
	for (size_t i = 0; i < n; i++)
		if (told[i]->act == entry->act && bytes_equal(target_of(told[i]), target_of(entry)) &&
		    bytes_equal(to_of(told[i]), to_of(entry)))
			return true;
	return false;
}

static int entry_put(const struct entry *entry, msgpack_sbuffer *buffer)
{
	const struct effect effect = {
		.act = bytes_of(acts[entry->act]),
		.target = target_of(entry),
		.to = to_of(entry),
		.cell = entry->when / 2,
	};

	return wire_encode_body(buffer, &effect_schema, &effect);
}

/* Those of that weight are told after the *@np that are, as far as there is room. Returns how many are left out. */
static uint64_t choose(const struct entry *told[static TOLD_MAX], size_t *np, const struct effects *effects,
		       enum weight weight, uint64_t since, uint64_t until)
{
	struct entry *entry;
	uint64_t more = 0;

	list_for_each (entry, (struct list *)&effects->entries, node) {
		if (entry->weight != weight || entry->when <= since || entry->when >= until ||
		    (entry->act && already_listed(told, *np, entry)))
			continue;
		if (entry->act && *np < TOLD_MAX)
			told[(*np)++] = entry;
		else
			more += entry->count;
	}
	return more;
}

uint64_t effects_put(const struct effects *effects, uint64_t cell, uint64_t until, msgpack_sbuffer *buffer)
{
	uint64_t since = EFFECTS_DURING(cell), more = effects->dropped_at > since ? effects->dropped : 0;
	const struct entry *told[TOLD_MAX];
	size_t n = 0;
	int r = 0;

	for (int weight = _WEIGHT_N - 1; weight >= 0; weight--)
		more += choose(told, &n, effects, (enum weight)weight, since, until);
	if (n == 0)
		return more;
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n && !r; i++)
		r = entry_put(told[i], buffer);
	if (r)
		msgpack_sbuffer_clear(buffer);
	return r ? more + n : more;
}

static struct effect_record record_of(const struct entry *entry, uint64_t session)
{
	return (struct effect_record){
		.session = session,
		.when = entry->when,
		.count = entry->count,
		.act = entry->act,
		.effect = entry->weight == WEIGHT_EFFECT,
		.target = target_of(entry),
		.to = to_of(entry),
	};
}

void effects_copy(struct effects *effects, const struct effects *from, uint64_t cell)
{
	struct entry *entry;

	effects->dropped = from->dropped;
	effects->dropped_at = from->dropped_at;
	list_for_each (entry, (struct list *)&from->entries, node) {
		const struct effect_record record = record_of(entry, 0);

		if (entry->when <= EFFECTS_DURING(cell))
			entry_add(effects, &record, false);
	}
}

/* ---- to the next router ---- */

int effects_write(struct effects *effects, struct ledger *ledger, uint64_t session)
{
	struct list *node = effects->entries.previous;
	int r = 0;

	while (node != &effects->entries && !container_of(node, struct entry, node)->written)
		node = node->previous;
	for (node = node->next; !r && node != &effects->entries; node = node->next) {
		struct entry *entry = container_of(node, struct entry, node);
		const struct effect_record record = record_of(entry, session);

		r = ledger_append(ledger, &effect_record_schema, &record);
		entry->written = r == 0;
	}
	effects->due = r != 0;
	return r;
}

void effects_rewrite(struct effects *effects)
{
	struct entry *entry;

	effects->due = true;
	list_for_each (entry, &effects->entries, node)
		entry->written = false;
}

void effects_read(struct effects *effects, const struct effect_record *record)
{
	entry_add(effects, record, true);
}
