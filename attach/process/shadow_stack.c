/* SPDX-License-Identifier: MIT */
/* See the header; Documentation/arch/x86/shstk.rst of Linux has the calls. */
#define _GNU_SOURCE
#include "attach/process/shadow_stack.h"

#include <string.h>
#include <sys/syscall.h>

#define SHSTK_LOCK  0x5003 /* ARCH_SHSTK_LOCK of asm/prctl.h, which older headers lack */
#define SHSTK_SHSTK 1

bool gt_shadow_stack_is_on(const char *status)
{
	static const char name[] = "\nx86_Thread_features:", feature[] = "shstk";
	const char *at = strstr(status, name), *end;

	if (at == NULL)
		return false;
	at += sizeof(name) - 1;
	end = at + strcspn(at, "\n");
	while (at < end) {
		size_t length;

		at += strspn(at, " \t");
		length = strcspn(at, " \t\n");
		if (length == sizeof(feature) - 1 && memcmp(at, feature, length) == 0)
			return true;
		at += length;
	}
	return false;
}

int gt_shadow_stack_forbid(struct gt_remote *remote, struct gt_message *message)
{
	const uint64_t arguments[6] = { SHSTK_LOCK, SHSTK_SHSTK };
	int64_t result;

	return gt_remote_call(remote, SYS_arch_prctl, arguments, &result, message);
}
