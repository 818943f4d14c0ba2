/* What wardens handle, as breaker.h knows it. */
#pragma once

#include "vault/hand.h"

struct interpreter;
struct nursery;
struct warden;

void hand_interpreter(const struct interpreter *interpreter, enum hand_turn turn);
void hand_warden(const struct warden *warden, enum hand_turn turn);
void hand_nursery(const struct nursery *nursery, enum hand_turn turn);
void hand_nursery_message(const struct nursery *nursery, size_t type);
/* Whether the template is not to be started any more. */
bool hand_nursery_is_open(const struct nursery *nursery);
