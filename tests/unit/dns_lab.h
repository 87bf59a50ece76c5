/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_lab.h - a network of the test's own, and a server in it that obeys
 *
 * All runs in one thread on one event base: the code under test, the fake
 * servers and the test, which turns the loop until what it waits for is there.
 * An alarm ends a test that waits in vain.
 */
#ifndef TESTS_UNIT_DNS_LAB_H
#define TESTS_UNIT_DNS_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/ip_addr.h"
#include "resolver/dns_msg.h"

/* New user and network namespaces with lo up; false: not possible here. */
bool dns_lab_enter(void);

struct fake;
struct tls_fake;

/* One message that a fake server got. */
struct fake_ask {
	struct fake *fake;
	const uint8_t *p;
	size_t n;
	bool tcp;
	struct dns_question q;	/* decoded, name in lower case */
	struct event_base *base;
	/* how to answer: private */
	int fd;
	struct sockaddr_storage peer;
	unsigned peer_n;
	/* not by UDP or TCP: see tls_lab.h */
	void (*send)(const struct fake_ask *ask, const void *p, size_t n);
	struct tls_fake *tls_fake;
};

typedef void fake_fn(void *arg, const struct fake_ask *ask);

/* UDP and TCP on @addr:@port; @fn is called for each message. */
struct fake *fake_new(struct event_base *base, const char *addr, uint16_t port,
		      fake_fn *fn, void *arg);
void fake_free(struct fake *f);
/* Answer otherwise from now on. */
void fake_set(struct fake *f, fake_fn *fn, void *arg);
/* Refuse connections from now on. */
void fake_close_tcp(struct fake *f);
unsigned fake_count(const struct fake *f);	/* messages so far */
unsigned fake_questions(const struct fake *f);	/* those that were questions */
uint16_t fake_last_port(const struct fake *f);	/* source of the last one */

/* A socket that listens on @addr:@port for connections. */
int fake_listen(const char *addr, uint16_t port);

/* Send any bytes as the answer. */
void fake_send(const struct fake_ask *ask, const void *p, size_t n);
/* An answer that repeats the question and has these records behind it. */
struct fake_records {
	uint8_t p[60000];
	size_t n;
	unsigned answers, authority, additional;
};
void fake_add(struct fake_records *r, const char *owner, unsigned type,
	      uint32_t ttl, const void *data, size_t n);
void fake_add_a(struct fake_records *r, const char *owner, const char *addr,
		uint32_t ttl);		/* A or AAAA */
void fake_add_cname(struct fake_records *r, const char *owner,
		    const char *target, uint32_t ttl);
void fake_add_authority(struct fake_records *r, const char *owner,
			unsigned type, uint32_t ttl, const void *data,
			size_t n);
/* Negative TTL in an SOA of @owner, in the authority section: add it last. */
void fake_add_soa(struct fake_records *r, const char *owner, uint32_t ttl);
/* @flags are ORed into the header's second 16 bits (rcode, TC). */
size_t fake_build(const struct fake_ask *ask, const struct fake_records *r,
		  unsigned flags, uint8_t *out, size_t cap);
void fake_answer(const struct fake_ask *ask, const struct fake_records *r,
		 unsigned flags);

#endif /* TESTS_UNIT_DNS_LAB_H */
