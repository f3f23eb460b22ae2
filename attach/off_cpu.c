/* SPDX-License-Identifier: MIT */
/*
 * See off_cpu.h. An event for each thread and CPU, since only such ones are inherited by what the
 * thread starts; all events of a CPU share one ring. What the kernel writes there is trusted; its
 * lengths are checked all the same.
 */
#define _GNU_SOURCE
#include "attach/off_cpu.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/process.h"

#define PAGE	   4096ul
#define RING_PAGES 64ul /* a power of two */
#define BUCKETS	   1024u

struct gt_off_cpu_ring {
	struct perf_event_mmap_page *page;
	int fd; /* of the event whose ring it is; -1 = none yet */
};

struct interval {
	uint64_t from, to;
};

struct gt_off_cpu_thread {
	struct gt_off_cpu_thread *next;
	uint32_t tid;
	uint64_t out;		/* when it went off the CPU, 0 = it is on it, or unknown */
	struct interval *times; /* in order */
	uint32_t count, room;
};

/* sample_id_all with TID and TIME: what stands behind each record's header. */
struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
};

void gt_off_cpu_init(struct gt_off_cpu *off)
{
	*off = (struct gt_off_cpu){ 0 };
	pthread_mutex_init(&off->lock, NULL);
}

static void close_all(struct gt_off_cpu *off)
{
	uint32_t i;

	for (i = 0; i < off->ring_count; i++)
		if (off->rings[i].page)
			munmap(off->rings[i].page, (RING_PAGES + 1) * PAGE);
	for (i = 0; i < off->fd_count; i++)
		close(off->fds[i]);
	free(off->rings);
	free(off->fds);
	off->rings = NULL;
	off->fds = NULL;
	off->ring_count = off->fd_count = off->fd_room = 0;
	off->on = false;
}

void gt_off_cpu_fini(struct gt_off_cpu *off)
{
	uint32_t i;

	close_all(off);
	for (i = 0; off->threads && i < BUCKETS; i++) {
		while (off->threads[i]) {
			struct gt_off_cpu_thread *thread = off->threads[i];

			off->threads[i] = thread->next;
			free(thread->times);
			free(thread);
		}
	}
	free(off->threads);
	pthread_mutex_destroy(&off->lock);
}

static int add_fd(struct gt_off_cpu *off, int fd)
{
	if (off->fd_count == off->fd_room) {
		uint32_t room = off->fd_room ? off->fd_room * 2 : 64;
		int *grown = realloc(off->fds, room * sizeof(*grown));

		if (!grown)
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
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.context_switch = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.wakeup_watermark = 1u << 30,
		.watermark = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* 0, an errno, or -1: the CPU is not there. */
static int watch(struct gt_off_cpu *off, pid_t tid, uint32_t cpu)
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
	ring->page = mmap(NULL, (RING_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->page == MAP_FAILED) {
		error = errno;
		ring->page = NULL;
		return error;
	}
	ring->fd = fd;
	return 0;
}

static int watch_threads(struct gt_off_cpu *off, pid_t pid, bool *any)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;
	uint32_t cpu;
	int error = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return ESRCH;
	while (error <= 0 && (entry = readdir(tasks))) {
		long tid = strtol(entry->d_name, NULL, 10);

		for (cpu = 0; tid > 0 && error <= 0 && cpu < off->ring_count; cpu++) {
			error = watch(off, (pid_t)tid, cpu);
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

	if (file) {
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

int gt_off_cpu_start(struct gt_off_cpu *off, const pid_t *pids, uint32_t count,
		     struct gt_message *message)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct rlimit limit;
	bool any = false;
	uint32_t i;
	int error = 0;

	pthread_mutex_lock(&off->lock);
	if (off->on)
		goto unlock;
	/* An event takes a descriptor. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!off->threads)
		off->threads = calloc(BUCKETS, sizeof(*off->threads));
	off->ring_count = cpus > 0 ? (uint32_t)cpus : 1;
	off->rings = calloc(off->ring_count, sizeof(*off->rings));
	if (!off->threads || !off->rings)
		error = ENOMEM;
	for (i = 0; !error && i < off->ring_count; i++)
		off->rings[i].fd = -1;
	for (i = 0; !error && i < count; i++) {
		error = watch_threads(off, pids[i], &any);
		if (error == ESRCH)
			error = 0;
	}
	if (!error && !any)
		error = ESRCH;
	off->on = !error;
	if (error) {
		close_all(off);
		error = refuse(error, message);
	}
unlock:
	pthread_mutex_unlock(&off->lock);
	return error;
}

static struct gt_off_cpu_thread *find(const struct gt_off_cpu *off, uint32_t tid)
{
	struct gt_off_cpu_thread *thread = off->threads ? off->threads[tid % BUCKETS] : NULL;

	while (thread && thread->tid != tid)
		thread = thread->next;
	return thread;
}

static struct gt_off_cpu_thread *find_or_make(struct gt_off_cpu *off, uint32_t tid)
{
	struct gt_off_cpu_thread *thread = find(off, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->next = off->threads[tid % BUCKETS];
	off->threads[tid % BUCKETS] = thread;
	return thread;
}

static void came_back(struct gt_off_cpu_thread *thread, uint64_t time)
{
	uint64_t out = thread->out;

	thread->out = 0;
	if (!out || time <= out)
		return;
	if (thread->count == GT_OFF_CPU_MOST) {
		thread->count /= 2; /* the older half goes */
		memmove(thread->times, thread->times + thread->count,
			thread->count * sizeof(*thread->times));
	}
	if (thread->count == thread->room) {
		uint32_t room = thread->room ? thread->room * 2 : 16;
		struct interval *grown = realloc(thread->times, room * sizeof(*grown));

		if (!grown)
			return;
		thread->times = grown;
		thread->room = room;
	}
	thread->times[thread->count++] = (struct interval){ out, time };
}

/* CPUs' rings are read one after the other: who went off on one CPU may have come back on another,
 * whose record is read first. Records are put in order before they count. */
struct batch {
	struct switch_record *records;
	uint32_t count, room;
};

static void note(struct batch *batch, const struct switch_record *record)
{
	if (batch->count == batch->room) {
		uint32_t room = batch->room ? batch->room * 2 : 1024;
		struct switch_record *grown = realloc(batch->records, room * sizeof(*grown));

		if (!grown)
			return;
		batch->records = grown;
		batch->room = room;
	}
	batch->records[batch->count++] = *record;
}

static void read_ring(struct gt_off_cpu *off, struct gt_off_cpu_ring *ring, struct batch *batch)
{
	const char *data = (const char *)ring->page + PAGE;
	uint64_t bytes = RING_PAGES * PAGE;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		union {
			struct switch_record record;
			char bytes[sizeof(struct switch_record)];
		} copy;
		struct perf_event_header header;
		size_t i, size;

		/* headers do not wrap: records are multiples of eight bytes */
		memcpy(&header, data + tail % bytes, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		size = header.size < sizeof(copy) ? header.size : sizeof(copy);
		for (i = 0; i < size; i++)
			copy.bytes[i] = data[(tail + i) % bytes];
		if (header.type == PERF_RECORD_SWITCH && header.size >= sizeof(copy))
			note(batch, &copy.record);
		else if (header.type == PERF_RECORD_LOST)
			off->lost++;
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *left, const void *right)
{
	const struct switch_record *a = left, *b = right;

	return a->time < b->time ? -1 : a->time > b->time;
}

void gt_off_cpu_collect(struct gt_off_cpu *off)
{
	struct batch batch = { 0 };
	struct timespec now;
	uint32_t i;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&off->lock);
	off->collected_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (i = 0; off->on && i < off->ring_count; i++)
		if (off->rings[i].page)
			read_ring(off, &off->rings[i], &batch);
	if (batch.count)
		qsort(batch.records, batch.count, sizeof(*batch.records), by_time);
	for (i = 0; i < batch.count; i++) {
		const struct switch_record *record = &batch.records[i];
		struct gt_off_cpu_thread *thread = find_or_make(off, record->tid);

		if (!thread)
			continue;
		if (record->header.misc & PERF_RECORD_MISC_SWITCH_OUT)
			thread->out = record->time;
		else
			came_back(thread, record->time);
	}
	pthread_mutex_unlock(&off->lock);
	free(batch.records);
}

uint64_t gt_off_cpu_ns(struct gt_off_cpu *off, uint32_t tid, uint64_t from, uint64_t to)
{
	const struct gt_off_cpu_thread *thread;
	uint32_t low = 0, high, i;
	uint64_t sum = 0;
	bool stale;

	pthread_mutex_lock(&off->lock);
	stale = off->on && to > off->collected_ns;
	pthread_mutex_unlock(&off->lock);
	if (stale)
		gt_off_cpu_collect(off);
	pthread_mutex_lock(&off->lock);
	thread = find(off, tid);
	high = thread ? thread->count : 0;
	while (low < high) { /* the first that ends behind `from` */
		uint32_t middle = (low + high) / 2;

		if (thread->times[middle].to <= from)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = low; thread && i < thread->count && thread->times[i].from < to; i++) {
		uint64_t begin = thread->times[i].from > from ? thread->times[i].from : from;
		uint64_t end = thread->times[i].to < to ? thread->times[i].to : to;

		sum += end - begin;
	}
	pthread_mutex_unlock(&off->lock);
	return sum;
}
