/* SPDX-License-Identifier: MIT */
/* The agent's image, as the host side carries it: see graftrace/agent.h for its layout. */
#ifndef GT_PORT_PROGRAM_IMAGE_H
#define GT_PORT_PROGRAM_IMAGE_H

#include <stddef.h>

extern const unsigned char gt_agent_image[];
extern const size_t gt_agent_image_size;

#endif
