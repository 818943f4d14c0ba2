/* Shared by the files of the cage: what a template has prepared, and one function for each mechanism. Every step
 * returns 0, or -errno with the reason in the report. After a failed step only _exit is safe. */
#pragma once

#include "cage.h"
#include "places.h"

#include <linux/filter.h>

enum cage_network { NETWORK_OFF, NETWORK_HOST, NETWORK_TCP };

/* From the weakest to the strongest. */
enum cage_level {
	LEVEL_AUDIT_ONLY,
	LEVEL_READONLY,
	LEVEL_UID,
	LEVEL_LANDLOCK,
	LEVEL_STRONG_NOMEM,
	LEVEL_STRONG,
	_LEVEL_N,
};

#define DESCRIPTORS_MARKED 256

struct cage {
	/* what the profile says */
	struct places places;
	char *home;	 /* where the workspace is mounted; NULL: under its own path */
	char *directory; /* where interpreters start; NULL: in the workspace */
	enum cage_network network;
	uint16_t ports[32];
	size_t n_ports;
	bool subprocess;
	bool terminals_wanted;
	uint64_t memory, processes, open_files, file_size, scratch_size;
	enum cage_level wanted;
	/* the limits that a control group of each warden holds, according to laird */
	bool memory_group, processes_group, cpu_group;

	/* what this host allows, found out by trying */
	unsigned long namespaces; /* CLONE_NEW…; 0: none */
	int landlock_abi;	  /* 0: none */
	bool proc;		  /* a fresh /proc can be mounted */
	bool terminals;		  /* terminals of its own, as the profile wants: they take a mount namespace */
	bool own_processes;	  /* RLIMIT_NPROC counts a session's processes and no others */
	bool seccomp;
	bool uid_alone; /* sessions run as a uid that nothing else has */
	enum cage_level reached;
	struct sock_fprog filter;
	int descriptors_end;					/* above all descriptors that the template has */
	uint64_t descriptors_harmless[DESCRIPTORS_MARKED / 64]; /* a bit for each descriptor that may stay open */
	uint64_t masked;	/* a bit for each path of /proc that is covered, see mounts.c */
	uint64_t data_baseline; /* bytes of data that the template has already */

	/* this warden */
	uid_t uid;			/* on the host; 0: the template's own */
	int doors[CAGE_GROUPS_MAX + 1]; /* to control groups that the warden must enter itself, ended by -1 */
	int birthplace;	       /* the directory of the group to clone it into; -1: none, or the warden is in it */
	const char *workspace; /* as the session finds it, once workspace_add was there */
	char landlock_name[16];
};

int cage_fail(struct cage_report *report, int error, const char *format, ...) _printf_(3, 4);
int cage_fail_place(struct cage_report *report, int r, const char *path); /* @r: from place_open or places_init */

/* namespaces.c */
extern const unsigned long namespaces_all;
/* The clone has the uid cage->uid. With @sibling it is a child of the caller's parent. */
pid_t namespaces_clone(struct cage *cage, bool sibling, int *pidfdp);

/* groups.c: note the caller's @doors in @cage; enter the groups in which the clone was not born. */
int groups_take(struct cage *cage, const int *doors);
int groups_enter(struct cage *cage, struct cage_report *report);

/* one step each, in the order of cage.c's list */
int descriptors_close(struct cage *cage, const int *keep, struct cage_report *report);
int descriptors_renew(const struct cage *cage); /* with the mounts; returns 0 or -errno */
int namespaces_enter(struct cage *cage, struct cage_report *report);
int mounts_enter(struct cage *cage, struct cage_report *report);
int limits_enter(struct cage *cage, struct cage_report *report);
int privileges_bound(struct cage *cage, struct cage_report *report);
int privileges_become(struct cage *cage, struct cage_report *report);
int privileges_drop(struct cage *cage, struct cage_report *report);
int landlock_enter(struct cage *cage, struct cage_report *report);
int seccomp_enter(struct cage *cage, struct cage_report *report);

/* Without a pid namespace, an interpreter that could kill its warden could leave processes behind that nobody ends.
 * From Landlock 6 on, its signals reach only its own processes; before that it can send none. An interpreter and
 * its descendants also keep one filter more than the warden: by that the keeper recognises them when they become
 * its children. Return 0 or -errno. */
int landlock_enter_interpreter(void);
int seccomp_enter_interpreter(const struct cage *cage,
			      bool signals); /* @signals: the filter allows them, because others are out of reach */

/* options.c: a filter for calls of which only some options are allowed. It runs before the main one. options_size
 * says how many statements it has at most. options_compile writes them to @out and returns how many there are. */
size_t options_size(void);
size_t options_compile(struct sock_filter *out, const struct cage *cage);

/* in the template, once */
int landlock_abi(void);
int limits_prepare(struct cage *cage);
void mounts_prepare(struct cage *cage);
int privileges_prepare(struct cage_report *report);
int descriptors_prepare(struct cage *cage);
int seccomp_prepare(struct cage *cage, struct cage_report *report);
int probe(struct cage *cage, struct cage_report *report);
/* Whether a place is to be hidden that only a mount can hide, and there are none. */
bool hides_in_vain(const struct cage *cage, char reason[static 256]);
const char *level_name(enum cage_level level);
