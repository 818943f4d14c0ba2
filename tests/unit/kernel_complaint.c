/* What sessions are told of uv's words: nothing of where the index is, nor of the host. */
#include "packages/complaint.h"

#include "check.h"

#include <stdlib.h>

static bool tells(const char *log, const char *text)
{
	char out[200];

	complaint_tell(out, sizeof(out), log);
	if (strcmp(out, text) != 0)
		fprintf(stderr, "%s\n", out);
	return strcmp(out, text) == 0;
}

int main(void)
{
	char out[8];

	CHECK(tells("", ""));
	CHECK(tells("Because only foo==1.0 is available and you require foo[all]>=2, it cannot be (sorry).",
		    "Because only foo==1.0 is available and you require foo[all]>=2, it cannot be (sorry)."));
	CHECK(tells("error: Failed to fetch: `https://me:pa,s)s@pkgs.corp.example:8443/simple/x/`\n  Caused by: "
		    "dns error of "
		    "pkgs.corp.example: no",
		    "error: Failed to fetch: `the index`\n  Caused by: dns error of the index no"));
	CHECK(tells("for url (http://[::1]:80/x/), twice", "for url (the index), twice"));
	CHECK(tells("in `/var/lib/lair/work/x`, --find-links=/srv/wheels: File not found (os error 2)",
		    "in `a file`, --find-links=a file File not found (os error 2)"));
	CHECK(tells("either/or, 1/2, a/", "either/or, 1/2, a/"));
	CHECK(tells("a\033[2Jb\nc", "a?[2Jb\nc"));
	CHECK(tells("http://", "the index"));
	CHECK(tells("://", "the index"));
	CHECK(setenv("UV_DEFAULT_INDEX", "https://token@mirror.example/simple", 1) == 0);
	CHECK(setenv("HTTPS_PROXY", "http://proxy.example:3128", 1) == 0);
	CHECK(tells("connect to proxy.example:3128 for mirror.example", "connect to the index for the index"));
	complaint_tell(out, sizeof(out), "http://a.example/ is cut");
	CHECK(strcmp(out, "the ind") == 0);
	return check_report();
}
