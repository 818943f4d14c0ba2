/* Calls of functions that wait, and answers to them. */
#include "doors.h"

#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>

/* Those who wait for calls look when laird says that these have changed, so many at once; the next ones a little
 * later. If laird does not say, because it is an older one or is lost, they look as often. */
#define WATCH_SECONDS 60.0
#define LOOK_SECONDS 0.05
#define LOOKERS 10
#define SEEN_SIZE 17

/* Somebody who waits for calls: the state of the exchange. */
struct looking {
	struct tenant *tenant;
	const char *session; /* NULL: all */
	double until;
};

static void looking_free(void *state)
{
	struct looking *looking = state;

	if (looking)
		looking->tenant->n_lookers--;
	free(looking);
}

static void add(crypto_generichash_state *state, struct lair_text text)
{
	(void)crypto_generichash_update(state, (const unsigned char *)&text.size, sizeof(text.size));
	(void)crypto_generichash_update(state, (const unsigned char *)text.data, text.size);
}

/* The waiting calls, and a text that changes with them. */
static json_t *calls_document(const struct exchange *exchange, char seen[static SEEN_SIZE])
{
	const struct lair_waiting_list *list = lair_waiting_list(exchange->call);
	unsigned char hash[crypto_generichash_BYTES_MIN];
	json_t *array = json_array();
	crypto_generichash_state state;
	struct lair_waiting waiting;
	size_t cursor = 0;

	(void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	while (lair_next_waiting(list->calls, &cursor, &waiting)) {
		const uint64_t numbers[] = {waiting.cell, waiting.number, waiting.uid};
		struct lair_text own = tenant_own(exchange->tenant, waiting.session);

		/* One of a one-shot is nobody's whom we could tell. */
		if (!own.data && *exchange->tenant->prefix)
			continue;
		add(&state, own);
		add(&state, waiting.key);
		add(&state, waiting.state);
		(void)crypto_generichash_update(&state, (const unsigned char *)numbers, sizeof(numbers));
		json_array_append_new(array, tenant_document(exchange, json_waiting(&waiting), waiting.session));
	}
	(void)crypto_generichash_final(&state, hash, sizeof(hash));
	(void)sodium_bin2hex(seen, SEEN_SIZE, hash, (SEEN_SIZE - 1) / 2);
	return json_pack("{s:o, s:I, s:s}", "calls", array, "more", (json_int_t)list->more, "seen", seen);
}

/* ---- who waits ---- */

static void look(struct exchange *exchange);
static void watch(struct tenant *tenant);

static bool is_idle(const struct exchange *exchange, const struct tenant *tenant)
{
	return exchange->tenant == tenant && exchange->free_state == looking_free && !exchange->call &&
	       !exchange->response && !exchange->gone;
}

/* All who wait look, the first ones after so many seconds. */
static void lookers_wake(const struct tenant *tenant, double seconds)
{
	size_t n = 0;

	for (struct exchange *exchange = tenant->server->exchanges, *next; exchange; exchange = next) {
		next = exchange->next;
		if (!is_idle(exchange, tenant))
			continue;
		seconds += n > 0 && n % LOOKERS == 0 ? LOOK_SECONDS : 0;
		n++;
		if (seconds > 0)
			exchange_alarm(exchange, seconds, look);
		else
			look(exchange);
	}
}

static void on_turn(struct lair_call *call, void *userdata)
{
	struct tenant *tenant = userdata;
	uint64_t before = tenant->turn;

	tenant->turn = lair_calls_turn(call);
	tenant->watch = lair_call_free(call);
	if (!tenant->turn)
		lookers_wake(tenant, LOOK_SECONDS);
	else if (tenant->turn != before)
		lookers_wake(tenant, 0);
	if (tenant->turn && tenant->n_lookers > 0)
		watch(tenant);
}

/* A list that is made after this has begun is no older than its turn. */
static void watch(struct tenant *tenant)
{
	if (!tenant->watch && lair_watch_calls(tenant->lair, &tenant->watch, tenant->turn, WATCH_SECONDS) == 0)
		lair_on_done(tenant->watch, on_turn, tenant);
}

static void calls_done(struct exchange *exchange)
{
	const struct looking *looking = exchange->state;
	const struct tenant *tenant = exchange->tenant;
	const char *given = exchange_query(exchange, "seen");
	char seen[SEEN_SIZE];
	json_t *document = calls_document(exchange, seen);
	bool news = given ? strcmp(given, seen) != 0 : json_array_size(json_object_get(document, "calls")) > 0;
	double left = looking ? looking->until - server_now() : 0;

	if (news || left <= 0) {
		answer_json(exchange, 200, document);
		return;
	}
	json_decref(document);
	exchange->call = lair_call_free(exchange->call);
	if (!tenant->watch || !tenant->turn)
		left = fmin(left, LOOK_SECONDS * (1 + (double)tenant->n_lookers / LOOKERS));
	exchange_alarm(exchange, left, look);
}

static void look(struct exchange *exchange)
{
	const struct looking *looking = exchange->state;
	struct lair *lair = exchange_lair(exchange);

	if (!lair)
		return;
	exchange_alarm(exchange, 0, look);
	watch(exchange->tenant);
	exchange_wait(exchange, lair_calls(lair, &exchange->call, looking->session), calls_done);
}

/* Of the session, or of all of them, if the path has none. */
void v1_calls(struct exchange *exchange)
{
	const char *id = exchange_path(exchange, "id"), *session = id ? exchange_session(exchange, id) : NULL;
	const char *wait = exchange_query(exchange, "wait");
	struct looking *looking;
	struct lair *lair;

	if (id && !session)
		return;
	if (!wait) {
		lair = exchange_lair(exchange);
		if (lair)
			exchange_wait(exchange, lair_calls(lair, &exchange->call, session), calls_done);
		return;
	}
	looking = calloc(1, sizeof(*looking));
	if (!looking) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	*looking = (struct looking){
		.tenant = exchange->tenant, .session = session, .until = server_now() + strtod(wait, NULL)};
	exchange->state = looking;
	exchange->free_state = looking_free;
	looking->tenant->n_lookers++;
	look(exchange);
}

/* Exactly one of value, error and approve. */
static bool answer_take(struct exchange *exchange, struct lair_answer *answer, char **textp)
{
	const json_t *value = json_object_get(exchange->json, "value");
	const char *number = exchange_path(exchange, "number");

	*answer = (struct lair_answer){
		.cell = (uint64_t)exchange_number(exchange, "cell"),
		.number = strtoull(number, NULL, 10),
		.approve = exchange_flag(exchange, "approve"),
		.error = exchange_string(exchange, "error"),
		.text = exchange_string(exchange, "text"),
	};
	if ((value != NULL) + (answer->error != NULL) + answer->approve != 1 || answer->number == 0 ||
	    strspn(number, "0123456789") != strlen(number)) {
		answer_problem(exchange, 400, "bad_request",
			       "expected the number of a call, and one of value, error and approve");
		return false;
	}
	*textp = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	answer->value = lair_text(*textp);
	return true;
}

void v1_answer_call(struct exchange *exchange)
{
	_cleanup_(freep) char *text = NULL;
	struct lair_answer answer;
	struct lair *lair;

	if (!answer_take(exchange, &answer, &text))
		return;
	lair = session_lair(exchange, &answer.session);
	if (lair)
		exchange_wait(exchange, lair_answer_call(lair, &exchange->call, &answer), empty_done);
}
