/* Calls of functions by the running cell, what they leave behind, and the answers to them. */
#pragma once

#include "session/core/events.h"

/* ---- of the table ---- */

void session_pass_call(struct session *session, const struct details *details);
void session_pass_abandon(struct session *session, const struct details *details);

/* ---- for requests ---- */

/* The answer of a provider, @by, to a call of the running cell, without its number. The call is no more, and others
 * who have it are told so. False if the answer is too large, and the cell has been told that. */
bool session_return_call(struct session *session, struct call *call, const struct returned_message *answer,
			 const struct address *by);
/* The same from somebody else, @by: its provider is told that nobody waits for it. */
void session_answer_call(struct session *session, struct call *call, const struct returned_message *answer,
			 uid_t by);
/* A provider, @by, puts it aside: nobody else is to do it. */
void session_hold_call(struct session *session, struct call *call, struct bytes why, const struct address *by);
/* It asks, and may be done. */
void session_approve_call(struct session *session, struct call *call, uid_t by);
/* Its calls have changed, or who answers them. */
void session_heed_calls(struct session *session);

/* ---- among these files ---- */

/* It has an error for an answer, and nobody hears of it. */
void session_refuse_call(struct session *session, const struct call_message *message, const char *error,
			 const char *text);
/* Its interpreter or its cell ends: they have no answer. */
void session_end_calls(struct session *session);

/* done_calls.c */
enum call_end {
	CALL_ANSWERED,
	CALL_ABANDONED, /* nobody in its cell waits any more */
	CALL_CUT_OFF,	/* its cell has ended */
};

/* @error: the name, if that is its answer. */
void session_note_call(struct session *session, const struct call *call, enum call_end end, struct bytes error);

#define REPEAT_TEXT_SIZE 1024

/* Whether a call of an `effect` function was done already, and is not in the past of the present state: 1, and @out
 * says so; 0; or -ENOMEM. */
int session_repeats(char out[static REPEAT_TEXT_SIZE], struct session *session, const struct call_message *message);
