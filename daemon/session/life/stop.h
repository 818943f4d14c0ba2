/* The end of all sessions, when laird stops: those that are to be saved are, a few at a time and for so long as the
 * settings say; then all end. */
#pragma once

#include "session/core/sessions.h"

void stop_init(struct stop *stop);
void stop_deinit(struct stop *stop);

/* No cell goes on. Returns whether one has been running. */
bool sessions_stop(struct sessions *sessions);
/* Have the next ones saved. Returns whether none is left. */
bool sessions_stop_proceed(struct sessions *sessions);
/* Whoever is left ends as it is, and is not saved because of @why; those who asked are told. */
void sessions_stop_end(struct sessions *sessions, const char *why);
/* @from is told, or has been told why not. */
void sessions_stop_ask(struct sessions *sessions, const struct address *from);
/* A session has ended that was to be saved. */
void stop_note(const struct session *session, const struct ending *ending);
