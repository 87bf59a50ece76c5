/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h - what the first bytes of a connection are; pure
 */
#ifndef PROXY_SNIFF_H
#define PROXY_SNIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "rules/host_name.h"

#define SNIFF_HELLO_MAX	32768	/* bytes of a ClientHello with its head */
#define SNIFF_RECORDS_MAX	256	/* records it may be cut into */
/* What all this may take on the wire. */
#define SNIFF_INPUT_MAX	(SNIFF_HELLO_MAX + SNIFF_RECORDS_MAX * 5)

enum sniff_result {
	SNIFF_MORE,	/* nothing decided yet */
	SNIFF_DONE,
	SNIFF_BAD,
};

struct sniff_hello {
	bool has_sni;
	struct str sni_raw;	/* points into @scratch; as sent */
	struct host_name sni;	/* canonical */
	bool has_ech;		/* encrypted_client_hello, GREASE or not */
};

/**
 * sniff_hello() - A TLS ClientHello split over any records (RFC 8446 4.1.2)
 * @in:		all bytes from the connection's first; the most that is ever
 *		needed is SNIFF_INPUT_MAX
 * @scratch:	room for SNIFF_HELLO_MAX bytes: the reassembled handshake
 * @ret_why:	on SNIFF_BAD: PROTOCOL_MISMATCH (not TLS), SNI_INVALID,
 *		HELLO_INCOMPLETE (over SNIFF_HELLO_MAX)
 *
 * An SNI that is an address, holds NUL, has two names or a bad grammar is
 * SNI_INVALID.  Bytes behind the ClientHello are not looked at.
 */
enum sniff_result sniff_hello(struct str in, char *scratch,
			      struct sniff_hello *ret, enum reason *ret_why);

/* Could these be the first bytes of an HTTP/1 request? SNIFF_BAD: no.
 * An HTTP/2 preface ("PRI * HTTP/2.0") is SNIFF_BAD too. */
enum sniff_result sniff_http(struct str in);

/* Do the bytes begin like a TLS record with a handshake (0x16 0x03)? */
bool sniff_looks_tls(struct str in);

#endif /* PROXY_SNIFF_H */
