/* In place of the warden room: wardens and interpreters without processes, channels and descriptors. Each order
 * that a session gives is a row of a table; the test answers as a warden would, through struct tenant_ops. What the
 * room itself keeps is kept as there: who is in flight, that a sweep waits for that, and whom a frozen one is left
 * to. */
#pragma once

#include "warden/warden.h"

struct breaker;

/* Whose sessions are made. */
#define STAGE_OWNER 1000

enum order_kind {
	ORDER_SPAWN,   /* to the warden: of the pristine image */
	ORDER_FREEZE,  /* to @source, a live one: a frozen copy; @number is the cell in whose middle, or 0 */
	ORDER_THAW,    /* to @source, a frozen one: a fork */
	ORDER_ADOPT,   /* to the warden; @number is the pid */
	ORDER_SIGNAL,  /* to the warden; @number is the signal */
	ORDER_DISCARD, /* to the warden */
	ORDER_SWEEP,   /* to the warden */
	ORDER_KILL,    /* the warden itself */
	ORDER_SEND, /* to the interpreter: a message of @schema; @number is its cell or serial, or that of a call */
	_ORDER_N,
};

struct order {
	enum order_kind kind;
	struct warden *warden;
	uint64_t serial, source; /* of interpreters */
	uint64_t number;
	const struct wire_schema *schema;
};

/* Grown as needed; the test may set the number back to zero. */
extern struct order *fake_orders;
extern size_t fake_n_orders;
extern const char *const fake_order_names[_ORDER_N];

/* The next ones that may fail, spawn, freeze, thaw, attach, signal, adopt and send, do so with that error. */
extern unsigned fake_failures;
extern int fake_failure;

/* The next warden that is claimed is a spare, ready; else it has to be made ready. */
extern bool fake_spare;

void fake_cages_init(struct cages *cages, struct event_loop *loop, struct breaker *breaker,
		     const struct config *config, struct profile *profile);
void fake_cages_deinit(struct cages *cages);
/* Between two rounds. */
void fake_free_interpreters(struct cages *cages);
void fake_free_wardens(struct cages *cages);

/* NULL if it is discarded. */
struct interpreter *fake_interpreter(struct warden *warden, uint64_t serial);
bool fake_in_flight(const struct warden *warden);

/* ---- what a warden says ---- */

void fake_ready(struct warden *warden);
void fake_signalled(struct warden *warden, uint64_t serial);
/* The sweep that was ordered is done. */
void fake_swept(struct warden *warden);
/* @last_words: it has said something that has to be handled first. Returns whether the news has to be told again.
 */
bool fake_exited(struct warden *warden, uint64_t serial, int status, bool last_words);
/* It is dead. */
void fake_gone(struct warden *warden);
/* An interpreter could not be made. */
void fake_failed(struct warden *warden, uint64_t serial);

/* ---- what an interpreter says ---- */

void fake_say(struct interpreter *interpreter, const struct wire_schema *schema, const void *message);
/* It closes its channel, as it does when it dies. */
void fake_hang_up(struct interpreter *interpreter);
/* Whether what it says is heard. */
bool fake_listens(const struct interpreter *interpreter);
