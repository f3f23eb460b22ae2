/* SPDX-License-Identifier: MIT */
#include "cli/command.h"
int gt_cmd_runtime_breakdown(int argc, char **argv) { (void)argc; (void)argv; return 1; }
