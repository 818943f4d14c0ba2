/* A session in each of its states, in the way that it gets there. */
#pragma once

#include "fakes/stage.h"

const char *state_name(enum session_state state);
/* The first session of @stage. */
struct session *state_enter(struct stage *stage, enum session_state state);
