/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shed.h - what the daemon and its two helpers each give up, by isolate.h
 *
 * Each says what failed, and is 0 or -errno.  @ids: to change to, or NULL.
 */
#ifndef PROXY_SHED_H
#define PROXY_SHED_H

#include <stdbool.h>

#include "base/compiler.h"
#include "proxy/isolate.h"

/* Ids, capabilities, dumps; limits. */
NODISCARD int shed_rights(const struct isolate_ids *ids);
/* Every file, by path; @binds: as of isolate_files(). */
NODISCARD int shed_files(bool binds);
/* Every system call but those of @who. */
NODISCARD int shed_calls(enum isolate_who who);

/* All of it for a helper, as its drop(): @ids is a struct isolate_ids or NULL. */
NODISCARD int shed_for_broker(void *ids);
NODISCARD int shed_for_marker(void *ids);

#endif /* PROXY_SHED_H */
