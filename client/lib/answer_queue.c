/* The queue: any thread puts answers to calls here, and the thread of the handle sends them. The queue and its
 * calls live as long as they are used, so a thread may come too late and do no harm. */
#include "calling.h"

/* ---- life ---- */

struct answer_queue *answer_queue_new(void)
{
	struct answer_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->users = 1;
	queue->wake = -1;
	pthread_mutex_init(&queue->lock, NULL);
	return queue;
}

static void queue_leave(struct answer_queue *queue)
{
	unsigned users;

	pthread_mutex_lock(&queue->lock);
	users = --queue->users;
	pthread_mutex_unlock(&queue->lock);
	if (users > 0)
		return;
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

struct lair_calling *calling_new(struct answer_queue *queue, const struct call_event *event)
{
	struct lair_calling *calling = calloc(1, sizeof(*calling) + event->arguments.size);

	if (!calling)
		return NULL;
	calling->function = strndup(event->function.data, event->function.size);
	if (!calling->function) {
		free(calling);
		return NULL;
	}
	memcpy(calling + 1, event->arguments.data, event->arguments.size);
	calling->arguments = (struct bytes){.data = (char *)(calling + 1), .size = event->arguments.size};
	calling->number = event->number;
	calling->users = 1;
	calling->queue = queue;
	pthread_mutex_lock(&queue->lock);
	queue->users++;
	pthread_mutex_unlock(&queue->lock);
	return calling;
}

void calling_use(struct lair_calling *calling)
{
	pthread_mutex_lock(&calling->queue->lock);
	calling->users++;
	pthread_mutex_unlock(&calling->queue->lock);
}

void calling_leave(struct lair_calling *calling)
{
	struct answer_queue *queue = calling->queue;
	unsigned users;

	pthread_mutex_lock(&queue->lock);
	users = --calling->users;
	pthread_mutex_unlock(&queue->lock);
	if (users > 0)
		return;
	free(calling->function);
	free(calling->key);
	free(calling->json);
	free(calling);
	queue_leave(queue);
}

struct giving *giving_new(struct lair_calling *calling)
{
	struct giving *giving = calloc(1, sizeof(*giving));

	if (!giving)
		return NULL;
	msgpack_sbuffer_init(&giving->value);
	giving->calling = calling;
	calling_use(calling);
	return giving;
}

struct giving *giving_free(struct giving *giving)
{
	calling_leave(giving->calling);
	msgpack_sbuffer_destroy(&giving->value);
	free(giving->error);
	free(giving->text);
	free(giving);
	return NULL;
}

/* ---- what the program sees of a call ---- */

uint64_t lair_calling_number(const struct lair_calling *calling)
{
	return calling->number;
}

struct lair_text lair_calling_function(const struct lair_calling *calling)
{
	return lair_text(calling->function);
}

struct lair_text lair_calling_key(const struct lair_calling *calling)
{
	return lair_text(calling->key);
}

struct lair_text lair_calling_packed(const struct lair_calling *calling)
{
	return text_from(calling->arguments);
}

struct lair_text lair_calling_arguments(struct lair_calling *calling)
{
	if (!calling->json)
		calling->json = lair_json(text_from(calling->arguments));
	return lair_text(calling->json);
}

bool lair_calling_cancelled(const struct lair_calling *calling)
{
	bool cancelled;

	pthread_mutex_lock(&calling->queue->lock);
	cancelled = calling->cancelled;
	pthread_mutex_unlock(&calling->queue->lock);
	return cancelled;
}

struct lair_calling *lair_calling_free(struct lair_calling *calling)
{
	if (!calling)
		return NULL;
	pthread_mutex_lock(&calling->queue->lock);
	calling->left = true;
	pthread_mutex_unlock(&calling->queue->lock);
	calling_leave(calling);
	return NULL;
}

/* ---- answers ---- */

/* Takes @giving over, and the call from the program unless it is only held. */
static int put(struct lair_calling *calling, struct giving *giving)
{
	bool hold = giving->hold, gone;
	struct answer_queue *queue = calling->queue;
	uint64_t one = 1;

	pthread_mutex_lock(&queue->lock);
	gone = calling->cancelled;
	if (!gone && queue->last)
		queue->last->next = giving;
	else if (!gone)
		queue->first = giving;
	if (!gone)
		queue->last = giving;
	/* It fails only if the counter is full, and then the handle wakes, too. */
	if (!gone && queue->wake >= 0)
		(void)!write(queue->wake, &one, sizeof(one));
	pthread_mutex_unlock(&queue->lock);
	if (gone)
		giving_free(giving);
	if (!hold)
		lair_calling_free(calling);
	return 0;
}

int lair_return(struct lair_calling *calling, struct lair_text value)
{
	struct giving *giving = giving_new(calling);
	int r;

	if (!giving)
		return -ENOMEM;
	r = json_pack_text(&giving->value, value.data ? value : lair_text("null"));
	if (!r)
		return put(calling, giving);
	giving_free(giving);
	return r;
}

int lair_return_packed(struct lair_calling *calling, struct lair_text value)
{
	struct giving *giving;

	if (value.size == 0 || wire_scan(bytes_from(value), WIRE_DEPTH_MAX, WIRE_OBJECTS_MAX) != value.size)
		return -EINVAL;
	giving = giving_new(calling);
	if (!giving)
		return -ENOMEM;
	if (msgpack_sbuffer_write(&giving->value, value.data, value.size)) {
		giving_free(giving);
		return -ENOMEM;
	}
	return put(calling, giving);
}

/* @error may be NULL, @text not. */
static int put_text(struct lair_calling *calling, const char *error, const char *text)
{
	struct giving *giving = giving_new(calling);
	bool valid = utf8_valid(bytes_of(text)) && utf8_valid(bytes_of(error));

	if (!giving)
		return -ENOMEM;
	giving->hold = !error;
	giving->error = error ? strdup(error) : NULL;
	giving->text = strdup(text);
	if (valid && giving->text && (giving->error || !error))
		return put(calling, giving);
	giving_free(giving);
	return valid ? -ENOMEM : -EINVAL;
}

int lair_raise(struct lair_calling *calling, const char *name, const char *text)
{
	return put_text(calling, name && *name ? name : "FunctionError", text ? text : "");
}

int lair_hold(struct lair_calling *calling, const char *why)
{
	return put_text(calling, NULL, why ? why : "");
}

/* ---- for the handle ---- */

void answer_queue_watch(struct answer_queue *queue, int wake)
{
	if (!queue)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->wake = wake;
	pthread_mutex_unlock(&queue->lock);
}

struct giving *answer_queue_take(struct answer_queue *queue)
{
	struct giving *giving;

	pthread_mutex_lock(&queue->lock);
	giving = queue->first;
	if (giving)
		queue->first = giving->next;
	if (!queue->first)
		queue->last = NULL;
	if (giving)
		giving->next = NULL;
	pthread_mutex_unlock(&queue->lock);
	return giving;
}

void answer_queue_put_back(struct answer_queue *queue, struct giving *giving)
{
	pthread_mutex_lock(&queue->lock);
	giving->next = queue->first;
	queue->first = giving;
	if (!queue->last)
		queue->last = giving;
	pthread_mutex_unlock(&queue->lock);
}

struct answer_queue *answer_queue_close(struct answer_queue *queue)
{
	struct giving *giving;

	while (queue && (giving = answer_queue_take(queue)))
		giving_free(giving);
	if (queue)
		queue_leave(queue);
	return NULL;
}
