/* JSON for programs: liblair's structs as documents. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

/* The text as JSON must have it: each byte that is not UTF-8 becomes U+FFFD. null if absent. New. */
json_t *json_text(struct lair_text text);
json_t *json_texts(struct lair_items items); /* an array */

/* The bytes in base 64. New. */
json_t *json_base64(struct lair_text text);

/* json_records.c: every member of the struct, with the name that its message has; null if there is no value. Of a
 * list, an array of them. New. */
json_t *json_session(const struct lair_session *session);
json_t *json_sessions(struct lair_items items);
json_t *json_checkpoints(struct lair_items items);
json_t *json_difference(const char *session, const struct lair_difference *difference);
json_t *json_state(const char *session, const struct lair_state *state);
json_t *json_save(const struct lair_save *save);
json_t *json_saves(struct lair_items items);
json_t *json_refused(struct lair_items items);
json_t *json_saved(const char *session, const struct lair_saved *saved);
/* null if there is nothing to tell. */
json_t *json_ended(const struct lair_ended *ended);
/* null if nothing was to be loaded. */
json_t *json_loaded(const struct lair_loaded *loaded);
json_t *json_kept(struct lair_items items);
json_t *json_waiting(const struct lair_waiting *waiting);
json_t *json_counters(const struct lair_counters *counters);
json_t *json_changes(struct lair_items items);
json_t *json_variables(const struct lair_variables *found);
json_t *json_completions(const struct lair_completions *found);
json_t *json_inspection(const struct lair_inspection *found);
json_t *json_checked(const struct lair_checked *checked);
json_t *json_history(struct lair_items items);
json_t *json_files(struct lair_items items);

/* The document in as few bytes as possible; the caller frees them. Numbers are written as they were read. NULL
 * without memory. */
char *json_compact(const json_t *document);
/* The same in ASCII alone: some readers of lines take U+2028 and others for the end of one. */
char *json_ascii(const json_t *document);
/* One document as a line, the caller's to free; the document is released. NULL without memory. */
char *json_line(json_t *document);

/* Puts @output under @key. If it is not UTF-8, it is also put under "@key_base64" unchanged, in base 64. */
void json_add_output(json_t *object, const char *key, struct lair_text output);

/* json_shown.c: bundles, displays, artifacts and errors. Binary data is in base 64; JSON becomes part of the
 * document. New. */
json_t *json_data(struct lair_items bundle);
json_t *json_display(const struct lair_display *display);
json_t *json_displays(const struct lair_result *result);
json_t *json_artifacts(const struct lair_result *result);
/* Puts the restored files under "files" and "files_more", and "files_stay", if there are any. */
void json_add_back(json_t *object, const struct lair_back *back);
/* Puts the effects under "effects" and "effects_more", if there are any. */
void json_add_effects(json_t *object, const struct lair_effects *effects);
json_t *json_error(const struct lair_result *result);
