/* Settings of any bytes: either refused with a message, or understood, printed, and understood the same again. */
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const struct config *config, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out)
		abort();
	config_print(config, out);
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes text = {.data = (const char *)data, .size = size};
	struct config *config = NULL, *again = NULL;
	struct config_error error = {.text = ""};
	char *first, *second;

	if (config_parse(&config, text, "fuzz.conf", &error) != 0) {
		if (config || !*error.text)
			abort();
		return 0;
	}
	first = print(config, &size);
	if (config_parse(&again, (struct bytes){.data = first, .size = size}, "again.conf", &error) != 0)
		abort();
	second = print(again, &size);
	if (strcmp(first, second) != 0)
		abort();
	free(first);
	free(second);
	config_free(config);
	config_free(again);
	return 0;
}
