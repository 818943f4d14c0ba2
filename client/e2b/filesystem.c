/* envd's calls about paths: each call is a short cell in the branch that is for this, so paths mean what they mean
 * in the session, and its cage decides. */
#include "e2b.h"

#include <stdio.h>
#include <stdlib.h>

/* Removes "." and ".." and doubled slashes. Its own. */
static char *normal(const char *path)
{
	char *out = calloc(1, strlen(path) + 2), *end = out;

	for (const char *at = path; out && *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.') {
			while (end > out && *--end != '/')
				;
		} else if (n > 0 && !(n == 1 && at[0] == '.')) {
			*end++ = '/';
			memcpy(end, at, n);
			end += n;
		}
		*end = '\0';
		at += n + (at[n] == '/');
	}
	return out;
}

static const char *below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

char *path_inside(const struct sandbox *sandbox, const char *path)
{
	_cleanup_(freep) char *whole = NULL, *plain = NULL;
	const char *found;

	if (path[0] == '~' && (path[1] == '/' || !path[1]))
		path += path[1] ? 2 : 1;
	if (asprintf(&whole, "%s%s", path[0] == '/' ? "" : HOME "/", path) < 0)
		return NULL;
	plain = normal(whole);
	found = plain ? below(plain, HOME) : NULL;
	if (plain && !found && sandbox->workspace)
		found = below(plain, sandbox->workspace);
	return found ? strdup(found) : NULL;
}

char *path_whole(const struct sandbox *sandbox, const char *path)
{
	_cleanup_(freep) char *inside = path_inside(sandbox, path);
	char *whole = NULL;

	if (!inside)
		return normal(path);
	return asprintf(&whole, HOME "/%s", inside) < 0 ? NULL : whole;
}

/* Adds the metadata of files, which only we have, and follows their changes. */
static void marks_follow(struct exchange *exchange, const json_t *done)
{
	struct work *work = exchange->state;
	const char *call = exchange_path(exchange, "call");
	const char *path = json_string_value(json_object_get(work->asked, "path"));
	const char *from = json_string_value(json_object_get(work->asked, "source"));
	const char *to = json_string_value(json_object_get(work->asked, "destination"));
	json_t *entry;
	size_t i;

	if (!work->sandbox->marks)
		return;
	if (strcmp(call, "Move") == 0 && from && to)
		marks_move(work->sandbox, from, to);
	else if (strcmp(call, "Remove") == 0 && path)
		marks_move(work->sandbox, path, NULL);
	mark_show(work->sandbox, json_object_get(done, "entry"));
	json_array_foreach(json_object_get(done, "entries"), i, entry)
	{
		mark_show(work->sandbox, entry);
	}
}

static void called(struct exchange *exchange)
{
	const struct lair_result *result = lair_result(exchange->call);
	const char *code, *message;
	json_t *told, *done;

	if (!result) {
		e2b_refuse(exchange);
		return;
	}
	told = result->out.data ? json_loadb(result->out.data, result->out.size, 0, NULL) : NULL;
	done = json_object_get(told, "done");
	code = json_string_value(json_object_get(told, "code"));
	message = json_string_value(json_object_get(told, "message"));
	if (done)
		marks_follow(exchange, done);
	if (done)
		answer_json(exchange, 200, json_incref(done));
	else
		connect_fail(exchange, code ? code : "internal", "%s",
			     message ? message : "the session could not do it");
	json_decref(told);
}

static void branched(struct exchange *exchange)
{
	struct work *work = exchange->state;
	_cleanup_(freep) char *code = NULL;
	json_t *given;

	work->sandbox->filed = true;
	given = json_pack("{s:s, s:O}", "call", exchange_path(exchange, "call"), "asked", work->asked);
	code = given ? program_cell("filesystem", given) : NULL;
	json_decref(given);
	exchange_wait_any(exchange,
			  code ? lair_exec(exchange->tenant->lair, &exchange->call,
					   &(struct lair_exec){.session = work->branch, .code = lair_text(code)})
			       : -ENOMEM,
			  called);
}

static void found(struct exchange *exchange)
{
	static const char *const calls[] = {"ListDir", "Stat", "MakeDir", "Move", "Remove"};
	struct work *work = exchange->state;
	const char *call = exchange_path(exchange, "call");

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i], call) == 0) {
			if (e2b_body(exchange, exchange_body(exchange), &work->asked))
				sandbox_branch(exchange, "f", branched);
			return;
		}
	connect_fail(exchange, "unimplemented", "there is no call \"%.80s\"", call);
}

void filesystem_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), found);
}
