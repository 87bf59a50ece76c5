/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_idn.h - what a person writes, as the DNS and lists of suffixes know it
 *
 * For policies alone, when they are compiled: names in requests are ASCII or
 * malformed, and nothing is decoded for a decision.
 */
#ifndef RULES_HOST_IDN_H
#define RULES_HOST_IDN_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/str.h"
#include "rules/host_name.h"

/**
 * host_idn_parse() - A name with letters outside ASCII, as its A-labels
 * @ret_why:	set for -EINVAL: what is wrong and the mend
 *
 * IDNA 2008, with the mapping of capital letters and of composed characters
 * that people expect (UTS 46, non-transitional).  Letters that are mapped to
 * ASCII, and dots of other scripts, are refused: who writes them means to
 * deceive, or pasted something that does.
 * Return: 0, -ENOENT when all of it is ASCII, -EINVAL or -ENOMEM
 */
NODISCARD int host_idn_parse(struct str text, struct host_name *ret,
			     const char **ret_why);

/*
 * Is it a name below which anybody may register (com, co.uk, github.io)?  By
 * the public suffix list, private part included; a top-level domain that is not
 * in it is one.  @name is canonical.
 */
bool host_is_public_suffix(struct str name);

#endif /* RULES_HOST_IDN_H */
