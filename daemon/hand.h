/* The router's objects as breaker.h knows them: each handler says first for whom it is called. And what comes of
 * those over which routers died again and again. */
#pragma once

#include "breaker.h"

struct interpreter;
struct nursery;
struct router;
struct session;
struct warden;
struct wire_schema;

void hand_session(const struct session *session, enum hand_turn turn);
void hand_interpreter(const struct interpreter *interpreter, enum hand_turn turn);
void hand_warden(const struct warden *warden, enum hand_turn turn);
void hand_nursery(const struct nursery *nursery, enum hand_turn turn);
void hand_nursery_message(const struct nursery *nursery, size_t type);
/* What is left of a family is read; it is brought back. */
void hand_revival(struct router *router, uint64_t family, enum hand_turn turn);
/* A request, before it is looked at; and when it is known what it is. Return whether it is one that is not tried
 * again. */
bool hand_frame(struct router *router, uint64_t uid, size_t size);
bool hand_request(struct router *router, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		  struct bytes key);

/* Whether a family is not to be brought back. */
bool hand_revival_is_open(const struct router *router, uint64_t family);
bool hand_nursery_is_open(const struct nursery *nursery);
/* Of a family that is back: end the sessions that are not gone on with. */
void hand_end_open(struct warden *warden);

/* What a client is told of it. */
#define HAND_REFUSAL "laird's router died of it again and again: this request is not tried any more"

/* The names of what fault_at() is asked for by these; NULL after the last. */
const char *hand_point(size_t i);
