/* SPDX-License-Identifier: MIT */
/*
 * The network device under lwIP. One thread takes received frames and passes them to lwIP under its
 * core lock; frames to send are put into the device's queue by any thread that holds that lock.
 * Interrupts only wake the thread.
 */
#include "port/unikernel/net.h"

#include <lwip/etharp.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>
#include <netif/ethernet.h>
#include "port/unikernel/console.h"
#include "port/unikernel/events.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"
#include "port/unikernel/virtio.h"
#include "port/unikernel/include/string.h"

#define FEATURE_MAC	  (1ull << 5)
#define HEADER_BYTES	  12 /* struct virtio_net_hdr: all zeros, nothing is off-loaded */
#define FRAME_BYTES	  1514
#define BUFFER_BYTES	  2048
#define RECEIVE_BUFFERS	  256
#define SEND_BUFFERS	  256
#define MAC_BYTES	  6
#define CLOSED_REMEMBERED 32

static struct virtio_device device;
static struct virtio_queue receive, send;
static struct netif netif;
static struct wait_queue arrived;
static uint32_t arrivals;  /* interrupts not handled yet; under arrived.lock */
static void *free_buffers; /* for sending; chained by the first word; under lwIP's core lock */

static void handle_receive(void *argument)
{
	(void)argument;
	virtio_queue_want_interrupt(&receive, false);
	uint64_t flags = spin_lock(&arrived.lock);
	arrivals = 1;
	wake_one_locked(&arrived);
	spin_unlock(&arrived.lock, flags);
}

static void offer(void *buffer)
{
	struct virtio_buffer piece = { buffer, BUFFER_BYTES, true };
	virtio_queue_add(&receive, &piece, 1, buffer);
}

/* A new connection with the ports of one that has just been closed is accepted (RFC 1122,
 * 4.2.2.13). lwIP would answer for the old one, and QEMU's network would try again only after
 * six seconds. */
static void make_way(const uint8_t *frame, uint32_t bytes)
{
	const struct ip_hdr *ip = (const struct ip_hdr *)(frame + SIZEOF_ETH_HDR);
	const struct tcp_hdr *tcp = (const struct tcp_hdr *)((const uint8_t *)ip + IP_HLEN);
	if (bytes < SIZEOF_ETH_HDR + IP_HLEN + TCP_HLEN || frame[12] != 8 || frame[13] != 0 ||
	    IPH_HL_BYTES(ip) != IP_HLEN || IPH_PROTO(ip) != IP_PROTO_TCP ||
	    (TCPH_FLAGS(tcp) & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return;
	LOCK_TCPIP_CORE();
	unsigned count = 0;
	for (struct tcp_pcb *old = tcp_tw_pcbs, *next; old; old = next) {
		next = old->next;
		if (++count > CLOSED_REMEMBERED ||
		    (old->remote_port == lwip_ntohs(tcp->src) &&
		     old->local_port == lwip_ntohs(tcp->dest) &&
		     ip4_addr_get_u32(ip_2_ip4(&old->remote_ip)) == ip->src.addr &&
		     TCP_SEQ_GT(lwip_ntohl(tcp->seqno), old->rcv_nxt)))
			tcp_abort(old); /* sends nothing in this state */
	}
	UNLOCK_TCPIP_CORE();
}

/* Copies a frame for lwIP, which may keep it for slow readers: the device has few buffers. */
static void feed(const uint8_t *frame, uint32_t bytes)
{
	struct pbuf *pbuf = pbuf_alloc(PBUF_RAW, (u16_t)bytes, PBUF_RAM);
	if (!pbuf)
		return;
	pbuf_take(pbuf, frame, (u16_t)bytes);
	make_way(frame, bytes);
	if (netif.input(pbuf, &netif) != ERR_OK)
		pbuf_free(pbuf);
}

static void take_what_came(void)
{
	uint32_t bytes, taken = 0;
	uint8_t *buffer;
	while ((buffer = virtio_queue_take(&receive, &bytes))) {
		if (bytes > HEADER_BYTES && bytes <= BUFFER_BYTES) {
			event_net_receive(buffer, bytes - HEADER_BYTES);
			trace_packet_begin(buffer + HEADER_BYTES, bytes - HEADER_BYTES);
			feed(buffer + HEADER_BYTES, bytes - HEADER_BYTES);
			trace_packet_end();
		}
		offer(buffer);
		taken++;
	}
	if (taken)
		virtio_queue_ring(&receive);
}

static void *receive_thread(void *argument)
{
	(void)argument;
	for (;;) {
		take_what_came();
		if (virtio_queue_want_interrupt(&receive, true))
			continue;
		uint64_t flags = spin_lock(&arrived.lock);
		while (!arrivals) {
			wait_locked(&arrived, flags, TIMER_NEVER);
			flags = spin_lock(&arrived.lock);
		}
		arrivals = 0;
		spin_unlock(&arrived.lock, flags);
	}
	return NULL;
}

void net_poll(void)
{
	static bool polling; /* it may wait while it polls */
	if (polling || !netif_is_up(&netif))
		return;
	polling = true;
	take_what_came();
	sys_check_timeouts();
	polling = false;
}

static void *send_buffer(void)
{
	uint32_t bytes;
	void *buffer;
	if (!free_buffers)
		while ((buffer = virtio_queue_take(&send, &bytes))) {
			*(void **)buffer = free_buffers;
			free_buffers = buffer;
		}
	buffer = free_buffers;
	if (buffer)
		free_buffers = *(void **)buffer;
	return buffer;
}

/* Sends a frame for lwIP. The core lock is held. */
static err_t link_output(struct netif *interface, struct pbuf *pbuf)
{
	(void)interface;
	uint8_t *buffer = send_buffer();
	if (!buffer || pbuf->tot_len > FRAME_BYTES)
		return ERR_MEM; /* TCP sends it again */
	memset(buffer, 0, HEADER_BYTES);
	pbuf_copy_partial(pbuf, buffer + HEADER_BYTES, pbuf->tot_len, 0);
	struct virtio_buffer piece = { buffer, HEADER_BYTES + pbuf->tot_len, false };
	event_net_queue(buffer, pbuf->tot_len);
	virtio_queue_add(&send, &piece, 1, buffer);
	event_net_xmit(buffer, pbuf->tot_len, 0);
	virtio_queue_ring(&send);
	return ERR_OK;
}

static err_t init_netif(struct netif *interface)
{
	interface->name[0] = 'e';
	interface->name[1] = 'n';
	interface->mtu = 1500;
	interface->hwaddr_len = MAC_BYTES;
	for (unsigned i = 0; i < MAC_BYTES; i++)
		interface->hwaddr[i] = device.specific[i];
	interface->flags =
		NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	interface->output = etharp_output;
	interface->linkoutput = link_output;
	return ERR_OK;
}

static bool make_buffers(void)
{
	for (unsigned i = 0; i < RECEIVE_BUFFERS + SEND_BUFFERS; i++) {
		void *buffer = malloc(BUFFER_BYTES);
		if (!buffer)
			return false;
		if (i < RECEIVE_BUFFERS) {
			offer(buffer);
			continue;
		}
		*(void **)buffer = free_buffers;
		free_buffers = buffer;
	}
	return true;
}

static bool start_device(struct pci_device *pci)
{
	pci->name = "virtio-net";
	return virtio_init(&device, pci, FEATURE_MAC) &&
	       virtio_queue_init(&device, &receive, 0, 0, handle_receive, NULL) &&
	       virtio_queue_init(&device, &send, 1, 0, NULL, NULL) && make_buffers();
}

void net_init(struct pci_device *pci)
{
	ip4_addr_t address, mask, gateway;
	tcpip_init(NULL, NULL);
	if (!pci)
		return;
	if (!start_device(pci)) {
		console_print("the network device cannot be used\n");
		return;
	}
	IP4_ADDR(&address, 10, 0, 2, 15);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	IP4_ADDR(&gateway, 10, 0, 2, 2);
	virtio_ready(&device); /* before anything is sent */
	LOCK_TCPIP_CORE();
	netif_add(&netif, &address, &mask, &gateway, NULL, init_netif, tcpip_input);
	netif_set_default(&netif);
	netif_set_up(&netif);
	UNLOCK_TCPIP_CORE();
	if (!thread_create("net", receive_thread, NULL, 0, true))
		console_print("no memory for the network's thread\n");
	virtio_queue_ring(&receive);
}
