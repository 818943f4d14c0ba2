/* The messages of connect that a client sends to envd: however they are cut on their way, they are the same. */
#include "e2b/e2b.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* All messages of @data, which comes in pieces of @step bytes, in an array; and what came after the last. */
static json_t *read_all(const char *data, size_t size, size_t step, int *outcomep)
{
	struct envelope envelope = {0};
	json_t *all = json_array(), *message;
	bool end = false;
	int r = -EAGAIN;

	for (size_t at = 0, n; at < size && r == -EAGAIN; at += n) {
		n = MIN(step, size - at);
		r = envelope_add(&envelope, data + at, n);
		check(r == 0);
		while ((r = envelope_next(&envelope, &message, &end)) == 0) {
			check(json_is_object(message));
			json_array_append_new(all, json_pack("{s:o, s:b}", "message", message, "end", (int)end));
		}
	}
	envelope_deinit(&envelope);
	*outcomep = r;
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int whole_outcome, cut_outcome;
	json_t *whole, *cut;

	if (size == 0)
		return 0;
	whole = read_all((const char *)data + 1, size - 1, SIZE_MAX, &whole_outcome);
	cut = read_all((const char *)data + 1, size - 1, 1 + *data % 16, &cut_outcome);
	check(whole_outcome == cut_outcome);
	check(json_equal(whole, cut));
	json_decref(whole);
	json_decref(cut);
	return 0;
}
