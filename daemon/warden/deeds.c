/* Calls of `effect` functions, and whose past they are in. */
#include "deeds.h"

#include "vault/ledger.h"
#include "vault/records.h"

static void deed_drop(struct deeds *deeds, struct deed *deed)
{
	deeds->size -= strlen(deed->where) + strlen(deed->text);
	deeds->n--;
	free((char *)deed->where);
	free((char *)deed->text);
	*deed = (struct deed){.serial = 0};
}

void deeds_deinit(struct deeds *deeds)
{
	for (size_t i = 0; deeds->all && i < DEEDS_MAX; i++)
		if (deeds->all[i].serial)
			deed_drop(deeds, &deeds->all[i]);
	free(deeds->all);
	*deeds = (struct deeds){.all = NULL};
}

static int begin(struct deeds *deeds)
{
	if (!deeds->all)
		deeds->all = calloc(DEEDS_MAX, sizeof(*deeds->all));
	return deeds->all ? 0 : -ENOMEM;
}

int deeds_place(size_t *placep, struct deeds *deeds, bool (*is_safe)(void *userdata, size_t place), void *userdata)
{
	size_t oldest = 0, safe = DEEDS_MAX;
	int r = begin(deeds);

	if (r)
		return r;
	for (size_t i = 0; i < DEEDS_MAX; i++) {
		if (!deeds->all[i].serial) {
			*placep = i;
			return 0;
		}
		if (deeds->all[i].serial < deeds->all[oldest].serial)
			oldest = i;
	}
	for (size_t i = 0; i < DEEDS_MAX; i++)
		if ((safe == DEEDS_MAX || deeds->all[i].serial < deeds->all[safe].serial) && is_safe(userdata, i))
			safe = i;
	*placep = safe < DEEDS_MAX ? safe : oldest;
	return 0;
}

void deeds_forget(struct deeds *deeds, size_t place)
{
	if (!deeds->all[place].serial)
		return;
	deed_drop(deeds, &deeds->all[place]);
	deeds->forgotten++;
}

static int deed_put(struct deeds *deeds, size_t place, const struct deed *deed)
{
	struct deed *own = &deeds->all[place];
	char *where = strdup(deed->where), *text = strdup(deed->text);

	if (!where || !text) {
		free(where);
		free(text);
		return -ENOMEM;
	}
	if (own->serial)
		deed_drop(deeds, own);
	*own = *deed;
	own->where = where;
	own->text = text;
	deeds->n++;
	deeds->size += strlen(where) + strlen(text);
	return 0;
}

int deeds_add(struct deeds *deeds, size_t place, const struct deed *deed)
{
	struct deed added = *deed;
	int r;

	added.serial = deeds->last + 1;
	r = deed_put(deeds, place, &added);
	if (!r)
		deeds->last++;
	return r;
}

const struct deed *deeds_find(bool *unsure, const struct deeds *deeds, const struct past_deeds *past,
			      const uint8_t digest[static SHA256_SIZE])
{
	*unsure = past->forgotten < deeds->forgotten;
	for (size_t i = 0; deeds->all && i < DEEDS_MAX; i++)
		if (deeds->all[i].serial && !past_deeds_have(past, i) &&
		    !memcmp(deeds->all[i].digest, digest, SHA256_SIZE))
			return &deeds->all[i];
	return NULL;
}

size_t deed_place(const struct deeds *deeds, const struct deed *deed)
{
	return (size_t)(deed - deeds->all);
}

/* ---- pasts ---- */

void past_deeds_add(struct past_deeds *past, size_t place)
{
	past->bits[place / 64] |= 1ULL << place % 64;
}

bool past_deeds_have(const struct past_deeds *past, size_t place)
{
	return past->bits[place / 64] >> place % 64 & 1;
}

void past_deeds_forget(struct past_deeds *past, size_t place)
{
	past->forgotten += past_deeds_have(past, place);
	past->bits[place / 64] &= ~(1ULL << place % 64);
}

struct bytes past_deeds_bytes(const struct past_deeds *past)
{
	static const struct past_deeds none;

	if (!memcmp(past, &none, sizeof(none)))
		return (struct bytes){.data = NULL};
	return (struct bytes){.data = (const char *)past, .size = sizeof(*past)};
}

void past_deeds_read(struct past_deeds *past, struct bytes bytes)
{
	*past = (struct past_deeds){.forgotten = 0};
	if (bytes.size == sizeof(*past))
		memcpy(past, bytes.data, sizeof(*past));
}

/* ---- to the next router ---- */

static int deed_write(const struct deed *deed, size_t place, struct ledger *ledger)
{
	const struct deed_record record = {
		.place = place,
		.serial = deed->serial,
		.session = deed->session,
		.cell = deed->cell,
		.digest = {.data = (const char *)deed->digest, .size = SHA256_SIZE},
		.where = bytes_of(deed->where),
		.text = bytes_of(deed->text),
		.maybe = deed->maybe,
	};

	return ledger_append(ledger, &deed_record_schema, &record);
}

int deeds_write(struct deeds *deeds, struct ledger *ledger)
{
	int r = 0;

	for (size_t i = 0; deeds->written < deeds->last && !r && i < DEEDS_MAX; i++)
		if (deeds->all[i].serial > deeds->written)
			r = deed_write(&deeds->all[i], i, ledger);
	if (!r)
		deeds->written = deeds->last;
	return r;
}

void deeds_rewrite(struct deeds *deeds)
{
	deeds->written = 0;
}

/* A later one takes the place of an earlier one. */
void deeds_read(struct deeds *deeds, const struct deed_record *record)
{
	char where[512], text[512];
	struct deed deed = {.serial = record->serial,
			    .session = record->session,
			    .cell = record->cell,
			    .where = where,
			    .text = text,
			    .maybe = record->maybe};

	if (record->place >= DEEDS_MAX || record->digest.size != SHA256_SIZE || begin(deeds))
		return;
	memcpy(deed.digest, record->digest.data, SHA256_SIZE);
	bytes_copy(where, sizeof(where), record->where);
	bytes_copy(text, sizeof(text), record->text);
	(void)deed_put(deeds, (size_t)record->place, &deed);
	deeds->last = MAX(deeds->last, record->serial);
	deeds->written = deeds->last;
}
