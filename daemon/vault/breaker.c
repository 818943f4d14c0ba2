/* The page is a memory file that the keeper holds. Only the router writes to it, with plain stores in the order
 * of this code: they are volatile, so a store is there when the process has died after it. A thing is never half
 * named: while its name is written, nothing is in hand.
 *
 * A death counts only if its reason is known: the thing that was being handled; or, while a round was settled,
 * its only thing. */
#include "breaker.h"

#include "base/log.h"
#include "fault.h"
#include "proto/event.h"

#include "proto/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Three deaths, or two pauses of a watchdog, in which nobody is answered. */
#define WEIGHT_OPEN 6
#define WEIGHT_DIED 2
#define WEIGHT_STOOD 3
#define SUSPECTS_MAX 32
#define FORGET_US (600 * 1000000ULL)
#define CAREFUL_US (10 * 1000000ULL)
#define LAYOUT 2

struct suspect {
	struct thing thing;
	uint64_t weight, since;
	bool handled; /* in this round */
};

struct breaker_page {
	uint64_t layout;
	struct thing hand;
	uint64_t n_things; /* in this round */
	uint64_t settling;
	uint64_t careful_until;
	uint64_t faults[2];
	uint64_t n_suspects;
	struct suspect suspects[SUSPECTS_MAX];
};

/* Where there is no memory for one. */
static struct breaker_page private_page;

static const char *const kind_names[_HAND_N] = {
	[BLAME_NOTHING] = "nothing",   [BLAME_INTERPRETER] = "interpreter",
	[BLAME_SESSION] = "session",   [BLAME_FAMILY] = "family",
	[BLAME_REVIVAL] = "revival",   [BLAME_RECORD] = "record",
	[BLAME_TEMPLATE] = "template", [BLAME_FRAME] = "frame",
	[BLAME_REQUEST] = "request",   [BLAME_BUILD] = "build",
};

uint64_t breaker_digest(uint64_t digest, struct bytes data)
{
	for (size_t i = 0; i < data.size; i++)
		digest = (digest ^ (uint8_t)data.data[i]) * 0x100000001b3ULL;
	return digest;
}

/* ---- suspects ---- */

static bool same(const volatile struct thing *a, const struct thing *b)
{
	return a->kind == b->kind && a->turn == b->turn && a->whose == b->whose && a->number == b->number;
}

static void suspect_remove(volatile struct breaker_page *page, uint64_t i)
{
	uint64_t last = page->n_suspects - 1;

	page->suspects[i] = page->suspects[last];
	page->n_suspects = last;
}

static bool is_open(const volatile struct suspect *suspect)
{
	return suspect->weight >= WEIGHT_OPEN && event_now() < suspect->since + FORGET_US;
}

static volatile struct suspect *suspect_get(volatile struct breaker_page *page, const struct thing *thing)
{
	uint64_t oldest = 0;

	for (uint64_t i = 0; i < page->n_suspects; i++) {
		if (same(&page->suspects[i].thing, thing))
			return &page->suspects[i];
		if (page->suspects[i].since < page->suspects[oldest].since)
			oldest = i;
	}
	if (page->n_suspects == SUSPECTS_MAX)
		suspect_remove(page, oldest);
	page->suspects[page->n_suspects] = (struct suspect){.thing = *thing};
	return &page->suspects[page->n_suspects++];
}

static void suspect_count(volatile struct breaker_page *page, enum router_end end)
{
	const struct thing thing = page->hand;
	volatile struct suspect *suspect = suspect_get(page, &thing);

	suspect->weight += end == ROUTER_END_DIED ? WEIGHT_DIED : WEIGHT_STOOD;
	suspect->since = event_now();
	suspect->handled = false;
	log_warn(NULL, "the last router %s over %s %" PRIu64 " of %" PRIu64 "%s",
		 end == ROUTER_END_DIED ? "died" : "stood still", kind_names[thing.kind], thing.number, thing.whose,
		 is_open(suspect) ? ", as others had done: it is not tried again" : "");
}

static void suspects_prune(volatile struct breaker_page *page)
{
	for (uint64_t i = page->n_suspects; i-- > 0;)
		if (event_now() >= page->suspects[i].since + FORGET_US)
			suspect_remove(page, i);
}

/* ---- the page ---- */

static bool page_is_ours(const volatile struct breaker_page *page)
{
	bool known = page->layout == LAYOUT && page->n_suspects <= SUSPECTS_MAX && page->hand.kind < _HAND_N;

	for (uint64_t i = 0; known && i < page->n_suspects; i++)
		known = page->suspects[i].thing.kind < _HAND_N;
	return known;
}

static volatile struct breaker_page *page_map(int fd)
{
	struct stat status;
	void *map;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size != sizeof(struct breaker_page))
		return NULL;
	map = mmap(NULL, sizeof(struct breaker_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

static int page_make(void)
{
	_cleanup_(fd_closep) int fd = memfd_create("lair-breaker", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Its memory is there before it is stored to. */
	if (fd < 0 || fallocate(fd, 0, 0, sizeof(struct breaker_page)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -1;
	return steal_fd(&fd);
}

static void page_read(volatile struct breaker_page *page, enum router_end end)
{
	/* If a round took too long, the last thing in it need not be the reason. */
	bool known = page->n_things <= 1 || (end == ROUTER_END_DIED && !page->settling);

	suspects_prune(page);
	if (end != ROUTER_END_WELL && page->hand.kind != BLAME_NOTHING && known)
		suspect_count(page, end);
	if (end != ROUTER_END_WELL)
		page->careful_until = event_now() + CAREFUL_US;
	page->hand.kind = BLAME_NOTHING;
	page->n_things = page->settling = 0;
}

void breaker_open(struct breaker *breaker, int fd, enum router_end end)
{
	*breaker = (struct breaker){.fd = fd, .page = page_map(fd)};
	if (!breaker->page) {
		fd_close(fd);
		breaker->fd = page_make();
		breaker->page = page_map(breaker->fd);
	}
	if (!breaker->page) {
		log_warn(NULL, "no memory to note the router's work: if it dies of some work, the next router "
			       "tries that again");
		breaker->page = &private_page;
	}
	if (page_is_ours(breaker->page)) {
		page_read(breaker->page, end);
		return;
	}
	*breaker->page = (struct breaker_page){.layout = LAYOUT};
}

void breaker_close(struct breaker *breaker)
{
	if (breaker->page && breaker->page != &private_page)
		munmap((void *)breaker->page, sizeof(*breaker->page));
	breaker->page = NULL;
	breaker->fd = fd_close(breaker->fd);
}

/* ---- what is in hand ---- */

static void handled_note(volatile struct breaker_page *page, const struct thing *thing)
{
	for (uint64_t i = 0; i < page->n_suspects; i++)
		if (same(&page->suspects[i].thing, thing))
			page->suspects[i].handled = true;
}

void breaker_name(struct breaker *breaker, const struct thing *thing)
{
	volatile struct breaker_page *page = breaker->page;

	page->hand.kind = BLAME_NOTHING;
	page->hand.turn = thing->turn;
	page->hand.whose = thing->whose;
	page->hand.number = thing->number;
	page->hand.kind = thing->kind;
	if (page->n_suspects > 0)
		handled_note(page, thing);
}

void breaker_take(struct breaker *breaker)
{
	breaker->page->hand.kind = BLAME_NOTHING;
	breaker->page->n_things++;
}

void breaker_settle(struct breaker *breaker)
{
	breaker->page->settling = true;
}

void breaker_put_down(struct breaker *breaker)
{
	volatile struct breaker_page *page = breaker->page;

	page->hand.kind = BLAME_NOTHING;
	page->n_things = page->settling = 0;
	for (uint64_t i = page->n_suspects; i-- > 0;)
		if (page->suspects[i].handled && !is_open(&page->suspects[i]))
			suspect_remove(page, i);
}

/* ---- what came of it ---- */

bool breaker_is_open(const struct breaker *breaker, const struct thing *thing)
{
	const volatile struct breaker_page *page = breaker->page;

	for (uint64_t i = 0; i < page->n_suspects; i++)
		if (same(&page->suspects[i].thing, thing))
			return is_open(&page->suspects[i]);
	return false;
}

bool breaker_is_open_for(const struct breaker *breaker, enum in_hand kind, uint64_t whose, uint64_t number)
{
	const volatile struct breaker_page *page = breaker->page;

	for (uint64_t i = 0; i < page->n_suspects; i++) {
		const volatile struct suspect *suspect = &page->suspects[i];

		if (suspect->thing.kind == kind && suspect->thing.whose == whose &&
		    suspect->thing.number == number && is_open(suspect))
			return true;
	}
	return false;
}

void breaker_forget(struct breaker *breaker, enum in_hand kind)
{
	volatile struct breaker_page *page = breaker->page;

	for (uint64_t i = page->n_suspects; i-- > 0;)
		if (page->suspects[i].thing.kind == kind && is_open(&page->suspects[i]))
			suspect_remove(page, i);
}

bool breaker_is_careful(const struct breaker *breaker)
{
	const volatile struct breaker_page *page = breaker->page;

	return page->careful_until > 0 && event_now() < page->careful_until;
}

volatile uint64_t *breaker_faults(const struct breaker *breaker)
{
	return breaker->page->faults;
}

/* ---- what handlers take in hand ---- */

static const char *const turn_names[_TURN_N] = {
	[TURN_CHANNEL] = "channel",   [TURN_STDOUT] = "stdout",	    [TURN_STDERR] = "stderr",
	[TURN_DEATH] = "death",	      [TURN_DEADLINE] = "deadline", [TURN_IDLE] = "idle",
	[TURN_HARD] = "hard",	      [TURN_ALIVE] = "alive",	    [TURN_MEASURE] = "measure",
	[TURN_TRANSFER] = "transfer", [TURN_COPY] = "copy",	    [TURN_PATIENCE] = "patience",
	[TURN_QUOTA] = "quota",	      [TURN_REFILL] = "refill",	    [TURN_RETRY] = "retry",
	[TURN_READ] = "read",	      [TURN_REVIVE] = "revive",	    [TURN_CALL] = "call",
};

void blame_note(struct breaker *breaker, const struct thing *thing, const char *group, struct bytes of)
{
	breaker_name(breaker, thing);
	fault_at(group, turn_names[thing->turn], of);
}

void blame_revival(struct breaker *breaker, uint64_t family, enum blame_turn turn)
{
	const struct thing thing = {.kind = BLAME_REVIVAL, .turn = turn, .whose = family};

	breaker_name(breaker, &thing);
}

bool blame_revival_is_open(const struct breaker *breaker, uint64_t family)
{
	return breaker_is_open_for(breaker, BLAME_REVIVAL, family, 0) ||
	       breaker_is_open_for(breaker, BLAME_FAMILY, family, 0);
}

bool blame_frame(struct breaker *breaker, uint64_t uid, size_t size)
{
	const struct thing thing = {.kind = BLAME_FRAME, .whose = uid, .number = size};

	breaker_take(breaker);
	breaker_name(breaker, &thing);
	return breaker_is_open(breaker, &thing);
}

bool blame_request(struct breaker *breaker, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		   struct bytes key)
{
	uint64_t digest = breaker_digest(BREAKER_DIGEST, bytes_of(schema->type));
	struct thing thing = {.kind = BLAME_REQUEST, .whose = uid};

	thing.number = breaker_digest(breaker_digest(digest, session), key);
	breaker_name(breaker, &thing);
	if (breaker_is_open(breaker, &thing))
		return true;
	fault_at("request", schema->type, session);
	return false;
}
