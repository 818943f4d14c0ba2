/* From records to objects; snapshot.c goes the other way. A family that cannot be revived is ended, and the
 * log says why: half a family would be worse.
 *
 * Work in progress needs no care here. Messages that the last router had heard and not settled are still in the
 * sockets, messages that it had queued and not sent are in the records, and deadlines are times. */
#include "revive.h"

#include "base/log.h"
#include "family.h"
#include "revival.h"
#include "session/core/blame.h"
#include "session/life/life.h"
#include "vault/breaker.h"
#include "vault/errand.h"
#include "vault/fault.h"
#include "vault/vault.h"
#include "warden/nursery.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- reading ---- */

static int position_compare(const void *a, const void *b)
{
	const struct position *left = a, *right = b;

	if (left->whose != right->whose)
		return left->whose < right->whose ? -1 : 1;
	return left->at < right->at ? -1 : left->at > right->at;
}

static size_t positions_of(const struct old_family *old, uint64_t whose)
{
	size_t low = 0, high = old->n_positions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (old->positions[middle].whose < whose)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool old_family_record(const struct old_family *old, size_t *next, const struct wire_schema *schema, uint64_t whose,
		       void *record)
{
	struct wire_frame frame;
	struct wire_fault fault;

	for (size_t i = *next ? *next : positions_of(old, whose); i < old->n_positions; i++) {
		const struct position *position = &old->positions[i];
		uint64_t at = position->at;

		if (position->whose != whose)
			break;
		if (position->schema == schema && ledger_next(&old->ledger, old->text, &at, &frame) &&
		    !wire_decode_known(record, schema, frame.body, &fault)) {
			*next = i + 1;
			return true;
		}
	}
	return false;
}

static int position_add(struct old_family *old, const struct position *position)
{
	if (old->n_positions == old->allocated) {
		size_t allocated = MAX(2 * old->allocated, (size_t)64);
		struct position *grown = reallocarray(old->positions, allocated, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		old->positions = grown;
		old->allocated = allocated;
	}
	old->positions[old->n_positions++] = *position;
	return 0;
}

static int position_note(struct old_family *old, const struct wire_frame *frame, uint64_t at)
{
	static const struct {
		const struct wire_schema *schema;
		size_t whose;
	} kinds[] = {
		{&code_record_schema, offsetof(struct code_record, promise)},
		{&display_record_schema, offsetof(struct display_record, promise)},
		{&kept_call_schema, offsetof(struct kept_call, promise)},
		{&about_record_schema, offsetof(struct about_record, number)},
		{&entry_record_schema, offsetof(struct entry_record, session)},
		{&effect_record_schema, offsetof(struct effect_record, session)},
		{&done_call_record_schema, offsetof(struct done_call_record, family)},
	};
	union {
		struct code_record code;
		struct display_record display;
		struct kept_call call;
		struct about_record about;
		struct entry_record entry;
		struct effect_record effect;
		struct done_call_record done_call;
	} record;
	struct position position = {.at = at};
	struct wire_fault fault;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!bytes_is(frame->type, kinds[i].schema->type) ||
		    wire_decode_known(&record, kinds[i].schema, frame->body, &fault))
			continue;
		position.schema = kinds[i].schema;
		memcpy(&position.whose, (const char *)&record + kinds[i].whose, sizeof(position.whose));
		return position_add(old, &position);
	}
	return 0;
}

static struct old_family *old_family_free(struct old_family *old)
{
	if (old) {
		list_remove(&old->node);
		ledger_deinit(&old->ledger);
		free(old->text);
		free(old->positions);
		free(old);
	}
	return NULL;
}

/* What comes behind the last family record has not happened. */
static int ledger_look(struct old_family *old, uint64_t *endp)
{
	struct profile_record profile;
	struct wire_frame frame;
	struct wire_fault fault;
	uint64_t at = 0, begin = 0;
	int r = 0;

	*endp = 0;
	for (; !r && ledger_next(&old->ledger, old->text, &at, &frame); begin = at) {
		if (bytes_is(frame.type, family_record_schema.type)) {
			if (wire_decode_known(&old->record, &family_record_schema, frame.body, &fault))
				return -EBADMSG;
			*endp = at;
		} else if (bytes_is(frame.type, profile_record_schema.type)) {
			if (!wire_decode_known(&profile, &profile_record_schema, frame.body, &fault))
				old->profile = profile.text;
		} else {
			r = position_note(old, &frame, begin);
		}
	}
	while (old->n_positions > 0 && old->positions[old->n_positions - 1].at >= *endp)
		old->n_positions--;
	if (old->n_positions > 0)
		qsort(old->positions, old->n_positions, sizeof(*old->positions), position_compare);
	return r;
}

static int ledger_take(struct old_family *old, struct vault_item *held)
{
	uint64_t end = 0;
	int r = ledger_open(&old->ledger, steal_fd(&held->fds[0]));

	held->taken = true;
	r = r ? r : ledger_read(&old->ledger, &old->text);
	r = r ? r : ledger_look(old, &end);
	r = r ? r : ledger_cut(&old->ledger, end);
	return r || old->profile.data ? r : -EBADMSG;
}

static void family_lost(struct promises *promises, uint64_t family, int r)
{
	log_error(NULL, "the sessions of family %" PRIu64 " end: the records of the last router cannot be used: %s",
		  family, r == -ECANCELED ? "routers died of it again and again" : strerror(-r));
	vault_forget_family(family);
	/* Nobody knows any more which of them these sessions had begun with. */
	promises->orphaned = true;
}

static struct bytes first_session(const struct old_family *old)
{
	struct kept_session record;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	if (!wire_next(old->record.sessions, &cursor, &item) ||
	    wire_decode_known(&record, &kept_session_schema, item, &fault))
		return (struct bytes){.data = NULL};
	return record.id;
}

static void family_read(struct families *families, struct vault_item *held)
{
	struct old_family *old = calloc(1, sizeof(*old));
	int r;

	if (!old)
		return;
	list_init(&old->node);
	ledger_init(&old->ledger);
	old->family = held->family;
	families->sessions->cages->last_serial = MAX(families->sessions->cages->last_serial, old->family);
	blame_revival(families->sessions->breaker, old->family, TURN_READ);
	r = blame_revival_is_open(families->sessions->breaker, old->family) ? -ECANCELED : 0;
	if (!r)
		r = ledger_take(old, held);
	if (!r)
		fault_at("revival", "read", first_session(old));
	if (r) {
		family_lost(families->sessions->promises, old->family, r);
		old_family_free(old);
		return;
	}
	list_append(&families->old, &old->node);
	families->sessions->cages->last_serial = MAX(families->sessions->cages->last_serial, old->record.serial);
}

void families_read(struct families *families)
{
	struct vault_item *held;

	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_for_each (held, &families->vault->buckets[i], node)
			if (held->kind == VAULT_FAMILY)
				family_read(families, held);
}

bool families_use(const struct families *families, const char *path)
{
	struct old_family *old;

	list_for_each (old, (struct list *)&families->old, node)
		if (bytes_is(old->record.workspace, path))
			return true;
	return false;
}

/* ---- whose it is ---- */

static bool profile_is(const struct profile *profile, struct bytes text)
{
	char *own = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&own, &size);
	bool same;

	if (!out)
		return false;
	profile_print(profile, out);
	same = fclose(out) == 0 && bytes_equal(text, (struct bytes){own, size});
	free(own);
	return same;
}

static bool owner_of(uid_t *ownerp, const struct old_family *old)
{
	struct kept_session session;
	struct wire_fault fault;
	struct bytes first;
	size_t cursor = 0;

	if (!wire_next(old->record.sessions, &cursor, &first) ||
	    wire_decode_known(&session, &kept_session_schema, first, &fault))
		return false;
	*ownerp = (uid_t)session.owner;
	return true;
}

static struct nursery *nursery_among(struct list *nurseries, struct bytes text, bool owned, uid_t owner)
{
	struct nursery *nursery;

	list_for_each (nursery, nurseries, node)
		if (nursery->owned == owned && nursery->owner == owner && profile_is(nursery->profile, text))
			return nursery;
	return NULL;
}

/* One of today's templates: its user's, or the one that nobody has yet. */
static struct nursery *nursery_of_today(struct families *families, struct bytes text, uid_t owner)
{
	struct nursery *nursery = nursery_among(&families->sessions->cages->nurseries, text, true, owner);

	if (nursery)
		return nursery;
	nursery = nursery_among(&families->sessions->cages->nurseries, text, false, 0);
	if (nursery)
		cages_own_nursery(families->sessions->cages, nursery, owner);
	return nursery;
}

/* One whose settings have changed since belongs to no template of today's, and where there is none left for its
 * user it has one that is not even started, unless a session still has to be made. */
static struct nursery *nursery_for(struct families *families, struct bytes text, uid_t owner)
{
	struct nursery *nursery = nursery_of_today(families, text, owner);
	struct config_error error;
	struct config *config;

	if (!nursery)
		nursery = nursery_among(&families->sessions->cages->retired, text, true, owner);
	if (nursery)
		return nursery;
	if (config_parse_in_force(&config, text, "the last router", &error)) {
		log_error(NULL, "%s", error.text);
		return NULL;
	}
	for (size_t i = 0; i < config->n_profiles; i++)
		if (profile_is(config->profiles[i], text) &&
		    !nursery_new(&nursery, families->sessions->cages, config->profiles[i])) {
			nursery->retired = true;
			list_append(&families->sessions->cages->retired, &nursery->node);
			cages_own_nursery(families->sessions->cages, nursery, owner);
			config_free(config);
			return nursery;
		}
	config_free(config);
	return NULL;
}

/* ---- interpreters ---- */

static int interpreter_from(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct interpreter_record record;
	struct interpreter *interpreter;
	struct vault_item *held;
	struct wire_fault fault;
	int r;

	if (wire_decode_known(&record, &interpreter_record_schema, body, &fault))
		return -EBADMSG;
	held = vault_find(revival->families->vault, VAULT_INTERPRETER, warden->family, record.serial);
	if (!held) {
		log_error(NULL, "interpreter %" PRIu64 " is not held", record.serial);
		return -ENOENT;
	}
	r = interpreter_revive(&interpreter, warden, &record, held->fds, held->n_fds);
	if (r)
		return r;
	held->taken = true;
	list_append(&warden->interpreters, &interpreter->node);
	return 0;
}

/* Its descriptors go along again if it is not known to have them. */
static int message_from(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct interpreter *to;
	struct message_record record;
	struct vault_item *subject;
	struct wire_fault fault;
	int theirs[PEER_FDS_MAX];
	size_t n = 0;

	if (wire_decode_known(&record, &message_record_schema, body, &fault) || record.n_fds > PEER_FDS_MAX)
		return -EBADMSG;
	to = record.to ? warden_interpreter(revival->warden, record.to) : NULL;
	if (record.to && !to)
		return 0;
	subject =
		vault_find(revival->families->vault, record.subject & SUBJECT_TASK ? VAULT_TASK : VAULT_INTERPRETER,
			   warden->family, record.subject & ~SUBJECT_TASK);
	for (size_t i = 0; subject && n < record.n_fds && i < STORE_FDS_MAX; i++)
		if (subject->fds[i] >= 0)
			theirs[n++] = steal_fd(&subject->fds[i]);
	if (n < record.n_fds) {
		while (n > 0)
			fd_close(theirs[--n]);
		return 0;
	}
	if (to && warden->sweeping)
		peer_hold(&to->peer, true);
	return peer_repeat(to ? &to->peer : &warden->peer, record.number, record.datagram, record.subject, theirs,
			   n);
}

/* ---- a family ---- */

static void done_calls_from(struct done_calls *done_calls, const struct old_family *old)
{
	struct done_call_record record;
	size_t next = 0;

	while (old_family_record(old, &next, &done_call_record_schema, 0, &record))
		done_calls_read(done_calls, &record);
	done_calls->forgotten = old->record.done_calls_forgotten;
}

static int each(const struct revival *revival, struct bytes records,
		int (*make)(const struct revival *revival, struct bytes body))
{
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(records, &cursor, &item))
		r = make(revival, item);
	return r;
}

/* Listened to by the session that had it. */
static int interpreter_reattach(const struct revival *revival, struct bytes body)
{
	struct interpreter_record record;
	struct interpreter *interpreter;
	struct wire_fault fault;
	struct session *session;

	if (wire_decode_known(&record, &interpreter_record_schema, body, &fault))
		return -EBADMSG;
	interpreter = warden_interpreter(revival->warden, record.serial);
	list_for_each (session, &revival->warden->tenants, tenant.node) {
		if (!interpreter || session->tenant.number != record.session)
			continue;
		if (interpreter != session->successor)
			return interpreter_attach(interpreter, &session->tenant);
		interpreter->tenant = &session->tenant;
	}
	return 0;
}

/* Its descriptors, which go to the keeper just before the record that says it is ready. One without that record is
 * not taken over but made again: nobody has worked in there yet, and it goes when its control pair is closed. */
static struct vault_item *warden_held(struct families *families, const struct old_family *old)
{
	if (old->record.state < WARDEN_READY)
		return NULL;
	return vault_find(families->vault, VAULT_WARDEN, old->family, 0);
}

static int family_revive(struct families *families, struct old_family *old)
{
	const struct family_record *record = &old->record;
	struct vault_item *held = warden_held(families, old);
	struct revival revival = {.families = families, .old = old};
	struct nursery *nursery = NULL;
	struct session *session;
	uid_t owner;
	int r;

	if (owner_of(&owner, old))
		nursery = nursery_for(families, old->profile, owner);
	if (!nursery)
		return -EINVAL;
	r = warden_revive(&revival.warden, families->sessions->cages, nursery, old->family, record,
			  held ? held->fds : NULL);
	if (r)
		return r;
	if (held)
		held->taken = true;
	list_append(&nursery->wardens, &revival.warden->node);
	done_calls_from(&revival.warden->done_calls, old);
	r = each(&revival, record->interpreters, interpreter_from);
	r = r ? r : each(&revival, record->sessions, revival_session);
	r = r ? r : each(&revival, record->interpreters, interpreter_reattach);
	r = r ? r : each(&revival, record->messages, message_from);
	/* Not before: what is read above is read from it. */
	revival.warden->ledger = old->ledger;
	ledger_init(&old->ledger);
	if (r) {
		warden_failed(revival.warden, bytes_of(strerror(-r)));
		return r;
	}
	list_for_each (session, &revival.warden->tenants, tenant.node)
		session_on_revived(session);
	fault_at("revival", "end", warden_session(revival.warden));
	blame_end_open(revival.warden);
	nursery_warm(nursery);
	warden_touch(revival.warden);
	return 0;
}

/* Each is settled by itself: what the router dies of is known. */
void families_revive(struct families *families, void (*settle)(struct families *families))
{
	struct old_family *old;
	struct session *session;
	size_t n = 0;

	list_for_each (old, &families->old, node) {
		int r;

		breaker_take(families->sessions->breaker);
		blame_revival(families->sessions->breaker, old->family, TURN_REVIVE);
		fault_at("revival", "begin", first_session(old));
		r = family_revive(families, old);
		if (r)
			family_lost(families->sessions->promises, old->family, r);
		old_family_free(old);
		settle(families);
		errand_beat();
	}
	list_for_each (session, &families->sessions->all, node)
		n += session->state != SESSION_CLOSING;
	/* Where no counters were kept. */
	families->sessions->stats.opened = MAX(families->sessions->stats.opened, n);
	if (n > 0)
		log_info(NULL,
			 n == 1 ? "%zu session of the last router goes on"
				: "%zu sessions of the last router go on",
			 n);
}
