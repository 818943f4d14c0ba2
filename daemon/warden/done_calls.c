/* Calls of `effect` functions, and whose past they are in. */
#include "done_calls.h"

#include "vault/ledger.h"
#include "vault/records.h"

static void done_call_drop(struct done_calls *done_calls, struct done_call *done_call)
{
	done_calls->size -= strlen(done_call->where) + strlen(done_call->text);
	done_calls->n--;
	free((char *)done_call->where);
	free((char *)done_call->text);
	*done_call = (struct done_call){.serial = 0};
}

void done_calls_deinit(struct done_calls *done_calls)
{
	for (size_t i = 0; done_calls->all && i < DONE_CALLS_MAX; i++)
		if (done_calls->all[i].serial)
			done_call_drop(done_calls, &done_calls->all[i]);
	free(done_calls->all);
	*done_calls = (struct done_calls){.all = NULL};
}

static int begin(struct done_calls *done_calls)
{
	if (!done_calls->all)
		done_calls->all = calloc(DONE_CALLS_MAX, sizeof(*done_calls->all));
	return done_calls->all ? 0 : -ENOMEM;
}

int done_calls_place(size_t *placep, struct done_calls *done_calls, bool (*is_safe)(void *userdata, size_t place),
		     void *userdata)
{
	size_t oldest = 0, safe = DONE_CALLS_MAX;
	int r = begin(done_calls);

	if (r)
		return r;
	for (size_t i = 0; i < DONE_CALLS_MAX; i++) {
		if (!done_calls->all[i].serial) {
			*placep = i;
			return 0;
		}
		if (done_calls->all[i].serial < done_calls->all[oldest].serial)
			oldest = i;
	}
	for (size_t i = 0; i < DONE_CALLS_MAX; i++)
		if ((safe == DONE_CALLS_MAX || done_calls->all[i].serial < done_calls->all[safe].serial) &&
		    is_safe(userdata, i))
			safe = i;
	*placep = safe < DONE_CALLS_MAX ? safe : oldest;
	return 0;
}

void done_calls_forget(struct done_calls *done_calls, size_t place)
{
	if (!done_calls->all[place].serial)
		return;
	done_call_drop(done_calls, &done_calls->all[place]);
	done_calls->forgotten++;
}

static int done_call_put(struct done_calls *done_calls, size_t place, const struct done_call *done_call)
{
	struct done_call *own = &done_calls->all[place];
	char *where = strdup(done_call->where), *text = strdup(done_call->text);

	if (!where || !text) {
		free(where);
		free(text);
		return -ENOMEM;
	}
	if (own->serial)
		done_call_drop(done_calls, own);
	*own = *done_call;
	own->where = where;
	own->text = text;
	done_calls->n++;
	done_calls->size += strlen(where) + strlen(text);
	return 0;
}

int done_calls_add(struct done_calls *done_calls, size_t place, const struct done_call *done_call)
{
	struct done_call added = *done_call;
	int r;

	added.serial = done_calls->last + 1;
	r = done_call_put(done_calls, place, &added);
	if (!r)
		done_calls->last++;
	return r;
}

const struct done_call *done_calls_find(bool *unsure, const struct done_calls *done_calls,
					const struct past_calls *past, const uint8_t digest[static SHA256_SIZE])
{
	*unsure = past->forgotten < done_calls->forgotten;
	for (size_t i = 0; done_calls->all && i < DONE_CALLS_MAX; i++)
		if (done_calls->all[i].serial && !past_calls_have(past, i) &&
		    !memcmp(done_calls->all[i].digest, digest, SHA256_SIZE))
			return &done_calls->all[i];
	return NULL;
}

size_t done_call_place(const struct done_calls *done_calls, const struct done_call *done_call)
{
	return (size_t)(done_call - done_calls->all);
}

/* ---- pasts ---- */

void past_calls_add(struct past_calls *past, size_t place)
{
	past->bits[place / 64] |= 1ULL << place % 64;
}

bool past_calls_have(const struct past_calls *past, size_t place)
{
	return past->bits[place / 64] >> place % 64 & 1;
}

void past_calls_forget(struct past_calls *past, size_t place)
{
	past->forgotten += past_calls_have(past, place);
	past->bits[place / 64] &= ~(1ULL << place % 64);
}

struct bytes past_calls_bytes(const struct past_calls *past)
{
	static const struct past_calls none;

	if (!memcmp(past, &none, sizeof(none)))
		return (struct bytes){.data = NULL};
	return (struct bytes){.data = (const char *)past, .size = sizeof(*past)};
}

void past_calls_read(struct past_calls *past, struct bytes bytes)
{
	*past = (struct past_calls){.forgotten = 0};
	if (bytes.size == sizeof(*past))
		memcpy(past, bytes.data, sizeof(*past));
}

/* ---- to the next router ---- */

static int done_call_write(const struct done_call *done_call, size_t place, struct ledger *ledger)
{
	const struct done_call_record record = {
		.place = place,
		.serial = done_call->serial,
		.session = done_call->session,
		.cell = done_call->cell,
		.digest = {.data = (const char *)done_call->digest, .size = SHA256_SIZE},
		.where = bytes_of(done_call->where),
		.text = bytes_of(done_call->text),
		.maybe = done_call->maybe,
	};

	return ledger_append(ledger, &done_call_record_schema, &record);
}

int done_calls_write(struct done_calls *done_calls, struct ledger *ledger)
{
	int r = 0;

	for (size_t i = 0; done_calls->written < done_calls->last && !r && i < DONE_CALLS_MAX; i++)
		if (done_calls->all[i].serial > done_calls->written)
			r = done_call_write(&done_calls->all[i], i, ledger);
	if (!r)
		done_calls->written = done_calls->last;
	return r;
}

void done_calls_rewrite(struct done_calls *done_calls)
{
	done_calls->written = 0;
}

/* A later one takes the place of an earlier one. */
void done_calls_read(struct done_calls *done_calls, const struct done_call_record *record)
{
	char where[512], text[512];
	struct done_call done_call = {.serial = record->serial,
				      .session = record->session,
				      .cell = record->cell,
				      .where = where,
				      .text = text,
				      .maybe = record->maybe};

	if (record->place >= DONE_CALLS_MAX || record->digest.size != SHA256_SIZE || begin(done_calls))
		return;
	memcpy(done_call.digest, record->digest.data, SHA256_SIZE);
	bytes_copy(where, sizeof(where), record->where);
	bytes_copy(text, sizeof(text), record->text);
	(void)done_call_put(done_calls, (size_t)record->place, &done_call);
	done_calls->last = MAX(done_calls->last, record->serial);
	done_calls->written = done_calls->last;
}
