/* SPDX-License-Identifier: MIT */
/* System calls with arguments that have names, in the directory argv[1], one after the other. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void files(void)
{
	char text[64];
	struct stat state;
	const int fd = open("a file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	write(fd, "tab\there, \"quoted\"\n\001\0022\377", 24);
	lseek(fd, -5, SEEK_END);
	lseek(fd, 0, SEEK_SET);
	read(fd, text, sizeof(text));
	pwrite(fd, "x", 1, 1 << 20);
	fstat(fd, &state);
	stat("a file", &state);
	fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFL, O_RDWR | O_APPEND | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_DUPFD_CLOEXEC, 100);
	flock(fd, LOCK_EX | LOCK_NB);
	fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4096);
	ftruncate(fd, 10);
	fchmod(fd, 0600);
	access("a file", R_OK | W_OK);
	access("no file", F_OK);
	faccessat(AT_FDCWD, "a file", X_OK, 0);
	open("no/such", O_WRONLY | O_DIRECTORY | O_NOFOLLOW);
	mkdir("a directory", 0755);
	rename("a file", "another file");
	unlinkat(AT_FDCWD, "a directory", AT_REMOVEDIR);
	unlink("another file");
	umask(022);
	dup3(fd, 90, O_CLOEXEC);
	ioctl(fd, FIOCLEX);
	close(fd);
	close(-1);
}

static void memory(void)
{
	char *const at =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(at, 4096, PROT_NONE);
	madvise(at + 4096, 4096, MADV_DONTNEED);
	msync(at + 4096, 4096, MS_SYNC);
	munmap(at, 8192);
	mmap(NULL, 4096, PROT_READ, MAP_SHARED, 77, 4096);
}

static void sockets(void)
{
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 inet6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/no/such/socket" };
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 7 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, epoll, pair[2];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(fd, (struct sockaddr *)&inet, sizeof(inet));
	inet6.sin6_addr = in6addr_loopback;
	connect(fd, (struct sockaddr *)&inet6, sizeof(inet6));
	shutdown(fd, SHUT_RDWR);
	close(fd);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	connect(fd, (struct sockaddr *)&local, sizeof(local.sun_family) + 16);
	sendto(fd, "abc", 3, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	eventfd(3, EFD_SEMAPHORE | EFD_CLOEXEC);
	timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
}

static void processes(void)
{
	const struct timespec nap = { 0, 1000 };
	struct sigaction action = { .sa_handler = SIG_IGN, .sa_flags = SA_RESTART };
	struct rlimit limit;
	sigset_t set;
	int status;
	pid_t child;

	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGHUP, &action, NULL);
	kill(getpid(), 0);
	prctl(PR_SET_DUMPABLE, 1);
	getrlimit(RLIMIT_NOFILE, &limit);
	child = fork();
	if (!child)
		_exit(3);
	waitpid(child, &status, 0);
	syscall(SYS_tgkill, getpid(), getpid(), 0);
}

int main(int argc, char **argv)
{
	if (argc < 2 || chdir(argv[1]) != 0)
		return 1;
	files();
	memory();
	sockets();
	processes();
	return 0;
}
