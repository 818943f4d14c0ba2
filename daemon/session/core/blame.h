/* Sessions that routers may die of, as things of breaker.h. */
#pragma once

#include "vault/breaker.h"

struct session;
struct warden;

void blame_session(const struct session *session, enum blame_turn turn);
/* A family is back: end those of its sessions that routers died of again and again. */
void blame_end_open(struct warden *warden);
