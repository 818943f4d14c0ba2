/* A set is made in a directory of its own and comes to its place by one rename, so there is all of it or nothing.
 * uv runs in a cage (uv.c) that may write to that directory and to its cache. When everything in the cage is dead,
 * what it has left is looked at and sealed here. The set is called by the digest of its lock: the same versions and
 * files are one set, whoever asks for them. */
#include "builder.h"

#include "cage/cage.h"
#include "complaint.h"
#include "config.h"
#include "files/survey.h"
#include "language.h"
#include "progress.h"
#include "seal.h"
#include "uv.h"

#include "proto/channel.h"
#include "proto/sha256.h"
#include "proto/uv.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#define LAYOUT "1" /* of what is in a set */
#define LOOK_MS 100
#define DEATH_MS 10000
#define LOCK_MAX ((size_t)8 << 20)
#define MEMORY ((uint64_t)4 << 30)
#define PROCESSES 512
#define OPEN_FILES 4096
#define NAME_SIZE 129

struct builder {
	struct order order;
	int channel;
	int root, work; /* the directories packages and work */
	int control;	/* to the cage; -1: it is over */
	int pidfd;
	pid_t pid;
	char *lock;
	char set[SHA256_HEX_SIZE];
	char told[PROGRESS_SIZE]; /* what the router was told last */
	struct statvfs room;	  /* that the file system had */
	char reason[1024];	  /* of a failure */
	char buffer[CHANNEL_SIZE_MAX];
};

static int fail(struct builder *builder, const char *format, ...) _printf_(2, 3);

static int fail(struct builder *builder, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(builder->reason, sizeof(builder->reason), format, args);
	va_end(args);
	return -ECANCELED;
}

static int too_much(struct builder *builder)
{
	if (builder->order.scarce)
		return fail(
			builder,
			"there is no room for them: the store of packages has %llu bytes left, as packages_total "
			"says; whoever runs laird can have what nobody uses removed, with lair packages prune",
			(unsigned long long)builder->order.size);
	return fail(builder, "they take more than packages_size = %llu bytes allows",
		    (unsigned long long)builder->order.size);
}

/* ---- the router ---- */

static int say(const struct builder *builder, const struct wire_schema *schema, const void *message)
{
	msgpack_sbuffer frame = {0};
	int r = wire_encode(&frame, schema, message);

	if (!r)
		r = channel_send(builder->channel, wire_bytes(&frame), NULL, 0);
	msgpack_sbuffer_destroy(&frame);
	return r;
}

static void tell(struct builder *builder, const char *text)
{
	const struct building_message building = {.text = bytes_of(text)};

	if (!text[0] || strcmp(text, builder->told) == 0)
		return;
	snprintf(builder->told, sizeof(builder->told), "%s", text);
	(void)say(builder, &building_message_schema, &building);
}

static bool copy_text(char *out, size_t size, struct bytes text)
{
	return text.size < size && !memchr(text.data ? text.data : "", '\0', text.size) &&
	       snprintf(out, size, "%.*s", (int)text.size, text.data ? text.data : "") >= 0;
}

static int order_read(struct order *order, const struct build_message *build)
{
	if (!copy_text(order->packages, sizeof(order->packages), build->packages) ||
	    !copy_text(order->work, sizeof(order->work), build->work) ||
	    !copy_text(order->python, sizeof(order->python), build->python) ||
	    !copy_text(order->base, sizeof(order->base), build->base) ||
	    !copy_text(order->newer, sizeof(order->newer), build->newer))
		return -ENAMETOOLONG;
	if (!order->python[0])
		snprintf(order->python, sizeof(order->python), "%s", language.program);
	order->requirements = build->requirements;
	order->deny = build->deny;
	order->size = build->size;
	order->scarce = build->scarce;
	order->uid = (uid_t)build->uid;
	return 0;
}

static int order_receive(struct builder *builder)
{
	struct build_message build;
	struct wire_frame frame;
	struct wire_fault fault;
	int r = channel_recv_frame(builder->channel, builder->buffer, sizeof(builder->buffer), &frame);

	if (r)
		return r;
	if (!bytes_is(frame.type, build_message_schema.type) ||
	    wire_decode(&build, &build_message_schema, frame.body, &fault))
		return -EBADMSG;
	r = order_read(&builder->order, &build);
	if (!r && uv_find(builder->order.uv, build.uv))
		return fail(builder,
			    "the operator has to install uv, which gets packages%s%.*s: lair doctor says more",
			    build.uv.size ? "; it is not " : "", (int)build.uv.size,
			    build.uv.data ? build.uv.data : "");
	return r;
}

/* ---- files ---- */

/* What the cage has written: a file, not longer than @most, is read whole. NULL: there is none. */
static char *file_read(int directory, const char *name, size_t most)
{
	_cleanup_(fd_closep) int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat meta;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode) || meta.st_size < 0 ||
	    (size_t)meta.st_size > most)
		return NULL;
	text = malloc((size_t)meta.st_size + 1);
	n = text ? read(fd, text, (size_t)meta.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

static int file_write(int directory, const char *name, const char *text, mode_t mode)
{
	_cleanup_(fd_closep) int fd =
		openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t size = strlen(text);

	for (size_t at = 0; fd >= 0 && at < size;) {
		ssize_t n = write(fd, text + at, size - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return fd < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

static int put_line(msgpack_sbuffer *text, struct bytes line)
{
	if (line.size > 0 && msgpack_sbuffer_write(text, line.data, line.size))
		return -ENOMEM;
	return msgpack_sbuffer_write(text, "\n", 1) ? -ENOMEM : 0;
}

/* One line of a lock: NAME==VERSION, without what follows. Moves *@atp to the next. */
static bool lock_next(const char **atp, struct bytes *name, struct bytes *line)
{
	while (**atp) {
		const char *at = *atp;
		size_t size = strcspn(at, "\n"), head = strcspn(at, " \n\\;");
		const char *equals = memmem(at, head, "==", 2);

		*atp = at + size + (at[size] == '\n');
		if (!equals || at[0] == '-' || at[0] == '#' || at[0] == ' ')
			continue;
		*name = (struct bytes){at, MIN((size_t)(equals - at), strcspn(at, "["))};
		*line = (struct bytes){at, head};
		return true;
	}
	return false;
}

/* Whether each line says a name and a version, or a digest of it: what else might stand there is not looked at by
 * those who read it. */
static bool lock_is_plain(const char *lock)
{
	static const char digest[] = "    --hash=";

	for (const char *at = lock; *at; at += strspn(at, "\n")) {
		size_t head = strcspn(at, " \n\\;");

		if (strncmp(at, digest, strlen(digest)) != 0 && (at[0] == '-' || !memmem(at, head, "==", 2)))
			return false;
		at += strcspn(at, "\n");
	}
	return true;
}

/* What is wanted: what is asked for, and all that the base has, in its versions. */
static int wanted_write(struct builder *builder)
{
	char path[PATH_SIZE + 100];
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer wanted = {0}, pins = {0};
	struct bytes name, line;
	char *lock = NULL;
	const char *at;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next_string(builder->order.requirements, &cursor, &line))
		r = put_line(&wanted, line);
	snprintf(path, sizeof(path), "sets/%s/lock", builder->order.base);
	if (builder->order.base[0] && !(lock = file_read(builder->root, path, LOCK_MAX)))
		r = fail(builder, "the packages that it has already are not there any more");
	for (at = lock; !r && at && lock_next(&at, &name, &line);) {
		r = put_line(&wanted, line);
		if (!r)
			r = put_line(&pins, line);
	}
	if (!r)
		r = msgpack_sbuffer_write(&wanted, "", 1) || msgpack_sbuffer_write(&pins, "", 1) ? -ENOMEM : 0;
	if (!r)
		r = file_write(builder->work, WORK_WANTED, wanted.data, 0444);
	if (!r)
		r = file_write(builder->work, WORK_PINS, pins.data, 0444);
	free(lock);
	return r;
}

static int give(int directory, const char *name, uid_t uid)
{
	return uid && fchownat(directory, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int directory_make(int directory, const char *name, uid_t uid)
{
	if (mkdirat(directory, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return give(directory, name, uid);
}

/* That of another user is of no use. */
static int cache_prepare(const struct builder *builder)
{
	uid_t uid = builder->order.uid ? builder->order.uid : geteuid();
	struct stat meta;

	if (fstatat(builder->root, "cache", &meta, AT_SYMLINK_NOFOLLOW) == 0 && meta.st_uid != uid &&
	    renameat(builder->root, "cache", builder->work, "cache") < 0)
		return -errno;
	return directory_make(builder->root, "cache", builder->order.uid);
}

static int work_prepare(struct builder *builder)
{
	uid_t uid = builder->order.uid;
	_cleanup_(fd_closep) int home = -1;
	int r = wanted_write(builder);

	if (!r)
		r = cache_prepare(builder);
	if (!r)
		r = directory_make(builder->work, WORK_HOME, uid);
	if (!r) {
		home = openat(builder->work, WORK_HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = home < 0 ? -errno : config_copy(home, uid);
	}
	return r ? r : give(builder->root, builder->order.work, uid);
}

/* ---- the cage ---- */

static int cache_put(const struct builder *builder, msgpack_sbuffer *places)
{
	char path[PATH_SIZE + 16], real[PATH_MAX];
	struct stat meta;
	struct place_record record = {.kind = BYTES("write")};

	snprintf(path, sizeof(path), "%s/cache", builder->order.packages);
	if (!realpath(path, real) || stat(real, &meta) < 0)
		return -errno;
	record.path = record.real = bytes_of(real);
	record.device = meta.st_dev;
	record.inode = meta.st_ino;
	return wire_put_array(places, 1) || wire_encode_body(places, &place_record_schema, &record) ? -ENOMEM : 0;
}

static _Noreturn void cage_run(struct builder *builder, struct cage *cage, int control)
{
	struct cage_report report = {0};

	builder->control = fd_close(builder->control);
	if (cage_enter(cage, builder->order.work, (const int[]){control, -1}, &report) < 0) {
		dprintf(control, "%c%s", UV_NO_CAGE, report.reason);
		_exit(EXIT_FAILURE);
	}
	uv_run(&builder->order, control);
}

static int cage_begin(struct builder *builder)
{
	struct configure_message configure = {
		.profile = BYTES("packages"),
		.network = BYTES("host"),
		.subprocess = true,
		.memory = MEMORY,
		.processes = PROCESSES,
		.open_files = OPEN_FILES,
		.file_size = builder->order.size,
		.scratch_size = 64 << 20,
		.text_max = 1,
		.level = BYTES("landlock"),
	};
	struct cage_report report = {0};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer places = {0};
	struct cage *cage = NULL;
	int pair[2], r;

	r = cache_put(builder, &places);
	configure.places = wire_bytes(&places);
	if (!r)
		r = cage_prepare(&cage, &configure, config_places(&builder->order), &report);
	if (r)
		return fail(builder, "no cage to install packages in: %s",
			    report.reason[0] ? report.reason : strerror(-r));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	builder->control = pair[0];
	builder->pid = cage_clone(cage, builder->order.uid, NULL, &builder->pidfd);
	if (builder->pid == 0)
		cage_run(builder, cage, pair[1]);
	fd_close(pair[1]);
	return builder->pid < 0 ? builder->pid : 0;
}

/* All in it is dead when its first process is; where it has no processes of its own, they die with it. */
static int cage_end(struct builder *builder)
{
	struct pollfd dead = {.fd = builder->pidfd, .events = POLLIN};

	builder->control = fd_close(builder->control);
	if (builder->pid <= 0)
		return 0;
	if (builder->pidfd < 0) {
		for (unsigned i = 0; kill(builder->pid, 0) == 0; i++)
			if (i > DEATH_MS / 10 || poll(NULL, 0, 10) < 0)
				return -ETIMEDOUT;
		return 0;
	}
	return poll(&dead, 1, DEATH_MS) == 1 ? 0 : -ETIMEDOUT;
}

/* ---- while it works ---- */

static struct statvfs room_of(const struct builder *builder)
{
	struct statvfs system = {.f_frsize = 0};

	(void)fstatvfs(builder->root, &system);
	return system;
}

/* What is in it once is in the cache, too, and may be there packed. Others may fill the disk as well: then there is
 * more room than is asked for. */
static bool is_too_much(const struct builder *builder)
{
	const struct statvfs now = room_of(builder), before = builder->room;
	uint64_t most = 3 * builder->order.size;

	return before.f_bavail * before.f_frsize > now.f_bavail * now.f_frsize + most ||
	       before.f_favail > now.f_favail + most / SEAL_UNIT;
}

static void tell_progress(struct builder *builder)
{
	char *log = builder->lock ? file_read(builder->work, WORK_LOG, LOCK_MAX) : NULL;
	char text[PROGRESS_SIZE];

	tell(builder, builder->lock ? progress_of(text, log ? log : "") : "looking for versions that fit together");
	free(log);
}

/* The next byte of the cage's. Returns 0 or -ECANCELED with the reason, or CHANNEL_E_EOF: nobody waits any more. */
static int hear(struct builder *builder, char *what)
{
	struct pollfd ready[] = {{.fd = builder->control, .events = POLLIN},
				 {.fd = builder->channel, .events = POLLIN}};
	ssize_t n;

	for (;;) {
		if (poll(ready, 2, LOOK_MS) < 0 && errno != EINTR)
			return -errno;
		if (ready[1].revents)
			return CHANNEL_E_EOF;
		if (is_too_much(builder))
			return too_much(builder);
		tell_progress(builder);
		if (!ready[0].revents)
			continue;
		n = recv(builder->control, what, 1, 0);
		return n == 1 ? 0 : fail(builder, "the process that installs them was killed");
	}
}

/* ---- between the two halves ---- */

/* As project names are compared: in lower case, with one dash for each run of dashes, dots and underscores. */
static void name_normalize(char out[static NAME_SIZE], struct bytes name)
{
	size_t n = 0;

	for (size_t i = 0; i < name.size && n < NAME_SIZE - 1; i++) {
		char c = name.data[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c == '_' || c == '.')
			c = '-';
		if (c != '-' || n == 0 || out[n - 1] != '-')
			out[n++] = c;
	}
	out[n] = '\0';
}

static int denied(struct builder *builder, struct bytes name)
{
	char plain[NAME_SIZE], pattern[NAME_SIZE];
	struct bytes item;
	size_t cursor = 0;

	name_normalize(plain, name);
	while (wire_next_string(builder->order.deny, &cursor, &item)) {
		bytes_copy(pattern, sizeof(pattern), item);
		if (fnmatch(pattern, plain, 0) == 0)
			return fail(builder, "%s is among them, which the operator does not allow", plain);
	}
	return 0;
}

/* The lock, with what else the files depend on. */
static int set_name(struct builder *builder)
{
	struct utsname host;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer text = {0};
	int r;

	if (uname(&host) < 0)
		return -errno;
	r = put_line(&text, BYTES(LAYOUT)) || put_line(&text, bytes_of(host.machine)) ||
	    put_line(&text, bytes_of(builder->order.python)) || put_line(&text, bytes_of(builder->lock));
	if (!r)
		(void)sha256_hex(builder->set, wire_bytes(&text));
	return r ? -ENOMEM : 0;
}

static bool set_exists(const struct builder *builder)
{
	char path[SHA256_HEX_SIZE + 16];

	snprintf(path, sizeof(path), "sets/%s/lock", builder->set);
	return faccessat(builder->root, path, R_OK, 0) == 0;
}

/* What uv has said, without what is of no use to those who have asked. */
static int explain(struct builder *builder)
{
	char *log = file_read(builder->work, WORK_LOG, LOCK_MAX);
	size_t size = log ? strlen(log) : 0;

	while (size > 0 && log[size - 1] == '\n')
		log[--size] = '\0';
	if (size)
		complaint_log(log);
	if (size && strstr(log, "(os error 27)")) /* EFBIG: one file alone */
		(void)too_much(builder);
	else if (size)
		complaint_tell(builder->reason, sizeof(builder->reason), log);
	else
		(void)fail(builder, "uv has failed and said nothing");
	free(log);
	return -ECANCELED;
}

static int resolved(struct builder *builder)
{
	struct bytes name, line;
	const char *at;
	int r = 0;

	builder->lock = file_read(builder->work, WORK_LOCK, LOCK_MAX);
	if (!builder->lock)
		return fail(builder, "uv has left no lock");
	if (!lock_is_plain(builder->lock))
		return fail(builder, "not all of them come by name and version");
	for (at = builder->lock; !r && lock_next(&at, &name, &line);)
		r = denied(builder, name);
	return r ? r : set_name(builder);
}

/* ---- the end ---- */

/* A directory that is sealed can be moved by root alone, so it is moved first. */
static int seal(struct builder *builder)
{
	char culprit[256], size_text[32];
	uint64_t size;
	int r;

	/* Where the lock is empty nothing is installed. */
	if ((mkdirat(builder->work, WORK_TARGET, 0755) < 0 && errno != EEXIST) ||
	    mkdirat(builder->work, "set", 0755) < 0 ||
	    renameat(builder->work, WORK_TARGET, builder->work, "set/site") < 0)
		return -errno;
	r = seal_tree(builder->work, "set/site", builder->order.size, &size, culprit);
	snprintf(size_text, sizeof(size_text), "%llu\n", (unsigned long long)size);
	if (!r)
		r = file_write(builder->work, "set/size", size_text, 0444);
	if (r == -EFBIG)
		return too_much(builder);
	return r ? fail(builder, "%s in it is no plain file: %s", culprit, strerror(-r)) : 0;
}

static int put_in_place(struct builder *builder)
{
	char to[SHA256_HEX_SIZE + 16];
	int r = file_write(builder->work, "set/lock", builder->lock, 0444);

	snprintf(to, sizeof(to), "sets/%s", builder->set);
	if (!r && syncfs(builder->work) < 0)
		r = -errno;
	if (!r && renameat(builder->work, "set", builder->root, to) < 0)
		r = set_exists(builder) ? 0 : -errno;
	if (!r && fchmodat(builder->root, to, 0555, 0) < 0)
		r = -errno;
	return r;
}

static int build(struct builder *builder)
{
	char what = 0;
	int r = hear(builder, &what);

	if (!r && what == UV_NO_CAGE) {
		ssize_t n = recv(builder->control, builder->reason, sizeof(builder->reason) - 1, 0);

		builder->reason[MAX(n, 0)] = '\0';
		return -ECANCELED;
	}
	if (!r && what != UV_RESOLVED)
		return explain(builder);
	if (!r)
		r = resolved(builder);
	if (r || set_exists(builder))
		return r;
	what = UV_GO_ON;
	if (send(builder->control, &what, 1, MSG_NOSIGNAL) != 1)
		return fail(builder, "the process that installs them was killed");
	r = hear(builder, &what);
	if (!r && what != UV_DONE)
		return explain(builder);
	if (!r)
		r = cage_end(builder);
	tell(builder, "storing");
	if (!r)
		r = seal(builder);
	return r ? r : put_in_place(builder);
}

/* ---- when nobody waits any more ---- */

/* How much uv keeps: the router counts it, too. */
static void cache_measure(struct builder *builder)
{
	static struct survey survey = SURVEY_NONE;
	char path[PATH_SIZE + 16], text[32];

	snprintf(path, sizeof(path), "%s/cache", builder->order.packages);
	survey_begin(&survey, path, UINT64_MAX, UINT64_MAX);
	(void)survey_step(&survey, UINT_MAX);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)survey.size);
	snprintf(path, sizeof(path), "cache-size.%d", getpid());
	if (file_write(builder->root, path, text, 0600) ||
	    renameat(builder->root, path, builder->root, "cache-size") < 0)
		(void)unlinkat(builder->root, path, 0);
}

static int open_directories(struct builder *builder)
{
	builder->root = open(builder->order.packages, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	builder->work = open(builder->order.work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return builder->root < 0 || builder->work < 0 ? -errno : 0;
}

int builder_run(int channel)
{
	static struct builder builder = {.root = -1, .work = -1, .control = -1, .pidfd = -1};
	struct built_message built = {.set.data = NULL};
	int r;

	prctl(PR_SET_NAME, "lair-builder");
	(void)signal(SIGPIPE, SIG_IGN);
	umask(022);
	builder.channel = channel;
	r = order_receive(&builder);
	if (!r)
		r = open_directories(&builder);
	if (!r)
		builder.room = room_of(&builder);
	if (!r)
		r = work_prepare(&builder);
	if (!r)
		r = cage_begin(&builder);
	if (!r)
		r = build(&builder);
	(void)cage_end(&builder);
	if (r > 0)
		return EXIT_FAILURE;
	if (r && !builder.reason[0])
		snprintf(builder.reason, sizeof(builder.reason), "%s", strerror(-r));
	if (r)
		built.reason = bytes_of(builder.reason);
	else
		built.set = bytes_of(builder.set);
	r = say(&builder, &built_message_schema, &built) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (builder.root >= 0)
		cache_measure(&builder);
	return r;
}
