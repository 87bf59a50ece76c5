/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_lab.h - a name server of the lab that speaks DNS over TLS
 *
 * With a certificate authority of its own.  It runs on the test's event base,
 * as the fakes of dns_lab.h do, and hands out the same asks.
 */
#ifndef TESTS_UNIT_TLS_LAB_H
#define TESTS_UNIT_TLS_LAB_H

#include "tests/unit/dns_lab.h"

struct tls_fake;

enum tls_lab_cert {
	TLS_LAB_GOOD,		/* dns.example.net, 127.0.0.1 and ::1 */
	TLS_LAB_OTHER_NAME,	/* dns.example.org */
	TLS_LAB_COMMON_NAME,	/* dns.example.net, but as the subject only */
	TLS_LAB_EXPIRED,
	TLS_LAB_STRANGER,	/* nobody whom we trust vouches for it */
};

/* Make the authority; its certificate is in the file that is returned. */
const char *tls_lab_start(void);
void tls_lab_stop(void);

struct tls_fake *tls_fake_new(struct event_base *base, const char *addr,
			      uint16_t port, enum tls_lab_cert cert,
			      fake_fn *fn, void *arg);
void tls_fake_free(struct tls_fake *f);		/* NULL is fine */
void tls_fake_set(struct tls_fake *f, fake_fn *fn, void *arg);
/* TLS 1.1 and older only, from now on. */
void tls_fake_age(struct tls_fake *f);
/* End every connection, as a server does that has been idle. */
void tls_fake_hang_up(struct tls_fake *f);

unsigned tls_fake_conns(const struct tls_fake *f);	/* taken so far */
unsigned tls_fake_open(const struct tls_fake *f);	/* open ones */
unsigned tls_fake_count(const struct tls_fake *f);	/* messages so far */
const char *tls_fake_sni(const struct tls_fake *f);	/* the last; or "" */

#endif /* TESTS_UNIT_TLS_LAB_H */
