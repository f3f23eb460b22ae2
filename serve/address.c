/* SPDX-License-Identifier: MIT */
/*
 * Parsing and binding of addresses. Guarantees: reads only the given text; on failure no descriptor
 * stays open; removes no file but a socket that no process listens on. A name is looked up by the
 * system's resolver, which may take long; a number is not.
 */
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/trace/message.h"

static int parse_port(const char *text, uint16_t *port)
{
	unsigned value = 0;

	if (*text == '\0' || strlen(text) > 5)
		return GT_EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return GT_EINVAL;
		value = value * 10 + (unsigned)(*text - '0');
	}
	if (value > UINT16_MAX)
		return GT_EINVAL;
	*port = (uint16_t)value;
	return 0;
}

int gt_address_parse(const char *text, struct gt_address *address, struct gt_message *message)
{
	const char *host = text;
	const char *port = NULL;
	size_t host_bytes;

	*address = (struct gt_address){ .host = "127.0.0.1", .port = 9090 };
	if (strncmp(text, "unix:", 5) == 0) {
		if (text[5] == '\0' || strlen(text + 5) >= sizeof(address->path))
			goto wrong;
		strcpy(address->path, text + 5);
		return 0;
	}
	if (text[0] == '[') {
		const char *end = strchr(text, ']');

		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			goto wrong;
		host = text + 1;
		host_bytes = (size_t)(end - host);
		port = end[1] == ':' ? end + 2 : NULL;
		if (host_bytes == 0)
			goto wrong;
	} else {
		const char *colon = strrchr(text, ':');

		if (colon != NULL && strchr(text, ':') != colon)
			goto wrong; /* more than one: an IPv6 address wants brackets */
		host_bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);
		port = colon != NULL ? colon + 1 : NULL;
		if (colon == NULL && text[0] != '\0' && text[strspn(text, "0123456789")] == '\0') {
			port = text;
			host_bytes = 0;
		}
	}
	if (host_bytes >= sizeof(address->host))
		goto wrong;
	if (host_bytes > 0) {
		memcpy(address->host, host, host_bytes);
		address->host[host_bytes] = '\0';
	}
	if (port != NULL && parse_port(port, &address->port) != 0)
		goto wrong;
	return 0;

wrong:
	return gt_fail(
		message, GT_EINVAL,
		"'%.80s' is no address to listen on: ADDRESS:PORT is wanted, as 127.0.0.1:9090, "
		"[::1]:9090 or 9090, or unix:PATH of at most 107 bytes",
		text);
}

static int bind_error(const struct gt_address *address, int error, struct gt_message *message)
{
	switch (error) {
	case EADDRINUSE:
		return gt_fail(message, GT_EBUSY,
			       "port %u of %s is in use by another program; give another one, or 0 "
			       "for any that is free",
			       address->port, address->host);
	case EADDRNOTAVAIL:
		return gt_fail(message, GT_EINVAL, "this machine does not have the address %s",
			       address->host);
	case EACCES:
	case EPERM:
		return gt_fail(
			message, GT_EPERM,
			"no permission to listen on port %u of %s: ports below 1024 are root's",
			address->port, address->host);
	default:
		return gt_fail(message, GT_EIO, "cannot listen on port %u of %s: %s", address->port,
			       address->host, strerror(error));
	}
}

/* Writes the address that the socket is bound to, as text; the system may have chosen the port. */
static void describe(int fd, char bound[GT_ADDRESS_BYTES + 8], bool *any)
{
	struct sockaddr_storage name = { 0 };
	socklen_t bytes = sizeof(name);
	char digits[GT_ADDRESS_BYTES] = "";

	getsockname(fd, (struct sockaddr *)&name, &bytes);
	if (name.ss_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const void *)&name;

		inet_ntop(AF_INET6, &six->sin6_addr, digits, sizeof(digits));
		snprintf(bound, GT_ADDRESS_BYTES + 8, "[%s]:%u", digits, ntohs(six->sin6_port));
		*any = IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	} else {
		const struct sockaddr_in *four = (const void *)&name;

		inet_ntop(AF_INET, &four->sin_addr, digits, sizeof(digits));
		snprintf(bound, GT_ADDRESS_BYTES + 8, "%s:%u", digits, ntohs(four->sin_port));
		*any = four->sin_addr.s_addr == htonl(INADDR_ANY);
	}
}

/* Unix sockets */

/* Removes the file of a socket that no process listens on. Returns 0, or GT_EBUSY if one does. */
static int make_way(const struct sockaddr_un *name, struct gt_message *message)
{
	struct stat status;
	int probe, error;

	if (lstat(name->sun_path, &status) != 0)
		return 0; /* bind() reports the reason */
	probe = S_ISSOCK(status.st_mode) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	error = probe < 0						 ? EEXIST
		: connect(probe, (const void *)name, sizeof(*name)) == 0 ? EADDRINUSE
									 : errno;
	if (probe >= 0)
		close(probe);
	if (error == ECONNREFUSED && unlink(name->sun_path) == 0)
		return 0;
	return gt_fail(message, GT_EBUSY, "cannot listen at '%s': %s", name->sun_path,
		       error == EADDRINUSE ? "another program does"
		       : error == EEXIST   ? "that is a file, and no socket"
					   : strerror(errno));
}

static int listen_at_path(struct gt_address *address, bool others, struct gt_message *message)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct stat status;
	int error, fd;
	mode_t mask;

	strcpy(name.sun_path, address->path);
	error = make_way(&name, message);
	if (error != 0)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The file is created with the socket's mode, so that at no moment more users can
	 * connect. */
	mask = umask(0);
	if (fd < 0 || fchmod(fd, others ? 0666 : 0600) != 0 ||
	    bind(fd, (const void *)&name, sizeof(name)) != 0)
		error = errno;
	umask(mask);
	if (error == 0 && (lstat(name.sun_path, &status) != 0 || listen(fd, 128) != 0)) {
		error = errno;
		unlink(name.sun_path);
	}
	if (error == 0) {
		address->inode = status.st_ino;
		return fd;
	}
	gt_message_set(message, "cannot listen at '%s': %s", address->path, strerror(error));
	if (fd >= 0)
		close(fd);
	return error == EACCES || error == EPERM ? GT_EPERM : GT_EIO;
}

void gt_address_leave(const struct gt_address *address)
{
	struct stat status;

	if (address->path[0] != '\0' && lstat(address->path, &status) == 0 &&
	    S_ISSOCK(status.st_mode) && status.st_ino == address->inode)
		unlink(address->path);
}

int gt_address_listen(struct gt_address *address, bool others, char bound[GT_ADDRESS_BYTES + 8],
		      bool *any, struct gt_message *message)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	char port[8];
	int error = EADDRNOTAVAIL;
	int fd = -1;
	int one = 1;
	int code;

	*any = false;
	if (address->path[0] != '\0') {
		strcpy(bound, "localhost");
		return listen_at_path(address, others, message);
	}
	snprintf(port, sizeof(port), "%u", address->port);
	code = getaddrinfo(address->host, port, &hints, &found);
	if (code != 0)
		return gt_fail(message, GT_EINVAL, "'%s' is not an address of this machine: %s",
			       address->host, gai_strerror(code));
	for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			error = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 128) == 0)
			break;
		error = errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	if (fd < 0)
		return bind_error(address, error, message);
	describe(fd, bound, any);
	return fd;
}
