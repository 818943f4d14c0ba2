/* The router's handle on a warden: its control pair, its process, and the interpreter it runs. Only trusted code
 * speaks here. A warden is a spare until a session takes it. */
#pragma once

#include "config.h"
#include "interpreter.h"

#include <sys/types.h>

struct nursery;
struct router;

enum warden_state {
	WARDEN_WANTED, /* its template is not up yet */
	WARDEN_MAKING, /* asked for */
	WARDEN_CAGING, /* it exists and builds its cage */
	WARDEN_READY,  /* its interpreter waits */
	WARDEN_DYING,  /* killed, not yet gone */
};

struct warden {
	struct list node; /* in its nursery */
	struct router *router;
	struct nursery *nursery;
	struct session *session; /* NULL: a spare */
	enum warden_state state;
	uint64_t serial;
	uid_t uid; /* 0: laird's own */
	pid_t pid;
	int control, theirs, pidfd; /* theirs: the warden's end, until it is sent */
	struct event_source control_source, pidfd_source;
	struct timer patience; /* for each step of its making */
	char *workspace;       /* absolute path */
	enum workspace_policy keep;
	char *level;
	msgpack_sbuffer guards; /* array of str */
	struct interpreter *interpreter;
	uint64_t last_interpreter;
	unsigned signals_unanswered;
	char reason[256]; /* why it could not be made */
};

/* A new warden in the state WANTED, with its workspace. Returns 0 or -errno. */
int warden_new(struct warden **wardenp, struct router *router, struct nursery *nursery, struct profile *profile);
struct warden *warden_free(struct warden *warden);

/* The message that asks a template for it, and the template's answers. */
int warden_request(struct warden *warden, int template_channel);
void warden_made(struct warden *warden, pid_t pid, int pidfd);
void warden_failed(struct warden *warden, struct bytes reason);

/* Fork a fresh interpreter for the session that has this warden. Returns 0 or -errno. */
int warden_spawn(struct warden *warden);

/* To the interpreter. 9 ends it with all it left behind. The answer is counted down in signals_unanswered. */
int warden_signal(struct warden *warden, int signal);

/* Kill it and with it everything in its cage; session_on_warden_gone or the nursery is told when it is gone. */
void warden_kill(struct warden *warden);
