/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_rdata.c - records that are not addresses, as they may go on
 */
#include "resolver/dns_rdata.h"

#include <errno.h>

/* SvcParamKeys (RFC 9460 14.3.2). */
enum svc_key {
	SVC_MANDATORY = 0,
	SVC_ALPN = 1,
	SVC_NO_DEFAULT_ALPN = 2,
	SVC_PORT = 3,
	SVC_IPV4HINT = 4,
	SVC_ECH = 5,
	SVC_IPV6HINT = 6,
};

#define SVC_KEYS_KEPT	(BIT(SVC_MANDATORY) | BIT(SVC_ALPN) | \
			 BIT(SVC_NO_DEFAULT_ALPN) | BIT(SVC_PORT) | \
			 BIT(SVC_IPV4HINT) | BIT(SVC_IPV6HINT))

/* RDATA that is being read, in its message. */
struct reader {
	const uint8_t *msg;
	size_t n, at, end;
	struct buf *out;
};

static int add_bytes(struct reader *r, size_t n)
{
	int err;

	if (n > r->end - r->at)
		return -EBADMSG;
	err = buf_add(r->out, r->msg + r->at, n);
	r->at += n;
	return err;
}

static int add_name(struct reader *r)
{
	struct dns_name name;
	size_t next;

	if (r->at >= r->end ||
	    dns_name_read(r->msg, r->n, r->at, &name, &next) != 0 ||
	    next > r->end)
		return -EBADMSG;
	r->at = next;
	return buf_add(r->out, name.b, name.n);
}

/* Some bytes, then a name and nothing more. */
static int add_name_behind(struct reader *r, size_t before)
{
	int err = add_bytes(r, before);

	return err ? err : add_name(r);
}

/* RFC 1035 3.3.14: one string or more, each behind its length. */
static int add_strings(struct reader *r)
{
	int err = r->at < r->end ? 0 : -EBADMSG;

	while (!err && r->at < r->end)
		err = add_bytes(r, 1u + r->msg[r->at]);
	return err;
}

/* RFC 8659 4.1: flags, a tag of letters and digits behind its length, a value
 * of any bytes. */
static int add_caa(struct reader *r)
{
	unsigned n;

	if (r->end - r->at < 2)
		return -EBADMSG;
	n = r->msg[r->at + 1];
	if (n == 0 || n > r->end - r->at - 2)
		return -EBADMSG;
	for (unsigned i = 0; i < n; i++) {
		char c = ascii_lower((char)r->msg[r->at + 2 + i]);

		if (!ascii_is_digit(c) && !(c >= 'a' && c <= 'z'))
			return -EBADMSG;
	}
	return add_bytes(r, r->end - r->at);
}

/* --- SVCB and HTTPS ------------------------------------------------------- */

struct param {
	unsigned key;
	struct str value;
};

/* 1: one was read; 0: at the end; -EBADMSG */
static int next_param(struct str *rest, struct param *ret)
{
	const uint8_t *p = (const uint8_t *)rest->p;
	size_t n;

	if (rest->n == 0)
		return 0;
	if (rest->n < 4)
		return -EBADMSG;
	n = dns_get16(p + 2);
	if (n > rest->n - 4)
		return -EBADMSG;
	ret->key = dns_get16(p);
	ret->value = str_make(rest->p + 4, n);
	*rest = str_make(rest->p + 4 + n, rest->n - 4 - n);
	return 1;
}

/* Keys rise, and those that are known look as they must. */
static int check_params(struct str params)
{
	unsigned least = 0;
	struct param p;
	int more;

	while ((more = next_param(&params, &p)) == 1) {
		if (p.key < least)
			return -EBADMSG;
		least = p.key + 1;
		if ((p.key == SVC_MANDATORY &&
		     (p.value.n == 0 || p.value.n % 2 != 0)) ||
		    (p.key == SVC_NO_DEFAULT_ALPN && p.value.n != 0) ||
		    (p.key == SVC_PORT && p.value.n != 2) ||
		    (p.key == SVC_IPV4HINT &&
		     (p.value.n == 0 || p.value.n % 4 != 0)) ||
		    (p.key == SVC_IPV6HINT &&
		     (p.value.n == 0 || p.value.n % 16 != 0)))
			return -EBADMSG;
	}
	return more;
}

/* Which of the keys that are kept @params has, as bits. */
static unsigned keys_of(struct str params, unsigned kept)
{
	unsigned keys = 0;
	struct param p;

	while (next_param(&params, &p) == 1) {
		if (p.key < 32 && (kept & BIT(p.key)))
			keys |= BIT(p.key);
	}
	return keys;
}

/* Does each key that the client must know stay? */
static bool keeps_mandatory(struct str params, unsigned keys)
{
	struct param p;

	while (next_param(&params, &p) == 1) {
		if (p.key != SVC_MANDATORY)
			continue;
		for (size_t i = 0; i + 1 < p.value.n; i += 2) {
			unsigned key = dns_get16((const uint8_t *)p.value.p + i);

			if (key == SVC_MANDATORY || key >= 32 ||
			    !(keys & BIT(key)))
				return false;
		}
	}
	return true;
}

static int add_param(struct buf *out, unsigned key, struct str value)
{
	uint8_t head[4];
	int err;

	dns_put16(head, (uint16_t)key);
	dns_put16(head + 2, (uint16_t)value.n);
	err = buf_add(out, head, sizeof(head));
	return err ? err : buf_add_str(out, value);
}

static int add_kept(struct reader *r, struct str params)
{
	unsigned keys = keys_of(params, SVC_KEYS_KEPT);
	struct param p;
	int err = 0;

	if (!keeps_mandatory(params, keys))
		return -ENOENT;
	while (!err && next_param(&params, &p) == 1) {
		if (p.key < 32 && (keys & BIT(p.key)))
			err = add_param(r->out, p.key, p.value);
	}
	return err;
}

static int add_svcb(struct reader *r)
{
	bool alias = r->end - r->at >= 2 && dns_get16(r->msg + r->at) == 0;
	int err = add_name_behind(r, 2);
	struct str params;

	if (err)
		return err;
	params = str_make((const char *)r->msg + r->at, r->end - r->at);
	r->at = r->end;
	err = check_params(params);
	/* RFC 9460 2.4.2: those of an alias mean nothing. */
	return err || alias ? err : add_kept(r, params);
}

/* --- all types ------------------------------------------------------------- */

static int add_rdata(struct reader *r, uint16_t type)
{
	switch (type) {
	case DNS_TYPE_NS:
	case DNS_TYPE_PTR:
		return add_name(r);
	case DNS_TYPE_MX:
		return add_name_behind(r, 2);
	case DNS_TYPE_SRV:
		return add_name_behind(r, 6);
	case DNS_TYPE_TXT:
		return add_strings(r);
	case DNS_TYPE_CAA:
		return add_caa(r);
	case DNS_TYPE_SVCB:
	case DNS_TYPE_HTTPS:
		return add_svcb(r);
	default:
		return -EBADMSG;
	}
}

/* Room for a length at @at is there: put it in, or take all of it back. */
static int end_record(struct buf *out, size_t at, int err)
{
	if (err) {
		out->n = at;
		return err == -ENOMEM ? -ENOSPC : err;
	}
	dns_put16((uint8_t *)out->p + at, (uint16_t)(out->n - at - 2));
	return 0;
}

int dns_rdata_add(struct buf *out, const uint8_t *msg, size_t n,
		  const struct dns_record *rr)
{
	struct reader r = {
		.msg = msg, .n = n, .at = rr->data, .end = rr->data + rr->data_n,
		.out = out,
	};
	const size_t at = out->n;
	int err = buf_add(out, "\0", 2);

	if (!err)
		err = add_rdata(&r, rr->type);
	if (!err && r.at != r.end)
		err = -EBADMSG;
	return end_record(out, at, err);
}

bool dns_rdata_next(struct str *rest, struct str *ret)
{
	size_t n;

	if (rest->n < 2)
		return false;
	n = dns_get16((const uint8_t *)rest->p);
	REQUIRE(n <= rest->n - 2);
	*ret = str_make(rest->p + 2, n);
	*rest = str_make(rest->p + 2 + n, rest->n - 2 - n);
	return true;
}

/* --- hints ----------------------------------------------------------------- */

struct sieve {
	dns_hint_fn *passes;
	void *arg;
};

static struct ip_addr hint_at(unsigned key, const char *p)
{
	struct ip_addr a = { .family = key == SVC_IPV4HINT ? IP_V4 : IP_V6 };

	memcpy(a.b, p, key == SVC_IPV4HINT ? 4 : 16);
	return a;
}

/* Those that pass, in front of @out, which is as large as @p's value. */
static size_t sift(const struct sieve *s, const struct param *p, char *out)
{
	const size_t size = p->key == SVC_IPV4HINT ? 4 : 16;
	size_t kept = 0;

	for (size_t i = 0; i + size <= p->value.n; i += size) {
		struct ip_addr a = hint_at(p->key, p->value.p + i);

		if (!s->passes(s->arg, &a))
			continue;
		memcpy(out + kept, p->value.p + i, size);
		kept += size;
	}
	return kept;
}

static bool is_hint(unsigned key)
{
	return key == SVC_IPV4HINT || key == SVC_IPV6HINT;
}

/* The parameters behind @out's end; which keys are left, in @ret_keys. */
static int add_sifted(const struct sieve *s, struct str params,
		      struct buf *out, unsigned *ret_keys)
{
	struct param p;
	int err = 0;

	*ret_keys = 0;
	while (!err && next_param(&params, &p) == 1) {
		if (is_hint(p.key)) {
			err = buf_reserve(out, 4 + p.value.n);
			if (err)
				break;
			p.value = str_make(out->p + out->n + 4,
					   sift(s, &p, out->p + out->n + 4));
			if (str_empty(p.value))
				continue;
			dns_put16((uint8_t *)out->p + out->n, (uint16_t)p.key);
			dns_put16((uint8_t *)out->p + out->n + 2,
				  (uint16_t)p.value.n);
			out->n += 4 + p.value.n;
		} else {
			err = add_param(out, p.key, p.value);
		}
		*ret_keys |= BIT(p.key);
	}
	return err;
}

int dns_svcb_filter(struct str rdata, dns_hint_fn *passes, void *arg,
		    struct buf *out)
{
	const struct sieve sieve = { passes, arg };
	const size_t at = out->n;
	struct dns_name target;
	struct str params;
	unsigned keys = 0;
	size_t next = 0;
	int err = buf_add(out, "\0", 2);

	REQUIRE(dns_name_read((const uint8_t *)rdata.p, rdata.n, 2, &target,
			      &next) == 0);
	params = str_make(rdata.p + next, rdata.n - next);
	if (!err)
		err = buf_add(out, rdata.p, next);
	if (!err)
		err = add_sifted(&sieve, params, out, &keys);
	if (!err && !keeps_mandatory(params, keys))
		err = -ENOENT;
	return end_record(out, at, err);
}
