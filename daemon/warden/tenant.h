/* What a warden knows of a session that lives in it. A session is told of what happens by these functions, and
 * asked a little; what else it is, no warden knows. */
#pragma once

#include "interpreter.h"
#include "transcript.h"

/* Of what the tenant's dead interpreters have left behind. */
enum sweep { SWEEP_NONE, SWEEP_WANTED, SWEEP_SENT };

struct tenant_ops {
	/* Of its warden: it is ready; it cannot be made or kept (warden->reason), which ends the tenant; it is
	 * gone, with all that was in it; what dead interpreters had left behind is dead; the files of all tenants
	 * have outgrown their limit. */
	void (*on_ready)(struct tenant *tenant);
	void (*on_failed)(struct tenant *tenant);
	void (*on_gone)(struct tenant *tenant);
	void (*on_swept)(struct tenant *tenant);
	void (*on_full)(struct tenant *tenant);
	/* The interpreter with this serial could not be made. The first returns whether the tenant goes on without:
	 * it was to follow another. If none does, the second is called, and the failure of the warden follows. */
	bool (*on_no_successor)(struct tenant *tenant, uint64_t serial);
	void (*on_stillborn)(struct tenant *tenant, uint64_t serial);
	/* Of an interpreter: no signal is unanswered any more; it is dead, and what it had still said comes first;
	 * it is dead. */
	void (*on_signalled)(struct tenant *tenant, struct interpreter *interpreter);
	void (*on_last_words)(struct tenant *tenant, struct interpreter *interpreter);
	void (*on_exited)(struct tenant *tenant, struct interpreter *interpreter, int status, bool oom);
	/* From an interpreter: a frame; what it wrote, from a pipe (which is in the transcript then) or after its
	 * death; it broke the protocol, or (@why NULL) closed its channel. */
	void (*on_frame)(struct tenant *tenant, struct interpreter *interpreter, struct bytes frame);
	void (*on_output)(struct tenant *tenant, enum interpreter_stream stream, struct bytes data);
	void (*on_words)(struct tenant *tenant, enum interpreter_stream stream, struct bytes data);
	void (*on_lost)(struct tenant *tenant, struct interpreter *interpreter, const char *why);
	/* End the tenant. @cause: static text for the reply of a running cell. */
	void (*end)(struct tenant *tenant, const char *cause);

	/* Nothing follows any more; a cell runs; its interpreter is being replaced, and what the old one has
	 * running may not be dead yet; another interpreter is to follow it; it grows from this frozen one. */
	bool (*is_closing)(const struct tenant *tenant);
	bool (*is_busy)(const struct tenant *tenant);
	bool (*is_recovering)(const struct tenant *tenant);
	bool (*has_successor)(const struct tenant *tenant);
	bool (*grows_from)(const struct tenant *tenant, const struct interpreter *frozen);
};

struct tenant {
	struct list kin; /* in its warden */
	const struct tenant_ops *ops;
	const char *id;
	struct party *party;		/* who pays for what it does */
	struct transcript *transcripts; /* of stdout and of stderr */
	uint64_t number;		/* in its family */
	enum sweep sweep;
};
