/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_value.h - single words of a rule: a host, a range, some ports
 *
 * The policy file and --allow share these readers, so that neither takes what
 * the other refuses.  Each refusal comes with words that hold the mend; they
 * are constants, to be shown behind the offending word.
 */
#ifndef RULES_RULES_VALUE_H
#define RULES_RULES_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"
#include "rules/host_name.h"

enum host_pattern_kind {
	HOST_EXACT,	/* api.example.com: that name alone */
	HOST_BELOW,	/* *.example.com: each name below, not itself */
	HOST_ANY,	/* *: each host, with a name or without; deny only */
};

struct host_pattern {
	enum host_pattern_kind kind;
	struct host_name name;	/* without the "*."; unset for HOST_ANY */
};

/* Both ends belong to it and are of one family. */
struct addr_range {
	struct ip_addr lo, hi;
};

struct port_range {
	uint16_t lo, hi;
};

/* What stands before the name as it was written: "", "*." or "*". */
const char *host_pattern_front(enum host_pattern_kind kind);

/**
 * host_pattern_parse() - Read one word of `hosts`
 * @deny:	a deny rule's, which may say more ("*", "com")
 * @ret_why:	set on failure: what is wrong and the mend
 * Return: 0 or -EINVAL
 */
NODISCARD int host_pattern_parse(struct str word, bool deny,
				 struct host_pattern *ret,
				 const char **ret_why);

/**
 * host_suffix_fault() - Is it, or does it open, a name below which anybody may
 *                       register?  What an allow must not, unless it says so
 * Return: NULL, or words as @ret_why above
 */
const char *host_suffix_fault(enum host_pattern_kind kind, struct str name);

/* One word of `addresses`: ADDRESS, ADDRESS/BITS or ADDRESS-ADDRESS. */
NODISCARD int addr_range_parse(struct str word, bool deny,
			       struct addr_range *ret, const char **ret_why);

/* One word of `ports`: PORT, PORT-PORT, or "*" for 1-65535. */
NODISCARD int port_range_parse(struct str word, struct port_range *ret,
			       const char **ret_why);

/* RFC 3339: a date, or a date with a time and its zone, as seconds since the
 * epoch; a date alone is where it begins, in UTC. */
NODISCARD int rules_time_parse(struct str word, int64_t *ret,
			       const char **ret_why);

bool addr_range_has(const struct addr_range *r, const struct ip_addr *a);
/* Do they share an address? */
bool addr_range_meets(const struct addr_range *a, const struct addr_range *b);
/* Does @outer hold all of @inner? */
bool addr_range_covers(const struct addr_range *outer,
		       const struct addr_range *inner);
static inline bool addr_range_is_single(const struct addr_range *r)
{
	return ip_addr_eq(&r->lo, &r->hi);
}

/* A word as it may be shown: printable ASCII, the rest as \xNN, cut short. */
#define SHOWN_SIZE	100
const char *shown(struct str word, char out[SHOWN_SIZE]);

/* The protocol whose name is nearest, for a "did you mean", or NULL. */
const char *rules_protocol_near(struct str name);

/* One word of `types`: NULL, or words as @ret_why above. */
const char *rules_type_fault(struct str word);

#endif /* RULES_RULES_VALUE_H */
