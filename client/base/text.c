/* Text for people, and bytes in and out. */
#include "text.h"

#include "proto/wire.h"

#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <wchar.h>

const char *human_seconds(char out[static HUMAN_SIZE], double seconds)
{
	uint64_t s = seconds > 0 && seconds < 1e15 ? (uint64_t)seconds : 0;

	if (s < 60)
		snprintf(out, HUMAN_SIZE, "%" PRIu64 "s", s);
	else if (s < 3600)
		snprintf(out, HUMAN_SIZE, "%" PRIu64 "m", s / 60);
	else if (s < 86400)
		snprintf(out, HUMAN_SIZE, "%" PRIu64 "h %" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(out, HUMAN_SIZE, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
	return out;
}

const char *human_bytes(char out[static HUMAN_SIZE], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(out, HUMAN_SIZE, "%" PRIu64 " B", bytes);
		return out;
	}
	for (; value >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1024;
	snprintf(out, HUMAN_SIZE, "%.1f %s", value, units[unit]);
	return out;
}

const char *human_bytes_of(char out[static OF_LIMIT_SIZE], uint64_t bytes, uint64_t limit)
{
	char text[HUMAN_SIZE], most[HUMAN_SIZE];

	if (limit)
		snprintf(out, OF_LIMIT_SIZE, "%s of %s", human_bytes(text, bytes), human_bytes(most, limit));
	else
		snprintf(out, OF_LIMIT_SIZE, "%s", human_bytes(text, bytes));
	return out;
}

const char *human_date(char out[static HUMAN_SIZE], double epoch)
{
	time_t seconds = (time_t)epoch;
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || strftime(out, HUMAN_SIZE, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, HUMAN_SIZE, "%.0f", epoch);
	return out;
}

const char *human_state(char out[static HUMAN_SIZE], uint64_t cell)
{
	if (cell > 0)
		snprintf(out, HUMAN_SIZE, "the state after cell %" PRIu64, cell);
	else
		snprintf(out, HUMAN_SIZE, "the state before the first cell");
	return out;
}

const char *human_effect(char out[static EFFECT_SIZE], const struct lair_effect *effect)
{
	bool address = text_is(effect->act, "connected") || text_is(effect->act, "sent");
	bool maybe = text_is(effect->act, "maybe_called");
	char act[32], target[600], to[600];

	if (maybe || text_is(effect->act, "called")) {
		snprintf(out, EFFECT_SIZE, "%scalled %s in cell %" PRIu64, maybe ? "may have " : "",
			 text_tamed(target, sizeof(target), effect->target), effect->cell);
		return out;
	}
	snprintf(out, EFFECT_SIZE, "%s%s %s%s%s", text_tamed(act, sizeof(act), effect->act), address ? " to" : "",
		 text_tamed(target, sizeof(target), effect->target), effect->to.data ? " to " : "",
		 text_tamed(to, sizeof(to), effect->to));
	return out;
}

size_t text_character_size(const char *at, size_t left)
{
	for (size_t n = 1; n <= MIN(left, (size_t)4); n++)
		if (utf8_valid((struct bytes){.data = at, .size = n}))
			return n;
	return 0;
}

static int character_columns(const char *at, size_t size, locale_t unicode)
{
	mbstate_t state = {0};
	wchar_t character;
	locale_t before;
	int columns;

	if ((unsigned char)*at < 0x80 || !unicode)
		return 1;
	before = uselocale(unicode);
	columns = mbrtowc(&character, at, size, &state) <= size ? wcwidth(character) : 1;
	(void)uselocale(before);
	return columns < 0 ? 1 : columns;
}

size_t text_columns(const char *text)
{
	static locale_t unicode;
	size_t columns = 0, left = strlen(text), size;

	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	for (; left > 0; text += size, left -= size) {
		size = MAX(text_character_size(text, left), (size_t)1);
		columns += (size_t)character_columns(text, size, unicode);
	}
	return columns;
}

size_t text_cut_end(const char *text, size_t size)
{
	size_t n = 0;

	while (n < 3 && n < size && ((unsigned char)text[size - 1 - n] & 0xc0) == 0x80)
		n++;
	if (n == 3 || n == size || (unsigned char)text[size - 1 - n] < 0xc0)
		return 0;
	return text_character_size(text + size - 1 - n, n + 1) ? 0 : n + 1;
}

bool text_whole(struct text_rest *rest, struct lair_text *text, char **ownedp)
{
	char *joined = rest->size > 0 ? malloc(rest->size + text->size) : NULL;

	/* Without memory it is no character, but comes. */
	if (joined) {
		memcpy(joined, rest->bytes, rest->size);
		memcpy(joined + rest->size, text->data, text->size);
		*text = (struct lair_text){.data = joined, .size = rest->size + text->size};
	}
	*ownedp = joined;
	rest->size = text_cut_end(text->data, text->size);
	text->size -= rest->size;
	memcpy(rest->bytes, text->data + text->size, rest->size);
	return text->size > 0;
}

struct lair_text text_rest(struct text_rest *rest)
{
	struct lair_text text = {.data = rest->bytes, .size = rest->size};

	rest->size = 0;
	return text;
}

bool text_number(const char *text, uint64_t *numberp)
{
	char *end;

	errno = 0;
	*numberp = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !errno && !*end;
}

int text_words(char **words, int most, char *line)
{
	char *rest = NULL, *word = strtok_r(line, " \t\r\n", &rest);
	int n = 0;

	for (; word && n < most; word = strtok_r(NULL, " \t\r\n", &rest))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

int text_random(char *out, size_t n)
{
	unsigned char bytes[32];

	if (n / 2 > sizeof(bytes) || getrandom(bytes, n / 2, 0) != (ssize_t)(n / 2))
		return -EIO;
	for (size_t i = 0; i < n / 2; i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
	return 0;
}

const char *text_cut(char *out, size_t size, const char *text)
{
	size_t n = strlen(text), cut = size - sizeof("...");

	if (n < size)
		snprintf(out, size, "%s", text);
	else
		snprintf(out, size, "%.*s...", (int)(cut - text_cut_end(text, cut)), text);
	return out;
}

const struct text_range text_unseen[] = {
	{0x00, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},     {0x61c, 0x61c},	{0x115f, 0x1160},
	{0x17b4, 0x17b5}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
	{0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
};
const size_t n_text_unseen = ARRAY_SIZE(text_unseen);

/* The character of @size bytes, which is valid. */
static uint32_t character_at(const char *text, size_t size)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t character = (unsigned char)text[0] & first[size];

	for (size_t i = 1; i < size; i++)
		character = character << 6 | ((unsigned char)text[i] & 0x3f);
	return character;
}

static bool is_wild(const char *text, size_t size)
{
	uint32_t character = size > 0 ? character_at(text, size) : 0;

	for (size_t i = 0; i < n_text_unseen; i++)
		if (character >= text_unseen[i].first && character <= text_unseen[i].last)
			return true;
	return false;
}

char *text_tame(char *text)
{
	size_t left = strlen(text), size;
	char *to = text;

	for (const char *at = text; left > 0; at += size, left -= size) {
		size = text_character_size(at, left);
		if (size == 0 || is_wild(at, size)) {
			*to++ = '?';
			size = MAX(size, (size_t)1);
		} else {
			memmove(to, at, size);
			to += size;
		}
	}
	*to = '\0';
	return text;
}

const char *text_tamed(char *out, size_t size, struct lair_text text)
{
	snprintf(out, size, "%.*s", (int)MIN(text.size, size), text.data ? text.data : "");
	return text_tame(out);
}

void text_print(struct lair_text text)
{
	const char *at = text.data;
	size_t left = text.size, size;

	for (; left > 0; at += size, left -= size) {
		size = text_character_size(at, left);
		if (*at != '\t' && *at != '\n' && (size == 0 || is_wild(at, size)))
			putchar('?');
		else
			(void)fwrite(at, 1, size, stdout);
		size = MAX(size, (size_t)1);
	}
}

int text_mend(struct lair_text *text, char **ownedp)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *mended = malloc(text->size * (sizeof(replacement) - 1) + 1);
	size_t size = 0, step;

	if (!mended)
		return -ENOMEM;
	for (size_t i = 0; i < text->size; i += MAX(step, (size_t)1)) {
		step = text_character_size(text->data + i, text->size - i);
		memcpy(mended + size, step ? text->data + i : replacement, step ? step : sizeof(replacement) - 1);
		size += step ? step : sizeof(replacement) - 1;
	}
	*text = (struct lair_text){.data = mended, .size = size};
	*ownedp = mended;
	return 0;
}

char *text_base64(struct lair_text text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t groups = (text.size + 2) / 3;
	char *out = malloc(4 * groups + 1);

	if (!out)
		return NULL;
	for (size_t g = 0; g < groups; g++) {
		size_t left = MIN(text.size - 3 * g, (size_t)3);
		uint32_t bits = 0;

		for (size_t i = 0; i < 3; i++)
			bits = bits << 8 | (i < left ? (unsigned char)text.data[3 * g + i] : 0);
		for (size_t i = 0; i < 4; i++)
			out[4 * g + i] = i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=';
	}
	out[4 * groups] = '\0';
	return out;
}

bool text_is(struct lair_text text, const char *string)
{
	return text.data && text.size == strlen(string) && memcmp(text.data, string, text.size) == 0;
}

int write_all(int fd, struct lair_text text)
{
	while (text.size > 0) {
		ssize_t n = write(fd, text.data, text.size);

		if (n >= 0) {
			text.data += n;
			text.size -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* Another process made it non-blocking. */
			struct pollfd room = {.fd = fd, .events = POLLOUT};

			(void)poll(&room, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* The mode of the descriptor stays, since other processes may share it. Many programs give their children a socket,
 * which is written to without waiting. Anything else gets no more than a pipe that has room is sure to
 * take. */
ssize_t write_some(int fd, const char *data, size_t size)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	ssize_t n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0 || errno != ENOTSOCK)
		return n;
	if (poll(&room, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, data, MIN(size, (size_t)PIPE_BUF));
}

void write_failed(int error)
{
	if (error != -EPIPE)
		fprintf(stderr, "lair: cannot write: %s\n", strerror(-error));
}

int read_all(int fd, char **datap, size_t *sizep)
{
	_cleanup_(freep) char *data = NULL;
	size_t size = 0, allocated = 0;
	ssize_t n;

	for (;;) {
		if (allocated - size < 2) {
			char *grown = realloc(data, allocated ? 2 * allocated : 65536);

			if (!grown)
				return -ENOMEM;
			allocated = allocated ? 2 * allocated : 65536;
			data = grown;
		}
		n = read(fd, data + size, allocated - size - 1);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			size += (size_t)n;
	}
	data[size] = '\0';
	*datap = steal_ptr(&data);
	*sizep = size;
	return 0;
}
