/* What is counted, made and given up: how often each set is asked for, and one spare for each that is asked for
 * again. What its modules do there may take any time or memory, and it may die of it; then that set has none. */
#include "prepared.h"

#include "base/log.h"
#include "cages.h"
#include "nursery.h"

#include <stdio.h>

#define ASKS 2
#define SETS_MAX 64
#define LOOK_US 50000
#define PATIENCE_US (120 * 1000000ULL)
#define FAILURES_MAX 3

struct prepared {
	struct list node; /* in its nursery: the one that was asked for last comes last */
	struct nursery *nursery;
	char set[SHA256_HEX_SIZE];
	char *path;
	msgpack_sbuffer requirements;
	unsigned asks, failures;
	uint64_t asked, begun; /* when it was last */
	struct warden *warden; /* or NULL */
	bool ready;
	uint64_t size; /* that the last one took */
	struct timer timer;
};

static struct prepared *find(const struct nursery *nursery, const char *set)
{
	struct prepared *prepared;

	list_for_each (prepared, (struct list *)&nursery->prepared, node)
		if (strcmp(prepared->set, set) == 0)
			return prepared;
	return NULL;
}

static void let_go(struct prepared *prepared)
{
	struct warden *warden = prepared->warden;

	prepared->warden = NULL;
	prepared->ready = false;
	if (warden)
		warden_kill(warden);
}

static void drop(struct prepared *prepared)
{
	let_go(prepared);
	timer_clear(prepared->nursery->cages->loop, &prepared->timer);
	list_remove(&prepared->node);
	msgpack_sbuffer_destroy(&prepared->requirements);
	free(prepared->path);
	free(prepared);
}

void prepared_drop_all(struct nursery *nursery)
{
	struct prepared *prepared;

	list_for_each (prepared, &nursery->prepared, node)
		drop(prepared);
}

/* ---- how many there may be ---- */

/* The one that was asked for least recently, of all that are ready, and what these take together. */
static struct prepared *oldest(struct cages *cages, uint64_t *sump)
{
	struct prepared *prepared, *found = NULL;
	struct nursery *nursery;

	*sump = 0;
	list_for_each (nursery, &cages->nurseries, node)
		list_for_each (prepared, &nursery->prepared, node) {
			if (!prepared->ready)
				continue;
			*sump += prepared->size;
			if (!found || prepared->asked < found->asked)
				found = prepared;
		}
	return found;
}

static void make_room(struct cages *cages)
{
	uint64_t most = cages->config->set_template_memory, sum;
	struct prepared *prepared;

	while (most && (prepared = oldest(cages, &sum)) && sum > most) {
		log_info(NULL,
			 "the template of the set %.12s is let go: all together take more than "
			 "set_template_memory",
			 prepared->set);
		/* One that alone is too large is not made again. */
		if (prepared->size > most)
			prepared->failures = FAILURES_MAX;
		let_go(prepared);
	}
}

/* ---- one ---- */

static void on_timer(struct timer *timer);

static void look_at(struct prepared *prepared, uint64_t when)
{
	(void)timer_set(prepared->nursery->cages->loop, &prepared->timer, when, on_timer);
}

static uint64_t end_of(const struct prepared *prepared)
{
	return prepared->asked + prepared->nursery->cages->config->set_template_ttl;
}

static bool is_wanted(const struct prepared *prepared)
{
	const struct nursery *nursery = prepared->nursery;

	return prepared->asks >= ASKS && prepared->failures < FAILURES_MAX && !nursery->retired &&
	       nursery->profile->templates == TEMPLATES_AUTO && !nursery->cages->stopping;
}

static void check_ready(struct prepared *prepared)
{
	struct interpreter *interpreter =
		prepared->warden->state == WARDEN_READY ? warden_first(prepared->warden) : NULL;

	if (interpreter && interpreter_is_prepared(interpreter)) {
		prepared->ready = true;
		prepared->warden->importing = false;
		prepared->failures = 0;
		prepared->size = usage_of_tree(prepared->warden->pid, prepared->warden->baseline).memory;
		log_info(NULL, "profile %s has a template of the set %.12s for uid %u, of %llu KiB",
			 prepared->nursery->profile->name, prepared->set, prepared->nursery->owner,
			 (unsigned long long)prepared->size >> 10);
		make_room(prepared->nursery->cages);
		look_at(prepared, end_of(prepared));
	} else if (event_now() > prepared->begun + PATIENCE_US) {
		prepared->failures++;
		let_go(prepared);
		look_at(prepared, end_of(prepared));
	} else {
		look_at(prepared, event_now() + LOOK_US);
	}
}

static void make(struct prepared *prepared)
{
	int r = nursery_order(prepared->nursery, prepared->set, &prepared->warden);

	if (r) {
		prepared->warden = NULL;
		prepared->failures++;
	}
	prepared->begun = event_now();
	look_at(prepared, r ? end_of(prepared) : event_now() + LOOK_US);
}

static void on_timer(struct timer *timer)
{
	struct prepared *prepared = container_of(timer, struct prepared, timer);

	nursery_hand(prepared->nursery);
	if (prepared->warden && !prepared->ready)
		check_ready(prepared);
	else if (event_now() >= end_of(prepared))
		drop(prepared);
	else if (!prepared->warden && is_wanted(prepared))
		make(prepared);
	else
		look_at(prepared, end_of(prepared));
}

static void count(struct prepared *prepared)
{
	prepared->asks++;
	prepared->asked = event_now();
	list_remove(&prepared->node);
	list_append(&prepared->nursery->prepared, &prepared->node);
	if (!prepared->warden)
		look_at(prepared, is_wanted(prepared) ? event_now() + LOOK_US : end_of(prepared));
}

static struct prepared *add(struct nursery *nursery, const char *set, const char *path, struct bytes requirements)
{
	struct prepared *prepared = calloc(1, sizeof(*prepared));

	if (list_size(&nursery->prepared) >= SETS_MAX)
		drop(container_of(list_first(&nursery->prepared), struct prepared, node));
	if (!prepared)
		return NULL;
	prepared->nursery = nursery;
	snprintf(prepared->set, sizeof(prepared->set), "%s", set);
	msgpack_sbuffer_init(&prepared->requirements);
	list_init(&prepared->node);
	list_append(&nursery->prepared, &prepared->node);
	prepared->path = strdup(path);
	if (!prepared->path ||
	    msgpack_sbuffer_write(&prepared->requirements, requirements.data, requirements.size)) {
		drop(prepared);
		return NULL;
	}
	return prepared;
}

void prepared_asked(struct nursery *nursery, const char *set, const char *path, struct bytes requirements)
{
	struct prepared *prepared = find(nursery, set);

	if (nursery->profile->templates == TEMPLATES_OFF || nursery->retired || nursery->makeshift)
		return;
	if (!prepared)
		prepared = add(nursery, set, path, requirements);
	if (!prepared)
		return;
	count(prepared);
}

bool prepared_any(const struct nursery *nursery)
{
	struct prepared *prepared;

	list_for_each (prepared, (struct list *)&nursery->prepared, node)
		if (prepared->ready)
			return true;
	return false;
}

bool prepared_any_of(const struct cages *cages)
{
	struct prepared *prepared;
	struct nursery *nursery;

	list_for_each (nursery, (struct list *)&cages->nurseries, node)
		list_for_each (prepared, &nursery->prepared, node)
			if (prepared->warden)
				return true;
	return false;
}

uint64_t prepared_size(const struct cages *cages, const char *set, uid_t owner)
{
	struct nursery *nursery;
	uint64_t size = 0;

	list_for_each (nursery, (struct list *)&cages->nurseries, node) {
		const struct prepared *prepared = find(nursery, set);

		if (prepared && prepared->ready && (owner == 0 || nursery->owner == owner))
			size += prepared->size;
	}
	return size;
}

struct warden *prepared_take(struct nursery *nursery, const char *set)
{
	struct prepared *prepared = find(nursery, set);
	struct warden *warden = prepared && prepared->ready ? prepared->warden : NULL;

	if (!warden || warden->state != WARDEN_READY)
		return NULL;
	prepared->warden = NULL;
	prepared->ready = false;
	warden->set[0] = '\0';
	count(prepared);
	return warden;
}

void prepared_begin(struct warden *warden)
{
	struct prepared *prepared = find(warden->nursery, warden->set);
	struct interpreter *interpreter = warden_first(warden);
	struct prepare_message prepare;

	if (!prepared || prepared->warden != warden || !interpreter) {
		warden_kill(warden);
		return;
	}
	prepare = (struct prepare_message){.path = bytes_of(prepared->path),
					   .requirements = wire_bytes(&prepared->requirements)};
	if (interpreter_send(interpreter, &prepare_message_schema, &prepare))
		warden_kill(warden);
	warden->importing = true;
	quota_on_run(warden);
}

void prepared_on_gone(const struct warden *warden)
{
	struct prepared *prepared = find(warden->nursery, warden->set);

	if (!prepared || prepared->warden != warden)
		return;
	prepared->warden = NULL;
	prepared->ready = false;
	prepared->failures++;
	look_at(prepared, end_of(prepared));
}
