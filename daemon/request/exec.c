/* Sessions opened and ended, and cells run, answered and interrupted in them; saving and loading are cells, too. */
#include "request.h"

#include "config/access.h"
#include "config/asked.h"
#include "config/policy.h"
#include "session/parts/saving.h"
#include "warden/nursery.h"

#include <inttypes.h>

/* ---- opening ---- */

/* @groupsp: the caller's to free. */
static struct membership membership_of(struct sessions *sessions, const struct address *from, gid_t **groupsp)
{
	int n = clients_groups(sessions->clients, from, groupsp);

	return (struct membership){.uid = from->uid, .groups = *groupsp, .n = (size_t)MAX(n, 0)};
}

static bool is_wish(struct bytes name)
{
	return name.size > 0 && name.data[name.size - 1] == '?';
}

struct profile *profile_asked(struct sessions *sessions, const struct address *from, struct bytes name)
{
	_cleanup_(freep) gid_t *groups = NULL;
	struct membership membership;
	struct profile *profile;

	if (!is_wish(name))
		return config_profile(sessions->config, name);
	name.size--;
	membership = membership_of(sessions, from, &groups);
	profile = config_profile(sessions->config, name);
	return profile && profile_is_for(profile, &membership) ? profile
							       : config_profile(sessions->config, BYTES(""));
}

/* Whether the profile is for whoever asks, or that has been told. */
static bool profile_permitted(struct sessions *sessions, const struct address *from, const struct profile *profile,
			      struct bytes name)
{
	_cleanup_(freep) gid_t *groups = NULL;
	const struct membership membership = membership_of(sessions, from, &groups);
	_cleanup_(freep) char *others = NULL;

	if (profile && profile_is_for(profile, &membership))
		return true;
	others = config_profiles_for(sessions->config, &membership);
	if (!profile) {
		client_error(sessions->clients, from, "bad_request", "there is no profile \"%.*s\"; for you %s%s",
			     (int)name.size, name.data, others && *others ? "there is: " : "there is none",
			     others && *others ? others : "");
		return false;
	}
	client_limit(sessions->clients, from, "denied", profile->name, profile->users.n ? "users" : "groups",
		     "the profile \"%s\" is for other users; for you %s%s", profile->name,
		     others && *others ? "there is: " : "there is none", others && *others ? others : "");
	return false;
}

/* The profile of a new session: a reference. NULL when the client has been told. */
static struct profile *profile_for(struct sessions *sessions, const struct address *from, struct profile *base,
				   struct bytes settings)
{
	const struct in_use in_use = {.socket = sessions->saved->socket,
				      .workspaces = sessions->cages->workspaces.path};
	const struct asked asked = {.settings = settings,
				    .by_own_user = from->uid == geteuid(),
				    .config = sessions->config,
				    .in_use = &in_use};
	struct asked_refusal refusal;
	struct profile *profile = NULL;
	int r = profile_ask(&profile, base, &asked, &refusal);

	if (r == -EINVAL && refusal.setting)
		client_limit(sessions->clients, from, "denied", base->name, refusal.setting, "%s", refusal.text);
	else if (r == -EINVAL)
		client_error(sessions->clients, from, "bad_request", "%s", refusal.text);
	else if (r)
		client_error(sessions->clients, from, "internal", "out of memory");
	return profile;
}

/* Why sessions_open failed with @r. */
static void tell_not_opened(struct sessions *sessions, const struct address *from, struct profile *profile, int r)
{
	const struct nursery *nursery;

	if (r == -EAGAIN && (nursery = cages_nursery(sessions->cages, profile, from->uid)))
		client_limit(sessions->clients, from, "internal", profile->name, deciding_start(nursery->reason),
			     "profile \"%s\" cannot start: %s", profile->name, reason_told(nursery->reason));
	else if (r == -EUSERS)
		client_limit(sessions->clients, from, "limit", NULL, "uids",
			     "no host user is left for another session of all uids = %" PRIu64 "-%" PRIu64
			     "; end one first",
			     sessions->cages->uids_given.first, sessions->cages->uids_given.last);
	else
		client_error(sessions->clients, from, "internal", "the session could not be made: %s",
			     strerror(-r));
}

struct session *session_make(struct sessions *sessions, const struct address *from, struct bytes id,
			     const struct opening *opening)
{
	struct profile *base = profile_asked(sessions, from, opening->profile), *own;
	struct beginning with = opening->with;
	struct session *session = NULL;
	int r;

	if (!profile_permitted(sessions, from, base, opening->profile) || !sessions_room(sessions, from, from->uid))
		return NULL;
	own = profile_for(sessions, from, base, opening->settings);
	if (!own)
		return NULL;
	with.profile = own;
	r = sessions_open(&session, sessions, base, id, from->uid, &with);
	profile_unref(own);
	if (r)
		tell_not_opened(sessions, from, base, r);
	return r ? NULL : session;
}

/* Whether an open session is what the client asks for, or that has been told. */
static bool session_suits(const struct session *session, const struct address *from, const struct opening *opening)
{
	struct clients *clients = session->sessions->clients;
	struct bytes profile = opening->profile;
	struct asked_refusal refusal;

	if (profile.size > 0 && !is_wish(profile) && !bytes_is(profile, session->profile->name)) {
		client_error(clients, from, "bad_request",
			     "session \"%s\" has the profile \"%s\", not \"%.*s\"; end it first or use another id",
			     session->id, session->profile->name, (int)profile.size, profile.data);
		return false;
	}
	if (!profile_has(session->profile, opening->settings, &refusal))
		return true;
	client_error(clients, from, "bad_request",
		     "session \"%s\" was opened without %s; end it first or use another id", session->id,
		     refusal.text);
	return false;
}

/* The session that @request names, made if it is missing, a one-shot if it names none; NULL when the client has
 * been told why not. */
static struct session *session_find_or_make(struct sessions *sessions, const struct address *from,
					    const struct request *request, const struct opening *opening,
					    bool *madep)
{
	struct session *session = request->session;

	*madep = !session;
	if (!session && request->name.owner != from->uid) {
		no_session(sessions, from, request);
		return NULL;
	}
	if (!session)
		return session_make(sessions, from, request->name.id, opening);
	return session_suits(session, from, opening) ? session : NULL;
}

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

void handle_open(struct sessions *sessions, const struct address *from, const struct request *request)
{
	bool made;
	const struct opening opening = {.profile = request->open.profile, .settings = request->open.settings};
	struct session *session = session_find_or_make(sessions, from, request, &opening, &made);

	if (session && (!made || come_back(session, from, TELL_OPEN) == -ENOENT))
		session_tell_opened(session, from, made);
}

/* Checks what can be checked without a session. Returns false when the client has been told. */
static bool exec_acceptable(struct sessions *sessions, const struct address *from, const struct exec_request *exec,
			    const struct profile *profile)
{
	double max = event_seconds(profile->cell_timeout_max);

	if (exec->code.size > profile->code_size)
		client_limit(sessions->clients, from, "too_large", profile->name, "code_size",
			     "the code has %zu bytes; code_size = %" PRIu64 " is the limit", exec->code.size,
			     profile->code_size);
	else if (exec->timeout < 0)
		client_error(sessions->clients, from, "bad_request", "timeout: seconds, more than 0; got %g",
			     exec->timeout);
	else if (max > 0 && exec->timeout > max)
		client_limit(sessions->clients, from, "limit", profile->name, "cell_timeout_max",
			     "timeout %g s: cell_timeout_max = %g s is the limit", exec->timeout, max);
	else if (exec->functions.data && !profile_lets_call(profile))
		client_limit(sessions->clients, from, "bad_request", profile->name, "functions",
			     "functions: the profile \"%s\" lets cells call none (functions = off)", profile->name);
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
	client_limit(sessions->clients, from, "limit", session->profile->name, "queue",
		     "%zu cells wait in session \"%s\" already, as many as queue = %" PRIu64 " allows",
		     session->n_queued, session->id, session->profile->queue);
	return false;
}

bool user_room(struct sessions *sessions, const struct address *from, uid_t owner, uint64_t size)
{
	struct user *user = user_get(sessions->users, owner);

	if (user && user_has_room(user, size))
		return true;
	client_limit(sessions->clients, from, "limit", NULL, "work_per_uid",
		     "your cells and answers on their way hold as much as work_per_uid = %" PRIu64
		     " allows; wait for some",
		     sessions->config->work_per_uid);
	return false;
}

static void exec_in(struct sessions *sessions, const struct address *from, const struct exec_request *exec,
		    struct session *session, bool made)
{
	const struct profile *profile = session->profile;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer options = {0};
	bool encoded, room;
	struct cell *cell;

	encoded = !cell_options_put(&options, exec);
	/* What it comes back with may wait in one that has just been made, and is not the client's. */
	room = (made || session_room_for_cell(sessions, from, session)) &&
	       user_room(sessions, from, session->owner, cell_price(wire_bytes(&options)));
	if (room && encoded &&
	    !cell_new(&cell, wire_bytes(&options), from, exec_timeout(exec, profile), profile->output_size)) {
		session_exec(session, cell);
		if (exec->detach)
			exec_detach(sessions, from, exec);
	} else {
		if (room)
			client_error(sessions->clients, from, "internal", "out of memory");
		if (made)
			session_end(session, "shutdown");
	}
}

void handle_exec(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct exec_request *exec = &request->exec;
	const struct profile *profile;
	struct session *session = request->session;
	bool made;

	profile = session ? session->profile : profile_asked(sessions, from, exec->profile);
	/* Refused before a session is made for it. */
	if ((session || profile) && !exec_acceptable(sessions, from, exec, profile))
		return;
	session = session_find_or_make(sessions, from, request,
				       &(struct opening){.profile = exec->profile,
							 .settings = exec->settings,
							 .with = {.code = exec->code, .packages = exec->packages}},
				       &made);
	if (session && made && session->id[0]) {
		int r = come_back(session, from, TELL_NEXT);

		if (r && r != -ENOENT)
			return;
	}
	if (session)
		exec_in(sessions, from, exec, session, made);
}

struct session *session_running(struct sessions *sessions, const struct address *request)
{
	struct session *session = NULL;

	while ((session = sessions_next(sessions, request->uid, session)))
		if (session->cell && promise_asked_by(session->cell->reply.promise, request))
			break;
	return session;
}

/* Its words are for another question than the one that the cell waits with. Whether the client has been told so. */
static bool input_misses(struct sessions *sessions, const struct address *from, const struct cell *cell,
			 const struct input_request *input)
{
	if (!input->number || input->number == cell->asks)
		return false;
	client_error(sessions->clients, from, "gone",
		     "this answers question %" PRIu64 " of the cell, which %s; it waits for an answer to question "
		     "%" PRIu64 " and was given nothing",
		     input->number, input->number < cell->asks ? "has been answered" : "it has not asked",
		     cell->asks);
	return true;
}

void handle_input(struct sessions *sessions, const struct address *from, const struct request *request)
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
	if (input_misses(sessions, from, session->cell, &request->input))
		return;
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

void handle_interrupt(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct interrupt_request *interrupt = &request->interrupt;
	struct interrupt_reply reply = {.id = request->id};
	struct session *session;

	if (!interrupt->session.data == !interrupt->exec) {
		client_error(sessions->clients, from, "bad_request", "interrupt: either session or exec");
		return;
	}
	if (interrupt->session.data) {
		session = session_named(sessions, from, request);
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

void handle_shutdown(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);

	if (session)
		session_close(session, from);
}

/* ---- saved states ---- */

void handle_save(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);

	if (session && session_room_for_cell(sessions, from, session) && saving_save(session, from))
		client_error(sessions->clients, from, "internal", "out of memory");
}

void handle_load(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct opening opening = {.profile.data = NULL};
	struct bytes text = request->named;
	struct session *session;
	struct saved *saved;
	bool made;
	int r = saved_find(&saved, sessions->saved, request->name.owner, request->name.id);

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
	session = session_find_or_make(sessions, from, request, &opening, &made);
	if (!session || !session_room_for_cell(sessions, from, session)) {
		saved_free(saved);
	} else if (saving_load(session, saved, from, TELL_LOAD)) {
		client_error(sessions->clients, from, "internal", "out of memory");
		if (made)
			session_end(session, "shutdown");
	}
}
