/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer.c - what we ask the world, and what its answers mean
 *
 * An answer's records may stand in any order, so the answer section is walked
 * twice: once to gather the CNAMEs, of which the chain is then followed in
 * memory, and once for the records of the name at its end.  Whatever belongs
 * to another name is passed over: it can neither be answered nor cached.
 */
#include "resolver/dns_answer.h"

#include <errno.h>

#define FLAGS_QR	0x8000
#define FLAGS_TC	0x0200
#define FLAGS_RD	0x0100
#define FLAGS_OPCODE	0x7800
#define OPTION_PADDING	12

_Static_assert(DNS_HEADER_SIZE + DNS_NAME_MAX + 4 + 11 + 4 <= DNS_ASK_MAX,
	       "the longest question fits, padded or not");

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

void dns_ask_pad(struct dns_ask *ask)
{
	uint8_t *p = ask->p + ask->n;
	size_t n = ask->n + 4u;
	size_t pad = (DNS_ASK_PAD - n % DNS_ASK_PAD) % DNS_ASK_PAD;

	dns_put16(p - 2, (uint16_t)(4 + pad));		/* of the OPT's data */
	dns_put16(p, OPTION_PADDING);
	dns_put16(p + 2, (uint16_t)pad);
	memset(p + 4, 0, pad);
	ask->n = (uint16_t)(n + pad);
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

static const struct cname *chain_find(const struct chain *c,
				      const struct dns_name *owner)
{
	for (size_t i = 0; i < c->n; i++) {
		if (dns_name_eq(&c->link[i].owner, owner))
			return &c->link[i];
	}
	return NULL;
}

/* RFC 2181 8: with the top bit set it is none. */
static uint32_t ttl_of(const struct dns_record *rr)
{
	return rr->ttl > INT32_MAX ? 0 : rr->ttl;
}

static int chain_add(struct chain *c, const uint8_t *msg, size_t n,
		     const struct dns_record *rr)
{
	const struct cname *known;
	struct cname *link;
	size_t next;

	if (c->n == DNS_CHAIN_MAX)
		return -ELOOP;
	link = &c->link[c->n];
	if (dns_name_read(msg, n, rr->data, &link->target, &next) != 0 ||
	    next != rr->data + rr->data_n)
		return -EBADMSG;
	/* One owner has one name that it stands for (RFC 1034 3.6.2). */
	known = chain_find(c, &rr->owner);
	if (known)
		return dns_name_eq(&known->target, &link->target) ? 0
								  : -EBADMSG;
	link->owner = rr->owner;
	link->ttl = ttl_of(rr);
	c->n++;
	return 0;
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

/* Records that are being read. */
struct section {
	const uint8_t *msg;
	size_t n, off;		/* of the message; of the next record */
	unsigned count;		/* left */
};

/* While some are left. */
static int next_record(struct section *s, struct dns_record *ret)
{
	s->count--;
	return dns_record_read(s->msg, s->n, &s->off, ret);
}

static int gather_chain(struct section *s, struct dns_answer *a)
{
	struct chain chain = { .n = 0 };
	struct dns_record rr;
	int err;

	while (s->count > 0) {
		err = next_record(s, &rr);
		if (!err && rr.type == DNS_TYPE_CNAME &&
		    rr.klass == DNS_CLASS_IN)
			err = chain_add(&chain, s->msg, s->n, &rr);
		if (err)
			return err;
	}
	return chain_follow(&chain, a);
}

static int gather_address(const uint8_t *msg, const struct dns_record *rr,
			  struct dns_answer *a)
{
	uint8_t size = rr->type == DNS_TYPE_A ? 4 : 16;

	if (rr->data_n != size)
		return -EBADMSG;
	if (a->naddr == RESOLVER_ADDRS_MAX)
		return 0;
	a->addr[a->naddr].family = size == 4 ? IP_V4 : IP_V6;
	memcpy(a->addr[a->naddr].b, msg + rr->data, size);
	a->naddr++;
	return 0;
}

/* Too much is no answer; what may not go on at all is as if it were not. */
static int gather_rdata(const uint8_t *msg, size_t n,
			const struct dns_record *rr, struct dns_answer *a)
{
	int err = dns_rdata_add(&a->rdata, msg, n, rr);

	return err == -ENOENT ? 0 : err ? -EBADMSG : 0;
}

/* The section was walked once already: every record of it can be read. */
static int gather_records(struct section s, uint16_t type,
			  struct dns_answer *a)
{
	struct dns_record rr;
	int err;

	while (s.count > 0) {
		err = next_record(&s, &rr);
		if (err)
			return err;
		if (rr.type != type || rr.klass != DNS_CLASS_IN ||
		    !dns_name_eq(&rr.owner, &a->tail))
			continue;
		a->ttl_s = MIN(a->ttl_s, ttl_of(&rr));
		err = type == DNS_TYPE_A || type == DNS_TYPE_AAAA ?
			gather_address(s.msg, &rr, a) :
			gather_rdata(s.msg, s.n, &rr, a);
		if (err)
			return err;
	}
	return 0;
}

/* The SOA of the authority section, for how long "no" may be kept. */
static int gather_authority(struct section *s, struct dns_answer *a)
{
	struct dns_record rr;
	struct dns_name skip;
	size_t at;
	int err;

	while (s->count > 0) {
		err = next_record(s, &rr);
		if (err)
			return err;
		if (rr.type == DNS_TYPE_NS && rr.klass == DNS_CLASS_IN)
			a->has_ns = true;
		if (rr.type != DNS_TYPE_SOA || rr.klass != DNS_CLASS_IN)
			continue;
		if (dns_name_read(s->msg, s->n, rr.data, &skip, &at) != 0 ||
		    dns_name_read(s->msg, s->n, at, &skip, &at) != 0 ||
		    at + 20 != rr.data + rr.data_n)
			return -EBADMSG;
		a->has_soa = true;
		a->soa_ttl_s = MIN(ttl_of(&rr),
				   dns_get32(s->msg + at + 16));
	}
	return 0;
}

/* The upper bits of the response code are in an OPT (RFC 6891 6.1.3). */
static int gather_rcode(struct section *s, struct dns_answer *a)
{
	struct dns_record rr;
	int err;

	while (s->count > 0) {
		err = next_record(s, &rr);
		if (err)
			return err;
		if (rr.type == DNS_TYPE_OPT)
			a->rcode |= rr.ttl >> 24 << 4;
	}
	return 0;
}

/*
 * What contradicts itself: a name that does not exist and has records.  And
 * what is no answer but says who might have one (RFC 2308 2.2): a server that
 * does not look names up for us.
 */
static int judge(const struct dns_answer *a)
{
	bool found = a->naddr > 0 || a->rdata.n > 0;

	if (a->rcode == DNS_NXDOMAIN && found)
		return -EBADMSG;
	if (a->rcode == DNS_NOERROR && a->chain == 0 && !found &&
	    a->has_ns && !a->has_soa)
		return -EBADMSG;
	return 0;
}

int dns_answer_parse(const uint8_t *msg, size_t n, const struct dns_ask *ask,
		     bool exact, struct dns_answer *ret)
{
	struct section s = {
		.msg = msg, .n = n,
		.off = DNS_HEADER_SIZE + (size_t)ask->question_n,
	};
	uint16_t type = dns_get16(ask->p + s.off - 4);
	struct section answers;
	unsigned authority, additional;
	size_t skip;
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->rdata.max = DNS_RDATA_MAX;
	if (n < DNS_HEADER_SIZE || !answers_ask(msg, n, ask, exact))
		return -ENOMSG;
	s.count = dns_get16(msg + 6);
	authority = dns_get16(msg + 8);
	additional = dns_get16(msg + 10);
	if ((dns_get16(msg + 2) & FLAGS_TC) ||
	    s.count + authority + additional > DNS_RECORDS_MAX)
		return -EBADMSG;
	ret->rcode = dns_get16(msg + 2) & 0xf;
	ret->ttl_s = UINT32_MAX;
	err = dns_name_read(ask->p, ask->n, DNS_HEADER_SIZE, &ret->tail, &skip);
	if (err)
		return err;
	answers = s;
	err = gather_chain(&s, ret);
	if (!err)
		err = gather_records(answers, type, ret);
	s.count = authority;
	if (!err)
		err = gather_authority(&s, ret);
	s.count = additional;
	if (!err)
		err = gather_rcode(&s, ret);
	return err ? err : judge(ret);
}
