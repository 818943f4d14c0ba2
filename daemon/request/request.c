/* The requests of clients, as a table. Each handler answers exactly once: now, or later if a session must do
 * something first, which keeps the address. */
#include "request.h"

#include "base/log.h"
#include "proto/clock.h"
#include "session/saving.h"
#include "vault/breaker.h"
#include "warden/nursery.h"

#include <inttypes.h>
#include <stdio.h>

bool session_name_given(struct session_name *name, struct sessions *sessions, const struct address *from,
			struct bytes text)
{
	if (!session_name_read(name, text, from->uid))
		return true;
	client_error(sessions->clients, from, "bad_request",
		     "a session id is printable characters without space, 1 to %d bytes of UTF-8%s", SESSION_ID_MAX,
		     from->uid == 0 ? "; another user's is the number of the user, a slash and the id" : "");
	return false;
}

/* "42s", "5m", "2h 5m", "3d 4h". */
static void age_write(char out[static 32], double seconds)
{
	uint64_t s = seconds > 0 ? (uint64_t)seconds : 0;

	if (s < 3600)
		snprintf(out, 32, "%" PRIu64 "%s", s < 60 ? s : s / 60, s < 60 ? "s" : "m");
	else if (s < 86400)
		snprintf(out, 32, "%" PRIu64 "h %" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(out, 32, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
}

/* What is known of the last session of a name, as a record in @buffer, and in words after ": ". */
static void ending_tell(msgpack_sbuffer *buffer, char out[static PAST_SENTENCE_SIZE], const struct ending *ending)
{
	char words[PAST_SENTENCE_SIZE], age[32];

	(void)past_put(buffer, ending);
	age_write(age, ending ? clock_date() - ending->when : 0);
	snprintf(out, PAST_SENTENCE_SIZE, "%s%s%s%s", past_words(words, ending), ending ? ", " : "",
		 ending ? age : "", ending ? " ago" : "");
}

/* There was one. */
static void no_session_any_more(struct sessions *sessions, const struct address *from, struct bytes text,
				const struct ending *ending)
{
	char words[PAST_SENTENCE_SIZE];
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	ending_tell(&buffer, words, ending);
	client_gone(sessions->clients, from, "no_session", wire_bytes(&buffer),
		    "there is no session \"%.*s\" any more: %s; open or exec makes one", (int)text.size, text.data,
		    words);
	msgpack_sbuffer_destroy(&buffer);
}

static void no_session(struct sessions *sessions, const struct address *from, struct bytes text,
		       const struct session_name *name)
{
	const struct ending *ending = past_find(&sessions->past, name);

	if (ending && name->owner == from->uid) {
		no_session_any_more(sessions, from, text, ending);
		return;
	}
	client_error(sessions->clients, from, "no_session",
		     name->owner == from->uid ? "there is no session \"%.*s\"; open or exec makes one"
					      : "there is no session \"%.*s\"; only its own user can make one",
		     (int)text.size, text.data);
}

bool session_is_gone(struct sessions *sessions, const struct address *from, struct bytes text, uint64_t birth)
{
	const struct ending *ending;
	char words[PAST_SENTENCE_SIZE];
	struct session_name name;
	struct session *session;
	msgpack_sbuffer buffer;

	if (!birth || session_name_read(&name, text, from->uid))
		return false;
	session = sessions_find(sessions, &name);
	if (session && session->birth == birth)
		return false;
	ending = past_find(&sessions->past, &name);
	if (ending && ending->birth != birth)
		ending = NULL;
	msgpack_sbuffer_init(&buffer);
	ending_tell(&buffer, words, ending);
	client_gone(sessions->clients, from, "gone", wire_bytes(&buffer),
		    "the session \"%.*s\" that this is for is no more: %s; nothing has been done", (int)text.size,
		    text.data, words);
	msgpack_sbuffer_destroy(&buffer);
	return true;
}

struct session *session_named(struct sessions *sessions, const struct address *from, struct bytes text)
{
	struct session_name name;
	struct session *session;

	if (!session_name_given(&name, sessions, from, text))
		return NULL;
	session = sessions_find(sessions, &name);
	if (!session)
		no_session(sessions, from, text, &name);
	return session;
}

/* Only between two cells: what would be saved or thrown away must not be in motion. */
struct session *session_between_cells(struct sessions *sessions, const struct address *from, struct bytes text)
{
	struct session *session = session_named(sessions, from, text);

	if (!session || (!session_busy(session) && session->n_queued == 0))
		return session;
	client_error(sessions->clients, from, "busy",
		     "a cell runs or waits in session \"%s\"; interrupt it or wait for it", session->id);
	return NULL;
}

bool session_room_for_operation(struct sessions *sessions, const struct address *from,
				const struct session *session)
{
	if (list_size(&session->operations) < session->profile->queue)
		return true;
	client_error(sessions->clients, from, "limit",
		     "as many requests wait in session \"%s\" already as queue = %" PRIu64 " allows", session->id,
		     session->profile->queue);
	return false;
}

/* ---- opening ---- */

struct session *session_make(struct sessions *sessions, const struct address *from, struct bytes id,
			     struct bytes profile_name)
{
	struct profile *profile = config_profile(sessions->config, profile_name);
	struct session *session;
	struct nursery *nursery;
	int r;

	if (!profile) {
		client_error(sessions->clients, from, "bad_request", "there is no profile \"%.*s\"",
			     (int)profile_name.size, profile_name.data);
		return NULL;
	}
	if (!sessions_room(sessions, from, from->uid))
		return NULL;
	r = sessions_open(&session, sessions, profile, id, from->uid);
	if (r == -EAGAIN && (nursery = cages_nursery(sessions->cages, profile, from->uid)))
		client_error(sessions->clients, from, "internal", "profile \"%s\" cannot start: %s", profile->name,
			     reason_told(nursery->reason));
	else if (r == -EUSERS)
		client_error(sessions->clients, from, "limit",
			     "no host user is left for another session of all uids = %" PRIu64 "-%" PRIu64
			     "; end one first",
			     sessions->config->uid_first, sessions->config->uid_last);
	else if (r)
		client_error(sessions->clients, from, "internal", "the session could not be made: %s",
			     strerror(-r));
	return r ? NULL : session;
}

/* The session called @text, made if it is missing; NULL when the client has been told why not. */
static struct session *session_find_or_make(struct sessions *sessions, const struct address *from,
					    struct bytes text, struct bytes profile, bool *madep)
{
	struct session_name name;
	struct session *session;

	*madep = false;
	if (!session_name_given(&name, sessions, from, text))
		return NULL;
	session = sessions_find(sessions, &name);
	if (!session && name.owner != from->uid) {
		no_session(sessions, from, text, &name);
		return NULL;
	}
	if (!session) {
		*madep = true;
		return session_make(sessions, from, name.id, profile);
	}
	if (profile.size > 0 && !bytes_is(profile, session->profile->name)) {
		client_error(sessions->clients, from, "bad_request",
			     "session \"%s\" has the profile \"%s\", not \"%.*s\"; end it first or use another id",
			     session->id, session->profile->name, (int)profile.size, profile.data);
		return NULL;
	}
	return session;
}

/* ---- handlers ---- */

/* A session that has just been opened goes on from what was saved of it. Returns 0, -ENOENT where there is nothing
 * that can be read, or -errno: then it is not opened after all, or it would be saved over what it should have had.
 */
static int come_back(struct session *session, const struct address *from, enum telling telling)
{
	const struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};
	struct saved *saved;
	int r = saved_find(&saved, session->sessions->saved, name.owner, name.id);

	if (r && !is_scarcity(r))
		past_lose(&session->sessions->past, &name,
			  r == -ENOENT
				  ? "the saved state was deleted, or its time was over (save_ttl, saves_per_uid)"
				  : "the saved state cannot be read");
	if (!r)
		r = saving_load(session, saved, telling == TELL_OPEN ? from : NULL, telling);
	if (!r || r == -ENOENT)
		return r;
	if (!is_scarcity(r)) {
		session->unloaded = true;
		return -ENOENT;
	}
	client_error(session->sessions->clients, from, "internal",
		     "the saved state of session \"%s\" cannot be read now: %s", session->id, strerror(-r));
	session_end(session, "internal");
	return r;
}

static void handle_open(struct sessions *sessions, const struct address *from, const union request *request)
{
	bool made;
	struct session *session =
		session_find_or_make(sessions, from, request->open.session, request->open.profile, &made);
	char name[SESSION_NAME_SIZE];
	struct session_info info;
	msgpack_sbuffer ended;

	if (!session || (made && come_back(session, from, TELL_OPEN) != -ENOENT))
		return;
	info = session_record(session, from->uid, name);
	info.id = request->id;
	info.opened = made;
	msgpack_sbuffer_init(&ended);
	if (!session_put_ended(session, &ended))
		info.ended = wire_bytes(&ended);
	client_send(sessions->clients, from, &session_info_schema, &info);
	msgpack_sbuffer_destroy(&ended);
}

/* Checks what can be checked without a session. Returns false when the client has been told. */
static bool exec_acceptable(struct sessions *sessions, const struct address *from, const struct exec_request *exec,
			    const struct profile *profile)
{
	double max = event_seconds(profile->cell_timeout_max);

	if (exec->code.size > profile->code_size)
		client_error(sessions->clients, from, "too_large",
			     "the code has %zu bytes; code_size = %" PRIu64 " is the limit", exec->code.size,
			     profile->code_size);
	else if (exec->timeout < 0)
		client_error(sessions->clients, from, "bad_request", "timeout: seconds, more than 0; got %g",
			     exec->timeout);
	else if (max > 0 && exec->timeout > max)
		client_error(sessions->clients, from, "limit", "timeout %g s: cell_timeout_max = %g s is the limit",
			     exec->timeout, max);
	else if (cell_option_wrong(exec))
		client_error(sessions->clients, from, "bad_request", "%s", cell_option_wrong(exec));
	else
		return true;
	return false;
}

static uint64_t exec_timeout(const struct exec_request *exec, const struct profile *profile)
{
	/* Shorter than one tick of ours is one tick; so far off that it does not fit is as good as none. */
	if (exec->timeout > 0)
		return exec->timeout < 1e12 ? MAX((uint64_t)(exec->timeout * 1e6), (uint64_t)1) : 0;
	return exec->unlimited ? profile->cell_timeout_max : profile->cell_timeout;
}

static bool session_room_for_cell(struct sessions *sessions, const struct address *from,
				  const struct session *session)
{
	if (session->n_queued < session->profile->queue)
		return true;
	client_error(sessions->clients, from, "limit",
		     "%zu cells wait in session \"%s\" already, as many as queue = %" PRIu64 " allows",
		     session->n_queued, session->id, session->profile->queue);
	return false;
}

bool user_room(struct sessions *sessions, const struct address *from, uid_t owner, uint64_t size)
{
	struct user *user = user_get(sessions->users, owner);

	if (user && user_has_room(user, size))
		return true;
	client_error(sessions->clients, from, "limit",
		     "your cells and answers on their way hold as much as work_per_uid = %" PRIu64
		     " allows; wait for some",
		     sessions->config->work_per_uid);
	return false;
}

static void exec_in(struct sessions *sessions, const struct address *from, const struct exec_request *exec,
		    struct session *session, bool made)
{
	const struct profile *profile = session->profile;
	/* What it comes back with may wait in one that has just been made, and is not the client's. */
	bool room = (made || session_room_for_cell(sessions, from, session)) &&
		    user_room(sessions, from, session->owner, cell_price(exec));
	struct cell *cell;

	if (room && !cell_new(&cell, exec, from, exec_timeout(exec, profile), profile->output_size)) {
		session_exec(session, cell);
		if (exec->detach)
			exec_detach(sessions, from, exec);
		return;
	}
	if (room)
		client_error(sessions->clients, from, "internal", "out of memory");
	if (made)
		session_end(session, "shutdown");
}

static void handle_exec(struct sessions *sessions, const struct address *from, const union request *request)
{
	const struct exec_request *exec = &request->exec;
	const struct profile *profile;
	struct session_name name;
	struct session *session;
	bool made = true;

	if (!session_name_given(&name, sessions, from, exec->session))
		return;
	session = sessions_find(sessions, &name);
	profile = session ? session->profile : config_profile(sessions->config, exec->profile);
	/* Refused before a session is made for it. */
	if (profile && !exec_acceptable(sessions, from, exec, profile))
		return;
	if (exec->session.data)
		session = session_find_or_make(sessions, from, exec->session, exec->profile, &made);
	else
		session = session_make(sessions, from, (struct bytes){.data = NULL}, exec->profile);
	if (session && made && session->id[0]) {
		int r = come_back(session, from, TELL_NEXT);

		if (r && r != -ENOENT)
			return;
	}
	if (session)
		exec_in(sessions, from, exec, session, made);
}

static struct session *session_running(struct sessions *sessions, const struct address *request)
{
	struct session *session = NULL;

	while ((session = sessions_next(sessions, request->uid, session)))
		if (session->cell && promise_asked_by(session->cell->reply.promise, request))
			break;
	return session;
}

static void handle_input(struct sessions *sessions, const struct address *from, const union request *request)
{
	struct address exec = *from;
	struct empty_reply reply = {.id = request->id};
	struct session *session;

	exec.id = request->input.exec;
	session = session_running(sessions, &exec);
	if (!session || !session->cell->asking) {
		client_error(sessions->clients, from, "gone", "request %" PRIu64 " does not wait for input",
			     exec.id);
		return;
	}
	session_answer(session, &request->input);
	client_send(sessions->clients, from, &empty_reply_schema, &reply);
}

static bool cancel_own(struct sessions *sessions, const struct address *from,
		       const struct interrupt_request *interrupt)
{
	struct address exec = *from;
	struct session *session = NULL;

	exec.id = interrupt->exec;
	while ((session = sessions_next(sessions, from->uid, session)))
		if (session_cancel(session, &exec, interrupt->kill))
			return true;
	return false;
}

static void handle_interrupt(struct sessions *sessions, const struct address *from, const union request *request)
{
	const struct interrupt_request *interrupt = &request->interrupt;
	struct interrupt_reply reply = {.id = request->id};
	struct session *session;

	if (!interrupt->session.data == !interrupt->exec) {
		client_error(sessions->clients, from, "bad_request", "interrupt: either session or exec");
		return;
	}
	if (interrupt->session.data) {
		session = session_named(sessions, from, interrupt->session);
		if (!session)
			return;
		/* The last save of one that expires is nobody's: without it all would be lost. */
		if (!session->cell || session->cell != session->last_save)
			reply.interrupted = session_interrupt(session, interrupt->kill);
	} else {
		reply.interrupted = cancel_own(sessions, from, interrupt);
	}
	client_send(sessions->clients, from, &interrupt_reply_schema, &reply);
}

static void handle_shutdown(struct sessions *sessions, const struct address *from, const union request *request)
{
	struct session *session = session_named(sessions, from, request->shutdown.session);

	if (session)
		session_close(session, from);
}

/* ---- saved states ---- */

static void handle_save(struct sessions *sessions, const struct address *from, const union request *request)
{
	struct session *session = session_named(sessions, from, request->save.session);

	if (session && session_room_for_cell(sessions, from, session) && saving_save(session, from))
		client_error(sessions->clients, from, "internal", "out of memory");
}

static void handle_load(struct sessions *sessions, const struct address *from, const union request *request)
{
	struct bytes text = request->load.session;
	struct session_name name;
	struct session *session;
	struct saved *saved;
	bool made;
	int r;

	if (!session_name_given(&name, sessions, from, text))
		return;
	r = saved_find(&saved, sessions->saved, name.owner, name.id);
	if (is_scarcity(r)) {
		client_error(sessions->clients, from, "internal",
			     "the saved state of session \"%.*s\" cannot be read now: %s", (int)text.size,
			     text.data, strerror(-r));
		return;
	}
	if (r) {
		client_error(sessions->clients, from, "gone", "no state of session \"%.*s\" is saved",
			     (int)text.size, text.data);
		return;
	}
	session = session_find_or_make(sessions, from, text, (struct bytes){.data = NULL}, &made);
	if (!session || !session_room_for_cell(sessions, from, session)) {
		saved_free(saved);
	} else if (saving_load(session, saved, from, TELL_LOAD)) {
		client_error(sessions->clients, from, "internal", "out of memory");
		if (made)
			session_end(session, "shutdown");
	}
}

/* ---- the table ---- */

static const struct {
	const struct wire_schema *schema;
	void (*fn)(struct sessions *sessions, const struct address *from, const union request *request);
} handlers[] = {
	{&exec_request_schema, handle_exec},
	{&input_request_schema, handle_input},
	{&attach_request_schema, handle_attach},
	{&results_request_schema, handle_results},
	{&hello_request_schema, handle_hello},
	{&open_request_schema, handle_open},
	{&interrupt_request_schema, handle_interrupt},
	{&reset_request_schema, handle_reset},
	{&shutdown_request_schema, handle_shutdown},
	{&list_request_schema, handle_list},
	{&checkpoint_request_schema, handle_checkpoint},
	{&checkpoints_request_schema, handle_checkpoints},
	{&restore_request_schema, handle_restore},
	{&undo_request_schema, handle_undo},
	{&branch_request_schema, handle_branch},
	{&drop_request_schema, handle_drop},
	{&get_request_schema, handle_get},
	{&put_request_schema, handle_put},
	{&files_request_schema, handle_files},
	{&copy_in_request_schema, handle_copy_in},
	{&save_request_schema, handle_save},
	{&load_request_schema, handle_load},
	{&saves_request_schema, handle_saves},
	{&unsave_request_schema, handle_unsave},
	{&stop_request_schema, handle_stop},
	{&info_request_schema, handle_info},
	{&complete_request_schema, handle_complete},
	{&inspect_request_schema, handle_inspect},
	{&vars_request_schema, handle_vars},
	{&check_request_schema, handle_check},
	{&is_complete_request_schema, handle_is_complete},
	{&history_request_schema, handle_history},
	{&stats_request_schema, handle_stats},
};

const char *request_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].schema->type : NULL;
}

static void request_handle(struct sessions *sessions, const struct address *from, const struct wire_frame *frame)
{
	struct wire_fault fault;
	union request request;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame->type, handlers[i].schema->type))
			continue;
		if (wire_decode(&request, handlers[i].schema, frame->body, &fault))
			client_error(
				sessions->clients, from, "bad_request", "%s: the field \"%s\" was expected %s%s",
				handlers[i].schema->type, fault.field,
				strncmp(fault.expected, "to ", 3) && strncmp(fault.expected, "not ", 4) ? "to be "
													: "",
				fault.expected);
		else
			request_take(sessions, from, handlers[i].schema, &request, handlers[i].fn);
		return;
	}
	client_error(sessions->clients, from, "unsupported", "this laird knows no request \"%.*s\"",
		     (int)MIN(frame->type.size, 64U), frame->type.data);
}

void request_receive(struct sessions *sessions, const struct address *from, struct bytes data)
{
	bool refused = hand_frame(sessions->breaker, from->uid, data.size);
	struct address to = *from;
	struct wire_frame frame;
	int r = refused ? WIRE_E_MALFORMED : wire_open(&frame, data);

	sessions->stats.requests++;
	if (r == WIRE_E_VERSION) {
		client_error(sessions->clients, &to, "unsupported",
			     "version %" PRIu64 " of the protocol is not spoken here; version %d is", frame.version,
			     WIRE_VERSION);
		return;
	}
	if (r || !wire_find_id(&to.id, frame.body)) {
		front_count_refused(&sessions->clients->front, FRONT_DROPPED, "it is no request");
		return;
	}
	/* Somebody may watch it. */
	if (sessions->cages->stopping && !bytes_is(frame.type, "stats") && !bytes_is(frame.type, "stop"))
		client_error(sessions->clients, &to, "gone", "laird is stopping");
	else
		request_handle(sessions, &to, &frame);
}
