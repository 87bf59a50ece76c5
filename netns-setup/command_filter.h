/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_filter.h - the system calls that the command may make
 */
#ifndef NETNS_SETUP_COMMAND_FILTER_H
#define NETNS_SETUP_COMMAND_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define COMMAND_FILTER_MAX	256	/* instructions */

/**
 * command_filter_make() - Write the program
 * @forbidden_mode:	bits that no file may be given (S_ISUID, S_ISGID)
 * Return: its length in instructions
 */
size_t command_filter_make(struct sock_filter ret[COMMAND_FILTER_MAX],
			   uint32_t forbidden_mode);

/* Set no_new_privs and load it for the calling process, for good. */
NODISCARD int command_filter_load(uint32_t forbidden_mode);

#endif /* NETNS_SETUP_COMMAND_FILTER_H */
