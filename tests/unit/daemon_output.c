/* Head and tail: compared with what keeping everything would have given. */
#include "check.h"

#include "output.h"

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
	CHECK(output_join(&output, &joined) == 0);
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
	return check_report();
}
