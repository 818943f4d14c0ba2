/* The scribe. Each line is one write(2) to a file opened to append, so lines never mix and rotation by rename is
 * safe. If a line cannot be written, the scribe tries again until it can; new records wait in the ring. A record
 * is taken out when its line is written, so no line is lost if the scribe dies; the next one may write the last
 * line again.
 *
 * The scribe does not trust the router: it measures sizes, and writes texts as JSON. */
#include "scribe.h"

#include "arguments.h"
#include "base/log.h"
#include "proto/sha256.h"
#include "ring.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* While there is much to write, the router need not wake us for each line. */
#define NAP_MS 20
#define AGAIN_MS 100
/* Whoever is the third to die of a record is the last. */
#define TRIES_MAX 3
/* What a line has of the code of a cell. */
#define CODE_MAX (64 << 10)

struct scribe {
	struct audit_ring ring;
	int file;
	bool torn;	   /* the file does not end with the end of a line */
	bool failing;	   /* said once */
	uint64_t deadline; /* milliseconds; 0: there may be more to write */
};

/* What a line has besides what all have. */
static const struct row {
	const char *event, *number, *texts[AUDIT_TEXTS - 1];
	unsigned numbers; /* which of the texts are numbers, as bits */
} rows[_AUDIT_N] = {
	[AUDIT_OPEN] = {"open", NULL, {"profile", "workspace"}, 0},
	[AUDIT_EXEC] = {"exec", "cell", {"sha256"}, 0},
	[AUDIT_CODE] = {"exec", "cell", {"sha256"}, 0}, /* and the code itself */
	[AUDIT_BLOCKED] = {"blocked", "cell", {"act", "target", "reason"}, 0},
	[AUDIT_CALL] = {"call",
			"cell",
			{"function", "outcome", "seconds", "arguments_size", "answer_size", "by", "arguments"},
			.numbers = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5},
	[AUDIT_END] = {"end", "cells", {"cause"}, 0},
};

/* ---- lines ---- */

static json_t *text_of(struct bytes text)
{
	json_t *json = text.data ? json_stringn(text.data, text.size) : NULL;

	return json ? json : json_null();
}

static json_t *digest_of(struct bytes code)
{
	char digest[SHA256_HEX_SIZE];

	return code.data ? json_string(sha256_hex(digest, code)) : json_null();
}

static json_t *value_of(const struct audit_record *record, size_t i, struct bytes text)
{
	const struct row *row = &rows[record->event];
	char digits[40];

	if (!strcmp(row->texts[i], "arguments"))
		return arguments_as_json(text);
	if (!(row->numbers & 1U << i))
		return text_of(text);
	snprintf(digits, sizeof(digits), "%.*s", (int)MIN(text.size, sizeof(digits) - 1), text.data);
	return strchr(digits, '.') ? json_real(strtod(digits, NULL)) : json_integer(strtoll(digits, NULL, 10));
}

/* How much of @text to write: no character is cut in two. */
static size_t code_size(struct bytes text)
{
	size_t size = MIN(text.size, (size_t)CODE_MAX);

	while (size > 0 && size < text.size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
		size--;
	return size;
}

static void code_add(json_t *object, struct bytes code)
{
	size_t size = code_size(code);

	(void)json_object_set_new(object, "code", text_of((struct bytes){.data = code.data, .size = size}));
	if (size < code.size)
		(void)json_object_set_new(object, "code_cut", json_integer((json_int_t)(code.size - size)));
}

static json_t *object_of(const struct audit_record *record)
{
	bool is_exec = record->event == AUDIT_EXEC || record->event == AUDIT_CODE;
	const struct row *row = &rows[record->event];
	json_t *object = json_pack("{s:f}", "time", record->time);
	const char *at = record->texts;

	for (size_t i = 0; i < AUDIT_TEXTS; i++) {
		bool there = record->sizes[i] != AUDIT_ABSENT;
		struct bytes text = {.data = there ? at : NULL, .size = there ? record->sizes[i] : 0};

		if (i == 0 && there)
			(void)json_object_set_new(object, "session", text_of(text));
		if (i == 0) {
			(void)json_object_set_new(object, "uid", json_integer((json_int_t)record->uid));
			(void)json_object_set_new(object, "event", json_string(row->event));
		}
		if (i == 0 && row->number)
			(void)json_object_set_new(object, row->number, json_integer((json_int_t)record->number));
		if (i > 0 && row->texts[i - 1] && (there || record->event != AUDIT_CALL))
			(void)json_object_set_new(object, row->texts[i - 1],
						  is_exec ? digest_of(text) : value_of(record, i - 1, text));
		if (i == 1 && record->event == AUDIT_CODE)
			code_add(object, text);
		at += text.size;
	}
	return object;
}

/* ---- the file ---- */

/* Wait for a byte or the end of the channel. */
static void wait_for(struct scribe *scribe, int ms)
{
	struct pollfd ready = {.fd = scribe->deadline ? -1 : SCRIBE_CHANNEL_FD, .events = POLLIN};
	char bytes[64];

	if (poll(&ready, 1, ms) == 1 && read(SCRIBE_CHANNEL_FD, bytes, sizeof(bytes)) == 0)
		scribe->deadline = clock_ms() + SCRIBE_LAST_MS;
}

static bool line_try(struct scribe *scribe, const char *line, size_t size)
{
	ssize_t n;

	/* A full disk may have taken half of it. */
	if (scribe->torn && write(scribe->file, "\n", 1) == 1)
		scribe->torn = false;
	if (scribe->torn)
		return false;
	errno = ENOSPC;
	n = write(scribe->file, line, size);
	scribe->torn = n > 0 && n < (ssize_t)size;
	return n == (ssize_t)size;
}

/* False if there is no more time for it. */
static bool line_write(struct scribe *scribe, const char *line, size_t size)
{
	while (!line_try(scribe, line, size)) {
		int error = errno;

		if (!scribe->failing)
			log_error(NULL, "the audit log cannot be written: %s; its lines wait", strerror(error));
		scribe->failing = true;
		if (scribe->deadline && clock_ms() >= scribe->deadline)
			return false;
		wait_for(scribe, AGAIN_MS);
	}
	if (scribe->failing)
		log_warn(NULL, "the audit log is written again");
	scribe->failing = false;
	return true;
}

static void no_memory(void)
{
	log_error(NULL, "no memory for a line of the audit log: the next one tries it again");
}

/* @object is ours. */
static bool object_write(struct scribe *scribe, json_t *object)
{
	_cleanup_(freep) char *line =
		json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16));
	size_t size;

	json_decref(object);
	if (!line) {
		no_memory();
		_exit(EXIT_FAILURE);
	}
	size = strlen(line);
	line[size] = '\n'; /* in the place of its end */
	return line_write(scribe, line, size + 1);
}

/* In the place of so many lines. */
static bool missed_write(struct scribe *scribe, uint64_t lines)
{
	return object_write(scribe, json_pack("{s:f, s:s, s:I}", "time", clock_date(), "event", "missed", "lines",
					      (json_int_t)lines));
}

/* ---- the ring ---- */

static bool missed_tell(struct scribe *scribe, uint64_t missed)
{
	struct audit_page *page = scribe->ring.page;
	uint64_t told = atomic_load(&page->told);

	if (missed <= told)
		return true;
	if (!missed_write(scribe, missed - told))
		return false;
	atomic_store(&page->told, missed);
	return true;
}

static bool record_write(struct scribe *scribe, const struct audit_record *record)
{
	struct audit_page *page = scribe->ring.page;

	if (!missed_tell(scribe, record->missed))
		return false;
	if (atomic_fetch_add(&page->tried, 1) < TRIES_MAX)
		return object_write(scribe, object_of(record));
	atomic_fetch_add(&page->left_out, 1);
	log_error(NULL, "a line of the audit log is left out: its scribe has died of that line %d times",
		  TRIES_MAX);
	return missed_write(scribe, 1);
}

/* If the last lines were missed and no record has come since, they are counted at the end. */
static bool rest_tell(struct scribe *scribe)
{
	struct audit_page *page = scribe->ring.page;
	uint64_t missed = atomic_load(&page->missed);

	return atomic_load(&page->put) != atomic_load(&page->taken) || missed_tell(scribe, missed);
}

/* First sleep for a moment; then sleep until the router has something. The router may have put a record before
 * it knew that we sleep. */
static void sleep_until_woken(struct scribe *scribe, bool *rested)
{
	struct audit_page *page = scribe->ring.page;

	if (!*rested) {
		*rested = true;
		wait_for(scribe, NAP_MS);
		return;
	}
	atomic_store(&page->asleep, 1);
	if (atomic_load(&page->put) == atomic_load(&page->taken))
		wait_for(scribe, -1);
	atomic_store(&page->asleep, 0);
}

/* Write one record, or do what must be done if there is none. Returns whether there is more to do. */
static bool step(struct scribe *scribe, bool *rested)
{
	_cleanup_(freep) struct audit_record *record = NULL;
	int r = audit_ring_next(&scribe->ring, &record);

	if (r == AUDIT_RING_E_EMPTY) {
		if (!rest_tell(scribe) || scribe->deadline)
			return false;
		sleep_until_woken(scribe, rested);
		return true;
	}
	if (r == -EBADMSG) {
		uint64_t lines = audit_ring_give_up(&scribe->ring);

		atomic_fetch_add(&scribe->ring.page->left_out, lines);
		log_error(NULL,
			  "the lines that wait for the audit log make no sense: the log misses %" PRIu64 " of them",
			  lines);
		return missed_write(scribe, lines);
	}
	if (r) {
		no_memory();
		_exit(EXIT_FAILURE);
	}
	if (!record_write(scribe, record))
		return false;
	audit_ring_take(&scribe->ring, record);
	*rested = false;
	return true;
}

/* ---- the file is opened ---- */

/* Somebody else may hold it for a while (a lease): then wait for that. A FIFO is not waited for. */
static int file_open(int *fdp, struct stat *status, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC;
	_cleanup_(fd_closep) int fd = open(path, flags | O_NONBLOCK, 0600);

	if (fd < 0 && errno == EWOULDBLOCK)
		fd = open(path, flags, 0600);
	if (fd < 0 || fstat(fd, status) < 0)
		return -errno;
	if (!S_ISREG(status->st_mode))
		return -EINVAL;
	*fdp = steal_fd(&fd);
	return 0;
}

/* Returns 0 or -errno. */
static int file_try(struct scribe *scribe)
{
	struct audit_page *page = scribe->ring.page;
	char path[PATH_SIZE];
	struct stat status = {0};
	int r;

	(void)snprintf(path, sizeof(path), "%.*s", PATH_SIZE - 1, page->path);
	(void)alarm(SCRIBE_OPEN_MS / 1000);
	r = file_open(&scribe->file, &status, path);
	(void)alarm(0);
	if (r)
		return r;
	if (page->inode && (page->device != status.st_dev || page->inode != status.st_ino))
		log_warn(NULL, "the audit log is another file than before: %s has been renamed or replaced", path);
	page->device = status.st_dev;
	page->inode = status.st_ino;
	return 0;
}

/* For a router that waits to hear of it; if it does not any more, there is nothing to write. Returns whether the
 * file is open. */
static bool file_open_first(struct scribe *scribe)
{
	struct pollfd gone = {.fd = SCRIBE_CHANNEL_FD, .events = 0};
	struct scribe_report report;

	if (poll(&gone, 1, 0) == 1)
		return false;
	report.error = file_try(scribe);
	(void)send(SCRIBE_CHANNEL_FD, &report, sizeof(report), MSG_NOSIGNAL);
	return report.error == 0;
}

/* Another scribe has had it open, and there may be lines for it. False if there is no more time. */
static bool file_open_again(struct scribe *scribe)
{
	int r;

	while ((r = file_try(scribe))) {
		if (!scribe->failing)
			log_error(NULL, "the audit log cannot be opened: %s; its lines wait", strerror(-r));
		scribe->failing = true;
		if (scribe->deadline && clock_ms() >= scribe->deadline)
			return false;
		wait_for(scribe, AGAIN_MS);
	}
	return true;
}

/* ---- the process ---- */

/* Whoever was before us may have been killed in the middle of a line. */
static bool ends_in_a_line(int file)
{
	char path[32], last = '\n';
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 || fstat(fd, &status) < 0 || status.st_size == 0 ||
	       pread(fd, &last, 1, status.st_size - 1) != 1 || last == '\n';
}

/* From now on it opens nothing more, and ends when it has written everything, whatever it is told. */
static void confine(void)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ};
	const struct landlock_ruleset_attr all = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
	_cleanup_(fd_closep) int ruleset = -1;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)prctl(PR_SET_NAME, "laird");
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (ruleset >= 0)
		(void)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

int scribe_run(void)
{
	struct scribe scribe = {.ring = AUDIT_RING_NONE, .file = -1};
	bool rested = false, opened;
	int r = audit_ring_open(&scribe.ring, SCRIBE_RING_FD);
	uint64_t left;

	if (r) {
		log_error(NULL, "cannot read the lines that wait for the audit log: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	opened = scribe.ring.page->inode ? file_open_again(&scribe) : file_open_first(&scribe);
	if (opened) {
		scribe.torn = !ends_in_a_line(scribe.file);
		confine();
		while (step(&scribe, &rested))
			;
	}
	left = audit_ring_left(SCRIBE_RING_FD);
	if (left > 0)
		log_error(NULL, "the audit log misses its last %" PRIu64 " lines", left);
	_exit(EXIT_SUCCESS);
}
