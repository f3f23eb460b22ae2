/* SPDX-License-Identifier: MIT */
/* What arguments of system calls lead to, and is recorded with them: see syscall_events.h. */
#include "attach/agent/syscall_events.h"

#include <stddef.h>

#define FIXED(bytes)	 (GRAFTRACE_BYTES_FIXED | (bytes))
#define ARGUMENT(number) (GRAFTRACE_BYTES_OF_ARGUMENT + (number)-1)
#define RESULT		 GRAFTRACE_BYTES_OF_RESULT
/* As many elements, of that size. */
#define EACH(bytes, of) ((bytes) / 4 * GRAFTRACE_BYTES_WORDS | (of))

/* clang-format off */
static const struct gt_syscall_data table[] = {
	{ 0, { 0, 0, NULL }, { 2, RESULT, "__buf_val" } }, /* read */
	{ 1, { 2, ARGUMENT(3), "__buf_val" }, { 0, 0, NULL } }, /* write */
	{ 4, { 0, 0, NULL }, { 2, FIXED(56), "__statbuf_val" } }, /* stat */
	{ 5, { 0, 0, NULL }, { 2, FIXED(56), "__statbuf_val" } }, /* fstat */
	{ 6, { 0, 0, NULL }, { 2, FIXED(56), "__statbuf_val" } }, /* lstat */
	{ 7, { 1, EACH(8, ARGUMENT(2)), "__ufds_val" }, { 1, EACH(8, ARGUMENT(2)), "__ufds_val" } }, /* poll */
	{ 13, { 2, FIXED(32), "__act_val" }, { 3, FIXED(32), "__oact_val" } }, /* rt_sigaction */
	{ 14, { 2, FIXED(8), "__nset_val" }, { 3, FIXED(8), "__oset_val" } }, /* rt_sigprocmask */
	{ 17, { 0, 0, NULL }, { 2, RESULT, "__buf_val" } }, /* pread64 */
	{ 18, { 2, ARGUMENT(3), "__buf_val" }, { 0, 0, NULL } }, /* pwrite64 */
	{ 20, { 2, EACH(16, ARGUMENT(3)), "__vec_val" }, { 0, 0, NULL } }, /* writev */
	{ 22, { 0, 0, NULL }, { 1, FIXED(8), "__fildes_val" } }, /* pipe */
	{ 23, { 5, FIXED(16), "__tvp_val" }, { 0, 0, NULL } }, /* select */
	{ 35, { 1, FIXED(16), "__rqtp_val" }, { 0, 0, NULL } }, /* nanosleep */
	{ 38, { 2, FIXED(32), "__value_val" }, { 0, 0, NULL } }, /* setitimer */
	{ 42, { 2, ARGUMENT(3), "__uservaddr_val" }, { 0, 0, NULL } }, /* connect */
	{ 43, { 0, 0, NULL }, { 2, FIXED(16), "__upeer_sockaddr_val" } }, /* accept */
	{ 44, { 2, ARGUMENT(3), "__buff_val" }, { 0, 0, NULL } }, /* sendto */
	{ 45, { 0, 0, NULL }, { 2, RESULT, "__ubuf_val" } }, /* recvfrom */
	{ 49, { 2, ARGUMENT(3), "__umyaddr_val" }, { 0, 0, NULL } }, /* bind */
	{ 51, { 0, 0, NULL }, { 2, FIXED(16), "__usockaddr_val" } }, /* getsockname */
	{ 52, { 0, 0, NULL }, { 2, FIXED(16), "__usockaddr_val" } }, /* getpeername */
	{ 53, { 0, 0, NULL }, { 4, FIXED(8), "__usockvec_val" } }, /* socketpair */
	{ 54, { 4, ARGUMENT(5), "__optval_val" }, { 0, 0, NULL } }, /* setsockopt */
	{ 55, { 0, 0, NULL }, { 4, FIXED(4), "__optval_val" } }, /* getsockopt */
	{ 61, { 0, 0, NULL }, { 2, FIXED(4), "__stat_addr_val" } }, /* wait4 */
	{ 63, { 0, 0, NULL }, { 1, FIXED(64), "__name_val" } }, /* uname */
	{ 79, { 0, 0, NULL }, { 1, RESULT, "__buf_val" } }, /* getcwd */
	{ 89, { 0, 0, NULL }, { 2, RESULT, "__buf_val" } }, /* readlink */
	{ 96, { 0, 0, NULL }, { 1, FIXED(16), "__tv_val" } }, /* gettimeofday */
	{ 97, { 0, 0, NULL }, { 2, FIXED(16), "__rlim_val" } }, /* getrlimit */
	{ 128, { 3, FIXED(16), "__uts_val" }, { 0, 0, NULL } }, /* rt_sigtimedwait */
	{ 130, { 1, FIXED(8), "__unewset_val" }, { 0, 0, NULL } }, /* rt_sigsuspend */
	{ 131, { 1, FIXED(24), "__uss_val" }, { 2, FIXED(24), "__uoss_val" } }, /* sigaltstack */
	{ 160, { 2, FIXED(16), "__rlim_val" }, { 0, 0, NULL } }, /* setrlimit */
	{ 202, { 4, FIXED(16), "__utime_val" }, { 0, 0, NULL } }, /* futex */
	{ 223, { 3, FIXED(32), "__new_setting_val" }, { 0, 0, NULL } }, /* timer_settime */
	{ 228, { 0, 0, NULL }, { 2, FIXED(16), "__tp_val" } }, /* clock_gettime */
	{ 230, { 3, FIXED(16), "__rqtp_val" }, { 0, 0, NULL } }, /* clock_nanosleep */
	{ 232, { 0, 0, NULL }, { 2, EACH(12, RESULT), "__events_val" } }, /* epoll_wait */
	{ 233, { 4, FIXED(12), "__event_val" }, { 0, 0, NULL } }, /* epoll_ctl */
	{ 262, { 0, 0, NULL }, { 3, FIXED(56), "__statbuf_val" } }, /* newfstatat */
	{ 267, { 0, 0, NULL }, { 3, RESULT, "__buf_val" } }, /* readlinkat */
	{ 270, { 5, FIXED(16), "__tsp_val" }, { 0, 0, NULL } }, /* pselect6 */
	{ 271, { 3, FIXED(16), "__tsp_val" }, { 0, 0, NULL } }, /* ppoll */
	{ 280, { 3, FIXED(32), "__utimes_val" }, { 0, 0, NULL } }, /* utimensat */
	{ 281, { 0, 0, NULL }, { 2, EACH(12, RESULT), "__events_val" } }, /* epoll_pwait */
	{ 286, { 3, FIXED(32), "__utmr_val" }, { 0, 0, NULL } }, /* timerfd_settime */
	{ 288, { 0, 0, NULL }, { 2, FIXED(16), "__upeer_sockaddr_val" } }, /* accept4 */
	{ 293, { 0, 0, NULL }, { 1, FIXED(8), "__fildes_val" } }, /* pipe2 */
	{ 302, { 3, FIXED(16), "__new_rlim_val" }, { 4, FIXED(16), "__old_rlim_val" } }, /* prlimit64 */
	{ 318, { 0, 0, NULL }, { 1, RESULT, "__ubuf_val" } }, /* getrandom */
	{ 332, { 0, 0, NULL }, { 5, FIXED(48), "__buffer_val" } }, /* statx */
	{ 435, { 1, FIXED(64), "__uargs_val" }, { 0, 0, NULL } }, /* clone3 */
};
/* clang-format on */

const struct gt_syscall_data *gt_syscall_data_of(const struct gt_syscall *call)
{
	size_t low = 0, high = sizeof(table) / sizeof(table[0]);

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (table[middle].number < call->number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sizeof(table) / sizeof(table[0]) && table[low].number == call->number
		       ? &table[low]
		       : NULL;
}
