/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer.c - what we ask the world, and what its answers mean
 *
 * An answer's records may stand in any order, so the answer section is walked
 * twice: once to gather the CNAMEs, of which the chain is then followed in
 * memory, and once for the addresses of the name at its end.  Whatever belongs
 * to another name is passed over: it can neither be answered nor cached.
 */
#include "resolver/dns_answer.h"

#include <errno.h>

#define FLAGS_QR	0x8000
#define FLAGS_TC	0x0200
#define FLAGS_RD	0x0100
#define FLAGS_OPCODE	0x7800

void dns_ask_encode(const struct dns_name *name, uint16_t type, uint16_t id,
		    const uint8_t mix[32], struct dns_ask *ret)
{
	static const uint8_t opt[11] = {
		0, 0, DNS_TYPE_OPT, DNS_EDNS_SIZE >> 8, DNS_EDNS_SIZE & 0xff,
	};
	uint8_t *p = ret->p;
	size_t at = DNS_HEADER_SIZE;

	memset(p, 0, DNS_HEADER_SIZE);
	dns_put16(p, id);
	dns_put16(p + 2, FLAGS_RD);
	dns_put16(p + 4, 1);
	dns_put16(p + 10, 1);
	memcpy(p + at, name->b, name->n);
	for (size_t i = 0; i < name->n; i++) {
		/* Length bytes are below 64 and so never letters. */
		if (p[at + i] >= 'a' && p[at + i] <= 'z' &&
		    (mix[i / 8] >> (i % 8) & 1))
			p[at + i] = (uint8_t)(p[at + i] - 'a' + 'A');
	}
	at += name->n;
	dns_put16(p + at, type);
	dns_put16(p + at + 2, DNS_CLASS_IN);
	at += 4;
	ret->question_n = (uint16_t)(at - DNS_HEADER_SIZE);
	memcpy(p + at, opt, sizeof(opt));
	ret->n = (uint16_t)(at + sizeof(opt));
}

void dns_ask_strip(struct dns_ask *ask)
{
	ask->n = (uint16_t)(DNS_HEADER_SIZE + ask->question_n);
	dns_put16(ask->p + 10, 0);
}

/* Does the message repeat the id and the one question of @ask? */
static bool answers_ask(const uint8_t *msg, size_t n, const struct dns_ask *ask,
			bool exact)
{
	const uint8_t *got = msg + DNS_HEADER_SIZE;
	const uint8_t *asked = ask->p + DNS_HEADER_SIZE;
	unsigned flags = dns_get16(msg + 2);

	if (!(flags & FLAGS_QR) || (flags & FLAGS_OPCODE) ||
	    dns_get16(msg) != dns_get16(ask->p) || dns_get16(msg + 4) != 1 ||
	    n - DNS_HEADER_SIZE < ask->question_n)
		return false;
	if (exact)
		return memcmp(got, asked, ask->question_n) == 0;
	return str_ieq(str_make(got, ask->question_n),
		       str_make(asked, ask->question_n));
}

struct cname {
	struct dns_name owner, target;
	uint32_t ttl;
};

struct chain {
	struct cname link[DNS_CHAIN_MAX];
	size_t n;
};

static int chain_add(struct chain *c, const uint8_t *msg, size_t n,
		     const struct dns_record *rr)
{
	struct cname *link;
	size_t next;

	if (c->n == DNS_CHAIN_MAX)
		return -ELOOP;
	link = &c->link[c->n];
	if (dns_name_read(msg, n, rr->data, &link->target, &next) != 0 ||
	    next != rr->data + rr->data_n)
		return -EBADMSG;
	link->owner = rr->owner;
	link->ttl = rr->ttl;
	c->n++;
	return 0;
}

static const struct cname *chain_find(const struct chain *c,
				      const struct dns_name *owner)
{
	for (size_t i = 0; i < c->n; i++) {
		if (dns_name_eq(&c->link[i].owner, owner))
			return &c->link[i];
	}
	return NULL;
}

/* From the asked name to the end; more steps than links is a circle. */
static int chain_follow(const struct chain *c, struct dns_answer *a)
{
	const struct cname *link;

	while ((link = chain_find(c, &a->tail)) != NULL) {
		if (++a->chain > c->n)
			return -ELOOP;
		a->tail = link->target;
		a->ttl_s = MIN(a->ttl_s, link->ttl);
	}
	return 0;
}

static int gather_chain(const uint8_t *msg, size_t n, size_t *off,
			unsigned count, struct dns_answer *a)
{
	struct chain chain = { .n = 0 };
	struct dns_record rr;
	int err;

	for (; count > 0; count--) {
		err = dns_record_read(msg, n, off, &rr);
		if (!err && rr.type == DNS_TYPE_CNAME &&
		    rr.klass == DNS_CLASS_IN)
			err = chain_add(&chain, msg, n, &rr);
		if (err)
			return err;
	}
	return chain_follow(&chain, a);
}

/* @off and @count were walked once already: every record can be read. */
static int gather_addresses(const uint8_t *msg, size_t n, size_t off,
			    unsigned count, uint16_t type, struct dns_answer *a)
{
	uint8_t size = type == DNS_TYPE_A ? 4 : 16;
	struct dns_record rr;
	int err;

	for (; count > 0; count--) {
		err = dns_record_read(msg, n, &off, &rr);
		if (err)
			return err;
		if (rr.type != type || rr.klass != DNS_CLASS_IN ||
		    !dns_name_eq(&rr.owner, &a->tail))
			continue;
		if (rr.data_n != size)
			return -EBADMSG;
		a->ttl_s = MIN(a->ttl_s, rr.ttl);
		if (a->naddr == RESOLVER_ADDRS_MAX)
			continue;
		a->addr[a->naddr].family = size == 4 ? IP_V4 : IP_V6;
		memcpy(a->addr[a->naddr].b, msg + rr.data, size);
		a->naddr++;
	}
	return 0;
}

/* The SOA of the authority section, for how long "no" may be kept. */
static int gather_soa(const uint8_t *msg, size_t n, size_t off, unsigned count,
		      struct dns_answer *a)
{
	struct dns_record rr;
	struct dns_name skip;
	size_t at;
	int err;

	for (; count > 0; count--) {
		err = dns_record_read(msg, n, &off, &rr);
		if (err)
			return err;
		if (rr.type != DNS_TYPE_SOA || rr.klass != DNS_CLASS_IN)
			continue;
		if (dns_name_read(msg, n, rr.data, &skip, &at) != 0 ||
		    dns_name_read(msg, n, at, &skip, &at) != 0 ||
		    at + 20 != rr.data + rr.data_n)
			return -EBADMSG;
		a->has_soa = true;
		a->soa_ttl_s = MIN(rr.ttl, dns_get32(msg + at + 16));
	}
	return 0;
}

int dns_answer_parse(const uint8_t *msg, size_t n, const struct dns_ask *ask,
		     bool exact, struct dns_answer *ret)
{
	size_t off = DNS_HEADER_SIZE + (size_t)ask->question_n, answers;
	uint16_t type = dns_get16(ask->p + off - 4);
	unsigned count, authority;
	size_t skip;
	int err;

	if (n < DNS_HEADER_SIZE || !answers_ask(msg, n, ask, exact))
		return -ENOMSG;
	count = dns_get16(msg + 6);
	authority = dns_get16(msg + 8);
	if ((dns_get16(msg + 2) & FLAGS_TC) ||
	    count + authority > DNS_RECORDS_MAX)
		return -EBADMSG;
	memset(ret, 0, sizeof(*ret));
	ret->rcode = dns_get16(msg + 2) & 0xf;
	ret->ttl_s = UINT32_MAX;
	err = dns_name_read(ask->p, ask->n, DNS_HEADER_SIZE, &ret->tail, &skip);
	if (err)
		return err;
	answers = off;
	err = gather_chain(msg, n, &off, count, ret);
	if (!err)
		err = gather_addresses(msg, n, answers, count, type, ret);
	if (!err)
		err = gather_soa(msg, n, off, authority, ret);
	return err;
}
