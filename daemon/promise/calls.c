/* The calls of a cell that wait. */
#include "calls.h"

#include "proto/event.h"

#define NAME_MAX_BYTES 128
/* Of what is kept of a reason. */
#define WHY_MAX 1024

static size_t size_of(const struct call *call)
{
	return call->function.size + call->arguments.size + (call->text ? strlen(call->text) : 0);
}

static uint64_t price_of(const struct call *call)
{
	return sizeof(*call) + 2 * size_of(call);
}

void calls_remove(struct calls *calls, struct call *call)
{
	list_remove(&call->node);
	calls->n--;
	calls->size -= size_of(call);
	user_give_back(calls->user, price_of(call));
	free((char *)call->function.data);
	free(call->text);
	free(call);
}

void calls_deinit(struct calls *calls)
{
	struct call *call;

	list_for_each (call, &calls->list, node)
		calls_remove(calls, call);
	free(calls->functions);
}

struct call *calls_find(const struct calls *calls, uint64_t number)
{
	struct call *call;

	list_for_each (call, (struct list *)&calls->list, node)
		if (call->number == number)
			return call;
	return NULL;
}

/* One allocation has the name and the arguments. */
static int call_copy(struct call *call, const struct call_message *message)
{
	size_t name = message->function.size, size = message->arguments.size;
	char *data = malloc(name + size + 1);

	if (!data)
		return -ENOMEM;
	memcpy(data, message->function.data, name);
	memcpy(data + name, message->arguments.data, size);
	call->function = (struct bytes){.data = data, .size = name};
	call->arguments = (struct bytes){.data = data + name, .size = size};
	return 0;
}

int calls_add(struct call **callp, struct calls *calls, const struct call_message *message)
{
	struct call *call;

	call = calloc(1, sizeof(*call));
	if (!call || call_copy(call, message)) {
		free(call);
		return -ENOMEM;
	}
	if (!user_take(calls->user, price_of(call))) {
		free((char *)call->function.data);
		free(call);
		return -EDQUOT;
	}
	call->number = message->number;
	call->again = message->again;
	call->since = event_now();
	list_init(&call->node);
	list_append(&calls->list, &call->node);
	calls->n++;
	calls->size += size_of(call);
	*callp = call;
	return 0;
}

void call_turn(struct calls *calls, struct call *call, enum call_state state, struct bytes why)
{
	size_t size = MIN(why.size, (size_t)WHY_MAX);

	while (size > 0 && size < why.size && (why.data[size] & 0xc0) == 0x80)
		size--;
	calls->size -= size_of(call);
	user_give_back(calls->user, price_of(call));
	free(call->text);
	call->text = size > 0 ? strndup(why.data, size) : NULL;
	calls->size += size_of(call);
	user_charge(calls->user, price_of(call));
	call->state = state;
	call->turned = state == CALL_OUT ? 0 : event_now();
	call->turn_written = false;
}

void call_given(struct call *call)
{
	if (call->turned)
		return;
	call->turned = event_now();
	call->turn_written = false;
}

uint64_t call_due(const struct call *call, uint64_t hold)
{
	uint64_t most = call->state == CALL_OUT ? call->timeout : hold;

	return call->turned && most ? call->turned + most : 0;
}

bool calls_wait(const struct calls *calls)
{
	const struct call *call;

	list_for_each (call, (struct list *)&calls->list, node)
		if (call->state != CALL_OUT)
			return true;
	return false;
}

int calls_numbers(const struct calls *calls, struct wire_list *list)
{
	const struct call *call;

	list_for_each (call, (struct list *)&calls->list, node)
		(void)wire_list_add_uint(list, call->number);
	return list->r;
}

/* ---- what a client offers ---- */

static bool name_valid(struct bytes name)
{
	if (name.size == 0 || name.size > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < name.size; i++)
		if ((unsigned char)name.data[i] <= ' ' || name.data[i] == 0x7f)
			return false;
	return true;
}

static bool function_next(struct bytes functions, size_t *cursor, struct function *function)
{
	struct wire_fault fault;
	struct bytes item;

	return wire_next(functions, cursor, &item) && !wire_decode_known(function, &function_schema, item, &fault);
}

bool functions_valid(struct bytes functions)
{
	struct function function;
	size_t cursor = 0, n = 0;

	if (functions.size > FUNCTIONS_SIZE_MAX)
		return false;
	while (function_next(functions, &cursor, &function))
		if (!name_valid(function.name) || function.timeout < 0 || ++n > FUNCTIONS_MAX)
			return false;
	return cursor > 0 && n == wire_count(functions);
}

static int by_name(const void *a, const void *b)
{
	const struct bytes left = ((const struct function *)a)->name, right = ((const struct function *)b)->name;
	int r = memcmp(left.data, right.data, MIN(left.size, right.size));

	return r ? r : (left.size > right.size) - (left.size < right.size);
}

/* Of two with one name the first one offered comes first. */
static int by_name_and_place(const void *a, const void *b)
{
	const struct function *left = a, *right = b;
	int r = by_name(a, b);

	return r ? r : (left->name.data > right->name.data) - (left->name.data < right->name.data);
}

/* They may be many, and a cell may call often. */
static void functions_read(struct calls *calls, struct bytes functions)
{
	size_t n = wire_count(functions), cursor = 0;

	calls->functions = calloc(n + 1, sizeof(*calls->functions));
	if (!calls->functions)
		return;
	while (calls->n_functions < n && function_next(functions, &cursor, &calls->functions[calls->n_functions]))
		calls->n_functions++;
	qsort(calls->functions, calls->n_functions, sizeof(*calls->functions), by_name_and_place);
}

const struct function *calls_function(struct calls *calls, struct bytes functions, struct bytes name)
{
	const struct function wanted = {.name = name}, *found;

	if (!functions.data)
		return NULL;
	if (!calls->functions)
		functions_read(calls, functions);
	if (!calls->functions)
		return NULL;
	found = bsearch(&wanted, calls->functions, calls->n_functions, sizeof(wanted), by_name);
	while (found && found > calls->functions && by_name(found - 1, &wanted) == 0)
		found--;
	return found;
}
