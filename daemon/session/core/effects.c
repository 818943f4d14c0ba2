/* Effects of a session. The notes of an interpreter are hostile: a note counts if it has its number and a known
 * act, and its texts are bytes to show, no more. Numbers without a note are counted as well. */
#include "effects.h"

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

static struct effect_record *record_of(struct kept *kept)
{
	return (struct effect_record *)kept->record;
}

static void count_dropped(struct effects *effects, uint64_t when, uint64_t count)
{
	effects->dropped = MIN(effects->dropped + count, COUNT_MAX);
	effects->dropped_at = MAX(effects->dropped_at, when);
}

static enum weight weight_of(const struct effect_record *record)
{
	if (record->act != EFFECT_CALLED && record->act != EFFECT_MAYBE_CALLED)
		return WEIGHT_SEEN;
	return record->effect ? WEIGHT_EFFECT : WEIGHT_CALL;
}

/* The oldest of those that weigh least. */
static struct kept *lightest(struct effects *effects)
{
	struct kept *kept, *found = NULL;

	list_for_each (kept, &effects->entries.all, node) {
		if (!found || weight_of(record_of(kept)) < weight_of(record_of(found)))
			found = kept;
		if (weight_of(record_of(found)) == WEIGHT_CALL)
			break;
	}
	return found;
}

/* Without memory it is only counted. An act that is not known only has a number. */
void effects_add(struct effects *effects, const struct effect_record *effect, bool written)
{
	struct kept_list *entries = &effects->entries;
	struct effect_record record = *effect;

	record.count = MIN(record.count, COUNT_MAX);
	record.act = record.act < _EFFECT_ACT_N ? record.act : 0;
	if (!kept_add(entries, &effect_record_schema, &record, written))
		count_dropped(effects, record.when, record.count);
	while (entries->n > ENTRIES_MAX || entries->size > SIZE_MAX_ALL) {
		struct kept *kept = lightest(effects);

		count_dropped(effects, record_of(kept)->when, record_of(kept)->count);
		kept_drop(entries, kept);
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
	effects_add(effects, &record, false);
	return true;
}

void effects_gather(struct effects *effects, int file, uint64_t heard, uint64_t last, uint64_t when)
{
	struct effect_record others = {.when = when, .count = last - heard};

	for (uint64_t i = 1; i <= MIN(last - heard, (uint64_t)EFFECT_NOTES_MAX); i++)
		others.count -= note_take(effects, file, heard + i, when);
	if (others.count > 0)
		effects_add(effects, &others, false);
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

	effects_add(effects, &record, false);
}

/* ---- to clients ---- */

static bool already_listed(const struct effect_record *const told[], size_t n, const struct effect_record *record)
{
	for (size_t i = 0; i < n; i++)
		if (told[i]->act == record->act && bytes_equal(told[i]->target, record->target) &&
		    bytes_equal(told[i]->to, record->to))
			return true;
	return false;
}

static int effect_put(const struct effect_record *record, msgpack_sbuffer *buffer)
{
	const struct effect effect = {
		.act = bytes_of(acts[record->act]),
		.target = record->target,
		.to = record->to,
		.cell = record->when / 2,
	};

	return wire_encode_body(buffer, &effect_schema, &effect);
}

/* Those of that weight are told after the *@np that are, as far as there is room. Returns how many are left out. */
static uint64_t choose(const struct effect_record *told[static TOLD_MAX], size_t *np, const struct effects *effects,
		       enum weight weight, uint64_t since, uint64_t until)
{
	struct kept *kept;
	uint64_t more = 0;

	list_for_each (kept, (struct list *)&effects->entries.all, node) {
		const struct effect_record *record = record_of(kept);

		if (weight_of(record) != weight || record->when <= since || record->when >= until ||
		    (record->act && already_listed(told, *np, record)))
			continue;
		if (record->act && *np < TOLD_MAX)
			told[(*np)++] = record;
		else
			more += record->count;
	}
	return more;
}

uint64_t effects_put(const struct effects *effects, uint64_t cell, uint64_t until, msgpack_sbuffer *buffer)
{
	uint64_t since = EFFECTS_DURING(cell), more = effects->dropped_at > since ? effects->dropped : 0;
	const struct effect_record *told[TOLD_MAX];
	size_t n = 0;
	int r = 0;

	for (int weight = _WEIGHT_N - 1; weight >= 0; weight--)
		more += choose(told, &n, effects, (enum weight)weight, since, until);
	if (n == 0)
		return more;
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n && !r; i++)
		r = effect_put(told[i], buffer);
	if (r)
		msgpack_sbuffer_clear(buffer);
	return r ? more + n : more;
}

void effects_copy(struct effects *effects, const struct effects *from, uint64_t cell)
{
	struct kept *kept;

	effects->dropped = from->dropped;
	effects->dropped_at = from->dropped_at;
	list_for_each (kept, (struct list *)&from->entries.all, node)
		if (record_of(kept)->when <= EFFECTS_DURING(cell))
			effects_add(effects, record_of(kept), false);
}
