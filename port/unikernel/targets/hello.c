/* SPDX-License-Identifier: MIT */
/* Says hello from each processor, and ends. */
#include <stdio.h>

int main(void)
{
	printf("Hello from a kernel with one program in it.\n");
	return 0;
}
