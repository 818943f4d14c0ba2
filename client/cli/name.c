/* Names of sessions for people. Only root can name a session of another user: by the number of the user, a slash
 * and the id. Here the user's name may replace the number. The daemon knows only numbers, so it never waits for
 * a directory of users. */
#include "name.h"

#include <inttypes.h>
#include <pwd.h>

/* How many bytes stand before the first slash, 0 if there is none; *numberp: whether they are all digits. */
static size_t user_size(const char *name, size_t size, bool *numberp)
{
	const char *slash = memchr(name, '/', size);
	size_t n = slash ? (size_t)(slash - name) : 0;

	*numberp = n > 0 && strspn(name, "0123456789") == n;
	return n;
}

/* If *@namep begins with the name of a user, replace that by the user's number: *@namep is @room then. */
static int resolve(const struct cli *cli, const char **namep, char room[static CLI_NAME_SIZE])
{
	const char *name = *namep;
	const struct passwd *user;
	char who[CLI_NAME_SIZE];
	bool is_number;
	size_t n = user_size(name, strlen(name), &is_number);

	/* If the name is too long, the daemon refuses it. */
	if (geteuid() != 0 || n == 0 || is_number || strlen(name) >= sizeof(who))
		return 0;
	snprintf(who, sizeof(who), "%.*s", (int)n, name);
	user = getpwnam(who);
	if (!user)
		return cli_usage(cli, "there is no user \"%s\"; root's own session of that id is \"0/%s\"", who,
				 name);
	snprintf(room, CLI_NAME_SIZE, "%u%s", user->pw_uid, name + n);
	*namep = room;
	return 0;
}

static int resolve_argument(struct cli *cli, int i, char room[static CLI_NAME_SIZE])
{
	const char *name = cli->args[i];
	int r = resolve(cli, &name, room);

	if (name == room)
		cli->args[i] = room;
	return r;
}

int cli_names(struct cli *cli)
{
	int r = cli->session ? resolve(cli, &cli->session, cli->names[0]) : 0;

	if (!r && cli->n_args > 0 && (cli->verb->flags & ON_SESSION))
		r = resolve_argument(cli, 0, cli->names[0]);
	if (!r && cli->n_args > 0 && (cli->verb->flags & WITH_BRANCH))
		r = resolve_argument(cli, cli->n_args - 1, cli->names[1]);
	return r;
}

const char *name_of_user(char out[static CLI_NAME_SIZE], uint64_t uid)
{
	const struct passwd *user = getpwuid((uid_t)uid);

	snprintf(out, CLI_NAME_SIZE, "%s", user ? user->pw_name : "");
	if (!user)
		snprintf(out, CLI_NAME_SIZE, "%" PRIu64, uid);
	return text_tame(out);
}

const char *name_shown(char out[static CLI_NAME_SIZE], struct lair_text name)
{
	const struct passwd *user;
	bool is_number;
	size_t n = user_size(name.data, name.size, &is_number);

	text_tamed(out, CLI_NAME_SIZE, name);
	if (geteuid() != 0 || n == 0 || n > 10 || !is_number)
		return out;
	user = getpwuid((uid_t)strtoul(out, NULL, 10));
	/* Only if the result can be used as a name of the session again. */
	if (user && user->pw_name[strspn(user->pw_name, "0123456789")] && !strchr(user->pw_name, '/'))
		snprintf(out, CLI_NAME_SIZE, "%s%.*s", user->pw_name, (int)(name.size - n), name.data + n);
	return text_tame(out);
}
