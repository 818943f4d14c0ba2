/* The elements of lists, each decoded by its table when a program asks for it. */
#include "handle.h"

struct lair_loaded items_loaded(double age, struct bytes names, struct bytes refused, struct bytes damaged)
{
	return (struct lair_loaded){.age = age,
				    .names = items_from(names),
				    .refused = items_from(refused),
				    .damaged = text_from(damaged)};
}

struct lair_ended items_ended(struct bytes body)
{
	struct ended_record record;
	struct wire_fault fault;

	if (!body.data || wire_decode_known(&record, &ended_record_schema, body, &fault))
		return (struct lair_ended){.when = 0};
	return (struct lair_ended){ENDED_FIELDS(TAKE, &record)};
}

struct lair_effects items_effects(struct bytes effects, uint64_t more)
{
	return (struct lair_effects){.items = items_from(effects), .more = more};
}

struct lair_back items_back(struct bytes files, uint64_t more, struct bytes stay)
{
	return (struct lair_back){.items = items_from(files), .more = more, .stay = text_from(stay)};
}

void items_session(struct lair_session *session, const struct session_info *info)
{
	*session = (struct lair_session){SESSION_FACT_FIELDS(TAKE, info)};
	session->loaded = items_loaded(info->saved_age, info->loaded, info->not_loaded, info->saved_damaged);
	session->effects = items_effects(info->effects, info->effects_more);
	session->ended = items_ended(info->ended);
	session->birth = info->birth;
	session->key = text_from(info->key);
	session->own_files = info->own_files;
}

struct lair_display items_display(const struct shown *shown)
{
	return (struct lair_display){
		.data = items_from(shown->data),
		.metadata = text_from(shown->metadata),
		.id = text_from(shown->display_id),
		.update = shown->update,
		.clear = shown->clear,
	};
}

static bool next_record(void *record, const struct wire_schema *schema, struct lair_items items, size_t *cursor)
{
	struct wire_fault fault;
	struct bytes body;

	return wire_next(bytes_from_items(items), cursor, &body) &&
	       !wire_decode_known(record, schema, body, &fault);
}

/* For an element that has the members of its message, and no others. */
#define ELEMENT(function, item_type, message, FIELDS)                                                              \
	bool function(struct lair_items items, size_t *cursor, struct item_type *item)                             \
	{                                                                                                          \
		struct message record;                                                                             \
                                                                                                                   \
		if (!next_record(&record, &message##_schema, items, cursor))                                       \
			return false;                                                                              \
		*item = (struct item_type){FIELDS(TAKE, &record)};                                                 \
		return true;                                                                                       \
	}

ELEMENT(lair_next_refused, lair_refused, refused_name, REFUSED_FIELDS)
ELEMENT(lair_next_blocked, lair_blocked, blocked_act, BLOCKED_FIELDS)
ELEMENT(lair_next_artifact, lair_artifact, artifact, ARTIFACT_FIELDS)
ELEMENT(lair_next_effect, lair_effect, effect, EFFECT_FIELDS)
ELEMENT(lair_next_file_back, lair_file_back, file_back, FILE_BACK_FIELDS)
ELEMENT(lair_next_error_frame, lair_error_frame, error_frame, ERROR_FRAME_FIELDS)
ELEMENT(lair_next_kept, lair_kept, result_record, RESULT_RECORD_FIELDS)
ELEMENT(lair_next_checkpoint, lair_checkpoint, checkpoint_record, CHECKPOINT_RECORD_FIELDS)
ELEMENT(lair_next_file_difference, lair_file_difference, file_difference, FILE_DIFFERENCE_FIELDS)
ELEMENT(lair_next_variable_difference, lair_variable_difference, variable_difference, VARIABLE_DIFFERENCE_FIELDS)
ELEMENT(lair_next_match, lair_match, completion_match, MATCH_FIELDS)
ELEMENT(lair_next_variable, lair_variable, variable_record, VARIABLE_FIELDS)
ELEMENT(lair_next_past, lair_past, history_record, HISTORY_RECORD_FIELDS)
ELEMENT(lair_next_times, lair_times, cell_times, CELL_TIMES_FIELDS)
ELEMENT(lair_next_change, lair_change, setting_change, SETTING_CHANGE_FIELDS)

bool lair_next_waiting(struct lair_items items, size_t *cursor, struct lair_waiting *item)
{
	struct call_record record;

	if (!next_record(&record, &call_record_schema, items, cursor))
		return false;
	*item = (struct lair_waiting){
		.session = text_from(record.session),
		.key = text_from(record.key),
		.cell = record.cell,
		.number = record.number,
		.function = text_from(record.function),
		.arguments = text_from(record.arguments),
		.bytes = record.bytes,
		.state = text_from(record.state),
		.text = text_from(record.text),
		.age = record.age,
		.uid = record.uid,
	};
	return true;
}

bool lair_next_package_set(struct lair_items items, size_t *cursor, struct lair_package_set *item)
{
	struct package_set record;

	if (!next_record(&record, &package_set_schema, items, cursor))
		return false;
	*item = (struct lair_package_set){
		.set = text_from(record.set),
		.size = record.size,
		.made = record.made,
		.used = record.used,
		.projects = items_from(record.projects),
		.template_memory = record.template,
		.sessions = items_from(record.sessions),
	};
	return true;
}

bool lair_next_save(struct lair_items items, size_t *cursor, struct lair_save *item)
{
	struct save_record record;

	if (!next_record(&record, &save_record_schema, items, cursor))
		return false;
	*item = (struct lair_save){
		.session = text_from(record.session),
		.uid = record.uid,
		.size = record.size,
		.count = record.count,
		.created = record.created,
		.expires = record.expires,
		.names = items_from(record.names),
		.refused = items_from(record.not_saved),
		.before = record.before,
		.damaged = record.damaged,
	};
	return true;
}

bool lair_next_file(struct lair_items items, size_t *cursor, struct lair_file *item)
{
	struct file_record record;

	if (!next_record(&record, &file_record_schema, items, cursor))
		return false;
	*item = (struct lair_file){FILE_RECORD_FIELDS(TAKE, &record)};
	item->mode &= 0777;
	return true;
}

bool lair_next_session(struct lair_items items, size_t *cursor, struct lair_session *item)
{
	struct session_info info;

	if (!next_record(&info, &session_info_schema, items, cursor))
		return false;
	items_session(item, &info);
	return true;
}

bool lair_next_display(struct lair_items items, size_t *cursor, struct lair_display *item)
{
	struct shown shown;

	if (!next_record(&shown, &shown_schema, items, cursor))
		return false;
	*item = items_display(&shown);
	return true;
}

bool lair_next_data(struct lair_items bundle, size_t *cursor, struct lair_data *item)
{
	struct bytes type, value, data;
	bool binary;

	if (!wire_next_pair(bytes_from_items(bundle), cursor, &type, &value) ||
	    !wire_read_span(value, &data, &binary))
		return false;
	*item = (struct lair_data){.type = text_from(type), .data = text_from(data), .binary = binary};
	return true;
}

bool lair_next_text(struct lair_items items, size_t *cursor, struct lair_text *item)
{
	struct bytes text;

	if (!wire_next_string(bytes_from_items(items), cursor, &text))
		return false;
	*item = text_from(text);
	return true;
}

bool lair_next_number(struct lair_items items, size_t *cursor, uint64_t *item)
{
	return wire_next_uint(bytes_from_items(items), cursor, item);
}
