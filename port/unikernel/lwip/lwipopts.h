/* SPDX-License-Identifier: MIT */
/* How lwIP is built into the kernel. lwIP's own opt.h explains each setting. */
#ifndef PORT_UNIKERNEL_LWIP_LWIPOPTS_H
#define PORT_UNIKERNEL_LWIP_LWIPOPTS_H

/* Threads, with one lock around lwIP: a socket call works in the thread that makes it. */
#define NO_SYS			      0
#define SYS_LIGHTWEIGHT_PROT	      1
#define LWIP_TCPIP_CORE_LOCKING	      1
#define LWIP_TCPIP_CORE_LOCKING_INPUT 1
#define LOCK_TCPIP_CORE()	      mutex_lock(lock_tcpip_core)
#define UNLOCK_TCPIP_CORE()	      mutex_unlock(lock_tcpip_core)
#define TCPIP_THREAD_NAME	      "tcpip"
#define TCPIP_MBOX_SIZE		      256
#define DEFAULT_ACCEPTMBOX_SIZE	      256
#define DEFAULT_TCP_RECVMBOX_SIZE     256
#define DEFAULT_UDP_RECVMBOX_SIZE     64
#define DEFAULT_RAW_RECVMBOX_SIZE     8

/* Memory is the kernel's. */
#define MEM_LIBC_MALLOC	 1
#define MEMP_MEM_MALLOC	 1
#define MEM_ALIGNMENT	 16
#define MEMP_NUM_NETCONN 512 /* sockets */

/* IPv4 with a static address. */
#define LWIP_IPV4	    1
#define LWIP_IPV6	    0
#define LWIP_ARP	    1
#define LWIP_DHCP	    0
#define LWIP_AUTOIP	    0
#define LWIP_DNS	    0
#define LWIP_IGMP	    0
#define IP_REASSEMBLY	    0
#define IP_FRAG		    0
#define ARP_QUEUEING	    1
#define LWIP_NETIF_API	    0
#define LWIP_HAVE_LOOPIF    1
#define LWIP_NETIF_LOOPBACK 1

/* QEMU's user network loses nothing, so what closed need not be remembered for long: half a second
 * (net.c lets a new connection have its ports earlier). */
#define LWIP_TCP		   1
#define TCP_MSS			   1460
#define LWIP_WND_SCALE		   1
#define TCP_RCV_SCALE		   2
#define TCP_WND			   (128 * 1024)
#define TCP_SND_BUF		   (256 * 1024)
#define TCP_SND_QUEUELEN	   1024
#define TCP_SNDLOWAT		   (48 * 1024)
#define TCP_SNDQUEUELOWAT	   256
#define TCP_MSL			   100
#define TCP_QUEUE_OOSEQ		   1
#define TCP_LISTEN_BACKLOG	   1
#define TCP_DEFAULT_LISTEN_BACKLOG 255
#define LWIP_TCP_KEEPALIVE	   1

#define LWIP_SOCKET			1
#define LWIP_NETCONN			1
#define LWIP_COMPAT_SOCKETS		1
#define LWIP_POSIX_SOCKETS_IO_NAMES	0
#define LWIP_SOCKET_OFFSET		16 /* smaller numbers are the console and the disk (posix_io.c) */
#define LWIP_SOCKET_SELECT		1
#define LWIP_SOCKET_POLL		1
#define LWIP_SO_RCVTIMEO		1
#define LWIP_SO_SNDTIMEO		1
#define LWIP_SO_SNDRCVTIMEO_NONSTANDARD 0
#define LWIP_SO_LINGER			1
/* Debian's lwIP leaves these two to its port. */
#define IP4ADDR_SOCKADDR_SET_LEN(address) ((address)->sin_len = sizeof(*(address)))
#define IPADDR_SOCKADDR_GET_LEN(address)  sizeof(struct sockaddr_in)
#define SO_REUSE			  1

#define LWIP_STATS	      0
#define LWIP_CHECKSUM_ON_COPY 1
#define LWIP_CHKSUM	      net_checksum

#include <stdint.h>
/* net_checksum.c: the one's complement sum, not inverted */
uint16_t net_checksum(const void *data, int bytes);

#endif
