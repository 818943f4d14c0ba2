/* What the functions of clients have done for a family, and may not do again in silence: calls of `effect`
 * functions that were answered, or may have been done. Each state of a session knows which of them are in its past.
 * A call that was done, and is not in the past of who calls now, was undone, or is another branch's. The list is
 * bounded: a deed that all sessions of the family have in their past is the first to be forgotten. If one of them
 * goes back to a state before it, nobody knows any more what it must not repeat, and each call raises. */
#pragma once

#include "proto/sha256.h"

#include "proto/wire.h"

#define DEEDS_MAX 1024

struct deed {
	uint64_t serial; /* 0: there is none in this place */
	uint8_t digest[SHA256_SIZE];
	uint64_t session, cell; /* whose, by its number in the family */
	const char *where;	/* the session's id */
	const char *text;	/* the call in words */
	bool maybe;		/* nobody knows whether it was done */
};

/* Of one state. */
struct past_deeds {
	uint64_t forgotten; /* how many of them are not kept */
	uint64_t bits[DEEDS_MAX / 64];
};

struct deeds {
	struct deed *all; /* DEEDS_MAX of them; NULL: none was ever done */
	uint64_t last, written;
	uint64_t forgotten;
	size_t n, size;
};

void deeds_deinit(struct deeds *deeds);

/* The place of the next deed. If it is not free, the one in it is to be forgotten by all states first, see
 * deeds_forget. @is_safe: whether that one is undone for nobody. Returns 0 or -ENOMEM. */
int deeds_place(size_t *placep, struct deeds *deeds, bool (*is_safe)(void *userdata, size_t place), void *userdata);
/* The one in that place is not kept any more. */
void deeds_forget(struct deeds *deeds, size_t place);
/* Copies the texts of @deed. The place is free. Returns 0 or -ENOMEM. */
int deeds_add(struct deeds *deeds, size_t place, const struct deed *deed);
/* One with that digest that is not in @past; NULL if there is none. *@unsure: some of which nothing is known are
 * not in it either. */
const struct deed *deeds_find(bool *unsure, const struct deeds *deeds, const struct past_deeds *past,
			      const uint8_t digest[static SHA256_SIZE]);
size_t deed_place(const struct deeds *deeds, const struct deed *deed);

void past_deeds_add(struct past_deeds *past, size_t place);
bool past_deeds_have(const struct past_deeds *past, size_t place);
/* It is not kept any more. */
void past_deeds_forget(struct past_deeds *past, size_t place);
/* For the next router: absent if there are none. */
struct bytes past_deeds_bytes(const struct past_deeds *past);
void past_deeds_read(struct past_deeds *past, struct bytes bytes);

struct deed_record;
struct ledger;
int deeds_write(struct deeds *deeds, struct ledger *ledger);
void deeds_rewrite(struct deeds *deeds);
void deeds_read(struct deeds *deeds, const struct deed_record *record);
