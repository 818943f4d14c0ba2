/* The log: one event, one line, whatever it is made of. */
#include "base/log.h"

#include "check.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

static char path[] = "/tmp/lair-log-XXXXXX";

/* What the log has got since the last call, less the time each line begins with. */
static const char *logged(void)
{
	static char text[16384];
	static off_t at;
	char raw[sizeof(text)];
	char *out = text;
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY);
	ssize_t n = pread(fd, raw, sizeof(raw) - 1, at);

	at += n;
	raw[n] = '\0';
	for (char *line = raw, *end; (end = strchr(line, '\n')); line = end + 1) {
		CHECK(end - line > 25 && isdigit((unsigned char)*line) && line[10] == 'T' && line[23] == 'Z');
		out = mempcpy(out, line + 25, (size_t)(end + 1 - line - 25));
	}
	*out = '\0';
	return text;
}

static bool wrote(const char *expected)
{
	const char *text = logged();

	if (strcmp(text, expected) != 0)
		fprintf(stdout, "logged: %s", text);
	return strcmp(text, expected) == 0;
}

int main(void)
{
	int keep = dup(STDERR_FILENO), fd = mkstemp(path);
	char text[8192], link[64];
	struct stat st;

	fd_close(fd);
	unlink(path);
	CHECK(log_open(path) == 0);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);

	log_info(NULL, "one %d", 1);
	CHECK(wrote("info  one 1\n"));
	log_warn("s-1", "two");
	log_error("s]", "three");
	CHECK(wrote("warn  [s-1] two\nerror [s]] three\n"));

	log_info(NULL, "a\nb\t\x1b[1m\x7f\r%s", "\xc3\xa4 \xe2\x82\xac");
	CHECK(wrote("info  a\\x0ab\\x09\\x1b[1m\\x7f\\x0d\xc3\xa4 \xe2\x82\xac\n"));
	log_info(NULL, "\xc2\x9b"
		       "2J\xc2\xa7");
	CHECK(wrote("info  \\xc2\\x9b2J\xc2\xa7\n"));
	log_info(NULL, "\xff\xc3\xa4");
	CHECK(wrote("info  \\xff\\xc3\\xa4\n"));

	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	errno = EPERM;
	log_info(text, "%s", text);
	CHECK(errno == EPERM);
	CHECK(strlen(logged()) > 4 * 2000);

	/* Appended to what is there, and only to a file. */
	CHECK(log_open(path) == 0);
	log_info(NULL, "again");
	CHECK(wrote("info  again\n"));
	CHECK(log_open("/dev/null") == -EINVAL && log_open("/none/such") == -ENOENT);
	snprintf(link, sizeof(link), "%s.d", path);
	CHECK(mkfifo(link, 0600) == 0 && log_open(link) < 0);
	unlink(link);
	unlink(path);
	if (dup2(keep, STDERR_FILENO) < 0)
		return EXIT_FAILURE;
	return check_report();
}
