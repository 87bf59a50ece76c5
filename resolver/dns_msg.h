/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_msg.h - DNS messages as the sandbox sends and gets them: a pure codec
 *
 * Questions are decoded strictly (one question, no records but an additional
 * section and IXFR's SOA, at most one OPT, nothing behind the end); what is not
 * right gets the verdict that says how to answer it.  Replies are written within a limit
 * of bytes and say TC when they do not fit.  Names are read with compression
 * pointers that must point backwards, at most DNS_JUMPS_MAX of them.
 */
#ifndef RESOLVER_DNS_MSG_H
#define RESOLVER_DNS_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"

#define DNS_HEADER_SIZE		12
#define DNS_NAME_MAX		255	/* bytes on the wire, root included */
#define DNS_TEXT_MAX		253	/* dotted, without the last dot */
#define DNS_SHOWN_MAX		(2 * DNS_TEXT_MAX)
#define DNS_JUMPS_MAX		128	/* compression pointers of one name */
#define DNS_EXTRA_MAX		64	/* additional records of one question */
#define DNS_EDNS_SIZE		1232	/* the most we send by UDP */
#define DNS_PLAIN_SIZE		512	/* the same to those without EDNS */
#define DNS_MSG_MAX		65535
#define DNS_EDE_TEXT_MAX	64

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_NS = 2,
	DNS_TYPE_CNAME = 5,
	DNS_TYPE_SOA = 6,
	DNS_TYPE_NULL = 10,
	DNS_TYPE_PTR = 12,
	DNS_TYPE_MX = 15,
	DNS_TYPE_TXT = 16,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_SRV = 33,
	DNS_TYPE_OPT = 41,
	DNS_TYPE_SVCB = 64,
	DNS_TYPE_HTTPS = 65,
	DNS_TYPE_META_FIRST = 128,	/* RFC 6895 3.1: meta and question types */
	DNS_TYPE_META_LAST = 255,
	DNS_TYPE_IXFR = 251,
	DNS_TYPE_ANY = 255,
	DNS_TYPE_CAA = 257,
};

#define DNS_CLASS_IN	1

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,	/* RFC 6891 9: only with an OPT */
};

/* A name as on the wire: labels with lengths, root at the end, lower case. */
struct dns_name {
	uint8_t n;
	uint8_t b[DNS_NAME_MAX];
};

/**
 * dns_name_read() - Read the name at @off of a message
 * @ret_next:	offset behind it
 * Return: 0 or -EBADMSG
 */
NODISCARD int dns_name_read(const uint8_t *msg, size_t n, size_t off,
			    struct dns_name *ret, size_t *ret_next);

/**
 * dns_name_from_text() - Canonical dotted text to wire form; "" is the root
 * Return: 0 or -EINVAL (an empty or long label, or too long in all)
 */
NODISCARD int dns_name_from_text(struct str text, struct dns_name *ret);

/**
 * dns_name_text() - Dotted text without the last dot; the root is ""
 * @out:	NUL-terminated; the bytes of the labels as they are
 * @ret_n:	length
 * Return: true when every byte is one of [a-z0-9_-], so that the text says
 * exactly what the name is; a dot or NUL inside a label makes it false
 */
bool dns_name_text(const struct dns_name *name, char out[DNS_TEXT_MAX + 1],
		   size_t *ret_n);

/**
 * dns_name_shown() - The same for people: no two names have the same text
 * @out:	a dot or a backslash in a label stands behind a backslash (RFC
 *		1035 5.1); other bytes as they are
 * Return: its length
 */
size_t dns_name_shown(const struct dns_name *name,
		      char out[DNS_SHOWN_MAX + 1]);

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);

/* "A", "AAAA", "TYPE64" ... in any case.  Return: 0 or -EINVAL */
NODISCARD int dns_type_from_text(struct str text, uint16_t *ret);

/* The same back; @out is for the numbered ones. */
#define DNS_TYPE_TEXT_SIZE	10
const char *dns_type_text(uint16_t type, char out[DNS_TYPE_TEXT_SIZE]);

/* --- questions ----------------------------------------------------------- */

enum dns_parse {
	DNS_PARSE_OK,
	DNS_PARSE_DROP,		/* no header, or a response: no answer at all */
	DNS_PARSE_FORMERR,
	DNS_PARSE_NOTIMP,	/* another opcode than QUERY */
	DNS_PARSE_BADVERS,	/* EDNS of a version that we do not speak */
};

struct dns_question {
	uint16_t id;
	uint8_t opcode;
	bool rd, cd;		/* echoed */
	bool has_question;	/* the fields below, up to @text, are set */
	uint16_t type;
	uint16_t klass;
	struct dns_name name;	/* lower case */
	uint8_t raw[DNS_NAME_MAX + 4];	/* the question section as asked */
	uint16_t raw_n;
	char text[DNS_SHOWN_MAX + 1];	/* dns_name_shown() */
	uint16_t text_n;
	bool plain;		/* @text is exact (see dns_name_text()) */
	bool edns;		/* an OPT was there: answer with one */
	bool dnssec_ok;
	uint16_t udp_size;	/* what the client takes; 512 without EDNS */
};

static inline struct str dns_question_text(const struct dns_question *q)
{
	return (struct str){ q->text, q->text_n };
}

/**
 * dns_question_parse() - Decode what a client sent
 * @ret:	for all but DNS_PARSE_DROP good enough to encode a reply with
 */
enum dns_parse dns_question_parse(const uint8_t *msg, size_t n,
				  struct dns_question *ret);

/* The question that a stub would send for @name in class IN. */
void dns_question_about(const struct dns_name *name, uint16_t type,
			struct dns_question *ret);

/* --- replies ------------------------------------------------------------- */

struct dns_reply {
	enum dns_rcode rcode;
	const struct ip_addr *addr;	/* A or AAAA records, as they are */
	size_t naddr;
	const struct dns_name *ptr;	/* a PTR record; NULL: none */
	struct str records;		/* of the type asked: dns_rdata.h */
	uint32_t ttl_s;			/* of the answers */
	bool soa;			/* negative answer that may be kept */
	uint32_t soa_ttl_s;
	bool cut;			/* TC, and nothing else */
	int ede;			/* RFC 8914 info code; -1: none */
	struct str ede_text;		/* cut at DNS_EDE_TEXT_MAX */
};

/* Most bytes of a reply by UDP to this client. */
size_t dns_question_udp_limit(const struct dns_question *q);

/**
 * dns_reply_encode() - Write the reply to @q
 * @limit:	at least DNS_PLAIN_SIZE; of a reply that is longer, as many
 *		addresses are sent as fit, with TC set
 * @out:	room for @limit bytes
 * Return: bytes written
 */
size_t dns_reply_encode(const struct dns_question *q,
			const struct dns_reply *r, size_t limit, uint8_t *out);

/* --- bytes in network order ------------------------------------------------ */

static inline uint16_t dns_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t dns_get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static inline void dns_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void dns_put32(uint8_t *p, uint32_t v)
{
	dns_put16(p, (uint16_t)(v >> 16));
	dns_put16(p + 2, (uint16_t)v);
}

/* The fixed part of a record, behind its name (RFC 1035 4.1.3). */
struct dns_record {
	struct dns_name owner;
	uint16_t type, klass;
	uint32_t ttl;
	size_t data;		/* offset of RDATA in the message */
	uint16_t data_n;
};

/**
 * dns_record_read() - Read the record at *@off and step behind it
 * Return: 0 or -EBADMSG; @off is untouched then
 */
NODISCARD int dns_record_read(const uint8_t *msg, size_t n, size_t *off,
			      struct dns_record *ret);

#endif /* RESOLVER_DNS_MSG_H */
