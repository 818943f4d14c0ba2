/* The desk: any thread puts answers to calls here, and the thread of the handle sends them. The desk and its calls
 * live as long as they are used, so a thread may come too late and do no harm. */
#include "calling.h"

/* ---- life ---- */

struct desk *desk_new(void)
{
	struct desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return NULL;
	desk->users = 1;
	desk->wake = -1;
	pthread_mutex_init(&desk->lock, NULL);
	return desk;
}

static void desk_leave(struct desk *desk)
{
	unsigned users;

	pthread_mutex_lock(&desk->lock);
	users = --desk->users;
	pthread_mutex_unlock(&desk->lock);
	if (users > 0)
		return;
	pthread_mutex_destroy(&desk->lock);
	free(desk);
}

struct lair_calling *calling_new(struct desk *desk, const struct call_event *event)
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
	calling->desk = desk;
	pthread_mutex_lock(&desk->lock);
	desk->users++;
	pthread_mutex_unlock(&desk->lock);
	return calling;
}

void calling_use(struct lair_calling *calling)
{
	pthread_mutex_lock(&calling->desk->lock);
	calling->users++;
	pthread_mutex_unlock(&calling->desk->lock);
}

void calling_leave(struct lair_calling *calling)
{
	struct desk *desk = calling->desk;
	unsigned users;

	pthread_mutex_lock(&desk->lock);
	users = --calling->users;
	pthread_mutex_unlock(&desk->lock);
	if (users > 0)
		return;
	free(calling->function);
	free(calling->key);
	free(calling->json);
	free(calling);
	desk_leave(desk);
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

	pthread_mutex_lock(&calling->desk->lock);
	cancelled = calling->cancelled;
	pthread_mutex_unlock(&calling->desk->lock);
	return cancelled;
}

struct lair_calling *lair_calling_free(struct lair_calling *calling)
{
	if (!calling)
		return NULL;
	pthread_mutex_lock(&calling->desk->lock);
	calling->left = true;
	pthread_mutex_unlock(&calling->desk->lock);
	calling_leave(calling);
	return NULL;
}

/* ---- answers ---- */

/* Takes @giving over, and the call from the program unless it is only held. */
static int put(struct lair_calling *calling, struct giving *giving)
{
	bool hold = giving->hold, gone;
	struct desk *desk = calling->desk;
	uint64_t one = 1;

	pthread_mutex_lock(&desk->lock);
	gone = calling->cancelled;
	if (!gone && desk->last)
		desk->last->next = giving;
	else if (!gone)
		desk->first = giving;
	if (!gone)
		desk->last = giving;
	/* It fails only if the counter is full, and then the handle wakes, too. */
	if (!gone && desk->wake >= 0)
		(void)!write(desk->wake, &one, sizeof(one));
	pthread_mutex_unlock(&desk->lock);
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

void desk_watch(struct desk *desk, int wake)
{
	if (!desk)
		return;
	pthread_mutex_lock(&desk->lock);
	desk->wake = wake;
	pthread_mutex_unlock(&desk->lock);
}

struct giving *desk_take(struct desk *desk)
{
	struct giving *giving;

	pthread_mutex_lock(&desk->lock);
	giving = desk->first;
	if (giving)
		desk->first = giving->next;
	if (!desk->first)
		desk->last = NULL;
	if (giving)
		giving->next = NULL;
	pthread_mutex_unlock(&desk->lock);
	return giving;
}

void desk_put_back(struct desk *desk, struct giving *giving)
{
	pthread_mutex_lock(&desk->lock);
	giving->next = desk->first;
	desk->first = giving;
	if (!desk->last)
		desk->last = giving;
	pthread_mutex_unlock(&desk->lock);
}

struct desk *desk_close(struct desk *desk)
{
	struct giving *giving;

	while (desk && (giving = desk_take(desk)))
		giving_free(giving);
	if (desk)
		desk_leave(desk);
	return NULL;
}
