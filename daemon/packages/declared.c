/* What code declares of its needs. A block is lines of comments from `# /// script` to `# ///`; in it, dependencies
 * = [ and strings up to ]. */
#include "declared.h"

static const char opening[] = "# /// script", closing[] = "# ///", key[] = "dependencies";

static struct bytes line_at(struct bytes code, size_t at)
{
	const char *end = memchr(code.data + at, '\n', code.size - at);

	return (struct bytes){code.data + at, end ? (size_t)(end - code.data) - at : code.size - at};
}

static bool is_line(struct bytes line, const char *text)
{
	while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\t'))
		line.size--;
	return bytes_is(line, text);
}

static size_t skip_blanks(struct bytes line, size_t at)
{
	while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
		at++;
	return at;
}

/* Behind the bracket that opens the list, in this line; 0: it has none. */
static size_t list_in(struct bytes line)
{
	size_t at = strlen("# ") + strlen(key);

	if (line.size < at || memcmp(line.data, "# ", 2) != 0 || memcmp(line.data + 2, key, strlen(key)) != 0)
		return 0;
	at = skip_blanks(line, at);
	if (at == line.size || line.data[at] != '=')
		return 0;
	at = skip_blanks(line, at + 1);
	return at < line.size && line.data[at] == '[' ? at + 1 : 0;
}

static size_t list_begin(struct bytes code)
{
	bool inside = false;
	struct bytes line;

	for (size_t at = 0; at < code.size; at += line.size + 1) {
		line = line_at(code, at);
		if (!inside)
			inside = is_line(line, opening);
		else if (line.size == 0 || line.data[0] != '#' || is_line(line, closing))
			inside = false;
		else if (list_in(line))
			return at + list_in(line);
	}
	return 0;
}

/* The beginning of what the next line says, behind its `#`; the end of the code: it is no line of the block. */
static size_t next_line(struct bytes code, size_t at)
{
	const char *end = memchr(code.data + at, '\n', code.size - at);
	size_t next = end ? (size_t)(end - code.data) + 1 : code.size;

	return next < code.size && code.data[next] == '#' ? next + 1 : code.size;
}

bool declared_next(struct bytes code, size_t *cursorp, struct bytes *itemp)
{
	size_t at = *cursorp;

	if (at == 0)
		at = code.size > 0 ? list_begin(code) : 0;
	*cursorp = code.size;
	while (at > 0 && at < code.size) {
		char c = code.data[at];
		const char *end;

		if (c == '\n' || c == '#') {
			at = next_line(code, at);
			continue;
		}
		if (c == ' ' || c == '\t' || c == ',') {
			at++;
			continue;
		}
		if (c != '"' && c != '\'')
			return false;
		*itemp = line_at(code, at + 1);
		end = memchr(itemp->data, c, itemp->size);
		if (!end)
			return false;
		itemp->size = (size_t)(end - itemp->data);
		*cursorp = at + itemp->size + 2;
		return true;
	}
	return false;
}
