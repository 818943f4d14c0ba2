/* Names of sessions: one meaning for each who may say them. */
#include "session/core/name.h"

#include "check.h"

#include <stdio.h>

#define ME 1000U

static void check_read(const char *text, uid_t asker, uid_t owner, const char *id)
{
	struct session_name name;

	CHECK(session_name_read(&name, bytes_of(text), asker) == 0);
	CHECK(name.owner == owner);
	CHECK(bytes_is(name.id, id));
}

static void check_refused(const char *text, uid_t asker)
{
	struct session_name name;

	CHECK(session_name_read(&name, bytes_of(text), asker) == SESSION_NAME_E_INVALID);
}

/* Whatever it looks like. */
static void test_of_ones_own(void)
{
	static const char *const ids[] = {"main",
					  "a/b",
					  "1000/main",
					  "0/main",
					  "/",
					  "//",
					  "7/",
					  "99999999999/x",
					  "~",
					  "\xc3\xa4",
					  "\xe6\x97\xa5\xe6\x9c\xac",
					  "\xf0\x9f\xa6\x8a",
					  "e\xcc\x81",
					  "\xd7\xa9"};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		check_read(ids[i], ME, ME, ids[i]);
}

static void test_of_another(void)
{
	check_read("main", 0, 0, "main");
	check_read("team/main", 0, 0, "team/main");
	check_read("/main", 0, 0, "/main");
	check_read("0/main", 0, 0, "main");
	check_read("1000/main", 0, 1000, "main");
	check_read("1000/0/main", 0, 1000, "0/main");
	check_read("1000//", 0, 1000, "/");
	check_read("4294967294/x", 0, 4294967294, "x");
	check_read("12", 0, 0, "12");
	check_read("12a/x", 0, 0, "12a/x");
}

static void test_none(void)
{
	static const char turns[] = {'a', '\xe2', '\x80', '\xae', 'b', '\0'}; /* the direction */
	static const char *const texts[] = {"",
					    "\xc3",	     /* no UTF-8 */
					    "a\xc2\x85",     /* a control */
					    "\xc2\xa0",	     /* a space */
					    "\xe3\x80\x80",  /* a wide one */
					    "a\xe2\x80\x8b", /* one of no width */
					    turns,
					    "\xe3\x85\xa4",	/* a letter that is blank */
					    "\xee\x80\x80",	/* private use */
					    "\xef\xbf\xbf",	/* no character */
					    "\xf3\xa0\x81\x81", /* a tag */
					    "a b",
					    "\n",
					    "\x7f",
					    "a\t",
					    "4294967295/x",
					    "18446744073709551616/x",
					    "99999999999999999999/x"};
	char longest[SESSION_NAME_SIZE + 8];
	struct session_name name;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check_refused(texts[i], 0);
	check_refused("7/", 0);
	check_refused("7/a b", 0);
	check_refused("", ME);
	memset(longest, 'x', sizeof(longest));
	longest[SESSION_ID_MAX + 1] = '\0';
	check_refused(longest, ME);
	longest[SESSION_ID_MAX] = '\0';
	check_read(longest, ME, ME, longest);
	CHECK(session_name_read(&name, (struct bytes){.data = NULL}, ME) == 0);
	CHECK(name.owner == ME && !name.id.data);
}

static void test_back_and_forth(void)
{
	static const char *const ids[] = {"main", "a/b", "1000/main", "0/main", "/", "7/", "12", "99999999999/x"};
	static const uid_t owners[] = {0, ME, 4294967294};
	char name[SESSION_NAME_SIZE], longest[SESSION_ID_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(owners); k++) {
			check_read(session_name_write(name, ids[i], owners[k], 0), 0, owners[k], ids[i]);
			check_read(session_name_write(name, ids[i], owners[k], owners[k]), owners[k], owners[k],
				   ids[i]);
		}
	}
	memset(longest, 'x', SESSION_ID_MAX);
	longest[SESSION_ID_MAX] = '\0';
	check_read(session_name_write(name, longest, 4294967294, 0), 0, 4294967294, longest);
	CHECK(!strcmp(session_name_write(name, "main", 0, 0), "main"));
	CHECK(!strcmp(session_name_write(name, "main", ME, 0), "1000/main"));
	CHECK(!strcmp(session_name_write(name, "1/x", 0, 0), "0/1/x"));
	CHECK(!strcmp(session_name_write(name, "1/x", ME, ME), "1/x"));
	CHECK(!strcmp(session_name_write(name, "main", 0, ME), "0/main"));
}

int main(void)
{
	test_of_ones_own();
	test_of_another();
	test_none();
	test_back_and_forth();
	return check_report();
}
