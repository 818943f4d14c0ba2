/* Head and tail: compared with what keeping everything would have given. */
#include "check.h"

#include "promise/output.h"

#include <sys/resource.h>

static char everything[1 << 20];

static void compare(size_t limit, size_t total, size_t piece)
{
	size_t head = limit - limit / 2, tail = limit / 2;
	struct output output;
	struct bytes joined;
	char note[80] = "";

	output_init(&output, limit);
	for (size_t at = 0; at < total; at += piece)
		output_add(&output, (struct bytes){.data = everything + at, .size = MIN(piece, total - at)});
	CHECK(output.total == total);
	CHECK(output_dropped(&output) == (total > limit ? total - limit : 0));
	CHECK(output.head_allocated + output.tail_allocated <= limit + 512);
	if (total > limit)
		snprintf(note, sizeof(note), "\n[... %zu bytes left out ...]\n", total - limit);
	joined = output_join(&output);
	if (total <= limit) {
		CHECK(joined.size == total && !memcmp(joined.data, everything, total));
	} else {
		size_t n = strlen(note);

		CHECK(joined.size == limit + n);
		CHECK(!memcmp(joined.data, everything, head));
		CHECK(!memcmp(joined.data + head, note, n));
		CHECK(!memcmp(joined.data + head + n, everything + total - tail, tail));
	}
	output_deinit(&output);
}

static bool parts_are(const struct bulk_bin *bin, struct bytes whole)
{
	size_t at = 0;

	for (size_t i = 0; i < BULK_PIECES && at <= whole.size; i++) {
		if (memcmp(whole.data + at, bin->pieces[i].data ? bin->pieces[i].data : "", bin->pieces[i].size) !=
		    0)
			return false;
		at += bin->pieces[i].size;
	}
	return at == whole.size && bin->size == whole.size;
}

/* What is given away uncopied is what would have been joined, also after another router has read it. */
static void give(size_t limit, size_t total)
{
	struct piece were[PIECES_MAX], are[PIECES_MAX];
	struct bulk *bulk = bulk_new(), *later = bulk_new();
	struct output joined, given;
	struct bytes whole;
	uint64_t dropped;
	size_t n;

	output_init(&joined, limit);
	output_init(&given, limit);
	for (size_t at = 0; at < total; at += 7000) {
		const struct bytes data = {.data = everything + at, .size = MIN((size_t)7000, total - at)};

		output_add(&joined, data);
		output_add(&given, data);
	}
	dropped = output_dropped(&given);
	n = output_pieces(&joined, were);
	whole = output_join(&joined);
	CHECK(output_is_long(&given));
	output_give(&given, &bulk->bins[0]);
	CHECK(parts_are(&bulk->bins[0], whole) && !given.head && !given.tail);
	CHECK(output_given(are, &bulk->bins[0], dropped) >= n);
	for (size_t i = 0; i < n; i++)
		CHECK(are[i].at == were[i].at && are[i].data.size == were[i].data.size);
	CHECK(output_bring_back(&later->bins[0], whole, are[0].data.size, dropped) == 0);
	CHECK(parts_are(&later->bins[0], whole) && later->bins[0].pieces[1].size == bulk->bins[0].pieces[1].size);
	CHECK(output_given(are, &later->bins[0], dropped) > 0 && are[1].at == are[0].data.size + dropped);
	bulk_unref(bulk);
	bulk_unref(later);
	output_deinit(&joined);
	output_deinit(&given);
}

/* Without memory to join them, the tail is dropped, and the head ends with the line that says so. */
static inline void without_memory(size_t limit, size_t total)
{
	struct rlimit before, none = {.rlim_cur = 0};
	struct output output;
	struct bytes joined;
	char note[80];
	size_t n;

	output_init(&output, limit);
	output_add(&output, (struct bytes){.data = everything, .size = total});
	getrlimit(RLIMIT_AS, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_AS, &none);
	joined = output_join(&output);
	setrlimit(RLIMIT_AS, &before);
	CHECK(output.tail_size == 0 && output_dropped(&output) == total - output.head_size);
	CHECK(output.head_size > limit / 2 - 100 && output.head_size <= limit / 2);
	n = (size_t)snprintf(note, sizeof(note), "\n[... %zu bytes left out ...]\n", total - output.head_size);
	CHECK(joined.size == output.head_size + n && !memcmp(joined.data, everything, output.head_size));
	CHECK(!memcmp(joined.data + output.head_size, note, n));
	output_give_up(&output);
	CHECK(output_dropped(&output) == total);
	output_deinit(&output);
}

/* The limit grows as far as the user has room, and then head and tail stay where they are. */
static void test_paid(void)
{
	struct users users;
	struct output first, second;
	struct user *user;

	users_init(&users);
	user = user_get(&users, 7);
	users.share = 600 << 10;
	output_init(&first, 256 << 10);
	output_init(&second, 256 << 10);
	output_paid_by(&first, user);
	output_paid_by(&second, user);
	CHECK(user->at_work == 0 && first.limit == OUTPUT_FREE);
	output_add(&first, (struct bytes){.data = everything, .size = 1000 << 10});
	CHECK(first.limit == 256 << 10 && output_dropped(&first) == 744 << 10);
	CHECK(user->at_work == 2 * ((256 << 10) - OUTPUT_FREE));
	for (int i = 0; i < 1000; i++)
		output_add(&second, (struct bytes){.data = everything, .size = 1 << 10});
	CHECK(second.limit == 64 << 10 && second.most == second.limit && second.known == 256 << 10);
	CHECK(output_dropped(&second) == 936 << 10 && user->at_work <= users.share);
	output_deinit(&first);
	output_deinit(&second);
	CHECK(user->at_work == 0);
	users_deinit(&users);
}

int main(void)
{
	static const size_t limits[] = {0, 1, 2, 7, 100, 4096, 100000};
	static const size_t totals[] = {0, 1, 2, 6, 7, 8, 99, 100, 101, 5000, 300000};
	static const size_t pieces[] = {1, 3, 64, 1000, 65536};

	for (size_t i = 0; i < sizeof(everything); i++)
		everything[i] = (char)rand();
	for (size_t l = 0; l < ARRAY_SIZE(limits); l++)
		for (size_t t = 0; t < ARRAY_SIZE(totals); t++)
			for (size_t p = 0; p < ARRAY_SIZE(pieces); p++)
				compare(limits[l], totals[t], pieces[p]);
#ifndef __SANITIZE_ADDRESS__ /* which ends the process where there is no memory */
	without_memory(1 << 19, 1 << 19);
	without_memory(1 << 19, 1 << 20);
	without_memory((1 << 19) - 2, 1 << 20);
#endif
	give(1 << 18, 1 << 17);
	give(1 << 18, (1 << 17) + 5000);
	give(1 << 18, 1 << 18);
	give(1 << 18, (1 << 19) + 12345);
	test_paid();
	return check_report();
}
