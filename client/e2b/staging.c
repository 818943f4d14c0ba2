/* Files that lie outside of the workspace go through one in it, which a cell moves or copies: so it is the cage
 * that decides. */
#include "e2b.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

void staged_name(char name[static STAGED_SIZE])
{
	snprintf(name, STAGED_SIZE, ".e2b-%08x%08x", randombytes_random(), randombytes_random());
}

int files_cell(struct sandbox *sandbox, struct lair_call **callp, const char *branch, const char *call,
	       json_t *asked)
{
	json_t *given = json_pack("{s:s, s:o}", "call", call, "asked", asked);
	_cleanup_(freep) char *code = given ? program_cell("filesystem", given) : NULL;

	json_decref(given);
	sandbox->filed = true;
	return code ? lair_exec(sandbox->tenant->lair, callp,
				&(struct lair_exec){.session = branch, .code = lair_text(code)})
		    : -ENOMEM;
}

void staged_remove(const struct work *work, const char *name)
{
	struct lair_call *call = NULL;

	if (*name && work->branch && work->sandbox && !work->sandbox->dead && work->sandbox->tenant->lair &&
	    !files_cell(work->sandbox, &call, work->branch, "Remove", json_pack("{s:s}", "path", name)))
		call_forget(call, 0);
}

bool staged_well(struct exchange *exchange)
{
	const struct lair_result *result = lair_result(exchange->call);
	const char *code, *message;
	json_t *told;
	bool done;

	if (!result) {
		e2b_refuse(exchange);
		return false;
	}
	told = result->out.data ? json_loadb(result->out.data, result->out.size, 0, NULL) : NULL;
	code = json_string_value(json_object_get(told, "code"));
	message = json_string_value(json_object_get(told, "message"));
	done = json_object_get(told, "done");
	if (!done)
		answer_problem(exchange, code ? connect_status(code) : 500, "error", "%s",
			       message ? message : "the session could not do it");
	json_decref(told);
	return done;
}
