/* The shipped sessions.conf, as it is in the tree, inside laird: what an unconfigured laird does. */
#include "config.h"

__asm__(".pushsection .rodata\n"
	".global config_embedded_start, config_embedded_end\n"
	"config_embedded_start:\n"
	".incbin \"" SESSIONS_CONF "\"\n"
	"config_embedded_end:\n"
	".byte 0\n"
	".popsection\n");

extern const char config_embedded_start[], config_embedded_end[];

struct bytes config_embedded(void)
{
	return (struct bytes){.data = config_embedded_start,
			      .size = (size_t)(config_embedded_end - config_embedded_start)};
}
