/* A language for tests: a calculator with variables, whose state is an array. Of the seam it has what a small
 * language needs. A line is `NAME = SUM`, `print SUM`, a SUM, whose value the last line shows, `spin`, which ends
 * when it is interrupted, or `hang`, which does not. A SUM is numbers and names with + and - between them. */
#include "language.h"

#include "observe/output.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLES 64
#define NAME_SIZE 16

static struct variable {
	char name[NAME_SIZE];
	long long value;
} variables[VARIABLES];

static volatile sig_atomic_t stopped;
static const char *failed; /* what is wrong with the line */

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static int start(const struct configure_message *configure, struct language_report *report)
{
	(void)configure;
	if (sigaction(SIGINT, &(struct sigaction){.sa_handler = stop}, NULL) == 0)
		return 0;
	snprintf(report->reason, sizeof(report->reason), "no signals");
	return -1;
}

static const char *version(void)
{
	return "1.0";
}

static struct variable *variable_of(const char *name, size_t size, bool make)
{
	for (struct variable *it = variables; it < variables + VARIABLES && size < NAME_SIZE; it++) {
		if (!it->name[0] && make)
			memcpy(it->name, name, size);
		if (it->name[0] && strlen(it->name) == size && memcmp(it->name, name, size) == 0)
			return it;
	}
	failed = make ? "no room" : "no such variable";
	return NULL;
}

static size_t name_size(const char *text)
{
	size_t size = 0;

	while (isalpha((unsigned char)text[size]))
		size++;
	return size;
}

static long long term(const char **at)
{
	const struct variable *found;
	char *end;
	long long value;
	size_t size;

	*at += strspn(*at, " ");
	size = name_size(*at);
	if (size > 0) {
		found = variable_of(*at, size, false);
		*at += size;
		return found ? found->value : 0;
	}
	value = strtoll(*at, &end, 10);
	if (end == *at)
		failed = "no number";
	*at = end;
	return value;
}

static long long sum(const char *at)
{
	long long value = term(&at);

	for (at += strspn(at, " "); !failed && *at; at += strspn(at, " ")) {
		char sign = *at++;
		long long next = term(&at);

		if (sign != '+' && sign != '-')
			failed = "no sum";
		value += sign == '-' ? -next : next;
	}
	return value;
}

static void print(enum output_stream which, const char *text)
{
	while (*text) {
		ssize_t n = output_put(which, text, strlen(text));

		if (n < 0 && n != -EINTR)
			return;
		text += n > 0 ? n : 0;
	}
}

static void run_line(struct language_result *result, const char *line)
{
	char text[32];
	size_t size = name_size(line), equals = size + strspn(line + size, " ");
	bool prints = size == 5 && memcmp(line, "print", size) == 0;

	if (!line[0])
		return;
	result->has_text = false;
	result->text.size = 0;
	if (strcmp(line, "spin") == 0 || strcmp(line, "hang") == 0) {
		while (!stopped || line[0] == 'h')
			(void)usleep(1000);
	} else if (size > 0 && line[equals] == '=') {
		long long value = sum(line + equals + 1);
		struct variable *variable = failed ? NULL : variable_of(line, size, true);

		if (variable)
			variable->value = value;
	} else {
		snprintf(text, sizeof(text), "%lld%s", sum(line + (prints ? size : 0)), prints ? "\n" : "");
		if (failed)
			return;
		if (prints) {
			print(OUTPUT_OUT, text);
			return;
		}
		result->has_text = true;
		(void)msgpack_sbuffer_write(&result->text, text, strlen(text));
	}
}

static void fail(struct language_result *result, const char *line)
{
	char trace[256];
	struct cell_error error = {.name = BYTES("ToyError"), .value = bytes_of(failed)};

	result->has_text = false;
	result->cause = stopped ? "interrupt" : "error";
	result->returncode = stopped ? 130 : 1;
	if (stopped)
		error.name = BYTES("Interrupted");
	snprintf(trace, sizeof(trace), "%.*s: %s: %.100s\n", (int)error.name.size, error.name.data, failed, line);
	error.traceback = bytes_of(trace);
	stopped = 0;
	(void)wire_encode_body(&result->error, &cell_error_schema, &error);
	print(OUTPUT_ERR, trace);
}

static void run(struct language_result *result, uint64_t cell, const struct cell_options *options)
{
	_cleanup_(freep) char *code = strndup(options->code.data, options->code.size);
	char *rest = code, *line;

	(void)cell;
	failed = NULL;
	while (!failed && (line = strsep(&rest, "\n"))) {
		run_line(result, line);
		if (stopped)
			failed = "stopped";
		if (failed)
			fail(result, line);
	}
}

/* ---- variables ---- */

static size_t count(void)
{
	size_t n = 0;

	while (n < VARIABLES && variables[n].name[0])
		n++;
	return n;
}

static void task(struct language_result *result, const struct task_message *message, int fd)
{
	struct task_report report = {.size = sizeof(variables)};
	msgpack_sbuffer names = {0}, none = {0};
	ssize_t n = bytes_is(message->task, "save")
			    ? pwrite(fd, variables, sizeof(variables), 0)
			    : pread(fd, variables, sizeof(variables), (off_t)message->offset);

	if (n != sizeof(variables)) {
		failed = "no such file";
		fail(result, "");
		return;
	}
	wire_put_array(&names, count());
	for (size_t i = 0; i < count(); i++)
		wire_put_string(&names, bytes_of(variables[i].name));
	wire_put_array(&none, 0);
	report.names = wire_bytes(&names);
	report.refused = wire_bytes(&none);
	(void)wire_encode_body(&result->report, &task_report_schema, &report);
	msgpack_sbuffer_destroy(&names);
	msgpack_sbuffer_destroy(&none);
}

/* @digests: what tells equal values apart, which only a description has. */
static void put_variables(msgpack_sbuffer *list, bool digests)
{
	wire_put_array(list, count());
	for (size_t i = 0; i < count(); i++) {
		char text[32];
		struct description_record record = {
			.name = bytes_of(variables[i].name), .type = BYTES("number"), .size = sizeof(long long)};

		snprintf(text, sizeof(text), "%lld", variables[i].value);
		record.text = bytes_of(text);
		if (digests)
			record.digest = record.text;
		(void)wire_encode_body(list, &description_record_schema, &record);
	}
}

static int describe(msgpack_sbuffer *list, uint64_t *morep)
{
	*morep = 0;
	put_variables(list, true);
	return 0;
}

static const char *question(msgpack_sbuffer *answer, const struct question_message *asked)
{
	msgpack_sbuffer list = {0};

	if (bytes_is(asked->kind, "is_complete")) {
		(void)wire_encode_body(answer, &is_complete_reply_schema,
				       &(struct is_complete_reply){.status = BYTES("complete")});
		return NULL;
	}
	if (!bytes_is(asked->kind, "vars"))
		return "toy cannot answer that";
	put_variables(&list, false);
	(void)wire_encode_body(answer, &vars_reply_schema,
			       &(struct vars_reply){.variables = wire_bytes(&list), .total = count()});
	msgpack_sbuffer_destroy(&list);
	return NULL;
}

static bool interrupted(void)
{
	return stopped;
}

static void interrupts_forget(void)
{
	stopped = 0;
}

const struct language language = {
	.name = "toy",
	.version = version,
	.rehearsal = "1 + 1",
	.start = start,
	.run = run,
	.task = task,
	.question = question,
	.describe = describe,
	.interrupted = interrupted,
	.interrupts_forget = interrupts_forget,
};
