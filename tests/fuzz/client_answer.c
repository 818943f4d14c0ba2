/* Whatever a daemon sends: one call of every kind is on its way, and every answer that is taken is read to the end.
 */
#include "lib/handle.h"

static volatile size_t sink;

static void read_text(struct lair_text text)
{
	for (size_t i = 0; i < text.size; i++)
		sink += (unsigned char)text.data[i];
}

static void read_session(const struct lair_session *session)
{
	struct lair_text guard;
	size_t cursor = 0;

	read_text(session->session);
	read_text(session->workspace);
	while (lair_next_text(session->guards, &cursor, &guard))
		read_text(guard);
}

static void read_result(const struct lair_result *result)
{
	struct lair_blocked act;
	size_t cursor = 0;

	read_text(result->out);
	read_text(result->text);
	read_text(result->error_traceback);
	read_text(result->unfaithful);
	while (lair_next_blocked(result->blocked, &cursor, &act))
		read_text(act.target);
}

static void read_checkpoints(struct lair_items items)
{
	struct lair_checkpoint checkpoint;
	size_t cursor = 0;

	while (lair_next_checkpoint(items, &cursor, &checkpoint))
		read_text(checkpoint.name);
}

static void read_waiting(const struct lair_waiting_list *list)
{
	struct lair_waiting waiting;
	size_t cursor = 0;

	while (list && lair_next_waiting(list->calls, &cursor, &waiting)) {
		char *arguments = lair_json(waiting.arguments);

		read_text(waiting.function);
		read_text(lair_text(arguments));
		free(arguments);
	}
}

static void read_files(const struct lair_call *call)
{
	struct lair_file file;
	size_t cursor = 0;

	if (lair_piece(call))
		read_text(lair_piece(call)->data);
	if (lair_transfer(call))
		sink += lair_transfer(call)->offset;
	while (lair_listing(call) && lair_next_file(lair_listing(call)->files, &cursor, &file))
		read_text(file.name);
}

static void read_answer(const struct lair_call *call)
{
	struct lair_session session;
	size_t cursor = 0;

	sink += strlen(lair_call_error(call));
	if (lair_session(call))
		read_session(lair_session(call));
	if (lair_result(call))
		read_result(lair_result(call));
	if (lair_daemon(call))
		read_text(lair_daemon(call)->server);
	if (lair_state(call))
		read_text(lair_state(call)->name);
	read_checkpoints(lair_checkpoint_list(call));
	read_files(call);
	read_waiting(lair_waiting_list(call));
	while (lair_next_session(lair_sessions(call), &cursor, &session))
		read_session(&session);
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	(void)call;
	(void)stream;
	(void)userdata;
	read_text(data);
}

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	(void)call;
	(void)password;
	(void)userdata;
	read_text(prompt);
}

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	(void)call;
	(void)userdata;
	read_text(lair_calling_function(calling));
	read_text(lair_calling_arguments(calling));
	if (lair_return(calling, lair_calling_function(calling)) < 0)
		lair_calling_free(calling);
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	char *arguments = lair_json(waiting->arguments);

	(void)call;
	(void)userdata;
	read_text(waiting->text);
	read_text(lair_text(arguments));
	free(arguments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wire_schema *const replies[] = {
		&hello_reply_schema,	   &session_info_schema, &exec_reply_schema,	 &empty_reply_schema,
		&interrupt_reply_schema,   &list_reply_schema,	 &stats_reply_schema,	 &state_reply_schema,
		&checkpoints_reply_schema, &get_reply_schema,	 &transfer_reply_schema, &files_reply_schema,
		&calls_reply_schema,
	};
	struct lair_call *calls[ARRAY_SIZE(replies)];
	struct lair lair = {.epoll = -1, .wake = -1, .queue = answer_queue_new()};
	zmq_msg_t message;

	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		calls[i] = call_new(&lair, replies[i]);
		calls[i]->exec = (struct lair_exec){
			.on_output = on_output, .on_ask = on_ask, .on_call = on_call, .on_held = on_held};
	}
	zmq_msg_init_size(&message, size);
	memcpy(zmq_msg_data(&message), data, size);
	call_dispatch(&lair, &message);
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		read_answer(calls[i]);
		lair_call_free(calls[i]);
	}
	answer_queue_close(lair.queue);
	return 0;
}
