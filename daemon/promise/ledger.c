/* The ledger of promises: it has each promise with a key, from when it is made, and its answer. Forgotten
 * promises need no record, because the same rules forget them again. A promise is written down before the
 * session that keeps it: if no session refers to it, nobody has begun its request. */
#include "promise.h"

#include "base/log.h"
#include "vault/breaker.h"
#include "vault/fault.h"
#include "vault/records.h"
#include "vault/vault.h"

static int promise_write(struct ledger *ledger, const struct promise *promise)
{
	const struct shelf *shelf = promise->shelf;
	const struct promise_record record = {
		.serial = promise->serial,
		.owner = shelf->owner,
		.session = bytes_of(shelf->session),
		.key = bytes_of(promise->key),
		.fingerprint = promise->fingerprint,
		.since = promise->since,
		.ttl = shelf->keeping.ttl,
		.number = shelf->keeping.number,
		.size = shelf->keeping.size,
		.by_root = promise->by_root,
	};

	return ledger_append(ledger, &promise_record_schema, &record);
}

_Static_assert(offsetof(struct answered_record, answer) == offsetof(struct long_answered_record, answer),
	       "the record of a long answer begins otherwise");

/* An empty bin, which the bulk stands for; or none. */
static struct bytes bin_of(const struct promise *promise, enum promise_stream stream)
{
	return (struct bytes){.data = promise->bulk && promise->bulk->bins[stream].size > 0 ? "" : NULL};
}

static int answer_write(struct ledger *ledger, const struct promise *promise)
{
	const struct long_answered_record record = {
		.serial = promise->serial,
		.since = promise->since,
		.is_cell = promise->is_cell,
		.cell = promise->cell,
		.stdout_head = promise->heads[0],
		.stderr_head = promise->heads[1],
		.answer = {.data = promise->answer, .size = promise->answer_size},
		.stdout = bin_of(promise, PROMISE_STDOUT),
		.stderr = bin_of(promise, PROMISE_STDERR),
	};
	struct text text = {.bulk = NULL};
	int r;

	if (!promise->bulk)
		return ledger_append(ledger, &answered_record_schema, &record);
	r = wire_encode(&text.encoded, &long_answered_record_schema, &record);
	if (!r)
		r = promise_load(promise, &text);
	if (!r)
		r = ledger_append_long(ledger, &text);
	text_free(&text);
	return r;
}

static void alive_add(struct promise *promise, uint64_t size)
{
	promise->alive += size;
	promise->shelf->promises->alive += size;
}

static int promise_commit(struct ledger *ledger, struct promise *promise)
{
	uint64_t before = ledger->size;
	int r = 0;

	if (!promise->written)
		r = promise_write(ledger, promise);
	promise->written |= r == 0;
	if (!r && promise->answer && !promise->answer_written)
		r = answer_write(ledger, promise);
	promise->answer_written |= r == 0 && promise->answer;
	alive_add(promise, ledger->size - before);
	return r;
}

/* With what is alive. */
static int ledger_begin(struct promises *promises)
{
	const struct life_record life = {
		.instance = bytes_of(promises->instance),
		.keeper = bytes_of(promises->keeper),
	};
	struct promise *promise;
	int r = ledger_renew(&promises->ledger);

	if (!r)
		r = ledger_append(&promises->ledger, &life_record_schema, &life);
	promises->alive = LEDGER_RECORD_OVERHEAD;
	list_for_each (promise, &promises->all, all) {
		promise->alive = 0;
		promise->written = promise->answer_written = false;
		if (!r && promise->keep)
			r = promise_commit(&promises->ledger, promise);
	}
	return r ? r : vault_store_ledger(VAULT_PROMISES, 0, &promises->ledger);
}

void promises_commit(struct promises *promises)
{
	struct promise *promise;
	int r = 0;

	if (list_empty(&promises->changed))
		return;
	if (ledger_is_stale(&promises->ledger, promises->alive))
		r = ledger_begin(promises);
	list_for_each (promise, &promises->changed, changed) {
		if (!r && promise->keep && promise->shelf)
			r = promise_commit(&promises->ledger, promise);
		/* The rest is tried again in the next round. */
		if (r)
			break;
		list_remove(&promise->changed);
	}
	if (r && !promises->unkept)
		log_error(NULL, "answers cannot be kept for another router: %s", strerror(-r));
	promises->unkept = r != 0;
}

/* ---- the way back ---- */

static int life_read(struct promises *promises, struct bytes body)
{
	struct life_record record;
	struct wire_fault fault;

	if (wire_decode_known(&record, &life_record_schema, body, &fault))
		return -EBADMSG;
	promises->inherited = !bytes_is(record.keeper, promises->keeper);
	bytes_copy(promises->instance, sizeof(promises->instance), record.instance);
	return 0;
}

static int promise_read(struct promises *promises, struct bytes body)
{
	struct promise_record record;
	struct wire_fault fault;
	struct promise *promise;
	int r;

	if (wire_decode_known(&record, &promise_record_schema, body, &fault))
		return -EBADMSG;
	r = promise_new(&promise, promises, (uid_t)record.owner, record.session, record.key, record.fingerprint,
			&(struct keeping){.ttl = record.ttl, .number = record.number, .size = record.size});
	if (r)
		return r;
	r = promise_number(promise, record.serial);
	if (r)
		return r;
	promise->by_root = record.by_root;
	promise->since = record.since;
	promise->taken = promise->written = promise->unclaimed = true;
	alive_add(promise, body.size + LEDGER_RECORD_OVERHEAD);
	return 0;
}

/* Its output, where it was too long for its answer. */
static int bulk_read(struct promise *promise, const struct long_answered_record *record)
{
	const struct bytes streams[BULK_BINS] = {record->stdout, record->stderr};
	struct exec_reply reply;
	int r = 0;

	if (!record->stdout.data && !record->stderr.data)
		return 0;
	promise->bulk = bulk_new();
	if (!promise->bulk)
		return -ENOMEM;
	if (!promise_result(promise, &reply))
		return -EBADMSG;
	for (int i = 0; i < BULK_BINS && !r; i++)
		if (streams[i].size > 0)
			r = output_bring_back(&promise->bulk->bins[i], streams[i], promise->heads[i],
					      i ? reply.stderr_dropped : reply.stdout_dropped);
	return r;
}

static int answer_read(struct promises *promises, struct bytes body)
{
	struct long_answered_record record;
	struct wire_fault fault;
	struct promise *promise;
	int r;

	if (wire_decode_known(&record, &long_answered_record_schema, body, &fault))
		return -EBADMSG;
	promise = promises_find_serial(promises, record.serial);
	if (!promise || promise->answer)
		return 0;
	promise->answer = malloc(record.answer.size + 1);
	if (!promise->answer)
		return -ENOMEM;
	memcpy(promise->answer, record.answer.data, record.answer.size);
	promise->answer_size = record.answer.size;
	promise->since = record.since;
	if (record.is_cell)
		promise_is_cell(promise);
	promise->cell = record.cell;
	promise->heads[0] = record.stdout_head;
	promise->heads[1] = record.stderr_head;
	r = bulk_read(promise, &record);
	if (r)
		return r;
	promise->answer_written = true;
	alive_add(promise, body.size + LEDGER_RECORD_OVERHEAD);
	promise->unclaimed = false;
	promise_keep(promise);
	return 0;
}

/* Whether routers died of the record at @at again and again. They did not learn whose record it is. */
static bool is_bad(struct promises *promises, struct breaker *breaker, uint64_t at)
{
	const struct thing thing = {.kind = BLAME_RECORD, .number = at};

	breaker_name(breaker, &thing);
	fault_at("revival", "promise", (struct bytes){.data = NULL});
	if (!breaker_is_open(breaker, &thing))
		return false;
	log_error(NULL, "routers died again and again of a request that was known: it is forgotten");
	promises->skipped = promises->orphaned = true;
	return true;
}

int promises_revive(struct promises *promises, int ledger, struct breaker *breaker)
{
	_cleanup_(freep) char *text = NULL;
	struct wire_frame record;
	uint64_t at = 0;
	int r = ledger_open(&promises->ledger, ledger);

	if (!r)
		r = ledger_read(&promises->ledger, &text);
	while (!r && ledger_next(&promises->ledger, text, &at, &record)) {
		if (bytes_is(record.type, life_record_schema.type))
			r = life_read(promises, record.body);
		else if (is_bad(promises, breaker, at))
			continue;
		else if (bytes_is(record.type, promise_record_schema.type))
			r = promise_read(promises, record.body);
		else if (bytes_is(record.type, answered_record_schema.type) ||
			 bytes_is(record.type, long_answered_record_schema.type))
			r = answer_read(promises, record.body);
	}
	return r;
}

struct promise *promises_claim(struct promises *promises, uint64_t serial, uid_t owner, struct bytes session,
			       const struct keeping *keeping)
{
	struct promise *promise = promises_find_serial(promises, serial);
	const struct bytes no_key = {.data = NULL};

	if (promise) {
		promise->unclaimed = false;
		return promise;
	}
	if (promise_new(&promise, promises, owner, session, no_key, 0, keeping))
		return NULL;
	if (promise_number(promise, serial))
		return NULL;
	promise->taken = true;
	return promise;
}

static void promise_lose(struct promise *promise)
{
	const struct error_reply reply = {
		.code = BYTES("lost"),
		.message = BYTES(
			"laird, or a part of it, ended before this was answered; whether it was done is not known, "
			"and its session is no more"),
	};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};

	if (wire_encode(&buffer, &error_reply_schema, &reply) == 0)
		promise_answer(promise, &error_reply_schema, &buffer, NULL);
}

void promises_settle(struct promises *promises)
{
	struct promise *promise;
	struct list unclaimed, *first;
	int r = 0;

	/* One more kept answer may be too many, so that others are forgotten. */
	list_init(&unclaimed);
	list_for_each (promise, &promises->all, all) {
		if (!promise->unclaimed)
			continue;
		list_move(&unclaimed, &promise->changed);
	}
	while ((first = list_first(&unclaimed)) != NULL) {
		promise = container_of(first, struct promise, changed);
		list_remove(&promise->changed);
		promise->unclaimed = false;
		if (promises->inherited || promises->orphaned)
			promise_lose(promise);
		else
			promise_forget(promise);
	}
	/* There is always one, since our name is in it, and it is always of this keeper. */
	if (!promises->ledger.in_force || promises->inherited || promises->skipped)
		r = ledger_begin(promises);
	if (r)
		log_error(NULL, "answers cannot be kept for another laird: %s", strerror(-r));
	promises->inherited = promises->orphaned = promises->skipped = false;
}
