/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes. */
#ifndef PORT_UNIKERNEL_INCLUDE_TIME_H
#define PORT_UNIKERNEL_INCLUDE_TIME_H

typedef long time_t;
typedef int clockid_t;

struct timespec {
	time_t tv_sec;
	long tv_nsec;
};

#define CLOCK_REALTIME	0
#define CLOCK_MONOTONIC 1

int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *wanted, struct timespec *left);
time_t time(time_t *now);

#endif
