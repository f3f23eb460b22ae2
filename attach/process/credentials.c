/* SPDX-License-Identifier: MIT */
/* What a process may do: see credentials.h. */
#include "attach/process/credentials.h"
#include "attach/process/process.h"
#include "attach/process/proc.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CAP_SETGID   6
#define CAP_SETUID   7
#define STATUS_BYTES 65536 /* a line of 65,536 groups is longer: then there are too many */

static bool parse_numbers(const char *status, const char *name, uint32_t *numbers, size_t count)
{
	const char *at = strstr(status, name);
	char *end;
	size_t i;

	if (!at)
		return false;
	at += strlen(name);
	for (i = 0; i < count; i++, at = end) {
		numbers[i] = (uint32_t)strtoul(at, &end, 10);
		if (end == at)
			return false;
	}
	return true;
}

static bool parse_groups(const char *status, struct gt_credentials *credentials)
{
	const char *at = strstr(status, "\nGroups:"), *line;
	char *end;

	if (!at)
		return false;
	at += sizeof("\nGroups:") - 1;
	line = strchr(at, '\n');
	if (!line)
		return false;
	/* A number and a blank are two bytes at least. */
	credentials->groups = calloc((size_t)(line - at) / 2 + 1, sizeof(uint32_t));
	if (!credentials->groups)
		return false;
	while (at < line) {
		unsigned long group = strtoul(at, &end, 10);

		if (end == at || end > line)
			break;
		credentials->groups[credentials->group_count++] = (uint32_t)group;
		at = end;
	}
	return true;
}

bool gt_credentials_parse(const char *status, struct gt_credentials *credentials)
{
	const char *capabilities = strstr(status, "\nCapPrm:");

	*credentials = (struct gt_credentials){ 0 };
	if (!capabilities || !parse_numbers(status, "\nUid:", credentials->uids, 4) ||
	    !parse_numbers(status, "\nGid:", credentials->gids, 4) ||
	    !parse_groups(status, credentials))
		return false;
	credentials->capabilities = strtoull(capabilities + sizeof("\nCapPrm:") - 1, NULL, 16);
	return true;
}

int gt_credentials_read(pid_t pid, struct gt_credentials *credentials)
{
	char *text = malloc(STATUS_BYTES), path[64];
	struct stat status;
	bool read;

	*credentials = (struct gt_credentials){ 0 };
	if (!text)
		return GT_ENOMEM;
	read = gt_proc_read(text, STATUS_BYTES, "/proc/%d/status", (int)pid) &&
	       gt_credentials_parse(text, credentials);
	free(text);
	if (!read) {
		gt_credentials_free(credentials);
		return GT_EGONE;
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (stat(path, &status) == 0)
		credentials->user_namespace = status.st_ino;
	credentials->secure = gt_process_auxv(pid, AT_SECURE) != 0;
	return 0;
}

void gt_credentials_free(struct gt_credentials *credentials)
{
	free(credentials->groups);
	*credentials = (struct gt_credentials){ 0 };
}

static bool has_uid(const struct gt_credentials *credentials, uint32_t uid)
{
	int i;

	for (i = 0; i < 4; i++)
		if (credentials->uids[i] == uid)
			return true;
	return false;
}

static bool has_gid(const struct gt_credentials *credentials, uint32_t gid)
{
	size_t i;

	for (i = 0; i < 4; i++)
		if (credentials->gids[i] == gid)
			return true;
	for (i = 0; i < credentials->group_count; i++)
		if (credentials->groups[i] == gid)
			return true;
	return false;
}

/* In the same user namespace, or in one that it has made: capabilities there are over what is in
 * there. */
static bool may_become(const struct gt_credentials *first, uint64_t capability)
{
	return first->capabilities >> capability & 1;
}

const char *gt_credentials_beyond(const struct gt_credentials *first,
				  const struct gt_credentials *other)
{
	size_t i;

	if (other->secure && !first->secure)
		return "its program was given rights when it was executed (set-user-ID, "
		       "set-group-ID, capabilities)";
	if (first->user_namespace == other->user_namespace &&
	    (other->capabilities & ~first->capabilities))
		return "it has capabilities";
	for (i = 0; i < 4; i++) {
		if (!may_become(first, CAP_SETUID) && !has_uid(first, other->uids[i]))
			return "it is another user's";
		if (!may_become(first, CAP_SETGID) && !has_gid(first, other->gids[i]))
			return "it is in another group";
	}
	for (i = 0; i < other->group_count; i++)
		if (!may_become(first, CAP_SETGID) && !has_gid(first, other->groups[i]))
			return "it is in another group";
	return NULL;
}
