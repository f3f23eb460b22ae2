/* SPDX-License-Identifier: MIT */
/*
 * The server of /ftrace/ at port 9090: a thread for each of a few connections. Its own work and the
 * network's work for it are not recorded (options/trace-self): its threads are paused, and so is
 * the network's thread while it handles a packet of that port.
 */
#include "port/unikernel/trace_private.h"

#include "core/record/kernel.h"
#include "core/http/http_server.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"
#include "port/unikernel/include/netinet/in.h"
#include "port/unikernel/include/sys/socket.h"

#define CONNECTIONS  12
#define IDLE_SECONDS 30	      /* without a request */
#define SEND_SECONDS 60	      /* without progress of a reader; 1 for one that has closed its side */
#define RETRY_NS     20000000 /* after a failed accept */
/* Before a waiting reader tries again. Each send causes an interrupt for its acknowledgement,
 * which is traced: a trace that is read must not consist of its own reading. */
#define WAIT_NS 250000000

/* Offsets in an Ethernet frame with IPv4 and TCP. */
#define ETHERNET_BYTES 14
#define TYPE_AT	       12
#define PROTOCOL_AT    (ETHERNET_BYTES + 9)
#define TCP	       6

#define ALONE_STACK_BYTES 65536

/* The page for browsers, which reads /ftrace/trace.data (web/page/recording.js). */
extern const char trace_page[], trace_page_end[];

static uint32_t connections;
static int listening = -1;
static uint64_t alone_stack, alone_until;
bool trace_packet_paused; /* used by the network's thread alone */

/* ---- one connection ---- */

static int64_t receive(void *data, char *buffer, size_t bytes)
{
	return lwip_recv(*(int *)data, buffer, bytes, 0);
}

static bool has_left(int socket)
{
	char byte;
	ssize_t got = lwip_recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	return got == 0 || (got < 0 && errno != EWOULDBLOCK);
}

/* A send returns after a second at the latest (SO_SNDTIMEO). */
static int64_t send_all(void *data, const char *bytes, size_t count)
{
	int socket = *(int *)data;
	for (int stalled = 0; count;) {
		ssize_t sent = lwip_send(socket, bytes, count, 0);
		if (sent <= 0 && errno != EWOULDBLOCK)
			return -1;
		if (sent <= 0 && (has_left(socket) || ++stalled == SEND_SECONDS))
			return -1;
		if (sent <= 0)
			continue;
		stalled = 0;
		bytes += sent;
		count -= (size_t)sent;
	}
	return 0;
}

static bool wait(void *data)
{
	trace_wait(clock_ns() + WAIT_NS);
	return !has_left(*(int *)data);
}

static void *serve(void *argument)
{
	int socket = (int)(intptr_t)argument;
	struct gt_http_stream stream = {
		receive, send_all, wait, &socket, trace_page, (size_t)(trace_page_end - trace_page)
	};
	struct timeval idle = { IDLE_SECONDS, 0 }, stalled = { 1, 0 };
	bool paused = !trace_self();
	if (paused)
		gt_kernel_pause();
	struct gt_http_connection *connection = malloc(sizeof(*connection));
	lwip_setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle));
	lwip_setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &stalled, sizeof(stalled));
	if (connection)
		gt_http_serve(connection, &stream, trace_files());
	free(connection);
	lwip_close(socket);
	__atomic_fetch_sub(&connections, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- accepting connections ---- */

static void take(int socket)
{
	size_t bytes;
	const char *words = gt_http_too_many(&bytes);
	if (__atomic_add_fetch(&connections, 1, __ATOMIC_ACQUIRE) <= CONNECTIONS &&
	    thread_create("trace", serve, (void *)(intptr_t)socket, 0, true))
		return;
	lwip_send(socket, words, bytes, MSG_DONTWAIT);
	lwip_close(socket);
	__atomic_fetch_sub(&connections, 1, __ATOMIC_RELEASE);
}

static void *listen_thread(void *argument)
{
	(void)argument;
	if (!trace_self())
		gt_kernel_pause();
	for (;;) {
		int socket = lwip_accept(listening, NULL, NULL);
		if (socket >= 0)
			take(socket);
		else
			thread_sleep_until(clock_ns() + RETRY_NS);
	}
	return NULL;
}

/* ---- after a crash, on one processor without threads ---- */

/* Serves one connection after the other. Waits poll the network (wait_locked). */
static void serve_alone(void)
{
	struct timeval shortly = { 0, 100000 };
	lwip_setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &shortly, sizeof(shortly));
	while (clock_ns() < alone_until) {
		int socket = lwip_accept(listening, NULL, NULL);
		if (socket >= 0)
			serve((void *)(intptr_t)socket);
	}
	power_off(true);
}

void trace_lingers(uint64_t seconds)
{
	if (seconds)
		console_print("the %s for %lu second%s (LINGER)\n",
			      listening < 0 ? "machine goes on" : "trace can be fetched", seconds,
			      seconds == 1 ? "" : "s");
	else if (listening >= 0)
		console_print(
			"the trace ends with the machine: LINGER=60 keeps both for a minute\n");
}

void trace_serve_alone(uint64_t seconds)
{
	if (!alone_stack || listening < 0)
		return;
	trace_lingers(seconds);
	if (!seconds)
		return;
	alone_until = clock_ns() + seconds * 1000000000;
	/* The stack that crashed may be full, or be an exception's small one. */
	__asm__ volatile(
		"mov %0, %%rsp; xor %%ebp, %%ebp; push $0; call *%1" ::"r"(alone_stack - 8),
		"r"(serve_alone)
		: "memory");
	__builtin_unreachable();
}

void trace_serve(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(TRACE_PORT) };
	uint64_t low;
	int made = lwip_socket(AF_INET, SOCK_STREAM, 0);
	if (made < 0 || lwip_bind(made, (struct sockaddr *)&address, sizeof(address)) ||
	    lwip_listen(made, 64))
		console_print("trace: cannot listen on port %d\n", TRACE_PORT);
	else
		listening = made;
	if (listening < 0)
		return;
	alone_stack = stack_allocate(ALONE_STACK_BYTES, &low);
	trace_keep();
	if (!thread_create("trace-server", listen_thread, NULL, 0, true))
		console_print("trace: no memory for the server\n");
	else
		console_print("trace: http://localhost:%lu/ftrace/trace\n",
			      option_number("trace_port", TRACE_PORT));
}

/* ---- the network's thread ---- */

static unsigned word_at(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

void trace_packet_begin_live(const uint8_t *frame, uint32_t bytes)
{
	if (bytes < ETHERNET_BYTES + 24 || word_at(frame + TYPE_AT) != 0x0800 ||
	    frame[PROTOCOL_AT] != TCP || trace_self())
		return;
	uint32_t tcp = ETHERNET_BYTES + (frame[ETHERNET_BYTES] & 15u) * 4;
	if (bytes < tcp + 4 || word_at(frame + tcp + 2) != TRACE_PORT)
		return;
	trace_packet_paused = true;
	gt_kernel_pause();
}

void trace_packet_end_live(void)
{
	trace_packet_paused = false;
	gt_kernel_resume();
}
