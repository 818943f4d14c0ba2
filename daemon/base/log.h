/* The log: one line per event on stderr,
 *
 *	2026-03-01T12:00:00.123Z warn  [session] text
 *
 * A text always stays one line: control characters and broken UTF-8 are written as \xNN, so no client and no
 * session can fake a line. Each line is one write(2), so the lines of keeper, router and templates never mix. */
#pragma once

#include "proto/base.h"

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR };

/* @session: NULL when the event belongs to none. Keeps errno. */
void log_write(enum log_level level, const char *session, const char *format, ...) _printf_(3, 4);

#define log_info(session, ...) log_write(LOG_INFO, (session), __VA_ARGS__)
#define log_warn(session, ...) log_write(LOG_WARN, (session), __VA_ARGS__)
#define log_error(session, ...) log_write(LOG_ERROR, (session), __VA_ARGS__)

/* From now on append to the file @path, made 0600 if it is missing; it replaces stderr. Refuses anything but a
 * regular file. Returns 0 or -errno. */
int log_open(const char *path);
