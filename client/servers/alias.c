/* Names of servers and tools, made into what Python can write: lower case, everything else becomes an underscore.
 */
#include "upstream.h"

#include <ctype.h>
#include <stdio.h>

static const char *const keywords_of_python[] = {
	"and",	    "as",     "assert",	 "async", "await", "break",  "class", "continue", "def",  "del",   "elif",
	"else",	    "except", "finally", "for",	  "from",  "global", "if",    "import",	  "in",	  "is",	   "lambda",
	"nonlocal", "not",    "or",	 "pass",  "raise", "return", "try",   "while",	  "with", "yield",
};

static bool is_keyword(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords_of_python); i++)
		if (strcmp(keywords_of_python[i], name) == 0)
			return true;
	return false;
}

void alias_make(char alias[static ALIAS_SIZE], const char *name, bool keywords)
{
	/* There is room for a number that tells it from others. */
	size_t n = 0, max = ALIAS_SIZE - 8;
	bool gap = false;

	if (isdigit((unsigned char)*name))
		alias[n++] = '_';
	for (const char *at = name; *at && n < max; at++) {
		char c = (char)tolower((unsigned char)*at);
		bool fits = (c >= 'a' && c <= 'z') || isdigit((unsigned char)c) || c == '_';

		if (fits || !gap)
			alias[n++] = (char)(fits ? c : '_');
		gap = !fits;
	}
	if (n == 0)
		alias[n++] = '_';
	alias[n] = '\0';
	if (keywords && is_keyword(alias))
		strcat(alias, "_");
}

void alias_next(char alias[static ALIAS_SIZE], unsigned n)
{
	char *old = n > 2 ? strrchr(alias, '_') : NULL;

	if (old)
		*old = '\0';
	snprintf(alias + strlen(alias), ALIAS_SIZE - strlen(alias), "_%u", n);
}
