/* The template reads `configure` once, makes itself ready, and then clones a warden for each `warden`. The
 * clones are its siblings, children of the keeper, so it has nothing to wait for or to clean up. */
#include <Python.h>

#include "template.h"

#include "cage/cage.h"
#include "proto/channel.h"
#include "refusal/policy.h"
#include "startup.h"
#include "warden/warden.h"

#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>

struct template
{
	int channel;
	struct cage *cage;
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

/* Receive the next message, which must be of @schema. The caller owns its descriptors; unused slots are -1. Returns
 * 0, CHANNEL_E_EOF, or -errno. */
static int receive(struct template *template, void *out, const struct wire_schema *schema,
		   int fds[static CHANNEL_FDS_MAX])
{
	struct wire_frame frame;
	struct wire_fault fault;
	struct bytes data;
	size_t n_fds;
	int r;

	r = channel_recv(template->channel, template->buffer, sizeof(template->buffer), &data, fds, &n_fds);
	if (r)
		return r;
	if (wire_open(&frame, data) || !bytes_is(frame.type, schema->type) ||
	    wire_decode(out, schema, frame.body, &fault))
		return -EBADMSG;
	return 0;
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

static int get_ready(struct template *template, const struct configure_message *configure)
{
	static struct python_report python;
	struct cage_report cage = {0};
	struct template_ready ready;
	int r;

	if (python_start(configure, &python) < 0)
		return say_failed(template, 0, python.reason) ? -EIO : -EPERM;
	/* The cage comes first, because it checks the profile and says what is wrong. */
	r = cage_prepare(&template->cage, configure, python.places, &cage);
	if (r < 0)
		return say_no_cage(template, cage.reason, sizeof(cage.reason), r);
	if (policy_configure(configure, python.places) < 0)
		return say_failed(template, 0, "out of memory") ? -EIO : -EPERM;
	python_settle();
	ready = (struct template_ready){.python = bytes_of(python.version), .missing = wire_bytes(&python.missing)};
	return say(template, &template_ready_schema, &ready, -1);
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
		template->channel = fd_close(template->channel);
		warden_run(template->cage, template->workspace, fds[0]);
	}
	if (pid < 0)
		return say_failed(template, message->serial, strerror(-pid));
	made.pid = (uint64_t)pid;
	return say(template, &made_message_schema, &made, pidfd);
}

static int serve(struct template *template)
{
	for (;;) {
		struct warden_message message;
		int fds[CHANNEL_FDS_MAX + 1], r;

		fds[CHANNEL_FDS_MAX] = -1;
		r = receive(template, &message, &warden_message_schema, fds);
		if (!r && fds[0] < 0)
			r = -EBADMSG;
		if (!r)
			r = make_warden(template, &message, fds);
		close_all(fds);
		if (r)
			return r;
	}
}

int template_run(int channel)
{
	static struct template template;
	struct configure_message configure;
	int fds[CHANNEL_FDS_MAX], r;

	prctl(PR_SET_NAME, "lair-template");
	template.channel = channel;
	r = receive(&template, &configure, &configure_message_schema, fds);
	close_all(fds);
	if (!r)
		r = get_ready(&template, &configure);
	forget(&template);
	if (!r)
		r = serve(&template);
	return r == CHANNEL_E_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
}
