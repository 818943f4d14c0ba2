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
	struct question *question; /* owned */
};

/* Returns 0 or -ENOMEM. */
int operation_new(struct operation **operationp, enum operation_kind kind, const struct address *request,
		  struct bytes name);
struct operation *operation_free(struct operation *operation);

/* The branch has not got its copy of the files: tell the client that asked for it. */
void operation_on_homeless(struct session *session, const char *code, const char *why);
/* Whether the operation under way has made this session, and is not answered yet. */
bool operation_is_birth(const struct session *session);
/* It has been answered. */
void operation_done(struct session *session);
/* The session cannot do it any more. */
void operation_refuse(struct session *session, struct operation *operation, const char *why);

/* For the next router, but for the code of a question; and back, for a request of @session. Return 0 or -errno. */
struct operation_record;
int operation_put(msgpack_sbuffer *buffer, const struct operation *operation);
int operation_take(struct operation **operationp, struct operation_record *record, const struct session *session,
		   struct bytes body);
