/* A cell calls functions of this program: one is answered at once, one by a thread, since it takes long.
 *
 *	cc functions.c -llair-client -llair-proto -lzmq -lmsgpackc -ljansson -lm -pthread && ./a.out
 *
 * The functions run here, with the rights of this program. The cell sees their names, and what they return. */
#include <lair.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct lair_function functions[] = {
	{.name = "stock",
	 .doc = "How many of an article there are.",
	 .schema = "{\"type\": \"object\", \"properties\": {\"article\": {\"type\": \"string\"}}, "
		   "\"required\": [\"article\"], \"additionalProperties\": false}",
	 .returns = "{\"type\": \"integer\"}"},
	{.name = "order",
	 .doc = "Order some. It takes a while.",
	 .schema = "{\"type\": \"object\", \"properties\": {\"article\": {\"type\": \"string\"}, "
		   "\"count\": {\"type\": \"integer\"}}, \"required\": [\"article\", \"count\"], "
		   "\"additionalProperties\": false}",
	 .effect = true},
};

static const char code[] = "print('there are', tools.stock('tea'))\n"
			   "tools.order('tea', count=12)";

/* A call may be answered by any thread, at any time. Then it is no longer ours. */
static void *order(void *calling)
{
	sleep(1);
	if (lair_return(calling, lair_text("{\"ordered\": true, \"days\": 3}")))
		lair_calling_free(calling);
	return NULL;
}

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	struct lair_text function = lair_calling_function(calling), arguments = lair_calling_arguments(calling);
	pthread_t thread;
	int r;

	printf("%.*s %.*s\n", (int)function.size, function.data, (int)arguments.size, arguments.data);
	if (strcmp(function.data, "stock") == 0)
		r = lair_return(calling, lair_text("7"));
	else if (pthread_create(&thread, NULL, order, calling) == 0)
		r = pthread_detach(thread);
	else
		r = lair_raise(calling, "RuntimeError", "there is no thread left");
	if (r)
		lair_calling_free(calling);
}

int main(void)
{
	struct lair_exec exec = {
		.code = lair_text(code), .functions = functions, .n_functions = 2, .on_call = on_call};
	struct lair_call *call = NULL;
	struct lair *lair = NULL;
	int r;

	r = lair_new(&lair, NULL);
	if (!r)
		r = lair_connect(lair);
	if (!r)
		r = lair_exec(lair, &call, &exec);
	if (!r)
		r = lair_wait(call, LAIR_FOREVER);
	if (r)
		fprintf(stderr, "%s\n", lair ? lair_error(lair) : "out of memory");
	else
		printf("%.*s%.*s\n", (int)lair_result(call)->out.size, lair_result(call)->out.data,
		       (int)lair_result(call)->text.size, lair_result(call)->text.data);
	lair_call_free(call);
	lair_free(lair);
	return r != 0;
}
