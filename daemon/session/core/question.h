/* Questions of clients about the state of a session. The live interpreter answers between two cells. The tables
 * here say what a good answer is, since everything in it is hostile. */
#pragma once

#include "front/user.h"
#include "promise/client.h"

enum question_kind {
	QUESTION_COMPLETE,
	QUESTION_INSPECT,
	QUESTION_VARS,
	QUESTION_KEEP,
	QUESTION_IS_COMPLETE,
	QUESTION_CHECK,
};

struct question {
	enum question_kind kind;
	uint64_t serial;
	uint64_t cursor;
	bool source;
	bool changes;	   /* the state is another one afterwards */
	bool interrupted;  /* its time was up once */
	struct user *user; /* who pays */
	char *code, *names;
	size_t code_size, names_size;
	uint64_t number; /* in its family; 0: none yet */
	bool written;	 /* code and names are in the ledger */
};

/* Copies @code and @names (array of str), which may be absent, and charges their price to @user. Returns 0 or
 * -ENOMEM. */
int question_new(struct question **questionp, enum question_kind kind, struct user *user, struct bytes code,
		 struct bytes names);
/* Their price: the ledger has them, too. */
uint64_t question_price(struct bytes code, struct bytes names);
struct question *question_free(struct question *question);

/* The message to the interpreter; borrows from @question. */
struct question_message question_message(const struct question *question);

/* Answer @request with the interpreter's answer. Returns 0, or WIRE_E_FIELD if that is no answer to such a
 * question: then nothing has been sent. *@donep: whether it was answered, and not refused. */
int question_reply(const struct question *question, struct clients *clients, const struct address *request,
		   const struct told_message *told, bool *donep);
