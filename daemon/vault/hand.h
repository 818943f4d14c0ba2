/* Things as breaker.h knows them: each handler says first what it handles. What is noted is numbers, which stay the
 * same from one router to the next. What wardens and sessions handle is in the hand.h of their rooms. */
#pragma once

#include "breaker.h"

struct wire_schema;

/* A handler begins, and a fault may be made here: at @group and the name of @thing's turn, on behalf of @of. */
void hand_take(struct breaker *breaker, const struct thing *thing, const char *group, struct bytes of);

/* What is left of a family is read; it is brought back. */
void hand_revival(struct breaker *breaker, uint64_t family, enum hand_turn turn);
/* Whether a family is not to be brought back. */
bool hand_revival_is_open(const struct breaker *breaker, uint64_t family);
/* A request, before it is looked at; and when it is known what it is. Return whether it is one that is not tried
 * again. */
bool hand_frame(struct breaker *breaker, uint64_t uid, size_t size);
bool hand_request(struct breaker *breaker, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		  struct bytes key);

/* What a client is told of it. */
#define HAND_REFUSAL "laird's router died of it again and again: this request is not tried any more"
