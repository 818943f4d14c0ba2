/* Templates and spares. If a template fails, it is tried again when it is needed, after a pause that grows;
 * sessions that waited for it are told its reason. If it is killed, it is started again at once, and nobody is
 * told. */
#include "nursery.h"

#include "base/descriptors.h"
#include "base/log.h"
#include "base/memory.h"
#include "budget.h"
#include "cages.h"
#include "config/python.h"
#include "config/value.h"
#include "places.h"
#include "prepared.h"
#include "tenant.h"
#include "vault/breaker.h"
#include "vault/errand.h"
#include "vault/fault.h"

#include "proto/channel.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

/* A refill waits a moment, so that it does not compete with the cell of the session that took the spare. */
#define REFILL_US 2000
#define RETRY_US 20000
#ifndef WARM_US
#define WARM_US (120 * 1000000ULL)
#endif
#define BACKOFF_US 500000
#define DEATHS_MAX 5
#define BACKOFF_MAX_US (30 * 1000000ULL)

#define GIVEN_UP "laird's router died again and again of this template's messages"

static void wanted_request(struct nursery *nursery);

int nursery_new(struct nursery **nurseryp, struct cages *cages, struct profile *profile)
{
	struct nursery *nursery = malloc(sizeof(*nursery));

	if (!nursery)
		return -ENOMEM;
	*nursery = (struct nursery){
		.cages = cages,
		.profile = profile_ref(profile),
		.channel = -1,
		.theirs = -1,
		.pidfd = -1,
		.channel_source = EVENT_SOURCE_NONE,
	};
	list_init(&nursery->node);
	list_init(&nursery->wardens);
	list_init(&nursery->prepared);
	share_init(&nursery->share, &cages->cgroups);
	*nurseryp = nursery;
	return 0;
}

static void template_drop(struct nursery *nursery)
{
	event_remove(nursery->cages->loop, &nursery->channel_source);
	timer_clear(nursery->cages->loop, &nursery->patience);
	fd_closep(&nursery->channel);
	fd_closep(&nursery->theirs);
	fd_closep(&nursery->pidfd);
	nursery->pid = 0;
	nursery->serial = 0;
	nursery->hurried = nursery->rough = false;
	nursery->state = NURSERY_DOWN;
	cages_on_loaded(nursery->cages);
}

struct nursery *nursery_free(struct nursery *nursery)
{
	if (nursery) {
		template_drop(nursery);
		prepared_drop_all(nursery);
		share_drop(&nursery->share, &nursery->cages->cgroups);
		timer_clear(nursery->cages->loop, &nursery->refill);
		timer_clear(nursery->cages->loop, &nursery->retry);
		timer_clear(nursery->cages->loop, &nursery->idle);
		list_remove(&nursery->node);
		profile_unref(nursery->profile);
		free(nursery);
	}
	return NULL;
}

static void release(struct nursery *held)
{
	if (held && held->held) {
		held->held = false;
		nursery_warm(held);
	}
}

static void nursery_failed(struct nursery *nursery, struct bytes reason)
{
	uint64_t pause = MIN((uint64_t)BACKOFF_US << MIN(nursery->failures, 10U), BACKOFF_MAX_US);
	struct warden *warden;

	bytes_copy(nursery->reason, sizeof(nursery->reason), reason);
	log_error(NULL, "template of profile %s: %s", nursery->profile->name, nursery->reason);
	if (nursery->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, nursery->pidfd, SIGKILL, NULL, 0);
	template_drop(nursery);
	nursery->failures++;
	nursery->not_before = event_now() + pause;
	list_for_each (warden, &nursery->wardens, node)
		if (warden->state <= WARDEN_MAKING)
			warden_failed(warden, bytes_of(nursery->reason));
	/* What is wrong with the profile is for every session to know. */
	if (nursery->bare)
		cages_retire(nursery->cages, nursery->bare);
}

/* Whether a session waits for something that only a template can make. */
static bool anybody_waits(const struct nursery *nursery)
{
	struct warden *warden;

	list_for_each (warden, (struct list *)&nursery->wardens, node)
		if (warden->state <= WARDEN_MAKING && !list_empty(&warden->tenants))
			return true;
	return false;
}

/* A retired nursery must still make the wardens that it owes. */
static bool is_needed(const struct nursery *nursery)
{
	return !nursery->retired || anybody_waits(nursery);
}

/* The template died without a word. It holds no state, so another is as good, unless each dies before it has
 * made anything. */
static void template_died(struct nursery *nursery)
{
	struct warden *warden;

	if (nursery->deaths >= DEATHS_MAX) {
		nursery_failed(nursery, BYTES("it died"));
		return;
	}
	nursery->deaths++;
	log_warn(NULL, "template of profile %s died%s", nursery->profile->name,
		 is_needed(nursery) ? ": starting another" : "");
	template_drop(nursery);
	list_for_each (warden, &nursery->wardens, node)
		if (warden->state == WARDEN_MAKING)
			warden_want_again(warden);
	nursery_warm(nursery);
}

/* A template that has made all that it owes has nothing to do any more once its nursery is retired. */
static void template_end(struct nursery *nursery)
{
	if (nursery->state == NURSERY_UP && !is_needed(nursery))
		template_drop(nursery);
}

static struct thing thing_of_nursery(const struct nursery *nursery, uint32_t turn)
{
	return (struct thing){.kind = BLAME_TEMPLATE,
			      .turn = turn,
			      .whose = breaker_digest(BREAKER_DIGEST, bytes_of(nursery->profile->name)),
			      .number = nursery->owned ? nursery->owner + 1ULL : 0};
}

static void blame_nursery(const struct nursery *nursery, enum blame_turn turn)
{
	const struct thing thing = thing_of_nursery(nursery, turn);

	blame_note(nursery->cages->breaker, &thing, "template", bytes_of(nursery->profile->name));
}

void nursery_hand(const struct nursery *nursery)
{
	blame_nursery(nursery, TURN_REFILL);
}

/* Each template begins anew, so if its first message was handled, this says nothing of its second. */
static void blame_nursery_message(const struct nursery *nursery, size_t type)
{
	const struct thing thing = thing_of_nursery(nursery, _TURN_N + (uint32_t)type);

	breaker_name(nursery->cages->breaker, &thing);
}

/* Whether the template is not to be started any more. */
static bool blame_nursery_is_open(const struct nursery *nursery)
{
	const struct thing thing = thing_of_nursery(nursery, TURN_CHANNEL);

	return breaker_is_open_for(nursery->cages->breaker, BLAME_TEMPLATE, thing.whose, thing.number);
}

static void on_impatience(struct timer *timer)
{
	struct nursery *nursery = container_of(timer, struct nursery, patience);

	blame_nursery(nursery, TURN_PATIENCE);
	nursery_failed(nursery, BYTES("it was not ready in time"));
}

static int template_start(struct nursery *nursery)
{
	uint32_t serial = ++nursery->cages->last_template;
	const struct profile *profile = nursery->profile;
	int r = errand_start_template(profile->name, profile->language, python_version(profile->python), serial,
				      nursery->theirs);

	if (!r)
		nursery->serial = serial;
	return r;
}

void nursery_warm(struct nursery *nursery)
{
	int r;

	nursery->ahead = false;
	if (nursery->state != NURSERY_DOWN || nursery->held || !is_needed(nursery))
		return;
	if (blame_nursery_is_open(nursery)) {
		nursery_failed(nursery, BYTES(GIVEN_UP));
		return;
	}
	r = channel_pair(&nursery->channel, &nursery->theirs);
	if (!r)
		r = template_start(nursery);
	if (r) {
		nursery_failed(nursery, bytes_of(strerror(-r)));
		return;
	}
	if (nursery->makeshift)
		log_info(NULL, "profile %s: a template without what it preloads starts", nursery->profile->name);
	fd_closep(&nursery->theirs);
	nursery->state = NURSERY_STARTING;
	(void)timer_set(nursery->cages->loop, &nursery->patience, event_now() + WARM_US, on_impatience);
}

/* For any session. */
static bool is_spare(const struct warden *warden)
{
	return list_empty(&warden->tenants) && warden->state != WARDEN_DYING && !warden->set[0] &&
	       warden->profile == warden->nursery->profile;
}

size_t nursery_spares(const struct nursery *nursery)
{
	struct warden *warden;
	size_t n = 0;

	list_for_each (warden, &nursery->wardens, node)
		n += is_spare(warden) && warden->state == WARDEN_READY;
	return n;
}

/* Those on their way count too. */
static bool spares_short(const struct nursery *nursery)
{
	struct warden *warden;
	size_t n = 0;

	list_for_each (warden, &nursery->wardens, node)
		n += is_spare(warden);
	return n < nursery->profile->spares;
}

int nursery_order(struct nursery *nursery, const char *set, struct warden **wardenp)
{
	int r = warden_new(wardenp, nursery->cages, nursery, nursery->profile);

	if (r)
		return r;
	snprintf((*wardenp)->set, sizeof((*wardenp)->set), "%s", set);
	list_append(&nursery->wardens, &(*wardenp)->node);
	wanted_request(nursery);
	return 0;
}

static void on_refill(struct timer *timer)
{
	struct nursery *nursery = container_of(timer, struct nursery, refill);
	struct warden *warden;

	blame_nursery(nursery, TURN_REFILL);
	if (nursery->state != NURSERY_UP || nursery->retired || !spares_short(nursery) ||
	    !descriptors_left(DESCRIPTORS_SESSION))
		return;
	if (nursery_order(nursery, "", &warden))
		return;
	if (spares_short(nursery))
		(void)timer_set(nursery->cages->loop, &nursery->refill, event_now() + REFILL_US, on_refill);
}

/* Spares are made when all is warmed up, and their memory laid out for good. */
static void refill_soon(struct nursery *nursery, uint64_t pause)
{
	if (!nursery->retired && !nursery->rough && nursery->profile->spares > 0)
		(void)timer_set(nursery->cages->loop, &nursery->refill, event_now() + pause, on_refill);
}

static void on_retry(struct timer *timer)
{
	struct nursery *nursery = container_of(timer, struct nursery, retry);

	blame_nursery(nursery, TURN_RETRY);
	wanted_request(nursery);
}

/* Ask the template for every warden that is wanted; one it has no room for now is asked for again. */
static void wanted_request(struct nursery *nursery)
{
	struct warden *warden;

	if (nursery->state != NURSERY_UP)
		return;
	list_for_each (warden, &nursery->wardens, node) {
		int r;

		if (warden->state != WARDEN_WANTED || (nursery->rough && list_empty(&warden->tenants)))
			continue;
		r = warden_request(warden, nursery->channel);
		if (r == CHANNEL_E_EMPTY) {
			(void)timer_set(nursery->cages->loop, &nursery->retry, event_now() + RETRY_US, on_retry);
			return;
		}
		if (r == CHANNEL_E_EOF) {
			template_died(nursery);
			return;
		}
		if (r)
			warden_failed(warden, bytes_of(strerror(-r)));
	}
}

/* If it gets lost, the session waits a little longer. */
static void hurry(struct nursery *nursery)
{
	const struct hurry_message message = {0};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};

	if (nursery->state != NURSERY_WARMING || nursery->hurried || !anybody_waits(nursery))
		return;
	nursery->hurried = true;
	if (!wire_encode(&buffer, &hurry_message_schema, &message))
		(void)channel_send(nursery->channel, wire_bytes(&buffer), NULL, 0);
}

/* ---- whose it is ---- */

bool nursery_is_starting(const struct nursery *nursery)
{
	return nursery->state == NURSERY_STARTING || nursery->state == NURSERY_WARMING || nursery->rough;
}

bool nursery_loads(const struct nursery *nursery)
{
	return nursery->state != NURSERY_UP && nursery->failures == 0 && nursery->profile->preload.n > 0;
}

bool nursery_is_used(const struct nursery *nursery)
{
	struct warden *warden;

	list_for_each (warden, (struct list *)&nursery->wardens, node)
		if (!list_empty(&warden->tenants))
			return true;
	return false;
}

static void on_idle(struct timer *timer)
{
	struct nursery *nursery = container_of(timer, struct nursery, idle);

	blame_nursery(nursery, TURN_IDLE);
	if (!nursery_is_used(nursery))
		cages_on_nursery_idle(nursery->cages, nursery);
}

void nursery_idle(struct nursery *nursery)
{
	if (nursery->owned && !nursery->retired && !blame_nursery_is_open(nursery))
		(void)timer_set(nursery->cages->loop, &nursery->idle,
				event_now() + nursery->cages->config->template_ttl, on_idle);
}

void nursery_make_share(struct nursery *nursery)
{
	if (nursery->share.made)
		return;
	share_make(&nursery->share, &nursery->cages->cgroups);
	if (nursery->owned)
		cages_divide(nursery->cages, nursery->owner);
	else
		share_divide(&nursery->share, &nursery->cages->cgroups, 1);
}

void nursery_own(struct nursery *nursery, uid_t owner)
{
	nursery->owned = true;
	nursery->owner = owner;
	cages_divide(nursery->cages, owner);
	/* It may have been made while it was nobody's, of whom nothing was known. */
	if (nursery->state != NURSERY_DOWN && blame_nursery_is_open(nursery))
		nursery_failed(nursery, BYTES(GIVEN_UP));
	nursery_idle(nursery);
}

/* The session joins only when all has been done that may fail at once: what fails later is told to it. */
int nursery_claim(struct nursery *nursery, struct profile *profile, const char *set, struct tenant *tenant,
		  struct warden **wardenp)
{
	bool differs = profile != nursery->profile;
	struct warden *warden, *best = set && !differs ? prepared_take(nursery, set) : NULL;
	int r;

	if (best) {
		warden_join(best, tenant);
		*wardenp = best;
		return 0;
	}
	list_for_each (warden, &nursery->wardens, node)
		if (!differs && is_spare(warden) && (!best || warden->state > best->state))
			best = warden;
	if (!best) {
		if (nursery->state == NURSERY_DOWN && event_now() < nursery->not_before)
			return -EAGAIN;
		r = warden_new(&best, nursery->cages, nursery, profile);
		if (r)
			return r;
		list_append(&nursery->wardens, &best->node);
	}
	nursery_warm(nursery);
	wanted_request(nursery);
	if (best->state == WARDEN_DYING) {
		snprintf(nursery->reason, sizeof(nursery->reason), "%s", best->reason);
		return -EAGAIN;
	}
	warden_join(best, tenant);
	hurry(nursery);
	*wardenp = best;
	refill_soon(nursery, REFILL_US);
	return 0;
}

void nursery_on_spare(struct nursery *nursery, struct warden *warden)
{
	if (nursery->retired)
		warden_kill(warden);
	else if (warden->set[0])
		prepared_begin(warden);
	else
		nursery->failures = 0;
}

void nursery_on_warden_gone(struct nursery *nursery, struct warden *warden)
{
	if (nursery->retired && list_empty(&nursery->wardens)) {
		cages_bury_nursery(nursery->cages, nursery);
	} else if (warden->used) {
		nursery_idle(nursery);
	} else if (warden->set[0]) {
		prepared_on_gone(warden);
	} else if (list_empty(&warden->tenants) && nursery->state == NURSERY_UP) {
		/* A spare that cannot live is not made again and again at full speed. */
		refill_soon(nursery, (uint64_t)BACKOFF_US << MIN(nursery->failures, 6U));
		nursery->failures++;
	}
}

void nursery_retire(struct nursery *nursery)
{
	struct warden *warden;

	nursery->retired = true;
	timer_clear(nursery->cages->loop, &nursery->refill);
	timer_clear(nursery->cages->loop, &nursery->idle);
	prepared_drop_all(nursery);
	list_for_each (warden, &nursery->wardens, node)
		if (list_empty(&warden->tenants))
			warden_kill(warden);
	release(nursery);
	release(nursery->bare);
	template_end(nursery);
	if (list_empty(&nursery->wardens))
		cages_bury_nursery(nursery->cages, nursery);
}

/* ---- what a template says ---- */

static int put_list(struct wire_list *list, const struct string_list *strings)
{
	for (size_t i = 0; i < strings->n; i++)
		(void)wire_list_add_string(list, bytes_of(strings->items[i]));
	return list->r;
}

/* Frozen copies are processes too, but not the session's own. Where no group counts, this is for good, so there is
 * room for all that may come: named checkpoints may be as many as the others. */
static uint64_t processes_allowed(const struct profile *profile)
{
	uint64_t frozen = profile->checkpoint == CHECKPOINT_OFF ? 0 : 2 * profile->checkpoints;

	return profile->processes ? profile->processes + frozen : 0;
}

static uint64_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : MAX((uint64_t)CPU_COUNT(&set), (uint64_t)1);
}

/* Unless the profile says more, of a session whose processors are not limited, one: there may be many of them. */
static uint64_t threads_allowed(const struct profile *profile)
{
	bool all = profile->threads == VALUE_ALL;
	uint64_t whole = profile->cpu ? (profile->cpu + 999) / 1000 : all ? processors() : 1;

	if (profile->threads && !all)
		return profile->threads;
	return profile->processes ? MIN(whole, profile->processes) : whole;
}

static int configure_send(struct nursery *nursery)
{
	const struct profile *profile = nursery->profile;
	unsigned held = budget_controllers(profile, &nursery->cages->cgroups);
	const int images = nursery->makeshift ? -1 : nursery->cages->images; /* it ends too soon to be kept */
	const struct string_list *lists[] = {&profile->preload,	       &profile->env,
					     &profile->forbid,	       &profile->requirements,
					     &profile->packages_allow, &profile->packages_deny};
	static const char *const packages[] = {
		[PACKAGES_OFF] = "off", [PACKAGES_ASK] = "ask", [PACKAGES_ON] = "on"};
	struct configure_message message = {
		.profile = bytes_of(profile->name),
		.python = bytes_of(profile->python),
		.network = bytes_of(profile->network),
		.subprocess = profile->subprocess,
		.terminals = profile->terminals,
		.memory = profile->memory,
		.processes = processes_allowed(profile),
		.open_files = profile->open_files,
		.file_size = profile->file_size,
		.workspace_size = profile->workspace_size,
		.scratch_size = profile->scratch_size,
		.text_max = profile->text_size,
		.threads = threads_allowed(profile),
		.threads_given = profile->threads && profile->threads != VALUE_ALL,
		.level = bytes_of(profile->level),
		.home = bytes_of(profile->home),
		.packages = bytes_of(packages[profile->packages]),
		.forbid_exec = profile->forbid_in == FORBID_EXEC,
		.memory_group = held & CONTROLLER_BIT(CONTROLLER_MEMORY),
		.processes_group = held & CONTROLLER_BIT(CONTROLLER_PIDS),
		.cpu_group = held & CONTROLLER_BIT(CONTROLLER_CPU),
	};
	struct bytes *const raws[] = {
		&message.preload,	 &message.env,		 &message.forbid, &message.requirements,
		&message.packages_allow, &message.packages_deny, &message.places, &message.changeable};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	struct wire_list arrays[ARRAY_SIZE(raws)] = {0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(raws); i++) {
		if (!r)
			r = i < ARRAY_SIZE(lists)    ? put_list(&arrays[i], lists[i])
			    : i == ARRAY_SIZE(lists) ? places_put(&arrays[i], profile, nursery->cages->config)
						     : places_put_changeable(&arrays[i], nursery->cages);
		*raws[i] = wire_list_bytes(&arrays[i]);
	}
	if (!r)
		r = wire_encode(&buffer, &configure_message_schema, &message);
	if (!r)
		r = channel_send(nursery->channel, wire_bytes(&buffer), &images, images >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		wire_list_deinit(&arrays[i]);
	return r > 0 ? -EPIPE : r;
}

static void ready_log(const struct nursery *nursery, const struct template_ready *ready)
{
	char whose[32] = "the next user";
	struct bytes missing;
	size_t cursor = 0;

	if (nursery->owned)
		snprintf(whose, sizeof(whose), "uid %u", nursery->owner);
	log_info(NULL, "profile %s is ready%s%s: %s %.*s, pid %d, for %s", nursery->profile->name,
		 nursery->makeshift ? ", without what it preloads" : "", ready->woken ? ", from its image" : "",
		 nursery->profile->language, (int)ready->version.size, ready->version.data, nursery->pid, whose);
	while (wire_next_string(ready->missing, &cursor, &missing))
		log_info(NULL, "profile %s: %.*s is not installed, so it is not preloaded", nursery->profile->name,
			 (int)missing.size, missing.data);
}

static void on_template_importing(struct nursery *nursery, const void *decoded, int *pidfdp)
{
	const struct importing_message *importing = decoded;

	log_info(NULL, "profile %s was not woken from an image: %.*s", nursery->profile->name,
		 (int)importing->reason.size, importing->reason.data);
	nursery->imports = true;
	release(nursery->bare);
}

/* The wardens that the makeshift template was not asked for. */
static void take_over(struct nursery *nursery, struct nursery *bare)
{
	struct warden *warden;

	list_for_each (warden, &bare->wardens, node) {
		if (warden->state != WARDEN_WANTED)
			continue;
		if (warden->profile == bare->profile) {
			profile_unref(warden->profile);
			warden->profile = profile_ref(nursery->profile);
		}
		warden->nursery = nursery;
		list_move(&nursery->wardens, &warden->node);
	}
}

/* Twice, if the template was told to hurry: the first time for who waits. */
static void on_template_ready(struct nursery *nursery, const void *decoded, int *pidfdp)
{
	const struct template_ready *ready = decoded;

	if ((nursery->state != NURSERY_WARMING && !nursery->rough) ||
	    (ready->rough && (nursery->rough || !nursery->hurried))) {
		nursery_failed(nursery, BYTES("it broke the protocol"));
		return;
	}
	if (!bytes_is(ready->language, nursery->profile->language)) {
		nursery_failed(nursery, BYTES("it speaks another language: laird must be started anew"));
		return;
	}
	nursery->state = NURSERY_UP;
	nursery->rough = ready->rough;
	nursery->baseline = memory_of_process(nursery->pid);
	nursery->failures = 0;
	if (nursery->bare && !nursery->rough)
		take_over(nursery, nursery->bare);
	wanted_request(nursery);
	if (nursery->rough)
		return;
	ready_log(nursery, ready);
	timer_clear(nursery->cages->loop, &nursery->patience);
	cages_on_loaded(nursery->cages);
	refill_soon(nursery, 0);
	if (nursery->bare)
		cages_retire(nursery->cages, nursery->bare);
}

static struct warden *warden_find(struct nursery *nursery, uint64_t serial)
{
	struct warden *warden;

	list_for_each (warden, &nursery->wardens, node)
		if (warden->serial == serial && warden->state == WARDEN_MAKING)
			return warden;
	return NULL;
}

static void on_template_failed(struct nursery *nursery, const void *decoded, int *pidfdp)
{
	const struct failed_message *failed = decoded;
	struct warden *warden = failed->serial ? warden_find(nursery, failed->serial) : NULL;

	if (failed->serial == 0)
		nursery_failed(nursery, failed->reason);
	else if (warden)
		warden_failed(warden, failed->reason);
}

static void on_template_made(struct nursery *nursery, const void *decoded, int *pidfdp)
{
	const struct made_message *made = decoded;
	struct warden *warden = warden_find(nursery, made->serial);

	if (!warden) {
		/* Given up meanwhile: it finds its control pair closed, too. */
		if (*pidfdp >= 0)
			(void)syscall(SYS_pidfd_send_signal, *pidfdp, SIGKILL, NULL, 0);
		return;
	}
	warden->baseline = nursery->baseline;
	nursery->deaths = 0;
	warden_made(warden, (pid_t)made->pid, steal_fd(pidfdp));
	template_end(nursery);
}

static void on_template_imaged(struct nursery *nursery, const void *decoded, int *pidfdp)
{
	const struct imaged_message *imaged = decoded;

	if (imaged->reason.size)
		log_warn(NULL, "profile %s: its image was not written: %.*s", nursery->profile->name,
			 (int)imaged->reason.size, imaged->reason.data);
	else
		log_info(NULL, "profile %s: its image is written", nursery->profile->name);
}

static const struct {
	const struct wire_schema *schema;
	void (*fn)(struct nursery *nursery, const void *decoded, int *pidfdp);
} handlers[] = {
	{&template_ready_schema, on_template_ready},  {&importing_message_schema, on_template_importing},
	{&imaged_message_schema, on_template_imaged}, {&made_message_schema, on_template_made},
	{&failed_message_schema, on_template_failed},
};

const char *nursery_message_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].schema->type : NULL;
}

/* @pidfdp: the descriptor that came with it. */
static void message_handle(struct nursery *nursery, const struct wire_frame *frame, int *pidfdp)
{
	struct wire_any decoded;
	struct wire_fault fault;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame->type, handlers[i].schema->type))
			continue;
		blame_nursery_message(nursery, i);
		fault_at("template", handlers[i].schema->type, bytes_of(nursery->profile->name));
		if (wire_decode(&decoded, handlers[i].schema, frame->body, &fault))
			nursery_failed(nursery, BYTES("it broke the protocol"));
		else
			handlers[i].fn(nursery, &decoded, pidfdp);
		return;
	}
}

static void on_template(struct event_source *source, uint32_t events)
{
	struct nursery *nursery = container_of(source, struct nursery, channel_source);
	static char buffer[CHANNEL_SIZE_MAX];
	int fds[CHANNEL_FDS_MAX], r;
	struct wire_frame frame;
	struct bytes data;
	size_t n_fds;

	blame_nursery(nursery, TURN_CHANNEL);
	r = channel_recv(nursery->channel, buffer, sizeof(buffer), &data, fds, &n_fds);
	if (r == CHANNEL_E_EMPTY)
		return;
	/* Without its pidfd a warden is known by the end of its control pair. */
	if (r == -EMFILE)
		r = 0;
	if (r == CHANNEL_E_EOF)
		template_died(nursery);
	else if (r || wire_open(&frame, data))
		nursery_failed(nursery, BYTES("it broke the protocol"));
	else
		message_handle(nursery, &frame, &fds[0]);
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_closep(&fds[i]);
}

void nursery_on_started(struct nursery *nursery, pid_t pid, int pidfd, int error)
{
	int r = error;

	nursery->pid = pid;
	nursery->pidfd = pidfd;
	nursery->state = NURSERY_WARMING;
	if (!r)
		r = event_add(nursery->cages->loop, &nursery->channel_source, nursery->channel, EPOLLIN,
			      on_template);
	if (!r)
		r = configure_send(nursery);
	if (!r)
		hurry(nursery);
	if (r == -EPIPE)
		template_died(nursery);
	else if (r)
		nursery_failed(nursery, bytes_of(strerror(-r)));
}
