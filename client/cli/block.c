/* One pass over the characters. Strings and comments are skipped as Python's tokenizer skips them. Code with
 * other errors counts as complete, so that the session reports the errors. */
#include "block.h"

struct scan {
	const char *at, *end;
	int depth;	  /* how many brackets are open */
	bool in_string;	  /* inside a triple-quoted string */
	bool continued;	  /* the line ends with a backslash */
	bool block;	  /* a line began a block, */
	bool opened;	  /* and so did the last line that is not empty */
	bool line_empty;  /* so far the current line has nothing but white space */
	char first, last; /* of the logical line, without comments and white space */
};

/* Goes past the string at @scan->at. A string in single quotes ends with its line at the latest, unless the end of
 * the line is escaped. */
static void string_skip(struct scan *scan)
{
	char quote = *scan->at;
	bool triple = scan->end - scan->at >= 3 && scan->at[1] == quote && scan->at[2] == quote;

	scan->at += triple ? 3 : 1;
	while (scan->at < scan->end) {
		if (*scan->at == '\\') {
			scan->at = scan->end - scan->at >= 2 ? scan->at + 2 : scan->end;
		} else if (triple && scan->end - scan->at >= 3 && scan->at[0] == quote && scan->at[1] == quote &&
			   scan->at[2] == quote) {
			scan->at += 3;
			return;
		} else if (!triple && (*scan->at == quote || *scan->at == '\n')) {
			scan->at += *scan->at == quote;
			return;
		} else {
			scan->at++;
		}
	}
	scan->in_string = triple;
}

static void logical_line_end(struct scan *scan)
{
	if (!scan->first)
		return;
	scan->opened = scan->last == ':' || scan->first == '@';
	scan->block |= scan->opened;
	scan->first = scan->last = '\0';
}

static void line_end(struct scan *scan)
{
	scan->at++;
	if (scan->depth > 0)
		return;
	logical_line_end(scan);
	scan->line_empty = true;
}

static void seen(struct scan *scan, char c)
{
	if (!scan->first)
		scan->first = c;
	scan->last = c;
	scan->line_empty = false;
}

static void step(struct scan *scan)
{
	char c = *scan->at;

	scan->continued = false;
	switch (c) {
	case '\n':
		line_end(scan);
		return;
	case ' ':
	case '\t':
	case '\f':
	case '\r':
		scan->at++;
		return;
	case '#':
		scan->line_empty = false;
		while (scan->at < scan->end && *scan->at != '\n')
			scan->at++;
		return;
	case '\\':
		scan->at++;
		if (scan->at < scan->end && *scan->at != '\n')
			return;
		scan->at += scan->at < scan->end;
		scan->continued = true;
		return;
	}
	seen(scan, c);
	if (c == '"' || c == '\'') {
		string_skip(scan);
		return;
	}
	scan->depth += c == '(' || c == '[' || c == '{';
	scan->depth -= (c == ')' || c == ']' || c == '}') && scan->depth > 0;
	scan->at++;
}

/* A magic for a whole cell: the lines after it need not be Python. */
static bool is_cell_magic(struct lair_text text)
{
	return text.size > 2 && text.data[0] == '%' && text.data[1] == '%';
}

static bool magic_complete(struct lair_text text, bool whole)
{
	const char *end = memchr(text.data, '\n', text.size);
	bool has_body = end && end + 1 < text.data + text.size;

	return has_body && (whole || text.data[text.size - 2] == '\n');
}

bool block_complete(struct lair_text text, bool whole)
{
	struct scan scan = {.at = text.data, .end = text.data + text.size, .line_empty = true};
	bool last_line_empty = true;

	if (is_cell_magic(text))
		return magic_complete(text, whole);
	while (scan.at < scan.end) {
		/* The newline that ends the text says whether the line before it was empty. */
		last_line_empty = scan.line_empty;
		step(&scan);
	}
	if (text.size == 0 || text.data[text.size - 1] != '\n')
		last_line_empty = scan.line_empty;
	logical_line_end(&scan);
	if (scan.in_string || scan.continued || scan.depth > 0)
		return false;
	return !scan.block || last_line_empty || (whole && !scan.opened);
}

/* ---- indentation ---- */

#define INDENT 4

/* The last line that is not empty. */
static struct lair_text last_line(struct lair_text text)
{
	struct lair_text line = {.data = text.data};

	while (text.size > 0 && strchr(" \t\r\n", text.data[text.size - 1]))
		text.size--;
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] == '\n')
			line.data = text.data + i + 1;
	line.size = text.size - (size_t)(line.data - text.data);
	return line;
}

/* Whether its block does nothing more after this statement. */
static bool leaves_block(struct lair_text statement)
{
	static const char *const words[] = {"return", "pass", "break", "continue", "raise"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t size = strlen(words[i]);

		if (statement.size >= size && memcmp(statement.data, words[i], size) == 0 &&
		    (statement.size == size || strchr(" (;#", statement.data[size])))
			return true;
	}
	return false;
}

unsigned block_indent(struct lair_text text)
{
	struct scan scan = {.at = text.data, .end = text.data + text.size, .line_empty = true};
	struct lair_text line = last_line(text);
	unsigned indent = 0;

	while (scan.at < scan.end)
		step(&scan);
	if (scan.in_string || line.size == 0)
		return 0;
	while (indent < line.size && line.data[indent] == ' ')
		indent++;
	line = (struct lair_text){.data = line.data + indent, .size = line.size - indent};
	if ((scan.opened && line.data[0] != '@') || (line.size > 0 && strchr("([{", line.data[line.size - 1])))
		return indent + INDENT;
	return scan.depth == 0 && leaves_block(line) ? indent - MIN(indent, (unsigned)INDENT) : indent;
}
