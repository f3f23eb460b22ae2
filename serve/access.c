/* SPDX-License-Identifier: MIT */
/*
 * See access.h. Guarantees: no message contains any part of a token.
 */
#define _GNU_SOURCE
#include "serve/access.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trace/message.h"

#define CHANCE_BYTES 24

/* Users */

static bool find_user(const char *name, uid_t *uid)
{
	char *end;
	unsigned long number = strtoul(name, &end, 10);
	const struct passwd *entry;

	if (*name >= '0' && *name <= '9' && *end == '\0' && number < UINT32_MAX) {
		*uid = (uid_t)number;
		return true;
	}
	entry = getpwnam(name);
	if (entry != NULL)
		*uid = entry->pw_uid;
	return entry != NULL;
}

static int take_users(struct gt_access *access, const char *users, struct gt_message *message)
{
	char *copy = strdup(users), *rest = copy, *name;
	int error = 0;

	access->users = calloc(strlen(users) + 1, sizeof(*access->users));
	if (copy == NULL || access->users == NULL) {
		gt_message_set(message, "no memory");
		error = GT_ENOMEM;
	}
	while (error == 0 && (name = strsep(&rest, ",")) != NULL) {
		if (strcmp(name, "all") == 0) {
			access->everybody = true;
		} else if (find_user(name, &access->users[access->user_count])) {
			access->user_count++;
		} else {
			gt_message_set(message, "there is no user '%.64s'", name);
			error = GT_EINVAL;
		}
	}
	free(copy);
	return error;
}

/* The token */

static int make_token(struct gt_access *access, const char *path, struct gt_message *message)
{
	uint8_t chance[CHANCE_BYTES];
	char line[2 * CHANCE_BYTES + 2];
	int fd;

	if (getrandom(chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return gt_fail(message, GT_EIO, "no random bytes for a token: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(chance); i++)
		sprintf(line + 2 * i, "%02x", chance[i]);
	memcpy(access->token, line, 2 * CHANCE_BYTES + 1);
	strcat(line, "\n");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) && close(fd) == 0)
		return 0;
	gt_message_set(message, "cannot make the token file '%.200s': %s", path, strerror(errno));
	if (fd >= 0)
		unlink(path);
	return GT_EIO;
}

/* Is every byte printable and without meaning in an address? */
static bool is_token(const char *token)
{
	size_t bytes = strlen(token);

	return bytes >= 16 && bytes <= GT_TOKEN_BYTES &&
	       strspn(token,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") ==
		       bytes;
}

static int read_token(struct gt_access *access, int fd, const char *path,
		      struct gt_message *message)
{
	char line[GT_TOKEN_BYTES + 2];
	struct stat status;
	ssize_t got;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    (status.st_uid != 0 && status.st_uid != geteuid()) || (status.st_mode & 077) != 0) {
		return gt_fail(message, GT_EPERM,
			       "the token file '%.200s' is not this user's alone: chmod 600 it",
			       path);
	}
	got = read(fd, line, sizeof(line) - 1);
	line[got > 0 ? got : 0] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (!is_token(line))
		return gt_fail(message, GT_EINVAL,
			       "the first line of '%.200s' is no token: 16 to %d letters, digits "
			       "and -._~ are wanted",
			       path, GT_TOKEN_BYTES);
	strcpy(access->token, line);
	return 0;
}

static int take_token(struct gt_access *access, const char *path, struct gt_message *message)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error;

	if (fd < 0 && errno == ENOENT)
		return make_token(access, path, message);
	if (fd < 0)
		return gt_fail(message, GT_EIO, "cannot read the token file '%.200s': %s", path,
			       strerror(errno));
	error = read_token(access, fd, path, message);
	close(fd);
	return error;
}

int gt_access_init(struct gt_access *access, const char *users, const char *token_file,
		   struct gt_message *message)
{
	int error = 0;

	*access = (struct gt_access){ .users = NULL };
	if (users != NULL)
		error = take_users(access, users, message);
	if (error == 0 && token_file != NULL)
		error = take_token(access, token_file, message);
	if (error != 0)
		gt_access_fini(access);
	return error;
}

void gt_access_fini(struct gt_access *access)
{
	free(access->users);
	explicit_bzero(access, sizeof(*access));
}

bool gt_access_allows_peer(const struct gt_access *access, const struct gt_peer *peer)
{
	if (access->everybody)
		return true;
	if (!peer->local)
		return false;
	if (peer->uid == 0 || peer->uid == geteuid())
		return true;
	for (size_t i = 0; i < access->user_count; i++) {
		if (access->users[i] == peer->uid)
			return true;
	}
	return false;
}

bool gt_access_allows_token(const struct gt_access *access, const char *token, size_t bytes)
{
	size_t wanted = strlen(access->token);
	unsigned differs = bytes != wanted;

	if (wanted == 0)
		return false;
	for (size_t i = 0; i < wanted; i++)
		differs |= (unsigned char)access->token[i] ^
			   (unsigned char)(bytes != 0 ? token[i % bytes] : 0);
	return differs == 0;
}

bool gt_access_is_open(const struct gt_access *access)
{
	return access->everybody || access->user_count != 0 || access->token[0] != '\0';
}
