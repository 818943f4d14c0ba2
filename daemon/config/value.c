/* The values of sessions.conf. Every type is a row of one table; strings and lists differ only in the check of
 * their items. A stored value has passed its check, and its printed lines pass again. */
#include "value.h"

#include "base/quantity.h"
#include "config.h"
#include "requirement.h"

#include "proto/paths.h"

#include <ctype.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <regex.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/stat.h>

struct value_kind {
	int (*parse)(void *slot, const struct key *key, const char *text, char *reason);
	void (*print)(const void *slot, const struct key *key, FILE *out);
	void (*release)(void *slot);
	/* numbers */
	const struct unit *units;
	uint64_t bare;	  /* the factor of a number without a unit */
	const char *what; /* is expected; of texts that are like something, too */
	const char *like; /* a regular expression */
	/* of strings and items of lists: may replace *itemp by another string */
	int (*check)(const struct key *key, char **itemp, char *reason);
	/* paths: whether the host has it; NULL: need not */
	int (*look)(const char *item, char *reason);
};

static const struct value_kind *kind_of(const struct key *key);

static int expected(char *reason, const char *format, ...) _printf_(2, 3);

static int expected(char *reason, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(reason, VALUE_REASON_SIZE, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- numbers ---- */

static const char *absent_word(const struct key *key)
{
	return key->absent ? key->absent : "off";
}

static void number_format(char *text, size_t size, const struct key *key, uint64_t value)
{
	if (value == 0 && key->optional)
		(void)snprintf(text, size, "%s", absent_word(key));
	else if (value == VALUE_ALL && key->all)
		(void)snprintf(text, size, "%s", key->all);
	else
		quantity_format(text, size, kind_of(key)->units, value);
}

static bool word_is_off(const struct key *key, const char *text)
{
	return key->absent ? strcmp(text, key->absent) == 0
			   : strcasecmp(text, "off") == 0 || strcasecmp(text, "none") == 0;
}

static int parse_number(void *slot, const struct key *key, const char *text, char *reason)
{
	const struct value_kind *kind = kind_of(key);
	uint64_t *number = slot;
	char min[32], max[32];
	bool off = word_is_off(key, text);

	if (key->all && strcmp(text, key->all) == 0) {
		*number = VALUE_ALL;
		return 0;
	}
	if (off ? key->optional : quantity_parse(number, kind->units, kind->bare, text)) {
		if (off)
			*number = 0;
		if ((*number == 0 && key->optional && (off || !key->absent)) ||
		    (*number >= key->min && *number <= key->max))
			return 0;
	}
	quantity_format(min, sizeof(min), kind->units, key->min);
	quantity_format(max, sizeof(max), kind->units, key->max);
	return expected(reason, "%s from %s to %s%s%s%s%s", kind->what, min, max, key->all ? ", " : "",
			key->all ? key->all : "", key->optional ? ", or " : "",
			key->optional ? absent_word(key) : "");
}

static void print_number(const void *slot, const struct key *key, FILE *out)
{
	char text[32];

	number_format(text, sizeof(text), key, *(const uint64_t *)slot);
	fprintf(out, " %s", text);
}

static void release_number(void *slot)
{
	*(uint64_t *)slot = 0;
}

static int parse_range(void *slot, const struct key *key, const char *text, char *reason)
{
	uint64_t *ends = slot, first, last;

	if (!*text && key->optional)
		return 0;
	if (digits_parse(&first, &text) && *text++ == '-' && digits_parse(&last, &text) && !*text &&
	    first <= last && first >= key->min && last <= key->max) {
		ends[0] = first;
		ends[1] = last;
		return 0;
	}
	return expected(reason, "FIRST-LAST, both from %" PRIu64 " to %" PRIu64, key->min, key->max);
}

static void print_range(const void *slot, const struct key *key, FILE *out)
{
	const uint64_t *ends = slot;

	if (ends[1])
		fprintf(out, " %" PRIu64 "-%" PRIu64, ends[0], ends[1]);
}

static void release_range(void *slot)
{
	memset(slot, 0, 2 * sizeof(uint64_t));
}

static int parse_mode(void *slot, const struct key *key, const char *text, char *reason)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (*text < '0' || *text > '7' || *end || (mode & ~0066UL) != 0600)
		return expected(reason, "0600, or more of 0666: who may read and write");
	*(uint64_t *)slot = mode;
	return 0;
}

static void print_mode(const void *slot, const struct key *key, FILE *out)
{
	fprintf(out, " 0%03" PRIo64, *(const uint64_t *)slot);
}

/* ---- words ---- */

static int expected_word(const struct key *key, char *reason)
{
	size_t size = (size_t)snprintf(reason, VALUE_REASON_SIZE, "one of:");

	for (const char *const *word = key->words; *word && size < VALUE_REASON_SIZE; word++)
		size += (size_t)snprintf(reason + size, VALUE_REASON_SIZE - size, " %s", *word);
	return -EINVAL;
}

static int parse_choice(void *slot, const struct key *key, const char *text, char *reason)
{
	for (unsigned i = 0; key->words[i]; i++) {
		if (strcmp(key->words[i], text) == 0) {
			*(unsigned *)slot = i;
			return 0;
		}
	}
	return expected_word(key, reason);
}

static void print_choice(const void *slot, const struct key *key, FILE *out)
{
	fprintf(out, " %s", key->words[*(const unsigned *)slot]);
}

static void release_choice(void *slot)
{
	*(unsigned *)slot = 0;
}

static int parse_flag(void *slot, const struct key *key, const char *text, char *reason)
{
	static const char *const words[] = {"off", "on", "no", "yes", "false", "true"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(words[i], text) == 0) {
			*(bool *)slot = i % 2;
			return 0;
		}
	}
	return expected(reason, "on or off");
}

static void print_flag(const void *slot, const struct key *key, FILE *out)
{
	fputs(*(const bool *)slot ? " on" : " off", out);
}

static void release_flag(void *slot)
{
	*(bool *)slot = false;
}

/* ---- checks of strings and of items ---- */

static int check_word(const struct key *key, char **itemp, char *reason)
{
	for (const char *const *word = key->words; *word; word++) {
		if (strcmp(*word, *itemp) == 0)
			return 0;
	}
	return expected_word(key, reason);
}

static int check_language(const struct key *key, char **itemp, char *reason)
{
	char path[PATH_SIZE], there[128];

	if (strcmp(*itemp, LANGUAGE_OWN) == 0 || (path_language(path, *itemp) == 0 && access(path, X_OK) == 0))
		return 0;
	path_languages(there, sizeof(there));
	snprintf(reason, VALUE_REASON_SIZE, "one that is installed: %s", there);
	return -EINVAL;
}

static const char *home(void)
{
	const char *named = getenv("HOME");
	const struct passwd *user;

	if (named && *named == '/')
		return named;
	user = getpwuid(geteuid());
	return user && user->pw_dir && *user->pw_dir == '/' ? user->pw_dir : NULL;
}

static int check_path(const struct key *key, char **itemp, char *reason)
{
	const char *rest = *itemp + 1, *base;
	char *expanded;

	if (**itemp == '/')
		return 0;
	if (**itemp != '~' || (*rest && *rest != '/'))
		return expected(reason, "an absolute path, or one that begins with ~/");
	base = home();
	if (!base || strpbrk(base, "\";\r\n"))
		return expected(reason, "an absolute path, since nothing says where ~ is");
	if (asprintf(&expanded, "%s%s", base, rest) < 0)
		return -ENOMEM;
	free(*itemp);
	*itemp = expanded;
	return 0;
}

static int check_socket(const struct key *key, char **itemp, char *reason)
{
	int r = check_path(key, itemp, reason);

	if (r == 0 && strlen(*itemp) > SOCKET_PATH_MAX)
		return expected(reason, "at most %d bytes of path: the address of a socket holds no more",
				SOCKET_PATH_MAX);
	return r;
}

static int check_log(const struct key *key, char **itemp, char *reason)
{
	if (strcmp(*itemp, "stderr") == 0)
		return 0;
	if (**itemp != '/' && **itemp != '~')
		return expected(reason, "stderr or an absolute path");
	return check_path(key, itemp, reason);
}

/* (uid_t)-1 is nobody, to every system call. */
#define ACCOUNT_LAST (UINT32_MAX - 1)

static bool is_number(const char *item)
{
	uint64_t number;

	return digits_parse(&number, &item) && !*item && number <= ACCOUNT_LAST;
}

static int account_check(char **itemp, bool found, unsigned number, const char *expectation, char *reason)
{
	char *text;

	/* Settings in force may name somebody who is there no more. */
	if (!found)
		return isdigit((unsigned char)**itemp) && !is_number(*itemp) ? expected(reason, "%s", expectation)
									     : 0;
	if (asprintf(&text, "%u", number) < 0)
		return -ENOMEM;
	free(*itemp);
	*itemp = text;
	return 0;
}

static int check_user(const struct key *key, char **itemp, char *reason)
{
	const struct passwd *user = is_number(*itemp) ? NULL : getpwnam(*itemp);

	return account_check(itemp, user, user ? user->pw_uid : 0, "names or numbers of users", reason);
}

static int check_group(const struct key *key, char **itemp, char *reason)
{
	const struct group *group = is_number(*itemp) ? NULL : getgrnam(*itemp);

	return account_check(itemp, group, group ? group->gr_gid : 0, "names or numbers of groups", reason);
}

static int look_for_user(const char *item, char *reason)
{
	return is_number(item) ? 0 : expected(reason, "users that exist, but there is no %.100s", item);
}

static int look_for_group(const char *item, char *reason)
{
	return is_number(item) ? 0 : expected(reason, "groups that exist, but there is no %.100s", item);
}

static int look_for_any(const char *item, char *reason)
{
	return access(item, F_OK) == 0
		       ? 0
		       : expected(reason, "something that exists, but %.150s: %s", item, strerror(errno));
}

static int look_for_directory(const char *item, char *reason)
{
	struct stat st;

	if (stat(item, &st) < 0)
		return expected(reason, "directories that exist, but %.150s: %s", item, strerror(errno));
	return S_ISDIR(st.st_mode) ? 0 : expected(reason, "directories, but %.150s is none", item);
}

/* As many as the cage has room for. */
#define PORTS_MAX 32

static bool ports_valid(const char *at)
{
	for (size_t n = 0;; at++) {
		uint64_t port;

		if (++n > PORTS_MAX || !digits_parse(&port, &at) || port < 1 || port > 65535)
			return false;
		if (*at != ',')
			return !*at;
	}
}

static int check_network(const struct key *key, char **itemp, char *reason)
{
	const char *text = *itemp;

	if (strcmp(text, "off") == 0 || strcmp(text, "host") == 0)
		return 0;
	if (strncmp(text, "tcp:", 4) == 0 && ports_valid(text + 4))
		return 0;
	return expected(reason, "off, host, or tcp: and at most 32 ports (tcp:443,8080)");
}

static int check_like(const struct key *key, char **itemp, char *reason)
{
	const struct value_kind *kind = kind_of(key);
	regex_t like;
	int r = regcomp(&like, kind->like, REG_EXTENDED | REG_NOSUB) ? -ENOMEM : 0;

	if (r == 0 && regexec(&like, *itemp, 0, NULL, 0) != 0)
		r = expected(reason, "%s", kind->what);
	if (r != -ENOMEM)
		regfree(&like);
	return r;
}

/* ---- strings and lists of them ---- */

static int parse_string(void *slot, const struct key *key, const char *text, char *reason)
{
	_cleanup_(freep) char *item = NULL;
	int r;

	if (!*text)
		return key->optional ? 0 : expected(reason, "a value");
	item = strdup(text);
	if (!item)
		return -ENOMEM;
	r = kind_of(key)->check(key, &item, reason);
	if (r == 0)
		*(char **)slot = steal_ptr(&item);
	return r;
}

static void print_string(const void *slot, const struct key *key, FILE *out)
{
	const char *text = *(char *const *)slot;

	if (text)
		fprintf(out, " %s", text);
}

static void release_string(void *slot)
{
	freep(slot);
}

/* The next blank-separated item of @at, which may be quoted as a whole. Returns 0, with NULL at the end. */
static int item_next(char **itemp, const char **at, char *reason)
{
	const char *start = *at + strspn(*at, " \t");
	bool quoted = *start == '"';
	size_t size;

	*itemp = NULL;
	start += quoted;
	size = strcspn(start, quoted ? "\"" : " \t\"");
	*at = start + size;
	if (quoted != (**at == '"') || (quoted && !strchr(" \t", *++*at)))
		return expected(reason, "items separated by blanks, each quoted as a whole or not at all");
	if (size == 0)
		return quoted ? expected(reason, "no empty item") : 0;
	*itemp = strndup(start, size);
	return *itemp ? 0 : -ENOMEM;
}

static int list_append(struct string_list *list, char *item)
{
	char **items = reallocarray(list->items, list->n + 2, sizeof(*items));

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->n++] = item;
	items[list->n] = NULL;
	return 0;
}

static int parse_list(void *slot, const struct key *key, const char *text, char *reason)
{
	for (;;) {
		_cleanup_(freep) char *item = NULL;
		int r = item_next(&item, &text, reason);

		if (r != 0 || !item)
			return r;
		r = kind_of(key)->check(key, &item, reason);
		if (r == 0)
			r = list_append(slot, item);
		if (r != 0)
			return r;
		item = NULL;
	}
}

/* A line is one item, and may hold blanks. */
static int parse_line(void *slot, const struct key *key, const char *text, char *reason)
{
	_cleanup_(freep) char *item = *text ? strdup(text) : NULL;
	int r;

	if (!*text)
		return 0;
	if (!item)
		return -ENOMEM;
	r = kind_of(key)->check(key, &item, reason);
	if (r == 0)
		r = list_append(slot, item);
	if (r == 0)
		item = NULL;
	return r;
}

static void print_lines(const void *slot, const struct key *key, FILE *out)
{
	const struct string_list *list = slot;

	for (size_t i = 0; i < list->n; i++)
		fprintf(out, "\n\t%s", list->items[i]);
}

/* One item a line: lines are short, and a line that begins with a blank continues the key before it. */
static void print_list(const void *slot, const struct key *key, FILE *out)
{
	const struct string_list *list = slot;

	for (size_t i = 0; i < list->n; i++) {
		const char *quote = strpbrk(list->items[i], " \t;#") ? "\"" : "";

		fprintf(out, "\n\t%s%s%s", quote, list->items[i], quote);
	}
}

static void release_list(void *slot)
{
	struct string_list *list = slot;

	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){0};
}

/* As it is compared with others. */
static int check_requirement(const struct key *key, char **itemp, char *reason)
{
	char plain[REQUIREMENT_SIZE], *copy;
	size_t name;

	if (requirement_normalize(plain, &name, bytes_of(*itemp)))
		return expected(reason,
				"names of projects, each with its versions: polars duckdb==1.* \"rich>=13,<15\"");
	copy = strdup(plain);
	if (!copy)
		return -ENOMEM;
	free(*itemp);
	*itemp = copy;
	return 0;
}

/* ---- the table ---- */

#define NUMBER .parse = parse_number, .print = print_number, .release = release_number
#define STRING .parse = parse_string, .print = print_string, .release = release_string
#define LIST .parse = parse_list, .print = print_list, .release = release_list
#define LIKE(like_, what_) .check = check_like, .like = (like_), .what = (what_)
#define NAME "[A-Za-z_][A-Za-z0-9_]*"
#define DOTTED NAME "(\\." NAME ")*"

static const struct value_kind kinds[] = {
	[VALUE_INT] = {NUMBER, .bare = 1, .what = "a number"},
	[VALUE_SIZE] = {NUMBER, .units = size_units, .bare = 1, .what = "a size (64K, 512M, 1.5G)"},
	[VALUE_PROCESSORS] = {NUMBER, .units = processor_units, .bare = 1000,
			      .what = "a number of processors (2, 1.5, 200m)"},
	[VALUE_DURATION] = {NUMBER, .units = duration_units, .bare = 1000000,
			    .what = "a time (200ms, 1.5s, 1h30m)"},
	[VALUE_RANGE] = {.parse = parse_range, .print = print_range, .release = release_range},
	[VALUE_MODE] = {.parse = parse_mode, .print = print_mode, .release = release_number},
	[VALUE_FLAG] = {.parse = parse_flag, .print = print_flag, .release = release_flag},
	[VALUE_CHOICE] = {.parse = parse_choice, .print = print_choice, .release = release_choice},
	[VALUE_WORD] = {STRING, .check = check_word},
	[VALUE_PATH] = {STRING, .check = check_path},
	[VALUE_SOCKET] = {STRING, .check = check_socket},
	[VALUE_LOG] = {STRING, .check = check_log},
	[VALUE_LANGUAGE] = {STRING, .check = check_language},
	[VALUE_PYTHON] = {STRING, .check = check_path, .look = look_for_any},
	[VALUE_GROUP] = {STRING, .check = check_group, .look = look_for_group},
	[VALUE_NETWORK] = {STRING, .check = check_network},
	[VALUE_PATTERNS] = {LIST,
			    LIKE("^[^[:cntrl:] ,]+$", "names of functions separated by blanks (search wiki.*)")},
	[VALUE_MODULES] = {LIST,
			   LIKE("^" DOTTED "[?]?$", "names of modules (numpy matplotlib.pyplot), with a ? after "
						    "one that may be missing")},
	[VALUE_ENVIRONMENT] = {LIST, LIKE("^" NAME "=", "NAME=value, or \"NAME=a value with blanks\"")},
	[VALUE_DIRECTORIES] = {LIST, .check = check_path, .look = look_for_directory},
	[VALUE_USERS] = {LIST, .check = check_user, .look = look_for_user},
	[VALUE_GROUPS] = {LIST, .check = check_group, .look = look_for_group},
	[VALUE_REQUIREMENTS] = {LIST, .check = check_requirement},
	[VALUE_DATE] = {STRING, LIKE("^([0-9]{1,5}d|[0-9]{4}-[0-9]{2}-[0-9]{2})$",
				     "a day, 2026-01-31, or how many days before now, 7d")},
	[VALUE_RULES] =
		{.parse = parse_line,
		 .print = print_lines,
		 .release = release_list,
		 LIKE("^(module|call|attribute|keyword) " DOTTED "( max [0-9]{1,9})?:[ \t]*[^ \t]",
		      "KIND NAME: MESSAGE or KIND NAME max N: MESSAGE, where KIND is module, call, attribute "
		      "or keyword")},
};

static const struct value_kind *kind_of(const struct key *key)
{
	return &kinds[key->type];
}

int value_parse(void *section, const struct key *key, const char *text, char reason[static VALUE_REASON_SIZE])
{
	return kind_of(key)->parse((char *)section + key->offset, key, text, reason);
}

int value_look(const void *section, const struct key *key, char reason[static VALUE_REASON_SIZE])
{
	const struct value_kind *kind = kind_of(key);
	const void *slot = (const char *)section + key->offset;
	const struct string_list *list = slot;
	int r = 0;

	if (!kind->look)
		return 0;
	if (!value_is_list(key))
		return *(char *const *)slot ? kind->look(*(char *const *)slot, reason) : 0;
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = kind->look(list->items[i], reason);
	return r;
}

bool value_is_list(const struct key *key)
{
	return kind_of(key)->release == release_list;
}

void value_print(const void *section, const struct key *key, FILE *out)
{
	fprintf(out, "%s =", key->name);
	kind_of(key)->print((const char *)section + key->offset, key, out);
}

int value_text(char **textp, const void *section, const struct key *key)
{
	_cleanup_(freep) char *text = NULL;
	size_t size, blank;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	kind_of(key)->print((const char *)section + key->offset, key, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	blank = strspn(text, " \n\t");
	memmove(text, text + blank, size - blank + 1);
	*textp = steal_ptr(&text);
	return 0;
}

void value_free(void *section, const struct key *key)
{
	kind_of(key)->release((char *)section + key->offset);
}

void value_show(char *text, size_t size, const void *section, const struct key *key)
{
	number_format(text, size, key, *(const uint64_t *)((const char *)section + key->offset));
}
