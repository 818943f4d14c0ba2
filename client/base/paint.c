/* A traceback is known by its first line, and ends with the first one that is not indented: the exception. An error
 * of syntax has no such first line and begins with its file. */
#include "paint.h"

#include "text.h"

#include <ctype.h>

#define RESET "\033[0m"
#define PLACE "\033[35m"
#define NAME "\033[1;35m"
#define MARK "\033[31m"
#define MARK_HERE "\033[1;31m"
#define STRING "\033[32m"
#define CONSTANT "\033[36m"

#define HEAD "Traceback (most recent call last):"
#define FRAME "  File \""

/* A line of a traceback is not longer than this. */
#define LINE_MAX_PAINTED 8192

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* ---- lines of a traceback ---- */

static void source_tell(struct paint *paint, FILE *out)
{
	if (paint->source)
		(void)fputs(paint->source, out);
	free(paint->source);
	paint->source = NULL;
}

/*   File "PATH", line NUMBER, in NAME */
static void frame_tell(const char *line, FILE *out)
{
	const char *path = line + strlen(FRAME) - 1, *number, *name, *end = line + strlen(line) - 1;

	number = strstr(path, "\", line ");
	if (!number) {
		(void)fputs(line, out);
		return;
	}
	number += strlen("\", line ");
	(void)fprintf(out, "  File " PLACE "%.*s" RESET ", line ", (int)(number - strlen(", line ") - path), path);
	name = number + strspn(number, "0123456789");
	(void)fprintf(out, PLACE "%.*s" RESET, (int)(name - number), number);
	if (begins(name, ", in "))
		(void)fprintf(out, ", in " PLACE "%.*s" RESET "\n", (int)(end - name - 5), name + 5);
	else
		(void)fputs(name, out);
}

/* ZeroDivisionError: division by zero */
static void exception_tell(const char *line, FILE *out)
{
	size_t name = 0, size = strlen(line) - 1;

	while (isalnum((unsigned char)line[name]) || line[name] == '_' || line[name] == '.' || (line[name] & 0x80))
		name++;
	if (name == 0 || (line[name] != ':' && line[name] != '\n'))
		(void)fputs(line, out);
	else if (line[name] == '\n')
		(void)fprintf(out, NAME "%.*s" RESET "\n", (int)name, line);
	else
		(void)fprintf(out, NAME "%.*s" RESET ":" PLACE "%.*s" RESET "\n", (int)name, line,
			      (int)(size - name - 1), line + name + 1);
}

static bool is_marks(const char *line)
{
	size_t spaces = strspn(line, " "), marks = strspn(line + spaces, " ~^");

	return spaces >= 4 && marks > 0 && line[spaces + marks] == '\n';
}

static const char *style_of(char mark)
{
	return mark == '^' ? MARK_HERE : mark == '~' ? MARK : RESET;
}

/* Prints each character of @text in the style of the mark below it. */
static void marked_tell(const char *text, const char *marks, FILE *out)
{
	const char *style = RESET;
	size_t size;

	for (const char *at = text; *at && *at != '\n'; at += size) {
		char mark = *marks && *marks != '\n' ? *marks++ : ' ';

		if (style_of(mark) != style)
			(void)fputs(style_of(mark), out);
		style = style_of(mark);
		size = MAX(text_character_size(at, strlen(at)), (size_t)1);
		(void)fwrite(at, 1, size, out);
	}
	(void)fprintf(out, "%s\n", strcmp(style, RESET) == 0 ? "" : RESET);
}

/* Returns whether the traceback continues. */
static bool trace_line_tell(struct paint *paint, const char *line, FILE *out)
{
	if (is_marks(line) && paint->source) {
		marked_tell(paint->source, line, out);
		marked_tell(line, line, out);
		free(paint->source);
		paint->source = NULL;
		return true;
	}
	source_tell(paint, out);
	if (begins(line, FRAME))
		frame_tell(line, out);
	else if (begins(line, "    "))
		paint->source = strdup(line);
	else if (line[0] == ' ')
		(void)fputs(line, out);
	else
		exception_tell(line, out);
	return line[0] == ' ';
}

/* ---- the stream ---- */

/* Whether this may be the first line of an error of syntax, as far as it has come. */
static bool may_be_frame(const struct paint *paint)
{
	return paint->size > 0 && strncmp(paint->line, FRAME, MIN(paint->size, strlen(FRAME))) == 0;
}

/* Nothing may be put into a sequence for the terminal, nor may a sequence wait. No line of Python's has these
 * characters. */
static bool unpaintable(const struct paint *paint, char c)
{
	return c == '\033' || c == '\0' || (c == '\r' && !paint->in_trace);
}

static void rest_tell(struct paint *paint, FILE *out)
{
	(void)fwrite(paint->line + paint->told, 1, paint->size - paint->told, out);
	paint->told = paint->size;
}

static void line_end(struct paint *paint, FILE *out)
{
	bool frame = may_be_frame(paint);

	paint->line[paint->size] = '\0';
	if (paint->told > 0 || paint->plain || (!paint->in_trace && !frame))
		rest_tell(paint, out);
	else
		paint->in_trace = trace_line_tell(paint, paint->line, out);
	if (!paint->in_trace && !paint->plain && strcmp(paint->line, HEAD "\n") == 0)
		paint->in_trace = true;
	paint->size = paint->told = 0;
	paint->plain = false;
}

/* Makes room for one more character and a NUL. */
static bool room_make(struct paint *paint)
{
	char *grown;

	if (paint->size + 2 <= paint->allocated)
		return true;
	grown = realloc(paint->line, 2 * paint->allocated + 256);
	if (!grown)
		return false;
	paint->line = grown;
	paint->allocated = 2 * paint->allocated + 256;
	return true;
}

static void line_give_up(struct paint *paint, FILE *out)
{
	source_tell(paint, out);
	if (paint->line)
		rest_tell(paint, out);
	paint->size = paint->told = 0;
	paint->in_trace = false;
	paint->plain = true;
}

void paint_pass(struct paint *paint, struct lair_text text, FILE *out)
{
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (paint->size >= LINE_MAX_PAINTED || !room_make(paint))
			line_give_up(paint, out);
		if (!room_make(paint)) {
			putc_unlocked(c, out);
			continue;
		}
		paint->line[paint->size++] = c;
		if (c == '\n')
			line_end(paint, out);
		else if (unpaintable(paint, c))
			line_give_up(paint, out);
	}
	if (paint->size > 0 && !paint->in_trace && (paint->plain || paint->told > 0 || !may_be_frame(paint)))
		rest_tell(paint, out);
}

void paint_end(struct paint *paint, FILE *out)
{
	source_tell(paint, out);
	if (paint->size > 0)
		rest_tell(paint, out);
	free(paint->line);
	*paint = (struct paint){.line = NULL};
}

/* ---- values ---- */

/* Whether its repr is Python that one could type, or an array of that. */
static bool is_literal(struct lair_text text)
{
	return text.size > 0 && text.size < 65536 && !memchr(text.data, '\033', text.size) &&
	       (strchr("[({'\"-+.0123456789", text.data[0]) ||
		memcmp(text.data, "b'", MIN(text.size, (size_t)2)) == 0 ||
		(text.size > 6 && memcmp(text.data, "array(", 6) == 0) || text_is(text, "True") ||
		text_is(text, "False"));
}

/* The end of the string at @at, at the latest the end of its line. */
static size_t string_size(struct lair_text text, size_t at)
{
	size_t i = at + 1;

	while (i < text.size && text.data[i] != text.data[at] && text.data[i] != '\n')
		i += text.data[i] == '\\' ? 2 : 1;
	return MIN(i + 1, text.size) - at;
}

static size_t word_size(struct lair_text text, size_t at)
{
	size_t i = at;

	while (i < text.size && (isalnum((unsigned char)text.data[i]) || text.data[i] == '_' ||
				 text.data[i] == '.' || (text.data[i] & 0x80)))
		i++;
	return i - at;
}

static bool is_constant(struct lair_text word)
{
	static const char *const words[] = {"True", "False", "None", "nan", "inf"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (text_is(word, words[i]))
			return true;
	return isdigit((unsigned char)word.data[0]) ||
	       (word.data[0] == '.' && word.size > 1 && isdigit((unsigned char)word.data[1]));
}

void paint_value(struct lair_text text, FILE *out)
{
	size_t size;

	if (!is_literal(text)) {
		(void)fwrite(text.data, 1, text.size, out);
		return;
	}
	for (size_t i = 0; i < text.size; i += size) {
		struct lair_text word = {.data = text.data + i, .size = word_size(text, i)};
		const char *style = NULL;

		size = MAX(word.size, (size_t)1);
		if (text.data[i] == '\'' || text.data[i] == '"') {
			size = string_size(text, i);
			style = STRING;
		} else if (word.size > 0 && is_constant(word)) {
			style = CONSTANT;
		}
		(void)fputs(style ? style : "", out);
		(void)fwrite(text.data + i, 1, size, out);
		(void)fputs(style ? RESET : "", out);
	}
}
