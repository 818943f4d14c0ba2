/* The points where faults can be made. Each row of the tables of handlers is a point. */
#include "vault/fault.h"

#include "packages/builds.h"
#include "request/request.h"
#include "warden/nursery.h"

#include <stdio.h>

static const char *fault_name(size_t i)
{
	static const char *const points[] = {
		"interpreter.channel", "interpreter.stdout", "interpreter.stderr", "session.deadline",
		"session.idle",	       "session.hard",	     "session.alive",	   "session.measure",
		"session.call",	       "session.transfer",   "session.copy",	   "family.channel",
		"family.death",	       "family.patience",    "family.quota",	   "template.channel",
		"template.patience",   "template.refill",    "template.retry",	   "template.idle",
		"builder.channel",     "builder.patience",
	};

	return i < ARRAY_SIZE(points) ? points[i] : NULL;
}

static const char *revival_point(size_t i)
{
	static const char *const names[] = {"promise", "read", "begin", "end"};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

static const char *settle_point(size_t i)
{
	static const char *const names[] = {"begin", "promised", "family", "written", "heard", "said"};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

void fault_print_points(void)
{
	static const struct {
		const char *group; /* with its dot */
		const char *(*name)(size_t i);
	} groups[] = {
		{"request.", request_type},	    {"interpreter.", session_message_type},
		{"warden.", warden_message_type},   {"template.", nursery_message_type},
		{"builder.", builder_message_type}, {"", fault_name},
		{"revival.", revival_point},	    {"settle.", settle_point},
	};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		for (size_t k = 0; groups[i].name(k); k++)
			printf("%s%s\n", groups[i].group, groups[i].name(k));
}
