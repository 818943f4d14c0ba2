/* How sessions ended: what is remembered over another start, how much, and of whom. */
#include "check.h"
#include "session/core/past.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/lair-past-XXXXXX";
static struct saved_store store = {.configured = directory, .socket = "/a/socket", .per_user = 1};

static const struct ending *find(const struct past *past, uid_t owner, const char *id)
{
	const struct session_name name = {.owner = owner, .id = bytes_of(id)};

	return past_find(past, &name);
}

static void end(struct past *past, uid_t owner, const char *id, const char *why)
{
	struct ending ending = {.when = clock_date(), .birth = 1, .cells = 2};

	snprintf(ending.why, sizeof(ending.why), "%s", why);
	past_end(past, owner, id, &ending);
}

static bool lives(void *userdata, const struct session_name *name, uint64_t birth)
{
	(void)userdata;
	return bytes_is(name->id, "lives") && birth == 5;
}

static void begin(struct past *past)
{
	past_init(past, NULL);
	CHECK(!past_open(past, &store, -1));
}

static void test_another_start(void)
{
	struct past past;

	begin(&past);
	CHECK(!past_begin(&past, 7, "a", 3));
	end(&past, 7, "a", "idle_ttl");
	CHECK(past_begin(&past, 7, "a", 4)); /* which is what it was, until this one ends */
	CHECK(!past_begin(&past, 7, "lives", 5) && !past_begin(&past, 7, "does not", 6));
	past_deinit(&past);
	begin(&past);
	CHECK(find(&past, 7, "a") && !strcmp(find(&past, 7, "a")->why, "idle_ttl") &&
	      find(&past, 7, "a")->cells == 2);
	CHECK(!find(&past, 8, "a") && !find(&past, 7, "lives"));
	past_settle(&past, lives, NULL);
	CHECK(!strcmp(find(&past, 7, "a")->why, "lost") && find(&past, 7, "a")->birth == 4);
	CHECK(!strcmp(find(&past, 7, "does not")->why, "lost") && !find(&past, 7, "lives"));
	past_deinit(&past);
}

/* A router that dies while it writes leaves half a record; what somebody else has written is no record. */
static void test_half_a_record(void)
{
	struct past past;

	begin(&past);
	end(&past, 7, "whole", "idle_ttl");
	CHECK(write(past.fd, "half", 4) == 4);
	past_deinit(&past);
	begin(&past);
	CHECK(find(&past, 7, "whole"));
	end(&past, 7, "after", "hard_ttl");
	past_deinit(&past);
	begin(&past);
	CHECK(find(&past, 7, "whole") && find(&past, 7, "after"));
	CHECK(ftruncate(past.fd, 0) == 0 && pwrite(past.fd, "garbage, and more of it", 23, 0) == 23);
	past_deinit(&past);
	begin(&past);
	CHECK(!find(&past, 7, "whole"));
	past_deinit(&past);
}

static void test_a_week(void)
{
	struct ending ending = {.why = "idle_ttl", .when = clock_date() - PAST_TTL_S - 1};
	struct past past;

	begin(&past);
	past_end(&past, 7, "old", &ending);
	CHECK(!find(&past, 7, "old") && !past_begin(&past, 7, "old", 9));
	past_deinit(&past);
}

/* Whoever ends many sessions makes room among their own; and those that were shut down push out no others. */
static void test_how_many(void)
{
	struct past past;
	char id[32];

	begin(&past);
	end(&past, 8, "another's", "shutdown");
	end(&past, 7, "expired", "idle_ttl");
	for (unsigned n = 0; n < 2 * PAST_MAX; n++) {
		snprintf(id, sizeof(id), "%u", n);
		end(&past, 7, id, "shutdown");
	}
	CHECK(past.n[PAST_SHUT] == PAST_MAX && past.n[PAST_ENDED] == 1);
	CHECK(find(&past, 8, "another's") && find(&past, 7, "expired") && find(&past, 7, id) &&
	      !find(&past, 7, "0"));
	CHECK(lseek(past.fd, 0, SEEK_END) < (off_t)(1024 * (3 * PAST_MAX + 2048)));
	past_deinit(&past);
	begin(&past);
	CHECK(find(&past, 8, "another's") && find(&past, 7, "expired") && find(&past, 7, id));
	past_deinit(&past);
}

/* Of a router whose disk takes nothing, the next one has it all the same. */
static void test_in_memory(void)
{
	struct saved_store nowhere = {.configured = "/proc/nowhere", .socket = "/a/socket"};
	struct past past;
	int fd;

	past_init(&past, NULL);
	CHECK(past_open(&past, &nowhere, -1) && past.fd >= 0);
	end(&past, 7, "a", "idle_ttl");
	fd = dup(past.fd);
	past_deinit(&past);
	past_init(&past, NULL);
	CHECK(!past_open(&past, &nowhere, fd) && find(&past, 7, "a"));
	past_deinit(&past);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(directory) != NULL);
	test_another_start();
	test_half_a_record();
	test_a_week();
	test_how_many();
	test_in_memory();
	snprintf(command, sizeof(command), "rm -r %s", directory);
	CHECK(system(command) == 0);
	return check_report();
}
