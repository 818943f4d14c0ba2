/* The interpreter: reads `run`, runs the cell, answers `done`. SIGINT is blocked but for the time a cell runs, so
 * an interrupt ends a cell or nothing. Only the process the warden made speaks on the channel: a child that a cell
 * forked and that returns from it ends here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "interpreter.h"

#include "artifacts.h"
#include "audit.h"
#include "cell.h"
#include "fork.h"
#include "frozen.h"
#include "helpers.h"
#include "output.h"
#include "pack.h"
#include "proto/link.h"
#include "proto/outbuffer.h"
#include "publish.h"
#include "refusal.h"
#include "stream.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define FD_FLOOR 100

static struct {
	pid_t pid;
	int channel;
	const struct cage *cage;
	pthread_t thread;	 /* the main one, which alone reads the channel */
	uint64_t sent, received; /* the numbers of the last messages on it */
	char buffer[CHANNEL_SIZE_MAX];
	char *letter;		  /* the last one */
	int fds[CHANNEL_FDS_MAX]; /* passed along with a frame that wants them */
	size_t n_fds;
	msgpack_sbuffer frame, data, error, report;
	bool running, input, watched; /* a cell runs; somebody answers its questions; somebody watches */
	PyObject *streams[2];
} self = {.channel = -1};

/* ---- the channel ---- */

static void descriptors_drop(void)
{
	while (self.n_fds > 0)
		fd_close(self.fds[--self.n_fds]);
}

/* The last descriptor of a letter is its file. */
static int letter_open(const struct link_header *header, struct bytes *frame)
{
	int r = -EBADMSG;

	free(self.letter);
	self.letter = NULL;
	if (self.n_fds > 0) {
		r = link_read_letter(&self.letter, self.fds[self.n_fds - 1], header);
		fd_close(self.fds[--self.n_fds]);
	}
	*frame = (struct bytes){.data = self.letter, .size = header->size};
	return r;
}

/* One message of the router that has not been had before, waiting for it without the GIL: threads of the session
 * run on. Descriptors of the last one that nobody took are closed. Returns 0, CHANNEL_E_EOF or -errno. */
static int receive(struct wire_frame *message)
{
	struct link_header header;
	struct bytes data, frame;
	int r;

	do {
		PyThreadState *state;

		descriptors_drop();
		state = PyEval_SaveThread();
		r = channel_recv(self.channel, self.buffer, sizeof(self.buffer), &data, self.fds, &self.n_fds);
		PyEval_RestoreThread(state);
		if (r)
			return r == CHANNEL_E_EMPTY ? -EAGAIN : r;
		if (!link_unpack(&header, &frame, data))
			return -EBADMSG;
	} while (header.number <= self.received);
	self.received = header.number;
	r = header.size ? letter_open(&header, &frame) : 0;
	if (r || wire_open(message, frame))
		return -EBADMSG;
	return 0;
}

/* Wait until the router says something. A signal ends the wait whenever it comes, since none can between looking
 * for one and waiting. Returns 0, or -1 with an exception. */
static int wait_interruptibly(void)
{
	struct pollfd readable = {.fd = self.channel, .events = POLLIN};
	sigset_t all, before;
	int r, n = 0;

	sigfillset(&all);
	do {
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = PyErr_CheckSignals();
		if (!r) {
			PyThreadState *state = PyEval_SaveThread();

			n = ppoll(&readable, 1, NULL, &before);
			PyEval_RestoreThread(state);
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	} while (!r && n <= 0);
	return r;
}

/* Whether the router still has to hear something. Then waits a moment, in which another thread may send. */
static bool unheard(void)
{
	static const struct timespec moment = {.tv_nsec = 20000};
	PyThreadState *state;
	int unread = 0;

	if (ioctl(self.channel, TIOCOUTQ, &unread) < 0 || unread == 0)
		return false;
	state = PyEval_SaveThread();
	nanosleep(&moment, NULL);
	PyEval_RestoreThread(state);
	return true;
}

static int encode(const struct wire_schema *schema, const void *message)
{
	static const char room[LINK_HEADER];

	self.frame.size = 0;
	return msgpack_sbuffer_write(&self.frame, room, sizeof(room)) ? -ENOMEM
								      : wire_encode(&self.frame, schema, message);
}

/* The room for letters holds two, so before one is written all but the last must have been read. */
static int send_message(const struct wire_schema *schema, const void *message)
{
	struct link_header header;
	struct bytes datagram;
	int r;

	do {
		r = encode(schema, message);
		if (r)
			return r;
	} while (self.frame.size > CHANNEL_SIZE_MAX && unheard());
	datagram = wire_bytes(&self.frame);
	header = (struct link_header){.number = self.sent + 1};
	if (datagram.size > CHANNEL_SIZE_MAX) {
		header.size = (uint32_t)(datagram.size - LINK_HEADER);
		r = output_put_letter(&header.offset, datagram.data + LINK_HEADER, datagram.size - LINK_HEADER);
		datagram.size = LINK_HEADER;
	}
	if (r)
		return r;
	link_pack(self.frame.data, &header);
	self.sent++;
	return channel_send(self.channel, datagram, NULL, 0);
}

static int decode(void *out, const struct wire_schema *schema, const struct wire_frame *message)
{
	struct wire_fault fault;

	if (!bytes_is(message->type, schema->type))
		return -EBADMSG;
	return wire_decode(out, schema, message->body, &fault) ? -EBADMSG : 0;
}

/* ---- asking the client, for python/stdin.py ---- */

static bool may_ask(void)
{
	const char *why = NULL;

	if (getpid() != self.pid)
		why = "a child process cannot read from the session's client";
	else if (!pthread_equal(pthread_self(), self.thread))
		why = "only the main thread can read from the session's client";
	else if (!self.running || !self.input)
		why = "nobody answers: this cell was run without input";
	if (why)
		PyErr_SetString(PyExc_EOFError, why);
	return !why;
}

/* Wait for the answer; what else the router may say now is none of a cell's business. New reference: str, or None
 * at the end of input. */
static PyObject *await_answer(void)
{
	struct answer_message answer;
	struct wire_frame message;
	int r;

	if (wait_interruptibly() < 0)
		return NULL;
	r = receive(&message);
	if (!r)
		r = decode(&answer, &answer_message_schema, &message);
	if (r) {
		PyErr_SetString(PyExc_EOFError, "the session is ending");
		return NULL;
	}
	if (answer.eof)
		return Py_BuildValue("");
	return PyUnicode_DecodeUTF8(answer.text.data ? answer.text.data : "", (Py_ssize_t)answer.text.size, NULL);
}

static PyObject *ask(PyObject *module, PyObject *args)
{
	struct ask_message question = {0};
	PyObject *prompt, *encoded;
	int password, r;

	(void)module;
	if (!PyArg_ParseTuple(args, "Up", &prompt, &password) || !may_ask())
		return NULL;
	output_flush_all();
	encoded = utf8_of(prompt);
	if (!encoded)
		return NULL;
	question.prompt = (struct bytes){PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded)};
	question.password = password;
	r = send_message(&ask_message_schema, &question);
	Py_DECREF(encoded);
	if (r) {
		PyErr_SetString(PyExc_EOFError, "the session is ending");
		return NULL;
	}
	return await_answer();
}

int interpreter_tell(const struct wire_schema *schema, const void *message)
{
	if (getpid() != self.pid || !self.running || self.channel < 0) {
		PyErr_SetString(PyExc_RuntimeError, "only a cell that runs can show something");
		return -1;
	}
	output_flush_all();
	if (send_message(schema, message)) {
		PyErr_SetString(PyExc_RuntimeError, "the session is ending");
		return -1;
	}
	/* What is written from now on goes another way, and who watches must not have it first. */
	while (self.watched && unheard())
		if (PyErr_CheckSignals() < 0)
			return -1;
	return 0;
}

static PyMethodDef ask_method = {"ask", ask, METH_VARARGS, NULL};

/* ---- the template's part ---- */

int interpreter_prepare(size_t text_max)
{
	static const char *const names[][2] = {{"stdout", "__stdout__"}, {"stderr", "__stderr__"}};
	PyObject *given =
		Py_BuildValue("{s:N,s:N}", "ask", PyCFunction_New(&ask_method, NULL), "publish", publish_new());

	if (!given || helpers_load(given) < 0 || cell_init(text_max) < 0)
		return -1;
	Py_DECREF(given);
	for (size_t i = 0; i < ARRAY_SIZE(self.streams); i++) {
		self.streams[i] = stream_new((enum output_stream)i);
		if (!self.streams[i] || PySys_SetObject(names[i][0], self.streams[i]) < 0 ||
		    PySys_SetObject(names[i][1], self.streams[i]) < 0)
			return -1;
	}
	return 0;
}

static void mend_sys(void)
{
	if (PySys_GetObject("stdout") != self.streams[OUTPUT_OUT])
		(void)PySys_SetObject("stdout", self.streams[OUTPUT_OUT]);
	if (PySys_GetObject("stderr") != self.streams[OUTPUT_ERR])
		(void)PySys_SetObject("stderr", self.streams[OUTPUT_ERR]);
	PyErr_Clear();
}

/* ---- cells ---- */

/* An interrupt that came too late for the last cell is not meant for the next; one that came before this cell has
 * begun may be. */
static void interrupts_discard(uint64_t cell)
{
	static const struct timespec now = {0};
	sigset_t interrupt;

	if (cell != 0 && output_interrupted() == cell)
		return;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	while (sigtimedwait(&interrupt, NULL, &now) == SIGINT)
		;
	while (PyErr_CheckSignals() < 0)
		PyErr_Clear();
}

static void interrupts_block(bool block)
{
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &interrupt, NULL);
}

static void cell_begin(uint64_t cell, bool stream, bool input)
{
	self.running = true;
	self.input = input;
	self.watched = stream;
	output_begin(stream);
	refusals_forget();
	audit_begin_cell();
	artifacts_begin();
	interrupts_discard(cell);
	interrupts_block(false);
}

static void cell_end(void)
{
	interrupts_block(true);
	mend_sys();
	output_end();
	self.running = false;
}

static void cell_around(struct cell_result *result, const struct run_message *run)
{
	cell_begin(run->cell, run->stream, run->input);
	cell_run(result, run);
	cell_end();
}

static struct bytes bytes_in(PyObject *object)
{
	if (!object)
		return (struct bytes){0};
	return (struct bytes){PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object)};
}

/* What python/ made, encoded; absent if there is none, or if it cannot be. */
static struct bytes packed(msgpack_sbuffer *buffer, PyObject *object)
{
	buffer->size = 0;
	if (object && pack_object(buffer, object) == 0)
		return wire_bytes(buffer);
	PyErr_Clear();
	return (struct bytes){.data = NULL};
}

static int answer_done(const struct cell_result *result, uint64_t number)
{
	struct done_message done = {.cell = number,
				    .returncode = result->returncode,
				    .cause = bytes_of(result->cause),
				    .text = bytes_in(result->text),
				    .data = packed(&self.data, result->data),
				    .error = packed(&self.error, result->error),
				    .report = packed(&self.report, result->report),
				    .blocked = refusals_list(),
				    .unfaithful = bytes_of(freeze_unfaithful())};

	done.artifacts = artifacts_end(audit_saw_change(), &done.artifacts_more);
	return send_message(&done_message_schema, &done);
}

/* A cell's fork came back out of the cell: it is nobody's interpreter. */
static void end_if_child(const struct cell_result *result)
{
	if (getpid() == self.pid)
		return;
	output_flush_all();
	_exit(result->returncode);
}

static int serve_run(const struct wire_frame *message)
{
	struct cell_result result;
	struct run_message run;
	int r;

	r = decode(&run, &run_message_schema, message);
	if (r)
		return r;
	cell_around(&result, &run);
	end_if_child(&result);
	r = answer_done(&result, run.cell);
	cell_result_deinit(&result);
	return r;
}

static int serve_task(const struct wire_frame *message)
{
	struct cell_result result;
	struct task_message task;
	int r;

	r = decode(&task, &task_message_schema, message);
	if (r || self.n_fds != 1)
		return r ? r : -EBADMSG;
	cell_begin(task.cell, false, false);
	cell_task(&result, &task, self.fds[0]);
	cell_end();
	end_if_child(&result);
	descriptors_drop();
	r = answer_done(&result, task.cell);
	cell_result_deinit(&result);
	return r;
}

/* ---- questions ---- */

/* New reference: what cell_answer said, NULL if it could not be said. */
static PyObject *question_answer(const struct question_message *question)
{
	PyObject *told;

	interrupts_discard(QUESTION_INTERRUPTED | question->serial);
	interrupts_block(false);
	told = cell_answer(question);
	interrupts_block(true);
	/* An interrupt that came too late. */
	while (PyErr_CheckSignals() < 0)
		PyErr_Clear();
	PyErr_Clear();
	return told;
}

static int tell(uint64_t serial, PyObject *answer, PyObject *refused)
{
	PyObject *why = refused == Py_None ? NULL : utf8_of(refused);
	struct told_message told = {.serial = serial, .refused = bytes_in(why)};
	int r;

	self.error.size = 0;
	if (answer != Py_None && pack_object(&self.error, answer) == 0)
		told.answer = wire_bytes(&self.error);
	PyErr_Clear();
	r = send_message(&told_message_schema, &told);
	Py_XDECREF(why);
	return r;
}

static int serve_question(const struct wire_frame *message)
{
	struct question_message question;
	PyObject *told;
	int r;

	r = decode(&question, &question_message_schema, message);
	if (r)
		return r;
	told = question_answer(&question);
	if (getpid() != self.pid)
		_exit(0);
	if (told && PyTuple_CheckExact(told) && PyTuple_GET_SIZE(told) == 2)
		r = tell(question.serial, PyTuple_GET_ITEM(told, 0), PyTuple_GET_ITEM(told, 1));
	else
		r = tell(question.serial, Py_None, Py_None);
	Py_XDECREF(told);
	return r;
}

/* A cell of nobody's, so that the next one finds everything in place. */
static void rehearse(const char *code)
{
	const struct run_message run = {.code = bytes_of(code)};
	PyObject *last = cell_last();
	struct cell_result result;

	cell_around(&result, &run);
	cell_result_deinit(&result);
	cell_forget(run.cell, last);
	Py_XDECREF(last);
}

int interpreter_rehearse(void)
{
	static const char *const cells[] = {
		"1 + 1",
		"x = [n * n for n in range(9)]\nprint(x)\nx",
		"import sys\ndef f(n):\n    return 1 / n\nf(0)",
		"print('one', 'two', file=sys.stderr)\nraise ValueError('x') from KeyError('y')",
		"import asyncio\nawait asyncio.sleep(0)",
		"asyncio.get_event_loop().close()\nasyncio.set_event_loop_policy(None)",
		"1 +",
		"del x, f, sys, asyncio",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		rehearse(cells[i]);
	return 0;
}

/* ---- becoming one ---- */

static int descriptor_floor(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > FD_FLOOR + 3)
		return FD_FLOOR;
	return MAX((int)limit.rlim_cur - 3, 3);
}

static void signals_reset(void)
{
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_SETMASK, &interrupt, NULL);
}

static void reseed(void)
{
	Py_XDECREF(PyObject_CallNoArgs(helper(HELPER_RESEED)));
	PyErr_Clear();
}

/* Whoever is forked to run cells: its own number and group, the router's descriptors out of a cell's way. */
static int take_over(const int fds[INTERPRETER_FDS], int floor)
{
	self.pid = getpid();
	setpgid(0, 0);
	prctl(PR_SET_NAME, "lair-python");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self.sent = self.received = 0;
	if (dup2(fds[INTERPRETER_STDOUT], STDOUT_FILENO) < 0 || dup2(fds[INTERPRETER_STDERR], STDERR_FILENO) < 0)
		return -errno;
	self.channel = fcntl(fds[INTERPRETER_CHANNEL], F_DUPFD_CLOEXEC, floor);
	return self.channel < 0 ? -errno : output_adopt(fds[INTERPRETER_BUFFERS], floor);
}

/* What lies below the floor is the warden's. */
static void descriptors_close(int floor)
{
	if (syscall(SYS_close_range, 3U, (unsigned)floor - 1, 0U) == 0)
		return;
	for (int fd = 3; fd < floor; fd++)
		(void)close(fd);
}

static int become(const int fds[INTERPRETER_FDS], const struct cage *cage)
{
	int floor = descriptor_floor(), r;

	self.thread = pthread_self();
	self.cage = cage;
	signals_reset();
	r = take_over(fds, floor);
	descriptors_close(floor);
	if (!r)
		r = cage_enter_interpreter(cage);
	if (!r)
		reseed();
	return r;
}

static bool request_waits(void)
{
	struct pollfd readable = {.fd = self.channel, .events = POLLIN};

	return poll(&readable, 1, 0) > 0;
}

/* The first cell after a fork copies every page that it touches. Whoever idles has the time to do that before. */
static void rehearse_idly(void)
{
	if (!request_waits())
		rehearse("1 + 1");
}

/* ---- checkpoints ---- */

/* In the copy: nothing of the live one's stays open but what its cells opened. The channel is all there is. */
static void let_go(int channel)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	self.pid = getpid();
	fd_close(self.channel);
	self.channel = channel;
	self.sent = self.received = 0;
	output_release();
	if (null >= 0 && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
		_exit(1);
	fd_close(null);
	prctl(PR_SET_NAME, "lair-frozen");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* The state's own files: a copy of the working directory beside it, to work in from now on. */
static int branch_files(struct bytes name)
{
	PyObject *done = PyObject_CallFunction(helper(HELPER_BRANCH_FILES), "s#", name.data, (Py_ssize_t)name.size);

	const char *place = done ? PyUnicode_AsUTF8(done) : NULL;

	if (place)
		artifacts_home(place);
	Py_XDECREF(done);
	PyErr_Clear();
	return place ? 0 : -EIO;
}

/* In a fork of the copy: live again, with the router's new descriptors. */
static int come_alive(const struct spawn_message *spawn)
{
	int r;

	fd_close(self.channel);
	r = take_over(self.fds, descriptor_floor());
	descriptors_drop();
	if (!r)
		r = cage_enter_interpreter(self.cage);
	if (!r && spawn->reseed)
		reseed();
	if (!r && spawn->directory.data)
		r = branch_files(spawn->directory);
	return r;
}

static int serve_spawn(const struct wire_frame *message, bool *alive)
{
	struct spawned_message spawned;
	struct spawn_message spawn;
	pid_t pid;
	int r;

	r = decode(&spawn, &spawn_message_schema, message);
	if (r || self.n_fds != INTERPRETER_FDS)
		return r ? r : -EBADMSG;
	pid = fork_sibling(0, NULL);
	if (pid == 0) {
		*alive = true;
		return come_alive(&spawn);
	}
	descriptors_drop();
	if (pid < 0)
		return pid;
	spawned = (struct spawned_message){.serial = spawn.serial, .pid = (uint64_t)pid};
	return send_message(&spawned_message_schema, &spawned);
}

static int serve_measure(void)
{
	struct measured_message measured = {.memory = freeze_memory()};

	return send_message(&measured_message_schema, &measured);
}

/* The frozen copy's life: it waits, and each `spawn` makes a live one of it. Returns only in those, or ends. */
static int wait_frozen(void)
{
	struct wire_frame message;
	bool alive = false;
	int r = 0;

	while (!r && !alive) {
		r = receive(&message);
		if (!r && bytes_is(message.type, measure_message_schema.type))
			r = serve_measure();
		else if (!r)
			r = serve_spawn(&message, &alive);
	}
	if (r)
		_exit(r == CHANNEL_E_EOF ? 0 : 1);
	return 0;
}

static int serve_freeze(const struct wire_frame *message)
{
	const char *why = freeze_unfaithful();
	struct freeze_message freeze;
	struct frozen_message frozen;
	pid_t pid = 0;
	int r;

	r = decode(&freeze, &freeze_message_schema, message);
	if (r || self.n_fds != 1)
		return r ? r : -EBADMSG;
	if (!why)
		pid = fork_sibling(0, NULL);
	if (!why && pid == 0) {
		int channel = fcntl(self.fds[0], F_DUPFD_CLOEXEC, descriptor_floor());

		descriptors_drop();
		let_go(channel);
		r = wait_frozen();
		rehearse_idly();
		return r;
	}
	descriptors_drop();
	frozen = (struct frozen_message){.serial = freeze.serial, .pid = (uint64_t)MAX(pid, 0)};
	if (pid <= 0)
		frozen.reason = bytes_of(why ? why : strerror(-pid));
	r = send_message(&frozen_message_schema, &frozen);
	rehearse_idly();
	return r;
}

static int serve(const struct wire_frame *message)
{
	if (bytes_is(message->type, run_message_schema.type))
		return serve_run(message);
	if (bytes_is(message->type, freeze_message_schema.type))
		return serve_freeze(message);
	if (bytes_is(message->type, question_message_schema.type))
		return serve_question(message);
	if (bytes_is(message->type, task_message_schema.type))
		return serve_task(message);
	/* To a question whose cell was interrupted meanwhile. */
	return bytes_is(message->type, answer_message_schema.type) ? 0 : -EBADMSG;
}

void interpreter_run(const int fds[INTERPRETER_FDS], const struct cage *cage)
{
	struct wire_frame message;
	int r = become(fds, cage);

	if (r)
		_exit(1);
	rehearse_idly();
	do {
		r = receive(&message);
		if (!r)
			r = serve(&message);
	} while (!r);
	output_flush_all();
	/* A cell that closes this channel with all others has killed the interpreter, and that is what it looks
	 * like. */
	if (r != CHANNEL_E_EOF)
		(void)kill(getpid(), SIGKILL);
	_exit(0);
}
