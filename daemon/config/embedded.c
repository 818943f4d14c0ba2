/* The shipped sessions.conf, as it is in the tree, inside laird: what an unconfigured laird does. */
#include "config.h"

__asm__(".pushsection .rodata\n"
	".global config_embedded_text, config_embedded_size\n"
	"config_embedded_text:\n"
	".incbin \"" SESSIONS_CONF "\"\n"
	"config_embedded_end:\n"
	".balign 4\n"
	"config_embedded_size:\n"
	".long config_embedded_end - config_embedded_text\n"
	".popsection\n");

extern const char config_embedded_text[];
extern const uint32_t config_embedded_size;

struct bytes config_embedded(void)
{
	return (struct bytes){.data = config_embedded_text, .size = config_embedded_size};
}
