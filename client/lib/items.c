/* The elements of lists, each decoded by its table when a program asks for it. */
#include "handle.h"

struct lair_loaded items_loaded(double age, struct bytes names, struct bytes refused)
{
	return (struct lair_loaded){.age = age, .names = items_from(names), .refused = items_from(refused)};
}

struct lair_ended items_ended(struct bytes body)
{
	struct ended_record record;
	struct wire_fault fault;

	if (!body.data || wire_decode_known(&record, &ended_record_schema, body, &fault))
		return (struct lair_ended){.when = 0};
	return (struct lair_ended){
		.why = text_from(record.why),
		.when = record.when,
		.birth = record.birth,
		.cells = record.cells,
		.saved = record.saved,
		.not_saved = text_from(record.not_saved),
		.by_root = record.by_root,
	};
}

struct lair_effects items_effects(struct bytes effects, uint64_t more)
{
	return (struct lair_effects){.items = items_from(effects), .more = more};
}

void items_session(struct lair_session *session, const struct session_info *info)
{
	*session = (struct lair_session){
		.session = text_from(info->session),
		.profile = text_from(info->profile),
		.state = text_from(info->state),
		.workspace = text_from(info->workspace),
		.level = text_from(info->level),
		.uid = info->uid,
		.cells = info->cells,
		.queued = info->queued,
		.pid = info->pid,
		.memory = info->memory,
		.created = info->created,
		.idle = info->idle,
		.idle_left = info->idle_left,
		.hard_left = info->hard_left,
		.guards = items_from(info->guards),
		.opened = info->opened,
		.checkpoints = info->checkpoints,
		.checkpoint_memory = info->checkpoint_memory,
		.checkpoint_age = info->checkpoint_age,
		.cpu = info->cpu,
		.disk = info->disk,
		.files = info->files,
		.tasks = info->tasks,
		.memory_limit = info->memory_limit,
		.tasks_limit = info->tasks_limit,
		.disk_limit = info->disk_limit,
		.cpu_limit = info->cpu_limit,
		.cell_timeout = info->cell_timeout,
		.idle_ttl = info->idle_ttl,
		.hard_ttl = info->hard_ttl,
		.loaded = items_loaded(info->saved_age, info->loaded, info->not_loaded),
		.effects = items_effects(info->effects, info->effects_more),
		.ended = items_ended(info->ended),
		.birth = info->birth,
	};
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

bool lair_next_text(struct lair_items items, size_t *cursor, struct lair_text *item)
{
	struct bytes text;

	if (!wire_next_string(bytes_from_items(items), cursor, &text))
		return false;
	*item = text_from(text);
	return true;
}

bool lair_next_refused(struct lair_items items, size_t *cursor, struct lair_refused *item)
{
	struct refused_name refused;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&refused, &refused_name_schema, body, &fault))
		return false;
	*item = (struct lair_refused){.name = text_from(refused.name), .reason = text_from(refused.reason)};
	return true;
}

bool lair_next_blocked(struct lair_items items, size_t *cursor, struct lair_blocked *item)
{
	struct blocked_act act;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&act, &blocked_act_schema, body, &fault))
		return false;
	*item = (struct lair_blocked){
		.event = text_from(act.event), .target = text_from(act.target), .reason = text_from(act.reason)};
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

bool lair_next_display(struct lair_items items, size_t *cursor, struct lair_display *item)
{
	struct shown shown;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&shown, &shown_schema, body, &fault))
		return false;
	*item = items_display(&shown);
	return true;
}

bool lair_next_artifact(struct lair_items items, size_t *cursor, struct lair_artifact *item)
{
	struct artifact artifact;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&artifact, &artifact_schema, body, &fault))
		return false;
	*item = (struct lair_artifact){
		.path = text_from(artifact.path),
		.type = text_from(artifact.type),
		.change = text_from(artifact.change),
		.size = artifact.size,
	};
	return true;
}

bool lair_next_effect(struct lair_items items, size_t *cursor, struct lair_effect *item)
{
	struct wire_fault fault;
	struct effect effect;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&effect, &effect_schema, body, &fault))
		return false;
	*item = (struct lair_effect){.act = text_from(effect.act),
				     .target = text_from(effect.target),
				     .to = text_from(effect.to),
				     .cell = effect.cell};
	return true;
}

bool lair_next_error_frame(struct lair_items items, size_t *cursor, struct lair_error_frame *item)
{
	struct error_frame frame;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&frame, &error_frame_schema, body, &fault))
		return false;
	*item = (struct lair_error_frame){
		.cell = frame.cell,
		.file = text_from(frame.file),
		.line = frame.line,
		.column = frame.column,
		.function = text_from(frame.function),
		.source = text_from(frame.source),
		.values = items_from(frame.values),
	};
	return true;
}

bool lair_next_kept(struct lair_items items, size_t *cursor, struct lair_kept *item)
{
	struct result_record record;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&record, &result_record_schema, body, &fault))
		return false;
	*item = (struct lair_kept){
		.key = text_from(record.key),
		.cell = record.cell,
		.state = text_from(record.state),
		.returncode = (int)record.returncode,
		.age = record.age,
		.bytes = record.bytes,
	};
	return true;
}

bool lair_next_save(struct lair_items items, size_t *cursor, struct lair_save *item)
{
	struct save_record record;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&record, &save_record_schema, body, &fault))
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
	};
	return true;
}

bool lair_next_session(struct lair_items items, size_t *cursor, struct lair_session *item)
{
	struct session_info info;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&info, &session_info_schema, body, &fault))
		return false;
	items_session(item, &info);
	return true;
}

bool lair_next_file(struct lair_items items, size_t *cursor, struct lair_file *item)
{
	struct file_record record;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&record, &file_record_schema, body, &fault))
		return false;
	*item = (struct lair_file){
		.name = text_from(record.name),
		.kind = text_from(record.kind),
		.size = record.size,
		.stored = record.stored,
		.mode = (unsigned)record.mode & 0777,
		.modified = record.modified,
	};
	return true;
}

bool lair_next_checkpoint(struct lair_items items, size_t *cursor, struct lair_checkpoint *item)
{
	struct checkpoint_record record;
	struct wire_fault fault;
	struct bytes body;

	if (!wire_next(bytes_from_items(items), cursor, &body) ||
	    wire_decode_known(&record, &checkpoint_record_schema, body, &fault))
		return false;
	*item = (struct lair_checkpoint){
		.name = text_from(record.name), .cell = record.cell, .memory = record.memory, .age = record.age};
	return true;
}
