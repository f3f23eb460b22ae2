/* SPDX-License-Identifier: MIT */
/* What `graftrace record` says on stderr: before the program runs what it cannot trace, at the end
 * one line, and what was lost. */
#ifndef GT_CLI_RECORD_REPORT_H
#define GT_CLI_RECORD_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/session/session.h"
#include "cli/record_options.h"

/* Says it if no function of the program is traced, or a glob names none. program: its file. */
void gt_record_report_untraced(struct gt_session *session, const struct gt_record_options *options,
			       const char *program);

/* At the end: says it if a word of -e named no event, also none of a library that came later. */
void gt_record_report_events(struct gt_session *session, const struct gt_record_options *options);

/* Does a program show little without the calls of its libraries (--libcall)? It is stripped, or has few functions and a
 * library that does its work. program: its file. */
enum gt_record_poor { GT_POOR_NOT, GT_POOR_STRIPPED, GT_POOR_THIN };
enum gt_record_poor gt_record_judge(const char *program);

/* Before the start: takes these calls in, unless the command line chooses functions. Returns the reason. */
enum gt_record_poor gt_record_choose_libcalls(struct gt_record_options *options,
					      const char *program);

/* At the end: says what gt_record_choose_libcalls() has taken in, why, and which option undoes it. */
void gt_record_report_libcalls(enum gt_record_poor poor, const char *program);

/* Functions that are traced, and those of them without a name; ask when the program has begun. */
struct gt_record_names {
	uint64_t functions, nameless;
	char object[4096]; /* path of the first one without; "" there is none */
};
void gt_record_count_names(struct gt_session *session, struct gt_record_names *names);

/* At the end: why there is little to be seen, if there is: functions without names, with the package
 * that has them; work in libraries that are not traced, with the option for them. program: its file. */
void gt_record_report_poor(const struct gt_record_names *names,
			   const struct gt_session_totals *totals,
			   const struct gt_record_options *options, enum gt_record_poor poor,
			   const char *program);

/* ", without its 2 children (--children)" if a process has some, else "". */
void gt_record_report_children(pid_t pid, char *text, size_t room);

/* What was found damaged by the traced processes, a sentence for each `which` from 0 on: "" if it was
 * not. False: there are no more. */
bool gt_record_report_damage(const struct gt_session_totals *totals, unsigned which, char *text,
			     size_t room);

/* Places of system calls that were left alone, with reasons that not every process has; all of them as an
 * option of the recording. False: there are none. */
bool gt_record_report_places(struct gt_session *session, char *option, size_t room);

/* "1,234,567 calls, 4 threads, 1.234 s, 0 lost, graftrace.data (12.3 MB)", and what was lost by
 * cause with what to do. path NULL: there is no file. missed: calls that could not be written to it,
 * which are not among those of `totals`. */
void gt_record_report_end(const struct gt_session_totals *totals,
			  const struct gt_record_options *options, const char *path,
			  uint64_t file_bytes, uint64_t missed);

/* The end of a recording without a program. */
void gt_record_report_file(const char *path, uint64_t bytes);

#endif
