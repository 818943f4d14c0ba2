/* Copies into a session and out of it. One file is as many requests as it has pieces; a directory is a walk over
 * its content. Names that come out of a session are hostile: none may leave its target directory, and none
 * reaches a terminal unchanged. Only files and directories are copied; anything else is named and left out. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"

#include "proto/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#define DEPTH_MAX 64
#define ENTRIES_MAX 100000
#define LEFT_OUT (-1) /* returned in the place of an exit status */

/* A copy under way. Paths are relative to both @from and @to; "" is @from and @to themselves. */
struct copy {
	struct cli *cli;
	const char *from;
	char to[PATH_MAX];
	int (*directory)(struct copy *copy, const char *path);
	int (*file)(struct copy *copy, const char *path);
	int (*walk)(struct copy *copy, const char *path, unsigned depth); /* copies the content of that directory */
	bool host;							  /* @from is a path of the daemon's host */
	uint64_t n_files, n_skipped, n_entries, bytes;
	double shown;
	bool drawn;
};

/* ---- paths and progress ---- */

/* Returns 0 or an exit status. */
static int join(const struct cli *cli, char out[PATH_MAX], const char *a, const char *b)
{
	const char *slash = *a && *b && a[strlen(a) - 1] != '/' ? "/" : "";

	if (snprintf(out, PATH_MAX, "%s%s%s", a, slash, b) < PATH_MAX)
		return 0;
	return cli_fail(cli, "bad_request", "a path below %s is too long", a);
}

/* Where @path is copied from, and where to. */
static int ends(const struct copy *copy, const char *path, char from[PATH_MAX], char to[PATH_MAX])
{
	int r = join(copy->cli, from, copy->from, path);

	return r ? r : join(copy->cli, to, copy->to, path);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Chooses the target of a file or directory @path: @given; or its own name inside @given, if that ends as a
 * directory; or its own name, if @given is NULL. */
static int destination(struct copy *copy, const char *path, const char *given)
{
	char clean[PATH_MAX];
	size_t size = strlen(path);

	while (size > 1 && path[size - 1] == '/')
		size--;
	snprintf(clean, sizeof(clean), "%.*s", (int)MIN(size, sizeof(clean) - 1), path);
	if (!given)
		given = "./";
	if (*given && given[strlen(given) - 1] != '/')
		return join(copy->cli, copy->to, given, "");
	return join(copy->cli, copy->to, given, last_name(clean));
}

/* Only on a terminal, and only once the copy has taken a while. */
static void progress(struct copy *copy, const char *path, uint64_t done, uint64_t size)
{
	char name[64], sizes[2][HUMAN_SIZE];

	if (copy->cli->json || !isatty(STDERR_FILENO) || clock_seconds() - copy->shown < 0.3)
		return;
	copy->shown = clock_seconds();
	copy->drawn = true;
	text_tamed(name, sizeof(name), lair_text(*path ? path : last_name(copy->from)));
	fprintf(stderr, "\r\033[K%s: %s of %s", name, human_bytes(sizes[0], done), human_bytes(sizes[1], size));
}

static void progress_end(struct copy *copy)
{
	if (copy->drawn)
		fputs("\r\033[K", stderr);
	copy->drawn = false;
}

static void skip(struct copy *copy, const char *path, const char *why)
{
	char name[256];

	progress_end(copy);
	copy->n_skipped++;
	cli_notice("%s is left out: %s", text_tamed(name, sizeof(name), lair_text(path)), why);
}

static int copy_end(struct copy *copy, int status)
{
	char size[HUMAN_SIZE];

	progress_end(copy);
	if (status)
		return status;
	if (copy->cli->json)
		return json_print(json_pack("{s:s, s:I, s:I, s:I}", "session", copy->cli->args[0], "files",
					    (json_int_t)copy->n_files, "bytes", (json_int_t)copy->bytes, "skipped",
					    (json_int_t)copy->n_skipped));
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "%" PRIu64 " file%s, %s\n", copy->n_files, copy->n_files == 1 ? "" : "s",
			human_bytes(size, copy->bytes));
	return 0;
}

/* ---- walking ---- */

static int copy_entry(struct copy *copy, const char *path, const char *name, const char *kind, unsigned depth)
{
	char below[PATH_MAX];
	int r;

	if (strlen(path) + strlen(name) + MAX(strlen(copy->from), strlen(copy->to)) + 3 > PATH_MAX) {
		skip(copy, path, "paths in it are too long");
		return 0;
	}
	r = join(copy->cli, below, path, name);
	if (r)
		return r;
	if (!strcmp(kind, "file"))
		return copy->file(copy, below);
	if (strcmp(kind, "directory")) {
		skip(copy, below, "only files and directories are copied");
		return 0;
	}
	r = copy->directory(copy, below);
	return r ? r : copy->walk(copy, below, depth + 1);
}

static int copy_run(struct copy *copy, bool directory)
{
	int r = directory ? copy->directory(copy, "") : copy->file(copy, "");

	return copy_end(copy, r || !directory ? r : copy->walk(copy, "", 0));
}

static int too_deep(const struct copy *copy)
{
	return cli_fail(copy->cli, "limit", "%s is deeper than %d directories", copy->from, DEPTH_MAX);
}

/* ---- the content of a directory of the session, or of the daemon's host ---- */

/* Whether @name is a plain name, and no path. */
static bool name_of(char out[NAME_MAX + 1], struct lair_text name)
{
	if (name.size == 0 || name.size > NAME_MAX || memchr(name.data, '/', name.size) ||
	    memchr(name.data, '\0', name.size))
		return false;
	memcpy(out, name.data, name.size);
	out[name.size] = '\0';
	return strcmp(out, ".") != 0 && strcmp(out, "..") != 0;
}

static int remote_part(struct copy *copy, const char *path, struct lair_items files, unsigned depth)
{
	char name[NAME_MAX + 1], kind[32];
	struct lair_file file;
	size_t cursor = 0;
	int r = 0;

	while (!r && lair_next_file(files, &cursor, &file)) {
		if (!name_of(name, file.name))
			continue;
		if (++copy->n_entries > ENTRIES_MAX)
			return cli_fail(copy->cli, "limit", "there are more than %d files", ENTRIES_MAX);
		r = copy_entry(copy, path, name, text_tamed(kind, sizeof(kind), file.kind), depth);
	}
	return r;
}

/* If one thing in a tree cannot be copied, the others must be copied nevertheless, or a session could prevent that.
 * Returns LEFT_OUT, or an exit status. */
static int remote_refused(struct copy *copy, const char *path, int error)
{
	if (!*path || (error != LAIR_E_DENIED && error != LAIR_E_TOO_LARGE && error != LAIR_E_NO_FILE &&
		       error != LAIR_E_BAD_REQUEST && error != LAIR_E_GONE))
		return cli_trouble(copy->cli, error);
	progress_end(copy);
	copy->n_skipped++;
	cli_notice("left out: %s", lair_error(copy->cli->lair));
	return LEFT_OUT;
}

static int remote_walk(struct copy *copy, const char *path, unsigned depth)
{
	struct lair_files_of files = {.session = copy->cli->args[0], .host = copy->host};
	char from[PATH_MAX];
	int r;

	if (depth >= DEPTH_MAX) {
		skip(copy, path, "it lies too deep");
		return 0;
	}
	r = join(copy->cli, from, copy->from, path);

	if (r)
		return r;
	files.path = lair_text(from);
	do {
		_cleanup_(call_freep) struct lair_call *call = NULL;

		r = cli_wait(copy->cli, lair_files(copy->cli->lair, &call, &files), &call);
		if (r)
			r = remote_refused(copy, path, r);
		if (r)
			return r == LEFT_OUT ? 0 : r;
		files.after = lair_listing(call)->next;
		r = remote_part(copy, path, lair_listing(call)->files, depth);
	} while (!r && files.after);
	return r;
}

/* Whether it can be listed. If something else is wrong, copying it as a file will say so. */
static bool is_directory(struct copy *copy)
{
	struct lair_files_of files = {
		.session = copy->cli->args[0], .path = lair_text(copy->from), .host = copy->host};
	_cleanup_(call_freep) struct lair_call *call = NULL;

	return cli_wait(copy->cli, lair_files(copy->cli->lair, &call, &files), &call) == 0;
}

/* ---- get ---- */

static int local_fail(const struct copy *copy, const char *path)
{
	return cli_fail(copy->cli, "local", "%s: %s", path, strerror(errno));
}

/* Writes the pieces of @from to @fd. Returns 0, LEFT_OUT or an exit status. */
static int get_pieces(struct copy *copy, const char *path, const char *from, int fd, unsigned *modep)
{
	struct lair_get get = {.session = copy->cli->args[0], .path = lair_text(from)};
	uint64_t size = 0;
	int r;

	do {
		_cleanup_(call_freep) struct lair_call *call = NULL;
		const struct lair_piece *piece;
		struct lair_text data;

		r = cli_wait(copy->cli, lair_get(copy->cli->lair, &call, &get), &call);
		if (r)
			return remote_refused(copy, path, r);
		piece = lair_piece(call);
		if (get.offset == 0) {
			size = piece->size;
			get.file = piece->file;
			*modep = piece->mode;
		}
		data = piece->data;
		data.size = (size_t)MIN((uint64_t)data.size, size - get.offset);
		r = write_all(fd, data);
		if (r)
			return cli_fail(copy->cli, "local", "cannot write: %s", strerror(-r));
		get.offset += data.size;
		copy->bytes += data.size;
		progress(copy, path, get.offset, size);
		if (data.size == 0)
			break;
	} while (get.offset < size);
	copy->n_files++;
	return 0;
}

/* If a signal ends us, this file must not be left behind. */
static const char *volatile unfinished;

static void on_end(int number)
{
	if (unfinished)
		(void)unlink(unfinished);
	(void)raise(number); /* it now has its usual effect */
}

static void ends_take(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction ours = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND}, theirs;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &theirs) == 0 && theirs.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &ours, NULL);
}

/* The file gets its name when it is complete. */
static int get_file(struct copy *copy, const char *path)
{
	char from[PATH_MAX], to[PATH_MAX], temporary[PATH_MAX + 16];
	struct stat status;
	unsigned mode = 0;
	mode_t mask;
	int fd, r;

	r = ends(copy, path, from, to);
	if (r)
		return r;
	/* A file would replace a device or a FIFO, and so destroy it. */
	if (stat(to, &status) == 0 && !S_ISREG(status.st_mode))
		return cli_fail(copy->cli, "local", "%s is there, and is no file", to);
	/* The temporary file lies beside the target. Its name is not made from the target's, which may be as long
	 * as names can be. */
	snprintf(temporary, sizeof(temporary), "%.*s.lair-XXXXXX", (int)(last_name(to) - to), to);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return local_fail(copy, to);
	unfinished = temporary;
	r = get_pieces(copy, path, from, fd, &mode);
	mask = umask(0);
	(void)umask(mask);
	if (!r && (fchmod(fd, (0666 | (mode & 0111)) & ~mask) < 0 || rename(temporary, to) < 0))
		r = local_fail(copy, to);
	if (r)
		(void)unlink(temporary);
	unfinished = NULL;
	fd_close(fd);
	return r == LEFT_OUT ? 0 : r;
}

static int get_directory(struct copy *copy, const char *path)
{
	char to[PATH_MAX];
	struct stat status;
	int r = join(copy->cli, to, copy->to, path);

	if (r || mkdir(to, 0777) == 0)
		return r;
	if (errno != EEXIST)
		return local_fail(copy, to);
	if (lstat(to, &status) == 0 && S_ISDIR(status.st_mode))
		return 0;
	return cli_fail(copy->cli, "local", "%s is there, and is no directory", to);
}

int verb_get(struct cli *cli)
{
	struct copy copy = {.cli = cli,
			    .from = cli->args[1],
			    .directory = get_directory,
			    .file = get_file,
			    .walk = remote_walk};
	const char *given = cli->n_args > 2 ? cli->args[2] : NULL;
	char inside[PATH_MAX];
	struct stat status;
	unsigned mode;
	int r;

	if (given && !strcmp(given, "-"))
		return get_pieces(&copy, "", copy.from, STDOUT_FILENO, &mode);
	if (given && *given && stat(given, &status) == 0 && S_ISDIR(status.st_mode)) {
		r = join(cli, inside, given, "/");
		given = inside;
		if (r)
			return r;
	}
	ends_take();
	r = destination(&copy, copy.from, given);
	return r ? r : copy_run(&copy, is_directory(&copy));
}

/* ---- put ---- */

/* Sends the pieces of @fd until its end. */
static int put_pieces(struct copy *copy, const char *path, const char *to, int fd, const struct stat *status)
{
	struct lair_put put = {
		.session = copy->cli->args[0], .path = lair_text(to), .mode = status->st_mode & 0777};
	_cleanup_(freep) char *data = malloc(LAIR_PIECE);

	if (!data)
		return cli_fail(copy->cli, "local", "out of memory");
	do {
		_cleanup_(call_freep) struct lair_call *call = NULL;
		size_t size = 0;
		ssize_t n = 1;
		int r;

		while (size < LAIR_PIECE && n > 0) {
			n = read(fd, data + size, LAIR_PIECE - size);
			size += n > 0 ? (size_t)n : 0;
		}
		if (n < 0)
			return local_fail(copy, to);
		put.data = (struct lair_text){.data = data, .size = size};
		put.more = n > 0;
		r = cli_wait(copy->cli, lair_put(copy->cli->lair, &call, &put), &call);
		if (r)
			return cli_trouble(copy->cli, r);
		put.transfer = lair_transfer(call)->transfer;
		put.offset = lair_transfer(call)->offset;
		copy->bytes += size;
		progress(copy, path, put.offset, (uint64_t)status->st_size);
	} while (put.more);
	copy->n_files++;
	return 0;
}

static int put_file(struct copy *copy, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	char from[PATH_MAX], to[PATH_MAX];
	struct stat status;
	int r;

	r = ends(copy, path, from, to);
	if (r)
		return r;
	/* A link is followed only if it was named itself. */
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (*path ? O_NOFOLLOW : 0));
	if (fd < 0 || fstat(fd, &status) < 0)
		return local_fail(copy, from);
	if (!S_ISREG(status.st_mode))
		return cli_fail(copy->cli, "local", "%s is no file", from);
	return put_pieces(copy, path, to, fd, &status);
}

static int put_directory(struct copy *copy, const char *path)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_put put = {.session = copy->cli->args[0], .directory = true};
	char to[PATH_MAX];
	int r = join(copy->cli, to, copy->to, path);

	if (r)
		return r;
	put.path = lair_text(to);
	return cli_trouble(copy->cli, cli_wait(copy->cli, lair_put(copy->cli->lair, &call, &put), &call));
}

static const char *kind_of(const char *directory, const char *name)
{
	char path[PATH_MAX];
	struct stat status;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_MAX || lstat(path, &status) < 0)
		return "other";
	return S_ISREG(status.st_mode) ? "file" : S_ISDIR(status.st_mode) ? "directory" : "other";
}

static int local_walk(struct copy *copy, const char *path, unsigned depth)
{
	char directory[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = join(copy->cli, directory, copy->from, path);

	if (r)
		return r;
	if (depth >= DEPTH_MAX)
		return too_deep(copy);
	dir = opendir(directory);
	if (!dir)
		return local_fail(copy, directory);
	while (!r && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = copy_entry(copy, path, entry->d_name, kind_of(directory, entry->d_name), depth);
	closedir(dir);
	return r;
}

int verb_put(struct cli *cli)
{
	struct copy copy = {
		.cli = cli, .from = cli->args[1], .directory = put_directory, .file = put_file, .walk = local_walk};
	struct stat status;
	int r;

	if (stat(copy.from, &status) < 0)
		return local_fail(&copy, copy.from);
	r = destination(&copy, copy.from, cli->n_args > 2 ? cli->args[2] : NULL);
	return r ? r : copy_run(&copy, S_ISDIR(status.st_mode));
}

/* ---- copy-in ---- */

static int copy_in_file(struct copy *copy, const char *path)
{
	struct lair_copy_in request = {.session = copy->cli->args[0]};
	char from[PATH_MAX], to[PATH_MAX];
	int r;

	r = ends(copy, path, from, to);
	if (r)
		return r;
	request.source = lair_text(from);
	request.path = lair_text(to);
	do {
		_cleanup_(call_freep) struct lair_call *call = NULL;
		const struct lair_transfer *transfer;

		r = cli_wait(copy->cli, lair_copy_in(copy->cli->lair, &call, &request), &call);
		if (r)
			return cli_trouble(copy->cli, r);
		transfer = lair_transfer(call);
		request.transfer = transfer->transfer;
		progress(copy, path, transfer->offset, transfer->size);
		if (!request.transfer)
			copy->bytes += transfer->offset;
	} while (request.transfer);
	copy->n_files++;
	return 0;
}

int verb_copy_in(struct cli *cli)
{
	struct copy copy = {.cli = cli,
			    .from = cli->args[1],
			    .host = true,
			    .directory = put_directory,
			    .file = copy_in_file,
			    .walk = remote_walk};
	int r = destination(&copy, copy.from, cli->n_args > 2 ? cli->args[2] : NULL);

	return r ? r : copy_run(&copy, is_directory(&copy));
}
