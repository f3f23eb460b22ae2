/* SPDX-License-Identifier: MIT */
/* <sys/socket.h>: lwIP's sockets, with the events of Linux's system calls around them. */
#include "port/unikernel/include/sys/socket.h"

#include "port/unikernel/posix_calls.h"

int posix_socket(int family, int type, int protocol)
{
	CALL_ENTER3(socket, 41, int, family, family, int, type, type, int, protocol, protocol);
	int result = lwip_socket(family, type, protocol);
	CALL_EXIT(socket, 41, result);
	return result;
}

int posix_bind(int file, const struct sockaddr *address, socklen_t bytes)
{
	CALL_ENTER3(bind, 49, int, fd, file, unsigned long, umyaddr, address, int, addrlen, bytes);
	int result = lwip_bind(file, address, bytes);
	CALL_EXIT(bind, 49, result);
	return result;
}

int posix_listen(int file, int backlog)
{
	CALL_ENTER2(listen, 50, int, fd, file, int, backlog, backlog);
	int result = lwip_listen(file, backlog);
	CALL_EXIT(listen, 50, result);
	return result;
}

int posix_accept(int file, struct sockaddr *address, socklen_t *bytes)
{
	CALL_ENTER3(accept, 43, int, fd, file, unsigned long, upeer_sockaddr, address,
		    unsigned long, upeer_addrlen, bytes);
	int result = lwip_accept(file, address, bytes);
	CALL_EXIT(accept, 43, result);
	return result;
}

int posix_connect(int file, const struct sockaddr *address, socklen_t bytes)
{
	CALL_ENTER3(connect, 42, int, fd, file, unsigned long, uservaddr, address, int, addrlen,
		    bytes);
	int result = lwip_connect(file, address, bytes);
	CALL_EXIT(connect, 42, result);
	return result;
}

int posix_shutdown(int file, int how)
{
	CALL_ENTER2(shutdown, 48, int, fd, file, int, how, how);
	int result = lwip_shutdown(file, how);
	CALL_EXIT(shutdown, 48, result);
	return result;
}

ssize_t posix_send(int file, const void *data, size_t bytes, int flags)
{
	CALL_ENTER4(sendto, 44, int, fd, file, unsigned long, buff, data, unsigned long, len, bytes,
		    unsigned int, flags, flags);
	ssize_t result = lwip_send(file, data, bytes, flags);
	CALL_EXIT(sendto, 44, result);
	return result;
}

ssize_t posix_recv(int file, void *data, size_t bytes, int flags)
{
	CALL_ENTER4(recvfrom, 45, int, fd, file, unsigned long, ubuf, data, unsigned long, size,
		    bytes, unsigned int, flags, flags);
	ssize_t result = lwip_recv(file, data, bytes, flags);
	CALL_EXIT(recvfrom, 45, result);
	return result;
}

int posix_setsockopt(int file, int level, int name, const void *value, socklen_t bytes)
{
	CALL_ENTER4(setsockopt, 54, int, fd, file, int, level, level, int, optname, name,
		    unsigned long, optval, value);
	int result = lwip_setsockopt(file, level, name, value, bytes);
	CALL_EXIT(setsockopt, 54, result);
	return result;
}

int posix_poll(struct pollfd *files, nfds_t count, int timeout)
{
	CALL_ENTER3(poll, 7, unsigned long, ufds, files, unsigned int, nfds, count, int,
		    timeout_msecs, timeout);
	int result = lwip_poll(files, count, timeout);
	CALL_EXIT(poll, 7, result);
	return result;
}

int posix_select(int limit, fd_set *readable, fd_set *writable, fd_set *failed,
		 struct timeval *timeout)
{
	CALL_ENTER4(select, 23, int, n, limit, unsigned long, inp, readable, unsigned long, outp,
		    writable, unsigned long, tvp, timeout);
	int result = lwip_select(limit, readable, writable, failed, timeout);
	CALL_EXIT(select, 23, result);
	return result;
}
