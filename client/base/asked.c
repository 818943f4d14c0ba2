/* A directory is named by its real path, as the daemon wants it. */
#include "base/asked.h"

#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int asked_add(struct asked_settings *asked, const char *name, const char *value)
{
	if (asked->n == ASKED_MAX)
		return -E2BIG;
	if (asprintf(&asked->items[asked->n], "%s=%s", name, value) < 0) {
		asked->items[asked->n] = NULL;
		return -ENOMEM;
	}
	asked->n++;
	return 0;
}

int asked_add_directory(struct asked_settings *asked, const char *directory)
{
	const char *colon = strrchr(directory, ':');
	bool writes = colon && strcmp(colon, ":rw") == 0, plain = !writes && !(colon && strcmp(colon, ":ro") == 0);
	_cleanup_(freep) char *path = strndup(directory, plain ? strlen(directory) : (size_t)(colon - directory));
	char real[PATH_MAX];

	if (!path)
		return -ENOMEM;
	return realpath(path, real) ? asked_add(asked, writes ? "write" : "read", real) : -errno;
}

static bool is_within(const char *inner, const char *outer)
{
	size_t size = strlen(outer);

	return strncmp(inner, outer, size) == 0 && (inner[size] == '/' || !inner[size]);
}

static const char *const secrets[] = {".ssh",	 ".gnupg",	    ".aws", ".azure", ".kube",
				      ".docker", ".password-store", ".pki"};

static bool is_secret(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		for (const char *at = path; (at = strstr(at, secrets[i])); at++)
			if (at > path && at[-1] == '/' && strchr("/", at[strlen(secrets[i])]))
				return true;
	return false;
}

static bool has_secrets(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		if (fstatat(fd, secrets[i], &status, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

static const char *why_not(const char *path)
{
	const char *home = getenv("HOME");
	char real[PATH_MAX];

	if (home && realpath(home, real) && is_within(real, path))
		return "it is a home directory, or holds one";
	if (is_secret(path) || has_secrets(path))
		return "it has secrets, by its name or that of something in it";
	return NULL;
}

int asked_add_here(struct asked_settings *asked)
{
	if (!getcwd(asked->here, sizeof(asked->here)))
		asked->not_here = "it is not there any more";
	else if (asked->here[1])
		asked->not_here = why_not(asked->here);
	if (!asked->not_here && asked->here[1])
		return asked_add(asked, "?read", asked->here);
	asked->here[0] = '\0';
	return 0;
}

bool asked_left_out(const struct asked_settings *asked, const struct lair_session *session, char *text, size_t size)
{
	if (asked->not_here ? session->directory.data != NULL
			    : !*asked->here || text_is(session->directory, asked->here))
		return false;
	if (asked->not_here)
		snprintf(text, size, "this directory is not shown in the session: %s; --dir DIR shows one",
			 asked->not_here);
	else if (session->opened)
		snprintf(text, size, "%s is not shown in the session; --dir . says why", asked->here);
	else
		snprintf(text, size, "%s is not shown in the session, which was opened elsewhere", asked->here);
	return true;
}

void asked_deinit(struct asked_settings *asked)
{
	while (asked->n > 0)
		free(asked->items[--asked->n]);
}
