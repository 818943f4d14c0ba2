#include "fakes/warden.h"

#include "vault/records.h"
#include "warden/budget.h"
#include "warden/cages.h"
#include "warden/nursery.h"
#include "warden/prepared.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

struct order *fake_orders;
size_t fake_n_orders;
static size_t n_allocated;

const char *const fake_order_names[_ORDER_N] = {
	[ORDER_SPAWN] = "spawn", [ORDER_FREEZE] = "freeze", [ORDER_THAW] = "thaw",
	[ORDER_ADOPT] = "adopt", [ORDER_SIGNAL] = "signal", [ORDER_DISCARD] = "discard",
	[ORDER_SWEEP] = "sweep", [ORDER_KILL] = "kill",	    [ORDER_SEND] = "send",
};

unsigned fake_failures;
int fake_failure = -EMFILE;
bool fake_spare = true;

static void order(const struct order *order)
{
	if (fake_n_orders == n_allocated) {
		n_allocated = n_allocated ? 2 * n_allocated : 64;
		fake_orders = realloc(fake_orders, n_allocated * sizeof(*fake_orders));
		if (!fake_orders)
			abort();
	}
	fake_orders[fake_n_orders++] = *order;
}

static bool fails(void)
{
	if (fake_failures == 0)
		return false;
	fake_failures--;
	return true;
}

/* ---- what they share ---- */

static struct nursery *nursery_of(struct cages *cages)
{
	return container_of(list_first(&cages->nurseries), struct nursery, node);
}

void interpreter_free_dead(struct grave *grave)
{
	free(container_of(grave, struct interpreter, grave));
}

static void warden_free_dead(struct grave *grave)
{
	struct warden *warden = container_of(grave, struct warden, grave);
	struct list *first;

	while ((first = list_first(&warden->interpreters))) {
		list_remove(first);
		free(container_of(first, struct interpreter, node));
	}
	list_remove(&warden->touched);
	list_remove(&warden->node);
	ledger_deinit(&warden->ledger);
	done_calls_deinit(&warden->done_calls);
	free(warden->workspace);
	free(warden);
}

void fake_cages_init(struct cages *cages, struct event_loop *loop, struct breaker *breaker,
		     const struct config *config, struct profile *profile)
{
	struct nursery *nursery = calloc(1, sizeof(*nursery));

	if (!nursery)
		abort();
	*cages = (struct cages){.loop = loop, .breaker = breaker, .config = config};
	list_init(&cages->nurseries);
	list_init(&cages->retired);
	list_init(&cages->due);
	list_init(&cages->touched);
	nursery->cages = cages;
	nursery->profile = profile;
	nursery->owned = true;
	nursery->owner = STAGE_OWNER;
	list_init(&nursery->node);
	list_init(&nursery->wardens);
	list_append(&cages->nurseries, &nursery->node);
	graveyard_init(&cages->dead_interpreters, interpreter_free_dead);
	graveyard_init(&cages->dead_wardens, warden_free_dead);
}

void fake_free_interpreters(struct cages *cages)
{
	graveyard_empty(&cages->dead_interpreters);
}

void fake_free_wardens(struct cages *cages)
{
	graveyard_empty(&cages->dead_wardens);
}

void fake_cages_deinit(struct cages *cages)
{
	fake_free_interpreters(cages);
	fake_free_wardens(cages);
	free(nursery_of(cages));
	free(fake_orders);
	fake_orders = NULL;
	fake_n_orders = n_allocated = 0;
}

/* There is one. */
struct nursery *cages_nursery_for(struct cages *cages, struct profile *profile, uid_t owner, struct bytes code)
{
	(void)profile;
	(void)owner;
	(void)code;
	return nursery_of(cages);
}

struct nursery *cages_nursery(struct cages *cages, struct profile *profile, uid_t owner)
{
	return cages_nursery_for(cages, profile, owner, (struct bytes){.data = NULL});
}

void cages_retire(struct cages *cages, struct nursery *nursery)
{
	(void)cages;
	(void)nursery;
}

static struct warden *warden_make(struct cages *cages)
{
	struct warden *warden = calloc(1, sizeof(*warden));

	if (!warden)
		abort();
	warden->cages = cages;
	warden->nursery = nursery_of(cages);
	warden->profile = warden->nursery->profile;
	warden->state = WARDEN_CAGING;
	warden->family = warden->serial = ++cages->last_serial;
	warden->group = GROUP_NONE;
	warden->theirs = warden->pidfd = warden->directory = -1;
	warden->pidfd_source = EVENT_SOURCE_NONE;
	ledger_init(&warden->ledger);
	list_init(&warden->node);
	list_init(&warden->touched);
	list_init(&warden->tenants);
	list_init(&warden->interpreters);
	list_init(&warden->peer.messages);
	if (asprintf(&warden->workspace, "/nowhere/%llu", (unsigned long long)warden->serial) < 0)
		abort();
	return warden;
}

static struct interpreter *interpreter_make(struct warden *warden, enum interpreter_role role);

static void stands(struct warden *warden)
{
	warden->state = WARDEN_READY;
	interpreter_make(warden, ROLE_LIVE)->adopted = true;
}

void prepared_asked(struct nursery *nursery, const char *set, const char *path, struct bytes requirements)
{
	(void)nursery;
	(void)set;
	(void)path;
	(void)requirements;
}

bool prepared_any(const struct nursery *nursery)
{
	(void)nursery;
	return false;
}

int nursery_claim(struct nursery *nursery, struct profile *profile, const char *set, struct tenant *tenant,
		  struct warden **wardenp)
{
	struct warden *warden = warden_make(nursery->cages);

	(void)profile;
	(void)set;
	warden_join(warden, tenant);
	if (fake_spare)
		stands(warden);
	*wardenp = warden;
	return 0;
}

/* ---- wardens ---- */

void warden_touch(struct warden *warden)
{
	list_move(&warden->cages->touched, &warden->touched);
}

struct interpreter *fake_interpreter(struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, &warden->interpreters, node)
		if (interpreter->serial == serial)
			return interpreter;
	return NULL;
}

bool fake_in_flight(const struct warden *warden)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		if (!interpreter->adopted && !interpreter->loose)
			return true;
	return false;
}

static struct interpreter *interpreter_make(struct warden *warden, enum interpreter_role role)
{
	struct interpreter *interpreter = calloc(1, sizeof(*interpreter));

	if (!interpreter)
		abort();
	interpreter->warden = warden;
	interpreter->serial = ++warden->last_interpreter;
	interpreter->role = role;
	interpreter->pipes[0] = interpreter->pipes[1] = interpreter->buffer = -1;
	interpreter->peer.fd = interpreter->peer.letters = interpreter->peer.source.fd = -1;
	list_init(&interpreter->peer.messages);
	list_init(&interpreter->node);
	list_append(&warden->interpreters, &interpreter->node);
	warden_touch(warden);
	return interpreter;
}

int warden_spawn(struct warden *warden, const char *workspace, struct interpreter **interpreterp)
{
	(void)workspace;
	if (fails())
		return fake_failure;
	*interpreterp = interpreter_make(warden, ROLE_LIVE);
	(*interpreterp)->adopted = true;
	order(&(struct order){.kind = ORDER_SPAWN, .warden = warden, .serial = (*interpreterp)->serial});
	return 0;
}

int warden_freeze(struct warden *warden, struct interpreter *live, uint64_t cell, struct interpreter **frozenp)
{
	if (fails())
		return fake_failure;
	*frozenp = interpreter_make(warden, ROLE_FROZEN);
	(*frozenp)->loose = cell != 0;
	order(&(struct order){.kind = ORDER_FREEZE,
			      .warden = warden,
			      .serial = (*frozenp)->serial,
			      .source = live->serial,
			      .number = cell});
	return 0;
}

int warden_thaw(struct warden *warden, struct interpreter *frozen, const struct spawn_message *how,
		struct interpreter **interpreterp)
{
	(void)how;
	if (fails())
		return fake_failure;
	*interpreterp = interpreter_make(warden, ROLE_LIVE);
	order(&(struct order){
		.kind = ORDER_THAW, .warden = warden, .serial = (*interpreterp)->serial, .source = frozen->serial});
	return 0;
}

static void sweep_try(struct warden *warden)
{
	struct tenant *tenant;
	bool wanted = false;

	list_for_each (tenant, &warden->tenants, node)
		wanted |= tenant->sweep == SWEEP_WANTED;
	if (!wanted || warden->sweeping || fake_in_flight(warden))
		return;
	order(&(struct order){.kind = ORDER_SWEEP, .warden = warden});
	warden->sweeping = true;
	list_for_each (tenant, &warden->tenants, node)
		if (tenant->sweep == SWEEP_WANTED)
			tenant->sweep = SWEEP_SENT;
}

int warden_adopt(struct warden *warden, struct interpreter *interpreter, uint64_t pid)
{
	if (fails())
		return fake_failure;
	order(&(struct order){.kind = ORDER_ADOPT, .warden = warden, .serial = interpreter->serial, .number = pid});
	interpreter->adopted = interpreter->alive = true;
	warden_touch(warden);
	sweep_try(warden);
	return 0;
}

int warden_signal(struct warden *warden, struct interpreter *interpreter, int signal)
{
	if (fails())
		return fake_failure;
	interpreter->signals_unanswered++;
	order(&(struct order){
		.kind = ORDER_SIGNAL, .warden = warden, .serial = interpreter->serial, .number = (uint64_t)signal});
	warden_touch(warden);
	return 0;
}

static bool hand_on(struct warden *warden, struct interpreter *frozen)
{
	struct tenant *heir;

	list_for_each (heir, &warden->tenants, node) {
		if (!heir->ops->grows_from(heir, frozen))
			continue;
		frozen->tenant = heir;
		return true;
	}
	return false;
}

struct interpreter *warden_interpreter(const struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		if (interpreter->serial == serial)
			return interpreter;
	return NULL;
}

struct interpreter *warden_discard(struct warden *warden, struct interpreter *interpreter)
{
	if (interpreter)
		warden_touch(warden);
	if (interpreter && !hand_on(warden, interpreter)) {
		order(&(struct order){.kind = ORDER_DISCARD, .warden = warden, .serial = interpreter->serial});
		list_remove(&interpreter->node);
		(void)graveyard_bury(&warden->cages->dead_interpreters, &interpreter->grave);
		sweep_try(warden);
	}
	return NULL;
}

void warden_sweep(struct warden *warden, struct tenant *tenant)
{
	tenant->sweep = SWEEP_WANTED;
	warden_touch(warden);
	sweep_try(warden);
}

struct interpreter *warden_first(struct warden *warden)
{
	struct list *first = list_first(&warden->interpreters);

	return first ? container_of(first, struct interpreter, node) : NULL;
}

void warden_join(struct warden *warden, struct tenant *tenant)
{
	list_append(&warden->tenants, &tenant->node);
	tenant->number = ++warden->last_session;
	warden->used = true;
	warden_touch(warden);
}

static bool any_stays(const struct warden *warden)
{
	struct tenant *tenant;

	list_for_each (tenant, (struct list *)&warden->tenants, node)
		if (!tenant->ops->is_closing(tenant))
			return true;
	return false;
}

static struct interpreter *first_of(struct warden *warden, const struct tenant *tenant)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, &warden->interpreters, node)
		if (interpreter->tenant == tenant)
			return interpreter;
	return NULL;
}

void warden_leave(struct warden *warden, struct tenant *tenant)
{
	struct interpreter *interpreter;

	if (!any_stays(warden)) {
		if (warden->state != WARDEN_DYING)
			order(&(struct order){.kind = ORDER_KILL, .warden = warden});
		warden->state = WARDEN_DYING;
		warden_touch(warden);
		return;
	}
	while ((interpreter = first_of(warden, tenant)))
		warden_discard(warden, interpreter);
	warden_sweep(warden, tenant);
}

void budget_count(struct warden *warden)
{
	(void)warden;
}

void quota_on_back(struct warden *warden)
{
	(void)warden;
}

void quota_on_run(struct warden *warden)
{
	(void)warden;
}

/* ---- interpreters ---- */

int interpreter_attach(struct interpreter *interpreter, struct tenant *tenant)
{
	interpreter->tenant = tenant;
	interpreter->peer.source.fd = 0;
	return fails() ? fake_failure : 0;
}

static uint64_t number_of(const struct wire_schema *schema, const void *message)
{
	if (schema == &returned_message_schema)
		return ((const struct returned_message *)message)->number;
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == WIRE_UINT &&
		    (bytes_is(schema->fields[i].name, "cell") || bytes_is(schema->fields[i].name, "serial")))
			return *(const uint64_t *)((const char *)message + schema->fields[i].offset);
	return 0;
}

int interpreter_send(struct interpreter *interpreter, const struct wire_schema *schema, const void *message)
{
	if (fails())
		return -ENOMEM;
	warden_touch(interpreter->warden);
	order(&(struct order){.kind = ORDER_SEND,
			      .warden = interpreter->warden,
			      .serial = interpreter->serial,
			      .schema = schema,
			      .number = number_of(schema, message)});
	return 0;
}

int interpreter_send_fd(struct interpreter *interpreter, const struct wire_schema *schema, const void *message,
			uint64_t subject, int fd)
{
	(void)subject;
	fd_close(fd);
	return interpreter_send(interpreter, schema, message);
}

void interpreter_drain(struct interpreter *interpreter)
{
	(void)interpreter;
}

void interpreter_salvage(struct interpreter *interpreter)
{
	(void)interpreter;
}

uint64_t interpreter_noted(const struct interpreter *interpreter)
{
	return interpreter->effects;
}

void interpreter_mark_interrupted(struct interpreter *interpreter, uint64_t cell)
{
	(void)interpreter;
	(void)cell;
}

void interpreter_rest(struct interpreter *interpreter, size_t size)
{
	(void)interpreter;
	(void)size;
}

void interpreter_push_back(struct interpreter *interpreter, uint64_t us)
{
	(void)interpreter;
	(void)us;
}

void interpreter_pause(struct interpreter *interpreter, bool paused)
{
	interpreter->paused = paused;
}

void interpreter_ignore(struct interpreter *interpreter)
{
	interpreter->peer.source.fd = -1;
}

bool fake_listens(const struct interpreter *interpreter)
{
	return interpreter->peer.source.fd >= 0;
}

bool peer_pending(const struct peer *peer)
{
	(void)peer;
	return false;
}

void peer_rest(struct peer *peer, uint64_t us)
{
	(void)peer;
	(void)us;
}

const char *reason_told(const char *reason)
{
	return reason;
}

/* ---- what a warden says ---- */

void fake_ready(struct warden *warden)
{
	struct tenant *tenant;

	stands(warden);
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_ready(tenant);
}

void fake_signalled(struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter = fake_interpreter(warden, serial);

	if (interpreter && interpreter->signals_unanswered > 0 && --interpreter->signals_unanswered == 0 &&
	    interpreter->tenant)
		interpreter->tenant->ops->on_signalled(interpreter->tenant, interpreter);
}

void fake_swept(struct warden *warden)
{
	struct tenant *tenant;

	warden->sweeping = false;
	list_for_each (tenant, &warden->tenants, node) {
		if (tenant->sweep != SWEEP_SENT)
			continue;
		tenant->sweep = SWEEP_NONE;
		tenant->ops->on_swept(tenant);
	}
	sweep_try(warden);
}

bool fake_exited(struct warden *warden, uint64_t serial, int status, bool last_words)
{
	struct interpreter *interpreter = fake_interpreter(warden, serial);

	if (!interpreter || !interpreter->tenant)
		return false;
	if (last_words)
		interpreter->tenant->ops->on_last_words(interpreter->tenant, interpreter);
	else
		interpreter->tenant->ops->on_exited(interpreter->tenant, interpreter, status, false);
	return last_words;
}

void fake_gone(struct warden *warden)
{
	struct list *first;

	warden->state = WARDEN_DYING;
	while ((first = list_first(&warden->tenants))) {
		struct tenant *tenant = container_of(first, struct tenant, node);

		tenant->ops->on_gone(tenant);
	}
	(void)graveyard_bury(&warden->cages->dead_wardens, &warden->grave);
}

void fake_failed(struct warden *warden, uint64_t serial)
{
	struct tenant *tenant, *stays;

	list_for_each (tenant, &warden->tenants, node)
		if (tenant->ops->on_no_successor(tenant, serial))
			return;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_stillborn(tenant, serial);
	snprintf(warden->reason, sizeof(warden->reason), "it could not be made");
	do {
		stays = NULL;
		list_for_each (tenant, &warden->tenants, node)
			if (!tenant->ops->is_closing(tenant) && !stays)
				stays = tenant;
		if (stays)
			stays->ops->on_failed(stays);
	} while (stays);
}

/* ---- what an interpreter says ---- */

void fake_say(struct interpreter *interpreter, const struct wire_schema *schema, const void *message)
{
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	if (wire_encode(&buffer, schema, message))
		abort();
	interpreter->tenant->ops->on_frame(interpreter->tenant, interpreter, wire_bytes(&buffer));
	msgpack_sbuffer_destroy(&buffer);
}

void fake_hang_up(struct interpreter *interpreter)
{
	interpreter_ignore(interpreter);
	interpreter->tenant->ops->on_lost(interpreter->tenant, interpreter, NULL);
}

/* ---- of the last router ---- */

int warden_revive(struct warden **wardenp, struct cages *cages, struct nursery *nursery, uint64_t family,
		  const struct family_record *record, int *fds)
{
	struct warden *warden = warden_make(cages);

	if (fds)
		fd_closep(&fds[0]);
	warden->nursery = nursery;
	warden->family = family;
	warden->serial = record->serial;
	warden->state = fds ? (enum warden_state)record->state : WARDEN_WANTED;
	warden->last_interpreter = record->last_interpreter;
	warden->last_session = record->last_session;
	warden->last_question = record->last_question;
	warden->sweeping = fds && record->sweeping;
	warden->used = true;
	*wardenp = warden;
	return 0;
}

int interpreter_revive(struct interpreter **interpreterp, struct warden *warden,
		       const struct interpreter_record *record, int *fds, size_t n_fds)
{
	struct interpreter *interpreter =
		interpreter_make(warden, record->role == ROLE_FROZEN ? ROLE_FROZEN : ROLE_LIVE);

	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&fds[i]);
	warden->last_interpreter--;
	list_remove(&interpreter->node);
	interpreter->serial = record->serial;
	interpreter->peer.sent = record->sent;
	interpreter->peer.received = record->received;
	interpreter->size = record->size;
	interpreter->adopted = record->adopted;
	interpreter->alive = record->alive;
	interpreter->signals_unanswered = (unsigned)record->signals_unanswered;
	interpreter->last_words = (unsigned)record->last_words;
	interpreter->effects = record->effects;
	*interpreterp = interpreter;
	return 0;
}

struct bytes warden_session(const struct warden *warden)
{
	struct list *first = list_first((struct list *)&warden->tenants);

	return bytes_of(first ? container_of(first, struct tenant, node)->id : NULL);
}

void warden_own(struct warden *warden, struct party *party)
{
	(void)warden;
	(void)party;
}

/* What a test does not get to. */

void warden_failed(struct warden *warden, struct bytes reason)
{
	(void)warden;
	(void)reason;
	abort();
}

void warden_kill_now(struct warden *warden)
{
	warden->kill_due = false;
}

void cages_own_nursery(struct cages *cages, struct nursery *nursery, uid_t owner)
{
	(void)cages;
	(void)nursery;
	(void)owner;
	abort();
}

int nursery_new(struct nursery **nurseryp, struct cages *cages, struct profile *profile)
{
	(void)nurseryp;
	(void)cages;
	(void)profile;
	abort();
}

void nursery_warm(struct nursery *nursery)
{
	(void)nursery;
}

void peer_hold(struct peer *peer, bool held)
{
	peer->held = held;
}

int peer_repeat(struct peer *peer, uint64_t number, struct bytes datagram, uint64_t subject, int *fds, size_t n_fds)
{
	(void)peer;
	(void)number;
	(void)datagram;
	(void)subject;
	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&fds[i]);
	abort();
}
/* This one keeps no files. */
uint64_t warden_keep_files(struct warden *warden, const char *directory, uint64_t max, struct bytes mapped)
{
	(void)warden;
	(void)directory;
	(void)max;
	(void)mapped;
	return 0;
}

int warden_bring_files(struct warden *warden, const struct tenant *tenant, const char *directory, uint64_t number)
{
	(void)warden;
	(void)tenant;
	(void)directory;
	(void)number;
	return -EPIPE;
}

void warden_leave_files(struct warden *warden, const char *directory, uint64_t number)
{
	(void)warden;
	(void)directory;
	(void)number;
}

void warden_drop_files(struct warden *warden, uint64_t number)
{
	(void)warden;
	(void)number;
}

uint64_t warden_next_number(struct warden *warden)
{
	return ++warden->last_files;
}

uint64_t warden_compare_files(struct warden *warden, uint64_t since, uint64_t until)
{
	(void)warden;
	(void)since;
	(void)until;
	return 0;
}

uid_t cages_builder_uid(const struct cages *cages)
{
	(void)cages;
	return 0;
}
