/* The dashboard: the files of one page, inside this program. They are for everybody; what the page then asks for
 * needs a token like any request. */
#include "doors.h"

#include "base/embed.h"
#include "base/text.h"

#include <stdio.h>

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

/* Nothing comes from elsewhere, and nothing that the page is told ever becomes a script. */
#define PAGE_POLICY                                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "      \
	"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                          \
	"require-trusted-types-for 'script'; trusted-types 'none'"

/* HTML that a cell has shown: a document without an origin. It may look as it likes, and do nothing. */
#define FRAME_POLICY                                                                                               \
	"sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "         \
	"img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

/* symbol, path below dashboard/, name in the address, type */
#define FILES(F)                                                                                                   \
	F(dash_index, "index.html", "", HTML)                                                                      \
	F(dash_frame, "frame.html", "frame.html", HTML)                                                            \
	F(dash_frame_style, "frame.css", "frame.css", STYLE)                                                       \
	F(dash_frame_script, "frame.js", "frame.js", SCRIPT)                                                       \
	F(dash_style, "style.css", "style.css", STYLE)                                                             \
	F(dash_icon, "icon.svg", "icon.svg", "image/svg+xml")                                                      \
	F(dash_theme, "theme.js", "theme.js", SCRIPT)                                                              \
	F(dash_app, "app.js", "app.js", SCRIPT)                                                                    \
	F(dash_api, "api.js", "api.js", SCRIPT)                                                                    \
	F(dash_dom, "dom.js", "dom.js", SCRIPT)                                                                    \
	F(dash_overview, "overview.js", "overview.js", SCRIPT)                                                     \
	F(dash_load, "load.js", "load.js", SCRIPT)                                                                 \
	F(dash_session, "session.js", "session.js", SCRIPT)                                                        \
	F(dash_cells, "cells.js", "cells.js", SCRIPT)                                                              \
	F(dash_output, "output.js", "output.js", SCRIPT)                                                           \
	F(dash_prompt, "prompt.js", "prompt.js", SCRIPT)                                                           \
	F(dash_tree, "tree.js", "tree.js", SCRIPT)                                                                 \
	F(dash_files, "files.js", "files.js", SCRIPT)                                                              \
	F(dash_changes, "changes.js", "changes.js", SCRIPT)                                                        \
	F(dash_calls, "calls.js", "calls.js", SCRIPT)                                                              \
	F(dash_uplot, "uplot/uplot.js", "uplot.js", SCRIPT)                                                        \
	F(dash_uplot_style, "uplot/uplot.css", "uplot.css", STYLE)                                                 \
	F(dash_uplot_license, "uplot/LICENSE", "uplot.LICENSE", "text/plain; charset=utf-8")
#define FILE_EMBED(symbol, path, name, type) EMBED(symbol, DASHBOARD_FILES "/" path);
#define FILE_ROW(symbol, path, name, type) {name, type, symbol, symbol##_end},

FILES(FILE_EMBED)

static const struct file {
	const char *name, *type, *begin, *end;
} files[] = {FILES(FILE_ROW)};

static void page_headers(struct exchange *exchange, const char *policy)
{
	answer_header(exchange, "Content-Security-Policy", policy);
	answer_header(exchange, "Referrer-Policy", "no-referrer");
	answer_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
	answer_header(exchange, "X-DNS-Prefetch-Control", "off");
	answer_header(exchange, "Permissions-Policy", "camera=(), microphone=(), geolocation=()");
}

static void file_answer(struct exchange *exchange, const struct file *file, const char *policy)
{
	struct lair_text text = {.data = file->begin, .size = (size_t)(file->end - file->begin)};

	page_headers(exchange, policy);
	answer_static(exchange, 200, file->type, text);
}

/* The characters that are shown as their numbers, from the table that the terminal has, too. */
static void unseen_answer(struct exchange *exchange)
{
	char script[1024] = "export const UNSEEN = /[";
	size_t size = strlen(script);

	for (size_t i = 0; i < n_text_unseen; i++)
		size += (size_t)snprintf(script + size, sizeof(script) - size, "\\u%04x-\\u%04x",
					 text_unseen[i].first, text_unseen[i].last);
	snprintf(script + size, sizeof(script) - size, "]/gu;\n");
	page_headers(exchange, PAGE_POLICY);
	answer_text(exchange, 200, SCRIPT, lair_text(script));
}

static void page_begin(struct exchange *exchange)
{
	file_answer(exchange, &files[0], PAGE_POLICY);
}

static void file_begin(struct exchange *exchange)
{
	const char *name = exchange_path(exchange, "file");

	if (strcmp(name, "unseen.js") == 0) {
		unseen_answer(exchange);
		return;
	}
	for (size_t i = 1; i < ARRAY_SIZE(files); i++)
		if (strcmp(name, files[i].name) == 0) {
			file_answer(exchange, &files[i], files[i].begin == dash_frame ? FRAME_POLICY : PAGE_POLICY);
			return;
		}
	answer_problem(exchange, 404, "not_found", "the dashboard has no such file");
}

static const struct route routes[] = {
	{.method = "GET",
	 .path = "/",
	 .begin = page_begin,
	 .summary = "The dashboard.",
	 .flags = ROUTE_OPEN | ROUTE_HIDDEN | ROUTE_ASIDE},
	{.method = "GET",
	 .path = "/dashboard/{file}",
	 .begin = file_begin,
	 .summary = "What the dashboard is made of.",
	 .flags = ROUTE_OPEN | ROUTE_HIDDEN | ROUTE_ASIDE},
};

const struct door dashboard_door = {.name = "dashboard", .routes = routes, .n_routes = ARRAY_SIZE(routes)};
