/* Files in and out. The router is one thread, so each request here is at most one piece of a file or one part of
 * a directory; for more, the client asks again. Sessions run meanwhile, so every request resolves its path anew
 * and does not trust what an earlier one has seen. */
#include "request.h"

#include "base/walk.h"
#include "family/family.h"
#include "files/files.h"
#include "session/parts/filing.h"
#include "session/parts/transfer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

/* A file or directory, resolved as far as the directory nothing may leave. */
struct place {
	int root;
	char path[PATH_MAX];
};

#define PLACE_NONE ((struct place){.root = -1})

static void place_deinit(struct place *place)
{
	fd_closep(&place->root);
}

/* ---- refusals ---- */

static const struct {
	int error;
	const char *code, *sentence;
} refusals[] = {
	{FILE_E_PATH, "bad_request", "expected a path beneath the directory, without \"..\", at most 64 deep"},
	{FILE_E_KIND, "denied", "this is a directory"},
	{FILE_E_LINKED, "denied", "a file with more than one name (hard links) is not copied"},
	{FILE_E_SPARSE, "too_large", "nearly all of this file is holes; such files are not copied"},
	{FILE_E_TAKEN, "gone", "the session took the file away while it was written"},
	{-ENOENT, "no_file", "there is no such file"},
	{-ENOTDIR, "no_file", "something on the way is no directory"},
	{-ELOOP, "denied", "something on the way is a symbolic link, which is not followed"},
	{-EXDEV, "denied", "this lies on another file system"},
	{-EACCES, "denied", "the permissions of the file or of a directory above do not allow it"},
	{-EPERM, "denied", "the permissions of the file or of a directory above do not allow it"},
	{-ESTALE, "denied", "a directory above it was replaced since laird was told of it"},
	{-ENAMETOOLONG, "bad_request", "the name is too long"},
	{-ENOSPC, "limit", "no space is left"},
	{-EDQUOT, "limit", "the quota is used up"},
	{-EFBIG, "too_large", "the file is larger than files may be here"},
};

/* A path for a sentence, which is text. */
static const char *path_tamed(char out[static 128], struct bytes path)
{
	size_t size = MIN(path.size, (size_t)127);
	bool valid = size == path.size && utf8_valid(path);

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)path.data[i];

		out[i] = c < ' ' || c == 127 || (c > 127 && !valid) ? '?' : (char)c;
	}
	out[size] = '\0';
	return size > 0 ? out : ".";
}

static void refuse(struct sessions *sessions, const struct address *from, int r, struct bytes path)
{
	char name[128];

	path_tamed(name, path);
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i].error != r)
			continue;
		client_error(sessions->clients, from, refusals[i].code, "%s: %s", name, refusals[i].sentence);
		return;
	}
	client_error(sessions->clients, from, "internal", "%s: %s", name, strerror(r < 0 ? -r : EIO));
}

/* The same for what file_open says, which also tells what it found. */
static void refuse_open(struct sessions *sessions, const struct address *from, int r, struct bytes path,
			const struct stat *status, const struct profile *profile)
{
	char name[128];

	path_tamed(name, path);
	if (r == FILE_E_KIND)
		client_error(sessions->clients, from, "denied", "%s: this is %s, and only files are copied", name,
			     file_kind(status->st_mode));
	else if (r == FILE_E_SIZE)
		client_limit(sessions->clients, from, "too_large", profile->name, "file_size",
			     "%s: the file has %" PRIu64 " bytes; file_size = %" PRIu64 " is the limit", name,
			     (uint64_t)status->st_size, profile->file_size);
	else
		refuse(sessions, from, r, path);
}

/* ---- places ---- */

/* In the workspace of @session. */
static int place_inside(struct place *place, const struct session *session, struct bytes path)
{
	int r = file_path(place->path, path, session_workspace(session));

	return r ? r : session_directory(&place->root, session);
}

/* Laird's own files and other sessions' are nobody's to import, wherever they lie. */
static bool is_private(const struct config *config, const char *root, const char *below)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root[1] ? root : "", strcmp(below, ".") ? below : "");
	for (size_t i = 0; i < config->n_own; i++)
		if (walk_within(path, config->own[i].path, true) && !walk_within(root, config->own[i].path, true))
			return true;
	return false;
}

static int place_pinned(struct place *place, const struct config *config, const struct pin *pin)
{
	int r;

	if (!pin->path)
		return -ENOENT;
	if (is_private(config, pin->path, place->path))
		return -EACCES;
	r = pin_open(&place->root, pin->path, pin->device, pin->inode);
	return r == PIN_E_CHANGED ? -ESTALE : r;
}

/* On the host, beneath a directory the profile has files imported from. */
static int place_outside(struct place *place, const struct session *session, struct bytes path)
{
	const struct profile *profile = session->profile;
	int r = -EACCES;

	for (size_t i = 0; r && i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if (pinned->kind == PINNED_IMPORT && path.size > 0 && *path.data == '/' &&
		    file_path(place->path, path, pinned->path) == 0)
			r = place_pinned(place, session->sessions->config, &pinned->pin);
	}
	return r;
}

static void refuse_outside(struct sessions *sessions, const struct address *from, const struct session *session,
			   int r, struct bytes path)
{
	char name[128];

	if (r == -EACCES)
		client_limit(sessions->clients, from, "denied", session->profile->name, "import",
			     "%s: files may not be copied from there", path_tamed(name, path));
	else
		refuse(sessions, from, r, path);
}

/* ---- out ---- */

/* What a client does not read waits in our memory. */
static bool reads(struct sessions *sessions, const struct address *from)
{
	if (!clients_wait(sessions->clients, from))
		return true;
	client_error(sessions->clients, from, "limit", "answers to you wait to be read; ask again after that");
	return false;
}

void handle_files(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct files_request *files = &request->files;
	struct session *session = session_named(sessions, from, request);
	_cleanup_(place_deinit) struct place place = PLACE_NONE;
	struct files_reply reply = {.id = request->id};
	_cleanup_(wire_list_deinit) struct wire_list records = {0};
	int r;

	if (!session || !reads(sessions, from))
		return;
	r = files->host ? place_outside(&place, session, files->path) : place_inside(&place, session, files->path);
	if (r && files->host) {
		refuse_outside(sessions, from, session, r, files->path);
		return;
	}
	if (!r)
		r = file_list(&records, &reply.next, place.root, place.path, files->after);
	reply.files = wire_list_bytes(&records);
	if (r == FILE_E_KIND)
		refuse(sessions, from, -ENOTDIR, files->path);
	else if (r)
		refuse(sessions, from, r, files->path);
	else
		client_send(sessions->clients, from, &files_reply_schema, &reply);
}

static void get_answer(struct sessions *sessions, const struct address *from, const struct get_request *get, int fd,
		       const struct stat *status)
{
	size_t size = MIN(get->size ? get->size : FILE_CHUNK, (uint64_t)FILE_CHUNK);
	struct get_reply reply = {
		.id = get->id,
		.size = (uint64_t)status->st_size,
		.file = status->st_ino,
		.mode = status->st_mode & 0777,
	};
	_cleanup_(freep) char *data = malloc(size);
	ssize_t n = data ? file_read(fd, data, size, get->offset) : -ENOMEM;

	if (n < 0) {
		refuse(sessions, from, (int)n, get->path);
		return;
	}
	reply.data = (struct bytes){.data = data, .size = (size_t)n};
	client_send(sessions->clients, from, &get_reply_schema, &reply);
}

void handle_get(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct get_request *get = &request->get;
	struct session *session = session_named(sessions, from, request);
	_cleanup_(place_deinit) struct place place = PLACE_NONE;
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int r;

	if (!session || !reads(sessions, from))
		return;
	r = place_inside(&place, session, get->path);
	if (r) {
		refuse(sessions, from, r, get->path);
		return;
	}
	r = file_open(&fd, &status, place.root, place.path, session->profile->file_size);
	if (r)
		refuse_open(sessions, from, r, get->path, &status, session->profile);
	else if (get->file && get->file != status.st_ino)
		client_error(sessions->clients, from, "gone",
			     "another file has taken the place of the one you began to read; begin again");
	else
		get_answer(sessions, from, get, fd, &status);
}

/* ---- in ---- */

static void transfer_answer(struct sessions *sessions, const struct address *from, const struct transfer *transfer,
			    bool done)
{
	struct transfer_reply reply = {
		.id = from->id,
		.transfer = done ? 0 : transfer->number,
		.offset = transfer->file.size,
		.size = transfer->total,
	};

	client_send(sessions->clients, from, &transfer_reply_schema, &reply);
}

/* Whether @size bytes and @files files more may be in the workspace; if not, the client has been told. */
static bool has_room(struct sessions *sessions, const struct address *from, const struct session *session,
		     uint64_t size, uint64_t files)
{
	if (quota_has_room(session->warden, size, files))
		return true;
	quota_on_refused(session->warden);
	client_limit(sessions->clients, from, "limit", session->profile->name, "workspace_size",
		     "the files of session \"%s\" would take more than workspace_size = %" PRIu64
		     " bytes allows, or be more than one for each 16 KiB of it",
		     session->id, session->profile->workspace_size);
	return false;
}

/* How many may be made for a file or directory of that path. */
static uint64_t files_on_the_way(const char *path)
{
	uint64_t n = 1;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* A transfer whose file @path can be written to; NULL when the client has been told why not. */
static struct transfer *transfer_begin(struct sessions *sessions, const struct address *from,
				       struct session *session, struct bytes path)
{
	_cleanup_(place_deinit) struct place place = PLACE_NONE;
	struct transfer *transfer;
	uint64_t files;
	int r;

	if (transfers_full(session)) {
		client_error(sessions->clients, from, "limit",
			     "%d files are on their way into session \"%s\" already; wait for one", TRANSFERS_MAX,
			     session->id);
		return NULL;
	}
	r = place_inside(&place, session, path);
	files = r ? 0 : files_on_the_way(place.path);
	if (!r && !has_room(sessions, from, session, 0, files))
		return NULL;
	transfer = r ? NULL : transfer_new(session, from->uid);
	if (!r)
		r = transfer ? new_file_begin(&transfer->file, place.root, place.path, session->warden->uid)
			     : -ENOMEM;
	if (!r) {
		quota_put(session->warden, 0, files);
		warden_touch(session->warden);
		return transfer;
	}
	refuse(sessions, from, r, path);
	return transfer_free(transfer);
}

static struct transfer *transfer_named(struct sessions *sessions, const struct address *from,
				       struct session *session, uint64_t number)
{
	struct transfer *transfer = transfer_find(session, number, from->uid);

	if (!transfer)
		client_error(sessions->clients, from, "gone", "there is no transfer %" PRIu64 "; begin again",
			     number);
	return transfer;
}

/* One more piece; the last one puts the file in its place. Whatever fails ends the transfer. */
static void transfer_go_on(struct sessions *sessions, const struct address *from, struct transfer *transfer,
			   struct bytes data, bool last)
{
	struct session *session = transfer->session;
	uint64_t max = session->profile->file_size;
	int r;

	if (max && transfer->file.size + data.size > max) {
		client_limit(sessions->clients, from, "too_large", session->profile->name, "file_size",
			     "the file has more bytes than file_size = %" PRIu64 " allows", max);
		transfer_free(transfer);
		return;
	}
	if (!has_room(sessions, from, session, data.size, 0)) {
		transfer_free(transfer);
		return;
	}
	r = new_file_append(&transfer->file, data);
	quota_put(session->warden, data.size, 0);
	if (!r && last)
		r = new_file_commit(&transfer->file, transfer->mode);
	filing_note_put(session);
	if (r)
		refuse(sessions, from, r, bytes_of(transfer->file.name));
	else
		transfer_answer(sessions, from, transfer, last);
	if (r || last)
		transfer_free(transfer);
}

static void put_directory(struct sessions *sessions, const struct address *from, struct session *session,
			  struct bytes path)
{
	_cleanup_(place_deinit) struct place place = PLACE_NONE;
	struct transfer_reply reply = {.id = from->id};
	int r = place_inside(&place, session, path);
	uint64_t files = r ? 0 : files_on_the_way(place.path);

	if (!r && !has_room(sessions, from, session, 0, files))
		return;
	if (!r)
		r = file_make_directory(place.root, place.path, session->warden->uid);
	filing_note_put(session);
	quota_put(session->warden, 0, files);
	if (r)
		refuse(sessions, from, r, path);
	else
		client_send(sessions->clients, from, &transfer_reply_schema, &reply);
}

void handle_put(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct put_request *put = &request->put;
	struct session *session = session_named(sessions, from, request);
	struct transfer *transfer;

	if (!session)
		return;
	if (put->data.size > FILE_CHUNK) {
		client_error(sessions->clients, from, "too_large", "a piece has %zu bytes; %zu are the limit",
			     put->data.size, FILE_CHUNK);
		return;
	}
	if (put->directory) {
		put_directory(sessions, from, session, put->path);
		return;
	}
	transfer = put->transfer ? transfer_named(sessions, from, session, put->transfer)
				 : transfer_begin(sessions, from, session, put->path);
	if (!transfer)
		return;
	if (transfer->source >= 0 || put->offset != transfer->file.size) {
		client_error(sessions->clients, from, "bad_request", "offset: transfer %" PRIu64 " is at %" PRIu64,
			     transfer->number, transfer->file.size);
		if (!put->transfer)
			transfer_free(transfer);
		return;
	}
	if (!put->transfer)
		transfer->mode = put->mode ? (mode_t)put->mode & 0777 : 0644;
	transfer_go_on(sessions, from, transfer, put->data, !put->more);
}

/* The file on the host, open. Returns false when the client has been told why not. */
static bool copy_in_open(int *fdp, struct stat *status, struct sessions *sessions, const struct address *from,
			 const struct session *session, struct bytes path)
{
	_cleanup_(place_deinit) struct place place = PLACE_NONE;
	int r = place_outside(&place, session, path);

	if (r) {
		refuse_outside(sessions, from, session, r, path);
		return false;
	}
	r = file_open(fdp, status, place.root, place.path, session->profile->file_size);
	if (r)
		refuse_open(sessions, from, r, path, status, session->profile);
	return !r;
}

static struct transfer *copy_in_begin(struct sessions *sessions, const struct address *from,
				      struct session *session, const struct copy_in_request *copy)
{
	_cleanup_(fd_closep) int source = -1;
	struct bytes path = copy->path;
	struct transfer *transfer;
	struct stat status;

	if (!copy_in_open(&source, &status, sessions, from, session, copy->source) ||
	    !has_room(sessions, from, session, (uint64_t)status.st_size, 0))
		return NULL;
	if (path.size == 0) {
		const char *slash = memrchr(copy->source.data, '/', copy->source.size);

		path.data = slash + 1;
		path.size = (size_t)(copy->source.data + copy->source.size - path.data);
	}
	transfer = transfer_begin(sessions, from, session, path);
	if (!transfer)
		return NULL;
	transfer->source = steal_fd(&source);
	transfer->total = (uint64_t)status.st_size;
	transfer->mode = (status.st_mode & 0777) | 0600;
	return transfer;
}

void handle_copy_in(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct copy_in_request *copy = &request->copy_in;
	struct session *session = session_named(sessions, from, request);
	_cleanup_(freep) char *data = NULL;
	struct transfer *transfer;
	size_t size;
	ssize_t n;

	if (!session)
		return;
	transfer = copy->transfer ? transfer_named(sessions, from, session, copy->transfer)
				  : copy_in_begin(sessions, from, session, copy);
	if (!transfer)
		return;
	if (transfer->source < 0) {
		client_error(sessions->clients, from, "bad_request", "transfer %" PRIu64 " is a put",
			     transfer->number);
		return;
	}
	/* What it grows by from now on is not ours to copy. */
	size = (size_t)MIN(transfer->total - transfer->file.size, (uint64_t)FILE_CHUNK);
	data = malloc(size + 1);
	n = data ? file_read(transfer->source, data, size, transfer->file.size) : -ENOMEM;
	if (n < 0) {
		refuse(sessions, from, (int)n, copy->source);
		transfer_free(transfer);
		return;
	}
	transfer_go_on(sessions, from, transfer, (struct bytes){.data = data, .size = (size_t)n},
		       (size_t)n < size || transfer->file.size + (uint64_t)n == transfer->total);
}
