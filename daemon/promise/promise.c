/* Promises: who asked for what, and the answer. One shelf holds those of one session and user. Answers are
 * bounded by the shelf, in number and bytes, and by the user, in bytes. Nothing here is freed before the round
 * ends, since the handler that caused an answer may still hold the promise. */
#include "promise.h"

#include "config/config.h"

#include <search.h>
#include <stdio.h>

static struct list nothing = {.next = &nothing, .previous = &nothing};

/* ---- shelves ---- */

static int compare_shelves(const void *a, const void *b)
{
	const struct shelf *left = a, *right = b;

	if (left->owner != right->owner)
		return left->owner < right->owner ? -1 : 1;
	return strcmp(left->session, right->session);
}

static struct shelf *shelf_find(struct promises *promises, uid_t owner, struct bytes session)
{
	struct shelf key = {.owner = owner}, **found;

	if (session.size >= sizeof(key.session))
		return NULL;
	if (session.size > 0)
		memcpy(key.session, session.data, session.size);
	found = tfind(&key, &promises->table, compare_shelves);
	return found ? *found : NULL;
}

static struct shelf *shelf_get(struct promises *promises, uid_t owner, struct bytes session)
{
	struct shelf *shelf = shelf_find(promises, owner, session);
	struct user *user = shelf ? shelf->user : user_get(promises->users, owner);

	if (shelf || !user || session.size >= sizeof(shelf->session))
		return shelf;
	shelf = calloc(1, sizeof(*shelf));
	if (!shelf)
		return NULL;
	shelf->owner = owner;
	shelf->promises = promises;
	shelf->user = user;
	list_init(&shelf->list);
	list_init(&shelf->cells);
	for (int i = 0; i < 2; i++)
		list_init(&shelf->answered[i]);
	if (session.size > 0)
		memcpy(shelf->session, session.data, session.size);
	if (!tsearch(shelf, &promises->table, compare_shelves)) {
		free(shelf);
		return NULL;
	}
	return shelf;
}

static void shelf_free_if_empty(struct shelf *shelf)
{
	if (!list_empty(&shelf->list))
		return;
	tdelete(shelf, &shelf->promises->table, compare_shelves);
	free(shelf);
}

struct list *promises_cells_of(struct promises *promises, uid_t owner, struct bytes session)
{
	struct shelf *shelf = shelf_find(promises, owner, session);

	return shelf ? &shelf->cells : &nothing;
}

/* ---- all of them ---- */

static bool make_room(struct user *user);

/* Nobody finds it any more. */
static void promise_hide(struct promise *promise)
{
	struct list *nodes[] = {&promise->node,	    &promise->all,   &promise->changed,
				&promise->answered, &promise->cells, &promise->of_user};

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		list_remove(nodes[i]);
	table_remove(&promise->by_serial);
	table_remove(&promise->by_key);
}

static void promise_free(struct promise *promise)
{
	promise_leave_all(promise);
	promise_hide(promise);
	free(promise->answer);
	bulk_unref(promise->bulk);
	free(promise);
}

static void promise_free_dead(struct grave *grave)
{
	promise_free(container_of(grave, struct promise, grave));
}

void promises_init(struct promises *promises, struct event_loop *loop, struct clients *clients, struct users *users,
		   const char keeper[static INSTANCE_NAME_SIZE])
{
	/* No number is ever given twice, by whichever router. */
	*promises = (struct promises){.loop = loop, .clients = clients, .users = users, .last_serial = event_now()};
	users->make_room = make_room;
	graveyard_init(&promises->dead, promise_free_dead);
	list_init(&promises->all);
	list_init(&promises->changed);
	table_init(&promises->by_serial);
	table_init(&promises->by_key);
	ledger_init(&promises->ledger);
	memcpy(promises->keeper, keeper, sizeof(promises->keeper));
	memcpy(promises->instance, keeper, sizeof(promises->instance));
}

static void shelf_free(void *p)
{
	struct shelf *shelf = p;
	struct promise *promise;

	list_for_each (promise, &shelf->list, node) {
		timer_clear(shelf->promises->loop, &promise->expiry);
		promise_free(promise);
	}
	free(shelf);
}

void promises_deinit(struct promises *promises)
{
	if (!promises->loop)
		return;
	graveyard_empty(&promises->dead);
	tdestroy(promises->table, shelf_free);
	table_deinit(&promises->by_serial);
	table_deinit(&promises->by_key);
	ledger_deinit(&promises->ledger);
}

static uint64_t hash_of_name(uid_t owner, struct bytes session, struct bytes key)
{
	struct hash hash = hash_begin();

	hash_add_number(&hash, owner);
	hash_add_number(&hash, session.size);
	hash_add(&hash, session);
	hash_add(&hash, key);
	return hash_end(&hash);
}

static bool is_named(const struct promise *promise, struct bytes session, struct bytes key)
{
	return bytes_is(key, promise->key) && bytes_equal(session, bytes_of(promise->shelf->session));
}

struct promise *promises_find_key(struct promises *promises, uid_t owner, struct bytes session, struct bytes key)
{
	struct promise *promise;

	table_for_each (promise, &promises->by_key, hash_of_name(owner, session, key), by_key)
		if (promise->shelf->owner == owner && is_named(promise, session, key))
			return promise;
	return NULL;
}

struct promise *promises_find_cell(struct promises *promises, uid_t owner, struct bytes session, uint64_t cell)
{
	struct promise *promise, *found = NULL;

	list_for_each (promise, promises_cells_of(promises, owner, session), cells)
		if (promise->cell == cell)
			found = promise;
	return found;
}

/* ---- making one ---- */

bool key_valid(struct bytes key)
{
	if (key.size == 0 || key.size > KEY_MAX)
		return false;
	for (size_t i = 0; i < key.size; i++)
		if (key.data[i] <= ' ' || key.data[i] > '~')
			return false;
	return true;
}

/* FNV-1a: it tells a mistake from a repetition; nobody attacks it. */
static uint64_t fingerprint_add(uint64_t hash, struct bytes data)
{
	for (size_t i = 0; i < data.size; i++)
		hash = (hash ^ (uint8_t)data.data[i]) * 0x100000001b3ULL;
	return hash;
}

/* Such a field counts as absent. A field of a later build is absent in older requests, and another client may
 * send a default value. */
static bool says_nothing(const struct wire_schema *schema, const struct wire_field *field, const void *slot)
{
	if (schema == &undo_request_schema && bytes_is(field->name, "n"))
		return *(const uint64_t *)slot <= 1;
	return !wire_field_present(field, slot);
}

uint64_t promise_fingerprint(const struct wire_schema *schema, const void *request)
{
	/* Fields that may differ from one time to the next. */
	static const char *const manners[] = {"id",	"key",	  "stream",   "input", "detach",
					      "stdout", "stderr", "displays", "birth"};
	uint64_t hash = fingerprint_add(0xcbf29ce484222325ULL, bytes_of(schema->type));

	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct wire_field *field = &schema->fields[i];
		const void *slot = (const char *)request + field->offset;
		bool counts = true;

		for (size_t k = 0; k < ARRAY_SIZE(manners); k++)
			counts &= !bytes_is(field->name, manners[k]);
		if (!counts || says_nothing(schema, field, slot))
			continue;
		hash = fingerprint_add(hash, field->name);
		if (field->type == WIRE_STR || field->type == WIRE_BIN || field->type == WIRE_RAW)
			hash = fingerprint_add(hash, *(const struct bytes *)slot);
		else
			hash = fingerprint_add(
				hash,
				(struct bytes){.data = slot, .size = field->type == WIRE_FLAG ? sizeof(bool) : 8});
	}
	return hash;
}

bool promise_is_of(const struct promise *promise, const struct wire_schema *schema, const void *request)
{
	return promise->fingerprint == 0 || promise->fingerprint == promise_fingerprint(schema, request);
}

static void promise_changes(struct promise *promise)
{
	list_move(&promise->shelf->promises->changed, &promise->changed);
}

struct keeping profile_keeping(const struct profile *profile)
{
	return (struct keeping){
		.ttl = profile->result_ttl, .number = profile->results, .size = profile->results_size};
}

/* It has a key, which does not change any more. */
static int key_note(struct promise *promise)
{
	const struct shelf *shelf = promise->shelf;

	return table_add(&shelf->promises->by_key, &promise->by_key,
			 hash_of_name(shelf->owner, bytes_of(shelf->session), bytes_of(promise->key)));
}

int promise_new(struct promise **promisep, struct promises *promises, uid_t owner, struct bytes session,
		struct bytes key, uint64_t fingerprint, const struct keeping *keeping)
{
	struct promise *promise = calloc(1, sizeof(*promise));
	struct shelf *shelf = promise ? shelf_get(promises, owner, session) : NULL;

	if (!shelf) {
		free(promise);
		return -ENOMEM;
	}
	shelf->keeping = *keeping;
	promise->shelf = shelf;
	promise->fingerprint = fingerprint;
	promise->keep = key.size > 0;
	promise->since = event_now();
	list_init(&promise->node);
	list_init(&promise->all);
	list_init(&promise->of_user);
	list_init(&promise->answered);
	list_init(&promise->cells);
	list_init(&promise->changed);
	list_init(&promise->askers);
	list_append(&promises->all, &promise->all);
	promise_changes(promise);
	list_append(&shelf->list, &promise->node);
	if (key.size > 0)
		memcpy(promise->key, key.data, key.size);
	if (promise_number(promise, promises->last_serial + 1) || (key.size > 0 && key_note(promise))) {
		promise_forget(promise);
		return -ENOMEM;
	}
	*promisep = promise;
	return 0;
}

int promise_number(struct promise *promise, uint64_t serial)
{
	struct promises *promises = promise->shelf->promises;

	promise->serial = serial;
	promises->last_serial = MAX(promises->last_serial, serial);
	table_remove(&promise->by_serial);
	return table_add(&promises->by_serial, &promise->by_serial, hash_of_number(serial));
}

struct promise *promises_find_serial(struct promises *promises, uint64_t serial)
{
	struct promise *promise;

	table_for_each (promise, &promises->by_serial, hash_of_number(serial), by_serial)
		if (promise->serial == serial)
			return promise;
	return NULL;
}

void promise_is_cell(struct promise *promise)
{
	promise->is_cell = true;
	if (list_empty(&promise->cells) && promise->shelf)
		list_append(&promise->shelf->cells, &promise->cells);
}

void promise_name(struct promise *promise)
{
	struct promises *promises = promise->shelf->promises;

	promises->last_made = MAX(promises->last_made + 1, event_now());
	snprintf(promise->key, sizeof(promise->key), "cell-%llx", (unsigned long long)promises->last_made);
	(void)key_note(promise);
}

/* ---- forgetting ---- */

uint64_t promise_answer_size(const struct promise *promise)
{
	return promise->answer_size + bulk_size(promise->bulk);
}

static uint64_t size_of(const struct promise *promise)
{
	return sizeof(*promise) + promise_answer_size(promise);
}

void promise_forget(struct promise *promise)
{
	struct shelf *shelf = promise->shelf;

	if (!shelf)
		return;
	if (!list_empty(&promise->of_user)) {
		shelf->n_cells -= promise->is_cell;
		shelf->size -= size_of(promise);
		shelf->user->kept -= size_of(promise);
	}
	timer_clear(shelf->promises->loop, &promise->expiry);
	promise_hide(promise);
	(void)graveyard_bury(&shelf->promises->dead, &promise->grave);
	shelf->promises->alive -= promise->alive;
	promise->shelf = NULL;
	shelf_free_if_empty(shelf);
}

/* The newest, @except, stays. */
static bool forget_oldest(struct user *user, const struct promise *except)
{
	struct list *first = list_first(&user->answered);
	struct promise *oldest = first ? container_of(first, struct promise, of_user) : NULL;

	if (!oldest || oldest == except)
		return false;
	user->made_room++;
	promise_forget(oldest);
	return true;
}

static bool make_room(struct user *user)
{
	return forget_oldest(user, NULL);
}

static bool has_too_much(const struct user *user, uint64_t most)
{
	uint64_t share = user->users->share;

	return user->kept > most || (share && user_holds(user) > share);
}

static void on_expiry(struct timer *timer)
{
	promise_forget(container_of(timer, struct promise, expiry));
}

static struct promise *oldest_of(struct list *answered, const struct promise *except)
{
	struct list *first = list_first(answered);
	struct promise *promise = first ? container_of(first, struct promise, answered) : NULL;

	return promise == except ? NULL : promise;
}

static struct promise *oldest_answered(struct shelf *shelf, const struct promise *except)
{
	struct promise *cell = oldest_of(&shelf->answered[true], except);
	struct promise *other = oldest_of(&shelf->answered[false], except);

	if (!cell || !other)
		return cell ? cell : other;
	return cell->since <= other->since ? cell : other;
}

/* Only results of cells count by number: other answers are small, and must not push results out. */
static struct promise *excess(struct shelf *shelf, const struct promise *except)
{
	struct promise *found = NULL;

	if (shelf->n_cells > shelf->keeping.number)
		found = oldest_of(&shelf->answered[true], except);
	if (!found && shelf->size > shelf->keeping.size)
		found = oldest_answered(shelf, except);
	return found;
}

void promise_keep(struct promise *promise)
{
	struct shelf *shelf = promise->shelf;
	struct user *user = shelf->user;
	struct promise *oldest;

	list_append(&user->answered, &promise->of_user);
	list_append(&shelf->answered[promise->is_cell], &promise->answered);
	shelf->n_cells += promise->is_cell;
	shelf->size += size_of(promise);
	user->kept += size_of(promise);
	while ((oldest = excess(shelf, promise)) != NULL)
		promise_forget(oldest);
	while (has_too_much(user, shelf->promises->size_per_user))
		if (!forget_oldest(user, promise))
			break;
	(void)timer_set(shelf->promises->loop, &promise->expiry, promise->since + shelf->keeping.ttl, on_expiry);
}

/* ---- the answer ---- */

bool promise_result(const struct promise *promise, struct exec_reply *reply)
{
	const struct bytes answer = {.data = promise->answer, .size = promise->answer_size};
	struct wire_fault fault;
	struct wire_frame frame;

	return promise->is_cell && !wire_open_answer(&frame, answer) &&
	       bytes_is(frame.type, exec_reply_schema.type) &&
	       !wire_decode_known(reply, &exec_reply_schema, frame.body, &fault);
}

/* What an answer was made in has room for more. */
static char *shrink(char *data, size_t size)
{
	char *exact = realloc(data, MAX(size, (size_t)1));

	return exact ? exact : data;
}

int promise_load(const struct promise *promise, struct text *text)
{
	const struct bytes names[BULK_BINS] = {BYTES("stdout"), BYTES("stderr")};

	return promise->bulk ? text_load(text, promise->bulk, names) : 0;
}

void promise_answer(struct promise *promise, const struct wire_schema *schema, msgpack_sbuffer *buffer,
		    struct bulk *bulk)
{
	bool refused = schema == &error_reply_schema && !promise->taken;

	/* A former router answered it, and died before it could write down that the request was done. */
	if (promise->answer)
		return;
	promise->answer_size = buffer->size;
	promise->answer = msgpack_sbuffer_release(buffer);
	promise->bulk = bulk ? bulk_ref(bulk) : NULL;
	promise->since = event_now();
	promise->running = NULL;
	promise_changes(promise);
	if (promise->keep || !promise_give_answer(promise))
		promise_answer_all(promise);
	if (refused || !promise->keep) {
		promise_forget(promise);
		return;
	}
	promise->answer = shrink(promise->answer, promise->answer_size);
	promise_keep(promise);
}

void promise_taken(struct promise *promise)
{
	promise->taken = true;
}
