/* Interpreters, wardens and templates as things. */
#include "hand.h"

#include "cages.h"
#include "nursery.h"

void hand_interpreter(const struct interpreter *interpreter, enum hand_turn turn)
{
	const struct warden *warden = interpreter->warden;
	const struct thing thing = {
		.kind = HAND_INTERPRETER, .turn = turn, .whose = warden->family, .number = interpreter->serial};

	hand_take(warden->cages->breaker, &thing, "interpreter", bytes_of(interpreter->tenant->id));
}

void hand_warden(const struct warden *warden, enum hand_turn turn)
{
	const struct thing thing = {.kind = HAND_FAMILY, .turn = turn, .whose = warden->family};

	hand_take(warden->cages->breaker, &thing, "family", warden_session(warden));
}

static struct thing thing_of_nursery(const struct nursery *nursery, uint32_t turn)
{
	return (struct thing){.kind = HAND_TEMPLATE,
			      .turn = turn,
			      .whose = breaker_digest(BREAKER_DIGEST, bytes_of(nursery->profile->name)),
			      .number = nursery->owned ? nursery->owner + 1ULL : 0};
}

void hand_nursery(const struct nursery *nursery, enum hand_turn turn)
{
	const struct thing thing = thing_of_nursery(nursery, turn);

	hand_take(nursery->cages->breaker, &thing, "template", bytes_of(nursery->profile->name));
}

/* Each template begins anew, so that its first message is handled says nothing of its second. */
void hand_nursery_message(const struct nursery *nursery, size_t type)
{
	const struct thing thing = thing_of_nursery(nursery, _TURN_N + (uint32_t)type);

	breaker_name(nursery->cages->breaker, &thing);
}

bool hand_nursery_is_open(const struct nursery *nursery)
{
	const struct thing thing = thing_of_nursery(nursery, TURN_CHANNEL);

	return breaker_is_open_for(nursery->cages->breaker, HAND_TEMPLATE, thing.whose, thing.number);
}
