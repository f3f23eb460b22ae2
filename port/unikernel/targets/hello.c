/* SPDX-License-Identifier: MIT */
/* Prints a greeting and ends. */
#include <stdio.h>

int main(void)
{
	printf("Hello from a kernel with one program in it.\n");
	return 0;
}
