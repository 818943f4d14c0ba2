/* Whatever a session says are the arguments of its call: there is always JSON for it, which can be written, and no
 * header has more memory allocated than there are bytes for. */
#include "audit/arguments.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = arguments_as_json((struct bytes){.data = (const char *)data, .size = size});
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!text)
		abort();
	free(text);
	json_decref(json);
	return 0;
}
