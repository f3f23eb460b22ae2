/* SPDX-License-Identifier: MIT */
/*
 * The command line is one table of subcommands, in main.c; each lives in a file of its own and
 * reads its own arguments. Only here, above the libraries, is anything printed or exited.
 *
 * Exit codes of every subcommand: 0 done; 1 it could not be done, the reason is on stderr; 2 the
 * command line is wrong. `record` passes on the program's own besides.
 */
#ifndef GT_CLI_COMMAND_H
#define GT_CLI_COMMAND_H

#define GT_EXIT_DONE   0
#define GT_EXIT_FAILED 1
#define GT_EXIT_USAGE  2

struct gt_command {
	const char *name;
	const char *help;		   /* a line, beginning with a verb, without a full stop */
	int (*run)(int argc, char **argv); /* argv[0] is "graftrace NAME"; returns the exit code */
};

int gt_cmd_diff(int argc, char **argv);
int gt_cmd_export(int argc, char **argv);
int gt_cmd_functions(int argc, char **argv);
int gt_cmd_get(int argc, char **argv);
int gt_cmd_graph(int argc, char **argv);
int gt_cmd_hist(int argc, char **argv);
int gt_cmd_info(int argc, char **argv);
int gt_cmd_list(int argc, char **argv);
int gt_cmd_mount(int argc, char **argv);
int gt_cmd_parse_trace(int argc, char **argv);
int gt_cmd_probe(int argc, char **argv);
int gt_cmd_profile(int argc, char **argv);
int gt_cmd_record(int argc, char **argv);
int gt_cmd_report(int argc, char **argv);
int gt_cmd_runtime_breakdown(int argc, char **argv);
int gt_cmd_serve(int argc, char **argv);
int gt_cmd_set(int argc, char **argv);
int gt_cmd_show(int argc, char **argv);
int gt_cmd_top(int argc, char **argv);

/* "graftrace NAME: text\n" on stderr, as one write. */
void gt_complain(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Points at --help, and returns GT_EXIT_USAGE. For when getopt_long has already said what is wrong.
 */
int gt_usage_error(const char *name);

/* getopt_long; and where an option is not known, on stderr which one may be meant. */
struct option;
int gt_next_option(int argc, char **argv, const char *letters, const struct option *options);

/* The known word that is nearest to another one; all zero to begin with. */
struct gt_proposal {
	const char *word; /* NULL: none is near */
	unsigned distance;
};
void gt_propose(struct gt_proposal *proposal, const char *word, const char *known);

/* Levenshtein's distance of short words; long ones are as far as can be. */
unsigned gt_word_distance(const char *a, const char *b);

/* Prints the text of --help, no line longer than 80 columns; GT_EXIT_DONE or GT_EXIT_FAILED. */
int gt_print_help(const char *text);

/* What a subcommand that takes one operand says of none ("which file?"; NULL: it may be left out)
 * or of more ("one file at a time"): 0 if the count is right, else GT_EXIT_USAGE. */
int gt_one_operand(const char *name, int count, const char *none, const char *more);

#endif
