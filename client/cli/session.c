/* The verbs about sessions: one request each, shown to a person or to a program. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "name.h"
#include "shown.h"
#include "table.h"

#include <inttypes.h>

/* @effects: those that were not undone; NULL if the request undoes nothing. */
static int say_done(const struct cli *cli, const char *what, const struct lair_effects *effects)
{
	json_t *document;

	if (!cli->json && effects)
		result_notice(&(struct lair_result){.effects = *effects}, 0);
	if (!cli->json)
		return 0;
	document = json_pack("{s:s, s:b}", "session", cli->args[0], what, 1);
	if (effects)
		json_add_effects(document, effects);
	return json_print(document);
}

static void item_print(const char *name, const char *format, ...) _printf_(2, 3);

static void item_print(const char *name, const char *format, ...)
{
	char value[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (*value)
		printf("%-11s %s\n", name, text_tame(value));
}

static void guards_print(struct lair_items guards)
{
	char line[512] = "", guard[64];
	struct lair_text item;
	size_t cursor = 0, size = 0;

	while (lair_next_text(guards, &cursor, &item) && size < sizeof(line))
		size += (size_t)snprintf(line + size, sizeof(line) - size, "%s%s", size ? ", " : "",
					 text_tamed(guard, sizeof(guard), item));
	item_print("guards", "%s", line);
}

/* "3, 1.5 MiB": how many checkpoints there are, and how much memory they alone hold. */
static const char *checkpoints_text(char *out, size_t size, const struct lair_session *session)
{
	char memory[HUMAN_SIZE];

	if (session->checkpoints)
		snprintf(out, size, "%" PRIu64 ", %s", session->checkpoints,
			 human_bytes(memory, session->checkpoint_memory));
	else
		snprintf(out, size, "0");
	return out;
}

/* The usage and the limits of the session. */
static void limits_print(const struct lair_session *session)
{
	char text[OF_LIMIT_SIZE], idle[HUMAN_SIZE] = "none", hard[HUMAN_SIZE] = "none", cell[HUMAN_SIZE] = "none";

	item_print("memory", "%s", human_bytes_of(text, session->memory, session->memory_limit));
	if (session->disk_limit)
		item_print("disk", "%s, %" PRIu64 " files",
			   human_bytes_of(text, session->disk, session->disk_limit), session->files);
	if (session->tasks_limit)
		item_print("processes", "%" PRIu64 " of %" PRIu64 ", with threads", session->tasks,
			   session->tasks_limit);
	else
		item_print("processes", "%" PRIu64 ", with threads", session->tasks);
	if (session->cpu_limit > 0)
		item_print("cpu time", "%.3g s, of %g processors", session->cpu, session->cpu_limit);
	else
		item_print("cpu time", "%.3g s", session->cpu);
	if (session->cell_timeout > 0)
		human_seconds(cell, session->cell_timeout);
	if (session->idle_ttl > 0)
		human_seconds(idle, session->idle_ttl);
	if (session->hard_ttl > 0)
		human_seconds(hard, session->hard_ttl);
	item_print("time limits", "cell %s, idle %s, in all %s", cell, idle, hard);
}

static void session_print(const struct lair_session *session)
{
	char owner[CLI_NAME_SIZE], text[HUMAN_SIZE], left[HUMAN_SIZE], checkpoints[HUMAN_SIZE * 2],
		name[CLI_NAME_SIZE];
	bool any = session->checkpoints > 0;

	item_print("session", "%s", name_shown(name, session->session));
	item_print("owner", "%s", name_of_user(owner, session->uid));
	item_print("profile", "%.*s", (int)session->profile.size, session->profile.data);
	item_print("state", "%.*s", (int)session->state.size, session->state.data);
	item_print("cells", "%" PRIu64 ", %" PRIu64 " waiting", session->cells, session->queued);
	item_print("created", "%s", human_date(text, session->created));
	item_print("idle", "%s", human_seconds(text, session->idle));
	if (session->idle_left > 0 || session->hard_left > 0)
		item_print("ends in", "%s%s%s%s",
			   session->idle_left > 0 ? human_seconds(text, session->idle_left) : "",
			   session->idle_left > 0 ? " if it stays idle" : "",
			   session->idle_left > 0 && session->hard_left > 0 ? ", or " : "",
			   session->hard_left > 0 ? human_seconds(left, session->hard_left) : "");
	limits_print(session);
	item_print("checkpoints", "%s%s%s", checkpoints_text(checkpoints, sizeof(checkpoints), session),
		   any ? ", the oldest of " : "", any ? human_seconds(text, session->checkpoint_age) : "");
	if (session->pid)
		item_print("pid", "%" PRIu64, session->pid);
	if (session->version.data)
		item_print("language", "%.*s %.*s", (int)session->language.size, session->language.data,
			   (int)session->version.size, session->version.data);
	item_print("workspace", "%.*s", (int)session->workspace.size, session->workspace.data);
	if (session->directory.data)
		item_print("directory", "%.*s%s", (int)session->directory.size, session->directory.data,
			   session->writable ? "" : ", read-only");
	item_print("cage", "%.*s", (int)session->level.size, session->level.data ? session->level.data : "");
	guards_print(session->guards);
}

int verb_open(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_session *session;
	json_t *document;
	int r;

	r = cli_asked(cli, false);
	if (r)
		return r;
	r = cli_wait(cli, lair_open_with(cli->lair, &call, cli->args[0], cli->profile, cli->options.settings),
		     &call);
	if (r)
		return cli_trouble(cli, r);
	session = lair_session(call);
	if (cli->json) {
		document = json_session(session);
		json_object_set_new(document, "opened", json_boolean(session->opened));
		json_object_set_new(document, "loaded", json_loaded(&session->loaded));
		json_object_set_new(document, "ended", json_ended(&session->ended));
		return json_print(document);
	}
	printf("session \"%s\" %s, profile %.*s\n", cli->args[0], session->opened ? "opened" : "was open already",
	       (int)session->profile.size, session->profile.data);
	result_notice(&(struct lair_result){.ended = session->ended, .loaded = session->loaded}, 0);
	return 0;
}

int verb_info(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	r = cli_wait(cli, lair_info(cli->lair, &call, cli->args[0]), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return json_print(json_session(lair_session(call)));
	session_print(lair_session(call));
	return 0;
}

int verb_interrupt(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	r = cli_wait(cli,
		     cli->kill ? lair_kill(cli->lair, &call, cli->args[0])
			       : lair_interrupt(cli->lair, &call, cli->args[0]),
		     &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return json_print(json_pack("{s:s, s:b}", "session", cli->args[0], "interrupted",
					    (int)lair_interrupted(call)));
	if (!lair_interrupted(call))
		printf("session \"%s\" runs no cell\n", cli->args[0]);
	return 0;
}

int verb_reset(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	if (cli->keep) {
		r = cli_keep(cli);
		return r ? r : say_done(cli, "reset", NULL);
	}
	r = cli_wait(cli, lair_reset(cli->lair, &call, cli->args[0]), &call);
	return r ? cli_trouble(cli, r) : say_done(cli, "reset", lair_reset_effects(call));
}

int verb_close(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r = cli_wait(cli, lair_shutdown(cli->lair, &call, cli->args[0]), &call);

	return r ? cli_trouble(cli, r) : say_done(cli, "closed", NULL);
}

/* ---- ls ---- */

static bool session_row(struct lair_items items, size_t *cursor, table_row row)
{
	char text[HUMAN_SIZE], name[CLI_NAME_SIZE];
	struct lair_session session;

	if (!lair_next_session(items, cursor, &session))
		return false;
	snprintf(row[0], TABLE_CELL, "%s", name_shown(name, session.session));
	text_tamed(row[1], TABLE_CELL, session.profile);
	if (session.language.data && !text_is(session.language, "python")) {
		size_t used = strlen(row[1]);

		snprintf(row[1] + used, TABLE_CELL - used, " (%s)",
			 text_tamed(name, sizeof(name), session.language));
	}
	text_tamed(row[2], TABLE_CELL, session.state);
	snprintf(row[3], TABLE_CELL, "%s", human_seconds(text, session.idle));
	snprintf(row[4], TABLE_CELL, "%" PRIu64, session.cells);
	checkpoints_text(row[5], TABLE_CELL, &session);
	snprintf(row[6], TABLE_CELL, "%s", human_bytes(text, session.memory));
	return true;
}

/* "3" or "3 of 64". */
static void count_of(char out[TABLE_CELL], uint64_t count, uint64_t limit)
{
	if (limit)
		snprintf(out, TABLE_CELL, "%" PRIu64 " of %" PRIu64, count, limit);
	else
		snprintf(out, TABLE_CELL, "%" PRIu64, count);
}

/* The rest of a long row, behind the session, which both rows begin with. */
static bool long_row(struct lair_items items, size_t *cursor, table_row row)
{
	struct lair_session session;
	char text[OF_LIMIT_SIZE];
	size_t here = *cursor;

	if (!session_row(items, cursor, row) || !lair_next_session(items, &here, &session))
		return false;
	snprintf(row[6], TABLE_CELL, "%s", human_bytes_of(text, session.memory, session.memory_limit));
	name_of_user(row[7], session.uid);
	snprintf(row[8], TABLE_CELL, "%.1f s", session.cpu);
	snprintf(row[9], TABLE_CELL, "%s",
		 session.disk_limit ? human_bytes_of(text, session.disk, session.disk_limit) : "-");
	count_of(row[10], session.tasks, session.tasks_limit);
	return true;
}

int verb_ls(struct cli *cli)
{
	static const table_row heads = {"SESSION", "PROFILE", "STATE", "IDLE", "CELLS", "CHECKPOINTS", "MEMORY"},
			       more = {"SESSION", "PROFILE", "STATE", "IDLE", "CELLS",	  "CHECKPOINTS",
				       "MEMORY",  "OWNER",   "CPU",   "DISK", "PROCESSES"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	r = cli_wait(cli, lair_list(cli->lair, &call), &call);
	if (r)
		return cli_trouble(cli, r);
	if (!cli->json) {
		table_print(cli->longer ? more : heads, lair_sessions(call), cli->longer ? long_row : session_row);
		return 0;
	}
	return json_print(json_pack("{s:o}", "sessions", json_sessions(lair_sessions(call))));
}
