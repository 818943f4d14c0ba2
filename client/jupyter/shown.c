/* What cells show, and the words for how they have ended. */
#include "bridge.h"

#include "json.h"
#include "paint.h"
#include "text.h"

#include "proto/causes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NOTICE "application/vnd.lair.notebook+json"
#define BUFFERS "application/vnd.lair.buffers"
#define BLOCKED_SHOWN 5
#define EFFECTS_SHOWN 8
/* Of kernel/languages/python/display.py, beside the forms of a value: what describes them, and which are JSON that
 * their types do not name so. */
#define METADATA "application/vnd.lair.metadata+json"
#define STRUCTURED "application/vnd.lair.structured+json"
#define BUFFERS_MAX 256
#define WORDS_SIZE (CAUSE_SIZE + 72)
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

/* A session may say anything. Only what comms say goes on. */
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

/* ---- what is said beside the output ---- */

void tell_line(struct job *job, const char *format, ...)
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
	output_gather(job->bridge, LAIR_STDERR, lair_text(text_tame(line)));
	output_gather(job->bridge, LAIR_STDERR, lair_text("\n"));
}

static void tell_ended(struct job *job, const struct lair_result *result)
{
	char words[ENDED_SIZE];

	if (!result->ended.why.data || (text_is(result->ended.why, "shutdown") && !result->ended.by_root))
		return;
	tell_line(job, "The session is new: the one before has ended (%s). Its %sfiles are gone.",
		  human_ended(words, &result->ended), result->loaded.age > 0 ? "" : "variables and ");
}

static void tell_loaded(struct job *job, const struct lair_result *result)
{
	struct lair_refused refused;
	size_t cursor = 0;
	char age[HUMAN_SIZE];

	if (result->loaded.damaged.data)
		tell_line(job, "The variables do not come back: %.*s.", (int)result->loaded.damaged.size,
			  result->loaded.damaged.data);
	if (result->loaded.age > 0)
		tell_line(job, "The variables are those that were saved %s ago.",
			  human_seconds(age, result->loaded.age));
	while (lair_next_refused(result->loaded.refused, &cursor, &refused))
		tell_line(job, "%.*s does not come back: %.*s", (int)refused.name.size, refused.name.data,
			  (int)refused.reason.size, refused.reason.data);
}

static void tell_blocked(struct job *job, const struct lair_result *result)
{
	struct lair_blocked act;
	size_t cursor = 0, n = 0;

	while (lair_next_blocked(result->blocked, &cursor, &act)) {
		struct lair_text what = act.target.size ? act.target : act.event;

		if (refusal_told(&act, result->error_value))
			continue;
		if (n++ < BLOCKED_SHOWN)
			tell_line(job, "blocked: %.*s (%.*s)", (int)what.size, what.data, (int)act.reason.size,
				  act.reason.data);
	}
	if (n > BLOCKED_SHOWN)
		tell_line(job, "blocked: %zu more", n - BLOCKED_SHOWN);
}

static void tell_unfaithful(struct job *job, const struct lair_result *result)
{
	if (result->unfaithful.data)
		tell_line(job, "The state after this cell is not kept: %.*s", (int)result->unfaithful.size,
			  result->unfaithful.data);
}

void show_notices(struct job *job, const struct lair_result *result)
{
	tell_ended(job, result);
	tell_loaded(job, result);
	if (!text_is(result->cause, "error"))
		tell_blocked(job, result);
	tell_unfaithful(job, result);
	if (result->out_dropped + result->err_dropped > 0)
		tell_line(job, "%" PRIu64 " bytes of output were not kept.",
			  result->out_dropped + result->err_dropped);
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

static void sentence_add(json_t *lines, const char *format, ...) _printf_(2, 3);

static void sentence_add(json_t *lines, const char *format, ...)
{
	_cleanup_(freep) char *line = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&line, format, args);
	va_end(args);
	if (n < 0)
		line = NULL;
	else
		json_array_append_new(lines, json_text(lair_text(text_tame(line))));
}

static void effects_add(json_t *lines, const struct lair_effects *effects)
{
	uint64_t more = effects->more, shown = 0;
	struct lair_effect effect;
	char text[EFFECT_SIZE];
	size_t cursor = 0;

	while (lair_next_effect(effects->items, &cursor, &effect)) {
		if (shown++ < EFFECTS_SHOWN)
			sentence_add(lines, "Not undone: %s", human_effect(text, &effect));
		else
			more++;
	}
	if (more > 0)
		sentence_add(lines, "Not undone: %" PRIu64 " more", more);
}

/* What the session is now, if it is not simply as the cell left it. */
static void state_add(json_t *lines, const struct lair_result *result)
{
	char state[HUMAN_SIZE];

	if (text_is(result->state, "rolled_back"))
		sentence_add(lines, "The session is in %s again: its variables are as they were then.",
			     human_state(state, result->restored));
	else if (text_is(result->state, "reset"))
		sentence_add(lines, "The session begins anew: there was no earlier state to go back to.");
	else if (!result_goes_on(result))
		sentence_add(lines, "The session has ended.");
	effects_add(lines, &result->effects);
}

/* The name of the exception, and what happened. */
static const char *words_of(char out[static WORDS_SIZE], const struct lair_result *result)
{
	const struct cause *cause = cause_find(result->cause.data, result->cause.size);
	char words[CAUSE_SIZE];

	if (text_is(result->cause, "exit") && result_goes_on(result))
		snprintf(out, WORDS_SIZE, "%d: the session goes on; to end it, shut the kernel down",
			 result->returncode);
	else
		snprintf(out, WORDS_SIZE, "%s%s%.*s", human_cause(words, result), cause ? "" : ": ",
			 cause ? 0 : (int)MIN(result->cause.size, (size_t)64), result->cause.data);
	return cause && cause->exception ? cause->exception : "SessionLost";
}

json_t *result_error(const struct bridge *bridge, const struct lair_result *result)
{
	json_t *lines;
	const char *name;
	char words[WORDS_SIZE];

	(void)bridge;
	if (!result->cause.data)
		return NULL;
	lines = json_array();
	name = words_of(words, result);
	if (result->error_name.data) {
		trace_add(lines, result->error_traceback);
		if (!text_is(result->cause, "error") && !text_is(result->cause, "interrupt"))
			sentence_add(lines, "%s", words);
	} else {
		sentence_add(lines, "%s: %s", name, words);
	}
	state_add(lines, result);
	return json_pack("{s:o, s:o, s:o}", "ename",
			 json_text(result->error_name.data ? result->error_name : lair_text(name)), "evalue",
			 json_text(result->error_name.data ? result->error_value : lair_text(words)), "traceback",
			 lines);
}
