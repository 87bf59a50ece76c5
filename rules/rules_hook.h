/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_hook.h - hosts that a preset takes from how the machine is set up
 */
#ifndef RULES_RULES_HOOK_H
#define RULES_RULES_HOOK_H

#include "rules/rules_load.h"

/**
 * rules_hook_hosts() - The list of hosts that @word stands for
 * @word:	of `hosts`, with its "@": apt-sources/HOST or npm-registry/HOST;
 *		HOST is the list where nothing is set up
 * @out:	hosts, one a line, are appended
 * @ret_name:	what the list is called, a constant
 * Return: 0, -EINVAL (there is no such hook) or -ENOMEM
 */
NODISCARD int rules_hook_hosts(const struct rules_reader *reader,
			       struct str word, struct buf *out,
			       const char **ret_name);

#endif /* RULES_RULES_HOOK_H */
