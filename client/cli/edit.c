/* libedit, reading its characters through our own function: that waits for the terminal and for signals at once, so
 * that Ctrl-C can neither be missed nor come at a bad time. The history is one file for all sessions, the user's
 * alone. */
#include "edit.h"

#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <wchar.h>

#define HISTORY_LENGTH 2000

struct edit {
	EditLine *el;
	History *history;
	HistEvent event;
	char *history_path; /* NULL: nowhere to keep it */
	const char *prompt;
	int signals;
	bool interrupted, ended;
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

/* Returns as read(): 1, 0 at the end, or -1. */
static int byte_read(struct edit *edit, EditLine *el, char *byte)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = edit->signals, .events = POLLIN}};

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			/* The window has changed its size, or we are back from Ctrl-Z. */
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

static int character_read(EditLine *el, wchar_t *out)
{
	struct edit *edit = NULL;
	mbstate_t state = {0};
	char byte;

	el_get(el, EL_CLIENTDATA, &edit);
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

struct edit *edit_free(struct edit *edit)
{
	if (!edit)
		return NULL;
	if (edit->history_path)
		history_keep(edit);
	if (edit->el)
		el_end(edit->el);
	if (edit->history)
		history_end(edit->history);
	free(edit->history_path);
	free(edit);
	return NULL;
}

static void keys_set(struct edit *edit)
{
	el_set(edit->el, EL_CLIENTDATA, edit);
	el_set(edit->el, EL_PROMPT, prompt_of);
	el_set(edit->el, EL_EDITOR, "emacs");
	el_set(edit->el, EL_SIGNAL, 1);
	el_set(edit->el, EL_GETCFN, character_read);
	el_set(edit->el, EL_BIND, "^I", "ed-insert", NULL);
	el_set(edit->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_set(edit->el, EL_HIST, history, edit->history);
	el_source(edit->el, NULL); /* ~/.editrc: the user's own keys */
}

int edit_new(struct edit **editp, int signals)
{
	struct edit *edit = calloc(1, sizeof(*edit));

	if (!edit)
		return -ENOMEM;
	edit->signals = signals;
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

int edit_line(struct edit *edit, const char *prompt, const char **linep)
{
	const char *line;
	int n = 0;

	edit->prompt = prompt;
	edit->interrupted = false;
	line = edit->ended ? NULL : el_gets(edit->el, &n);
	if (edit->interrupted && !edit->ended) {
		fputs("^C\n", stdout);
		return EDIT_E_INTERRUPTED;
	}
	if (!line || n <= 0)
		return EDIT_E_EOF;
	if (line[strspn(line, " \t\r\n")] != '\0')
		(void)history(edit->history, &edit->event, H_ENTER, line);
	*linep = line;
	return 0;
}
