/* `lair serve` in a build without libmicrohttpd, libsodium or zlib: there is none. */
#include "serve.h"

#include <stdio.h>

#if !LAIR_SERVE

int serve_run(const struct serve_options *options)
{
	(void)options;
	fputs("lair serve: this lair was built without libmicrohttpd, libsodium and zlib\n", stderr);
	return -ENOTSUP;
}

#endif
