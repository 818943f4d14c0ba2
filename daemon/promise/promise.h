/* A promise is a request from the moment it is taken up until its answer is forgotten. A client that sends the
 * request again, by its key, or attaches to its cell, becomes another asker. Each asker gets the one answer, and
 * the request is done once. Answers are kept for a while and within bounds; the oldest is deleted first. They
 * belong to no session, and survive its end.
 *
 * Requests without a key need no promise, except cells: their answer goes to their address. */
#pragma once

#include "base/graveyard.h"
#include "base/table.h"
#include "clients.h"
#include "front/user.h"
#include "keeper/instance.h"
#include "output.h"
#include "vault/ledger.h"

#define KEY_MAX 64

struct cell;
struct profile;
struct promises;

enum promise_stream { PROMISE_STDOUT, PROMISE_STDERR };

/* How somebody asks. @from: how much of each stream it has already; @displays: how many displays. */
struct watch {
	bool stream, input, calls;
	uint64_t from[2], displays;
};

struct asker {
	struct list node; /* in its promise */
	struct address to;
	bool stream, input, calls;
	uint64_t missed[2], displays_missed; /* of what it watches, for want of memory */
};

struct promise {
	struct list node; /* in its shelf, oldest first */
	struct grave grave;
	struct list all; /* that there are, oldest first */
	struct table_node by_serial;
	struct table_node by_key; /* if it has one */
	struct list changed;	  /* in a round in which it changes */
	uint64_t serial;
	bool written, answer_written; /* to the ledger */
	uint64_t alive;		      /* bytes that this takes there */
	bool unclaimed;		      /* a former router's, and not known yet to be anybody's */
	struct list of_user;	      /* of those that are answered, of one user, oldest first */
	struct list answered;	      /* the same of its shelf, cells apart from all else */
	struct list cells;	      /* among the cells of its shelf */
	struct shelf *shelf;
	char key[KEY_MAX + 1]; /* "": it cannot be asked for by key */
	uint64_t fingerprint; /* the same key with another request is an error; 0: a router that counted differently
				 took it */
	bool keep;	      /* its answer is */
	bool taken;	      /* its session has it; before, a refusal is as if nothing had been asked */
	bool by_root;	      /* who asked of somebody else's session, and has a name of its own for it */
	bool is_cell;
	uint64_t cell;	      /* its number; 0: it waits */
	struct cell *running; /* the cell until it is answered */
	uint64_t since;	      /* event_now() when it was asked, later answered */
	struct list askers;
	size_t n_askers;
	char *answer; /* the encoded final message to the first asker; NULL: there is none yet */
	size_t answer_size;
	struct bulk *bulk; /* long output that belongs into it: NULL if there is none */
	size_t heads[2];   /* where in the output of an answered cell the gap is, if it has one */
	struct timer expiry;
};

/* How long answers are kept, how many, and how many bytes of them: for a whole shelf, as the last request on it
 * said. */
struct keeping {
	uint64_t ttl, number, size;
};

struct shelf {
	uid_t owner;
	char session[129]; /* "": none */
	struct promises *promises;
	struct user *user;
	struct keeping keeping;
	struct list list;	 /* of promises, oldest first */
	struct list cells;	 /* of those that are */
	struct list answered[2]; /* the answered ones, first answered first: [1] are cells */
	uint64_t n_cells, size;	 /* of what is answered: cells, and bytes */
};

/* All promises, on shelves: one for each session of a user, and one for what names no session. */
struct promises {
	/* Names from instance_name(): what clients know us by, and this keeper's. */
	char instance[INSTANCE_NAME_SIZE], keeper[INSTANCE_NAME_SIZE];
	bool inherited; /* the ledger is of another keeper, whose sessions are no more */
	bool orphaned;	/* so are some of this one's, and it is not known which promises were theirs */
	bool skipped;	/* a record that is not to be read again */
	struct event_loop *loop;
	struct clients *clients;
	uint64_t size_per_user;
	uint64_t last_made; /* of keys */
	uint64_t last_serial;
	struct list all, changed;
	struct table by_serial, by_key;
	struct ledger ledger;
	uint64_t alive; /* what of it a renewed one would have */
	bool unkept;	/* the last commit has failed */
	void *table;	/* tsearch(3) of shelves */
	struct users *users;
	struct graveyard dead; /* freed between two rounds */
};

/* @users: who pays; kept answers make room for what else is held for them. @keeper: what instance_name() says of
 * it. */
void promises_init(struct promises *promises, struct event_loop *loop, struct clients *clients, struct users *users,
		   const char keeper[static INSTANCE_NAME_SIZE]);
void promises_deinit(struct promises *promises);

/* ---- ledger.c: what the next router has to know ---- */

/* Write down what has changed. */
void promises_commit(struct promises *promises);
/* Those of the last router, whose ledger is ours from now on. Returns 0 or -errno. */
struct breaker;
int promises_revive(struct promises *promises, int ledger, struct breaker *breaker);
/* The promise that a record of the last router refers to; a new one if that is not kept. NULL when out of
 * memory. */
struct promise *promises_claim(struct promises *promises, uint64_t serial, uid_t owner, struct bytes session,
			       const struct keeping *keeping);
/* Settle the promises that nothing refers to: their requests count as never made. But requests that another
 * keeper's router had taken and not answered may have been done, wholly or in part. They are not done again, and
 * their askers are told so. */
void promises_settle(struct promises *promises);

/* ---- promise.c ---- */

/* NULL if there is none. @session: empty for what names none. */
struct promise *promises_find_key(struct promises *promises, uid_t owner, struct bytes session, struct bytes key);
/* The newest cell of that number, since an earlier session may have had the same id. */
struct promise *promises_find_cell(struct promises *promises, uid_t owner, struct bytes session, uint64_t cell);
/* The cells of one shelf by `cells`, oldest first; an empty list if there is no such shelf. */
struct list *promises_cells_of(struct promises *promises, uid_t owner, struct bytes session);

bool key_valid(struct bytes key);
/* A number that is the same for the same request, no matter who asks and how. */
uint64_t promise_fingerprint(const struct wire_schema *schema, const void *request);
/* Whether the promise may be of this request. */
bool promise_is_of(const struct promise *promise, const struct wire_schema *schema, const void *request);

struct keeping profile_keeping(const struct profile *profile);
/* @key: empty if it has none. Then nobody can ask for it by key, and its answer is kept only if somebody sets
 * keep. Returns 0 or -ENOMEM. */
int promise_new(struct promise **promisep, struct promises *promises, uid_t owner, struct bytes session,
		struct bytes key, uint64_t fingerprint, const struct keeping *keeping);
/* Give it the number that it had with a former router. Returns 0 or -ENOMEM. */
int promise_number(struct promise *promise, uint64_t serial);
/* What it asks for is a cell. */
void promise_is_cell(struct promise *promise);
/* NULL if there is none. */
struct promise *promises_find_serial(struct promises *promises, uint64_t serial);
/* A key nobody has chosen. */
void promise_name(struct promise *promise);
/* The handler has returned. */
void promise_taken(struct promise *promise);

/* The final message, which @buffer holds: send it to all askers. The promise takes the memory, and shares @bulk,
 * which may be NULL: its bins are stdout and stderr. */
void promise_answer(struct promise *promise, const struct wire_schema *schema, msgpack_sbuffer *buffer,
		    struct bulk *bulk);
/* Bytes of the answer, with its bulk. */
uint64_t promise_answer_size(const struct promise *promise);
/* Put the bulk of @promise into @text, a copy of its answer. Returns 0 or -errno. */
int promise_load(const struct promise *promise, struct text *text);

/* The result of an answered cell; false if it was refused. It points into the answer. What is in the bulk is
 * empty there. */
bool promise_result(const struct promise *promise, struct exec_reply *reply);

/* It is answered: from now on it counts towards the limits. The newest answer stays, however large it is. */
void promise_keep(struct promise *promise);
void promise_forget(struct promise *promise);

/* ---- askers.c ---- */

/* From now on @to waits for the answer too, or has it. Returns 0, CLIENT_E_WAITS or -ENOMEM. */
int promise_join(struct promise *promise, const struct address *to, const struct watch *watch);
/* It waits no longer. */
void promise_leave(struct promise *promise, const struct address *to);
bool promise_asked_by(const struct promise *promise, const struct address *request);
/* Nobody does. */
void promise_leave_all(struct promise *promise);
/* There is no answer, because memory is lacking: the connections of all askers end. */
void promise_hang_up(struct promise *promise);
/* Give the answer itself, which is not kept, to its only asker. Returns false, with nothing done, if it has to be
 * copied: see promise_answer_all. */
bool promise_give_answer(struct promise *promise);
/* Send its answer to all askers: they are done. */
void promise_answer_all(struct promise *promise);

/* Output of the cell, for all who watch. Returns 0, or CLIENT_E_WAITS if one of them reads too slowly. */
int promise_stream(struct promise *promise, enum promise_stream stream, uint64_t at, struct bytes data);
/* A display of the cell, likewise. */
int promise_display(struct promise *promise, const struct shown *shown);
/* The cell still runs: tell those who keep up. */
void promise_alive(struct promise *promise, const struct alive_event *alive);
/* The cell asks: pass the question on to those who may answer. */
void promise_ask(struct promise *promise, const struct ask_event *ask);
/* The cell calls a function: offer the call to those who answer calls. */
struct call;
void promise_call(struct promise *promise, struct call *call);
/* Whoever has it, or may have it, has nothing to do any more. @but: whoever said so knows; NULL: all are told. */
void promise_cancel(struct promise *promise, uint64_t number, const struct address *but);
/* Whether there is somebody who watches, answers what the cell asks, or answers its calls. */
enum asking { ASKING_STREAM, ASKING_INPUT, ASKING_CALLS };
bool promise_has(const struct promise *promise, enum asking how);
/* Forget those whose connections have ended. */
void promise_drop_disconnected(struct promise *promise);
/* Whether one of those who watch reads too slowly. */
bool promise_waits(const struct promise *promise);
