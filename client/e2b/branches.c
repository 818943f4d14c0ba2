/* Branches of a sandbox's session: all are made of one that runs nothing, so that they can be made at any time. */
#include "e2b.h"

#include <stdio.h>
#include <stdlib.h>

static void branch_again(struct exchange *exchange);

bool branch_is_there(const struct lair_call *call)
{
	/* laird says so if there is a session of that name. */
	return !lair_outcome(call) || lair_outcome(call) == LAIR_E_DENIED;
}

static void base_made(struct exchange *exchange)
{
	struct work *work = exchange->state;

	if (!branch_is_there(exchange->call)) {
		e2b_refuse(exchange);
		return;
	}
	work->sandbox->based = true;
	exchange->call = lair_call_free(exchange->call);
	branch_again(exchange);
}

int sandbox_base(struct exchange *exchange, struct sandbox *sandbox)
{
	struct lair_branch branch = {.session = sandbox->session, .share = true};
	_cleanup_(freep) char *base = NULL;

	if (asprintf(&base, "%s~0", sandbox->session) < 0)
		return -ENOMEM;
	branch.branch = base;
	return lair_branch(sandbox->tenant->lair, &exchange->call, &branch);
}

static void branch_made(struct exchange *exchange)
{
	struct work *work = exchange->state;

	if (lair_outcome(exchange->call) == LAIR_E_NO_SESSION && work->sandbox->based) {
		/* The base has ended. The session itself does as well, if it does not run a cell. */
		work->sandbox->based = false;
		exchange->call = lair_call_free(exchange->call);
		exchange_wait_any(exchange, sandbox_base(exchange, work->sandbox), base_made);
		return;
	}
	if (!branch_is_there(exchange->call)) {
		e2b_refuse(exchange);
		return;
	}
	exchange->call = lair_call_free(exchange->call);
	work->after(exchange);
}

static void branch_again(struct exchange *exchange)
{
	struct work *work = exchange->state;
	struct lair_branch branch = {.branch = work->branch, .share = true};
	_cleanup_(freep) char *base = NULL;

	if (asprintf(&base, "%s~0", work->sandbox->session) < 0) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	branch.session = base;
	exchange_wait_any(exchange, lair_branch(exchange->tenant->lair, &exchange->call, &branch), branch_made);
}

void sandbox_branch(struct exchange *exchange, const char *purpose, handler *then)
{
	struct work *work = exchange->state;
	struct sandbox *sandbox = work->sandbox;

	freep(&work->branch);
	if (asprintf(&work->branch, "%s~%s", sandbox->session, purpose) < 0) {
		work->branch = NULL;
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	work->after = then;
	if (sandbox->based)
		branch_again(exchange);
	else
		exchange_wait_any(exchange, sandbox_base(exchange, sandbox), base_made);
}
