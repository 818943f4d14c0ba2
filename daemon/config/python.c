/* The version of a Python is found without running it: an environment says what it was made with, and the program
 * of an interpreter has it in its name. */
#include "python.h"

#include "keeper/program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void python_environment(char path[static PATH_MAX], const char *python)
{
	char config[PATH_MAX + 16], *slash;

	snprintf(path, PATH_MAX, "%s", python);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(config, sizeof(config), "%s/pyvenv.cfg", path);
		if (access(config, F_OK) == 0)
			return;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	*path = '\0';
}

int python_program(char path[static PATH_MAX], const char *python)
{
	char program[PATH_MAX + 16];
	struct stat status;

	if (stat(python, &status) < 0)
		return -errno;
	snprintf(program, sizeof(program), S_ISDIR(status.st_mode) ? "%s/bin/python" : "%s", python);
	return realpath(program, path) ? 0 : -errno;
}

/* "3.12", and perhaps more after that. */
static unsigned version_of(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor;

	if (end == text || *end != '.' || !isdigit((unsigned char)end[1]))
		return 0;
	minor = strtoul(end + 1, NULL, 10);
	return major > 0 && major < 256 && minor < 256 ? PYTHON_NUMBER(major, minor) : 0;
}

/* The standard library writes `version`, virtualenv and uv write `version_info`. */
static unsigned version_in(const char *environment)
{
	char path[PATH_MAX + 16], line[512];
	unsigned version = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/pyvenv.cfg", environment);
	file = fopen(path, "re");
	for (unsigned i = 0; file && !version && i < 32 && fgets(line, sizeof(line), file); i++) {
		const char *equals = strchr(line, '=');

		if (equals && strncmp(line, "version", strlen("version")) == 0)
			version = version_of(equals + 1 + strspn(equals + 1, " "));
	}
	if (file)
		(void)fclose(file);
	return version;
}

unsigned python_version(const char *python)
{
	char path[PATH_MAX], *name;
	unsigned version = 0;

	if (!python)
		return 0;
	python_environment(path, python);
	if (*path)
		version = version_in(path);
	if (version || python_program(path, python))
		return version;
	name = strrchr(path, '/') + 1;
	return strncmp(name, "python", strlen("python")) == 0 ? version_of(name + strlen("python")) : 0;
}
