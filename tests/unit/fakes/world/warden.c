/* The warden of the simulated world: it takes orders one after the other, and tells of deaths late. */
#include "world.h"

#include <signal.h>

static void news_add(enum news_kind kind, uint64_t serial)
{
	if (world.n_news == ARRAY_SIZE(world.news))
		abort();
	world.news[world.n_news++] = (struct news){.kind = kind, .serial = serial};
}

void process_report(uint64_t serial)
{
	struct process *process = process_of(serial);

	if (!process->dead || !process->known || process->reported)
		return;
	process->reported = true;
	news_add(NEWS_EXITED, serial);
}

void orders_take(void)
{
	for (size_t i = 0; i < fake_n_orders; i++) {
		const struct order *order = &fake_orders[i];
		struct process *process;

		if (order->kind == ORDER_KILL) {
			world.warden_killed = true;
		} else if (order->kind == ORDER_FREEZE || order->kind == ORDER_THAW || order->kind == ORDER_SEND) {
			process = process_of(order->kind == ORDER_SEND ? order->serial : order->source);
			if (!process->dead && process->n_in < QUEUE_MAX)
				process->inbox[process->n_in++] = *order;
		} else if (world.n_orders < ARRAY_SIZE(world.orders)) {
			world.orders[world.n_orders++] = *order;
		}
	}
	fake_n_orders = 0;
}

bool step_warden_takes(void)
{
	struct order order;

	if (world.n_orders == 0)
		return false;
	order = world.orders[0];
	memmove(world.orders, world.orders + 1, --world.n_orders * sizeof(*world.orders));
	show("  the warden takes: %s %llu\n", fake_order_names[order.kind], (unsigned long long)order.serial);
	switch (order.kind) {
	case ORDER_SPAWN:
		if (!world.quiet && world.scarcity && chance(20) == 0) {
			news_add(NEWS_FAILED, order.serial);
			break;
		}
		process_born(order.serial, 0, false);
		process_of(order.serial)->known = true;
		break;
	case ORDER_ADOPT:
		process_of(order.serial)->known = true;
		process_report(order.serial);
		break;
	case ORDER_SIGNAL:
		if (order.number == SIGKILL)
			process_dies(order.serial, SIGKILL);
		else
			process_of(order.serial)->interrupted = true;
		news_add(NEWS_SIGNALLED, order.serial);
		break;
	case ORDER_DISCARD:
		process_of(order.serial)->reported = true;
		process_dies(order.serial, SIGKILL);
		break;
	case ORDER_SWEEP:
		news_add(NEWS_SWEPT, 0);
		break;
	case ORDER_FREEZE:
	case ORDER_THAW:
	case ORDER_KILL:
	case ORDER_SEND:
	case _ORDER_N:
		abort();
	}
	return true;
}

static bool has_last_words(uint64_t serial)
{
	const struct interpreter *interpreter = fake_interpreter(world.warden, serial);

	return interpreter && fake_listens(interpreter) && process_of(serial)->n_out > 0;
}

bool step_warden_tells(void)
{
	struct news one;

	if (world.n_news == 0)
		return false;
	/* One that is being killed is not heard any more. */
	if (world.warden->state == WARDEN_DYING) {
		world.n_news = 0;
		return false;
	}
	one = world.news[0];
	show("  the warden tells: %d %llu\n", (int)one.kind, (unsigned long long)one.serial);
	if (one.kind == NEWS_EXITED &&
	    fake_exited(world.warden, one.serial, process_of(one.serial)->status, has_last_words(one.serial)))
		return true;
	memmove(world.news, world.news + 1, --world.n_news * sizeof(*world.news));
	if (one.kind == NEWS_SIGNALLED)
		fake_signalled(world.warden, one.serial);
	else if (one.kind == NEWS_SWEPT)
		fake_swept(world.warden);
	else if (one.kind == NEWS_FAILED)
		fake_failed(world.warden, one.serial);
	return true;
}
