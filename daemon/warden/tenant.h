/* A tenant: what a warden knows of a session that lives in it. The session gives these functions; the warden
 * calls them to tell what happens and to ask a little. It knows no more of the session. */
#pragma once

#include "interpreter.h"
#include "transcript.h"

/* Of the processes that the tenant's dead interpreters have left behind. */
enum sweep { SWEEP_NONE, SWEEP_WANTED, SWEEP_SENT };

struct tenant_ops {
	/* From its warden: it is ready; it cannot be made or kept (warden->reason), which ends the tenant; it is
	 * gone, with everything in it; the processes that dead interpreters had left behind are dead; the files
	 * of all tenants are over their limit. */
	void (*on_ready)(struct tenant *tenant);
	void (*on_failed)(struct tenant *tenant);
	void (*on_gone)(struct tenant *tenant);
	void (*on_swept)(struct tenant *tenant);
	void (*on_full)(struct tenant *tenant);
	/* The interpreter with this serial, which was to replace another, could not be made. The first returns
	 * whether the tenant goes on without it. If no tenant does, the second is called, and the failure of the
	 * warden follows. */
	bool (*on_no_successor)(struct tenant *tenant, uint64_t serial);
	void (*on_stillborn)(struct tenant *tenant, uint64_t serial);
	/* From an interpreter: no signal is unanswered any more; it is dead, but its last messages come first;
	 * it is dead. */
	void (*on_signalled)(struct tenant *tenant, struct interpreter *interpreter);
	void (*on_last_words)(struct tenant *tenant, struct interpreter *interpreter);
	void (*on_exited)(struct tenant *tenant, struct interpreter *interpreter, int status, bool oom);
	/* From an interpreter: a frame; output, from a pipe (it is in the transcript then) or after its death;
	 * it broke the protocol, or (@why NULL) closed its channel. */
	void (*on_frame)(struct tenant *tenant, struct interpreter *interpreter, struct bytes frame);
	void (*on_output)(struct tenant *tenant, enum interpreter_stream stream, struct bytes data);
	void (*on_words)(struct tenant *tenant, enum interpreter_stream stream, struct bytes data);
	void (*on_lost)(struct tenant *tenant, struct interpreter *interpreter, const char *why);
	/* Its files have been kept, or brought back, or compared, or not. */
	void (*on_files_kept)(struct tenant *tenant, const struct files_kept_message *kept);
	void (*on_files_back)(struct tenant *tenant, const struct files_back_message *back);
	/* Somebody's are being brought back, and that gets further. */
	void (*on_files_going)(struct tenant *tenant);
	void (*on_files_compared)(struct tenant *tenant, const struct files_compared_message *compared);
	/* End the tenant. @cause: static text for the reply of a running cell. */
	void (*end)(struct tenant *tenant, const char *cause);

	/* The interpreter has no successor; a cell runs; its interpreter is being replaced, and processes of the
	 * old one may not be dead yet; another interpreter is to follow it; the tenant is forked from this
	 * frozen one, or may go back to it. */
	bool (*is_closing)(const struct tenant *tenant);
	bool (*is_busy)(const struct tenant *tenant);
	bool (*is_recovering)(const struct tenant *tenant);
	bool (*has_successor)(const struct tenant *tenant);
	bool (*grows_from)(const struct tenant *tenant, const struct interpreter *frozen);
};

struct tenant {
	struct list node; /* in its warden */
	const struct tenant_ops *ops;
	const char *id;
	struct party *party;		/* who pays for what it does */
	struct transcript *transcripts; /* of stdout and of stderr */
	uint64_t number;		/* in its family */
	enum sweep sweep;
};
