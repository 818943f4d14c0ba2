/* Families and requests as things. */
#include "hand.h"

#include "fault.h"

#include "proto/wire.h"

static const char *const turn_names[_TURN_N] = {
	[TURN_CHANNEL] = "channel",   [TURN_STDOUT] = "stdout",	    [TURN_STDERR] = "stderr",
	[TURN_DEATH] = "death",	      [TURN_DEADLINE] = "deadline", [TURN_IDLE] = "idle",
	[TURN_HARD] = "hard",	      [TURN_ALIVE] = "alive",	    [TURN_MEASURE] = "measure",
	[TURN_TRANSFER] = "transfer", [TURN_COPY] = "copy",	    [TURN_PATIENCE] = "patience",
	[TURN_QUOTA] = "quota",	      [TURN_REFILL] = "refill",	    [TURN_RETRY] = "retry",
	[TURN_READ] = "read",	      [TURN_REVIVE] = "revive",
};

void hand_take(struct breaker *breaker, const struct thing *thing, const char *group, struct bytes of)
{
	breaker_name(breaker, thing);
	fault_at(group, turn_names[thing->turn], of);
}

void hand_revival(struct breaker *breaker, uint64_t family, enum hand_turn turn)
{
	const struct thing thing = {.kind = HAND_REVIVAL, .turn = turn, .whose = family};

	breaker_name(breaker, &thing);
}

bool hand_revival_is_open(const struct breaker *breaker, uint64_t family)
{
	return breaker_is_open_for(breaker, HAND_REVIVAL, family, 0) ||
	       breaker_is_open_for(breaker, HAND_FAMILY, family, 0);
}

bool hand_frame(struct breaker *breaker, uint64_t uid, size_t size)
{
	const struct thing thing = {.kind = HAND_FRAME, .whose = uid, .number = size};

	breaker_take(breaker);
	breaker_name(breaker, &thing);
	return breaker_is_open(breaker, &thing);
}

bool hand_request(struct breaker *breaker, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		  struct bytes key)
{
	uint64_t digest = breaker_digest(BREAKER_DIGEST, bytes_of(schema->type));
	struct thing thing = {.kind = HAND_REQUEST, .whose = uid};

	thing.number = breaker_digest(breaker_digest(digest, session), key);
	breaker_name(breaker, &thing);
	if (breaker_is_open(breaker, &thing))
		return true;
	fault_at("request", schema->type, session);
	return false;
}
