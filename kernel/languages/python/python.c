/* Python as a language of sessions: the table of its operations. Every process that runs them holds the GIL. */
#include "python.h"

#include "audit.h"
#include "calls.h"
#include "cell.h"
#include "embedded.h" /* made by CMakeLists.txt */
#include "helpers.h"
#include "interpreter/interpreter.h"
#include "language.h"
#include "observe/output.h"
#include "owned.h"
#include "pack.h"
#include "publish.h"
#include "refusal.h"
#include "seeds.h"
#include "sets.h"
#include "startup.h"
#include "stream.h"
#include "threads.h"

static PyObject *streams[2];

/* ---- what a cell says ---- */

int python_told(int r)
{
	if (r == -EAGAIN)
		PyErr_SetString(PyExc_RuntimeError, "only a cell that runs can reach its client");
	else if (r == -EMSGSIZE)
		PyErr_SetString(PyExc_ValueError, "it is too large to be sent");
	else if (r && r != -EINTR) /* then the handler has raised it */
		PyErr_SetString(PyExc_RuntimeError, "the session is ending");
	return r ? -1 : 0;
}

/* ask(PROMPT, PASSWORD), for stdin.py: a str, or None at the end of input. */
static PyObject *ask(PyObject *module, PyObject *args)
{
	struct answer_message answer;
	PyObject *prompt, *encoded;
	int password, r;

	if (!PyArg_ParseTuple(args, "Up", &prompt, &password))
		return NULL;
	if (interpreter_cannot_ask()) {
		PyErr_SetString(PyExc_EOFError, interpreter_cannot_ask());
		return NULL;
	}
	encoded = utf8_of(prompt);
	if (!encoded)
		return NULL;
	r = interpreter_ask(&answer, &(struct ask_message){.prompt = {PyBytes_AS_STRING(encoded),
								      (size_t)PyBytes_GET_SIZE(encoded)},
							   .password = password});
	Py_DECREF(encoded);
	if (r == -EMSGSIZE)
		PyErr_SetString(PyExc_ValueError, "the prompt is too long");
	else if (r && r != -EINTR)
		PyErr_SetString(PyExc_EOFError, "the session is ending");
	if (r)
		return NULL;
	if (answer.eof)
		return Py_BuildValue("");
	return PyUnicode_DecodeUTF8(answer.text.data ? answer.text.data : "", (Py_ssize_t)answer.text.size, NULL);
}

static PyMethodDef ask_method = {"ask", ask, METH_VARARGS, NULL};

/* ---- in the template and the warden ---- */

int python_prepare(size_t text_max)
{
	static const char *const names[][2] = {{"stdout", "__stdout__"}, {"stderr", "__stderr__"}};
	OWNED *given = Py_BuildValue("{s:N,s:N,s:N,s:N}", "ask", PyCFunction_New(&ask_method, NULL), "publish",
				     publish_new(), "hold", sets_hold_new(), "have", sets_have_new());
	OWNED *calls = calls_methods(), *refusals = refusals_methods();

	if (!given || !calls || !refusals || PyDict_Update(given, calls) < 0 ||
	    PyDict_Update(given, refusals) < 0 || helpers_load(given) < 0 || cell_init(text_max) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		streams[i] = stream_new((enum output_stream)i);
		if (!streams[i] || PySys_SetObject(names[i][0], streams[i]) < 0 ||
		    PySys_SetObject(names[i][1], streams[i]) < 0)
			return -1;
	}
	return 0;
}

static int allow_threads(unsigned n, struct language_report *report)
{
	return threads_allow(n, report->reason, sizeof(report->reason));
}

static int move_in(const struct language_place *place)
{
	OWNED *done = PyObject_CallFunction(helper(HELPER_MOVE_IN), "ssiii", place->workspace, place->scratch,
					    place->programs, place->network, place->names);

	return done ? 0 : -1;
}

static void after_fork(bool is_child)
{
	if (is_child)
		PyOS_AfterFork_Child();
	else
		PyOS_AfterFork_Parent();
}

/* ---- copies of an interpreter ---- */

/* Takes over @done, of a call whose exceptions matter to nobody. */
static void drop(PyObject *done)
{
	Py_XDECREF(done);
	PyErr_Clear();
}

/* Until Python 3.12 a thread takes its event loop for another process's if the number of the process has changed.
 */
static void loops_keep(pid_t copied)
{
#if PY_VERSION_HEX < 0x030c0000
	struct holder {
		PyObject head;
		PyObject *loop;
		pid_t pid;
	};
	PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

	for (; thread; thread = PyThreadState_Next(thread)) {
		PyObject *found =
			thread->dict ? PyDict_GetItemString(thread->dict, "__asyncio_running_event_loop__") : NULL;
		struct holder *holder = (struct holder *)found;

		if (found && strcmp(Py_TYPE(found)->tp_name, "_RunningLoopHolder") == 0 &&
		    Py_TYPE(found)->tp_basicsize == sizeof(*holder) && holder->pid == copied)
			holder->pid = getpid();
	}
#else
#endif
}

/* The original may live on, and wait in the same loop. */
static void thawed(const struct language_thaw *thaw)
{
	if (thaw->threads_of)
		loops_keep(thaw->threads_of);
	if (thaw->files)
		drop(PyObject_CallNoArgs(helper(HELPER_FILES_BACK)));
	drop(PyObject_CallNoArgs(helper(HELPER_RENEW_LOOP)));
	seeds_renew_any(thaw->branch);
}

static const char *unfaithful(void)
{
	static char why[128];
	PyObject *count = PyObject_CallNoArgs(helper(HELPER_UNFORKABLE_TASKS));
	long tasks = count ? PyLong_AsLong(count) : 0;

	drop(count);
	if (tasks <= 0)
		return NULL;
	snprintf(why, sizeof(why), "%ld asyncio tasks are pending, in a loop that a copy could not have", tasks);
	return why;
}

static unsigned threads(void)
{
	PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
	unsigned n = 0;

	for (; thread; thread = PyThreadState_Next(thread))
		n++;
	return n;
}

static int move(enum language_move how, const char *root, struct bytes name, char *text, size_t size)
{
	static const enum helper helpers[] = {[MOVE_COPY] = HELPER_BRANCH_FILES,
					      [MOVE_FILLED] = HELPER_BRANCH_FILLED,
					      [MOVE_HOME] = HELPER_BRANCH_HOME};
	OWNED *done = PyObject_CallFunction(helper(helpers[how]), "ss#", root, name.data, (Py_ssize_t)name.size);
	const char *place = done ? PyUnicode_AsUTF8(done) : NULL;

	if (place)
		snprintf(text, size, "%s", place);
	else
		helper_error(text, size);
	return place ? 0 : -1;
}

/* ---- cells ---- */

/* A cell may call what it is given, and only as long as it runs. */
static void functions_offer(uint64_t cell, struct bytes offered)
{
	PyObject *functions = unpack_object(offered);

	calls_begin(cell);
	if (functions)
		Py_XDECREF(PyObject_CallOneArg(helper(HELPER_OFFER), functions));
	drop(functions);
}

static void begin(uint64_t cell, const struct cell_options *options)
{
	if (options && wire_count(options->functions) > 0)
		functions_offer(cell, options->functions);
	refusals_forget();
	audit_begin_cell();
}

static void mend_sys(void)
{
	if (PySys_GetObject("stdout") != streams[OUTPUT_OUT])
		(void)PySys_SetObject("stdout", streams[OUTPUT_OUT]);
	if (PySys_GetObject("stderr") != streams[OUTPUT_ERR])
		(void)PySys_SetObject("stderr", streams[OUTPUT_ERR]);
	PyErr_Clear();
}

static void end(const struct cell_options *options)
{
	mend_sys();
	if (options && wire_count(options->functions) > 0)
		drop(PyObject_CallNoArgs(helper(HELPER_TAKE_BACK)));
	if (options && options->input)
		drop(PyObject_CallNoArgs(helper(HELPER_FORGET_ANSWERS)));
}

/* Nothing, if the object cannot be encoded. */
static void pack_or_leave(msgpack_sbuffer *buffer, PyObject *object)
{
	if (object && pack_object(buffer, object, PACK_DEPTH) < 0)
		buffer->size = 0;
	PyErr_Clear();
}

static void result_pass_on(struct language_result *result, struct cell_result *from)
{
	result->returncode = from->returncode;
	result->cause = from->cause;
	result->has_text = from->text;
	if (from->text)
		(void)msgpack_sbuffer_write(&result->text, PyBytes_AS_STRING(from->text),
					    (size_t)PyBytes_GET_SIZE(from->text));
	pack_or_leave(&result->data, from->data);
	pack_or_leave(&result->error, from->error);
	pack_or_leave(&result->report, from->report);
	cell_result_deinit(from);
}

static void run(struct language_result *result, uint64_t cell, const struct cell_options *options)
{
	OWNED *last = cell ? NULL : cell_last();
	struct cell_result found;

	cell_run(&found, cell, options);
	result_pass_on(result, &found);
	if (!cell)
		cell_forget(cell, last);
}

static void task(struct language_result *result, const struct task_message *message, int fd)
{
	struct cell_result found;

	cell_task(&found, message, fd);
	result_pass_on(result, &found);
}

static void prepare(const struct prepare_message *message)
{
	OWNED *path = PyUnicode_DecodeFSDefaultAndSize(message->path.data, (Py_ssize_t)message->path.size);
	PyObject *requirements = unpack_strings(message->requirements);

	if (path && requirements) {
		drop(PyObject_CallFunctionObjArgs(helper(HELPER_PREPARE), path, requirements, NULL));
		drop(PyObject_CallNoArgs(helper(HELPER_SETTLE)));
	}
	drop(requirements);
}

/* ---- questions ---- */

static const char *question(msgpack_sbuffer *answer, const struct question_message *message)
{
	static PyObject *why; /* bytes */
	PyObject *told = cell_answer(message);

	Py_CLEAR(why);
	if (told && PyTuple_CheckExact(told) && PyTuple_GET_SIZE(told) == 2) {
		if (PyTuple_GET_ITEM(told, 0) != Py_None)
			pack_or_leave(answer, PyTuple_GET_ITEM(told, 0));
		if (PyTuple_GET_ITEM(told, 1) != Py_None)
			why = utf8_of(PyTuple_GET_ITEM(told, 1));
	}
	drop(told);
	return why ? PyBytes_AS_STRING(why) : NULL;
}

static int describe(msgpack_sbuffer *variables, uint64_t *morep)
{
	PyObject *found = cell_describe();
	PyObject *list = found && PyTuple_Check(found) ? PyTuple_GetItem(found, 0) : NULL;
	PyObject *more = list ? PyTuple_GetItem(found, 1) : NULL;

	if (!more || pack_object(variables, list, PACK_DEPTH) < 0)
		return -1;
	*morep = PyLong_AsUnsignedLongLong(more);
	return 0;
}

/* ---- between two cells, and interrupts ---- */

static bool waits(void)
{
	PyObject *found = PyObject_CallNoArgs(helper(HELPER_LOOP_WAITS));
	bool has = found == Py_True;

	drop(found);
	return has;
}

static bool idle(int fd)
{
	PyObject *found = PyObject_CallFunction(helper(HELPER_IDLE), "i", fd);
	bool interrupted = found == Py_True;

	drop(found);
	return interrupted;
}

static void *wait_begin(void)
{
	return PyEval_SaveThread();
}

static void wait_end(void *state)
{
	PyEval_RestoreThread(state);
}

static bool interrupted(void)
{
	return PyErr_CheckSignals() < 0;
}

static void interrupts_forget(void)
{
	while (PyErr_CheckSignals() < 0)
		PyErr_Clear();
	PyErr_Clear();
}

const struct language language = {
	.name = "python",
	.version = python_version,
	.program = PYTHON_DEFAULT,
	.rehearsal = "1 + 1",
	.start = python_start,
	.warm = python_warm,
	.make_room = python_make_room,
	.allow_threads = allow_threads,
	.sources = python_sources,
	.settle = python_settle,
	.move_in = move_in,
	.before_fork = PyOS_BeforeFork,
	.after_fork = after_fork,
	.born = seeds_renew,
	.thawed = thawed,
	.unfaithful = unfaithful,
	.threads = threads,
	.move = move,
	.begin = begin,
	.end = end,
	.run = run,
	.may_have_changed = audit_saw_change,
	.blocked = refusals_list,
	.task = task,
	.prepare = prepare,
	.question = question,
	.describe = describe,
	.waits = waits,
	.idle = idle,
	.wait_begin = wait_begin,
	.wait_end = wait_end,
	.interrupted = interrupted,
	.interrupts_forget = interrupts_forget,
	.heard = calls_heard,
};
