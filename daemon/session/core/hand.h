/* What sessions handle, as things of breaker.h. */
#pragma once

#include "vault/breaker.h"

struct session;
struct warden;

void hand_session(const struct session *session, enum hand_turn turn);
/* A family is back: end those of its sessions that routers died of again and again. */
void hand_end_open(struct warden *warden);
