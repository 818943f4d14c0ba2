/* A program that offers functions by liblair, each of which answers in another way, and tells on stdout what it
 * sees: for test_c_functions.py. provider CODE runs it as a cell, provider --attach KEY answers the calls of one
 * that runs. What it is to do with calls that ask: $APPROVE is yes, no, or absent: nothing. */
#include "lair.h"

#include <errno.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEPT_MAX = 64 };

static struct lair *lair;
static struct lair_calling *kept[KEPT_MAX];
static pthread_t late;
static bool is_late;

static void *later(void *data)
{
	struct lair_calling *calling = data;
	char text[64];

	usleep((useconds_t)(10000 + 10000 * (lair_calling_number(calling) % 20)));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)lair_calling_number(calling));
	if (lair_return(calling, lair_text(text)))
		lair_calling_free(calling);
	return NULL;
}

static int answer_later(struct lair_calling *calling)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, later, calling))
		return lair_raise(calling, "RuntimeError", "no thread");
	return pthread_detach(thread);
}

/* Waits until the cell does not want the answer, and then gives it. */
static void *too_late(void *data)
{
	struct lair_calling *calling = data;

	while (!lair_calling_cancelled(calling))
		usleep(1000);
	printf("too late: %d\n", lair_return(calling, lair_text("1")));
	fflush(stdout);
	return NULL;
}

static int answer_too_late(struct lair_calling *calling)
{
	is_late = pthread_create(&late, NULL, too_late, calling) == 0;
	return is_late ? 0 : -1;
}

static int answer_add(struct lair_calling *calling)
{
	struct lair_text arguments = lair_calling_arguments(calling);
	char text[64];
	int a = 0, b = 0;

	if (sscanf(arguments.data, "{\"a\": %d, \"b\": %d}", &a, &b) != 2)
		return lair_raise(calling, "ValueError", arguments.data);
	snprintf(text, sizeof(text), "%d", a + b);
	return lair_return(calling, lair_text(text));
}

/* What is no JSON leaves the call with us. */
static int answer_bad(struct lair_calling *calling)
{
	printf("bad: %d %d\n", lair_return(calling, lair_text("{'a'}")) == -EINVAL,
	       lair_return_packed(calling, lair_text("\x91")) == -EINVAL);
	return lair_raise(calling, "KeyError", "in the end");
}

static int answer_huge(struct lair_calling *calling)
{
	size_t size = (size_t)64 << 20;
	char *text = malloc(size);
	int r;

	if (!text)
		return lair_raise(calling, "MemoryError", "");
	memset(text, 'x', size);
	text[0] = text[size - 1] = '"';
	r = lair_return(calling, (struct lair_text){text, size});
	free(text);
	return r;
}

static int answer_parts(struct lair_calling *calling)
{
	size_t n = 100000, at = 0;
	char *text = malloc(2 * n + 2);
	int r;

	if (!text)
		return lair_raise(calling, "MemoryError", "");
	for (size_t i = 0; i < n; i++) {
		text[at++] = i ? ',' : '[';
		text[at++] = '1';
	}
	text[at++] = ']';
	r = lair_return(calling, (struct lair_text){text, at});
	free(text);
	return r;
}

static int answer_json(struct lair_calling *calling)
{
	return lair_return(
		calling,
		lair_text("[null, true, -5, 1.5, \"Gr\\u00fc\\u00dfe\", {\"k\": [\"\"]}, 9007199254740993]"));
}

static int answer_packed(struct lair_calling *calling)
{
	return lair_return_packed(calling, lair_calling_packed(calling));
}

/* A map that Python has nothing for. */
static int answer_keys(struct lair_calling *calling)
{
	return lair_return_packed(calling, (struct lair_text){"\x81\x90\xc0", 3});
}

static int answer_key(struct lair_calling *calling)
{
	char text[160];

	snprintf(text, sizeof(text), "\"%s\"", lair_calling_key(calling).data);
	return lair_return(calling, lair_text(text));
}

static int answer_deep(struct lair_calling *calling)
{
	return lair_return(calling, lair_text("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"));
}

static int answer_text(struct lair_calling *calling)
{
	return lair_raise(calling, "No name", "in a class of its own");
}

/* Later answered by whoever wants to. */
static int hold(struct lair_calling *calling)
{
	int r = lair_hold(calling, "the boss has to say");

	lair_calling_free(calling);
	return r;
}

static int hold_and_answer(struct lair_calling *calling)
{
	return lair_hold(calling, "for a moment") ? -1 : answer_later(calling);
}

static int leave(struct lair_calling *calling)
{
	lair_calling_free(calling);
	return 0;
}

static int keep(struct lair_calling *calling)
{
	kept[lair_calling_number(calling) % KEPT_MAX] = calling;
	return 0;
}

#define ANYTHING "{\"type\": \"object\", \"additionalProperties\": true}"
#define TWO "{\"type\": \"object\", \"properties\": {\"a\": {}, \"b\": {}}, \"required\": [\"a\", \"b\"]}"

static const struct {
	struct lair_function function;
	int (*answer)(struct lair_calling *calling);
} offered[] = {
	{{.name = "add", .schema = TWO, .doc = "The sum.", .returns = "{\"type\": \"integer\"}"}, answer_add},
	{{.name = "later"}, answer_later},
	{{.name = "too_late"}, answer_too_late},
	{{.name = "bad"}, answer_bad},
	{{.name = "huge"}, answer_huge},
	{{.name = "parts"}, answer_parts},
	{{.name = "json"}, answer_json},
	{{.name = "packed", .schema = ANYTHING}, answer_packed},
	{{.name = "keys"}, answer_keys},
	{{.name = "key"}, answer_key},
	{{.name = "deep"}, answer_deep},
	{{.name = "own"}, answer_text},
	{{.name = "hold"}, hold},
	{{.name = "hold_and_answer"}, hold_and_answer},
	{{.name = "leave"}, leave},
	{{.name = "keep"}, keep},
	{{.name = "pay", .schema = TWO, .ask = true, .effect = true}, answer_add},
};

enum { N_OFFERED = sizeof(offered) / sizeof(*offered) };

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	struct lair_text arguments = lair_calling_arguments(calling);

	(void)call;
	(void)userdata;
	printf("call %llu %s %s\n", (unsigned long long)lair_calling_number(calling),
	       lair_calling_function(calling).data, arguments.data);
	fflush(stdout);
	for (size_t i = 0; i < N_OFFERED; i++)
		if (strcmp(lair_calling_function(calling).data, offered[i].function.name) == 0 &&
		    offered[i].answer(calling) < 0)
			abort();
}

static void on_cancel(struct lair_call *call, uint64_t number, void *userdata)
{
	(void)call;
	(void)userdata;
	printf("cancel %llu\n", (unsigned long long)number);
	fflush(stdout);
	kept[number % KEPT_MAX] = lair_calling_free(kept[number % KEPT_MAX]);
}

static void on_decided(struct lair_call *call, void *userdata)
{
	(void)userdata;
	printf("decided: %s\n", lair_outcome(call) ? lair_call_error(call) : "yes");
	fflush(stdout);
	lair_call_free(call);
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	struct lair_answer answer = {.exec = call, .number = waiting->number};
	char *arguments = lair_json(waiting->arguments);
	const char *approve = getenv("APPROVE");
	struct lair_call *request = NULL;

	(void)userdata;
	printf("held %llu %.*s %s\n", (unsigned long long)waiting->number, (int)waiting->function.size,
	       waiting->function.data, arguments);
	fflush(stdout);
	free(arguments);
	if (!approve)
		return;
	answer.approve = strcmp(approve, "yes") == 0;
	answer.error = answer.approve ? NULL : "PermissionError";
	answer.text = answer.approve ? NULL : "pay was refused: too much";
	if (lair_answer_call(lair, &request, &answer))
		abort();
	lair_on_done(request, on_decided, NULL);
}

static int begin(struct lair_call **callp, char **argv)
{
	struct lair_function functions[N_OFFERED];
	struct lair_exec exec = {.session = getenv("SESSION"),
				 .code = lair_text(argv[1]),
				 .key = getenv("KEY"),
				 .functions = functions,
				 .n_functions = N_OFFERED,
				 .on_call = on_call,
				 .on_cancel = on_cancel,
				 .on_held = on_held};
	struct lair_attach attach = {.session = exec.session,
				     .key = argv[2],
				     .on_call = on_call,
				     .on_cancel = on_cancel,
				     .on_held = on_held};

	for (size_t i = 0; i < N_OFFERED; i++)
		functions[i] = offered[i].function;
	if (strcmp(argv[1], "--attach") == 0)
		return lair_attach(lair, callp, &attach);
	return lair_exec(lair, callp, &exec);
}

int main(int argc, char **argv)
{
	struct lair_options options = {.no_start = true};
	const struct lair_result *result;
	struct lair_call *call = NULL;
	int r;

	if (argc < 2 || lair_new(&lair, &options))
		return 2;
	r = lair_connect(lair);
	if (!r)
		r = begin(&call, argv);
	if (!r)
		r = lair_wait(call, LAIR_FOREVER);
	if (r)
		printf("trouble: %s\n", lair_error(lair));
	result = r ? NULL : lair_result(call);
	if (result && result->error_name.data)
		printf("error: %.*s: %.*s\n", (int)result->error_name.size, result->error_name.data,
		       (int)result->error_value.size, result->error_value.data);
	else if (result)
		printf("result: %.*s\n", (int)result->text.size, result->text.data);
	if (is_late)
		pthread_join(late, NULL);
	for (size_t i = 0; i < KEPT_MAX; i++)
		lair_calling_free(kept[i]);
	lair_call_free(call);
	lair_free(lair);
	return r != 0;
}
