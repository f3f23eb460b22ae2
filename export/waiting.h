/* SPDX-License-Identifier: MIT */
/*
 * Whether a function, by its name, sleeps or waits: its self time is then mostly that of others,
 * and hides the rest in a chart. A guess, so whoever acts on it says which names it took.
 */
#ifndef GT_EXPORT_WAITING_H
#define GT_EXPORT_WAITING_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The name is looked at word by word (snake_case, camelCase, C++ and Rust scopes), so that
 * `kernel_sleep`, `epoll_wait` and `std::thread::join` are taken, and `middle`, `second`,
 * `selection_sort` and `await_count` are not. Parameters ("f(wait_queue*)") do not count.
 */
bool gt_name_waits(const char *name, size_t len);

#endif
