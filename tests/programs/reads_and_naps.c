/* SPDX-License-Identifier: MIT */
/* Reads a file of /proc and sleeps, five times each: what the kernel does for it is looked at. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) int read_it(const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY);
	int got = (int)read(fd, buffer, sizeof(buffer));

	close(fd);
	return got;
}

__attribute__((noinline)) void nap(void)
{
	usleep(2000);
}

int main(void)
{
	int all = 0;

	for (int i = 0; i < 5; i++) {
		all += read_it("/proc/self/stat");
		nap();
	}
	printf("%s\n", all > 0 ? "read" : "nothing read");
	return 0;
}
