/* How a refusal is told. The list of a cell is bounded, in number and in size: a cell that is refused in a loop
 * fills neither it nor the terminal. */
#include "refusal.h"

#include "proto/message.h"

#include <stdio.h>

#define REFUSALS_MAX 64

static struct {
	size_t n;
	msgpack_sbuffer acts, list; /* the acts so far; the array made of them */
} told;

void refusal_target(struct refusal *refusal, struct bytes text)
{
	char *to = refusal->target, *end = refusal->target + sizeof(refusal->target) - 8;
	size_t i = 0;

	while (i < text.size && to < end) {
		size_t size = 1;

		while (size < 4 && i + size < text.size && ((unsigned char)text.data[i + size] & 0xc0) == 0x80)
			size++;
		if ((unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f &&
		    utf8_valid((struct bytes){text.data + i, size})) {
			memcpy(to, text.data + i, size);
			to += size;
			i += size;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)text.data[i++]);
		}
	}
	if (i < text.size)
		to = stpcpy(to, "...");
	*to = '\0';
}

static void note(const struct refusal *refusal, const char *line, size_t size)
{
	const struct blocked_act act = {.event = bytes_of(refusal->event),
					.target = bytes_of(refusal->target),
					.reason = bytes_of(refusal->reason)};
	char with_end[sizeof(refusal->target) + 256];

	if (told.n >= REFUSALS_MAX || wire_encode_body(&told.acts, &blocked_act_schema, &act))
		return;
	told.n++;
	size = (size_t)snprintf(with_end, sizeof(with_end), "%.*s\n", (int)size, line);
	/* Lost if it cannot be written: the exception says the same. */
	if (write(STDERR_FILENO, with_end, size) < 0)
		return;
}

PyObject *refusal_error(const struct refusal *refusal, int number)
{
	char line[sizeof(refusal->target) + 192];
	PyObject *error, *value;
	int size;

	size = snprintf(line, sizeof(line), "[AUDIT] blocked: event=%s %s=%s%s%s reason=%s", refusal->event,
			refusal->kind, refusal->target, refusal->mode[0] ? " mode=" : "", refusal->mode,
			refusal->reason);
	note(refusal, line, MIN((size_t)size, sizeof(line) - 1));
	error = PyObject_CallFunction(PyExc_PermissionError, "s", line);
	value = error ? PyLong_FromLong(number) : NULL;
	if (error && (!value || PyObject_SetAttrString(error, "errno", value) < 0))
		Py_CLEAR(error);
	Py_XDECREF(value);
	return error;
}

void refusals_forget(void)
{
	told.n = 0;
	told.acts.size = 0;
}

struct bytes refusals_list(void)
{
	if (told.n == 0)
		return (struct bytes){0};
	told.list.size = 0;
	wire_put_array(&told.list, told.n);
	msgpack_sbuffer_write(&told.list, told.acts.data, told.acts.size);
	return wire_bytes(&told.list);
}
