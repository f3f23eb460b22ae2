/* SPDX-License-Identifier: MIT */
/*
 * What a process may do: its users, groups, capabilities and user namespace, as /proc has them; and its PID namespace.
 * Processes of a recording that may do the same, and have numbers of the same namespace, share memory that all of them
 * write; others do not (doc/design/security.md).
 */
#ifndef GT_ATTACH_CREDENTIALS_H
#define GT_ATTACH_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gt_credentials {
	uint32_t uids[4]; /* real, effective, saved, of files */
	uint32_t gids[4];
	uint32_t *groups; /* supplementary */
	size_t group_count;
	uint64_t capabilities;	 /* permitted, in its user namespace */
	uint64_t user_namespace; /* 0: this host may not see it */
	uint64_t pid_namespace;	 /* 0: the same */
	bool secure;		 /* AT_SECURE: its program was given rights when it was executed */
};

/* 0, GT_EGONE, GT_ENOMEM. Give back with gt_credentials_free(). */
int gt_credentials_read(pid_t pid, struct gt_credentials *credentials);
void gt_credentials_free(struct gt_credentials *credentials);

/* The same from the text of /proc/PID/status. False: it is none. */
bool gt_credentials_parse(const char *status, struct gt_credentials *credentials);

/* Whether both may do the same, and are in one PID namespace. Who may take other users or groups (CAP_SETUID, CAP_SETGID)
 * may do the same as all of them, whichever it has now; else the real, the effective and the saved one count alike. */
bool gt_credentials_are_equal(const struct gt_credentials *a, const struct gt_credentials *b);
/* The same, whichever PID namespaces they are in. */
bool gt_credentials_are_alike(const struct gt_credentials *a, const struct gt_credentials *b);

#endif
