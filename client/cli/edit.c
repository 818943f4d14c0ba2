/* libedit, reading its characters through our own function: that waits for the terminal and for signals at once, so
 * that Ctrl-C can neither be missed nor come at a bad time. The history is one file for all sessions, the user's
 * alone. */
#include "edit.h"

#include "base/text.h"
#include "picture.h"
#include "terminal.h"

#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <wchar.h>

#define HISTORY_LENGTH 2000
/* Stands around the parts of a prompt that take no room. */
#define PROMPT_ESCAPE '\1'
#define PROMPT_WIDTH 4
#define PICTURES_QUERY "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\"
#define PICTURES_ANSWER "Gi=31;OK\033\\"

struct edit {
	EditLine *el;
	History *history;
	HistEvent event;
	char *history_path; /* NULL: nowhere to keep it */
	const char *prompt;
	unsigned indent; /* so many blanks are put in, as if they were typed */
	int signals;
	bool interrupted, ended;
	bool pastes; /* the terminal was asked to mark pasted text */
	bool asked;  /* and was asked whether it shows pictures */
	struct terminal *terminal;
	void (*on_tab)(void *userdata, struct lair_text before, struct edit_choice *choice);
	int (*on_idle)(void *userdata, bool *toldp);
	void *userdata;
};

static char *prompt_of(EditLine *el)
{
	struct edit *edit = NULL;

	el_get(el, EL_CLIENTDATA, &edit);
	return (char *)(uintptr_t)edit->prompt;
}

/* ---- characters ---- */

static bool signal_taken(struct edit *edit)
{
	struct signalfd_siginfo info;

	while (read(edit->signals, &info, sizeof(info)) == sizeof(info)) {
		edit->interrupted = true;
		edit->ended |= info.ssi_signo != SIGINT;
	}
	return edit->interrupted;
}

/* Notices that are printed meanwhile stand above the line. */
static int idle(struct edit *edit, EditLine *el)
{
	bool told = false;
	int wait = edit->on_idle ? edit->on_idle(edit->userdata, &told) : -1;

	if (told)
		el_set(el, EL_REFRESH);
	return wait;
}

/* Returns as read(): 1, 0 at the end, or -1. */
static int byte_read(struct edit *edit, EditLine *el, char *byte)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = edit->signals, .events = POLLIN}};

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), idle(edit, el)) < 0) {
			/* The window has changed its size, or the user came back after Ctrl-Z. */
			if (errno != EINTR)
				return -1;
			el_set(el, EL_REFRESH);
			continue;
		}
		if (fds[1].revents && signal_taken(edit))
			return -1;
		if (fds[0].revents)
			return (int)read(STDIN_FILENO, byte, 1);
	}
}

/* Asks the terminal once whether it can show a picture of one pixel: here, where its answer is not echoed. A
 * multiplexer shows no pictures. */
static void pictures_ask(struct edit *edit)
{
	if (edit->asked || picture_multiplexed() || !edit->pastes || edit->terminal->graphics != GRAPHICS_NONE)
		return;
	edit->asked = true;
	(void)write_all(STDOUT_FILENO, lair_text(PICTURES_QUERY));
}

static int character_read(EditLine *el, wchar_t *out)
{
	struct edit *edit = NULL;
	mbstate_t state = {0};
	char byte;

	el_get(el, EL_CLIENTDATA, &edit);
	pictures_ask(edit);
	if (edit->indent > 0) {
		edit->indent--;
		*out = L' ';
		return 1;
	}
	for (int i = 0; i < (int)MB_CUR_MAX; i++) {
		int n = byte_read(edit, el, &byte);
		size_t r;

		if (n <= 0)
			return n;
		r = mbrtowc(out, &byte, 1, &state);
		if (r != (size_t)-1 && r != (size_t)-2)
			return 1;
		if (r == (size_t)-1)
			break;
	}
	*out = L'?';
	return 1;
}

/* ---- Tab ---- */

/* How many bytes at the beginning are the same in all choices. */
static size_t common_size(const struct edit_choice *choice)
{
	size_t size = strlen(choice->texts[0]);

	for (size_t i = 1; i < choice->n; i++) {
		size_t same = 0;

		while (same < size && choice->texts[i][same] == choice->texts[0][same])
			same++;
		size = same;
	}
	while (size > 0 && (choice->texts[0][size] & 0xc0) == 0x80)
		size--;
	return size;
}

static const char *characters_skip(const char *text, size_t n)
{
	for (; n > 0 && *text; n--) {
		text++;
		while ((*text & 0xc0) == 0x80)
			text++;
	}
	return text;
}

static size_t characters_in(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* How many columns of a terminal @text takes. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	wchar_t wide;
	int size;

	for (; *text; text += size) {
		size = mbtowc(&wide, text, strlen(text));
		width += size > 0 ? (size_t)MAX(wcwidth(wide), 0) : 1;
		size = MAX(size, 1);
	}
	return width;
}

static size_t widest_of(const struct edit_choice *choice)
{
	size_t widest = 0;

	for (size_t i = 0; i < choice->n; i++)
		widest = MAX(widest, width_of(text_tame(choice->texts[i])));
	return widest;
}

/* In columns, from top to bottom, as far as the terminal has room for them and for the line that is typed. */
static void choices_list(const struct edit_choice *choice)
{
	size_t widest = widest_of(choice), across, down, n = choice->n;
	unsigned columns, rows;

	terminal_size(&columns, &rows);
	across = MAX((columns ? columns : 80) / (widest + 2), (size_t)1);
	down = MIN((n + across - 1) / across, (size_t)MAX(rows ? rows : 24, 6U) - 3);
	n = MIN(n, down * across);
	putchar('\n');
	for (size_t row = 0; row < down; row++) {
		for (size_t i = row; i < n; i += down)
			printf("%s%*s", choice->texts[i],
			       i + down < n ? (int)(widest + 2 - width_of(choice->texts[i])) : 0, "");
		putchar('\n');
	}
	if (n < choice->n)
		printf("and %zu more: type some of it\n", choice->n - n);
	fflush(stdout);
}

/* If a part of @text stands behind the cursor already, the cursor only moves past it. */
static int insert(EditLine *el, const char *text)
{
	const LineInfo *line = el_line(el);
	size_t size = 0, left = (size_t)(line->lastchar - line->cursor);

	while (size < left && text[size] && text[size] == line->cursor[size])
		size++;
	if (text[size])
		return el_insertstr(el, text);
	return el_cursor(el, (int)characters_in(text)) > 0 ? 0 : -1;
}

/* The beginning that all choices have in common is put in. If there is none, they are listed. */
static unsigned char choose(EditLine *el, const struct edit_choice *choice)
{
	size_t size = common_size(choice);
	const char *rest = characters_skip(choice->texts[0], choice->typed);
	char *more =
		rest < choice->texts[0] + size ? strndup(rest, (size_t)(choice->texts[0] + size - rest)) : NULL;
	int r = more ? insert(el, text_tame(more)) : -1;

	free(more);
	if (r == 0)
		return CC_REFRESH;
	if (choice->n == 1)
		return CC_NORM;
	choices_list(choice);
	return CC_REDISPLAY;
}

/* If more keys wait, they are pasted: nobody types that fast. */
static bool pasting(void)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&more, 1, 0) > 0;
}

/* Whether only white space stands before the cursor in its line. */
static bool blanks_before(const LineInfo *line)
{
	const char *at = line->cursor;

	while (at > line->buffer && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return at == line->buffer || at[-1] == '\n';
}

/* Deletes up to four blanks of an indentation, else one character. */
static unsigned char backspace(EditLine *el, int key)
{
	const LineInfo *line = el_line(el);
	int n = 0;

	if (line->cursor == line->buffer)
		return CC_ERROR;
	while (blanks_before(line) && n < 4 && line->cursor - n > line->buffer && line->cursor[-n - 1] == ' ')
		n++;
	el_deletestr(el, MAX(n, 1));
	return CC_REFRESH;
}

static unsigned char tab(EditLine *el, int key)
{
	const LineInfo *line = el_line(el);
	struct lair_text before = {.data = line->buffer, .size = (size_t)(line->cursor - line->buffer)};
	struct edit_choice choice = {.n = 0};
	unsigned char done = CC_ERROR;
	struct edit *edit = NULL;
	bool complete = true;

	el_get(el, EL_CLIENTDATA, &edit);
	if (pasting())
		return el_insertstr(el, "\t") == 0 ? CC_REFRESH : CC_ERROR;
	if (blanks_before(line))
		return el_insertstr(el, "    ") == 0 ? CC_REFRESH : CC_ERROR;
	edit->on_tab(edit->userdata, before, &choice);
	for (size_t i = 0; i < choice.n; i++)
		complete &= choice.texts[i] != NULL;
	if (choice.n > 0 && complete)
		done = choose(el, &choice);
	for (size_t i = 0; i < choice.n; i++)
		free(choice.texts[i]);
	return done;
}

/* ---- pastes ---- */

/* A terminal that was asked to puts these around pasted text. */
#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"

struct paste {
	char *text;
	size_t size, allocated;
};

static bool paste_add(struct paste *paste, char byte)
{
	char *grown;

	if (paste->size + 1 >= paste->allocated) {
		grown = realloc(paste->text, 2 * paste->allocated + 1024);
		if (!grown)
			return false;
		paste->text = grown;
		paste->allocated = 2 * paste->allocated + 1024;
	}
	/* A NUL would end the text. No text that was copied contains one. */
	if (byte != '\0')
		paste->text[paste->size++] = byte;
	paste->text[paste->size] = '\0';
	return true;
}

static bool paste_ended(struct paste *paste)
{
	size_t end = sizeof(PASTE_END) - 1;

	if (paste->size < end || memcmp(paste->text + paste->size - end, PASTE_END, end) != 0)
		return false;
	paste->size -= end;
	return true;
}

/* Each line but the last ends with one newline, whatever the terminal made of it. The last has none, because the
 * user must press Enter. */
static void paste_tidy(struct paste *paste)
{
	size_t size = 0;

	for (size_t i = 0; i < paste->size; i++) {
		if (paste->text[i] == '\n' && i > 0 && paste->text[i - 1] == '\r')
			continue;
		paste->text[size++] = (char)(paste->text[i] == '\r' ? '\n' : paste->text[i]);
	}
	while (size > 0 && paste->text[size - 1] == '\n')
		size--;
	paste->text[size] = '\0';
	paste->size = size;
}

static unsigned char paste_insert(EditLine *el, struct paste *paste)
{
	struct lair_text text;
	char *mended = NULL;
	int r;

	paste_tidy(paste);
	text = (struct lair_text){.data = paste->text, .size = paste->size};
	/* text_mend changes no newlines, so these stay as they were pasted. */
	r = paste->size > 0 ? text_mend(&text, &mended) : -ENODATA;
	if (!r) {
		mended[text.size] = '\0';
		r = el_insertstr(el, mended);
	}
	free(mended);
	return r == 0 ? CC_REFRESH : CC_ERROR;
}

/* The whole paste goes into the line that is edited, with its newlines, even empty lines and tabs. So it is one
 * cell. */
static unsigned char paste(EditLine *el, int key)
{
	struct paste paste = {.text = NULL};
	struct edit *edit = NULL;
	unsigned char done = CC_EOF;
	char byte;

	el_get(el, EL_CLIENTDATA, &edit);
	while (byte_read(edit, el, &byte) == 1 && paste_add(&paste, byte)) {
		if (paste_ended(&paste)) {
			done = paste_insert(el, &paste);
			break;
		}
	}
	free(paste.text);
	return done;
}

/* In vi's mode Escape is a command, so no key sequence can begin with it. */
static bool pastes_told(EditLine *el)
{
	const char *terminal = getenv("TERM"), *mode = NULL;

	return terminal && strcmp(terminal, "dumb") != 0 && el_get(el, EL_EDITOR, &mode) == 0 && mode &&
	       strcmp(mode, "emacs") == 0;
}

static void pastes_ask(const struct edit *edit, bool on)
{
	if (!edit->pastes)
		return;
	fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
	fflush(stdout);
}

/* ---- pictures ---- */

/* Reads the terminal's answer about pictures, up to its end: ESC \. */
static unsigned char answer(EditLine *el, int key)
{
	struct edit *edit = NULL;
	char text[64] = "", byte = '\0';
	size_t size = 0;

	el_get(el, EL_CLIENTDATA, &edit);
	while (size < sizeof(text) - 1 && !(byte == '\\' && size > 1) && byte_read(edit, el, &byte) == 1)
		text[size++] = byte;
	if (edit->asked && strncmp(text, PICTURES_ANSWER, strlen(PICTURES_ANSWER)) == 0)
		edit->terminal->graphics = GRAPHICS_KITTY;
	return CC_NORM;
}

/* ---- history ---- */

static int directories_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST) {
			*slash = '/';
			return -errno;
		}
		*slash = '/';
	}
	return 0;
}

static char *history_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	if (state && *state == '/')
		n = asprintf(&path, "%s/lair/history", state);
	else if (home && *home == '/')
		n = asprintf(&path, "%s/.local/state/lair/history", home);
	else
		return NULL;
	if (n < 0 || directories_make(path) < 0) {
		free(n < 0 ? NULL : path);
		return NULL;
	}
	return path;
}

static void history_keep(struct edit *edit)
{
	mode_t mask = umask(077);

	(void)history(edit->history, &edit->event, H_SAVE, edit->history_path);
	(void)umask(mask);
}

/* ---- life ---- */

/* The terminal becomes as it was. The editor itself stays until the process ends, because el_end would lose what
 * EL_ADDFN has copied. A leak checker finds it in this variable. */
static void editor_leave(EditLine *el)
{
	static EditLine *volatile last;

	last = el;
	el_reset(last);
}

struct edit *edit_free(struct edit *edit)
{
	if (!edit)
		return NULL;
	if (edit->history_path)
		history_keep(edit);
	if (edit->el)
		editor_leave(edit->el);
	if (edit->history)
		history_end(edit->history);
	free(edit->history_path);
	free(edit);
	return NULL;
}

static void keys_set(struct edit *edit)
{
	el_set(edit->el, EL_CLIENTDATA, edit);
	el_set(edit->el, EL_PROMPT_ESC, prompt_of, PROMPT_ESCAPE);
	el_set(edit->el, EL_EDITOR, "emacs");
	el_set(edit->el, EL_SIGNAL, 1);
	el_set(edit->el, EL_GETCFN, character_read);
	el_set(edit->el, EL_ADDFN, "lair-complete", "What may stand here", tab);
	el_set(edit->el, EL_BIND, "^I", "lair-complete", NULL);
	el_set(edit->el, EL_ADDFN, "lair-backspace", "A character, or an indentation", backspace);
	el_set(edit->el, EL_BIND, "^?", "lair-backspace", NULL);
	el_set(edit->el, EL_BIND, "^H", "lair-backspace", NULL);
	el_set(edit->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_set(edit->el, EL_HIST, history, edit->history);
	el_set(edit->el, EL_ADDFN, "lair-paste", "What is pasted, as it is", paste);
	el_source(edit->el, NULL); /* ~/.editrc: the user's own keys */
	edit->pastes = pastes_told(edit->el);
	el_set(edit->el, EL_ADDFN, "lair-answer", "What the terminal answers", answer);
	if (edit->pastes) {
		el_set(edit->el, EL_BIND, PASTE_BEGIN, "lair-paste", NULL);
		el_set(edit->el, EL_BIND, "\033_", "lair-answer", NULL);
	}
}

int edit_new(struct edit **editp, int signals, struct terminal *terminal,
	     void (*on_tab)(void *userdata, struct lair_text before, struct edit_choice *choice), void *userdata)
{
	struct edit *edit = calloc(1, sizeof(*edit));

	if (!edit)
		return -ENOMEM;
	edit->signals = signals;
	edit->terminal = terminal;
	edit->on_tab = on_tab;
	edit->userdata = userdata;
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
	edit->el = el_init("lair", stdin, stdout, stderr);
	edit->history = history_init();
	if (!edit->el || !edit->history) {
		edit_free(edit);
		return -ENOMEM;
	}
	keys_set(edit);
	(void)history(edit->history, &edit->event, H_SETSIZE, HISTORY_LENGTH);
	(void)history(edit->history, &edit->event, H_SETUNIQUE, 1);
	edit->history_path = history_path();
	if (edit->history_path)
		(void)history(edit->history, &edit->event, H_LOAD, edit->history_path);
	*editp = edit;
	return 0;
}

int edit_line(struct edit *edit, const char *prompt, unsigned indent, const char **linep)
{
	const char *line;
	int n = 0;

	edit->prompt = prompt;
	/* Pasted text has its own indentation. Only where pastes are marked is it known for sure what was
	 * pasted. */
	edit->indent = edit->pastes && !pasting() ? indent : 0;
	edit->interrupted = false;
	pastes_ask(edit, true);
	line = edit->ended ? NULL : el_gets(edit->el, &n);
	pastes_ask(edit, false);
	if (edit->interrupted && !edit->ended) {
		fputs("^C\n", stdout);
		return EDIT_E_INTERRUPTED;
	}
	if (!line || n <= 0)
		return EDIT_E_EOF;
	*linep = line;
	return 0;
}

void edit_on_idle(struct edit *edit, int (*on_idle)(void *userdata, bool *toldp))
{
	edit->on_idle = on_idle;
}

/* How many rows of the terminal the cursor is below the row where the prompt began. */
static unsigned rows_above(const LineInfo *line)
{
	unsigned columns, rows, row = 0;
	size_t column = PROMPT_WIDTH;

	terminal_size(&columns, &rows);
	for (const char *at = line->buffer; at < line->cursor;) {
		char character[8] = "";
		size_t size = MAX(text_character_size(at, (size_t)(line->cursor - at)), (size_t)1);

		memcpy(character, at, size);
		column += *at == '\n' ? columns : width_of(character);
		row += columns > 0 && column >= columns;
		column = columns > 0 && column >= columns ? 0 : column;
		at += size;
	}
	return row;
}

void edit_aside(struct edit *edit)
{
	unsigned rows = rows_above(el_line(edit->el));

	if (rows > 0)
		printf("\033[%uA", rows);
	fputs("\r\033[J", stdout);
	fflush(stdout);
}

void edit_remember(struct edit *edit, const char *text)
{
	if (text[strspn(text, " \t\r\n")] != '\0')
		(void)history(edit->history, &edit->event, H_ENTER, text);
}
