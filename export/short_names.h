/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ and Rust functions as a person says them: without template arguments, the std::string
 * of a basic_string, Rust's <Type as Trait>::method without the modules of either; and names cut to a
 * width in the middle, so that the method's, at the end, stays.
 */
#ifndef GT_EXPORT_SHORT_NAMES_H
#define GT_EXPORT_SHORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define GT_SHORT_NAME_MAX 1024

/* Writes the short name into `out`, which has room for GT_SHORT_NAME_MAX bytes, NUL-terminated; a longer one loses its
 * end. Without brackets in it, only "std::__cxx11::" is removed. */
void gt_short_name(const char *full, char *out);

/* Makes a name (UTF-8) at most so many columns wide, in place: "std::vec…::push_back". One that is
 * too long by its last part alone loses its end. columns: at least 4. `text` has 3 bytes of room
 * behind its end. */
void gt_cut_middle(char *text, uint32_t columns);

/* Columns of a text, one for each UTF-8 character. */
uint32_t gt_text_columns(const char *text);

/* Short names by the functions' numbers, which stay where they are; all zero: none yet. */
struct gt_short_names {
	char **names;
	uint32_t room;
};

/* The short name of function `number`, kept until gt_short_names_fini; `full` itself if it has no brackets
 * or there is no memory. `data` is a struct gt_short_names. */
const char *gt_short_names_keep(void *data, uint32_t number, const char *full);
void gt_short_names_fini(struct gt_short_names *names);

#endif
