/* A simulated world around real sessions: clients that ask for anything at any time, a warden, and processes that
 * have a state, take orders one after the other, run cells, call functions, fork, die, and are told of late; some
 * say what nobody should. A state is a node that knows the one it came of and the cell that made it, so what an
 * answer says can be compared with what the live process really has. Each step_... function makes one thing happen
 * and returns whether there was one. */
#pragma once

#include "fakes/stage.h"

#include <stdio.h>
#include <string.h>

#define PROCESSES_MAX 1200
#define NODES_MAX 4000
#define REQUESTS_MAX 2000
#define SESSIONS_MAX 24
#define CELLS_MAX 600
#define CALLS_MADE_MAX 4000
/* Different arguments of the function that must not be repeated in silence. */
#define PAYMENTS 4
#define QUEUE_MAX 64
#define SECOND 1000000ULL

struct node {
	size_t parent;
	uint64_t cell;
	uint64_t run; /* each time that a cell begins has another one */
};

/* A call, as all who know of it see it. */
struct made {
	uint64_t session, cell, number, run, request, serial;
	char text[24];
	unsigned payment;	       /* of `pay`: which; else 0 */
	unsigned put;		       /* how often its provider got it */
	bool over;		       /* for the router */
	bool answered, refused, heard; /* heard: its cell has the answer */
	bool abandoned;
};

struct say {
	const struct wire_schema *schema;
	union {
		struct done_message done;
		struct ask_message ask;
		struct shown shown;
		struct told_message told;
		struct frozen_message frozen;
		struct spawned_message spawned;
		struct measured_message measured;
		struct call_message call;
		struct abandon_message abandon;
	} as;
	size_t made; /* the call */
};

struct process {
	bool born, dead, frozen, closed, known, reported;
	bool interrupted;
	int status;
	size_t truth;
	uint64_t computing, run, n_calls;
	bool waits; /* for an answer to what it has asked */
	struct order inbox[QUEUE_MAX];
	struct say outbox[QUEUE_MAX];
	size_t n_in, n_out;
};

enum news_kind { NEWS_SIGNALLED, NEWS_EXITED, NEWS_SWEPT, NEWS_FAILED };

struct news {
	enum news_kind kind;
	uint64_t serial;
};

enum request_kind { REQUEST_EXEC, REQUEST_STATE, REQUEST_BRANCH, REQUEST_RESET, REQUEST_OTHER };

struct request {
	enum request_kind kind;
	uint64_t session; /* its number in the family */
	char branch[16];
	unsigned finals;
};

/* What whoever asks knows of a session. */
struct view {
	bool known;
	char id[16];
	size_t state;
	size_t after[CELLS_MAX];
};

/* An answer of this round. */
struct answer {
	uint64_t request;
	bool is_error, is_result, from_done, forbidden;
	char state[16];
	uint64_t cell, restored;
};

struct world {
	struct stage stage;
	struct warden *warden; /* NULL: gone */
	struct process processes[PROCESSES_MAX];
	struct order orders[QUEUE_MAX * 4];
	struct news news[QUEUE_MAX * 4];
	struct node nodes[NODES_MAX];
	struct request requests[REQUESTS_MAX];
	struct view views[SESSIONS_MAX];
	struct answer answers[QUEUE_MAX * 4];
	struct made made[CALLS_MADE_MAX];
	uint64_t last_process, last_run;
	size_t n_made, n_orders, n_news, n_nodes, n_answers, n_branches;
	bool warden_killed, quiet;
	bool splits;		      /* sessions branch at calls, and nothing is paid */
	uint64_t hostility, scarcity; /* in one step of so many; 0: never */
	char wrong[256];
	bool shown;
};

/* Over all runs, so that it can be seen that they tested something. */
struct totals {
	uint64_t steps, truths, unseen, calls, repeats, told, splits;
};

extern struct world world;
extern struct totals totals;

#define show(...)                                                                                                  \
	do {                                                                                                       \
		if (world.shown)                                                                                   \
			fprintf(stderr, __VA_ARGS__);                                                              \
	} while (0)

/* Chance depends on the seed and the number of the step alone: one step less changes no other. */
void chance_begin(uint64_t seed, uint64_t step);
uint64_t chance(uint64_t below);

/* Notes the first thing that is wrong. */
void fail(const char *what, uint64_t request);

/* ---- warden.c ---- */

bool step_warden_takes(void);
bool step_warden_tells(void);

/* What sessions have ordered in this round is on its way. */
void orders_take(void);

/* ---- processes.c ---- */

bool step_process_takes(void);
bool step_cell_goes_on(void);
bool step_process_speaks(void);
bool step_hostile(void);

struct process *process_of(uint64_t serial);
void process_born(uint64_t serial, size_t truth, bool frozen);
void process_dies(uint64_t serial, int status);
void process_says(struct process *process, const struct say *say);

/* Its warden tells of a death as soon as it knows the one who died. */
void process_report(uint64_t serial);

/* ---- calls.c ---- */

/* A provider, or who approves a call, does something with it. */
bool step_provider(void);

void call_heard(const struct process *process, uint64_t number);
void process_calls(struct process *process, uint64_t serial);
void process_abandons(struct process *process);

/* A call comes to its session, which refuses it or has it put. */
void call_said(struct interpreter *interpreter, struct say *say);

/* What nobody has any more is over. */
void calls_look(void);

/* ---- clients.c ---- */

bool step_client(void);

void answer_input(struct session *session);

/* Before it is asked: the answer may be there at once. */
void request_note(enum request_kind kind, const struct session *session, const char *branch);

/* The session with this number, or NULL. */
struct session *session_at(uint64_t number);

/* The session that lives in it, or NULL. */
struct session *session_of(const struct interpreter *interpreter);

/* ---- answers.c ---- */

/* The front's: a message to a client. */
void on_message(uint64_t connection, struct bytes message);

/* Compare the answers of this round with the state. */
void answers_check(void);
