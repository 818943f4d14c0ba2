/* The front doors, and what they share. */
#pragma once

#include "exchange.h"

extern const struct door plain_door;	 /* /health, /openapi.json, /execute */
extern const struct door native_door;	 /* /v1 */
extern const struct door dashboard_door; /* the page at / */
extern const struct door e2b_door;	 /* what E2B's SDKs ask for: e2b/ */
extern const struct door mcp_door;	 /* /mcp */

/* openapi.c: what all doors' routes make. New. */
json_t *openapi_make(const struct server *server);

/* files.c: the bytes of a file of a session as the answer, a piece at a time. */
struct download {
	struct lair_get get; /* its session and path are the handler's, and last as long */
	uint64_t from, end;  /* of the wanted bytes; end is behind the last */
	uint64_t tail;	     /* the wanted bytes at the end of the file; 0: from and end hold */
	bool ranged, asks;   /* asks: for the next piece */
};

/* The download of @exchange, with the range that its headers ask for. */
void download_of(struct exchange *exchange, struct download *download);
/* Ask for a piece. Returns as lair_get. */
int download_ask(struct exchange *exchange);
/* The first piece has come: begin the answer. */
void download_begin(struct exchange *exchange);

/* cells.c: a cell. @session: in laird; NULL: a one-shot. Its result as documents have it, new: without the fields
 * that are only laird's, and with the tenant's own name of the session. */
json_t *result_document(const struct exchange *exchange, const struct lair_result *result);
/* A document as the tenant has it: one with a token learns nothing of this machine, no path, user or process.
 * Returns
 * @document. */
json_t *discreet(const struct exchange *exchange, json_t *document);
/* The same of a document about a session: with the tenant's own name of @session. */
json_t *tenant_document(const struct exchange *exchange, json_t *document, struct lair_text session);
/* NAME=value of each, ended by NULL; one block. NULL without memory, or after *badp. */
char **environment_of(const json_t *env, bool *badp);
/* The client has gone: interrupts the cell of exchange->call, if exchange->interrupts is set. For on_gone. */
void cell_left(struct exchange *exchange);
/* Whether the tenant may name @profile, or leave it to the default; otherwise the exchange has been answered.
 * *profilep: what laird is to be told. */
bool profile_of(struct exchange *exchange, const char *profile, const char **profilep);

/* sessions.c: the session of the path, in laird, and the tenant's connection; NULL after the exchange has been
 * answered. */
struct lair *session_lair(struct exchange *exchange, const char **sessionp);
/* A handler that makes one request about that session: an expression in which @exchange, @lair and @session are
 * known. */
#define SESSION_HANDLER(name, done, ...)                                                                           \
	void name(struct exchange *exchange)                                                                       \
	{                                                                                                          \
		const char *session;                                                                               \
		struct lair *lair = session_lair(exchange, &session);                                              \
                                                                                                                   \
		if (lair)                                                                                          \
			exchange_wait(exchange, __VA_ARGS__, done);                                                \
	}
/* For exchange_wait: the answer is empty. */
void empty_done(struct exchange *exchange);

/* metrics.c */
handler metrics_begin;

/* ---- handlers of /v1 ---- */

/* cells.c */
handler v1_exec, v1_attach_cell, v1_attach_key, v1_results, v1_input;
/* sessions.c */
handler v1_sessions, v1_open, v1_info, v1_shutdown, v1_interrupt, v1_reset, v1_save, v1_load, v1_saves, v1_saved,
	v1_unsave;
/* states.c */
handler v1_checkpoint, v1_checkpoints, v1_drop, v1_restore, v1_undo, v1_branch, v1_diff;
/* questions.c */
handler v1_vars, v1_forget, v1_complete, v1_inspect, v1_history, v1_stray, v1_check, v1_is_complete;
/* calls.c */
handler v1_calls, v1_answer_call;
/* files.c */
handler v1_files, v1_download, v1_upload;
