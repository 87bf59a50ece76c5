/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_msg.c - DNS messages as the sandbox sends and gets them
 *
 * Theory
 * ======
 * Whoever asks is hostile, so a question is taken apart once, into a struct
 * that holds copies, and nothing of the message itself travels further: what
 * goes upstream is built anew from the name and type (dns_answer.c), what goes
 * back is built from the struct.  The only bytes of the client that are ever
 * repeated are its id and its question section, to itself.
 *
 * Negative answers carry an SOA record of the root (RFC 2308): to a cache
 * behind this door everything lies in one zone, so that one SOA is right for
 * each name, and its short life bounds how long a refusal outlives a change of
 * policy.
 */
#include "resolver/dns_msg.h"

#include <errno.h>
#include <stdio.h>

#define FLAG_QR		0x8000
#define FLAG_TC		0x0200
#define FLAG_RD		0x0100
#define FLAG_RA		0x0080
#define FLAG_CD		0x0010
#define OPT_DO		0x8000
#define OPTION_EDE	15
#define OPT_SIZE	11	/* of one without options */

/* --- names ----------------------------------------------------------------- */

static uint8_t lower(uint8_t c)
{
	return (uint8_t)ascii_lower((char)c);
}

/*
 * Append the label at @at to @name.  Return: its whole size on the wire, or 0
 * when it does not fit the message or the name.
 */
static size_t label_take(const uint8_t *msg, size_t n, size_t at,
			 struct dns_name *name)
{
	size_t len = (size_t)msg[at] + 1;

	if (len > n - at || name->n + len > DNS_NAME_MAX)
		return 0;
	name->b[name->n] = msg[at];
	for (size_t i = 1; i < len; i++)
		name->b[name->n + i] = lower(msg[at + i]);
	name->n = (uint8_t)(name->n + len);
	return len;
}

int dns_name_read(const uint8_t *msg, size_t n, size_t off,
		  struct dns_name *ret, size_t *ret_next)
{
	struct dns_name name = { 0 };
	size_t at = off, floor = off, next = 0, took;
	unsigned jumps = 0;

	for (;;) {
		if (at >= n)
			return -EBADMSG;
		if ((msg[at] & 0xc0) == 0xc0) {
			if (n - at < 2 || ++jumps > DNS_JUMPS_MAX)
				return -EBADMSG;
			if (!next)
				next = at + 2;
			/* Each jump lands before all that was read: no loops. */
			at = dns_get16(msg + at) & 0x3fff;
			if (at >= floor || at < DNS_HEADER_SIZE)
				return -EBADMSG;
			floor = at;
			continue;
		}
		if (msg[at] & 0xc0)
			return -EBADMSG;
		took = label_take(msg, n, at, &name);
		if (!took)
			return -EBADMSG;
		at += took;
		if (took == 1)
			break;
	}
	*ret = name;
	*ret_next = next ? next : at;
	return 0;
}

int dns_name_from_text(struct str text, struct dns_name *ret)
{
	struct dns_name name = { 0 };
	struct str rest = text, label;

	while (str_cut(&rest, '.', &label)) {
		if (label.n == 0 || label.n > 63 ||
		    name.n + 1 + label.n + 1 > DNS_NAME_MAX)
			return -EINVAL;
		name.b[name.n++] = (uint8_t)label.n;
		for (size_t i = 0; i < label.n; i++)
			name.b[name.n++] = lower((uint8_t)label.p[i]);
	}
	if (text.n > 0 && text.p[text.n - 1] == '.')
		return -EINVAL;
	name.b[name.n++] = 0;
	*ret = name;
	return 0;
}

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_';
}

bool dns_name_text(const struct dns_name *name, char out[DNS_TEXT_MAX + 1],
		   size_t *ret_n)
{
	bool plain = true;
	size_t n = 0;

	for (size_t at = 0; name->b[at]; at += (size_t)name->b[at] + 1) {
		if (n)
			out[n++] = '.';
		for (size_t i = 1; i <= name->b[at]; i++) {
			plain = plain && is_plain(name->b[at + i]);
			out[n++] = (char)name->b[at + i];
		}
	}
	out[n] = '\0';
	*ret_n = n;
	return plain;
}

size_t dns_name_shown(const struct dns_name *name,
		      char out[DNS_SHOWN_MAX + 1])
{
	size_t n = 0;

	for (size_t at = 0; name->b[at]; at += (size_t)name->b[at] + 1) {
		if (n)
			out[n++] = '.';
		for (size_t i = 1; i <= name->b[at]; i++) {
			char c = (char)name->b[at + i];

			if (c == '.' || c == '\\')
				out[n++] = '\\';
			out[n++] = c;
		}
	}
	out[n] = '\0';
	return n;
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	return a->n == b->n && memcmp(a->b, b->b, a->n) == 0;
}

static const struct known_type {
	uint16_t type;
	const char *text;
} known_types[] = {
	{ DNS_TYPE_A, "A" }, { DNS_TYPE_AAAA, "AAAA" },
	{ DNS_TYPE_HTTPS, "HTTPS" }, { DNS_TYPE_PTR, "PTR" },
	{ DNS_TYPE_TXT, "TXT" }, { DNS_TYPE_NS, "NS" },
	{ DNS_TYPE_SOA, "SOA" }, { DNS_TYPE_CNAME, "CNAME" },
	{ DNS_TYPE_NULL, "NULL" }, { DNS_TYPE_ANY, "ANY" },
	{ 15, "MX" }, { 33, "SRV" }, { 35, "NAPTR" }, { 43, "DS" },
	{ 48, "DNSKEY" }, { 52, "TLSA" }, { 64, "SVCB" },
	{ 251, "IXFR" }, { 252, "AXFR" }, { 257, "CAA" },
};

int dns_type_from_text(struct str text, uint16_t *ret)
{
	struct str prefix = STR("TYPE");
	unsigned long number;

	for (size_t i = 0; i < ARRAY_SIZE(known_types); i++) {
		if (str_ieq(text, str_from(known_types[i].text))) {
			*ret = known_types[i].type;
			return 0;
		}
	}
	/* RFC 3597 5 */
	if (text.n <= prefix.n ||
	    !str_ieq(str_make(text.p, prefix.n), prefix) ||
	    str_to_uint(str_make(text.p + prefix.n, text.n - prefix.n),
			UINT16_MAX, &number) != 0)
		return -EINVAL;
	*ret = (uint16_t)number;
	return 0;
}

const char *dns_type_text(uint16_t type, char out[DNS_TYPE_TEXT_SIZE])
{
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(known_types); i++) {
		if (known_types[i].type == type)
			return known_types[i].text;
	}
	n = snprintf(out, DNS_TYPE_TEXT_SIZE, "TYPE%u", (unsigned)type);
	REQUIRE(n > 0 && n < DNS_TYPE_TEXT_SIZE);
	return out;
}

int dns_record_read(const uint8_t *msg, size_t n, size_t *off,
		    struct dns_record *ret)
{
	size_t at;
	int err;

	err = dns_name_read(msg, n, *off, &ret->owner, &at);
	if (err)
		return err;
	if (n - at < 10)
		return -EBADMSG;
	ret->type = dns_get16(msg + at);
	ret->klass = dns_get16(msg + at + 2);
	ret->ttl = dns_get32(msg + at + 4);
	ret->data_n = dns_get16(msg + at + 8);
	ret->data = at + 10;
	if (n - ret->data < ret->data_n)
		return -EBADMSG;
	*off = ret->data + ret->data_n;
	return 0;
}

/* --- questions ----------------------------------------------------------- */

static void question_set_text(struct dns_question *q)
{
	size_t n;

	q->plain = dns_name_text(&q->name, q->text, &n);
	if (!q->plain)
		n = dns_name_shown(&q->name, q->text);
	q->text_n = (uint16_t)n;
}

/* The question section; a name in it has nothing before it to point at. */
static bool question_take(const uint8_t *msg, size_t n, size_t *off,
			  struct dns_question *q)
{
	size_t next, name_n;

	if (dns_name_read(msg, n, *off, &q->name, &next) != 0)
		return false;
	name_n = next - *off;
	if (name_n != q->name.n || n - next < 4)
		return false;
	q->raw_n = (uint16_t)(name_n + 4);
	memcpy(q->raw, msg + *off, q->raw_n);
	q->type = dns_get16(msg + next);
	q->klass = dns_get16(msg + next + 2);
	question_set_text(q);
	q->has_question = true;
	*off = next + 4;
	return true;
}

/* Options must fill RDATA exactly; what they say is of no interest. */
static bool options_are_whole(const uint8_t *p, size_t n)
{
	while (n >= 4) {
		size_t len = 4 + (size_t)dns_get16(p + 2);

		if (len > n)
			return false;
		p += len;
		n -= len;
	}
	return n == 0;
}

static enum dns_parse opt_take(const uint8_t *msg, const struct dns_record *rr,
			       struct dns_question *q)
{
	unsigned version = rr->ttl >> 16 & 0xff;
	bool second = q->edns;

	/* Also of one that is malformed: RFC 6891 6.1.1 wants an OPT back. */
	q->edns = true;
	if (second || rr->owner.n != 1 ||
	    !options_are_whole(msg + rr->data, rr->data_n))
		return DNS_PARSE_FORMERR;
	q->udp_size = MAX(rr->klass, DNS_PLAIN_SIZE);
	q->dnssec_ok = rr->ttl & OPT_DO;
	return version == 0 ? DNS_PARSE_OK : DNS_PARSE_BADVERS;
}

/* What a question says of a zone's version is of no interest either. */
static bool authority_skip(const uint8_t *msg, size_t n, size_t *off,
			   unsigned count, const struct dns_question *q)
{
	struct dns_record rr;

	if (count == 0)
		return true;
	/* RFC 1995 3: IXFR brings the SOA that the client has. */
	return q->type == DNS_TYPE_IXFR && count == 1 &&
	       dns_record_read(msg, n, off, &rr) == 0 &&
	       rr.type == DNS_TYPE_SOA;
}

static enum dns_parse extra_take(const uint8_t *msg, size_t n, size_t off,
				 unsigned count, struct dns_question *q)
{
	enum dns_parse verdict = DNS_PARSE_OK, v;
	struct dns_record rr;

	if (count > DNS_EXTRA_MAX)
		return DNS_PARSE_FORMERR;
	for (; count > 0; count--) {
		if (dns_record_read(msg, n, &off, &rr) != 0)
			return DNS_PARSE_FORMERR;
		if (rr.type != DNS_TYPE_OPT)
			continue;
		v = opt_take(msg, &rr, q);
		if (v == DNS_PARSE_FORMERR)
			return v;
		verdict = v;
	}
	return off == n ? verdict : DNS_PARSE_FORMERR;
}

enum dns_parse dns_question_parse(const uint8_t *msg, size_t n,
				  struct dns_question *ret)
{
	size_t off = DNS_HEADER_SIZE;
	unsigned flags;

	memset(ret, 0, sizeof(*ret));
	ret->udp_size = DNS_PLAIN_SIZE;
	if (n < DNS_HEADER_SIZE)
		return DNS_PARSE_DROP;
	flags = dns_get16(msg + 2);
	if (flags & FLAG_QR)
		return DNS_PARSE_DROP;
	ret->id = dns_get16(msg);
	ret->opcode = (uint8_t)(flags >> 11 & 0xf);
	ret->rd = flags & FLAG_RD;
	ret->cd = flags & FLAG_CD;
	if (ret->opcode != 0)
		return DNS_PARSE_NOTIMP;
	/* A question holds no answers, and a cut one is no question. */
	if (dns_get16(msg + 4) != 1 || dns_get16(msg + 6) != 0 ||
	    (flags & FLAG_TC))
		return DNS_PARSE_FORMERR;
	if (!question_take(msg, n, &off, ret) ||
	    !authority_skip(msg, n, &off, dns_get16(msg + 8), ret))
		return DNS_PARSE_FORMERR;
	return extra_take(msg, n, off, dns_get16(msg + 10), ret);
}

void dns_question_about(const struct dns_name *name, uint16_t type,
			struct dns_question *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->has_question = true;
	ret->type = type;
	ret->klass = DNS_CLASS_IN;
	ret->name = *name;
	question_set_text(ret);
	ret->udp_size = DNS_PLAIN_SIZE;
}

/* --- replies ------------------------------------------------------------- */

struct writer {
	uint8_t *p;
	size_t n, cap;
	bool full;
};

static void put(struct writer *w, const void *p, size_t n)
{
	if (w->full || n > w->cap - w->n) {
		w->full = true;
		return;
	}
	if (n)
		memcpy(w->p + w->n, p, n);
	w->n += n;
}

static void put16(struct writer *w, unsigned v)
{
	uint8_t b[2];

	dns_put16(b, (uint16_t)v);
	put(w, b, sizeof(b));
}

static void put32(struct writer *w, uint32_t v)
{
	uint8_t b[4];

	dns_put32(b, v);
	put(w, b, sizeof(b));
}

/* A record of the asked name, whose RDATA of @n bytes follows. */
static void put_record_head(struct writer *w, unsigned type, uint32_t ttl_s,
			    size_t n)
{
	put16(w, 0xc000 | DNS_HEADER_SIZE);
	put16(w, type);
	put16(w, DNS_CLASS_IN);
	put32(w, ttl_s);
	put16(w, (unsigned)n);
}

/* Each behind its length, as dns_rdata.h has them. */
static unsigned put_records(struct writer *w, const struct dns_question *q,
			    const struct dns_reply *r)
{
	const uint8_t *p = (const uint8_t *)r->records.p;
	unsigned count = 0;

	for (size_t at = 0; at + 2 <= r->records.n; count++) {
		uint16_t n = dns_get16(p + at);

		put_record_head(w, q->type, r->ttl_s, n);
		put(w, p + at + 2, n);
		at += 2 + (size_t)n;
	}
	return count;
}

static unsigned put_answers(struct writer *w, const struct dns_question *q,
			    const struct dns_reply *r)
{
	unsigned count = put_records(w, q, r);

	for (size_t i = 0; i < r->naddr; i++) {
		bool v4 = r->addr[i].family == IP_V4;

		put_record_head(w, v4 ? DNS_TYPE_A : DNS_TYPE_AAAA, r->ttl_s,
				v4 ? 4 : 16);
		put(w, r->addr[i].b, v4 ? 4 : 16);
		count++;
	}
	if (r->ptr) {
		put_record_head(w, DNS_TYPE_PTR, r->ttl_s, r->ptr->n);
		put(w, r->ptr->b, r->ptr->n);
		count++;
	}
	return count;
}

/*
 * As many whole addresses as leave @spare bytes.  A client that takes TC to
 * heart asks again by TCP; musl before 1.2.4 knows none and takes what is there.
 */
static unsigned put_some(struct writer *w, const struct dns_question *q,
			 const struct dns_reply *r, size_t spare)
{
	unsigned count = 0;

	for (size_t i = 0; i < r->naddr; i++) {
		struct dns_reply one = {
			.addr = &r->addr[i], .naddr = 1, .ttl_s = r->ttl_s,
		};
		size_t size = 12 + (r->addr[i].family == IP_V4 ? 4 : 16);

		if (size + spare > w->cap - w->n)
			break;
		count += put_answers(w, q, &one);
	}
	return count;
}

static void put_soa(struct writer *w, uint32_t ttl_s)
{
	static const uint8_t mname[] = "\010penstock\007invalid";
	static const uint8_t rname[] = "";
	size_t data_n = sizeof(mname) + sizeof(rname) + 20;

	put(w, "", 1);				/* owner: the root */
	put16(w, DNS_TYPE_SOA);
	put16(w, DNS_CLASS_IN);
	put32(w, ttl_s);
	put16(w, (unsigned)data_n);
	put(w, mname, sizeof(mname));		/* the NULs are the root label */
	put(w, rname, sizeof(rname));
	put32(w, 1);				/* serial */
	put32(w, 3600);				/* refresh, retry, expire */
	put32(w, 600);
	put32(w, 86400);
	put32(w, ttl_s);			/* RFC 2308: negative TTL */
}

static void put_opt(struct writer *w, const struct dns_reply *r, bool dnssec_ok)
{
	size_t text_n = MIN(r->ede_text.n, DNS_EDE_TEXT_MAX);

	put(w, "", 1);
	put16(w, DNS_TYPE_OPT);
	put16(w, DNS_EDNS_SIZE);
	put32(w, (uint32_t)(r->rcode >> 4) << 24 | (dnssec_ok ? OPT_DO : 0));
	if (r->ede < 0) {
		put16(w, 0);
		return;
	}
	put16(w, (unsigned)(4 + 2 + text_n));
	put16(w, OPTION_EDE);
	put16(w, (unsigned)(2 + text_n));
	put16(w, (unsigned)r->ede);
	put(w, r->ede_text.p, text_n);
}

static void put_header(struct writer *w, const struct dns_question *q,
		       enum dns_rcode rcode, bool cut)
{
	unsigned flags = FLAG_QR | FLAG_RA | (unsigned)q->opcode << 11 |
			 (rcode & 0xf);

	if (q->rd)
		flags |= FLAG_RD;
	if (q->cd)
		flags |= FLAG_CD;
	if (cut)
		flags |= FLAG_TC;
	put16(w, q->id);
	put16(w, flags);
	put16(w, q->has_question);
	put16(w, 0);
	put16(w, 0);
	put16(w, q->edns);
	if (q->has_question)
		put(w, q->raw, q->raw_n);
}

size_t dns_question_udp_limit(const struct dns_question *q)
{
	return MIN(q->udp_size, DNS_EDNS_SIZE);
}

size_t dns_reply_encode(const struct dns_question *q,
			const struct dns_reply *r, size_t limit, uint8_t *out)
{
	struct writer w = { .p = out, .cap = limit };
	struct dns_reply bare = { .rcode = r->rcode, .ede = -1 };
	unsigned answers;

	REQUIRE(limit >= DNS_PLAIN_SIZE);
	put_header(&w, q, r->rcode, false);
	answers = put_answers(&w, q, r);
	if (r->soa)
		put_soa(&w, r->soa_ttl_s);
	if (q->edns)
		put_opt(&w, r, q->dnssec_ok);
	if (!w.full && !r->cut) {
		dns_put16(out + 6, (uint16_t)answers);
		dns_put16(out + 8, r->soa);
		return w.n;
	}
	/* Header, one question and a bare OPT always fit in 512. */
	w = (struct writer){ .p = out, .cap = limit };
	put_header(&w, q, r->rcode, true);
	answers = put_some(&w, q, r, q->edns ? OPT_SIZE : 0);
	dns_put16(out + 6, (uint16_t)answers);
	if (q->edns)
		put_opt(&w, &bare, q->dnssec_ok);
	return w.n;
}
