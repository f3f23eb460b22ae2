/* SPDX-License-Identifier: MIT */
/*
 * See off_cpu.h. An event for each thread and CPU, since only such ones are inherited by what the
 * thread starts; all events of a CPU share one ring. What the kernel writes there is trusted; its
 * lengths are checked all the same.
 *
 * CPUs' rings are read one after the other, so a record can come to a ring that was read already
 * while later ones of another ring are taken. A batch is therefore put in order, and only what is
 * older than SETTLED_NS before its reading began goes into the table; the rest waits for the next.
 */
#define _GNU_SOURCE
#include "attach/ring/off_cpu.h"
#include "attach/process/proc.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/process/process.h"
#include "port/host/memory.h"

#define PAGE	    4096ul
#define RING_PAGES  128ul /* a power of two: with the first page what anybody may lock of a CPU */
#define LEAST_PAGES 8ul
#define SETTLED_NS  200000ull
#define BASE_NS	    250000000ull /* between the two moments that stamps are put between, at least */
#define FIRST_NS    1000000ull	 /* the same of the first ones */

struct gt_off_cpu_ring {
	struct perf_event_mmap_page *page;
	int fd; /* of the event whose ring it is; -1 = none yet */
};

/* sample_id_all with TID, TIME and CPU: what stands behind each record's header. */
struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

/* PERF_RECORD_FORK; what stands behind it is not looked at. */
struct fork_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid;
	uint32_t tid, parent_tid;
	uint64_t time;
};

struct gt_off_cpu_batch {
	struct switch_record *records;
	uint32_t count, room;
};

void gt_off_cpu_init(struct gt_off_cpu_watch *off)
{
	*off = (struct gt_off_cpu_watch){ 0 };
	gt_switches_init(&off->switches, &gt_host_memory, 0, GT_OFF_CPU_MOST);
	pthread_mutex_init(&off->lock, NULL);
}

static void close_all(struct gt_off_cpu_watch *off)
{
	for (uint32_t i = 0; i < off->ring_count; i++)
		if (off->rings[i].page != NULL)
			munmap(off->rings[i].page, (off->ring_pages + 1) * PAGE);
	for (uint32_t i = 0; i < off->fd_count; i++)
		close(off->fds[i]);
	free(off->rings);
	free(off->fds);
	off->rings = NULL;
	off->fds = NULL;
	off->ring_count = off->fd_count = off->fd_room = 0;
	off->on = false;
}

void gt_off_cpu_fini(struct gt_off_cpu_watch *off)
{
	close_all(off);
	gt_switches_fini(&off->switches);
	free(off->forks);
	if (off->batch != NULL)
		free(off->batch->records);
	free(off->batch);
	pthread_mutex_destroy(&off->lock);
}

static int add_fd(struct gt_off_cpu_watch *off, int fd)
{
	if (off->fd_count == off->fd_room) {
		uint32_t room = off->fd_room ? off->fd_room * 2 : 64;
		int *grown = realloc(off->fds, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		off->fds = grown;
		off->fd_room = room;
	}
	off->fds[off->fd_count++] = fd;
	return 0;
}

static int open_event(pid_t tid, int cpu)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.context_switch = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC_RAW,
		.wakeup_watermark = 1u << 30,
		.watermark = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* 0, an errno, or -1: the CPU is not there. */
static int watch(struct gt_off_cpu_watch *off, pid_t tid, uint32_t cpu)
{
	struct gt_off_cpu_ring *ring = &off->rings[cpu];
	int fd = open_event(tid, (int)cpu), error;

	if (fd < 0)
		return errno == ENODEV ? -1 : errno;
	if (add_fd(off, fd)) {
		close(fd);
		return ENOMEM;
	}
	if (ring->fd >= 0)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0 ? 0 : errno;
	/* Others of the same user may have locked a part of what there is: all rings get what the
	 * first one got. */
	for (;;) {
		ring->page = mmap(NULL, (off->ring_pages + 1) * PAGE, PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
		if (ring->page != MAP_FAILED)
			break;
		error = errno;
		ring->page = NULL;
		if (error != EPERM || off->ring_pages <= LEAST_PAGES || off->fd_count > 1)
			return error;
		off->ring_pages /= 2;
	}
	ring->fd = fd;
	return 0;
}

static int watch_threads(struct gt_off_cpu_watch *off, pid_t pid, bool *any)
{
	DIR *tasks = gt_proc_numbers(pid);
	int error = 0;
	pid_t tid;

	if (tasks == NULL)
		return ESRCH;
	while (error <= 0 && (tid = gt_proc_next(tasks))) {
		for (uint32_t cpu = 0; error <= 0 && cpu < off->ring_count; cpu++) {
			error = watch(off, tid, cpu);
			*any |= error == 0;
			if (error == ESRCH) { /* it has ended meanwhile */
				error = 0;
				break;
			}
		}
	}
	closedir(tasks);
	return error > 0 ? error : 0;
}

static int refuse(int error, struct gt_message *message)
{
	char paranoid[16] = "?";
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");

	if (file != NULL) {
		if (fscanf(file, "%15s", paranoid) != 1)
			strcpy(paranoid, "?");
		fclose(file);
	}
	if (error == EACCES || error == EPERM)
		return gt_fail(
			message, GT_EPERM,
			"when threads are off the CPU is for the kernel to tell, and it does "
			"not (perf_event_open: %s; kernel.perf_event_paranoid is %s, 2 or less "
			"or CAP_PERFMON is needed)",
			strerror(error), paranoid);
	if (error == ENOSYS || error == EOPNOTSUPP || error == EINVAL)
		return gt_fail(message, GT_ENOTSUP,
			       "this kernel does not tell when threads are off the CPU "
			       "(perf_event_open: %s)",
			       strerror(error));
	return gt_fail(message, error == ENOMEM ? GT_ENOMEM : GT_EIO,
		       "context switches cannot be watched: %s%s", strerror(error),
		       error == EMFILE ? " (ulimit -n: an event for each thread and CPU)" : "");
}

static void begin(struct gt_off_cpu_watch *off)
{
	off->from = off->last = gt_clock_read(CLOCK_MONOTONIC_RAW);
	off->collected = off->from.tsc;
	gt_switches_restart(&off->switches, off->from.tsc);
}

int gt_off_cpu_start(struct gt_off_cpu_watch *off, const pid_t *pids, uint32_t count,
		     struct gt_message *message)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct rlimit limit;
	bool any = false, was_on;
	int error = 0;

	pthread_mutex_lock(&off->lock);
	was_on = off->on;
	/* An event takes a descriptor. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!was_on) {
		off->ring_pages = RING_PAGES;
		off->ring_count = cpus > 0 ? (uint32_t)cpus : 1;
		off->rings = calloc(off->ring_count, sizeof(*off->rings));
		if (off->batch == NULL)
			off->batch = calloc(1, sizeof(*off->batch));
		if (off->rings == NULL || off->batch == NULL)
			error = ENOMEM;
		for (uint32_t i = 0; !error && i < off->ring_count; i++)
			off->rings[i].fd = -1;
		begin(off);
	}
	for (uint32_t i = 0; !error && i < count; i++) {
		error = watch_threads(off, pids[i], &any);
		if (error == ESRCH)
			error = 0;
	}
	if (!error && !any && !was_on)
		error = ESRCH;
	off->on = was_on || !error;
	off->watched |= off->on;
	if (error) {
		if (!was_on)
			close_all(off);
		error = refuse(error, message);
	}
	pthread_mutex_unlock(&off->lock);
	return error;
}

/* ---- collecting ---- */

static void note(struct gt_off_cpu_watch *off, const struct switch_record *record)
{
	struct gt_off_cpu_batch *batch = off->batch;

	if (batch->count == batch->room) {
		uint32_t room = batch->room ? batch->room * 2 : 1024;
		struct switch_record *grown = realloc(batch->records, room * sizeof(*grown));

		if (grown == NULL) {
			off->switches.lost++;
			return;
		}
		batch->records = grown;
		batch->room = room;
	}
	batch->records[batch->count++] = *record;
}

static uint64_t to_tsc(struct gt_instant from, struct gt_instant to, uint64_t ns)
{
	__extension__ typedef unsigned __int128 u128;
	uint64_t ticks = to.tsc - from.tsc, span = to.ns - from.ns;

	if (ns < from.ns)
		return from.tsc - (uint64_t)((u128)(from.ns - ns) * ticks / span);
	return from.tsc + (uint64_t)((u128)(ns - from.ns) * ticks / span);
}

/* Without memory for it nobody knows who has started it. */
static void note_fork(struct gt_off_cpu_watch *off, const struct fork_record *record,
		      struct gt_instant now)
{
	if (off->forks == NULL)
		off->forks = calloc(GT_OFF_CPU_FORKS, sizeof(*off->forks));
	if (off->forks == NULL)
		return;
	if (off->fork_count == GT_OFF_CPU_FORKS) {
		off->fork_count /= 2;
		memmove(off->forks, off->forks + off->fork_count,
			off->fork_count * sizeof(*off->forks));
	}
	off->forks[off->fork_count++] = (struct gt_off_cpu_fork){
		.clock = to_tsc(off->from, now, record->time),
		.tid = record->tid,
		.creator = record->parent_tid,
	};
}

/* PERF_RECORD_LOST: the event's number, how many were lost. */
static uint64_t lost_of(const char *data, uint64_t bytes, uint64_t at)
{
	uint64_t lost;

	at += sizeof(struct perf_event_header) + sizeof(uint64_t);
	memcpy(&lost, data + at % bytes, sizeof(lost)); /* eight bytes do not wrap */
	return lost;
}

static void read_ring(struct gt_off_cpu_watch *off, struct gt_off_cpu_ring *ring,
		      struct gt_instant now)
{
	const char *data = (const char *)ring->page + PAGE;
	uint64_t bytes = off->ring_pages * PAGE;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		union {
			struct switch_record record;
			struct fork_record fork;
			char bytes[sizeof(struct switch_record)];
		} copy;
		struct perf_event_header header;
		size_t size;

		/* headers do not wrap: records are multiples of eight bytes */
		memcpy(&header, data + tail % bytes, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		size = header.size < sizeof(copy) ? header.size : sizeof(copy);
		for (size_t i = 0; i < size; i++)
			copy.bytes[i] = data[(tail + i) % bytes];
		if (header.type == PERF_RECORD_SWITCH && header.size >= sizeof(copy))
			note(off, &copy.record);
		else if (header.type == PERF_RECORD_FORK && header.size >= sizeof(copy.fork))
			note_fork(off, &copy.fork, now);
		else if (header.type == PERF_RECORD_LOST &&
			 header.size >= sizeof(header) + 2 * sizeof(uint64_t))
			off->switches.lost += lost_of(data, bytes, tail);
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *left, const void *right)
{
	const struct switch_record *a = left, *b = right;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* Waits until stamps can be put between two moments: less than FIRST_NS, once, at the beginning. */
static void wait_for_base(const struct gt_off_cpu_watch *off)
{
	while (off->on && gt_clock_read(CLOCK_MONOTONIC_RAW).ns < off->from.ns + FIRST_NS)
		;
}

/* Under the lock. */
static void collect(struct gt_off_cpu_watch *off, bool end)
{
	struct gt_off_cpu_batch *batch = off->batch;
	struct gt_instant now;
	uint32_t done = 0;
	uint64_t limit;

	if (end)
		wait_for_base(off);
	now = gt_clock_read(CLOCK_MONOTONIC_RAW);
	if (!off->on || now.ns < off->from.ns + FIRST_NS)
		return;
	limit = end ? now.ns : now.ns - SETTLED_NS;
	for (uint32_t i = 0; i < off->ring_count; i++)
		if (off->rings[i].page != NULL)
			read_ring(off, &off->rings[i], now);
	if (batch->count)
		qsort(batch->records, batch->count, sizeof(*batch->records), by_time);
	for (; done < batch->count; done++) {
		const struct switch_record *record = &batch->records[done];
		uint16_t misc = record->header.misc;
		struct gt_switch added = {
			.tid = record->tid,
			.cpu = record->cpu < UINT16_MAX ? (uint16_t)record->cpu : UINT16_MAX,
		};

		if (record->time > limit)
			break;
		added.clock = to_tsc(off->from, now, record->time);
		if (misc & PERF_RECORD_MISC_SWITCH_OUT)
			added.flags = GT_SWITCH_OUT | (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
							       ? GT_SWITCH_PREEMPTED
							       : 0);
		gt_switches_add(&off->switches, &added);
	}
	if (done) {
		batch->count -= done;
		memmove(batch->records, batch->records + done,
			batch->count * sizeof(*batch->records));
	}
	off->collected = to_tsc(off->from, now, limit);
	if (now.ns >= off->last.ns + BASE_NS) {
		off->from = off->last;
		off->last = now;
	}
}

void gt_off_cpu_collect(struct gt_off_cpu_watch *off, bool end)
{
	pthread_mutex_lock(&off->lock);
	collect(off, end);
	pthread_mutex_unlock(&off->lock);
}

void gt_off_cpu_stop(struct gt_off_cpu_watch *off)
{
	pthread_mutex_lock(&off->lock);
	collect(off, true);
	close_all(off);
	pthread_mutex_unlock(&off->lock);
}

bool gt_off_cpu_is_on(struct gt_off_cpu_watch *off)
{
	bool on;

	pthread_mutex_lock(&off->lock);
	on = off->on;
	pthread_mutex_unlock(&off->lock);
	return on;
}

/* ---- asking ---- */

void gt_off_cpu_find_times(struct gt_off_cpu_watch *off)
{
	pthread_mutex_lock(&off->lock);
	gt_switches_find_times(&off->switches);
	pthread_mutex_unlock(&off->lock);
}

int gt_off_cpu_find(struct gt_off_cpu_watch *off, uint32_t tid, uint64_t after,
		    struct gt_off_cpu *time)
{
	int error = GT_ENOTSUP;

	pthread_mutex_lock(&off->lock);
	if (off->on && after >= off->collected)
		collect(off, true);
	if (off->watched)
		error = gt_switches_off_cpu(&off->switches, tid, after, time);
	if (!error && off->on && time->from == UINT64_MAX)
		time->to = off->collected > after ? off->collected : after + 1;
	pthread_mutex_unlock(&off->lock);
	return error;
}

/* Under the lock. */
static int find_creator(const struct gt_off_cpu_watch *off, uint32_t tid,
			struct gt_off_cpu_fork *fork)
{
	for (uint32_t at = off->fork_count; at-- > 0;) {
		if (off->forks[at].tid != tid)
			continue;
		*fork = off->forks[at];
		return 0;
	}
	return GT_ENOENT;
}

int gt_off_cpu_creator(struct gt_off_cpu_watch *off, uint32_t tid, struct gt_off_cpu_fork *fork)
{
	int error;

	pthread_mutex_lock(&off->lock);
	error = find_creator(off, tid, fork);
	if (error) { /* its first event may come before the kernel was asked again */
		wait_for_base(off);
		collect(off, false);
		error = find_creator(off, tid, fork);
	}
	pthread_mutex_unlock(&off->lock);
	return error;
}

uint32_t gt_off_cpu_read(struct gt_off_cpu_watch *off, uint64_t *cursor, struct gt_switch *out,
			 uint32_t room)
{
	uint32_t count;

	pthread_mutex_lock(&off->lock);
	collect(off, false);
	count = gt_switches_read(&off->switches, cursor, out, room);
	pthread_mutex_unlock(&off->lock);
	return count;
}

int gt_off_cpu_give(struct gt_off_cpu_watch *off, const struct gt_sink *sink, uint64_t *cursor)
{
	struct gt_switch some[256];
	bool begins = *cursor == 0, known;
	uint64_t start = 0, lost, passed;
	uint32_t count, old;
	int error = 0;

	if (sink == NULL || sink->switches == NULL)
		return 0;
	do {
		uint64_t from = *cursor;

		pthread_mutex_lock(&off->lock);
		known = off->watched;
		count = gt_switches_read(&off->switches, cursor, some, 256);
		/* Gone before they were read; at the beginning: what is kept begins later. */
		passed = *cursor - from - count;
		if (start == 0)
			start = off->switches.start;
		if (from == 0 && passed > 0 && count > 0)
			start = some[0].clock;
		else if (from > 0)
			off->switches.lost += passed;
		lost = off->switches.lost;
		pthread_mutex_unlock(&off->lock);
		/* Of a time before they were watched no more, and then again. */
		for (old = 0; old < count && some[old].clock < start;)
			old++;
		if (known && (count > old || begins))
			error = sink->switches(sink->data, start, lost, some + old, count - old);
		begins = false;
	} while (!error && count);
	return error;
}

void gt_off_cpu_forget(struct gt_off_cpu_watch *off, uint64_t given)
{
	pthread_mutex_lock(&off->lock);
	gt_switches_forget(&off->switches, given);
	pthread_mutex_unlock(&off->lock);
}
