/* What the functions of clients have done for a family, and may not do again in silence: calls of `effect`
 * functions that were answered, or may have been done. Each state of a session knows which of them are in its past.
 * A call that was done, and is not in the past of who calls now, was undone, or is another branch's. The list is
 * bounded: a done call that all sessions of the family have in their past is the first to be forgotten. If one of
 * them goes back to a state before it, nobody knows any more what it must not repeat, and each call raises. */
#pragma once

#include "proto/sha256.h"

#include "proto/wire.h"

#define DONE_CALLS_MAX 1024

struct done_call {
	uint64_t serial; /* 0: there is none in this place */
	uint8_t digest[SHA256_SIZE];
	uint64_t session, cell; /* whose, by its number in the family */
	const char *where;	/* the session's id */
	const char *text;	/* the call in words */
	bool maybe;		/* nobody knows whether it was done */
};

/* Of one state. */
struct past_calls {
	uint64_t forgotten; /* how many of them are not kept */
	uint64_t bits[DONE_CALLS_MAX / 64];
};

struct done_calls {
	struct done_call *all; /* DONE_CALLS_MAX of them; NULL: none was ever done */
	uint64_t last, written;
	uint64_t forgotten;
	size_t n, size;
};

void done_calls_deinit(struct done_calls *done_calls);

/* The place of the next done_call. If it is not free, the one in it is to be forgotten by all states first, see
 * done_calls_forget. @is_safe: whether that one is undone for nobody. Returns 0 or -ENOMEM. */
int done_calls_place(size_t *placep, struct done_calls *done_calls, bool (*is_safe)(void *userdata, size_t place),
		     void *userdata);
/* The one in that place is not kept any more. */
void done_calls_forget(struct done_calls *done_calls, size_t place);
/* Copies the texts of @done_call. The place is free. Returns 0 or -ENOMEM. */
int done_calls_add(struct done_calls *done_calls, size_t place, const struct done_call *done_call);
/* One with that digest that is not in @past; NULL if there is none. *@unsure: some of which nothing is known are
 * not in it either. */
const struct done_call *done_calls_find(bool *unsure, const struct done_calls *done_calls,
					const struct past_calls *past, const uint8_t digest[static SHA256_SIZE]);
size_t done_call_place(const struct done_calls *done_calls, const struct done_call *done_call);

void past_calls_add(struct past_calls *past, size_t place);
bool past_calls_have(const struct past_calls *past, size_t place);
/* It is not kept any more. */
void past_calls_forget(struct past_calls *past, size_t place);
/* For the next router: absent if there are none. */
struct bytes past_calls_bytes(const struct past_calls *past);
void past_calls_read(struct past_calls *past, struct bytes bytes);

struct done_call_record;
struct ledger;
int done_calls_write(struct done_calls *done_calls, struct ledger *ledger);
void done_calls_rewrite(struct done_calls *done_calls);
void done_calls_read(struct done_calls *done_calls, const struct done_call_record *record);
