/* SPDX-License-Identifier: MIT */
/* Reads the first bytes of a file, by the C library: main, load, read, and the kernel below. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char bytes[4096];

__attribute__((noinline)) long load(const char *path)
{
	int fd = open(path, O_RDONLY);
	long got = read(fd, bytes, sizeof(bytes));

	close(fd);
	return got;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	printf("%ld\n", load(argv[1]));
	return 0;
}
