/* Cells: made from a request, answered once. */
#include "cell.h"

#include "client.h"
#include "config/config.h"
#include "config/requirement.h"
#include "vault/records.h"

#include "proto/causes.h"

#include <limits.h>

#define ENVIRONMENT_SIZE_MAX ((size_t)64 << 10)

/* ---- how a cell is to be run ---- */

static bool environment_valid(struct bytes env)
{
	struct bytes entry;
	size_t cursor = 0;

	if (!env.data)
		return true;
	while (wire_next_string(env, &cursor, &entry)) {
		const char *equals = memchr(entry.data, '=', entry.size);

		if (!equals || equals == entry.data || memchr(entry.data, '\0', entry.size))
			return false;
	}
	return cursor == env.size && env.size <= ENVIRONMENT_SIZE_MAX;
}

/* The cage decides what a session can reach; this check is about mistakes. */
static bool directory_valid(struct bytes path)
{
	if (!path.data)
		return true;
	if (path.size >= PATH_MAX || memchr(path.data, '\0', path.size) || (path.size > 0 && path.data[0] == '/'))
		return false;
	for (size_t i = 0; i + 1 < path.size; i++)
		if (path.data[i] == '.' && path.data[i + 1] == '.' && (i == 0 || path.data[i - 1] == '/') &&
		    (i + 2 == path.size || path.data[i + 2] == '/'))
			return false;
	return true;
}

static bool packages_valid(struct bytes packages)
{
	char text[REQUIREMENT_SIZE];
	size_t cursor = 0, n = 0, name;
	struct bytes item;

	if (!packages.data)
		return true;
	while (wire_next_string(packages, &cursor, &item))
		if (requirement_normalize(text, &name, item) || ++n > REQUIREMENTS_MAX)
			return false;
	return cursor == packages.size && n == wire_count(packages);
}

const char *cell_option_wrong(const struct exec_request *exec)
{
	if (exec->figure.data && !bytes_is(exec->figure, "png") && !bytes_is(exec->figure, "svg"))
		return "figure: either png or svg";
	if (!environment_valid(exec->env))
		return "env: an array of NAME=value, not more than 64 KiB";
	if (!directory_valid(exec->directory))
		return "directory: a path in the workspace, without ..";
	if (!packages_valid(exec->packages))
		return "packages: names of projects, with versions if need be, such as polars or duckdb==1.*";
	if (exec->functions.data && !functions_valid(exec->functions))
		return "functions: an array of maps with a name of 1 to 128 characters without space, up to 512 of "
		       "them and "
		       "1 MiB in all";
	return NULL;
}

int cell_options_put(msgpack_sbuffer *buffer, const struct exec_request *exec)
{
	struct cell_options record;

	CELL_OPTIONS_FIELDS(RECORD_PUT, exec)
	return wire_encode_body(buffer, &cell_options_schema, &record);
}

/* ---- its life ---- */

static int options_copy(struct cell *cell, struct bytes options)
{
	struct wire_fault fault;
	char *data = malloc(options.size + 1);

	if (!data)
		return -ENOMEM;
	memcpy(data, options.data, options.size);
	cell->encoded = (struct bytes){.data = data, .size = options.size};
	return wire_decode_known(&cell->options, &cell_options_schema, cell->encoded, &fault) ? -EBADMSG : 0;
}

static struct cell *cell_alloc(const struct address *reply, uint64_t timeout, size_t output_limit)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (!cell)
		return NULL;
	list_init(&cell->node);
	list_init(&cell->displays.list);
	list_init(&cell->calls.list);
	output_init(&cell->stdout_, output_limit);
	output_init(&cell->stderr_, output_limit);
	cell->reply = *reply;
	cell->timeout = timeout;
	cell->asked = event_now();
	cell->file = -1;
	return cell;
}

uint64_t cell_price(struct bytes options)
{
	return sizeof(struct cell) + 2 * options.size;
}

static void cell_charge(struct cell *cell)
{
	cell->user = cell->reply.promise->shelf->user;
	cell->paid = cell_price(cell->encoded);
	user_charge(cell->user, cell->paid);
	cell->displays.user = cell->calls.user = cell->user;
	output_paid_by(&cell->stdout_, cell->user);
	output_paid_by(&cell->stderr_, cell->user);
}

int cell_new(struct cell **cellp, struct bytes options, const struct address *reply, uint64_t timeout,
	     size_t output_limit)
{
	struct cell *cell = cell_alloc(reply, timeout, output_limit);
	int r = cell ? options_copy(cell, options) : -ENOMEM;

	if (r) {
		cell_free(cell);
		return r;
	}
	promise_is_cell(reply->promise);
	reply->promise->running = cell;
	cell_charge(cell);
	*cellp = cell;
	return 0;
}

int cell_new_task(struct cell **cellp, enum cell_task task, const struct address *reply, uint64_t timeout)
{
	struct cell *cell = cell_alloc(reply, timeout, 0);

	if (!cell)
		return -ENOMEM;
	cell->task = task;
	*cellp = cell;
	return 0;
}

void cell_number(struct cell *cell, uint64_t number)
{
	cell->number = cell->reply.promise->cell = number;
	cell_start(cell);
}

void cell_start(struct cell *cell)
{
	cell->reply.promise->since = cell->started = event_now();
}

bool cell_ask(struct cell *cell, const struct ask_message *ask)
{
	struct promise *promise = cell->reply.promise;

	if (!cell->options.input)
		return false;
	free(cell->prompt);
	cell->prompt = strndup(ask->prompt.data, ask->prompt.size);
	cell->password = ask->password;
	promise_ask(promise,
		    &(struct ask_event){.prompt = ask->prompt, .password = ask->password, .number = ++cell->asks});
	/* If somebody may attach to the cell, it waits for that, as long as its time lasts. */
	cell->asking = cell->prompt && (promise->keep || promise_has(promise, ASKING_INPUT));
	return cell->asking;
}

struct cell *cell_free(struct cell *cell)
{
	if (cell) {
		list_remove(&cell->node);
		user_give_back(cell->user, cell->paid);
		output_deinit(&cell->stdout_);
		output_deinit(&cell->stderr_);
		free(cell->prompt);
		fd_close(cell->file);
		if (cell->task != CELL_CODE) {
			saved_free(cell->saved);
			saved_writing_free(cell->writing);
		}
		if (cell->displays.n > 0)
			displays_deinit(&cell->displays);
		if (cell->calls.n > 0 || cell->calls.functions)
			calls_deinit(&cell->calls);
		free((char *)cell->encoded.data);
		free(cell);
	}
	return NULL;
}

double cell_duration(const struct cell *cell)
{
	return cell->started ? (double)(event_now() - cell->started) / 1000.0 : 0.0;
}

void verdict_tell_killed(struct verdict *verdict, msgpack_sbuffer *buffer)
{
	const struct blocked_act act = {.event = BYTES("oom"), .reason = BYTES("memory-limit")};
	struct bytes item;
	int r = wire_put_array(buffer, wire_count(verdict->blocked) + 1);

	for (size_t cursor = 0; !r && wire_next(verdict->blocked, &cursor, &item);)
		r = msgpack_sbuffer_write(buffer, item.data, item.size);
	if (!r && wire_encode_body(buffer, &blocked_act_schema, &act) == 0)
		verdict->blocked = wire_bytes(buffer);
}

/* What is long is not copied: it goes to @bulk, and the field stays empty. */
static void put_output(struct bytes *field, struct output *output, uint64_t *droppedp, size_t *headp,
		       struct bulk_bin *bin)
{
	*field = (struct bytes){.data = ""};
	*droppedp = output_dropped(output);
	*headp = output->head_size;
	if (bin && output_is_long(output)) {
		output_give(output, bin);
		return;
	}
	*field = output_join(output);
	*droppedp = output_dropped(output);
	*headp = output->head_size;
}

/* Put output and displays of the cell into @reply, as far as there is memory. @displays holds some of them. */
static void put_outputs(struct exec_reply *reply, struct cell *cell, struct bulk *bulk, msgpack_sbuffer *displays)
{
	struct promise *promise = cell->reply.promise;

	put_output(&reply->stdout, &cell->stdout_, &reply->stdout_dropped, &promise->heads[0],
		   bulk ? &bulk->bins[0] : NULL);
	put_output(&reply->stderr, &cell->stderr_, &reply->stderr_dropped, &promise->heads[1],
		   bulk ? &bulk->bins[1] : NULL);
	reply->stdout_stray = cell->stdout_stray;
	reply->stderr_stray = cell->stderr_stray;
	reply->displays_dropped = cell->displays.dropped;
	reply->displays = (struct bytes){.data = NULL};
	if (cell->displays.n > 0 && displays_join(&cell->displays, displays))
		reply->displays_dropped += cell->displays.n;
	else if (cell->displays.n > 0)
		reply->displays = wire_bytes(displays);
}

static int reply_send(struct cell *cell, struct exec_reply *reply)
{
	bool is_long = output_is_long(&cell->stdout_) || output_is_long(&cell->stderr_);
	struct bulk *bulk = is_long ? bulk_new() : NULL;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer displays = {0}, buffer = {0};
	int r;

	put_outputs(reply, cell, bulk, &displays);
	r = wire_encode(&buffer, &exec_reply_schema, reply);
	if (!r)
		promise_answer(cell->reply.promise, &exec_reply_schema, &buffer, bulk);
	bulk_unref(bulk);
	return r;
}

/* There is not enough memory: drop the cell's output and displays, and count them as dropped. */
static void give_up_outputs(struct cell *cell)
{
	output_give_up(&cell->stdout_);
	output_give_up(&cell->stderr_);
	displays_give_up(&cell->displays);
}

/* What the operator can change, of all that the reply tells. */
static void cell_decided(struct deciding *deciding, const struct cell *cell, const struct profile *profile,
			 const struct verdict *verdict)
{
	bool timeout = cause_is(verdict->cause, CAUSE_TIMEOUT);
	struct ended_record ended;
	struct cell_error error;
	struct blocked_act act;
	struct wire_fault fault;
	struct bytes item;

	if (timeout && cell->timeout == profile->cell_timeout_max)
		deciding_add_setting(deciding, "cell_timeout_max");
	else if (!timeout || cell->timeout == profile->cell_timeout)
		deciding_add(deciding, bytes_of(verdict->cause));
	if (verdict->ended.data && !wire_decode(&ended, &ended_record_schema, verdict->ended, &fault))
		deciding_add(deciding, ended.why);
	if (verdict->error.data && !wire_decode(&error, &cell_error_schema, verdict->error, &fault))
		deciding_add_error(deciding, error.name, error.value);
	/* Who had it while it was written misses nothing. */
	if (!promise_has(cell->reply.promise, ASKING_STREAM) &&
	    (output_dropped(&cell->stdout_) || output_dropped(&cell->stderr_)))
		deciding_add_setting(deciding, "output_size");
	if (verdict->files_unkept && *verdict->files_unkept)
		deciding_add_setting(deciding, "checkpoint_files");
	for (size_t cursor = 0; wire_next(verdict->blocked, &cursor, &item);)
		if (!wire_decode(&act, &blocked_act_schema, item, &fault)) {
			deciding_add(deciding, act.reason);
			deciding->shows |= profile->directory && bytes_is(act.reason, "write-outside-workspace");
		}
}

int cell_reply(struct cell *cell, struct clients *clients, const char *session, const struct profile *profile,
	       const struct verdict *verdict)
{
	struct deciding deciding = {.n = 0};
	char setting[DECIDING_SIZE];
	struct exec_reply reply = {
		.id = cell->reply.id,
		.session = bytes_of(session),
		.cell = cell->number,
		.returncode = verdict->returncode,
		.state = bytes_of(verdict->state),
		.cause = bytes_of(verdict->cause),
		.text = verdict->text,
		.data = verdict->data,
		.error = verdict->error,
		.blocked = verdict->blocked,
		.artifacts = verdict->artifacts,
		.artifacts_more = verdict->artifacts_more,
		.unfaithful = verdict->unfaithful,
		.restored = verdict->restored,
		.forgotten = verdict->forgotten,
		.effects = verdict->effects,
		.effects_more = verdict->effects_more,
		.files = verdict->files,
		.files_more = verdict->files_more,
		.files_stay = record_text(verdict->files_stay),
		.files_unkept = record_text(verdict->files_unkept),
		.duration_ms = cell_duration(cell),
		.language = record_text(verdict->language),
		.birth = verdict->birth,
		.ended = verdict->ended,
	};
	int r;

	cell_decided(&deciding, cell, profile, verdict);
	reply.setting = client_setting(setting, clients, cell->reply.uid, &deciding, profile->name);
	if (cause_is(verdict->cause, CAUSE_TIMEOUT))
		reply.limit = event_seconds(cell->timeout);
	if (verdict->load_report) {
		reply.saved_age = verdict->load_report->age;
		reply.saved_damaged = record_text(verdict->load_report->damaged);
		reply.loaded = wire_bytes(&verdict->load_report->loaded);
		reply.not_loaded = wire_bytes(&verdict->load_report->not_loaded);
	}
	r = reply_send(cell, &reply);
	if (r == -ENOMEM) {
		give_up_outputs(cell);
		r = reply_send(cell, &reply);
	}
	if (r == -ENOMEM)
		r = client_error(
			clients, &cell->reply, "internal",
			"the cell has run, and the state of the session is \"%s\", but there is no memory to "
			"tell its result",
			verdict->state);
	return r;
}

int cell_write_display(const struct cell *cell, struct ledger *ledger, const struct shown *shown)
{
	struct display_record record = {.promise = cell->reply.promise->serial};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer body = {0};
	int r;

	r = wire_encode_body(&body, &shown_schema, shown);
	record.shown = wire_bytes(&body);
	if (!r)
		r = ledger_append(ledger, &display_record_schema, &record);
	return r;
}
