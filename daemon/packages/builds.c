/* A build is a process of its own, lair-kernel as a builder (kernel/packages/), on a channel. It ends when we close
 * that, so the builds of a router end with it, and the next one begins them anew for those who still wait. */
#include "builds.h"

#include "base/log.h"
#include "vault/breaker.h"
#include "vault/errand.h"
#include "vault/fault.h"

#include "proto/channel.h"
#include "proto/message.h"

#include <stdio.h>

/* Of all users, and of one. */
#define RUNNING_MAX 3
#define RUNNING_EACH 2
#define BUILDS_MAX 64
#define BUILDS_EACH 16
#define TOLD_SIZE 200
#define LAYOUT "1"

struct build {
	struct list node;
	struct builds *builds;
	char key[SHA256_HEX_SIZE];
	uint64_t timeout;
	char work[PATH_MAX];
	int channel; /* -1: it waits for its turn */
	struct event_source source;
	struct timer timer;
	char told[TOLD_SIZE];

	struct profile *profile;
	msgpack_sbuffer requirements, deny;
	char *base;
	uid_t uid, owner;
	uint64_t size; /* that it may take, while it runs */
};

static void next_begin(struct builds *builds);

static void build_free(struct build *build)
{
	struct builds *builds = build->builds;

	if (build->channel >= 0) {
		event_remove(builds->loop, &build->source);
		builds->n_running--;
	}
	fd_closep(&build->channel);
	timer_clear(builds->loop, &build->timer);
	if (build->work[0])
		errand_remove_tree(build->work);
	msgpack_sbuffer_destroy(&build->requirements);
	msgpack_sbuffer_destroy(&build->deny);
	profile_unref(build->profile);
	free(build->base);
	list_remove(&build->node);
	free(build);
}

void builds_init(struct builds *builds, struct event_loop *loop, struct breaker *breaker)
{
	*builds = (struct builds){.loop = loop, .breaker = breaker, .store.fd = -1};
	list_init(&builds->all);
}

void builds_deinit(struct builds *builds)
{
	struct build *build;

	list_for_each (build, &builds->all, node)
		build_free(build);
	package_store_close(&builds->store);
}

/* ---- what is asked for ---- */

static void add(msgpack_sbuffer *text, const char *line)
{
	(void)msgpack_sbuffer_write(text, line ? line : "", line ? strlen(line) : 0);
	(void)msgpack_sbuffer_write(text, "\n", 1);
}

void package_order_key(char key[static SHA256_HEX_SIZE], const struct package_order *order)
{
	const struct profile *profile = order->profile;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer text = {0};

	add(&text, LAYOUT);
	add(&text, profile->python);
	add(&text, profile->packages_newer);
	for (size_t i = 0; i < profile->packages_deny.n; i++)
		add(&text, profile->packages_deny.items[i]);
	add(&text, "");
	for (size_t i = 0; i < order->n; i++)
		add(&text, order->requirements[i]);
	(void)msgpack_sbuffer_write(&text, order->base.data ? order->base.data : "", order->base.size);
	(void)sha256_hex(key, (struct bytes){text.data, text.size});
}

static struct build *find(const struct builds *builds, const char *key)
{
	struct build *build;

	list_for_each (build, (struct list *)&builds->all, node)
		if (strcmp(build->key, key) == 0)
			return build;
	return NULL;
}

const char *builds_told(const struct builds *builds, const char *key)
{
	const struct build *build = find(builds, key);

	return build ? build->told : NULL;
}

/* ---- what routers die of ---- */

static uint64_t number_of(const char *key)
{
	return breaker_digest(BREAKER_DIGEST, bytes_of(key));
}

static void blame_build(const struct build *build, enum blame_turn turn)
{
	const struct thing thing = {.kind = BLAME_BUILD, .turn = turn, .number = number_of(build->key)};

	blame_note(build->builds->breaker, &thing, "builder", bytes_of(build->profile->name));
}

/* Each builder begins anew, so if its first message was handled, this says nothing of its second. */
static void blame_message(const struct build *build, size_t type)
{
	const struct thing thing = {
		.kind = BLAME_BUILD, .turn = _TURN_N + (uint32_t)type, .number = number_of(build->key)};

	breaker_name(build->builds->breaker, &thing);
}

/* ---- its end ---- */

/* Whoever hears of it may ask for another one. */
static void end(struct build *build, const char *set, const char *reason)
{
	struct builds *builds = build->builds;
	char key[SHA256_HEX_SIZE];
	int r = set ? package_store_note(&builds->store, build->key, set) : 0;

	if (r)
		log_warn(NULL, "a set of packages will have to be made again: %s", strerror(-r));
	memcpy(key, build->key, sizeof(key));
	build_free(build);
	builds->on_built(builds, key, set, reason);
	next_begin(builds);
}

static void on_late(struct timer *timer)
{
	struct build *build = container_of(timer, struct build, timer);
	char reason[128];

	blame_build(build, TURN_PATIENCE);
	snprintf(reason, sizeof(reason), "it took longer than packages_timeout = %g s",
		 event_seconds(build->timeout));
	end(build, NULL, reason);
}

static void broken(struct build *build)
{
	end(build, NULL, "its builder broke the protocol");
}

static void on_built(struct build *build, const void *decoded)
{
	const struct built_message *built = decoded;
	char text[SHA256_HEX_SIZE];

	if (!built->set.data == !built->reason.data) {
		broken(build);
	} else if (built->set.data) {
		bool there = package_store_has(&build->builds->store, built->set);

		bytes_copy(text, sizeof(text), built->set);
		end(build, there ? text : NULL, there ? NULL : "its builder did not put it into the store");
	} else {
		_cleanup_(freep) char *reason = strndup(built->reason.data, built->reason.size);

		end(build, NULL, reason ? reason : "out of memory");
	}
}

static void on_building(struct build *build, const void *decoded)
{
	const struct building_message *building = decoded;

	bytes_copy(build->told, sizeof(build->told), building->text);
	build->builds->on_told(build->builds, build->key);
}

static const struct {
	const struct wire_schema *schema;
	void (*fn)(struct build *build, const void *decoded);
} handlers[] = {
	{&building_message_schema, on_building},
	{&built_message_schema, on_built},
};

const char *builder_message_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].schema->type : NULL;
}

static void message_handle(struct build *build, const struct wire_frame *frame)
{
	struct wire_any decoded;
	struct wire_fault fault;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame->type, handlers[i].schema->type))
			continue;
		blame_message(build, i);
		fault_at("builder", handlers[i].schema->type, bytes_of(build->profile->name));
		if (wire_decode(&decoded, handlers[i].schema, frame->body, &fault))
			broken(build);
		else
			handlers[i].fn(build, &decoded);
		return;
	}
	broken(build);
}

static void on_channel(struct event_source *source, uint32_t events)
{
	struct build *build = container_of(source, struct build, source);
	static char buffer[CHANNEL_SIZE_MAX];
	struct wire_frame frame;
	int r;

	blame_build(build, TURN_CHANNEL);
	r = channel_recv_frame(build->channel, buffer, sizeof(buffer), &frame);
	if (r == CHANNEL_E_EMPTY)
		return;
	if (r == CHANNEL_E_EOF)
		end(build, NULL, "its builder was killed");
	else if (r)
		broken(build);
	else
		message_handle(build, &frame);
}

/* ---- its beginning ---- */

/* The bytes that nothing has and nobody who runs may take. */
static uint64_t room_of(const struct builds *builds)
{
	uint64_t cache, taken, total = builds->config->packages_total;
	struct build *build;

	if (!total)
		return UINT64_MAX;
	taken = package_store_size(&builds->store, &cache) + cache;
	list_for_each (build, (struct list *)&builds->all, node)
		if (build->channel >= 0)
			taken += build->size;
	return total > taken ? total - taken : 0;
}

static int order_send(const struct build *build)
{
	const struct builds *builds = build->builds;
	const struct build_message message = {
		.packages = bytes_of(builds->store.path),
		.work = bytes_of(build->work),
		.requirements = wire_bytes(&build->requirements),
		.base = bytes_of(build->base),
		.python = bytes_of(build->profile->python),
		.uv = bytes_of(builds->config->uv),
		.newer = bytes_of(build->profile->packages_newer),
		.deny = wire_bytes(&build->deny),
		.size = build->size,
		.scarce = build->size < build->profile->packages_size,
		.uid = build->uid,
	};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	int r;

	r = wire_encode(&buffer, &build_message_schema, &message);
	if (!r)
		r = channel_send(build->channel, wire_bytes(&buffer), NULL, 0);
	return r > 0 ? -EPIPE : r;
}

void builds_drop_cache(const struct builds *builds)
{
	if (builds->n_running == 0)
		package_store_drop_cache(&builds->store);
}

/* Where it is the room that bounds it, no other one runs. What uv keeps makes room for it. */
static int take_room(struct build *build)
{
	struct builds *builds = build->builds;
	uint64_t room = room_of(builds);

	build->size = build->profile->packages_size;
	if (room < build->size && builds->n_running == 0) {
		package_store_drop_cache(&builds->store);
		room = room_of(builds);
	}
	build->size = MIN(build->size, room);
	return build->size > 0 ? 0 : -EDQUOT;
}

static int begin(struct build *build)
{
	struct builds *builds = build->builds;
	_cleanup_(fd_closep) int theirs = -1;
	int r = take_room(build);

	if (r)
		return r;
	r = package_store_work(build->work, &builds->store);
	if (r) {
		build->work[0] = '\0';
		return r;
	}
	r = channel_pair(&build->channel, &theirs);
	if (r)
		return r;
	builds->n_running++;
	r = event_add(builds->loop, &build->source, build->channel, EPOLLIN, on_channel);
	if (!r)
		r = order_send(build);
	if (!r)
		r = errand_start_builder(theirs);
	if (!r)
		r = timer_set(builds->loop, &build->timer, event_now() + build->timeout, on_late);
	return r;
}

static size_t count(const struct builds *builds, uid_t owner, bool running)
{
	struct build *build;
	size_t n = 0;

	list_for_each (build, (struct list *)&builds->all, node)
		n += build->owner == owner && (!running || build->channel >= 0);
	return n;
}

/* @room: as long as another one runs. */
static bool may_begin(const struct build *build, uint64_t room)
{
	const struct builds *builds = build->builds;

	return build->channel < 0 && builds->n_running < RUNNING_MAX &&
	       count(builds, build->owner, true) < RUNNING_EACH &&
	       (builds->n_running == 0 || room >= build->profile->packages_size);
}

/* The next one is that of the user of whom the fewest run. */
static struct build *next_of(const struct builds *builds)
{
	uint64_t room = builds->n_running > 0 ? room_of(builds) : 0;
	struct build *build, *next = NULL;
	size_t least = 0, n;

	list_for_each (build, (struct list *)&builds->all, node) {
		if (!may_begin(build, room))
			continue;
		n = count(builds, build->owner, true);
		if (!next || n < least) {
			next = build;
			least = n;
		}
	}
	return next;
}

static const char *trouble(int r)
{
	return r == -EDQUOT
		       ? "the store of packages is full, as packages_total says: whoever runs laird can have what "
			 "nobody uses removed, with lair packages prune"
		       : strerror(-r);
}

static void next_begin(struct builds *builds)
{
	struct build *build;
	int r;

	while ((build = next_of(builds))) {
		r = begin(build);
		if (!r)
			continue;
		end(build, NULL, trouble(r));
		return; /* it has begun what comes next */
	}
}

static int put_list(msgpack_sbuffer *buffer, char *const *items, size_t n)
{
	int r = wire_put_array(buffer, n);

	for (size_t i = 0; !r && i < n; i++)
		r = wire_put_string(buffer, bytes_of(items[i]));
	return r;
}

static int order_keep(struct build *build, const struct package_order *order)
{
	const struct string_list *deny = &order->profile->packages_deny;
	int r = put_list(&build->requirements, order->requirements, order->n);

	if (!r)
		r = put_list(&build->deny, deny->items, deny->n);
	if (!r && order->base.size > 0) {
		build->base = strndup(order->base.data, order->base.size);
		r = build->base ? 0 : -ENOMEM;
	}
	return r;
}

static struct build *build_new(struct builds *builds, const struct package_order *order, const char *key)
{
	struct build *build = calloc(1, sizeof(*build));

	if (!build)
		return NULL;
	build->builds = builds;
	build->channel = -1;
	build->source = EVENT_SOURCE_NONE;
	build->timeout = order->profile->packages_timeout;
	build->profile = profile_ref((struct profile *)order->profile);
	build->uid = order->uid;
	build->owner = order->owner;
	snprintf(build->key, sizeof(build->key), "%s", key);
	snprintf(build->told, sizeof(build->told), "waiting for its turn");
	msgpack_sbuffer_init(&build->requirements);
	msgpack_sbuffer_init(&build->deny);
	list_init(&build->node);
	list_append(&builds->all, &build->node);
	if (!order_keep(build, order))
		return build;
	build_free(build);
	return NULL;
}

const char *builds_begin(struct builds *builds, const struct package_order *order, const char *key)
{
	struct build *build;
	int r = 0;

	if (builds->store.fd < 0)
		return "laird has no store of packages";
	if (find(builds, key))
		return NULL;
	if (breaker_is_open_for(builds->breaker, BLAME_BUILD, 0, number_of(key)))
		return BLAME_REFUSAL;
	if (list_size(&builds->all) >= BUILDS_MAX)
		return "too much is being installed already: try again later";
	if (count(builds, order->owner, false) >= BUILDS_EACH)
		return "too much is being installed for this user already: try again later";
	build = build_new(builds, order, key);
	if (!build)
		return strerror(ENOMEM);
	if (may_begin(build, room_of(builds)))
		r = begin(build);
	if (!r)
		return NULL;
	build_free(build);
	return trouble(r);
}
