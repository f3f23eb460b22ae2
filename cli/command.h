/* SPDX-License-Identifier: MIT */
/*
 * The command line is one table of subcommands, in main.c; each lives in a file of its own and
 * reads its own arguments. Only here, above the libraries, is anything printed or exited.
 *
 * Exit codes of every subcommand: 0 done; 1 it could not be done, the reason is on stderr; 2 the
 * command line is wrong. `record`, `profile` and `mount` end as the program that they run ended:
 * with its exit code, or of its signal. All functions here: from the main thread, no locks.
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

/* The subcommands, each in the file of its name (cli/diff.c). They are the member `run` of struct gt_command: argv is
 * theirs to reorder, and lives as long as the process. */
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

/* Writes "graftrace NAME: text\n" to stderr, as one write, and wipes a line of progress before. A text of more than 2047
 * bytes is cut. */
void gt_complain(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Points at --help of subcommand `name` on stderr, and returns GT_EXIT_USAGE. What is wrong must have been said before:
 * by getopt_long, or by gt_complain(). */
int gt_usage_error(const char *name);

/* As getopt_long(), which it calls with these arguments; its results and variables, too. Where an option is not known
 * ('?'), it also says on stderr which one may be meant. */
struct option;
int gt_next_option(int argc, char **argv, const char *letters, const struct option *options);

/* The known word that is nearest to another one; all zero to begin with. `word` is the caller's `known`, not a copy. */
struct gt_proposal {
	const char *word; /* NULL: none is near */
	unsigned distance;
};
/* Takes `known` if it is nearer to `word` than the words before. Near is what begins with `word` (three letters or more),
 * or differs by at most three letters and half of `word`. */
void gt_propose(struct gt_proposal *proposal, const char *word, const char *known);

/* Levenshtein's distance: how many letters must be changed, added or left out. 99 where a word has more than 64 bytes. */
unsigned gt_word_distance(const char *a, const char *b);

/* Prints the text of --help to stdout: lines of more than 79 bytes are continued on the next one, below their
 * description. Returns GT_EXIT_DONE, or GT_EXIT_FAILED if stdout cannot be written; then nothing is said. */
int gt_print_help(const char *text);

/* Checks the number of operands of a subcommand that takes one. 0: it is right. GT_EXIT_USAGE: it is not, and stderr has
 * `none` ("which file?"; NULL: the operand may be left out) or `more` ("one file at a time"). */
int gt_one_operand(const char *name, int count, const char *none, const char *more);

#endif
