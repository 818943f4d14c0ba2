/* sessions.conf: what is understood, what is refused and in which words, and that printing it changes nothing. */
#include "base/quantity.h"
#include "config/changes.h"
#include "config/config.h"
#include "config/policy.h"

#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config_error error;

static struct config *parse(const char *text)
{
	struct config *config = NULL;

	error.text[0] = '\0';
	if (config_parse(&config, bytes_of(text), "test.conf", &error) != 0 && config)
		abort();
	return config;
}

static char *print(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	config_print(config, out);
	fclose(out);
	return text;
}

/* Printed, read and printed again it is the same. Takes the config over; returns what was printed. */
static char *settle(struct config *config)
{
	char *first, *second;
	struct config *again;

	if (!config) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	first = print(config);
	again = parse(first);
	CHECK(again != NULL);
	second = again ? print(again) : NULL;
	CHECK(second && strcmp(first, second) == 0);
	free(second);
	config_free(again);
	config_free(config);
	return first;
}

static bool file_has(const char *path, const char *line)
{
	char text[65536];
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(text, 1, sizeof(text), file) : 0;

	if (file)
		fclose(file);
	return memmem(text, n, line, strlen(line)) != NULL;
}

/* Every setting stands in the shipped file and in the manual. */
static void check_documented(const char *printed)
{
	unsigned n = 0;

	for (const char *line = printed; *line; line = strchr(line, '\n') + 1) {
		char name[64], shipped[80], manual[80];

		if (sscanf(line, "%63[a-z_] =", name) != 1)
			continue;
		n++;
		snprintf(shipped, sizeof(shipped), "\n%s =", name);
		snprintf(manual, sizeof(manual), "\n.TP\n.B %s\n", name);
		if (file_has(SOURCE_DIR "/sessions.conf", shipped) &&
		    file_has(SOURCE_DIR "/docs/man/sessions.conf.5", manual))
			continue;
		fprintf(stderr, "%s is not documented\n", name);
		CHECK(!"documented");
	}
	CHECK(n > 30);
}

static void test_shipped_is_default(void)
{
	struct config *config = NULL;
	char *shipped, *empty, *embedded, *workbench;

	CHECK(config_load(&config, SOURCE_DIR "/sessions.conf", &error) == 0);
	shipped = settle(config);
	CHECK(config_load(&config, NULL, &error) == 0 && !config->path);
	embedded = settle(config);
	empty = settle(parse(""));
	CHECK(strcmp(shipped, embedded) == 0);
	workbench = strstr(shipped, "\n[profile workbench]\n");
	CHECK(workbench && strncmp(shipped, empty, (size_t)(workbench - shipped)) == 0);
	check_documented(empty);
	free(shipped);
	free(embedded);
	free(empty);
}

static void test_values(void)
{
	struct config *config = parse("\xef\xbb\xbf[daemon]\r\n"
				      "log = /var/log/laird.log\r\n"
				      "uids = 1000 - 2000 ; refused below\n");
	struct profile *profile;

	CHECK(!config);
	config = parse("\xef\xbb\xbf[daemon]\r\n"
		       "log = /var/log/laird.log ; a comment\r\n"
		       "uids = 1000-2000\n"
		       "# [profile none]\n"
		       "[profile big] ; sections may have comments\n"
		       "cell_timeout = 1h 30m\n"
		       "cell_timeout_max = off\n"
		       "grace = 250ms\n"
		       "idle_ttl = 1.5\n"
		       "memory = 1.5G\n"
		       "cpu = 1.5\n"
		       "threads = cpu\n"
		       "text_size = 4096\n"
		       "read = /usr\n"
		       "  /etc /bin\n"
		       "\n"
		       "\t\"/opt\"\n"
		       "write =\n"
		       "env = A=1 \"B=two words\" C=\n"
		       "\t\"D=#;\"\n"
		       "preload =\n"
		       "network = tcp:443,80\n"
		       "subprocess = yes\n"
		       "level =\n"
		       "workspace = keep\n"
		       "forbid = module seaborn: Do not \"use\" it: it = bad # really\n"
		       "\tcall plt.figure max 2: One; two\n"
		       "forbid_in = exec\n"
		       "[profile empty]\n");
	if (!config) {
		CHECK(!"a good file is refused");
		fprintf(stderr, "%s\n", error.text);
		return;
	}
	CHECK(config->uid_first == 1000 && config->uid_last == 2000);
	CHECK(strcmp(config->log, "/var/log/laird.log") == 0 && !config->socket);
	CHECK(config->n_profiles == 3 && !config->profiles[3]);
	CHECK(config_profile(config, BYTES("empty")) && !config_profile(config, BYTES("none")));
	CHECK(config_profile(config, BYTES("")) == config_profile(config, BYTES("default")));
	profile = config_profile(config, BYTES("big"));
	CHECK(profile->cell_timeout == 5400000000 && profile->cell_timeout_max == 0);
	CHECK(profile->grace == 250000 && profile->idle_ttl == 1500000 && profile->hard_ttl == 86400000000);
	CHECK(profile->memory == 3ULL << 29 && profile->cpu == 1500 && !profile->threads &&
	      profile->text_size == 4096);
	CHECK(profile->read.n == 4 && !strcmp(profile->read.items[2], "/bin") && !profile->read.items[4]);
	CHECK(profile->write.n == 0 && profile->preload.n == 0);
	CHECK(profile->env.n == 4 && !strcmp(profile->env.items[1], "B=two words"));
	CHECK(!strcmp(profile->env.items[3], "D=#;"));
	CHECK(!strcmp(profile->network, "tcp:443,80") && profile->subprocess && !profile->level);
	CHECK(profile->workspace == WORKSPACE_KEEP);
	CHECK(profile->forbid.n == 2 && profile->forbid_in == FORBID_EXEC);
	CHECK(!strcmp(profile->forbid.items[0], "module seaborn: Do not \"use\" it: it = bad # really"));
	CHECK(!strcmp(profile->forbid.items[1], "call plt.figure max 2: One; two"));
	CHECK(config_profile(config, BYTES("empty"))->preload.n == 3);
	free(settle(config));
}

static void test_home(void)
{
	struct config *config;

	setenv("HOME", "/home/tester", 1);
	CHECK(!config_parse_in_force(
		&config, BYTES("[daemon]\nworkspaces = ~/sessions\n[profile default]\nhide = ~ ~/.ssh\n"),
		"test.conf", &error));
	CHECK(config && !strcmp(config->workspaces, "/home/tester/sessions"));
	CHECK(config && !strcmp(config->profiles[0]->hide.items[0], "/home/tester"));
	CHECK(config && !strcmp(config->profiles[0]->hide.items[1], "/home/tester/.ssh"));
	config_free(config);
}

/* A session's profile outlives the settings it came from. */
static void test_references(void)
{
	struct config *config = parse("[profile a]\nenv = A=1\n");
	struct profile *profile = profile_ref(config_profile(config, BYTES("a")));

	config_free(config);
	CHECK(!strcmp(profile->name, "a") && profile->env.n == 1);
	CHECK(!profile_unref(profile));
	CHECK(!profile_unref(NULL));
}

static void test_rulings(void)
{
	static const struct {
		const char *settings, *name;
		enum function_ruling ruling;
	} rows[] = {
		{"", "f", FUNCTION_ALLOWED},
		{"functions = off\n", "f", FUNCTION_DENIED},
		{"functions = ask\n", "f", FUNCTION_ASKED_FOR},
		{"functions_deny = f\nfunctions_ask = f\nfunctions_allow = f\n", "f", FUNCTION_DENIED},
		{"functions_ask = f\nfunctions_allow = f\n", "f", FUNCTION_ASKED_FOR},
		{"functions = off\nfunctions_allow = f\n", "f", FUNCTION_NAMED},
		{"functions_allow = f\n", "ff", FUNCTION_ALLOWED},
		{"functions_allow = f*\n", "f", FUNCTION_NAMED},
		{"functions_allow = *f*\n", "aafaa", FUNCTION_NAMED},
		{"functions_allow = a wiki.* b\n", "wiki.find", FUNCTION_NAMED},
		{"functions_allow = wiki.*\n", "wiki", FUNCTION_ALLOWED},
		{"functions_allow = *.delete\n", "a.delete.delete", FUNCTION_NAMED},
		{"functions_allow = *.delete\n", "a.deleted", FUNCTION_ALLOWED},
		{"functions_allow = ?\n", "f", FUNCTION_NAMED},
		{"functions_allow = ?\n", "", FUNCTION_ALLOWED},
		{"functions_allow = f?g*?\n", "fxg", FUNCTION_ALLOWED},
		{"functions_allow = f?g*?\n", "fxgh", FUNCTION_NAMED},
		{"functions_allow = [a-z]\n", "b", FUNCTION_ALLOWED},
		{"functions_allow = *\n", "", FUNCTION_NAMED},
		/* Not for ever. */
		{"functions_allow = *a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n",
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "a",
		 FUNCTION_ALLOWED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[256];
		struct config *config;

		snprintf(text, sizeof(text), "[profile a]\n%s", rows[i].settings);
		config = parse(text);
		CHECK(config &&
		      profile_ruling(config_profile(config, BYTES("a")), bytes_of(rows[i].name)) == rows[i].ruling);
		config_free(config);
	}
}

static void test_lets_call(void)
{
	static const struct {
		const char *settings;
		bool lets;
	} rows[] = {
		{"", true},
		{"functions = ask\n", true},
		{"functions = off\n", false},
		{"functions = off\nfunctions_deny = f\n", false},
		{"functions = off\nfunctions_ask = f\n", true},
		{"functions = off\nfunctions_allow = f\n", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[256];
		struct config *config;

		snprintf(text, sizeof(text), "[profile a]\n%s", rows[i].settings);
		config = parse(text);
		CHECK(config && profile_lets_call(config_profile(config, BYTES("a"))) == rows[i].lets);
		config_free(config);
	}
}

static const struct {
	const char *text, *message;
} refused[] = {
	{"sessions = 3\n", "1: expected a section"},
	{"\n[demon]\n", "2: expected [daemon] or [profile NAME], not [demon]"},
	{"[daemon\n", "1: expected [daemon]"},
	{"[daemon] x\n", "1: expected [daemon]"},
	{"[profile]\n", "1:  cannot name a profile"},
	{"[profile a b]\n", "1: a b cannot name a profile"},
	{"[profile ../a]\n", "1: ../a cannot name"},
	{"[profile .a]\n", "1: .a cannot name"},
	{"[profile a23456789012345678901234567890123]\n", "cannot name a profile"},
	{"[profile a]\n[daemon]\n[profile a]\n", "3: there is already a profile a"},
	{"[daemon]\n[profile a]\n[daemon]\n", "3: there is already a section [daemon]"},
	{"[daemon]\nsesions = 3\n", "2: [daemon] has no setting sesions; did you mean sessions?"},
	{"[profile a]\nsocket = /x\n", "2: [profile] has no setting socket"},
	{"[daemon]\nlog\n", "2: expected NAME = VALUE"},
	{"[daemon]\nlog\nxx = 3\n", "2: expected NAME = VALUE"},
	{"[daemon]\n = 3\n", "2: [daemon] has no setting"},
	{"[daemon]\nsessions = 3\nlog = stderr\nsessions = 4\n", "4: sessions has been set in line 2"},
	{"[daemon]\nsessions = 3\n  log = stderr\n", "3: a line that begins with a blank continues"},
	{"[daemon]\nsessions = 0\n", "2: sessions = 0: expected a number from 1 to 1000000"},
	{"[daemon]\nsessions = 1k\n", "expected a number"},
	{"[daemon]\nsessions = 1.0\n", "expected a number"},
	{"[daemon]\nsessions =\n", "2: sessions = : expected a number"},
	{"[daemon]\nsessions = 99999999999999999999999\n", "expected a number"},
	{"[daemon]\nlog =\n", "2: log = : expected a value"},
	{"[daemon]\nlog = x\n", "expected stderr or an absolute path"},
	{"[daemon]\nsocket = ~root/x\n", "expected an absolute path, or one that begins with ~/"},
	{"[daemon]\nuids = 0-5\n", "expected FIRST-LAST, both from 1 to"},
	{"[daemon]\nuids = 6-5\n", "expected FIRST-LAST"},
	{"[profile a]\ngrace = off\n", "2: grace = off: expected a time (200ms, 1.5s, 1h30m) from 1ms to 10m"},
	{"[profile a]\ngrace = 0\n", "expected a time"},
	{"[profile a]\ngrace = 2 5\n", "expected a time"},
	{"[profile a]\ngrace = 2m5\n", "expected a time"},
	{"[profile a]\ngrace = 5x\n", "expected a time"},
	{"[profile a]\nhard_ttl = -5m\n", "expected a time (200ms, 1.5s, 1h30m) from 10ms to 365d, or off"},
	{"[profile a]\nmemory = 1M\n", "expected a size (64K, 512M, 1.5G) from 16M to 1024T, or off"},
	{"[profile a]\nmemory = 1GB\n", "expected a size"},
	{"[profile a]\ncpu = 9m\n", "expected a number of processors (2, 1.5, 200m) from 10m to 10000, or off"},
	{"[profile a]\ncpu = 1.5 2\n", "expected a number of processors"},
	{"[profile a]\ncpu = -1\n", "expected a number of processors"},
	{"[profile a]\nthreads = off\n", "2: threads = off: expected a number from 1 to 1024, all, or cpu"},
	{"[profile a]\nthreads = 0\n", "expected a number from 1 to 1024, all, or cpu"},
	{"[profile a]\nprocesses = 3\nthreads = 4\n", "3: threads = 4 is over processes = 3"},
	{"[profile a]\nmemory = 99999999999T\n", "expected a size"},
	{"[profile a]\nsubprocess = maybe\n", "expected on or off"},
	{"[profile a]\nlevel = high\n", "expected one of: strong "},
	{"[profile a]\nworkspace = burn\n", "expected one of: delete keep"},
	{"[profile a]\nnetwork = tcp:\n", "expected off, host, or tcp:"},
	{"[profile a]\nnetwork = tcp:0\n", "expected off, host, or tcp:"},
	{"[profile a]\nnetwork = tcp:80,65536\n", "expected off, host, or tcp:"},
	{"[profile a]\nnetwork = tcp:80,\n", "expected off, host, or tcp:"},
	{"[profile a]\nforbid = seaborn: no\n", "2: forbid = seaborn: no: expected KIND NAME: MESSAGE"},
	{"[profile a]\nforbid = module a:\n", "expected KIND NAME: MESSAGE"},
	{"[profile a]\nforbid = module a.: x\n", "expected KIND NAME: MESSAGE"},
	{"[profile a]\nforbid = call a max 99999999999: x\n", "expected KIND NAME: MESSAGE"},
	{"[profile a]\nfunctions = maybe\n", "expected one of: off ask on"},
	{"[profile a]\nfunctions_allow = a,b\n",
	 "2: functions_allow = a,b: expected names of functions separated by"},
	{"[profile a]\ncalls_at_once = 0\n", "expected a number from 1 to 10000"},
	{"[profile a]\ncall_log = all\n", "expected one of: names arguments"},
	{"[profile a]\nforbid_in = cell\n", "expected one of: check exec"},
	{"[profile a]\npreload = numpy??\n", "expected names of modules"},
	{"[profile a]\npreload = a..b\n", "expected names of modules"},
	{"[profile a]\npreload = 3d\n", "expected names of modules"},
	{"[profile a]\npreload = a.?\n", "expected names of modules"},
	{"[profile a]\nenv = A\n", "expected NAME=value"},
	{"[profile a]\nenv = =b\n", "expected NAME=value"},
	{"[profile a]\nenv = \"A=b\n", "expected items separated by blanks, each quoted"},
	{"[profile a]\nenv = A=\"b\"\n", "expected items separated by blanks, each quoted"},
	{"[profile a]\nenv = \"A=b\"C=d\n", "expected items separated by blanks, each quoted"},
	{"[profile a]\nenv = \"\"\n", "expected no empty item"},
	{"[profile a]\nread = /none/such\n", "expected directories that exist, but /none/such: No such file"},
	{"[profile a]\nread = /usr\n\n# more\n  /none/such\n", "5: read = /none/such: expected directories"},
	{"[profile a]\nwrite = /dev/null\n", "expected directories, but /dev/null is none"},
	{"[profile a]\nread = usr\n", "expected an absolute path"},
	{"[profile a]\npython = /none/such\n", "expected something that exists, but /none/such"},
	{"[profile a]\nidle_ttl = 25h\n", "2: idle_ttl = 25h is over hard_ttl = 1d (the default)"},
	{"[profile a]\ncell_timeout = 2h\ncell_timeout_max = 1h\n",
	 "3: cell_timeout = 2h is over cell_timeout_max = 1h"},
	{"[profile a]\ncell_timeout_max = 30s\n",
	 "2: cell_timeout = 1m (the default) is over cell_timeout_max = 30s"},
	{"[profile a]\ncell_timeout_max = 1h\ncell_timeout = off\n",
	 "3: cell_timeout = off is over cell_timeout_max"},
	{"[profile a]\nhard_ttl = 1m\n\nidle_ttl = 2m\n[daemon]\n", "4: idle_ttl = 2m is over hard_ttl = 1m"},
	{"[profile a]\nwrite = /usr\nread = /etc /usr/share\n", "3: read = /usr/share lies in write = /usr, so"},
	{"[profile a]\nread = /usr/share\nhide = /usr\n", "2: read = /usr/share lies in hide = /usr, so"},
	{"[profile a]\nread = /etc /tmp/\n",
	 "2: read = /tmp/: a session has a /tmp of its own; name a directory in it"},
	{"[profile a]\nwrite = /var/../dev\n", "2: write = /var/../dev: a session has a /dev of its own"},
	{"[profile a]\nnetwork = "
	 "tcp:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,"
	 "31,32,33\n",
	 "and at most 32 ports"},
	{"[profile a]\nhide = /var/tmp\nwrite = /var/tmp\n", "3: write = /var/tmp lies in hide = /var/tmp, so"},
	{"[profile a]\nwrite = /var/tmp/../../usr/\nread = /lib/\n", "read = /lib/ lies in write = "},
	{"[daemon]\nlog = /etc/passwd\n[profile a]\nwrite = /etc\n",
	 "test.conf:4: profile a: write = /etc holds /etc/passwd, which no session may change"},
	{"[profile a]\nwrite = /etc\n[daemon]\naudit_log = /etc/passwd\n",
	 "2: profile a: write = /etc holds /etc/passwd"},
	{"[daemon]\nlog = /x\x01\n", "2: a control character (0x1)"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct config *config = parse(refused[i].text);

		CHECK(!config);
		CHECK(strncmp(error.text, "test.conf:", 10) == 0);
		if (!strstr(error.text, refused[i].message)) {
			fprintf(stderr, "%zu: wanted \"%s\", got \"%s\"\n", i, refused[i].message, error.text);
			CHECK(!"the right words");
		}
		config_free(config);
	}
}

/* Where no list of texts can stand for the files. $ is the directory they are in. */
static char directory[] = "/tmp/lair-config-XXXXXX";

static const char *expanded(const char *text)
{
	static char result[2048];
	size_t size = 0;

	for (; *text && size < sizeof(result) - sizeof(directory); text++) {
		if (*text == '$')
			size += (size_t)snprintf(result + size, sizeof(result) - size, "%s", directory);
		else
			result[size++] = *text;
	}
	result[size] = '\0';
	return result;
}

#define SO "so its sessions could put something else there"

static const struct {
	const char *name, *text, *message; /* no message: it is allowed */
} laid_out[] = {
	/* a session's profile, and what lies in what it may change */
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nread = $/w/sub\n", "2: profile a: write = $/w holds $/w/sub"},
	{"-", "[profile b]\nread = $/w/sub\n[profile a]\nwrite = $/w\n", "read = $/w/sub of profile b, " SO},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nwrite = $/w/sub\n", "write = $/w/sub of profile b, " SO},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nimport = $/w/sub\n", "import = $/w/sub of profile b, " SO},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nhide = $/w/sub\n", "hide = $/w/sub of profile b, " SO},
	{"-", "[profile a]\nwrite = $/w $/w/sub\n", "write = $/w/sub of profile a, " SO},
	{"-", "[profile a]\nwrite = $/w\nhide = $/w/sub\n", "hide = $/w/sub of profile a, " SO},
	{"-", "[profile a]\nwrite = $/w\nimport = $/w/sub\n", "import = $/w/sub of profile a, " SO},
	{"-", "[profile a]\nwrite = $/w\npython = $/w/sub\n", "python = $/w/sub of profile a, " SO},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\npython = $/w\n", "python = $/w of profile b, " SO},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\npython = $/w/sub/file\n", "holds $/w/sub/file, python = "},
	/* links on the way, that could be others */
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nread = $/w/out\n", "holds $/w/out, read = $/w/out"},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nimport = $/in/sub\n", "holds $/w/sub, import = $/in/sub"},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nread = $/w/sub/../../r\n", "holds $/w/sub, read = "},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\npython = $/venv\n", "holds $/w/python, python = $/venv"},
	{"-", "[profile a]\nwrite = $/venv/lib\n[profile b]\npython = $/venv\n",
	 "write = $/venv/lib lies in python = $/venv of profile b"},
	{"-", "[profile a]\nwrite = $/venv/lib\n[profile b]\npython = $/venv/bin/python\n",
	 "write = $/venv/lib lies in python = $/venv/bin/python of profile b"},
	/* laird's own */
	{"$/w/file", "[profile a]\nwrite = $/w\n", "write = $/w holds $/w/file, which no session may change"},
	{"$/w/file", "[profile a]\nread = $/w\nwrite = $/w\nhide = $/w/sub\n", "$/w: the settings are in $/w"},
	{"$/w/sub/file", "[profile a]\nwrite = $/w\nhide = $/w/sub\n",
	 "holds $/w/sub/file, which no session may change"},
	{"$/in/x", "[profile a]\nwrite = $/w\n", "holds $/w/x, which no session may change"},
	{"-", "[daemon]\naudit_log = $/w/new\n[profile a]\nwrite = $/w\n", "/w/new, which no session may change"},
	{"-", "[daemon]\nlog = $/r/log\n[profile a]\nread = $/r\n",
	 "read = $/r: the log is in $/r; no session may"},
	{"$/r/conf", "[profile a]\nimport = $/r\n", "import = $/r: the settings are in $/r"},
	/* and what is none of that */
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nread = $/w\nimport = $/w\n", NULL},
	{"-", "[profile a]\nwrite = $/w\n[profile b]\nwrite = $/in\n[profile c]\nhide = $/w\n", NULL},
	{"-", "[profile a]\nread = $\nwrite = $/w\nhide = $/r\nimport = $ $/r\npython = $/venv\n",
	 "holds $/w/python"},
	{"-", "[profile a]\nread = $\nwrite = $/r\nhide = $/w\nimport = $ $/w\npython = $/venv\n", NULL},
	{"$/r/conf", "[daemon]\nlog = $/r/log\n[profile a]\nread = $\nwrite = $/w\n", NULL},
	{"-", "[profile a]\nread = /\nhide = $/w/file\n", "expected directories, but $/w/file is none"},
	{"-", "[profile a]\nread = /\nhide = $/none\n", "expected directories that exist, but $/none: No such"},
};

static void test_laid_out(size_t i)
{
	char name[256], message[512] = "";
	struct config *config = NULL;
	int r;

	snprintf(name, sizeof(name), "%s", expanded(laid_out[i].name));
	if (laid_out[i].message)
		snprintf(message, sizeof(message), "%s", expanded(laid_out[i].message));
	*error.text = '\0';
	r = config_parse(&config, bytes_of(expanded(laid_out[i].text)), name, &error);
	CHECK(r == (*message ? -EINVAL : 0));
	if (!strstr(error.text, message) || (!*message && *error.text)) {
		fprintf(stderr, "%zu: wanted \"%s\", got \"%s\"\n", i, message, error.text);
		CHECK(!"the right words");
	}
	config_free(config);
}

static void test_paths(void)
{
	static const char *const directories[] = {"$/w", "$/w/sub", "$/r", "$/venv", "$/venv/bin", "$/venv/lib"},
				 *const files[] = {"$/w/file", "$/w/sub/file", "$/w/python", "$/venv/pyvenv.cfg"},
				 *const links[][2] = {{"../r", "$/w/out"},
						      {"w", "$/in"},
						      {"../../w/python", "$/venv/bin/python"}};

	CHECK(mkdtemp(directory) != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		CHECK(mkdir(expanded(directories[i]), 0700) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		CHECK(close(open(expanded(files[i]), O_WRONLY | O_CREAT, 0600)) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		CHECK(symlink(links[i][0], expanded(links[i][1])) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(laid_out); i++)
		test_laid_out(i);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		CHECK(unlink(expanded(links[i][1])) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		CHECK(unlink(expanded(files[i])) == 0);
	for (size_t i = ARRAY_SIZE(directories); i-- > 0;)
		CHECK(rmdir(expanded(directories[i])) == 0);
	CHECK(rmdir(directory) == 0);
}

static void test_allowed(void)
{
	static const char *const texts[] = {
		"[profile a]\nidle_ttl = off\n",
		"[profile a]\ncell_timeout = off\ncell_timeout_max = none\n",
		"[profile a]\nspares = 0\n",
		"[profile a]\nhard_ttl = 0\n",
		"[profile a]\nwrite = /usr\nread = /usr\n",
		"[profile a]\nwrite = /usr/share\nread = /usr\n",
		"[ profile   a ]\n  spares = 1\n",
		"[daemon]\nuids = 7-7",
		"[profile default]\n[profile a.b-c_9]\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(settle(parse(texts[i])));
}

static void test_long_lines(void)
{
	char text[512] = "[profile a]\nenv = A=";
	struct config *config;

	memset(text + strlen(text), 'x', 197 - strlen("env = A="));
	config = parse(text);
	CHECK(config && strlen(config->profiles[0]->env.items[0]) == 191);
	free(settle(config));
	text[strlen(text)] = 'x'; /* the rest is zeros */
	CHECK(!parse(text) && strstr(error.text, "test.conf:2: a line may have 197 characters"));
}

static void test_files(void)
{
	struct config *config = NULL;

	CHECK(config_load(&config, "/none/such", &error) == -ENOENT);
	CHECK(!strcmp(error.text, "/none/such: No such file or directory"));
	CHECK(config_load(&config, "/dev/null", &error) == -EINVAL);
	CHECK(!strcmp(error.text, "/dev/null: not a regular file"));
	CHECK(config_load(&config, "/", &error) == -EISDIR);
	CHECK(!config);
}

static bool format_is(const struct unit *units, uint64_t value, const char *expected)
{
	char text[32];

	quantity_format(text, sizeof(text), units, value);
	return strcmp(text, expected) == 0;
}

static void test_quantities(void)
{
	uint64_t value = 7;

	CHECK(format_is(duration_units, 90000000, "90s") && format_is(duration_units, 1500000, "1500ms"));
	CHECK(format_is(duration_units, 1, "1us") && format_is(duration_units, 86400000000, "1d"));
	CHECK(format_is(size_units, 1536, "1536") && format_is(size_units, 3 << 20, "3M"));
	CHECK(format_is(size_units, 0, "0") && format_is(NULL, 12, "12"));
	CHECK(quantity_parse(&value, duration_units, 1000000, "1d1h1m1s1ms1us") && value == 90061001001);
	CHECK(quantity_parse(&value, duration_units, 1000000, "0.25") && value == 250000);
	CHECK(quantity_parse(&value, size_units, 1, "64kib") && value == 65536);
	CHECK(!quantity_parse(&value, size_units, 1, "") && !quantity_parse(&value, size_units, 1, "1."));
	CHECK(!quantity_parse(&value, size_units, 1, ".5M") &&
	      !quantity_parse(&value, size_units, 1, "1.0000001M"));
	CHECK(!quantity_parse(&value, size_units, 1, "16777216T") && value == 65536);
}

static int delta_print(void *userdata, const struct setting_delta *delta)
{
	fprintf(userdata, "%s %s %s (%s) (%s)%s\n", delta->kind, delta->profile ? delta->profile : "-",
		delta->setting ? delta->setting : "-", delta->before ? delta->before : "-",
		delta->after ? delta->after : "-", delta->at_start ? " at start" : "");
	return 0;
}

static bool changes_are(const char *before, const char *now, const char *expected)
{
	struct config *a = parse(before), *b = parse(now);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool same;

	if (!a || !b || !out)
		abort();
	CHECK(config_compare(a, b, delta_print, out) == 0);
	fclose(out);
	same = strcmp(text, expected) == 0;
	if (!same)
		fprintf(stderr, "%s", text);
	free(text);
	config_free(a);
	config_free(b);
	return same;
}

static int refuse(void *userdata, const struct setting_delta *delta)
{
	(void)delta;
	++*(int *)userdata;
	return -ENOMEM;
}

static void test_changes(void)
{
	struct config *a = parse(""), *b = parse("[daemon]\nsessions = 7\nlog = /l\n");
	int calls = 0;

	CHECK(changes_are("", "[profile default]\nidle_ttl = 1800s\n", ""));
	CHECK(changes_are("[profile default]\nenv = A=1\n", "[daemon]\nframe_size = 64M\n[profile default]\n",
			  "changed - frame_size (32M) (64M) at start\nchanged default env (A=1) ()\n"));
	CHECK(changes_are("[profile a]\n[profile b]\n", "[profile b]\nenv = A=1 B=2\n[profile c]\n",
			  "changed b env () (A=1\n\tB=2)\nadded c - (-) (-)\nremoved a - (-) (-)\n"));
	CHECK(config_compare(a, b, refuse, &calls) == -ENOMEM && calls == 1);
	config_free(a);
	config_free(b);
}

int main(void)
{
	test_shipped_is_default();
	test_values();
	test_home();
	test_references();
	test_rulings();
	test_lets_call();
	test_refused();
	test_paths();
	test_allowed();
	test_long_lines();
	test_files();
	test_quantities();
	test_changes();
	return check_report();
}
