/* The text ends where it is full, so a large value costs no more than the part that is shown. */
#include "proto/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct writer {
	FILE *out;
	size_t left;
	bool cut;
};

static void write_value(struct writer *writer, struct bytes raw);

static void put(struct writer *writer, const char *text, size_t size)
{
	writer->cut |= size > writer->left;
	if (writer->cut)
		return;
	writer->left -= size;
	(void)fwrite(text, 1, size, writer->out);
}

static void put_text(struct writer *writer, const char *text)
{
	put(writer, text, strlen(text));
}

static void write_character(struct writer *writer, char c)
{
	static const char escapes[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
	unsigned char code = (unsigned char)c;
	char text[8] = "";

	if (code < sizeof(escapes) && escapes[code])
		put(writer, (char[]){'\\', escapes[code]}, 2);
	else if (code < ' ' || code == 0x7f)
		put(writer, text, (size_t)snprintf(text, sizeof(text), "\\u%04x", code));
	else
		put(writer, &c, 1);
}

static void write_text(struct writer *writer, struct bytes text)
{
	bool valid = utf8_valid(text);

	put_text(writer, "\"");
	for (size_t i = 0; i < text.size && !writer->cut; i++) {
		if (valid || !(text.data[i] & 0x80))
			write_character(writer, text.data[i]);
		else
			put_text(writer, "\xef\xbf\xbd");
	}
	put_text(writer, "\"");
}

static void write_base64(struct writer *writer, struct bytes bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	put_text(writer, "\"");
	for (size_t at = 0; at < bytes.size && !writer->cut; at += 3) {
		size_t left = MIN(bytes.size - at, (size_t)3);
		uint32_t bits = 0;
		char four[4];

		for (size_t i = 0; i < 3; i++)
			bits = bits << 8 | (i < left ? (unsigned char)bytes.data[at + i] : 0);
		for (size_t i = 0; i < 4; i++)
			four[i] = i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=';
		put(writer, four, sizeof(four));
	}
	put_text(writer, "\"");
}

/* As short as it can be and still be the same number, and never like an integer. */
static void write_real(struct writer *writer, double number)
{
	char text[32], *comma;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	comma = strchr(text, ','); /* of the locale */
	if (comma)
		*comma = '.';
	put_text(writer, isfinite(number) ? text : "null");
	put_text(writer, isfinite(number) && !strpbrk(text, ".e") ? ".0" : "");
}

static void write_key(struct writer *writer, struct bytes raw)
{
	enum wire_kind kind = wire_value_of(raw).kind;
	bool quoted = kind == WIRE_KIND_STR || kind == WIRE_KIND_BIN, nested = kind >= WIRE_KIND_ARRAY;

	put_text(writer, quoted ? "" : "\"");
	if (nested)
		put_text(writer, "?");
	else
		write_value(writer, raw);
	put_text(writer, quoted ? "" : "\"");
}

static void write_elements(struct writer *writer, const struct wire_value *value)
{
	bool map = value->kind == WIRE_KIND_MAP;
	struct bytes rest = value->inside;

	put_text(writer, map ? "{" : "[");
	for (uint64_t i = 0; i < value->number && !writer->cut; i++) {
		put_text(writer, i ? ", " : "");
		if (map) {
			write_key(writer, wire_take(&rest));
			put_text(writer, ": ");
		}
		write_value(writer, wire_take(&rest));
	}
	put_text(writer, map ? "}" : "]");
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a frame may be */
static void write_value(struct writer *writer, struct bytes raw)
{
	struct wire_value value = wire_value_of(raw);
	char text[24];

	switch (value.kind) {
	case WIRE_KIND_NONE:
	case WIRE_KIND_NIL:
		put_text(writer, "null");
		break;
	case WIRE_KIND_FLAG:
		put_text(writer, value.number ? "true" : "false");
		break;
	case WIRE_KIND_UINT:
		put(writer, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value.number));
		break;
	case WIRE_KIND_INT:
		put(writer, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, (int64_t)value.number));
		break;
	case WIRE_KIND_REAL:
		write_real(writer, value.real);
		break;
	case WIRE_KIND_STR:
		write_text(writer, value.inside);
		break;
	case WIRE_KIND_BIN:
		write_base64(writer, value.inside);
		break;
	case WIRE_KIND_ARRAY:
	case WIRE_KIND_MAP:
		write_elements(writer, &value);
		break;
	}
}

char *json_written(struct bytes raw, size_t max, bool *cutp)
{
	struct writer writer = {.left = max};
	char *text = NULL;
	size_t size;

	writer.out = open_memstream(&text, &size);
	if (!writer.out)
		return NULL;
	write_value(&writer, raw);
	if (fclose(writer.out) != 0) {
		free(text);
		return NULL;
	}
	if (cutp)
		*cutp = writer.cut;
	return text;
}
