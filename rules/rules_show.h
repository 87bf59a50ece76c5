/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_show.h - a ruleset as one policy text again
 */
#ifndef RULES_RULES_SHOW_H
#define RULES_RULES_SHOW_H

#include "base/buf.h"
#include "base/compiler.h"
#include "rules/rules.h"

/**
 * rules_show() - Write what is in force, with all that was included
 * @out:	a policy text is appended: lists are sorted, and comments say
 *		where each rule stands, and the ports that it has by default
 *
 * Compiled again, it permits the same; but what only a preset may say
 * (hosts = *) and what needs a word of its own (public_suffix) is refused there.
 * Return: 0, -ENOSPC or -ENOMEM
 */
NODISCARD int rules_show(const struct ruleset *rs, struct buf *out);

#endif /* RULES_RULES_SHOW_H */
