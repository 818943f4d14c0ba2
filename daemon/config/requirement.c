/* What a session asks for goes to a program of the operator's, so all that is not known to be harmless is refused.
 */
#include "requirement.h"

#include <stdio.h>

struct reader {
	const char *at, *end;
	char *out;
	size_t size;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static void blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

static bool next_is(struct reader *reader, char c)
{
	blanks(reader);
	return reader->at < reader->end && *reader->at == c;
}

static void put(struct reader *reader, char c)
{
	if (reader->size < REQUIREMENT_SIZE - 1)
		reader->out[reader->size] = c;
	reader->size++;
}

/* Whether a name comes, which begins and ends with a letter or a digit. */
static bool name(struct reader *reader)
{
	char last = 0;

	blanks(reader);
	if (reader->at == reader->end || !is_letter(*reader->at))
		return false;
	while (reader->at < reader->end && (is_letter(*reader->at) || strchr("._-", *reader->at)) && *reader->at) {
		char c = *reader->at++;

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!is_letter(c))
			c = '-';
		if (c != '-' || last != '-')
			put(reader, c);
		last = c;
	}
	return last != '-';
}

static bool extras(struct reader *reader)
{
	if (!next_is(reader, '['))
		return true;
	do {
		put(reader, *reader->at++);
		if (!name(reader))
			return false;
	} while (next_is(reader, ','));
	if (!next_is(reader, ']'))
		return false;
	put(reader, *reader->at++);
	return true;
}

static bool one_version(struct reader *reader)
{
	static const char *const operators[] = {"==", "!=", ">=", "<=", "~=", ">", "<"};
	size_t left, i, from;

	blanks(reader);
	left = (size_t)(reader->end - reader->at);
	for (i = 0; i < ARRAY_SIZE(operators); i++)
		if (left >= strlen(operators[i]) && memcmp(reader->at, operators[i], strlen(operators[i])) == 0)
			break;
	if (i == ARRAY_SIZE(operators))
		return false;
	for (const char *at = operators[i]; *at; at++, reader->at++)
		put(reader, *at);
	blanks(reader);
	from = reader->size;
	while (reader->at < reader->end && *reader->at && (is_letter(*reader->at) || strchr(".*+!_-", *reader->at)))
		put(reader, *reader->at++);
	return reader->size > from;
}

static bool versions(struct reader *reader)
{
	blanks(reader);
	if (reader->at == reader->end || *reader->at == ';')
		return true;
	while (one_version(reader)) {
		if (!next_is(reader, ','))
			return true;
		put(reader, *reader->at++);
	}
	return false;
}

static bool marker(struct reader *reader)
{
	if (!next_is(reader, ';'))
		return true;
	while (reader->at < reader->end && *reader->at &&
	       (is_letter(*reader->at) || strchr(";_.<>=!~'\"() -+*", *reader->at)))
		put(reader, *reader->at++);
	return true;
}

int requirement_normalize(char out[static REQUIREMENT_SIZE], size_t *namep, struct bytes text)
{
	struct reader reader = {.at = text.data, .end = text.data + text.size, .out = out};
	bool well = name(&reader);

	*namep = reader.size;
	well = well && extras(&reader) && versions(&reader) && marker(&reader);
	blanks(&reader);
	if (!well || reader.at != reader.end || reader.size >= REQUIREMENT_SIZE)
		return -EINVAL;
	out[reader.size] = '\0';
	return 0;
}
