/* The dashboard: the files of one page, inside this program. They are for everybody; what the page then asks for
 * needs a token like any request. */
#include "doors.h"

#include "text.h"

#include <stdio.h>

/* @name_begin and @name_end are around the content of dashboard/@file. */
#define EMBED(name, file)                                                                                          \
	__asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"" DASHBOARD_FILES "/" file "\"\n" #name         \
		"_end:\n.byte 0\n.popsection");                                                                    \
	extern const char name##_begin[] __attribute__((visibility("hidden"))),                                    \
		name##_end[] __attribute__((visibility("hidden")))

EMBED(dash_index, "index.html");
EMBED(dash_frame, "frame.html");
EMBED(dash_frame_style, "frame.css");
EMBED(dash_frame_script, "frame.js");
EMBED(dash_style, "style.css");
EMBED(dash_icon, "icon.svg");
EMBED(dash_theme, "theme.js");
EMBED(dash_app, "app.js");
EMBED(dash_api, "api.js");
EMBED(dash_dom, "dom.js");
EMBED(dash_overview, "overview.js");
EMBED(dash_load, "load.js");
EMBED(dash_session, "session.js");
EMBED(dash_cells, "cells.js");
EMBED(dash_output, "output.js");
EMBED(dash_prompt, "prompt.js");
EMBED(dash_tree, "tree.js");
EMBED(dash_files, "files.js");
EMBED(dash_changes, "changes.js");
EMBED(dash_calls, "calls.js");
EMBED(dash_uplot, "uplot/uplot.js");
EMBED(dash_uplot_style, "uplot/uplot.css");
EMBED(dash_uplot_license, "uplot/LICENSE");

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

struct file {
	const char *name, *type, *begin, *end;
};

#define FILE_OF(file, kind, symbol)                                                                                \
	{                                                                                                          \
		.name = (file), .type = (kind), .begin = symbol##_begin, .end = symbol##_end                       \
	}

static const struct file page = FILE_OF("", HTML, dash_index);
static const struct file frame = FILE_OF("frame.html", HTML, dash_frame);
static const struct file files[] = {
	FILE_OF("frame.css", STYLE, dash_frame_style),
	FILE_OF("frame.js", SCRIPT, dash_frame_script),
	FILE_OF("style.css", STYLE, dash_style),
	FILE_OF("icon.svg", "image/svg+xml", dash_icon),
	FILE_OF("theme.js", SCRIPT, dash_theme),
	FILE_OF("app.js", SCRIPT, dash_app),
	FILE_OF("api.js", SCRIPT, dash_api),
	FILE_OF("dom.js", SCRIPT, dash_dom),
	FILE_OF("overview.js", SCRIPT, dash_overview),
	FILE_OF("load.js", SCRIPT, dash_load),
	FILE_OF("session.js", SCRIPT, dash_session),
	FILE_OF("cells.js", SCRIPT, dash_cells),
	FILE_OF("output.js", SCRIPT, dash_output),
	FILE_OF("prompt.js", SCRIPT, dash_prompt),
	FILE_OF("tree.js", SCRIPT, dash_tree),
	FILE_OF("files.js", SCRIPT, dash_files),
	FILE_OF("changes.js", SCRIPT, dash_changes),
	FILE_OF("calls.js", SCRIPT, dash_calls),
	FILE_OF("uplot.js", SCRIPT, dash_uplot),
	FILE_OF("uplot.css", STYLE, dash_uplot_style),
	FILE_OF("uplot.LICENSE", "text/plain; charset=utf-8", dash_uplot_license),
};

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
	file_answer(exchange, &page, PAGE_POLICY);
}

static void file_begin(struct exchange *exchange)
{
	const char *name = exchange_path(exchange, "file");

	if (strcmp(name, frame.name) == 0) {
		file_answer(exchange, &frame, FRAME_POLICY);
		return;
	}
	if (strcmp(name, "unseen.js") == 0) {
		unseen_answer(exchange);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (strcmp(name, files[i].name) == 0) {
			file_answer(exchange, &files[i], PAGE_POLICY);
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
