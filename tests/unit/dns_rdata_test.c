/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_rdata_test.c - records that are not addresses, as they may go on
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "resolver/dns_rdata.h"

/* "Example.com" at 12, for pointers to it; RDATA stands behind. */
#define NAME	"\7Example\3com"		/* and the literal's NUL */
#define LOW	"\7example\3com"
#define POINTER	"\xc0\x0c"
#define DATA	(12 + sizeof(NAME))

struct msg {
	uint8_t p[8192];
	size_t n;
	struct dns_record rr;
};

static void make(struct msg *m, uint16_t type, const void *rdata, size_t n)
{
	memset(m->p, 0, DATA);
	memcpy(m->p + 12, NAME, sizeof(NAME));
	memcpy(m->p + DATA, rdata, n);
	m->n = DATA + n;
	m->rr = (struct dns_record){
		.type = type, .klass = DNS_CLASS_IN, .data = DATA,
		.data_n = (uint16_t)n,
	};
}

/* What goes in, what comes out; lengths of literals, without their NUL. */
struct way {
	uint16_t type;
	const char *in;
	size_t in_n;
	const char *out;
	size_t out_n;
};
#define WAY(type, in, out) { type, in, sizeof(in) - 1, out, sizeof(out) - 1 }

#define SVC_ECH		"\0\5\0\2xy"
#define SVC_PORT	"\0\3\0\2\x1f\x90"
#define SVC_HINT4	"\0\4\0\10\300\0\2\1\177\0\0\1"
#define SVC_HINT4_A	"\0\4\0\4\300\0\2\1"

static void what_is_well_formed_goes_on_without_pointers(void **state)
{
	static const struct way ways[] = {
		WAY(DNS_TYPE_NS, "\3Ns1" POINTER, "\3ns1" LOW "\0"),
		WAY(DNS_TYPE_PTR, POINTER, LOW "\0"),
		WAY(DNS_TYPE_MX, "\0\12" POINTER, "\0\12" LOW "\0"),
		WAY(DNS_TYPE_SRV, "\0\1\0\2\x13\xc4" POINTER,
		    "\0\1\0\2\x13\xc4" LOW "\0"),
		WAY(DNS_TYPE_TXT, "\3a\0b\0\2cd", "\3a\0b\0\2cd"),
		WAY(DNS_TYPE_CAA, "\0\5issueca.example", "\0\5issueca.example"),
		WAY(DNS_TYPE_CAA, "\200\5issue", "\200\5issue"),
		WAY(DNS_TYPE_HTTPS, "\0\1\0", "\0\1\0"),
		WAY(DNS_TYPE_SVCB, "\0\1" POINTER SVC_PORT,
		    "\0\1" LOW "\0" SVC_PORT),
		WAY(DNS_TYPE_HTTPS, "\0\1\0" SVC_PORT SVC_HINT4 SVC_ECH,
		    "\0\1\0" SVC_PORT SVC_HINT4),
		/* Nobody knows what the future keys carry. */
		WAY(DNS_TYPE_HTTPS, "\0\1\0" SVC_PORT "\0\7\0\1x\xff\0\0\1y",
		    "\0\1\0" SVC_PORT),
		WAY(DNS_TYPE_HTTPS, "\0\0" POINTER SVC_PORT, "\0\0" LOW "\0"),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\0\0\2\0\3" SVC_PORT SVC_ECH,
		    "\0\1\0\0\0\0\2\0\3" SVC_PORT),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct buf out = BUF_INIT(DNS_RDATA_MAX);
		struct str rest, one;
		struct msg m;

		make(&m, ways[i].type, ways[i].in, ways[i].in_n);
		assert_int_equal(dns_rdata_add(&out, m.p, m.n, &m.rr), 0);
		rest = buf_str(&out);
		assert_true(dns_rdata_next(&rest, &one));
		if (one.n != ways[i].out_n ||
		    memcmp(one.p, ways[i].out, one.n) != 0)
			fail_msg("way %zu: %zu bytes, not %zu", i, one.n,
				 ways[i].out_n);
		assert_false(dns_rdata_next(&rest, &one));
		buf_done(&out);
	}
}

static void what_is_not_is_refused_and_leaves_nothing(void **state)
{
	static const struct way ways[] = {
		WAY(DNS_TYPE_NS, "", ""),
		WAY(DNS_TYPE_NS, POINTER "x", ""),
		WAY(DNS_TYPE_NS, "\3ab", ""),
		WAY(DNS_TYPE_NS, "\xc0\xff", ""),
		WAY(DNS_TYPE_MX, "\0", ""),
		WAY(DNS_TYPE_MX, "\0\1", ""),
		WAY(DNS_TYPE_SRV, "\0\1\0\2\0" POINTER, ""),
		WAY(DNS_TYPE_TXT, "", ""),
		WAY(DNS_TYPE_TXT, "\3ab", ""),
		WAY(DNS_TYPE_CAA, "\0", ""),
		WAY(DNS_TYPE_CAA, "\0\0x", ""),
		WAY(DNS_TYPE_CAA, "\0\5issu", ""),
		WAY(DNS_TYPE_CAA, "\0\2a-x", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\3\0", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\3\0\3\x1f\x90", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\3\0\1\x1f", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0" SVC_PORT SVC_PORT, ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0" SVC_HINT4 SVC_PORT, ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\4\0\3\300\0\2", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\6\0\4\300\0\2\1", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\2\0\1x", ""),
		WAY(DNS_TYPE_HTTPS, "\0\1\0\0\0\0\1\0", ""),
		/* Not ours to hand on. */
		WAY(DNS_TYPE_A, "\300\0\2\1", ""),
		WAY(DNS_TYPE_SOA, "\0", ""),
		WAY(DNS_TYPE_NULL, "x", ""),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct buf out = BUF_INIT(DNS_RDATA_MAX);
		struct msg m;

		make(&m, ways[i].type, ways[i].in, ways[i].in_n);
		if (dns_rdata_add(&out, m.p, m.n, &m.rr) != -EBADMSG)
			fail_msg("way %zu was taken", i);
		assert_int_equal(out.n, 0);
		buf_done(&out);
	}
}

/* A client that must know ech must not be told half. */
static void a_record_goes_when_what_it_demands_does(void **state)
{
	static const char *const demanded[] = { "\0\5", "\0\7", "\0\4", "\0\0" };
	struct buf out = BUF_INIT(DNS_RDATA_MAX);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(demanded); i++) {
		char rdata[] = "\0\1\0\0\0\0\2??" SVC_PORT SVC_ECH
			       "\0\7\0\1x";
		struct msg m;

		memcpy(rdata + 7, demanded[i], 2);
		make(&m, DNS_TYPE_HTTPS, rdata, sizeof(rdata) - 1);
		assert_int_equal(dns_rdata_add(&out, m.p, m.n, &m.rr),
				 -ENOENT);
		assert_int_equal(out.n, 0);
	}
	buf_done(&out);
}

static void records_are_bounded_and_the_last_one_is_whole(void **state)
{
	struct buf out = BUF_INIT(600);
	struct str rest, one;
	char text[256];
	struct msg m;
	unsigned n = 0;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '\xff';
	make(&m, DNS_TYPE_TXT, text, sizeof(text));
	assert_int_equal(dns_rdata_add(&out, m.p, m.n, &m.rr), 0);
	assert_int_equal(dns_rdata_add(&out, m.p, m.n, &m.rr), 0);
	assert_int_equal(dns_rdata_add(&out, m.p, m.n, &m.rr), -ENOSPC);
	for (rest = buf_str(&out); dns_rdata_next(&rest, &one); n++)
		assert_int_equal(one.n, sizeof(text));
	assert_int_equal(n, 2);
	buf_done(&out);
}

/* DNS-21: what a name may not resolve to comes in no hint either. */
static bool is_ours(void *arg, const struct ip_addr *hint)
{
	unsigned *asked = arg;

	++*asked;
	return hint->family == IP_V4 && hint->b[0] == 192;
}

static void check_sifted(const char *in, size_t in_n, int err, const char *out,
			 size_t out_n)
{
	struct buf sifted = BUF_INIT(DNS_RDATA_MAX);
	unsigned asked = 0;
	struct str rest, one;

	assert_int_equal(dns_svcb_filter(str_make(in, in_n), is_ours, &asked,
					 &sifted), err);
	if (err) {
		assert_int_equal(sifted.n, 0);
		buf_done(&sifted);
		return;
	}
	rest = buf_str(&sifted);
	assert_true(dns_rdata_next(&rest, &one));
	assert_int_equal(one.n, out_n);
	assert_memory_equal(one.p, out, out_n);
	buf_done(&sifted);
}
#define SIFT(in, err, out) \
	check_sifted(in, sizeof(in) - 1, err, out, sizeof(out) - 1)

static void hints_pass_one_by_one(void **state)
{
	(void)state;
	SIFT("\0\1\0" SVC_PORT SVC_HINT4, 0, "\0\1\0" SVC_PORT SVC_HINT4_A);
	SIFT("\0\1\0" SVC_PORT "\0\4\0\4\177\0\0\1", 0, "\0\1\0" SVC_PORT);
	SIFT("\0\1" LOW "\0" SVC_HINT4, 0, "\0\1" LOW "\0" SVC_HINT4_A);
	SIFT("\0\1\0\0\6\0\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 0, "\0\1\0");
	SIFT("\0\0" LOW "\0", 0, "\0\0" LOW "\0");
	SIFT("\0\1\0\0\0\0\2\0\4" SVC_HINT4, 0,
	     "\0\1\0\0\0\0\2\0\4" SVC_HINT4_A);
	SIFT("\0\1\0\0\0\0\2\0\4\0\4\0\4\177\0\0\1", -ENOENT, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_well_formed_goes_on_without_pointers),
		cmocka_unit_test(what_is_not_is_refused_and_leaves_nothing),
		cmocka_unit_test(a_record_goes_when_what_it_demands_does),
		cmocka_unit_test(records_are_bounded_and_the_last_one_is_whole),
		cmocka_unit_test(hints_pass_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
