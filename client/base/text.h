/* Text for people. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

#define HUMAN_SIZE 64

/* "0s", "42s", "5m", "2h 5m", "3d 4h". */
const char *human_seconds(char out[static HUMAN_SIZE], double seconds);
/* "512 B", "1.5 MiB". */
const char *human_bytes(char out[static HUMAN_SIZE], uint64_t bytes);
/* "12.5 MiB of 1.0 GiB"; without a limit, if that is 0. */
#define OF_LIMIT_SIZE (2 * HUMAN_SIZE)
const char *human_bytes_of(char out[static OF_LIMIT_SIZE], uint64_t bytes, uint64_t limit);

/* "2026-01-31 12:00:00", local time. */
const char *human_date(char out[static HUMAN_SIZE], double epoch);

/* "the state after cell 3", "the state before the first cell". */
const char *human_state(char out[static HUMAN_SIZE], uint64_t cell);

/* "connected to 10.0.0.5:443", "renamed a to b". */
#define EFFECT_SIZE 1280
const char *human_effect(char out[static EFFECT_SIZE], const struct lair_effect *effect);

/* How many bytes the character at @at has, 0 if there is none. */
size_t text_character_size(const char *at, size_t left);

/* As much of @text as there is room for in @out; a cut text ends with "...". Returns @out. */
const char *text_cut(char *out, size_t size, const char *text);

/* How many columns of a terminal @text takes. */
size_t text_columns(const char *text);

/* The beginning of a character that has no end yet: pieces of a stream may end within one. */
struct text_rest {
	char bytes[4];
	size_t size;
};
/* Makes *text the rest before and it, up to the end of the last whole character; it lies in *ownedp, the caller's
 * to free, if there was a rest. Whether there is any of it. */
bool text_whole(struct text_rest *rest, struct lair_text *text, char **ownedp);
/* No more of it will come: it is empty then, and valid until the next text_whole. */
struct lair_text text_rest(struct text_rest *rest);

/* A decimal number, all of @text. Returns whether it is one. */
bool text_number(const char *text, uint64_t *numberp);

/* Cut @line at its white space into at most @most words, and a NULL. Returns how many there are. */
int text_words(char **words, int most, char *line);

/* @n random hexadecimal digits and a NUL. Returns 0 or -EIO. */
int text_random(char *out, size_t n);

/* How many bytes at the end of @text may begin a character that is cut off: at most three. */
size_t text_cut_end(const char *text, size_t size);

/* Characters that a terminal acts on, that change how others look, or that nobody sees: control characters, marks
 * of the direction of writing, and those without a width. For the terminal and the dashboard; in ascending order.
 */
struct text_range {
	uint32_t first, last;
};
extern const struct text_range text_unseen[];
extern const size_t n_text_unseen;

/* These, and bytes that are no text, become '?'. The text does not grow. Returns @text. */
char *text_tame(char *text);
/* The same, into @out; text that does not fit is cut. Returns @out. */
const char *text_tamed(char *out, size_t size, struct lair_text text);

/* Prints all of it on stdout, tamed, but with its line ends and tabs. */
void text_print(struct lair_text text);

/* Puts U+FFFD in the place of every byte that is not UTF-8. Then @text lies in *ownedp, the caller's to free.
 * Returns 0 or -ENOMEM. */
int text_mend(struct lair_text *text, char **ownedp);

/* In base 64, the caller's to free; NULL without memory. */
char *text_base64(struct lair_text text);

/* Whether @text is @string. */
bool text_is(struct lair_text text, const char *string);

/* Write all of it, however often write() is interrupted. Returns 0 or -errno. */
int write_all(int fd, struct lair_text text);
/* As write(), but without waiting, in whatever mode @fd is: -1 and EAGAIN if there is no room. */
ssize_t write_some(int fd, const char *data, size_t size);
/* Say that output could not be written, unless the reason is that nobody reads any more. */
void write_failed(int error);
/* Everything from a descriptor, the caller's to free; a NUL follows it. Returns 0 or -errno. */
int read_all(int fd, char **datap, size_t *sizep);
