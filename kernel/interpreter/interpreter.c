/* The interpreter: reads `run`, runs the cell, answers `done`. SIGINT is blocked except while a cell runs, so an
 * interrupt ends a cell or nothing. Only the process that the warden made speaks on the channel: if a cell forks
 * and the child returns from the cell, the child ends here. */
#include "interpreter.h"

#include "channel.h"
#include "describe.h"
#include "frozen.h"
#include "idle.h"
#include "language.h"
#include "observe/artifacts.h"
#include "observe/effects.h"
#include "observe/output.h"
#include "observe/rewriting.h"
#include "process.h"
#include "proto/outbuffer.h"
#include "threads/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	pthread_t thread; /* the main thread, which alone reads the channel */
	struct language_result result;
	msgpack_sbuffer answer;
	bool running, input, watched; /* a cell runs; somebody answers its questions; somebody watches */
	bool asking;		      /* the main thread waits for an answer of the client */
} self;

/* ---- what a cell says to the client ---- */

const char *interpreter_cannot_ask(void)
{
	if (!process_is_interpreter())
		return "a child process cannot read from the session's client";
	if (!interpreter_is_main())
		return "only the main thread can read from the session's client";
	return self.running && self.input ? NULL : "nobody answers: this cell was run without input";
}

/* Any other message now means that the session is ending. */
static int await_answer(struct answer_message *answer)
{
	struct wire_frame message;
	int r;

	do {
		r = exec_channel_wait();
		if (r)
			return r;
		(void)exec_channel_cramped();
		r = exec_channel_receive(&message);
	} while (!r && language.heard && language.heard(&message));
	if (!r)
		r = exec_channel_decode(answer, &answer_message_schema, &message);
	return r ? -EPIPE : 0;
}

int interpreter_ask(struct answer_message *answer, const struct ask_message *question)
{
	int r;

	output_flush_all();
	self.asking = true;
	r = exec_channel_send(&ask_message_schema, question);
	if (!r)
		r = await_answer(answer);
	else if (r != -EMSGSIZE)
		r = -EPIPE;
	self.asking = false;
	return r;
}

/* While this waits for the router, the cell may end. */
int interpreter_tell(const struct wire_schema *schema, const void *message)
{
	int r = -EAGAIN;

	while (r == -EAGAIN && self.running && process_is_interpreter() && exec_channel_there()) {
		output_flush_all();
		r = exec_channel_try(schema, message);
	}
	return r;
}

int interpreter_show(const struct wire_schema *schema, const void *message)
{
	int r = interpreter_tell(schema, message);

	while (!r && self.watched && exec_channel_has_unread())
		if (language.interrupted && language.interrupted())
			r = -EINTR;
	return r;
}

bool interpreter_is_asking(void)
{
	return self.asking;
}

bool interpreter_is_main(void)
{
	return pthread_equal(pthread_self(), self.thread);
}

/* ---- cells ---- */

/* An interrupt that came too late for the last cell is not meant for this one. But one that came before this cell
 * began may be: then output_interrupted names this cell. */
static void interrupts_discard(uint64_t cell)
{
	static const struct timespec now = {0};
	sigset_t interrupt;

	if (output_interrupted() == cell)
		return;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	while (sigtimedwait(&interrupt, NULL, &now) == SIGINT)
		;
	if (language.interrupts_forget)
		language.interrupts_forget();
}

static void interrupts_block(bool block)
{
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &interrupt, NULL);
}

/* Cell 0 is a rehearsal: it tells the client nothing. An interrupt that comes meanwhile waits for its own cell.
 * @run: NULL for a task. */
static void cell_begin(uint64_t cell, const struct cell_options *options)
{
	self.running = cell != 0;
	self.input = options && options->input;
	self.watched = options && options->stream;
	if (language.begin)
		language.begin(cell, options);
	effects_mark();
	artifacts_begin();
	rewriting_cell();
	if (cell == 0)
		return;
	interrupts_discard(cell);
	interrupts_block(false);
}

static void cell_end(const struct cell_options *options)
{
	interrupts_block(true);
	self.running = false;
	if (language.end)
		language.end(options);
	output_end();
}

static void result_clear(struct language_result *result)
{
	result->returncode = 0;
	result->cause = NULL;
	result->has_text = false;
	exec_channel_trim(&result->text);
	exec_channel_trim(&result->data);
	exec_channel_trim(&result->error);
	exec_channel_trim(&result->report);
}

static void cell_around(uint64_t number, const struct cell_options *options)
{
	cell_begin(number, options);
	language.run(&self.result, number, options);
	cell_end(options);
}

static struct bytes filled(const msgpack_sbuffer *buffer)
{
	return buffer->size > 0 ? wire_bytes(buffer) : (struct bytes){0};
}

static struct bytes text_of(const struct language_result *result)
{
	if (!result->has_text)
		return (struct bytes){0};
	return result->text.size > 0 ? wire_bytes(&result->text) : bytes_of("");
}

/* Whether something may be written before the next cell. */
static bool is_restless(void)
{
	siginfo_t child;

	return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 || idle_has_work() || !threads_alone();
}

static int answer_done(struct language_result *result, uint64_t number)
{
	struct done_message done = {.cell = number,
				    .returncode = result->returncode,
				    .cause = bytes_of(result->cause),
				    .text = text_of(result),
				    .data = filled(&result->data),
				    .error = filled(&result->error),
				    .report = filled(&result->report),
				    .unfaithful = bytes_of(why_no_checkpoint())};
	struct rewriting rewriting = rewriting_so_far();
	struct artifacts_found found;
	int r;

	if (language.blocked)
		done.blocked = language.blocked();
	effects_mark();
	found = artifacts_end(!language.may_have_changed || language.may_have_changed());
	done.artifacts = found.files;
	done.artifacts_more = found.more;
	done.changed = found.changed;
	done.mapped = found.mapped;
	done.rewritten = rewriting.bytes;
	done.rewriting = rewriting.us;
	done.restless = done.unfaithful.data || found.strangers || is_restless();
	r = exec_channel_send(&done_message_schema, &done);
	result_clear(result);
	return r;
}

/* If a cell forks, its child may come back out of the cell. It is no interpreter, so it ends. */
static void end_if_child(void)
{
	if (process_is_interpreter())
		return;
	output_flush_all();
	_exit(self.result.returncode);
}

static int serve_run(const struct wire_frame *message)
{
	struct cell_options options;
	struct run_message run;
	struct wire_fault fault;
	int r;

	r = exec_channel_decode(&run, &run_message_schema, message);
	if (r || wire_decode(&options, &cell_options_schema, run.options, &fault))
		return -EBADMSG;
	/* This holds until the next cell, whatever else runs meanwhile: threads may go on to write. */
	output_begin(options.stream);
	cell_around(run.cell, &options);
	end_if_child();
	return answer_done(&self.result, run.cell);
}

static int serve_task(const struct wire_frame *message)
{
	const int *file = exec_channel_fds(1);
	struct task_message task;
	int r;

	r = exec_channel_decode(&task, &task_message_schema, message);
	if (r || !file)
		return r ? r : -EBADMSG;
	cell_begin(task.cell, NULL);
	if (language.task) {
		language.task(&self.result, &task, *file);
	} else {
		self.result.cause = "error";
		self.result.returncode = 1;
	}
	cell_end(NULL);
	end_if_child();
	exec_channel_drop_fds();
	return answer_done(&self.result, task.cell);
}

/* ---- questions ---- */

static int tell(uint64_t serial, bool answered, const char *refused)
{
	struct told_message told = {.serial = serial, .refused = bytes_of(refused)};
	int r;

	if (answered && self.answer.size > 0)
		told.answer = wire_bytes(&self.answer);
	r = exec_channel_send(&told_message_schema, &told);
	if (r == -EMSGSIZE) {
		told = (struct told_message){.serial = serial};
		r = exec_channel_send(&told_message_schema, &told);
	}
	exec_channel_trim(&self.answer);
	return r;
}

static const char *question_answer(const struct question_message *question)
{
	const char *refused;

	self.answer.size = 0;
	interrupts_discard(QUESTION_INTERRUPTED | question->serial);
	interrupts_block(false);
	refused = language.question(&self.answer, question);
	interrupts_block(true);
	if (language.interrupts_forget)
		language.interrupts_forget(); /* they came too late for the question */
	if (bytes_is(question->kind, "keep") && !refused)
		process_start_over();
	return refused;
}

static int serve_question(const struct wire_frame *message)
{
	struct question_message question;
	const char *refused = "this language answers no questions";
	int r;

	r = exec_channel_decode(&question, &question_message_schema, message);
	if (r)
		return r;
	if (language.question)
		refused = question_answer(&question);
	if (!process_is_interpreter())
		_exit(0);
	return tell(question.serial, language.question, refused);
}

/* Runs a cell that no client has sent. For the next cell the caches are then filled, and the pages that it writes
 * to are copied. */
static void rehearse(const char *code)
{
	const struct cell_options options = {.code = bytes_of(code)};

	cell_around(0, &options);
	result_clear(&self.result);
}

/* What runs meanwhile says nothing to anybody. */
static void quiet_begin(int kept[2])
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int i = 0; i < 2; i++) {
		kept[i] = dup(STDOUT_FILENO + i);
		(void)dup2(nowhere, STDOUT_FILENO + i);
	}
	fd_close(nowhere);
}

static void quiet_end(const int kept[2])
{
	output_flush_all();
	for (int i = 0; i < 2; i++) {
		(void)dup2(kept[i], STDOUT_FILENO + i);
		fd_close(kept[i]);
	}
}

void interpreter_rehearse(const char *const *cells, size_t n)
{
	int kept[2];

	quiet_begin(kept);
	for (size_t i = 0; i < n; i++)
		rehearse(cells[i]);
	quiet_end(kept);
}

/* ---- serving ---- */

/* The first cell after a fork copies every page that it writes to. While no message waits, there is time to do that
 * before. */
static void rehearse_idly(void)
{
	if (language.rehearsal && !exec_channel_waits())
		rehearse(language.rehearsal);
}

static int serve_freeze(const struct wire_frame *message)
{
	bool forked;
	int r = process_freeze(message, 0, NULL, &forked);

	if (!r)
		rehearse_idly();
	return r;
}

/* No session is there yet. */
static void prepare_quietly(const struct prepare_message *prepare)
{
	int kept[2];

	quiet_begin(kept);
	cell_begin(0, NULL);
	language.prepare(prepare);
	cell_end(NULL);
	if (!process_is_interpreter())
		_exit(0);
	quiet_end(kept);
}

static int serve_prepare(const struct wire_frame *message)
{
	struct prepare_message prepare;
	int r = exec_channel_decode(&prepare, &prepare_message_schema, message);

	if (r)
		return r;
	if (language.prepare)
		prepare_quietly(&prepare);
	rehearse_idly();
	(void)why_no_checkpoint(); /* threads of libraries stand still for the first time, which takes longest */
	output_prepared();
	return 0;
}

static int serve(const struct wire_frame *message)
{
	if (bytes_is(message->type, run_message_schema.type))
		return serve_run(message);
	if (bytes_is(message->type, freeze_message_schema.type))
		return serve_freeze(message);
	if (bytes_is(message->type, question_message_schema.type))
		return serve_question(message);
	if (bytes_is(message->type, describe_message_schema.type))
		return describe_serve(message);
	if (bytes_is(message->type, task_message_schema.type))
		return serve_task(message);
	if (bytes_is(message->type, prepare_message_schema.type))
		return serve_prepare(message);
	/* An answer to an `ask` comes too late if the cell was interrupted. */
	return bytes_is(message->type, answer_message_schema.type) ? 0 : -EBADMSG;
}

void interpreter_run(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home)
{
	struct wire_frame message;
	int r = process_become(fds, cage, home);

	self.thread = pthread_self();
	if (r)
		_exit(1);
	rehearse_idly();
	do {
		idle();
		if (!process_is_interpreter())
			_exit(0); /* a task has forked, and this is the child */
		r = exec_channel_receive(&message);
		if (!r)
			r = serve(&message);
	} while (!r);
	output_flush_all();
	/* If a cell closes the channel along with all other descriptors, it has killed its interpreter. This makes
	 * it look like that. */
	if (r != CHANNEL_E_EOF)
		(void)kill(getpid(), SIGKILL);
	_exit(0);
}
