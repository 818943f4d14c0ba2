/* Displays are kept encoded, as in the reply. Numbers count all displays of a cell, so a client that has seen
 * some can name the first it has not. */
#include "displays.h"

struct display {
	struct list node;
	char *id; /* display_id, or NULL */
	msgpack_sbuffer map;
};

void displays_init(struct displays *displays)
{
	*displays = (struct displays){.total = 0};
	list_init(&displays->list);
}

static void display_free(struct display *display)
{
	list_remove(&display->node);
	msgpack_sbuffer_destroy(&display->map);
	free(display->id);
	free(display);
}

static void display_remove(struct displays *displays, struct display *display)
{
	displays->n--;
	displays->size -= display->map.size;
	user_give_back(displays->user, 2 * display->map.size);
	display_free(display);
}

static void displays_clear(struct displays *displays)
{
	struct display *display;

	list_for_each (display, &displays->list, node)
		display_remove(displays, display);
}

void displays_deinit(struct displays *displays)
{
	displays_clear(displays);
}

static struct display *display_find(struct displays *displays, struct bytes id)
{
	struct display *display;

	list_for_each (display, &displays->list, node)
		if (display->id && bytes_is(id, display->id))
			return display;
	return NULL;
}

static struct display *display_new(const struct shown *shown)
{
	struct display *display = calloc(1, sizeof(*display));

	if (!display)
		return NULL;
	list_init(&display->node);
	msgpack_sbuffer_init(&display->map);
	if (shown->display_id.data)
		display->id = strndup(shown->display_id.data, shown->display_id.size);
	if ((!shown->display_id.data || display->id) && !wire_encode_body(&display->map, &shown_schema, shown))
		return display;
	display_free(display);
	return NULL;
}

static bool is_empty(const struct shown *shown)
{
	struct bytes key, value;
	size_t cursor = 0;

	return !wire_next_pair(shown->data, &cursor, &key, &value);
}

/* NULL if there is no room for it. */
static struct display *display_fit(struct displays *displays, const struct shown *shown)
{
	struct display *display;

	if (displays->n == DISPLAYS_MAX || displays->size + shown->data.size > DISPLAYS_SIZE_MAX)
		return NULL;
	display = display_new(shown);
	if (!display)
		return NULL;
	if (displays->size + display->map.size <= DISPLAYS_SIZE_MAX &&
	    user_take(displays->user, 2 * display->map.size))
		return display;
	display_free(display);
	return NULL;
}

bool displays_add(struct displays *displays, struct shown *shown)
{
	struct display *display, *before = NULL;
	struct list *next = &displays->list; /* what it comes before */

	shown->at = displays->total++;
	if (shown->clear)
		displays_clear(displays);
	if (shown->clear && is_empty(shown))
		return true;
	if (shown->update)
		before = display_find(displays, shown->display_id);
	if (before) {
		next = before->node.next;
		display_remove(displays, before);
	}
	display = display_fit(displays, shown);
	if (!display) {
		displays->dropped++;
		return before || shown->clear;
	}
	displays->n++;
	displays->size += display->map.size;
	list_append(next, &display->node);
	return true;
}

void displays_give_up(struct displays *displays)
{
	displays->dropped += displays->n;
	displays_clear(displays);
}

int displays_join(const struct displays *displays, msgpack_sbuffer *buffer)
{
	struct display *display;
	int r = displays->n > 0 ? wire_put_array(buffer, displays->n) : 0;

	list_for_each (display, (struct list *)&displays->list, node)
		if (!r && msgpack_sbuffer_write(buffer, display->map.data, display->map.size) < 0)
			r = -ENOMEM;
	return r;
}

bool displays_next(struct bytes array, size_t *cursor, struct shown *shown)
{
	struct wire_fault fault;
	struct bytes item;

	return wire_next(array, cursor, &item) && !wire_decode(shown, &shown_schema, item, &fault);
}
