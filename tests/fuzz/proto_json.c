/* Any value: there is always text for it, in UTF-8 and no longer than it may be. */
#include "proto/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct bytes raw, size_t max)
{
	bool cut = false;
	_cleanup_(freep) char *text = json_written(raw, max, &cut);

	if (!text || strlen(text) > max || (!cut && !utf8_valid(bytes_of(text))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes raw = {.data = (const char *)data, .size = size};

	if (size == 0 || wire_scan(raw, WIRE_DEPTH_MAX, size) != size)
		return 0;
	check(raw, SIZE_MAX);
	check(raw, 10);
	return 0;
}
