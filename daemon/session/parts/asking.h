/* Questions of clients, put to the live interpreter: question.h has what may be said. */
#pragma once

#include "session/core/events.h"

/* Put the question under way to the interpreter (ANSWERING). */
void session_ask(struct session *session);
void session_finish_told(struct session *session, const struct details *details);
