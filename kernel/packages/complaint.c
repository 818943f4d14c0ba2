/* Word by word. An address is a word with "://" in it, and its host is not said alone, either: index, proxy and
 * mirrors are the operator's. */
#include "complaint.h"

#include <ctype.h>
#include <stdio.h>

#define HOSTS_MAX 32
#define HOST_MIN 4 /* shorter ones are parts of ordinary words */

struct hosts {
	struct bytes all[HOSTS_MAX];
	size_t n;
};

struct out {
	char *text;
	size_t size, at;
};

static void put(struct out *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size && out->at + 1 < out->size; i++)
		out->text[out->at++] = (char)((unsigned char)text[i] < ' ' && text[i] != '\n' ? '?' : text[i]);
	out->text[out->at] = '\0';
}

static bool is_border(char c)
{
	return !c || isspace((unsigned char)c) || strchr("`'\"()<>,;|", c);
}

/* An address goes on where other words end: its password may have any of these. */
static size_t word_size(const char *text)
{
	size_t n = 0;

	while (!is_border(text[n]))
		n++;
	if (!memmem(text, n, "://", 3))
		return n;
	n = strcspn(text, " \t\r\n`'\"<>");
	while (strchr("),:;", text[n - 1]))
		n--;
	return n;
}

/* ---- addresses ---- */

/* Where the host begins and ends in what follows "://". */
static struct bytes host_in(const char *text, size_t size)
{
	size_t end = 0, at = 0;

	while (end < size && !strchr("/?#", text[end]))
		end++;
	for (size_t i = 0; i < end; i++)
		if (text[i] == '@')
			at = i + 1;
	for (size_t i = at; i < end; i++)
		if (text[i] == ':')
			end = i;
	return (struct bytes){text + at, end - at};
}

static void hosts_add(struct hosts *hosts, const char *word, size_t size)
{
	const char *mark = memmem(word, size, "://", 3);
	struct bytes host;

	if (!mark || hosts->n == HOSTS_MAX)
		return;
	host = host_in(mark + 3, size - (size_t)(mark + 3 - word));
	if (host.size >= HOST_MIN)
		hosts->all[hosts->n++] = host;
}

static void hosts_add_all(struct hosts *hosts, const char *text)
{
	for (size_t n; *text; text += n + (text[n] != '\0')) {
		n = word_size(text);
		hosts_add(hosts, text, n);
	}
}

static bool names_host(const struct hosts *hosts, const char *word, size_t size)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (memmem(word, size, hosts->all[i].data, hosts->all[i].size))
			return true;
	return false;
}

/* ---- what is told ---- */

/* "--option=/a/file" has a path, too. */
static const char *path_in(const char *word, size_t size)
{
	const char *slash = memchr(word, '/', size);

	while (slash && slash > word && slash[-1] != '=' && slash[-1] != ':' && slash[-1] != '@')
		slash = memchr(slash + 1, '/', size - (size_t)(slash + 1 - word));
	return slash && slash + 1 < word + size ? slash : NULL;
}

static void put_word(struct out *out, const struct hosts *hosts, const char *word, size_t size)
{
	static const char address[] = "the index", file[] = "a file";
	const char *path = path_in(word, size);

	if (memmem(word, size, "://", 3) || names_host(hosts, word, size)) {
		put(out, address, strlen(address));
	} else if (path) {
		put(out, word, (size_t)(path - word));
		put(out, file, strlen(file));
	} else {
		put(out, word, size);
	}
}

void complaint_tell(char *out_text, size_t size, const char *log)
{
	struct out out = {.text = out_text, .size = size};
	struct hosts hosts = {.n = 0};

	out_text[0] = '\0';
	hosts_add_all(&hosts, log);
	for (size_t i = 0; environ[i]; i++)
		hosts_add_all(&hosts, environ[i]);
	for (size_t n; *log; log += n + (log[n] != '\0')) {
		n = word_size(log);
		put_word(&out, &hosts, log, n);
		put(&out, log + n, log[n] != '\0');
	}
}

/* ---- what is logged ---- */

static void log_word(const char *word, size_t size)
{
	const char *mark = memmem(word, size, "://", 3), *host = mark ? mark + 3 : word;

	if (mark)
		host = host_in(host, size - (size_t)(host - word)).data;
	if (mark && host > mark + 3)
		fprintf(stderr, "%.*s***@%.*s", (int)(mark + 3 - word), word, (int)(word + size - host), host);
	else
		fprintf(stderr, "%.*s", (int)size, word);
}

void complaint_log(const char *log)
{
	fprintf(stderr, "lair-builder: uv says: ");
	for (size_t n; *log; log += n + (log[n] != '\0')) {
		n = word_size(log);
		log_word(log, n);
		if (log[n])
			(void)fputc((unsigned char)log[n] < ' ' && log[n] != '\n' ? '?' : log[n], stderr);
	}
	(void)fputc('\n', stderr);
}
