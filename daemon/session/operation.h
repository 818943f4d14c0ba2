/* Operations are done between two cells: checkpoints, and questions. Each is a small script that begins while
 * its session is idle, has one or two steps, and answers its request exactly once. */
#pragma once

#include "history.h"
#include "promise/client.h"
#include "question.h"

struct session;

enum operation_kind {
	OPERATION_CHECKPOINT,
	OPERATION_RESTORE,
	OPERATION_UNDO,
	OPERATION_BRANCH,
	OPERATION_DROP,
	OPERATION_QUESTION,
	OPERATION_DIFF,
};

struct operation {
	struct list node;
	enum operation_kind kind;
	struct address request;
	char name[CHECKPOINT_NAME_MAX + 1]; /* "" = none given */
	char branch[129];		    /* the new session's id; of a diff: the later checkpoint, "": now */
	uint64_t n;			    /* how far to undo */
	bool files;			    /* a branch has its own */
	bool by_default;		    /* nobody has asked for that */
	bool keep_files;		    /* they stay as they are, though the state goes back */
	msgpack_sbuffer effects;	    /* of a branch: what its parent has done since the state it grew from */
	uint64_t effects_more;
	struct question *question;     /* owned */
	struct comparison *comparison; /* of a diff under way; owned */
};

/* Returns 0 or -ENOMEM. */
int operation_new(struct operation **operationp, enum operation_kind kind, const struct address *request,
		  struct bytes name);
struct operation *operation_free(struct operation *operation);

/* The session is idle: do the operation, or its first step. */
void operation_begin(struct session *session, struct operation *operation);
/* The state is saved (@why NULL), or could not be: go on with session->operation. */
void operation_on_frozen(struct session *session, const char *why);
void operation_on_restored(struct session *session);
/* The branch that it asked for lives. */
void operation_on_born(struct session *session);
/* The branch has not got its copy of the files: tell the client that asked for it. */
void operation_on_homeless(struct session *session, const char *code, const char *why);
/* Whether the operation under way has made this session, and is not answered yet. */
bool operation_is_birth(const struct session *session);
/* It has been answered. */
void operation_done(struct session *session);
/* The session cannot do it any more. */
void operation_refuse(struct session *session, struct operation *operation, const char *why);
