/* The template reads `configure` once, makes itself ready, and then clones a warden for each `warden`. The
 * clones are its siblings, children of the keeper, so it has nothing to wait for or to clean up. If it is told to
 * hurry while it imports, it makes the wardens that are waited for as soon as it can, and does the rest after them.
 *
 * Or it wakes from an image of a template that had made itself ready; then only the cage is left to prepare. */
#include "template.h"

#include "cage/cage.h"
#include "images.h"
#include "language.h"
#include "observe/output.h"
#include "proto/channel.h"
#include "refusal/changeable.h"
#include "refusal/policy.h"
#include "threads/threads.h"
#include "warden/warden.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* How long a hurried template waits for its first order, which follows at once if whoever waited still does. */
#define ORDER_MS 200
/* How long nobody must have wanted anything before an image is written. */
#define IMAGE_MS 1000

struct template
{
	int channel;
	struct language_report report;
	struct cage *cage;
	unsigned threads; /* of a session's libraries */
	char network[256];
	bool terminals;
	struct images images;
	char buffer[CHANNEL_SIZE_MAX];
	char workspace[PATH_MAX]; /* of the warden being made */
};

static int say(const struct template *template, const struct wire_schema *schema, const void *message, int fd)
{
	msgpack_sbuffer frame = {0};
	int r = wire_encode(&frame, schema, message);

	if (!r)
		r = channel_send(template->channel, wire_bytes(&frame), &fd, fd >= 0 ? 1 : 0);
	msgpack_sbuffer_destroy(&frame);
	return r;
}

static int say_failed(const struct template *template, uint64_t serial, const char *reason)
{
	const struct failed_message failed = {.serial = serial, .reason = bytes_of(reason)};

	return say(template, &failed_message_schema, &failed, -1);
}

/* Receive the next message, which must be of @schema; a `hurry` that comes too late is passed over. The caller owns
 * its descriptors; unused slots are -1. Returns 0, CHANNEL_E_EOF, or -errno. */
static int receive(struct template *template, void *out, const struct wire_schema *schema,
		   int fds[static CHANNEL_FDS_MAX])
{
	struct wire_frame frame;
	struct wire_fault fault;
	struct bytes data;
	size_t n_fds;
	int r;

	do {
		r = channel_recv(template->channel, template->buffer, sizeof(template->buffer), &data, fds, &n_fds);
		if (r)
			return r;
		if (wire_open(&frame, data))
			return -EBADMSG;
	} while (bytes_is(frame.type, hurry_message_schema.type) && schema != &hurry_message_schema && n_fds == 0);
	return bytes_is(frame.type, schema->type) && !wire_decode(out, schema, frame.body, &fault) ? 0 : -EBADMSG;
}

static void close_all(int fds[static CHANNEL_FDS_MAX])
{
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_closep(&fds[i]);
}

/* No session may find in its memory what the router has said: the names that the profile hides, and the workspaces
 * of other sessions. What was made of that on the stack is wiped, too. */
static __attribute__((noinline)) void forget(struct template *template)
{
	char below[1 << 17];

	explicit_bzero(template->buffer, sizeof(template->buffer));
	explicit_bzero(below, sizeof(below));
}

/* @size: bytes of room for @reason. */
static int say_no_cage(const struct template *template, char *reason, size_t size, int number)
{
	size_t used = strlen(reason);

	if (number == -ENOTSUP)
		snprintf(reason + used, size - used, " (lair doctor says more)");
	return say_failed(template, 0, reason) ? -EIO : -EPERM;
}

static int say_ready(const struct template *template, bool rough)
{
	const struct template_ready ready = {.language = bytes_of(language.name),
					     .version = bytes_of(language.version()),
					     .missing = wire_bytes(&template->report.missing),
					     .rough = rough,
					     .woken = template->images.woken};

	return say(template, &template_ready_schema, &ready, -1);
}

static int say_importing(const struct template *template)
{
	const struct importing_message importing = {.reason = bytes_of(template->images.unused)};

	return importing.reason.data ? say(template, &importing_message_schema, &importing, -1) : 0;
}

static bool is_spoken_to(const struct template *template, int patience_ms)
{
	struct pollfd channel = {.fd = template->channel, .events = POLLIN};

	return poll(&channel, 1, patience_ms) > 0;
}

/* Before it is ready, a template is told nothing but to hurry. */
static int hurry_hear(struct template *template, bool *hurriedp)
{
	struct hurry_message hurry;
	int fds[CHANNEL_FDS_MAX], r;

	*hurriedp = is_spoken_to(template, 0);
	if (!*hurriedp)
		return 0;
	r = receive(template, &hurry, &hurry_message_schema, fds);
	close_all(fds);
	return r;
}

/* Even if all went well: some code may have caught the error of a file that it was refused. */
static int say_if_failed(struct template *template, int r)
{
	const char *found = changeable_found();

	if (!r && !found)
		return 0;
	return say_failed(template, 0, found ? found : template->report.reason) ? -EIO : -EPERM;
}

static int start(struct template *template, const struct configure_message *configure)
{
	if (output_install() || changeable_begin(configure->changeable))
		return say_failed(template, 0, "out of memory") ? -EIO : -EPERM;
	threads_learn();
	return say_if_failed(template, language.start(configure, &template->report));
}

static int warm(struct template *template)
{
	int r = language.warm ? language.warm(&template->report) : 0;

	changeable_end();
	if (!r)
		images_find_sources(&template->images);
	return say_if_failed(template, r);
}

static void settle(void)
{
	if (language.settle)
		language.settle();
}

static int allow_threads(struct template *template, unsigned n)
{
	struct language_report *report = &template->report;

	if (template->threads <= 1 || !language.allow_threads || language.allow_threads(n, report) == 0)
		return 0;
	return say_failed(template, 0, report->reason) ? -EIO : -EPERM;
}

/* Where threads cannot be copied, a session has more than one only if its profile says so. */
static unsigned threads_wanted(const struct template *template, const struct configure_message *configure)
{
	bool wanted = configure->threads_given || cage_shows_threads(template->cage);

	return wanted ? (unsigned)configure->threads : 1;
}

static int receive_configure(struct template *template, struct configure_message *configure)
{
	int fds[CHANNEL_FDS_MAX];
	int r = receive(template, configure, &configure_message_schema, fds);

	images_begin(&template->images, r ? -1 : steal_fd(&fds[0]));
	close_all(fds);
	return r;
}

/* The cage comes first, because it checks the profile and says what is wrong. */
static int prepare(struct template *template, const struct configure_message *configure)
{
	struct cage_report cage = {0};
	unsigned before = template->threads;
	int r = cage_prepare(&template->cage, configure, template->report.places, &cage);

	if (r < 0)
		return say_no_cage(template, cage.reason, sizeof(cage.reason), r);
	if (policy_configure(configure, template->report.places) < 0)
		return say_failed(template, 0, "out of memory") ? -EIO : -EPERM;
	bytes_copy(template->network, sizeof(template->network), configure->network);
	template->terminals = configure->terminals;
	template->threads = threads_wanted(template, configure);
	return template->threads == before ? 0 : allow_threads(template, template->threads);
}

/* @hurriedp: whether warm is left to do. */
static int load(struct template *template, bool *hurriedp)
{
	struct configure_message configure;
	int r = receive_configure(template, &configure);

	if (!r)
		r = start(template, &configure);
	if (!r)
		r = hurry_hear(template, hurriedp);
	if (!r && !*hurriedp)
		r = warm(template);
	return r ? r : prepare(template, &configure);
}

/* In the clone. Returns NULL, or why there can be no such cage. */
static const char *differ(struct template *template, const struct warden_message *message,
			  struct cage_report *report)
{
	const struct configure_message configure = {.places = message->places,
						    .network = bytes_of(template->network),
						    .terminals = template->terminals,
						    .memory = message->memory};

	if (cage_differ(template->cage, message, &configure, template->report.places, report) < 0)
		return report->reason;
	if (message->places.data && policy_differ(&configure, template->report.places) < 0)
		return "out of memory";
	return NULL;
}

/* @fds: the warden's end of the control pair, then the doors of its control groups, ended by -1. */
static int make_warden(struct template *template, const struct warden_message *message, const int *fds)
{
	_cleanup_(fd_closep) int pidfd = -1;
	struct made_message made = {.serial = message->serial};
	pid_t pid;

	if (message->workspace.size >= sizeof(template->workspace))
		return say_failed(template, message->serial, strerror(ENAMETOOLONG));
	memcpy(template->workspace, message->workspace.data, message->workspace.size);
	template->workspace[message->workspace.size] = '\0';
	pid = cage_clone(template->cage, (uid_t)message->uid, fds + 1, &pidfd);
	if (pid == 0) {
		struct cage_report report = {0};
		const char *reason = differ(template, message, &report);

		changeable_end();
		if (message->places.data)
			forget(template);
		template->channel = fd_close(template->channel);
		warden_run(template->cage, template->workspace, fds[0], reason);
	}
	if (pid < 0)
		return say_failed(template, message->serial, strerror(-pid));
	images_prove(&template->images);
	made.pid = (uint64_t)pid;
	return say(template, &made_message_schema, &made, pidfd);
}

static int serve_one(struct template *template)
{
	struct warden_message message;
	int fds[CHANNEL_FDS_MAX + 1], r;

	fds[CHANNEL_FDS_MAX] = -1;
	r = receive(template, &message, &warden_message_schema, fds);
	if (!r && fds[0] < 0)
		r = -EBADMSG;
	if (!r)
		r = make_warden(template, &message, fds);
	if (!r && message.places.data)
		forget(template);
	close_all(fds);
	return r;
}

/* Make the wardens that are waited for, and then all that comes first if nobody waits. Their memory is laid out,
 * too, or their checkpoints would cost several times as much; it is laid out again when all has been warmed up. */
static int serve_waiting(struct template *template)
{
	int r, patience_ms = ORDER_MS;

	if (language.make_room)
		language.make_room();
	settle();
	r = say_ready(template, true);
	for (; !r && is_spoken_to(template, patience_ms); patience_ms = 0)
		r = serve_one(template);
	if (!r)
		r = allow_threads(template, 1);
	if (!r)
		r = warm(template);
	if (!r)
		r = cage_prepare_again(template->cage);
	return r ? r : allow_threads(template, template->threads);
}

static int say_imaged(const struct template *template, const char *reason)
{
	const struct imaged_message imaged = {.reason = bytes_of(reason)};

	return say(template, &imaged_message_schema, &imaged, -1);
}

static void forget_all(void *data)
{
	struct template *template = data;

	forget(template);
	explicit_bzero(template->workspace, sizeof(template->workspace));
}

/* In the process that has woken. Its memory is laid out already, and all is warm. */
static int wake(struct template *template)
{
	struct configure_message configure;
	int r = receive_configure(template, &configure);

	if (!r)
		r = prepare(template, &configure);
	forget(template);
	return r ? r : say_ready(template, false);
}

static int keep_image(struct template *template)
{
	bool woken;
	const char *why = images_keep(&template->images, template->channel, forget_all, template, &woken);

	if (woken)
		return wake(template);
	return why ? say_imaged(template, why) : 0;
}

static int serve(struct template *template)
{
	struct pollfd heard[] = {{.fd = template->channel, .events = POLLIN},
				 {.fd = template->images.report, .events = POLLIN}};
	int n = poll(heard, ARRAY_SIZE(heard), images_is_due(&template->images) ? IMAGE_MS : -1);

	if (n == 0)
		return keep_image(template);
	if (n > 0 && heard[1].revents)
		return say_imaged(template, images_finish(&template->images));
	return n > 0 || errno == EINTR ? serve_one(template) : -errno;
}

int template_run(int channel)
{
	static struct template template;
	bool hurried = false;
	int r;

	prctl(PR_SET_NAME, "lair-template");
	template.channel = channel;
	template.threads = 1;
	images_wake(&template.images, channel, template.buffer);
	r = say_importing(&template);
	if (!r)
		r = load(&template, &hurried);
	forget(&template);
	if (!r && hurried)
		r = serve_waiting(&template);
	if (!r) {
		settle();
		r = say_ready(&template, false);
	}
	while (!r)
		r = serve(&template);
	return r == CHANNEL_E_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
}
