/* What is told of uv's words while it installs. */
#include "packages/progress.h"

#include "check.h"

static bool tells(const char *log, const char *text)
{
	char out[PROGRESS_SIZE];

	return strcmp(progress_of(out, log), text) == 0;
}

int main(void)
{
	CHECK(tells("", "downloading"));
	CHECK(tells("Resolved 9 packages in 333ms\n", "downloading"));
	CHECK(tells("Downloading scipy (1.0MiB)\n", "downloading scipy, 0.0 of 1.0 MB"));
	CHECK(tells("Downloading scipy (10.0MiB)\nDownloading a (500.0KiB)\n Downloaded a\n",
		    "downloading scipy, 0.5 of 11.0 MB"));
	CHECK(tells(
		"Downloading a (1.0MiB)\nDownloading b (1.0MiB)\nDownloading c (1.0MiB)\nDownloading d (1.0MiB)\n",
		"downloading a, b, c and 1 more, 0.0 of 4.2 MB"));
	CHECK(tells("Downloading a (1.0MiB)\n Downloaded a\n", "downloading"));
	CHECK(tells("Downloading a (1.0MiB)\n Downloaded a\nPrepared 1 package in 2.92s\n", "installing"));
	/* It is written by what may be hostile, and may be cut anywhere. */
	CHECK(tells("Downloading \033[2Ja (1.0MiB)\n", "downloading ?[2Ja, 0.0 of 1.0 MB"));
	CHECK(tells("Downloading a (1e999GiB", "downloading a, 0.0 of 0.0 MB"));
	CHECK(tells("Downloading a (-1MiB)", "downloading a, 0.0 of 0.0 MB"));
	CHECK(tells("Downloading (", "downloading"));
	CHECK(tells("Downloading a", "downloading"));
	return check_report();
}
