/* What sessions handle, as breaker.h knows it. */
#pragma once

#include "vault/breaker.h"

struct session;
struct warden;

void hand_session(const struct session *session, enum hand_turn turn);
/* Of a family that is back: end the sessions that routers died of again and again. */
void hand_end_open(struct warden *warden);
