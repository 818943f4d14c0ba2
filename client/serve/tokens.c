/* The file of tokens. Secrets are random, so a fast hash of them is as good as a slow one. */
#include "tokens.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define FILE_MAX ((off_t)4 << 20)
#define HEAD                                                                                                       \
	"# Who may use `lair serve`: a name, the hash of a secret, and what it is for. Written by `lair token`.\n"

void token_hash(unsigned char hash[static TOKEN_HASH_SIZE], const char *secret)
{
	(void)crypto_generichash(hash, TOKEN_HASH_SIZE, (const unsigned char *)secret, strlen(secret), NULL, 0);
}

/* Names are parts of names of sessions. */
static bool name_valid(const char *name, size_t size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return size > 0 && size <= TOKEN_NAME_MAX && strspn(name, letters) >= size &&
	       strspn(name, "0123456789") < size;
}

static struct token *token_free(struct token *token)
{
	if (!token)
		return NULL;
	for (size_t i = 0; token->profiles && token->profiles[i]; i++)
		free(token->profiles[i]);
	free(token->profiles);
	free(token->name);
	free(token);
	return NULL;
}

struct token *tokens_free(struct token *tokens)
{
	while (tokens) {
		struct token *next = tokens->next;

		token_free(tokens);
		tokens = next;
	}
	return NULL;
}

/* a,b,c */
static bool profiles_take(struct token *token, const char *list)
{
	size_t n = 1;

	if (token->profiles)
		return false;
	for (const char *at = list; *at; at++)
		n += *at == ',';
	token->profiles = calloc(n + 1, sizeof(*token->profiles));
	for (size_t i = 0; token->profiles && i < n; i++) {
		size_t size = strcspn(list, ",");

		if (size == 0)
			return false;
		token->profiles[i] = strndup(list, size);
		list += size + (list[size] == ',');
	}
	return token->profiles;
}

static bool rate_take(double *ratep, const char *text)
{
	char *end;

	*ratep = strtod(text, &end);
	return *text >= '0' && *text <= '9' && !*end && isfinite(*ratep);
}

static bool setting_take(struct token *token, const char *word)
{
	if (strncmp(word, "profiles=", 9) == 0)
		return profiles_take(token, word + 9);
	if (strncmp(word, "sessions=", 9) == 0)
		return text_number(word + 9, &token->sessions);
	if (strncmp(word, "requests=", 9) == 0)
		return text_number(word + 9, &token->requests);
	return strncmp(word, "rate=", 5) == 0 && rate_take(&token->rate, word + 5);
}

static bool words_take(struct token *token, char *line)
{
	char *rest = NULL, *word = strtok_r(line, " \t\r", &rest);
	size_t size = 0;

	if (!word || !name_valid(word, strlen(word)))
		return false;
	token->name = strdup(word);
	word = strtok_r(NULL, " \t\r", &rest);
	if (!token->name || !word ||
	    sodium_hex2bin(token->hash, sizeof(token->hash), word, strlen(word), NULL, &size, NULL) ||
	    size != sizeof(token->hash))
		return false;
	while ((word = strtok_r(NULL, " \t\r", &rest)))
		if (!setting_take(token, word))
			return false;
	return true;
}

struct token *token_parse(const char *line)
{
	_cleanup_(freep) char *copy = strdup(line);
	struct token *token = calloc(1, sizeof(*token));

	if (!copy || !token || !words_take(token, copy))
		token = token_free(token);
	return token;
}

/* ---- the file ---- */

int tokens_path(char path[static 4096])
{
	const char *given = getenv("LAIR_TOKENS"), *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (given && *given)
		n = snprintf(path, 4096, "%s", given);
	else if (base && *base == '/')
		n = snprintf(path, 4096, "%s/lair/tokens", base);
	else
		n = snprintf(path, 4096, "%s/.config/lair/tokens", home ? home : "");
	return n < 0 || n >= 4096 ? -ENAMETOOLONG : 0;
}

static int why_set(char why[static TOKEN_WHY_SIZE], int error, const char *path, const char *what)
{
	snprintf(why, TOKEN_WHY_SIZE, "%.180s: %s", path, what);
	return error;
}

static int text_parse(struct token **tokensp, char *text, const char *path, char why[static TOKEN_WHY_SIZE])
{
	struct token **at = tokensp;
	char *rest = text, *line;
	char what[64];

	for (unsigned n = 1; (line = strsep(&rest, "\n")); n++) {
		if (line[strspn(line, " \t\r")] == '\0' || *line == '#')
			continue;
		*at = token_parse(line);
		if (!*at) {
			snprintf(what, sizeof(what), "line %u is no token", n);
			*tokensp = tokens_free(*tokensp);
			return why_set(why, -EINVAL, path, what);
		}
		at = &(*at)->next;
	}
	return 0;
}

static int fd_parse(struct token **tokensp, int fd, const char *path, struct stat *st,
		    char why[static TOKEN_WHY_SIZE])
{
	_cleanup_(freep) char *text = NULL;
	ssize_t size;

	if (fstat(fd, st) < 0)
		return why_set(why, -errno, path, strerror(errno));
	if (!S_ISREG(st->st_mode) || st->st_size > FILE_MAX || (st->st_mode & (S_IWGRP | S_IWOTH)) ||
	    (st->st_uid != geteuid() && st->st_uid != 0))
		return why_set(why, -EPERM, path, "it must be a file that only you, or root, can write to");
	text = malloc((size_t)st->st_size + 1);
	size = text ? pread(fd, text, (size_t)st->st_size, 0) : -1;
	if (size < 0)
		return why_set(why, text ? -errno : -ENOMEM, path, "it cannot be read");
	text[size] = '\0';
	if (memchr(text, '\0', (size_t)size))
		return why_set(why, -EINVAL, path, "it is no text");
	return text_parse(tokensp, text, path, why);
}

int tokens_read(struct token **tokensp, const char *path, struct stat *st, char why[static TOKEN_WHY_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;

	*tokensp = NULL;
	if (fd < 0)
		return why_set(why, -errno, path, strerror(errno));
	r = fd_parse(tokensp, fd, path, st, why);
	fd_close(fd);
	return r;
}

/* ---- changes ---- */

static void token_print(FILE *out, const struct token *token)
{
	char hash[2 * TOKEN_HASH_SIZE + 1];

	(void)sodium_bin2hex(hash, sizeof(hash), token->hash, sizeof(token->hash));
	fprintf(out, "%s %s", token->name, hash);
	for (size_t i = 0; token->profiles && token->profiles[i]; i++)
		fprintf(out, "%s%s", i ? "," : " profiles=", token->profiles[i]);
	if (token->sessions)
		fprintf(out, " sessions=%" PRIu64, token->sessions);
	if (token->requests)
		fprintf(out, " requests=%" PRIu64, token->requests);
	if (token->rate > 0)
		fprintf(out, " rate=%g", token->rate);
	fputc('\n', out);
}

/* In the place of the file, all at once. */
static int tokens_write(const char *path, const struct token *tokens, char why[static TOKEN_WHY_SIZE])
{
	char next[4200];
	int fd, r = 0;
	FILE *out;

	snprintf(next, sizeof(next), "%.4000s.%d", path, (int)getpid());
	fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		return why_set(why, -errno, next, strerror(errno));
	fputs(HEAD, out);
	for (; tokens; tokens = tokens->next)
		token_print(out, tokens);
	if (fflush(out) || fsync(fd))
		r = -errno;
	if (fclose(out) && !r)
		r = -errno;
	if (!r && rename(next, path) < 0)
		r = -errno;
	if (r) {
		(void)unlink(next);
		return why_set(why, r, path, strerror(-r));
	}
	return 0;
}

/* The file, made if it is not there, under a lock that ends when it is closed. It may be replaced during the
 * wait for the lock. */
static int locked_open(const char *path, char why[static TOKEN_WHY_SIZE])
{
	struct stat mine, there;

	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return why_set(why, -errno, path, strerror(errno));
		if (flock(fd, LOCK_EX) == 0 && fstat(fd, &mine) == 0 && stat(path, &there) == 0 &&
		    mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
			return fd;
		fd_close(fd);
	}
}

static int secret_make(char secret[static TOKEN_SIZE])
{
	unsigned char bytes[32];

	if (sodium_init() < 0)
		return -EIO;
	randombytes_buf(bytes, sizeof(bytes));
	strcpy(secret, "lair_");
	(void)sodium_bin2base64(secret + 5, TOKEN_SIZE - 5, bytes, sizeof(bytes),
				sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	return 0;
}

static struct token **token_find(struct token **tokens, const char *name)
{
	while (*tokens && strcmp((*tokens)->name, name) != 0)
		tokens = &(*tokens)->next;
	return tokens;
}

static bool profiles_valid(char *const *profiles)
{
	for (size_t i = 0; profiles && profiles[i]; i++)
		if (!*profiles[i] || strpbrk(profiles[i], " \t\r\n,"))
			return false;
	return true;
}

static int add(const char *path, int fd, struct token *token, char secret[static TOKEN_SIZE],
	       char why[static TOKEN_WHY_SIZE])
{
	struct token *tokens = NULL, **end;
	struct stat st;
	int r = fd_parse(&tokens, fd, path, &st, why);

	if (r)
		return r;
	end = token_find(&tokens, token->name);
	if (*end)
		r = why_set(why, -EEXIST, token->name, "there is a token of that name");
	else
		r = secret_make(secret);
	if (!r) {
		token_hash(token->hash, secret);
		token->next = NULL;
		*end = token;
		r = tokens_write(path, tokens, why);
		*end = NULL;
	}
	tokens_free(tokens);
	return r;
}

int tokens_add(const char *path, struct token *token, char secret[static TOKEN_SIZE],
	       char why[static TOKEN_WHY_SIZE])
{
	int fd, r;

	if (!name_valid(token->name, strlen(token->name)))
		return why_set(why, -EINVAL, token->name,
			       "a name has letters, digits, _, - and ., and is not a number");
	if (!profiles_valid(token->profiles))
		return why_set(why, -EINVAL, token->name, "its profiles are names with commas between them");
	fd = locked_open(path, why);
	if (fd < 0)
		return fd;
	r = add(path, fd, token, secret, why);
	fd_close(fd);
	return r;
}

static int take_out(const char *path, int fd, const char *name, char why[static TOKEN_WHY_SIZE])
{
	struct token *tokens = NULL, **at, *gone;
	struct stat st;
	int r = fd_parse(&tokens, fd, path, &st, why);

	if (r)
		return r;
	at = token_find(&tokens, name);
	gone = *at;
	if (gone) {
		*at = gone->next;
		token_free(gone);
		r = tokens_write(path, tokens, why);
	} else {
		r = why_set(why, -ENOENT, name, "there is no token of that name");
	}
	tokens_free(tokens);
	return r;
}

int tokens_revoke(const char *path, const char *name, char why[static TOKEN_WHY_SIZE])
{
	int fd = locked_open(path, why), r;

	if (fd < 0)
		return fd;
	r = take_out(path, fd, name, why);
	fd_close(fd);
	return r;
}
