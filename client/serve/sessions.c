/* Sessions: the list, their beginning and end, and their saved variables. */
#include "doors.h"

#include "base/result.h"
#include "base/text.h"

struct lair *session_lair(struct exchange *exchange, const char **sessionp)
{
	*sessionp = exchange_session(exchange, exchange_path(exchange, "id"));
	return *sessionp ? exchange_lair(exchange) : NULL;
}

void empty_done(struct exchange *exchange)
{
	answer_empty(exchange, 204);
}

json_t *discreet(const struct exchange *exchange, json_t *document)
{
	static const char *const hidden[] = {"workspace", "directory", "uid", "pid"};

	for (size_t i = 0; exchange->tenant->token && i < ARRAY_SIZE(hidden); i++)
		(void)json_object_del(document, hidden[i]);
	return document;
}

json_t *tenant_document(const struct exchange *exchange, json_t *document, struct lair_text session)
{
	json_object_set_new(document, "session", json_text(tenant_own(exchange->tenant, session)));
	return discreet(exchange, document);
}

static json_t *session_document(const struct exchange *exchange, const struct lair_session *session)
{
	return tenant_document(exchange, json_session(session), session->session);
}

static void list_done(struct exchange *exchange)
{
	json_t *array = json_array();
	struct lair_session session;
	size_t cursor = 0;

	while (lair_next_session(lair_sessions(exchange->call), &cursor, &session))
		if (tenant_own(exchange->tenant, session.session).data)
			json_array_append_new(array, session_document(exchange, &session));
	answer_json(exchange, 200, json_pack("{s:o}", "sessions", array));
}

void v1_sessions(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);

	if (lair)
		exchange_wait(exchange, lair_list(lair, &exchange->call), list_done);
}

static void open_done(struct exchange *exchange)
{
	const struct lair_session *session = lair_session(exchange->call);
	json_t *document = session_document(exchange, session);

	json_object_set_new(document, "opened", json_boolean(session->opened));
	json_object_set_new(document, "loaded", json_loaded(&session->loaded));
	json_object_set_new(document, "ended", json_ended(&session->ended));
	answer_json(exchange, 200, document);
}

void v1_open(struct exchange *exchange)
{
	const char *session, *profile;
	struct lair *lair = session_lair(exchange, &session);

	if (lair && profile_of(exchange, exchange_string(exchange, "profile"), &profile) &&
	    session_admitted(exchange, session))
		exchange_wait(exchange, lair_open(lair, &exchange->call, session, profile), open_done);
}

static void info_done(struct exchange *exchange)
{
	answer_json(exchange, 200, session_document(exchange, lair_session(exchange->call)));
}

void v1_info(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair && exchange_query_flag(exchange, "stay"))
		exchange_wait(exchange, lair_stay(lair, &exchange->call, session, 0), info_done);
	else if (lair)
		exchange_wait(exchange, lair_info(lair, &exchange->call, session), info_done);
}

static void shutdown_done(struct exchange *exchange)
{
	seat_gone(exchange->tenant, exchange_session(exchange, exchange_path(exchange, "id")));
	answer_empty(exchange, 204);
}

SESSION_HANDLER(v1_shutdown, shutdown_done, lair_shutdown(lair, &exchange->call, session))

static void interrupt_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_pack("{s:b}", "interrupted", (int)lair_interrupted(exchange->call)));
}

void v1_interrupt(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair && exchange_flag(exchange, "kill"))
		exchange_wait(exchange, lair_kill(lair, &exchange->call, session), interrupt_done);
	else if (lair)
		exchange_wait(exchange, lair_interrupt(lair, &exchange->call, session), interrupt_done);
}

static void reset_done(struct exchange *exchange)
{
	const struct lair_effects *effects = lair_reset_effects(exchange->call);
	json_t *document = json_pack("{s:b}", "reset", 1);

	if (effects) {
		json_add_effects(document, effects);
		json_add_notes(document, &(struct lair_result){.effects = *effects});
	}
	answer_json(exchange, 200, document);
}

#define KEEP_MAX 1000

void v1_reset(struct exchange *exchange)
{
	const char *session, *names[KEEP_MAX + 1] = {NULL};
	const json_t *keep = json_object_get(exchange->json, "keep");
	struct lair *lair = session_lair(exchange, &session);

	for (size_t i = 0; i < json_array_size(keep) && i < KEEP_MAX; i++)
		names[i] = json_string_value(json_array_get(keep, i));
	if (lair && names[0])
		exchange_wait(exchange, lair_keep(lair, &exchange->call, session, names), reset_done);
	else if (lair)
		exchange_wait(exchange, lair_reset(lair, &exchange->call, session), reset_done);
}

/* ---- saved states ---- */

static void save_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_saved(exchange_path(exchange, "id"), lair_saved(exchange->call)));
}

SESSION_HANDLER(v1_save, save_done, lair_save(lair, &exchange->call, session))

static void load_done(struct exchange *exchange)
{
	json_t *document = json_loaded(lair_loaded(exchange->call));

	if (json_is_null(document))
		document = json_object();
	json_object_set_new(document, "ended", json_ended(lair_load_ended(exchange->call)));
	answer_json(exchange, 200, document);
}

void v1_load(struct exchange *exchange)
{
	const char *session;
	struct lair *lair = session_lair(exchange, &session);

	if (lair && session_admitted(exchange, session))
		exchange_wait(exchange, lair_load(lair, &exchange->call, session), load_done);
}

static json_t *save_document(const struct exchange *exchange, const struct lair_save *save)
{
	return tenant_document(exchange, json_save(save), save->session);
}

static void saves_done(struct exchange *exchange)
{
	json_t *array = json_array();
	struct lair_save save;
	size_t cursor = 0;

	while (lair_next_save(lair_save_list(exchange->call), &cursor, &save))
		if (tenant_own(exchange->tenant, save.session).data)
			json_array_append_new(array, save_document(exchange, &save));
	answer_json(exchange, 200, json_pack("{s:o}", "saves", array));
}

void v1_saves(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);

	if (lair)
		exchange_wait(exchange, lair_saves(lair, &exchange->call, NULL), saves_done);
}

static void saved_done(struct exchange *exchange)
{
	struct lair_save save;
	size_t cursor = 0;

	if (lair_next_save(lair_save_list(exchange->call), &cursor, &save))
		answer_json(exchange, 200, save_document(exchange, &save));
	else
		answer_problem(exchange, 410, "gone", "nothing is saved of that session");
}

SESSION_HANDLER(v1_saved, saved_done, lair_saves(lair, &exchange->call, session))

SESSION_HANDLER(v1_unsave, empty_done, lair_unsave(lair, &exchange->call, session))
