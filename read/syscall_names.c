/* SPDX-License-Identifier: MIT */
/* See syscall_names.h. Values come from the system's headers where these have them. */
#include <arpa/inet.h>
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/prctl.h>
#include <linux/stat.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "read/syscall_names.h"

#define W(name)             \
	{                   \
		name, #name \
	}

/* clang-format off */
static const struct gt_syscall_word access_modes[] = {
	W(O_RDONLY), W(O_WRONLY), W(O_RDWR), { 0, NULL }
};
static const struct gt_syscall_word open_flags[] = {
	W(O_CREAT), W(O_EXCL), W(O_NOCTTY), W(O_TRUNC), W(O_APPEND), W(O_NONBLOCK), W(O_SYNC),
	W(O_DSYNC), W(O_ASYNC), W(O_DIRECT), { 0100000, "O_LARGEFILE" }, W(O_NOFOLLOW),
	W(O_TMPFILE), W(O_DIRECTORY), W(O_NOATIME), W(O_CLOEXEC), W(O_PATH), { 0, NULL }
};
static const struct gt_syscall_word directories[] = {
	{ 0xffffff9c, "AT_FDCWD" }, { 0xffffffffffffff9c, "AT_FDCWD" }, { 0, NULL }
};
static const struct gt_syscall_word protections[] = {
	W(PROT_READ), W(PROT_WRITE), W(PROT_EXEC), W(PROT_GROWSDOWN), W(PROT_GROWSUP), { 0, NULL }
};
static const struct gt_syscall_word no_protection[] = {
	{ 0, "PROT_NONE" }, { 0, NULL }
};
static const struct gt_syscall_word map_kinds[] = {
	W(MAP_SHARED), W(MAP_PRIVATE), W(MAP_SHARED_VALIDATE), { 0, NULL }
};
static const struct gt_syscall_word map_flags[] = {
	W(MAP_FIXED), W(MAP_ANONYMOUS), W(MAP_GROWSDOWN), W(MAP_DENYWRITE), W(MAP_EXECUTABLE),
	W(MAP_LOCKED), W(MAP_NORESERVE), W(MAP_POPULATE), W(MAP_NONBLOCK), W(MAP_STACK),
	W(MAP_HUGETLB), W(MAP_SYNC), W(MAP_FIXED_NOREPLACE), { 0, NULL }
};
static const struct gt_syscall_word remap_flags[] = {
	W(MREMAP_MAYMOVE), W(MREMAP_FIXED), W(MREMAP_DONTUNMAP), { 0, NULL }
};
static const struct gt_syscall_word sync_flags[] = {
	W(MS_ASYNC), W(MS_INVALIDATE), W(MS_SYNC), { 0, NULL }
};
static const struct gt_syscall_word advice[] = {
	W(MADV_NORMAL), W(MADV_RANDOM), W(MADV_SEQUENTIAL), W(MADV_WILLNEED), W(MADV_DONTNEED),
	W(MADV_FREE), W(MADV_REMOVE), W(MADV_DONTFORK), W(MADV_DOFORK), W(MADV_MERGEABLE),
	W(MADV_UNMERGEABLE), W(MADV_HUGEPAGE), W(MADV_NOHUGEPAGE), W(MADV_DONTDUMP),
	W(MADV_DODUMP), W(MADV_WIPEONFORK), W(MADV_KEEPONFORK), W(MADV_COLD), W(MADV_PAGEOUT), { 0, NULL }
};
static const struct gt_syscall_word families[] = {
	W(AF_UNSPEC), W(AF_UNIX), W(AF_INET), W(AF_INET6), W(AF_NETLINK), W(AF_PACKET),
	W(AF_VSOCK), W(AF_ALG), W(AF_BLUETOOTH), { 0, NULL }
};
static const struct gt_syscall_word socket_kinds[] = {
	W(SOCK_STREAM), W(SOCK_DGRAM), W(SOCK_RAW), W(SOCK_RDM), W(SOCK_SEQPACKET), { 0, NULL }
};
static const struct gt_syscall_word socket_flags[] = {
	W(SOCK_CLOEXEC), W(SOCK_NONBLOCK), { 0, NULL }
};
static const struct gt_syscall_word messages[] = {
	W(MSG_OOB), W(MSG_PEEK), W(MSG_DONTROUTE), W(MSG_CTRUNC), W(MSG_TRUNC), W(MSG_DONTWAIT),
	W(MSG_EOR), W(MSG_WAITALL), W(MSG_CONFIRM), W(MSG_ERRQUEUE), W(MSG_NOSIGNAL), W(MSG_MORE),
	W(MSG_WAITFORONE), W(MSG_FASTOPEN), W(MSG_CMSG_CLOEXEC), { 0, NULL }
};
static const struct gt_syscall_word levels[] = {
	{ IPPROTO_IP, "SOL_IP" }, W(SOL_SOCKET), { IPPROTO_TCP, "SOL_TCP" },
	{ IPPROTO_UDP, "SOL_UDP" }, { IPPROTO_IPV6, "SOL_IPV6" }, { 0, NULL }
};
static const struct gt_syscall_word shutdowns[] = {
	W(SHUT_RD), W(SHUT_WR), W(SHUT_RDWR), { 0, NULL }
};
static const struct gt_syscall_word seeks[] = {
	W(SEEK_SET), W(SEEK_CUR), W(SEEK_END), W(SEEK_DATA), W(SEEK_HOLE), { 0, NULL }
};
static const struct gt_syscall_word accesses[] = {
	W(R_OK), W(W_OK), W(X_OK), { 0, NULL }
};
static const struct gt_syscall_word existence[] = {
	{ 0, "F_OK" }, { 0, NULL }
};
static const struct gt_syscall_word at_flags[] = {
	W(AT_SYMLINK_NOFOLLOW), W(AT_REMOVEDIR), W(AT_SYMLINK_FOLLOW), W(AT_NO_AUTOMOUNT),
	W(AT_EMPTY_PATH), W(AT_STATX_FORCE_SYNC), W(AT_STATX_DONT_SYNC), { 0, NULL }
};
static const struct gt_syscall_word access_flags[] = {
	W(AT_SYMLINK_NOFOLLOW), W(AT_EACCESS), W(AT_EMPTY_PATH), { 0, NULL }
};
static const struct gt_syscall_word statx_masks[] = {
	W(STATX_ALL), W(STATX_BASIC_STATS), W(STATX_TYPE), W(STATX_MODE), W(STATX_NLINK),
	W(STATX_UID), W(STATX_GID), W(STATX_ATIME), W(STATX_MTIME), W(STATX_CTIME), W(STATX_INO),
	W(STATX_SIZE), W(STATX_BLOCKS), W(STATX_BTIME), W(STATX_MNT_ID), { 0, NULL }
};
static const struct gt_syscall_word rename_flags[] = {
	W(RENAME_NOREPLACE), W(RENAME_EXCHANGE), W(RENAME_WHITEOUT), { 0, NULL }
};
static const struct gt_syscall_word waits[] = {
	W(WNOHANG), W(WUNTRACED), W(WEXITED), W(WCONTINUED), W(WNOWAIT), W(__WCLONE), W(__WALL),
	W(__WNOTHREAD), { 0, NULL }
};
static const struct gt_syscall_word wait_whom[] = {
	W(P_ALL), W(P_PID), W(P_PGID), W(P_PIDFD), { 0, NULL }
};
static const struct gt_syscall_word signal_hows[] = {
	W(SIG_BLOCK), W(SIG_UNBLOCK), W(SIG_SETMASK), { 0, NULL }
};
static const struct gt_syscall_word actions[] = {
	{ 0x04000000, "SA_RESTORER" }, W(SA_NOCLDSTOP), W(SA_NOCLDWAIT), W(SA_SIGINFO), W(SA_ONSTACK), W(SA_RESTART),
	W(SA_NODEFER), W(SA_RESETHAND), { 0, NULL }
};
static const struct gt_syscall_word clones[] = {
	W(CLONE_VM), W(CLONE_FS), W(CLONE_FILES), W(CLONE_SIGHAND), W(CLONE_PIDFD),
	W(CLONE_PTRACE), W(CLONE_VFORK), W(CLONE_PARENT), W(CLONE_THREAD), W(CLONE_NEWNS),
	W(CLONE_SYSVSEM), W(CLONE_SETTLS), W(CLONE_PARENT_SETTID), W(CLONE_CHILD_CLEARTID),
	W(CLONE_DETACHED), W(CLONE_UNTRACED), W(CLONE_CHILD_SETTID), W(CLONE_NEWCGROUP),
	W(CLONE_NEWUTS), W(CLONE_NEWIPC), W(CLONE_NEWUSER), W(CLONE_NEWPID), W(CLONE_NEWNET),
	W(CLONE_IO), { 0, NULL }
};
static const struct gt_syscall_word polls[] = {
	W(POLLIN), W(POLLPRI), W(POLLOUT), W(POLLERR), W(POLLHUP), W(POLLNVAL), W(POLLRDNORM),
	W(POLLRDBAND), W(POLLWRNORM), W(POLLWRBAND), W(POLLRDHUP), { 0, NULL }
};
static const struct gt_syscall_word epolls[] = {
	W(EPOLLIN), W(EPOLLPRI), W(EPOLLOUT), W(EPOLLERR), W(EPOLLHUP), W(EPOLLRDNORM),
	W(EPOLLWRNORM), W(EPOLLRDHUP), W(EPOLLEXCLUSIVE), W(EPOLLWAKEUP), W(EPOLLONESHOT),
	{ 1u << 31, "EPOLLET" }, { 0, NULL }
};
static const struct gt_syscall_word epoll_ops[] = {
	W(EPOLL_CTL_ADD), W(EPOLL_CTL_DEL), W(EPOLL_CTL_MOD), { 0, NULL }
};
static const struct gt_syscall_word epoll_flags[] = {
	W(EPOLL_CLOEXEC), { 0, NULL }
};
static const struct gt_syscall_word event_flags[] = {
	W(EFD_SEMAPHORE), W(EFD_CLOEXEC), W(EFD_NONBLOCK), { 0, NULL }
};
static const struct gt_syscall_word timer_flags[] = {
	{ 1, "TIMER_ABSTIME" }, { 0, NULL }
};
static const struct gt_syscall_word timerfd_flags[] = {
	W(TFD_CLOEXEC), W(TFD_NONBLOCK), { 0, NULL }
};
static const struct gt_syscall_word set_flags[] = {
	W(TFD_TIMER_ABSTIME), W(TFD_TIMER_CANCEL_ON_SET), { 0, NULL }
};
static const struct gt_syscall_word clocks[] = {
	W(CLOCK_REALTIME), W(CLOCK_MONOTONIC), W(CLOCK_PROCESS_CPUTIME_ID),
	W(CLOCK_THREAD_CPUTIME_ID), W(CLOCK_MONOTONIC_RAW), W(CLOCK_REALTIME_COARSE),
	W(CLOCK_MONOTONIC_COARSE), W(CLOCK_BOOTTIME), W(CLOCK_REALTIME_ALARM),
	W(CLOCK_BOOTTIME_ALARM), W(CLOCK_TAI), { 0, NULL }
};
static const struct gt_syscall_word itimers[] = {
	W(ITIMER_REAL), W(ITIMER_VIRTUAL), W(ITIMER_PROF), { 0, NULL }
};
static const struct gt_syscall_word resources[] = {
	{ 0, "RLIMIT_CPU" }, { 1, "RLIMIT_FSIZE" }, { 2, "RLIMIT_DATA" }, { 3, "RLIMIT_STACK" },
	{ 4, "RLIMIT_CORE" }, { 5, "RLIMIT_RSS" }, { 6, "RLIMIT_NPROC" }, { 7, "RLIMIT_NOFILE" },
	{ 8, "RLIMIT_MEMLOCK" }, { 9, "RLIMIT_AS" }, { 10, "RLIMIT_LOCKS" },
	{ 11, "RLIMIT_SIGPENDING" }, { 12, "RLIMIT_MSGQUEUE" }, { 13, "RLIMIT_NICE" },
	{ 14, "RLIMIT_RTPRIO" }, { 15, "RLIMIT_RTTIME" }, { 0, NULL }
};
static const struct gt_syscall_word usages[] = {
	{ 0, "RUSAGE_SELF" }, { 0xffffffff, "RUSAGE_CHILDREN" }, { 1, "RUSAGE_THREAD" }, { 0, NULL }
};
static const struct gt_syscall_word flocks[] = {
	W(LOCK_SH), W(LOCK_EX), W(LOCK_UN), { 0, NULL }
};
static const struct gt_syscall_word flock_flags[] = {
	W(LOCK_NB), { 0, NULL }
};
static const struct gt_syscall_word allocations[] = {
	{ 0x01, "FALLOC_FL_KEEP_SIZE" }, { 0x02, "FALLOC_FL_PUNCH_HOLE" },
	{ 0x08, "FALLOC_FL_COLLAPSE_RANGE" }, { 0x10, "FALLOC_FL_ZERO_RANGE" },
	{ 0x20, "FALLOC_FL_INSERT_RANGE" }, { 0x40, "FALLOC_FL_UNSHARE_RANGE" }, { 0, NULL }
};
static const struct gt_syscall_word random_flags[] = {
	W(GRND_NONBLOCK), W(GRND_RANDOM), W(GRND_INSECURE), { 0, NULL }
};
static const struct gt_syscall_word memfd_flags[] = {
	W(MFD_CLOEXEC), W(MFD_ALLOW_SEALING), W(MFD_HUGETLB), { 0, NULL }
};
static const struct gt_syscall_word lockall[] = {
	W(MCL_CURRENT), W(MCL_FUTURE), W(MCL_ONFAULT), { 0, NULL }
};
static const struct gt_syscall_word policies[] = {
	W(SCHED_OTHER), W(SCHED_FIFO), W(SCHED_RR), W(SCHED_BATCH), W(SCHED_IDLE), { 0, NULL }
};
static const struct gt_syscall_word inotify_flags[] = {
	W(IN_CLOEXEC), W(IN_NONBLOCK), { 0, NULL }
};
static const struct gt_syscall_word fcntls[] = {
	W(F_DUPFD), W(F_GETFD), W(F_SETFD), W(F_GETFL), W(F_SETFL), W(F_GETLK), W(F_SETLK),
	W(F_SETLKW), W(F_SETOWN), W(F_GETOWN), W(F_SETSIG), W(F_GETSIG), W(F_OFD_GETLK),
	W(F_OFD_SETLK), W(F_OFD_SETLKW), W(F_DUPFD_CLOEXEC), W(F_SETPIPE_SZ), W(F_GETPIPE_SZ),
	W(F_ADD_SEALS), W(F_GET_SEALS), { 0, NULL }
};
static const struct gt_syscall_word descriptor_flags[] = {
	W(FD_CLOEXEC), { 0, NULL }
};
static const struct gt_syscall_word ioctls[] = {
	W(TCGETS), W(TCSETS), W(TCSETSW), W(TCSETSF), W(TIOCGPGRP), W(TIOCSPGRP), W(TIOCGWINSZ),
	W(TIOCSWINSZ), W(TIOCSCTTY), W(TIOCNOTTY), W(TIOCGPTN), W(TIOCSPTLCK), W(FIONREAD),
	W(FIONBIO), W(FIOASYNC), W(FIOCLEX), W(FIONCLEX), { 0, NULL }
};
static const struct gt_syscall_word prctls[] = {
	W(PR_SET_PDEATHSIG), W(PR_GET_PDEATHSIG), W(PR_GET_DUMPABLE), W(PR_SET_DUMPABLE),
	W(PR_GET_KEEPCAPS), W(PR_SET_KEEPCAPS), W(PR_SET_NAME), W(PR_GET_NAME), W(PR_GET_SECCOMP),
	W(PR_SET_SECCOMP), W(PR_CAPBSET_READ), W(PR_CAPBSET_DROP), W(PR_GET_TSC), W(PR_SET_TSC),
	W(PR_SET_TIMERSLACK), W(PR_GET_TIMERSLACK), W(PR_SET_CHILD_SUBREAPER),
	W(PR_GET_CHILD_SUBREAPER), W(PR_SET_NO_NEW_PRIVS), W(PR_GET_NO_NEW_PRIVS),
	W(PR_SET_PTRACER), W(PR_CAP_AMBIENT), W(PR_SET_THP_DISABLE), W(PR_SET_VMA), { 0, NULL }
};
static const struct gt_syscall_word arch_prctls[] = {
	W(ARCH_SET_GS), W(ARCH_SET_FS), W(ARCH_GET_FS), W(ARCH_GET_GS), W(ARCH_GET_CPUID),
	W(ARCH_SET_CPUID), { 0, NULL }
};
static const struct gt_syscall_word options_of_sockets[] = {
	W(SO_DEBUG), W(SO_REUSEADDR), W(SO_TYPE), W(SO_ERROR), W(SO_DONTROUTE), W(SO_BROADCAST),
	W(SO_SNDBUF), W(SO_RCVBUF), W(SO_KEEPALIVE), W(SO_OOBINLINE), W(SO_PRIORITY),
	W(SO_LINGER), W(SO_REUSEPORT), W(SO_PASSCRED), W(SO_PEERCRED), W(SO_RCVLOWAT),
	W(SO_SNDLOWAT), W(SO_RCVTIMEO), W(SO_SNDTIMEO), W(SO_ACCEPTCONN), W(SO_PROTOCOL),
	W(SO_DOMAIN), W(SO_INCOMING_CPU), W(SO_ZEROCOPY), { 0, NULL }
};
static const struct gt_syscall_word kinds[] = {
	W(S_IFSOCK), W(S_IFLNK), W(S_IFREG), W(S_IFBLK), W(S_IFDIR), W(S_IFCHR), W(S_IFIFO), { 0, NULL }
};
static const struct gt_syscall_word futex_ops[] = {
	{ 0, "FUTEX_WAIT" }, { 1, "FUTEX_WAKE" }, { 2, "FUTEX_FD" }, { 3, "FUTEX_REQUEUE" },
	{ 4, "FUTEX_CMP_REQUEUE" }, { 5, "FUTEX_WAKE_OP" }, { 6, "FUTEX_LOCK_PI" },
	{ 7, "FUTEX_UNLOCK_PI" }, { 8, "FUTEX_TRYLOCK_PI" }, { 9, "FUTEX_WAIT_BITSET" },
	{ 10, "FUTEX_WAKE_BITSET" }, { 11, "FUTEX_WAIT_REQUEUE_PI" },
	{ 12, "FUTEX_CMP_REQUEUE_PI" }, { 13, "FUTEX_LOCK_PI2" },
	{ 128 | 0, "FUTEX_WAIT_PRIVATE" }, { 128 | 1, "FUTEX_WAKE_PRIVATE" },
	{ 128 | 2, "FUTEX_FD_PRIVATE" }, { 128 | 3, "FUTEX_REQUEUE_PRIVATE" },
	{ 128 | 4, "FUTEX_CMP_REQUEUE_PRIVATE" }, { 128 | 5, "FUTEX_WAKE_OP_PRIVATE" },
	{ 128 | 6, "FUTEX_LOCK_PI_PRIVATE" }, { 128 | 7, "FUTEX_UNLOCK_PI_PRIVATE" },
	{ 128 | 8, "FUTEX_TRYLOCK_PI_PRIVATE" }, { 128 | 9, "FUTEX_WAIT_BITSET_PRIVATE" },
	{ 128 | 10, "FUTEX_WAKE_BITSET_PRIVATE" }, { 128 | 11, "FUTEX_WAIT_REQUEUE_PI_PRIVATE" },
	{ 128 | 12, "FUTEX_CMP_REQUEUE_PI_PRIVATE" }, { 128 | 13, "FUTEX_LOCK_PI2_PRIVATE" }, { 0, NULL }
};
static const struct gt_syscall_word futex_flags[] = {
	{ 256, "FUTEX_CLOCK_REALTIME" }, { 0, NULL }
};

/* calls: words, "": any. arguments: words. */
struct rule {
	const char *calls;
	const char *arguments;
	enum gt_syscall_way way;
	struct gt_syscall_words words;
};

static const struct rule rules[] = {
	{ "rseq", "sig", GT_SYSCALL_HEX, { 0, NULL, NULL } },
	{ "", "dfd olddfd newdfd from_dfd to_dfd", GT_SYSCALL_WORDS, { ~0ull, directories, NULL } },
	{ "open openat", "flags", GT_SYSCALL_WORDS, { O_ACCMODE, access_modes, open_flags } },
	{ "mmap mprotect pkey_mprotect", "prot", GT_SYSCALL_WORDS, { 0, no_protection, protections } },
	{ "mmap", "flags", GT_SYSCALL_WORDS, { 0xf, map_kinds, map_flags } },
	{ "mremap", "flags", GT_SYSCALL_WORDS, { 0, NULL, remap_flags } },
	{ "msync", "flags", GT_SYSCALL_WORDS, { 0, NULL, sync_flags } },
	{ "madvise", "behavior", GT_SYSCALL_WORDS, { ~0ull, advice, NULL } },
	{ "socket socketpair", "family", GT_SYSCALL_WORDS, { ~0ull, families, NULL } },
	{ "socket socketpair", "type", GT_SYSCALL_WORDS, { 0xf, socket_kinds, socket_flags } },
	{ "accept4", "flags", GT_SYSCALL_WORDS, { 0, NULL, socket_flags } },
	{ "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg", "flags", GT_SYSCALL_WORDS, { 0, NULL, messages } },
	{ "setsockopt getsockopt", "level", GT_SYSCALL_WORDS, { ~0ull, levels, NULL } },
	{ "setsockopt getsockopt", "optname", GT_SYSCALL_WORDS, { ~0ull, options_of_sockets, NULL } },
	{ "shutdown", "how", GT_SYSCALL_WORDS, { ~0ull, shutdowns, NULL } },
	{ "lseek", "whence", GT_SYSCALL_WORDS, { ~0ull, seeks, NULL } },
	{ "access faccessat faccessat2", "mode", GT_SYSCALL_WORDS, { 0, existence, accesses } },
	{ "faccessat2", "flags", GT_SYSCALL_WORDS, { 0, NULL, access_flags } },
	{ "newfstatat unlinkat linkat fchownat utimensat statx execveat name_to_handle_at", "flag flags", GT_SYSCALL_WORDS, { 0, NULL, at_flags } },
	{ "statx", "mask", GT_SYSCALL_WORDS, { 0, NULL, statx_masks } },
	{ "renameat2", "flags", GT_SYSCALL_WORDS, { 0, NULL, rename_flags } },
	{ "pipe2 dup3", "flags", GT_SYSCALL_WORDS, { 0, NULL, open_flags } },
	{ "wait4 waitid", "options", GT_SYSCALL_WORDS, { 0, NULL, waits } },
	{ "waitid", "which", GT_SYSCALL_WORDS, { ~0ull, wait_whom, NULL } },
	{ "rt_sigprocmask", "how", GT_SYSCALL_WORDS, { ~0ull, signal_hows, NULL } },
	{ "clone", "clone_flags", GT_SYSCALL_CLONE, { 0, NULL, clones } },
	{ "unshare", "unshare_flags", GT_SYSCALL_WORDS, { 0, NULL, clones } },
	{ "epoll_ctl", "op", GT_SYSCALL_WORDS, { ~0ull, epoll_ops, NULL } },
	{ "epoll_create1", "flags", GT_SYSCALL_WORDS, { 0, NULL, epoll_flags } },
	{ "eventfd2", "flags", GT_SYSCALL_WORDS, { 0, NULL, event_flags } },
	{ "timerfd_create", "flags", GT_SYSCALL_WORDS, { 0, NULL, timerfd_flags } },
	{ "timerfd_settime", "flags", GT_SYSCALL_WORDS, { 0, NULL, set_flags } },
	{ "clock_nanosleep timer_settime", "flags", GT_SYSCALL_WORDS, { 0, NULL, timer_flags } },
	{ "", "which_clock clockid", GT_SYSCALL_WORDS, { ~0ull, clocks, NULL } },
	{ "setitimer getitimer", "which", GT_SYSCALL_WORDS, { ~0ull, itimers, NULL } },
	{ "getrlimit setrlimit prlimit64", "resource", GT_SYSCALL_WORDS, { ~0ull, resources, NULL } },
	{ "getrusage", "who", GT_SYSCALL_WORDS, { ~0ull, usages, NULL } },
	{ "flock", "cmd", GT_SYSCALL_WORDS, { 11, flocks, flock_flags } },
	{ "fallocate", "mode", GT_SYSCALL_WORDS, { 0, NULL, allocations } },
	{ "getrandom", "flags", GT_SYSCALL_WORDS, { 0, NULL, random_flags } },
	{ "memfd_create", "flags", GT_SYSCALL_WORDS, { 0, NULL, memfd_flags } },
	{ "mlockall", "flags", GT_SYSCALL_WORDS, { 0, NULL, lockall } },
	{ "sched_setscheduler", "policy", GT_SYSCALL_WORDS, { ~0ull, policies, NULL } },
	{ "inotify_init1", "flags", GT_SYSCALL_WORDS, { 0, NULL, inotify_flags } },
	{ "fcntl", "cmd", GT_SYSCALL_WORDS, { ~0ull, fcntls, NULL } },
	{ "ioctl", "cmd", GT_SYSCALL_WORDS, { ~0ull, ioctls, NULL } },
	{ "prctl", "option", GT_SYSCALL_WORDS, { ~0ull, prctls, NULL } },
	{ "arch_prctl", "option", GT_SYSCALL_WORDS, { ~0ull, arch_prctls, NULL } },
	{ "futex", "op", GT_SYSCALL_WORDS, { ~256ull, futex_ops, futex_flags } },
	{ "", "fd epfd ufd oldfd newfd fildes in_fd out_fd fd_in fd_out", GT_SYSCALL_INT, { 0, NULL, NULL } },
	{ "", "sig", GT_SYSCALL_SIGNAL, { 0, NULL, NULL } },
	{ "mmap", "off pgoff", GT_SYSCALL_HEX, { 0, NULL, NULL } },
	{ "rt_sigqueueinfo", "sig", GT_SYSCALL_SIGNAL, { 0, NULL, NULL } },
	{ "umask", "mask", GT_SYSCALL_OCTAL, { 0, NULL, NULL } },
	{ "", "addr_len addrlen optlen nfds timeout timeout_msecs maxevents backlog pid upid pgid tgid", GT_SYSCALL_INT, { 0, NULL, NULL } },
	{ "fcntl ioctl prctl arch_prctl", "arg arg2 arg3 arg4 arg5", GT_SYSCALL_HEX, { 0, NULL, NULL } },
	{ "clone", "newsp tls", GT_SYSCALL_ADDRESS, { 0, NULL, NULL } },
	{ "brk munmap mprotect mmap mremap madvise msync pkey_mprotect mlock munlock", "addr start brk new_addr", GT_SYSCALL_ADDRESS, { 0, NULL, NULL } },
};

const struct gt_syscall_words gt_syscall_families = { ~0ull, families, NULL };
const struct gt_syscall_words gt_syscall_polls = { 0, NULL, polls };
const struct gt_syscall_words gt_syscall_epolls = { 0, NULL, epolls };
const struct gt_syscall_words gt_syscall_actions = { 0, NULL, actions };
const struct gt_syscall_words gt_syscall_clones = { 0, NULL, clones };
const struct gt_syscall_words gt_syscall_kinds = { S_IFMT, kinds, NULL };

static const struct gt_syscall_words open_words = { O_ACCMODE, access_modes, open_flags };
/* No names: a number. */
static const struct gt_syscall_words plain_numbers = { ~0ull, NULL, NULL };
static const struct gt_syscall_words descriptor_words = { 0, NULL, descriptor_flags };

/* Linux's events, programs. */
static const char *const program_names[][2] = {
	{ "newstat", "stat" },	     { "newfstat", "fstat" }, { "newlstat", "lstat" },
	{ "newuname", "uname" },     { "umount", "umount2" }, { "sendfile64", "sendfile" },
};
/* clang-format on */

/* Whether `name` is one of the words of `list`. */
static bool has_word(const char *list, const char *name)
{
	const size_t bytes = strlen(name);

	while (bytes && *list) {
		const size_t word = strcspn(list, " ");

		if (word == bytes && memcmp(list, name, bytes) == 0)
			return true;
		list += word + (list[word] == ' ');
	}
	return false;
}

enum gt_syscall_way gt_syscall_way_of(const char *call, const char *argument,
				      const struct gt_syscall_words **words)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (has_word(rules[i].arguments, argument) &&
		    (!*rules[i].calls || has_word(rules[i].calls, call))) {
			*words = &rules[i].words;
			return rules[i].way;
		}
	}
	return GT_SYSCALL_AS_TYPE;
}

bool gt_syscall_fcntl_argument(uint64_t command, const struct gt_syscall_words **words)
{
	switch (command) {
	case F_GETFD:
	case F_GETFL:
	case F_GETOWN:
	case F_GETSIG:
	case F_GETPIPE_SZ:
	case F_GET_SEALS:
		return false;
	case F_SETFD:
		*words = &descriptor_words;
		return true;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETOWN:
	case F_SETPIPE_SZ:
		*words = &plain_numbers;
		return true;
	case F_SETFL:
		*words = &open_words;
		return true;
	default:
		*words = NULL;
		return true;
	}
}

const char *gt_syscall_program_name(const char *name)
{
	for (size_t i = 0; i < sizeof(program_names) / sizeof(program_names[0]); i++)
		if (strcmp(name, program_names[i][0]) == 0)
			return program_names[i][1];
	return name;
}
