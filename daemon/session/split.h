/* A branch in the middle of a cell: the interpreter of a cell that waits for calls leaves a frozen copy of itself,
 * and the branch begins as a fork of that copy. Each of the two goes on with the cell, which is one of its own from
 * then on, and so are its calls. */
#pragma once

#include "proto/event.h"

#include <msgpack.h>

struct interpreter;
struct operation;
struct returned_message;
struct session;

struct split {
	struct operation *operation; /* the request for it; NULL: nobody wants it any more */
	struct interpreter *copy;    /* being made; NULL: none is */
	/* What the interpreter has been answered since it was asked for the copy, which does not know of that:
	 * bodies of `returned`. */
	msgpack_sbuffer answers;
	struct timer due;
};

void split_init(struct session *session);
void split_deinit(struct session *session);

/* Begin, for @operation, which is answered here or when the branch lives. The caller has checked that a cell runs
 * that may call functions, and that none is under way. */
void split_begin(struct session *session, struct operation *operation);
/* The running cell has been sent this answer to a call. */
void split_note(struct session *session, const struct returned_message *returned);
/* Nobody gets it: its cell has ended, or will. The copy may still come. */
void split_refuse(struct session *session, const char *code, const char *why);
/* The same, and its interpreter is dead. */
void split_abandon(struct session *session);
/* One of the last router's goes on. */
void split_on_revived(struct session *session);

/* Make the branch as a fork of @copy, for @operation, which it owns from now on. Returns 0 or -errno. */
int session_new_split(struct session **sessionp, struct session *parent, struct interpreter *copy,
		      struct operation *operation);
/* Its interpreter lives: it goes on with the cell. */
void session_begin_split(struct session *session);
