/* SPDX-License-Identifier: MIT */
/*
 * Programs that count their own calls, so that a trace of them can be judged. Each function starts
 * with ENTER() and ends with LEAVE(): it counts itself and keeps, for its thread, the depth at
 * which it runs. At the end the counts go to the file that the environment variable GT_COUNTS names:
 *
 *	pid N                     the lines that follow are of this process
 *	count NAME CALLS          calls of the function NAME
 *	depth NAME DEPTH CALLS    so many of them at this depth (of functions that know their depth)
 *	deeper NAME CALLS SUM MAX calls at COUNT_DEPTHS and deeper, the sum of their depths, the
 *	                          largest
 *
 * No line of a function that was not called. The code is inline and calls nothing, so that leaf
 * functions stay leaf functions; it is safe in signal handlers and in any number of threads.
 * Objects that may be unloaded are compiled with COUNT_FAR: their counts live in the program.
 */
#ifndef COUNT_H
#define COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

#define COUNT_DEPTHS 64

struct count_site {
	const char *name;
	struct count_site *next; /* in the list of those that were called */
	int listed;
	int light; /* no depth */
	unsigned long calls;
	unsigned long at[COUNT_DEPTHS];
	unsigned long deeper, deeper_sum, deeper_max;
};

extern struct count_site *count_sites;
extern __thread int count_depth __attribute__((tls_model("initial-exec")));

/* The site of a name, for objects that come and go. */
struct count_site *count_far(const char *name);
/* The same as calls, for other languages: ENTER() and LEAVE() of a function called `name`. */
void count_named(const char *name);
void count_left(void);
/* Writes the counts and starts from zero; by itself at exit. Call it before an end without one. */
void count_write(void);
/* In a forked child: what the parent counted is the parent's. */
void count_forget(void);

/* Not traced and not traceable by a compiler's preparation. */
#ifdef __clang__
#define COUNT_PLAIN __attribute__((no_instrument_function, patchable_function_entry(0)))
#define COUNTED	    __attribute__((noinline))
#else
#define COUNT_PLAIN __attribute__((no_instrument_function, patchable_function_entry(0, 0)))
#define COUNTED	    __attribute__((noinline, noclone))
#endif

#define COUNT_INLINE static inline __attribute__((always_inline, unused)) COUNT_PLAIN

COUNT_INLINE void count_list(struct count_site *site)
{
	if (__builtin_expect(__atomic_load_n(&site->listed, __ATOMIC_RELAXED), 1))
		return;
	if (__atomic_exchange_n(&site->listed, 1, __ATOMIC_RELAXED))
		return;
	struct count_site *first = __atomic_load_n(&count_sites, __ATOMIC_RELAXED);
	do
		site->next = first;
	while (!__atomic_compare_exchange_n(&count_sites, &first, site, 1, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

COUNT_INLINE void count_enter(struct count_site *site)
{
	unsigned long depth = (unsigned long)count_depth;

	count_depth = (int)depth + 1;
	__atomic_fetch_add(&site->calls, 1, __ATOMIC_RELAXED);
	if (__builtin_expect(depth < COUNT_DEPTHS, 1)) {
		__atomic_fetch_add(&site->at[depth], 1, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_add(&site->deeper, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&site->deeper_sum, depth, __ATOMIC_RELAXED);
		if (site->deeper_max < depth)
			site->deeper_max = depth;
	}
}

#ifdef COUNT_FAR
#define ENTER()                                   \
	static struct count_site *count_here;     \
	if (!count_here)                          \
		count_here = count_far(__func__); \
	count_enter(count_here)
#else
#define ENTER()                                                                         \
	static struct count_site count_here = { __func__, 0, 0, 0, 0, { 0 }, 0, 0, 0 }; \
	count_list(&count_here);                                                        \
	count_enter(&count_here)
#endif
#define LEAVE() ((void)--count_depth)

/* Counts without a depth, in a signal handler that can come anywhere and in what it calls: between
 * the start of a function and its ENTER() nobody knows the depth. */
#define ENTER_ANYWHERE()                                                                \
	static struct count_site count_here = { __func__, 0, 0, 1, 0, { 0 }, 0, 0, 0 }; \
	count_list(&count_here);                                                        \
	__atomic_fetch_add(&count_here.calls, 1, __ATOMIC_RELAXED)

/* For functions that must touch no register of their own accord: the site is listed beforehand. */
#define COUNT_ONLY(site)       __atomic_fetch_add(&(site).calls, 1, __ATOMIC_RELAXED)
#define COUNT_SITE(site, name) static struct count_site site = { name, 0, 0, 1, 0, { 0 }, 0, 0, 0 }

#ifdef __cplusplus
}
/* Leaves by every way out of a function. */
struct count_guard {
	COUNT_PLAIN __attribute__((always_inline)) count_guard()
	{
	}
	COUNT_PLAIN __attribute__((always_inline)) ~count_guard()
	{
		--count_depth;
	}
};
#define GUARDED() \
	ENTER();  \
	count_guard count_leaves
#endif

#endif
