/* Loads libcurl, whichever library for TLS it was built with. */
#include "curl.h"

#include "proto/base.h"

#include <dlfcn.h>

static bool symbols_take(struct curl *curl, void *library)
{
#define CURL_TAKE(name)                                                                                            \
	*(void **)&curl->name = dlsym(library, "curl_" #name);                                                     \
	if (!curl->name)                                                                                           \
		return false;
	CURL_FUNCTIONS(CURL_TAKE)
#undef CURL_TAKE
	return true;
}

const struct curl *curl_loaded(void)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	static struct curl curl;
	static bool loaded;

	for (size_t i = 0; !loaded && i < ARRAY_SIZE(names); i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

		loaded = library && symbols_take(&curl, library) &&
			 curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
	}
	return loaded ? &curl : NULL;
}
