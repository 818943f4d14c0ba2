/* deny CALL[:MASK|#N:VALUE]=ERRNO... -- PROGRAM [ARGUMENT...]: run a program on a kernel that lacks something. Each
 * CALL fails with that error; with MASK only when one of its bits is in the first argument, with VALUE only when
 * argument N is that. How the fallbacks for old
 * hosts are tested on a new one. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
} errors[] = {{"ENOSYS", ENOSYS}, {"EPERM", EPERM}, {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC}, {"EACCES", EACCES}};

static int error_number(const char *name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].number;
	return -1;
}

/* The tests name calls that this library may be too old to know. */
static int call_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} newer[] = {{"openat2", 437}, {"mount_setattr", 442}, {"landlock_create_ruleset", 444}};
	int number = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; number == __NR_SCMP_ERROR && i < sizeof(newer) / sizeof(newer[0]); i++)
		if (strcmp(newer[i].name, name) == 0)
			number = newer[i].number;
	return number;
}

static int deny(scmp_filter_ctx ctx, char *rule)
{
	char *error = strchr(rule, '='), *mask = strchr(rule, ':'), *argument = strchr(rule, '#');
	unsigned long long bits, bit;
	int call, number, r = 0;

	if (!error)
		return -EINVAL;
	*error++ = '\0';
	if (mask)
		*mask++ = '\0';
	if (argument)
		*argument++ = '\0';
	call = call_number(rule);
	number = error_number(error);
	if (call == __NR_SCMP_ERROR || number < 0)
		return -EINVAL;
	if (!mask)
		return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(number), call, 0);
	bits = strtoull(mask, NULL, 16);
	if (argument)
		return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(number), call, 1,
					SCMP_CMP64((unsigned)atoi(argument), SCMP_CMP_EQ, bits));
	for (bit = 1; bit && !r; bit <<= 1)
		if (bits & bit)
			r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(number), call, 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
	return r;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int i, r = 0;

	if (!ctx)
		return EXIT_FAILURE;
	/* What it is not told to deny is none of its business. */
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
	/* Only root may do without no_new_privs, and root is to keep its powers. */
	if (geteuid() == 0)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0 && !r; i++)
		r = deny(ctx, argv[i]);
	if (!r && i + 1 < argc)
		r = seccomp_load(ctx);
	if (r || i + 1 >= argc) {
		fprintf(stderr, "deny: %s\n", r ? strerror(-r) : "what to run?");
		return EXIT_FAILURE;
	}
	execv(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return EXIT_FAILURE;
}
