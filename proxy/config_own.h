/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_own.h - what the files of the configuration share; no one else includes it
 *
 *	config.c	sections with one table of keys
 *	config_listen.c	[listen NAME], of which there are many
 *	config_parent.c	[parent NAME], likewise
 */
#ifndef PROXY_CONFIG_OWN_H
#define PROXY_CONFIG_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"
#include "proxy/config.h"

struct config_reader {
	struct config *config;
	struct str text;		/* the whole, of which values are parts */
	config_error_fn *fn;
	void *arg;
	unsigned line;
	int err;
	uint32_t seen;			/* keys, by their place in the table */
	uint32_t listen_seen;		/* of the section that is being read */
	bool listen_bad;		/* it was refused: its keys are passed over */
	struct parent *parent;		/* whose section is being read; NULL: it was
					 * refused */
	uint32_t parent_seen;
};

void config_error(struct config_reader *r, unsigned line, const char *fmt, ...)
	PRINTF(3, 4);
void config_error_at(struct config_reader *r, const struct config_place *place,
		     const char *fmt, ...) PRINTF(3, 4);
/* Where a part of a value of the current line stands. */
struct config_place config_place_of(const struct config_reader *r,
				    struct str word);

bool config_is_listen(struct str section);
void config_listen_begin(struct config_reader *r, struct str section);
void config_listen_key(struct config_reader *r, struct str key,
		       struct str value);
void config_listen_check(struct config_reader *r);

bool config_is_parent(struct str section);
void config_parent_begin(struct config_reader *r, struct str section);
void config_parent_key(struct config_reader *r, struct str key,
		       struct str value);
void config_parent_check(struct config_reader *r);

#endif /* PROXY_CONFIG_OWN_H */
