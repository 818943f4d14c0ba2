#include "fakes/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char fake_log_last[512];
unsigned fake_log_violations;

void log_write(enum log_level level, const char *session, const char *format, ...)
{
	static int shown = -1;
	va_list args;

	(void)level;
	if (shown < 0)
		shown = getenv("LAIR_TEST_LOG") != NULL;
	va_start(args, format);
	vsnprintf(fake_log_last, sizeof(fake_log_last), format, args);
	va_end(args);
	fake_log_violations += strncmp(fake_log_last, "violation: ", strlen("violation: ")) == 0;
	if (shown)
		fprintf(stderr, "[%s] %s\n", session ? session : "", fake_log_last);
}

int log_open(const char *path)
{
	(void)path;
	return 0;
}
