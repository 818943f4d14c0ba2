/* Displays of cells, and notes on their ends. */
#include "bridge.h"

#include "base/json.h"
#include "base/paint.h"
#include "base/result.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#define NOTICE "application/vnd.lair.notebook+json"
#define BUFFERS "application/vnd.lair.buffers"
/* Of kernel/languages/python/display.py, beside the forms of a value: what describes them, and which are JSON that
 * their types do not name so. */
#define METADATA "application/vnd.lair.metadata+json"
#define STRUCTURED "application/vnd.lair.structured+json"
#define BUFFERS_MAX 256
/* Of what goes into the reply of a cell, which is kept until the cell ends. */
#define PAYLOAD_MAX 64
#define PAYLOAD_SIZE_MAX ((size_t)16 << 20)

/* ---- displays ---- */

static json_t *object_or_empty(const json_t *document)
{
	return json_is_object(document) ? json_incref((json_t *)document) : json_object();
}

/* Cuts @whole as the sizes say. Returns how many pieces there are; 0 if the sizes are wrong. */
static size_t buffers_cut(struct lair_text buffers[static BUFFERS_MAX], const json_t *sizes, struct lair_text whole)
{
	size_t n = json_array_size(sizes);

	if (n > BUFFERS_MAX)
		return 0;
	for (size_t i = 0; i < n; i++) {
		json_int_t size = json_integer_value(json_array_get(sizes, i));

		if (size < 0 || (uint64_t)size > whole.size)
			return 0;
		buffers[i] = (struct lair_text){.data = whole.data ? whole.data : "", .size = (size_t)size};
		whole.data += size;
		whole.size -= (size_t)size;
	}
	return n;
}

/* Notices of a session are untrusted. Only messages of comms are passed on. */
static void comm_tell(struct job *job, const json_t *notice, struct lair_text binary)
{
	static const char *const types[] = {"comm_open", "comm_msg", "comm_close"};
	const char *type = message_text(notice, "msg_type");
	struct lair_text buffers[BUFFERS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			publish(job->bridge,
				(struct outgoing){
					.type = types[i],
					.content = object_or_empty(json_object_get(notice, "content")),
					.metadata = object_or_empty(json_object_get(notice, "metadata")),
					.parent = job_header(job),
					.buffers = buffers,
					.n_buffers = buffers_cut(buffers, json_object_get(notice, "sizes"), binary),
				});
}

static void payload_add(struct job *job, const json_t *payload, size_t size)
{
	if (!job->payload)
		job->payload = json_array();
	job->payload_size += size;
	if (json_array_size(job->payload) < PAYLOAD_MAX && job->payload_size <= PAYLOAD_SIZE_MAX)
		json_array_append_new(job->payload, object_or_empty(payload));
}

static void notice_take(struct job *job, struct lair_text text, struct lair_text binary)
{
	json_t *notice = json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL);
	const char *type = message_text(notice, "type");

	job->bridge->comms = true;
	if (strcmp(type, "message") == 0) {
		comm_tell(job, notice, binary);
	} else if (strcmp(type, "comms") == 0) {
		json_decref(job->told);
		job->told = object_or_empty(json_object_get(notice, "comms"));
	} else if (strcmp(type, "payload") == 0) {
		payload_add(job, json_object_get(notice, "payload"), text.size);
	}
	json_decref(notice);
}

/* Whether the display is a notice to the notebook, which has been taken then. */
static bool is_notice(struct job *job, struct lair_items data)
{
	struct lair_text text = {.data = NULL}, binary = {.data = NULL};
	struct lair_data item;
	size_t cursor = 0;

	while (lair_next_data(data, &cursor, &item)) {
		if (text_is(item.type, NOTICE))
			text = item.data;
		else if (text_is(item.type, BUFFERS))
			binary = item.data;
	}
	if (text.data)
		notice_take(job, text, binary);
	return text.data;
}

json_t *forms_of(struct lair_items bundle, json_t **metadatap)
{
	json_t *data = bundle.data ? json_data(bundle) : json_object(), *type, *parsed;
	json_t *metadata = json_object_get(data, METADATA), *structured = json_object_get(data, STRUCTURED);
	size_t i;

	json_array_foreach(structured, i, type)
	{
		const json_t *text = json_object_get(data, json_string_value(type));

		parsed = json_loadb(json_string_value(text), json_string_length(text),
				    JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		if (parsed)
			json_object_set_new(data, json_string_value(type), parsed);
	}
	*metadatap = object_or_empty(metadata);
	json_object_del(data, METADATA);
	json_object_del(data, STRUCTURED);
	return data;
}

void show_display(struct job *job, const struct lair_display *display)
{
	json_t *metadata = display->metadata.data ? json_loadb(display->metadata.data, display->metadata.size,
							       JSON_ALLOW_NUL, NULL)
						  : NULL;
	json_t *data, *content, *none;

	if (is_notice(job, display->data)) {
		json_decref(metadata);
		return;
	}
	data = forms_of(display->data, &none);
	json_decref(none);
	if (display->clear)
		publish(job->bridge, (struct outgoing){.type = "clear_output",
						       .content = json_pack("{s:b}", "wait",
									    message_flag(metadata, "wait", false)),
						       .parent = job_header(job)});
	if (json_object_size(data) == 0) {
		json_decref(data);
		json_decref(metadata);
		return;
	}
	content = json_pack("{s:o, s:o, s:{}}", "data", data, "metadata", object_or_empty(metadata), "transient");
	json_decref(metadata);
	if (display->id.data)
		json_object_set_new(json_object_get(content, "transient"), "display_id", json_text(display->id));
	publish(job->bridge, (struct outgoing){.type = display->update ? "update_display_data" : "display_data",
					       .content = content,
					       .parent = job_header(job)});
}

/* ---- notes ---- */

void line_show(struct job *job, enum lair_stream stream, const char *format, ...)
{
	_cleanup_(freep) char *line = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&line, format, args);
	va_end(args);
	if (n < 0) {
		line = NULL;
		return;
	}
	output_gather(job->bridge, stream, lair_text(text_tame(line)));
	output_gather(job->bridge, stream, lair_text("\n"));
}

static const struct note_style style = {
	.sentences = true,
	.hints = {[CAUSE_EXIT] = "; to end the session, shut the kernel down"},
	.skip = {[NOTE_STRAY] = true, [NOTE_ARTIFACTS] = true}, /* output is shown as it comes; files are not listed
								 */
};

/* The notes that belong into the traceback, if there is one; or all others. */
static struct note_style style_of(bool traceback)
{
	struct note_style part = style;

	for (enum note note = 0; note < N_NOTES; note++)
		part.skip[note] |= (note >= NOTE_CAUSE && note <= NOTE_EFFECTS) != traceback;
	return part;
}

static void notice(void *job, enum note note, const char *sentence)
{
	(void)note;
	tell_line(job, "%s", sentence);
}

static void notice_keep(void *bridge, enum note note, const char *sentence)
{
	struct bridge *it = bridge;
	_cleanup_(freep) char *before = it->untold;

	(void)note;
	if (asprintf(&it->untold, "%s%s%s", before ? before : "", before ? "\n" : "", sentence) < 0)
		it->untold = NULL;
}

void keep_notices(struct bridge *bridge, const struct lair_session *session)
{
	const struct lair_result result = {.loaded = session->loaded};
	char left_out[PATH_MAX + 128];

	result_notes(&result, &style, notice_keep, bridge);
	if (asked_left_out(bridge->options->asked, session, left_out, sizeof(left_out)))
		notice_keep(bridge, N_NOTES, left_out);
}

void show_notices(struct job *job, const struct lair_result *result)
{
	struct note_style beside = style_of(false);
	_cleanup_(freep) char *untold = steal_ptr(&job->bridge->untold);

	if (untold)
		tell_line(job, "%s", untold);
	result_notes(result, result->cause.data ? &beside : &style, notice, job);
	if (result->setting.data)
		tell_line(job, "%.*s decides this.", (int)result->setting.size, result->setting.data);
}

/* ---- errors ---- */

/* The traceback in colour, line by line. */
static void trace_add(json_t *lines, struct lair_text traceback)
{
	_cleanup_(freep) char *text = NULL;
	struct paint paint = {.line = NULL};
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	char *rest, *line;

	if (!out)
		return;
	paint_pass(&paint, traceback, out);
	paint_end(&paint, out);
	if (fclose(out) != 0 || !text)
		return;
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (rest || *line)
			json_array_append_new(lines, json_text(lair_text(line)));
}

static void sentence_add(void *lines, enum note note, const char *sentence)
{
	(void)note;
	json_array_append_new(lines, json_string(sentence));
}

json_t *result_error(const struct bridge *bridge, const struct lair_result *result)
{
	const char *name = causes[result_cause(result)].exception;
	struct note_style told = style_of(true);
	json_t *lines;
	char words[CAUSE_SIZE];

	(void)bridge;
	if (!result->cause.data)
		return NULL;
	lines = json_array();
	name = name ? name : DEATH_EXCEPTION;
	cause_words(words, result, &style);
	if (result->error_name.data)
		trace_add(lines, result->error_traceback);
	else
		json_array_append_new(lines, json_sprintf("%s: %s", name, words));
	told.skip[NOTE_CAUSE] = !result->error_name.data;
	result_notes(result, &told, sentence_add, lines);
	return json_pack("{s:o, s:o, s:o}", "ename",
			 result->error_name.data ? json_text(result->error_name) : json_string(name), "evalue",
			 json_text(result->error_name.data ? result->error_value : lair_text(words)), "traceback",
			 lines);
}
