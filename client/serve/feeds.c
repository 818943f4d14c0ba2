/* Feeds: laird tells of a cell once, and the streams of many clients follow.
 *
 * laird reports a cell to few requests only, and it also answers a request that nobody wants any more. So a feed
 * stays as long as its cell, even if nobody follows. A stream that comes later has missed something. Then the feed
 * asks laird once to repeat it, from the earliest point that any stream needs. The repetition comes on the same
 * connection, behind the output that is on its way. Output that begins before the end of the feed's is repeated,
 * and goes to the streams that are behind; all else is new, and goes to the others. No stream gets anything twice.
 */
#include "feeds.h"

#include <stdlib.h>

struct feed {
	struct feed *next;
	struct tenant *tenant;
	const struct feed_events *events;
	struct lair_call *call;
	struct follower *followers;
	char *session, *key; /* NULL: none */
	uint64_t cell;
	bool heard;			   /* laird has told something of it */
	uint64_t from[N_FEED], at[N_FEED]; /* where it began, and the end of its output so far */
};

/* ---- who follows ---- */

static bool is_behind(const struct follower *follower)
{
	return follower->behind[FEED_STDOUT] || follower->behind[FEED_STDERR] || follower->behind[FEED_DISPLAYS];
}

static struct lair_point point_of(const uint64_t at[static N_FEED])
{
	return (struct lair_point){.out = at[FEED_STDOUT], .err = at[FEED_STDERR], .displays = at[FEED_DISPLAYS]};
}

/* One repetition at a time. If it cannot be sent, followers that are behind ask themselves when the cell has ended.
 */
static void repeat(struct feed *feed)
{
	uint64_t from[N_FEED];
	bool some = false;

	memcpy(from, feed->at, sizeof(from));
	for (const struct follower *at = feed->followers; at; at = at->next)
		if (is_behind(at) && at->asked)
			return;
	for (struct follower *at = feed->followers; at; at = at->next) {
		if (!is_behind(at))
			continue;
		at->asked = some = true;
		for (int i = 0; i < N_FEED; i++)
			from[i] = MIN(from[i], at->at[i]);
	}
	if (some)
		(void)lair_repeat(feed->call, point_of(from));
}

static void leave(struct follower *follower)
{
	struct feed *feed = follower->feed;

	if (follower->previous)
		follower->previous->next = follower->next;
	else
		feed->followers = follower->next;
	if (follower->next)
		follower->next->previous = follower->previous;
	follower->previous = follower->next = NULL;
	follower->feed = NULL;
}

void feed_leave(struct follower *follower)
{
	struct feed *feed = follower->feed;
	bool asked = feed && is_behind(follower) && follower->asked;

	if (!feed)
		return;
	leave(follower);
	if (asked)
		repeat(feed);
}

static void join(struct feed *feed, struct follower *follower, const uint64_t at[static N_FEED])
{
	for (int i = 0; i < N_FEED; i++) {
		follower->at[i] = at[i];
		follower->behind[i] = at[i] < feed->at[i];
	}
	follower->asked = false;
	follower->feed = feed;
	follower->next = feed->followers;
	if (follower->next)
		follower->next->previous = follower;
	feed->followers = follower;
	if (feed->heard)
		feed->events->on_joined(follower);
	repeat(feed);
}

/* ---- what laird says ---- */

/* The part of the @size at @begin that is for the follower: where it begins; @size if none is. */
static uint64_t part(const struct feed *feed, const struct follower *follower, int i, uint64_t begin, uint64_t size)
{
	if (follower->behind[i] && (!follower->asked || begin >= feed->at[i]))
		return size;
	return follower->at[i] > begin ? MIN(follower->at[i] - begin, size) : 0;
}

/* The follower has had what ends at @end. */
static void advance(const struct feed *feed, struct follower *follower, int i, uint64_t end)
{
	follower->at[i] = MAX(follower->at[i], end);
	if (follower->at[i] >= MAX(feed->at[i], end))
		follower->behind[i] = false;
}

static void told(struct feed *feed, int i, uint64_t end)
{
	bool repeated = end <= feed->at[i];

	feed->heard = true;
	feed->at[i] = MAX(feed->at[i], end);
	/* Those who have come meanwhile are next. */
	if (repeated)
		repeat(feed);
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct feed *feed = userdata;
	struct lair_point point = lair_point(call);
	int i = stream == LAIR_STDOUT ? FEED_STDOUT : FEED_STDERR;
	uint64_t end = stream == LAIR_STDOUT ? point.out : point.err;

	for (struct follower *at = feed->followers, *next; at; at = next) {
		size_t cut = (size_t)part(feed, at, i, end - data.size, data.size);

		next = at->next;
		if (cut == data.size)
			continue;
		advance(feed, at, i, end);
		feed->events->on_output(at, stream,
					(struct lair_text){.data = data.data + cut, .size = data.size - cut});
	}
	told(feed, i, end);
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct feed *feed = userdata;
	uint64_t end = lair_point(call).displays;

	for (struct follower *at = feed->followers, *next; at; at = next) {
		next = at->next;
		if (part(feed, at, FEED_DISPLAYS, end - 1, 1) == 1)
			continue;
		advance(feed, at, FEED_DISPLAYS, end);
		feed->events->on_display(at, display);
	}
	told(feed, FEED_DISPLAYS, end);
}

static void on_alive(struct lair_call *call, const struct lair_alive *alive, void *userdata)
{
	struct feed *feed = userdata;

	(void)call;
	feed->heard = true;
	for (struct follower *at = feed->followers, *next; at; at = next) {
		next = at->next;
		feed->events->on_alive(at, alive);
	}
}

/* ---- feeds ---- */

static void feed_free(struct feed *feed)
{
	struct feed **at = &feed->tenant->feeds;

	while (*at && *at != feed)
		at = &(*at)->next;
	if (*at)
		*at = feed->next;
	(void)lair_call_free(feed->call);
	free(feed->session);
	free(feed->key);
	free(feed);
}

static void on_done(struct lair_call *call, void *userdata)
{
	struct feed *feed = userdata;

	for (struct follower *follower; (follower = feed->followers);) {
		bool missed = lair_outcome(call) == 0 && is_behind(follower);

		leave(follower);
		if (missed)
			feed->events->on_missed(follower);
		else
			feed->events->on_done(follower, call);
	}
	feed_free(feed);
}

void feeds_free(struct tenant *tenant)
{
	while (tenant->feeds)
		feed_free(tenant->feeds);
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The feed of that cell which has all that is wanted from; *otherp: whether there is one that has not. */
static struct feed *feed_find(const struct tenant *tenant, const struct lair_attach *wanted,
			      const uint64_t from[static N_FEED], bool *otherp)
{
	*otherp = false;
	for (struct feed *feed = tenant->feeds; feed; feed = feed->next) {
		if (feed->cell != wanted->cell || !same(feed->key, wanted->key) ||
		    !same(feed->session, wanted->session))
			continue;
		if (feed->from[FEED_STDOUT] <= from[FEED_STDOUT] && feed->from[FEED_STDERR] <= from[FEED_STDERR] &&
		    feed->from[FEED_DISPLAYS] <= from[FEED_DISPLAYS])
			return feed;
		*otherp = true;
	}
	return NULL;
}

static struct feed *feed_new(struct tenant *tenant, const struct lair_attach *wanted,
			     const struct feed_events *events)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	feed->tenant = tenant;
	feed->events = events;
	feed->cell = wanted->cell;
	feed->session = wanted->session ? strdup(wanted->session) : NULL;
	feed->key = wanted->key ? strdup(wanted->key) : NULL;
	feed->next = tenant->feeds;
	tenant->feeds = feed;
	return feed;
}

static int feed_start(struct feed *feed, struct lair *lair, const uint64_t from[static N_FEED])
{
	const struct lair_attach wanted = {
		.session = feed->session,
		.cell = feed->cell,
		.key = feed->key,
		.from = point_of(from),
		.on_output = on_output,
		.on_display = on_display,
		.on_alive = on_alive,
		.userdata = feed,
	};
	int r;

	memcpy(feed->from, from, sizeof(feed->from));
	r = lair_attach(lair, &feed->call, &wanted);
	if (!r)
		lair_on_done(feed->call, on_done, feed);
	return r;
}

int feed_follow(struct follower *follower, struct exchange *exchange, const struct lair_attach *wanted,
		const struct feed_events *events)
{
	const uint64_t from[N_FEED] = {wanted->from.out, wanted->from.err, wanted->from.displays};
	static const uint64_t beginning[N_FEED];
	struct tenant *tenant = exchange->tenant;
	struct feed *feed;
	bool other;
	int r;

	follower->exchange = exchange;
	feed = feed_find(tenant, wanted, from, &other);
	if (!feed) {
		feed = feed_new(tenant, wanted, events);
		/* A second one has all, so there is no third. */
		r = feed ? feed_start(feed, exchange->lair, other ? beginning : from) : -ENOMEM;
		if (r) {
			if (feed)
				feed_free(feed);
			return r;
		}
	}
	join(feed, follower, from);
	return 0;
}
