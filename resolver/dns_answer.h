/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer.h - what we ask the world, and what its answers mean: pure
 *
 * An ask is built from a name and a type and nothing else.  An answer is
 * believed only when it repeats the ask's id and question; of it only the
 * chain of CNAMEs from the asked name and the records at its end are read.
 */
#ifndef RESOLVER_DNS_ANSWER_H
#define RESOLVER_DNS_ANSWER_H

#include "resolver/dns_msg.h"
#include "resolver/dns_rdata.h"
#include "resolver/resolver.h"

#define DNS_CHAIN_MAX		11	/* CNAMEs between a name and its addresses */
#define DNS_RECORDS_MAX		512	/* of one answer; more is no answer */
#define DNS_ASK_PAD		128	/* RFC 8467 4.1 */
#define DNS_ASK_MAX		(3 * DNS_ASK_PAD)

struct dns_ask {
	uint16_t n;
	uint16_t question_n;	/* bytes of the question behind the header */
	uint8_t p[DNS_ASK_MAX];
};

/**
 * dns_ask_encode() - Build the packet for one question
 * @id:		unpredictable
 * @mix:	32 random bytes: a letter's case is taken from a bit each ("0x20")
 *
 * Ends with exactly one OPT without options (11 bytes), which is what the
 * transport takes off when a server does not know EDNS.
 */
void dns_ask_encode(const struct dns_name *name, uint16_t type, uint16_t id,
		    const uint8_t mix[32], struct dns_ask *ret);

/* Pad the packet, by an option in its OPT, to a multiple of DNS_ASK_PAD, so that
 * its size tells nothing of the name where it is encrypted (RFC 7830). */
void dns_ask_pad(struct dns_ask *ask);

/* Take the OPT off again, for a server that knows no EDNS. */
void dns_ask_strip(struct dns_ask *ask);

struct dns_answer {
	enum dns_rcode rcode;
	unsigned chain;		/* CNAMEs followed */
	struct dns_name tail;	/* the name at the end of the chain */
	struct ip_addr addr[RESOLVER_ADDRS_MAX];	/* of the tail */
	size_t naddr;
	struct buf rdata;	/* of another type, as of dns_rdata_add() */
	uint32_t ttl_s;		/* smallest of chain and records */
	bool has_ns;		/* in the authority section */
	bool has_soa;
	uint32_t soa_ttl_s;	/* RFC 2308 5: smaller of its TTL and minimum */
};

static inline void dns_answer_done(struct dns_answer *a)
{
	buf_done(&a->rdata);
}

/**
 * dns_answer_parse() - Is this the answer, and what does it say?
 * @exact:	the question must be repeated byte for byte, case included
 * @ret:	for dns_answer_done(), whatever comes back
 *
 * Return: 0; -ENOMSG: not an answer to @ask; -EBADMSG: malformed, too many
 * records, cut, contradictory or a referral; -ELOOP: the chain runs in a circle or is too long
 */
NODISCARD int dns_answer_parse(const uint8_t *msg, size_t n,
			       const struct dns_ask *ask, bool exact,
			       struct dns_answer *ret);

#endif /* RESOLVER_DNS_ANSWER_H */
