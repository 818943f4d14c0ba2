/* The identity of a session: a user without any capability, which can get none back. It is never host uid 0. */
#include "steps.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Wardens inherit the template's groups, and in a user namespace they cannot leave them. An ordinary user cannot
 * leave groups at all. */
int privileges_prepare(struct cage_report *report)
{
	if (geteuid() == 0 && getgroups(0, NULL) != 0 && setgroups(0, NULL) < 0)
		return cage_fail(report, errno, "cannot leave the supplementary groups");
	return 0;
}

/* With a user namespace, this comes before the mounts: only users that the namespace maps can own files there.
 * Without one it comes after the mounts, which need root's powers. */
int privileges_become(struct cage *cage, struct cage_report *report)
{
	gid_t gid = (gid_t)cage->uid;

	if (cage->uid == 0)
		return geteuid() == 0 ? cage_fail(report, EPERM, "a session never runs as root") : 0;
	if (setresgid(gid, gid, gid) < 0 || setresuid(cage->uid, cage->uid, cage->uid) < 0)
		return cage_fail(report, errno, "cannot become uid %u", (unsigned)cage->uid);
	cage_guard(report, "uid");
	return 0;
}

#define SECUREBITS                                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |           \
	 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int privileges_bound(struct cage *cage, struct cage_report *report)
{
	/* If this process may not change the bounding set, what is in it is harmless: with no_new_privs nothing of
	 * it can be gained. */
	if (prctl(PR_CAPBSET_DROP, 0, 0, 0, 0) < 0)
		return 0;
	for (int cap = 1, r; (r = prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)) == 0 || errno != EINVAL; cap++)
		if (r < 0)
			return cage_fail(report, errno, "cannot drop capability %d", cap);
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return cage_fail(report, errno, "cannot lock the securebits");
	return 0;
}

int privileges_drop(struct cage *cage, struct cage_report *report)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	/* If the warden is the first process of a pid namespace, all others die with it. Otherwise SIGTERM lets it
	 * end them first. */
	int on_death = cage->namespaces & CLONE_NEWPID ? SIGKILL : SIGTERM;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return cage_fail(report, errno, "cannot clear the ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return cage_fail(report, errno, "cannot drop the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cage_fail(report, errno, "no_new_privs");
	/* Another process of this uid can then neither trace this one nor read its memory and environment. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, on_death, 0, 0, 0) < 0)
		return cage_fail(report, errno, "prctl");
	cage_guard(report, "caps");
	cage_guard(report, "nnp");
	return 0;
}
