/* SPDX-License-Identifier: MIT */
/*
 * See peer.h. The user of a TCP connection's other end is the owner of the socket that has the same
 * two addresses swapped: the kernel is asked by NETLINK_SOCK_DIAG (sock_diag(7)), or /proc/net/tcp
 * is read if that is missing. Guarantees: an end that no process holds open any more has no user;
 * the kernel would name root.
 */
#define _GNU_SOURCE /* struct ucred */
#include "serve/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 1000

/* Both ends of a connection, as the other side sees them. */
struct ends {
	int family;		  /* AF_INET or AF_INET6 */
	struct sockaddr_in6 near; /* the other side's own address; a sockaddr_in if AF_INET */
	struct sockaddr_in6 far;  /* ours */
};

static bool find_ends(int connection, struct ends *ends)
{
	socklen_t near = sizeof(ends->near), far = sizeof(ends->far);

	memset(ends, 0, sizeof(*ends));
	if (getpeername(connection, (struct sockaddr *)&ends->near, &near) != 0 ||
	    getsockname(connection, (struct sockaddr *)&ends->far, &far) != 0)
		return false;
	ends->family = ends->near.sin6_family;
	return ends->family == AF_INET || ends->family == AF_INET6;
}

/* Returns the bytes of an address and sets their number. */
static const void *address_of(const struct sockaddr_in6 *end, size_t *bytes)
{
	const struct sockaddr_in *four = (const void *)end;

	*bytes = end->sin6_family == AF_INET ? 4 : 16;
	return end->sin6_family == AF_INET ? (const void *)&four->sin_addr
					   : (const void *)&end->sin6_addr;
}

/* Asking the kernel */

static bool ask(int netlink, const struct ends *ends, struct inet_diag_msg *found)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 wanted;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.wanted = { .sdiag_family = (uint8_t)ends->family,
			    .sdiag_protocol = IPPROTO_TCP,
			    .idiag_states = UINT32_MAX,
			    .id = { .idiag_sport = ends->near.sin6_port,
				    .idiag_dport = ends->far.sin6_port,
				    .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	struct {
		struct nlmsghdr header;
		struct inet_diag_msg found;
		char more[4096];
	} answer;
	struct pollfd wait = { .fd = netlink, .events = POLLIN };
	size_t bytes;
	const void *address = address_of(&ends->near, &bytes);
	ssize_t got;

	memcpy(request.wanted.id.idiag_src, address, bytes);
	address = address_of(&ends->far, &bytes);
	memcpy(request.wanted.id.idiag_dst, address, bytes);
	if (send(netlink, &request, sizeof(request), 0) != (ssize_t)sizeof(request) ||
	    poll(&wait, 1, ANSWER_MS) <= 0)
		return false;
	got = recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	if (got < (ssize_t)(sizeof(answer.header) + sizeof(answer.found)) ||
	    answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	*found = answer.found;
	return true;
}

static bool find_by_diag(const struct ends *ends, struct gt_peer *peer)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct inet_diag_msg found;
	bool known;

	if (netlink < 0)
		return false;
	known = ask(netlink, ends, &found);
	close(netlink);
	if (!known || found.idiag_inode == 0)
		return false;
	peer->uid = found.idiag_uid;
	return true;
}

/* Reading /proc/net/tcp */

/* Prints an address as the kernel does: in words of the machine's byte order. */
static void print_end(const struct sockaddr_in6 *end, char *text, size_t room)
{
	size_t bytes, used = 0;
	const uint8_t *address = address_of(end, &bytes);

	for (size_t i = 0; i < bytes; i += 4) {
		uint32_t word;

		memcpy(&word, address + i, sizeof(word));
		used += (size_t)snprintf(text + used, room - used, "%08" PRIX32, word);
	}
	snprintf(text + used, room - used, ":%04X", ntohs(end->sin6_port));
}

static bool find_in_table(const struct ends *ends, struct gt_peer *peer)
{
	char near[48], far[48], line[512], a[48], b[48];
	FILE *table = fopen(ends->family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	unsigned uid, inode = 0;
	bool found = false;

	print_end(&ends->near, near, sizeof(near));
	print_end(&ends->far, far, sizeof(far));
	while (table != NULL && !found && fgets(line, sizeof(line), table) != NULL)
		found = sscanf(line, " %*u: %47s %47s %*x %*x:%*x %*x:%*x %*x %u %*u %u", a, b,
			       &uid, &inode) == 4 &&
			strcmp(a, near) == 0 && strcmp(b, far) == 0;
	if (table != NULL)
		fclose(table);
	if (!found || inode == 0)
		return false;
	peer->uid = uid;
	return true;
}

/* Checks that our end is still connected: a peer that has reset the connection could have left
 * its port to another user. */
static bool is_connected(int connection)
{
	struct tcp_info info;
	socklen_t bytes = sizeof(info);

	return getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
	       (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

void gt_peer_find(int connection, struct gt_peer *peer)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);
	struct ends ends;

	*peer = (struct gt_peer){ .local = false };
	if (!find_ends(connection, &ends)) {
		if (ends.family == AF_UNIX &&
		    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0) {
			peer->local = true;
			peer->uid = who.uid;
		}
		return;
	}
	peer->local = (find_by_diag(&ends, peer) || find_in_table(&ends, peer)) &&
		      is_connected(connection);
	if (!peer->local) {
		size_t unused;

		inet_ntop(ends.family, address_of(&ends.near, &unused), peer->address,
			  sizeof(peer->address));
	}
}
