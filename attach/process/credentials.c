/* SPDX-License-Identifier: MIT */
/* What a process may do: see credentials.h. */
#include "attach/process/credentials.h"
#include "attach/process/process.h"
#include "attach/process/proc.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define CAP_SETGID 6
#define CAP_SETUID 7
/* Of /proc/PID/status. A process can have 65,536 groups, with ten digits each. */
#define STATUS_FEWEST 8192u
#define STATUS_MOST   (1u << 20)

static bool parse_numbers(const char *status, const char *name, uint32_t *numbers, size_t count)
{
	const char *at = strstr(status, name);
	char *end;

	if (at == NULL)
		return false;
	at += strlen(name);
	for (size_t i = 0; i < count; i++, at = end) {
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

	if (at == NULL)
		return false;
	at += sizeof("\nGroups:") - 1;
	line = strchr(at, '\n');
	if (line == NULL)
		return false;
	/* A number and a blank are two bytes at least. */
	credentials->groups = calloc((size_t)(line - at) / 2 + 1, sizeof(uint32_t));
	if (credentials->groups == NULL)
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
	if (capabilities == NULL || !parse_numbers(status, "\nUid:", credentials->uids, 4) ||
	    !parse_numbers(status, "\nGid:", credentials->gids, 4) ||
	    !parse_groups(status, credentials))
		return false;
	credentials->capabilities = strtoull(capabilities + sizeof("\nCapPrm:") - 1, NULL, 16);
	return true;
}

static int read_status(pid_t pid, size_t room, struct gt_credentials *credentials)
{
	char *text = malloc(room);
	int error = GT_EGONE;

	if (text == NULL)
		return GT_ENOMEM;
	if (gt_proc_read(text, room, "/proc/%d/status", (int)pid)) {
		if (strlen(text) == room - 1 && room < STATUS_MOST)
			error = GT_ENOSPC;
		else if (gt_credentials_parse(text, credentials))
			error = 0;
	}
	free(text);
	return error;
}

int gt_credentials_read(pid_t pid, struct gt_credentials *credentials)
{
	size_t room = STATUS_FEWEST;
	int error;

	*credentials = (struct gt_credentials){ 0 };
	while ((error = read_status(pid, room, credentials)) == GT_ENOSPC)
		room *= 8;
	if (error) {
		gt_credentials_free(credentials);
		return error;
	}
	credentials->user_namespace = gt_proc_namespace(pid, "user");
	credentials->pid_namespace = gt_proc_namespace(pid, "pid");
	credentials->secure = gt_process_auxv(pid, AT_SECURE) != 0;
	return 0;
}

void gt_credentials_free(struct gt_credentials *credentials)
{
	free(credentials->groups);
	*credentials = (struct gt_credentials){ 0 };
}

/* What is taken with a system call, if it is one of these already. */
static bool has(const uint32_t *numbers, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static bool has_gid(const struct gt_credentials *credentials, uint32_t gid)
{
	return has(credentials->gids, 4, gid) ||
	       has(credentials->groups, credentials->group_count, gid);
}

static bool has_groups_of(const struct gt_credentials *one, const struct gt_credentials *other)
{
	for (size_t i = 0; i < 4; i++)
		if (!has_gid(one, other->gids[i]))
			return false;
	for (size_t i = 0; i < other->group_count; i++)
		if (!has_gid(one, other->groups[i]))
			return false;
	return true;
}

static bool has_users_of(const struct gt_credentials *one, const struct gt_credentials *other)
{
	for (size_t i = 0; i < 4; i++)
		if (!has(one->uids, 4, other->uids[i]))
			return false;
	return true;
}

static bool may(const struct gt_credentials *credentials, uint64_t capability)
{
	return credentials->capabilities >> capability & 1;
}

/* A namespace that this host may not see is taken for the one that is known. */
static bool is_another(uint64_t one, uint64_t other)
{
	return one && other && one != other;
}

bool gt_credentials_are_equal(const struct gt_credentials *a, const struct gt_credentials *b)
{
	return !is_another(a->pid_namespace, b->pid_namespace) && gt_credentials_are_alike(a, b);
}

bool gt_credentials_are_alike(const struct gt_credentials *a, const struct gt_credentials *b)
{
	if (a->capabilities != b->capabilities || a->secure != b->secure ||
	    is_another(a->user_namespace, b->user_namespace))
		return false;
	return (may(a, CAP_SETUID) || (has_users_of(a, b) && has_users_of(b, a))) &&
	       (may(a, CAP_SETGID) || (has_groups_of(a, b) && has_groups_of(b, a)));
}
