/* Files, down. A file outside of the workspace is first copied into it. */
#include "e2b.h"

#include <stdlib.h>

struct e2b_download {
	struct work work;
	struct download download;
	char *path;		  /* in the workspace */
	char staged[STAGED_SIZE]; /* it is a copy of that name */
};

static void download_finish(struct work *work)
{
	struct e2b_download *it = (struct e2b_download *)work;

	staged_remove(work, it->staged);
	free(it->path);
}

static void download_first(struct exchange *exchange)
{
	if (lair_outcome(exchange->call))
		e2b_refuse(exchange);
	else
		download_begin(exchange);
}

static void download_start(struct exchange *exchange)
{
	struct e2b_download *it = exchange->state;

	it->download.get.session = it->work.sandbox->session;
	it->download.get.path = lair_text(it->path);
	download_of(exchange, &it->download);
	exchange_wait_any(exchange, it->path ? download_ask(exchange) : -ENOMEM, download_first);
}

static void download_staged(struct exchange *exchange)
{
	struct e2b_download *it = exchange->state;

	if (!staged_well(exchange))
		return;
	it->path = strdup(it->staged);
	download_start(exchange);
}

static void download_branched(struct exchange *exchange)
{
	struct e2b_download *it = exchange->state;
	json_t *asked;

	staged_name(it->staged);
	asked = json_pack("{s:s, s:s}", "source", exchange_query(exchange, "path"), "target", it->staged);
	exchange_wait_any(exchange, files_cell(it->work.sandbox, &exchange->call, it->work.branch, "stage", asked),
			  download_staged);
}

static void file_get_found(struct exchange *exchange)
{
	struct e2b_download *it = exchange->state;
	const char *path = exchange_query(exchange, "path");

	it->work.finish = download_finish;
	if (!path || !*path) {
		answer_problem(exchange, 400, "bad_request", "there is no path");
		return;
	}
	it->path = path_inside(it->work.sandbox, path);
	if (it->path)
		download_start(exchange);
	else
		sandbox_branch(exchange, "f", download_branched);
}

void file_get_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct e2b_download), file_get_found);
}
