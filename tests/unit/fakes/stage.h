/* All that a session needs around it, made of the real rooms but for the fakes: a loop, users, promises, clients,
 * sessions, and one profile. */
#pragma once

#include "fakes/clock.h"
#include "fakes/front.h"
#include "fakes/log.h"
#include "fakes/warden.h"

#include "session/core/events.h"
#include "session/life/life.h"
#include "session/life/stop.h"
#include "session/parts/calls.h"
#include "session/parts/split.h"
#include "vault/breaker.h"
#include "warden/cages.h"

struct stage {
	struct event_loop loop;
	struct breaker breaker;
	struct users users;
	struct clients clients;
	struct promises promises;
	struct cages cages;
	struct config config;
	struct profile profile;
	struct sessions sessions;
	uint64_t last_request;
	struct bytes functions; /* that cells may call; absent: none */
};

void stage_begin(struct stage *stage);
/* All sessions are ended, and nothing of them is left. */
void stage_end(struct stage *stage);
/* The round is over: answers go out, the dead are freed. */
void stage_settle(struct stage *stage);
/* The clock goes on for @us, and whatever is due on the way happens, each in a round of its own. */
void stage_wait(struct stage *stage, uint64_t us);
/* The same up to the next timer, if that is not later than @us from now. Whether there was one. */
bool stage_wait_for_timer(struct stage *stage, uint64_t us);

struct session *stage_open(struct stage *stage, const char *id);
/* A new request of connection 1. */
struct address stage_address(struct stage *stage);
/* Each returns the number of the request. */
uint64_t stage_exec(struct stage *stage, struct session *session, bool input, uint64_t timeout);
uint64_t stage_reset(struct stage *stage, struct session *session);
uint64_t stage_close(struct stage *stage, struct session *session);
uint64_t stage_operate(struct stage *stage, struct session *session, enum operation_kind kind, const char *name,
		       const char *branch, uint64_t n);
