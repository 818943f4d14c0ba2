/* The lines of the audit log. A text is cut at the length of the longest path. */
#include "audit_log.h"

#include "base/log.h"
#include "sessions.h"

#include "proto/clock.h"
#include "proto/json.h"
#include "proto/sha256.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define TEXT_MAX 4096
/* Of the code of a cell in a line. */
#define CODE_MAX ((size_t)64 << 10)
/* Of the arguments of a call, as JSON. */
#define ARGUMENTS_MAX ((size_t)64 << 10)

/* ---- the log ---- */

int audit_log_open(struct audit_log *log, const char *path)
{
	int r;

	*log = AUDIT_LOG_NONE;
	r = append_new(&log->file, path);
	return r ? r : append_lines(log->file, NULL, 0);
}

const char *audit_log_trouble(char out[static AUDIT_LOG_TROUBLE_SIZE], const char *path, int r)
{
	char late[64];

	(void)snprintf(late, sizeof(late), "it did not open within %d s", APPEND_PATIENCE_MS / 1000);
	(void)snprintf(out, AUDIT_LOG_TROUBLE_SIZE, "cannot append to audit_log = %.300s: %s", path,
		       r == -ETIMEDOUT ? late
		       : r == -EINVAL  ? "not a regular file"
				       : strerror(-r));
	return out;
}

void audit_log_close(struct audit_log *log)
{
	log->file = append_free(log->file);
}

void audit_log_replace(struct sessions *sessions, struct audit_log *fresh)
{
	audit_log_close(&sessions->audit_log);
	sessions->audit_log = *fresh;
	*fresh = AUDIT_LOG_NONE;
}

void audit_log_end(struct sessions *sessions)
{
	uint64_t missed = sessions->stats.audit_missed - sessions->stats.audit_told;

	if (sessions->audit_log.file && missed > 0)
		log_error(NULL, "the audit log misses its last %" PRIu64 " lines", missed);
	audit_log_close(&sessions->audit_log);
}

/* ---- lines ---- */

static bool off(const struct session *session)
{
	return !session->sessions->audit_log.file;
}

static int line_write(FILE *out, json_t *object)
{
	return json_dumpf(object, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16)) < 0 ||
			       fputc('\n', out) == EOF
		       ? -ENOMEM
		       : 0;
}

/* All @objects as one text, behind a line for the lines missed before them. */
static int text_of_lines(char **textp, size_t *sizep, json_t *objects, uint64_t missed)
{
	FILE *out = open_memstream(textp, sizep);
	json_t *object, *gap;
	size_t i;
	int r = 0;

	if (!out)
		return -ENOMEM;
	if (missed > 0) {
		gap = json_pack("{s:f, s:s, s:I}", "time", clock_date(), "event", "missed", "lines",
				(json_int_t)missed);
		r = line_write(out, gap);
		json_decref(gap);
	}
	json_array_foreach(objects, i, object) r = r ? r : line_write(out, object);
	return fclose(out) ? -ENOMEM : r;
}

static void heed(struct audit_log *log, const char *session, int r, uint64_t missed)
{
	if (r && !log->failing)
		log_error(session, "the audit log cannot be written: %s",
			  r == -ETIMEDOUT || r == -EBUSY ? "the disk does not respond" : strerror(-r));
	else if (!r && (log->failing || missed > 0))
		log_warn(NULL, "the audit log is written again; it misses %" PRIu64 " lines", missed);
	log->failing = r != 0;
}

/* @objects, an array, is ours. Returns 0 or -errno. */
static int put(const struct session *session, json_t *objects)
{
	struct stats *stats = &session->sessions->stats;
	uint64_t missed = stats->audit_missed - stats->audit_told;
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	int r = text_of_lines(&text, &size, objects, missed);

	if (!r)
		r = append_lines(session->sessions->audit_log.file, steal_ptr(&text), size);
	if (!r)
		stats->audit_told += missed;
	heed(&session->sessions->audit_log, session->name, r, missed);
	json_decref(objects);
	return r;
}

/* The same for an event that has happened already. */
static void note(const struct session *session, json_t *objects)
{
	size_t n = json_array_size(objects);

	if (put(session, objects))
		session->sessions->stats.audit_missed += n;
}

static void number_add(json_t *line, const char *key, uint64_t number)
{
	(void)json_object_set_new(line, key, json_integer((json_int_t)number));
}

/* The beginning of every line. */
static json_t *line_of(const struct session *session, const char *event)
{
	json_t *line = json_pack("{s:f}", "time", clock_date());

	if (session->id[0])
		(void)json_object_set_new(line, "session", json_string(session->id));
	number_add(line, "uid", session->owner);
	(void)json_object_set_new(line, "event", json_string(event));
	return line;
}

static json_t *line_of_cell(const struct session *session, const char *event, uint64_t number)
{
	json_t *line = line_of(session, event);

	number_add(line, "cell", number);
	return line;
}

/* As much of @bytes as fits into @max: no character is cut in two. */
static struct bytes text_cut(struct bytes bytes, size_t max)
{
	size_t size = MIN(bytes.size, max);

	while (size > 0 && size < bytes.size && (bytes.data[size] & 0xc0) == 0x80)
		size--;
	return (struct bytes){.data = bytes.data, .size = size};
}

/* Null if @bytes are absent or not UTF-8. */
static void text_add(json_t *line, const char *key, struct bytes bytes)
{
	struct bytes text = text_cut(bytes, TEXT_MAX);
	json_t *json = text.data ? json_stringn(text.data, text.size) : NULL;

	(void)json_object_set_new(line, key, json ? json : json_null());
}

void audit_log_opened(const struct session *session)
{
	json_t *line;

	if (off(session))
		return;
	line = line_of(session, "open");
	text_add(line, "profile", bytes_of(session->profile->name));
	text_add(line, "workspace", bytes_of(session_workspace(session)));
	note(session, json_pack("[o]", line));
}

static void code_add(json_t *line, struct bytes code)
{
	struct bytes text = text_cut(code, CODE_MAX);
	json_t *json = json_stringn(text.data, text.size);

	(void)json_object_set_new(line, "code", json ? json : json_null());
	if (text.size < code.size)
		number_add(line, "code_cut", code.size - text.size);
}

bool audit_log_exec(const struct session *session, const struct cell *cell, uint64_t number)
{
	const struct config *config = session->sessions->config;
	char digest[SHA256_HEX_SIZE];
	json_t *line;

	if (off(session) || cell->task != CELL_CODE)
		return true;
	line = line_of_cell(session, "exec", number);
	text_add(line, "sha256", bytes_of(sha256_hex(digest, cell->options.code)));
	if (config->audit_code)
		code_add(line, cell->options.code);
	if (config->audit_required)
		return put(session, json_pack("[o]", line)) == 0;
	note(session, json_pack("[o]", line));
	return true;
}

void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked)
{
	json_t *lines = json_array(), *line;
	struct blocked_act act;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	while (!off(session) && wire_next(blocked, &cursor, &item)) {
		if (wire_decode(&act, &blocked_act_schema, item, &fault))
			act = (struct blocked_act){.reason = BYTES("unreadable")};
		line = line_of_cell(session, "blocked", cell->number);
		text_add(line, "act", act.event);
		text_add(line, "target", act.target);
		text_add(line, "reason", act.reason);
		(void)json_array_append_new(lines, line);
	}
	if (json_array_size(lines) > 0)
		note(session, lines);
	else
		json_decref(lines);
}

/* As text if a number does not fit into 63 bits; null if there is too much for a line. */
static void arguments_add(json_t *line, struct bytes arguments)
{
	bool cut = true;
	_cleanup_(freep) char *text = json_written(arguments, ARGUMENTS_MAX, &cut);
	json_t *json = text && !cut ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;

	if (!json && text && !cut)
		json = json_string(text);
	(void)json_object_set_new(line, "arguments", json ? json : json_null());
}

/* @answer, @by: NULL if there is no such thing. */
static void put_call(const struct session *session, const struct call *call, const char *outcome,
		     const struct returned_message *answer, const uid_t *by)
{
	uint64_t ms = (event_now() - call->since) / 1000;
	json_t *line;

	if (off(session))
		return;
	line = line_of_cell(session, "call", session->cell->number);
	text_add(line, "function", call->function);
	text_add(line, "outcome", bytes_of(outcome));
	(void)json_object_set_new(line, "seconds", json_real((double)ms / 1000));
	number_add(line, "arguments_size", call->arguments.size);
	if (answer)
		number_add(line, "answer_size", answer->value.size + answer->error.size + answer->text.size);
	if (by)
		number_add(line, "by", *by);
	if (session->profile->call_log == CALL_LOG_ARGUMENTS)
		arguments_add(line, call->arguments);
	note(session, json_pack("[o]", line));
}

void audit_log_call(const struct session *session, const struct call *call, const char *outcome)
{
	put_call(session, call, outcome, NULL, NULL);
}

void audit_log_answer(const struct session *session, const struct call *call, const struct returned_message *answer,
		      const uid_t *by)
{
	char outcome[128] = "answered";

	if (answer->error.data)
		snprintf(outcome, sizeof(outcome), "error %.*s", (int)MIN(answer->error.size, (size_t)100),
			 answer->error.data);
	put_call(session, call, outcome, answer, by);
}

void audit_log_approval(const struct session *session, const struct call *call, uid_t by)
{
	put_call(session, call, "approved", NULL, &by);
}

void audit_log_ended(const struct session *session, const char *cause)
{
	json_t *line;

	if (off(session))
		return;
	line = line_of(session, "end");
	number_add(line, "cells", session->n_cells);
	text_add(line, "cause", bytes_of(cause));
	note(session, json_pack("[o]", line));
}
