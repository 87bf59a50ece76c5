/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_proto.h - the plug: how a launcher hands a sandbox to penstockd
 *
 * One SOCK_SEQPACKET connection carries one run.  Same machine, same build
 * family: fields are in host order, and @version must be equal.
 *
 *	launcher			penstockd
 *	PLUG_OPEN + descriptors	 ->
 *				 <-	PLUG_READY, or PLUG_REFUSED with words
 *	... the command runs; the end of this connection is the end of the run:
 *	the daemon then closes every socket of the sandbox within a second ...
 *	PLUG_SWAP + policy	 ->	another policy for this run, any time after
 *				 <-	PLUG_SWAPPED: judged again is all that lives,
 *					or why the old one stays
 *				 <-	PLUG_SWAPPED with serial 0: the service's own
 *					policy changed, and the run follows it
 *	PLUG_CLOSE		 ->
 *				 <-	PLUG_CLOSED, after the last record is written
 *
 * A connection that carries no run may ask a service to read its policies anew:
 *
 *	PLUG_RELOAD		 ->
 *				 <-	PLUG_RELOADED when every worker has them
 *
 * The launcher of a run answers PLUG_SWAP with PLUG_SWAPPED on a socket of its
 * own (CONTROL_NAME in the run's directory); without a descriptor it means the
 * files that the run was started with, read anew.
 *
 * The daemon checks every descriptor (family, type, listening, bound address,
 * one SO_NETNS_COOKIE for all, which is not its own) before it trusts one.
 */
#ifndef PROXY_CTL_PROTO_H
#define PROXY_CTL_PROTO_H

#include <stdint.h>

#define PLUG_MAGIC	0x4b4c5350u	/* "PSLK" */
#define PLUG_VERSION	3

#define PLUG_RUN_MAX		40	/* bytes with NUL */
#define PLUG_LABEL_MAX		64
#define PLUG_NONCE_MAX		40
#define PLUG_NAME_MAX		64
#define PLUG_TEXT_MAX		512
#define PLUG_POLICY_MAX		(64u << 20)	/* bytes of policy text */

/* Beside the records in a run's own directory, for its owner and root. */
#define CONTROL_NAME		"control.sock"

/* Ports and addresses that the sandbox side of the contract fixes. */
#define PLUG_HTTP_ADDR		"127.0.0.1"
#define PLUG_HTTP_PORT		3128
#define PLUG_SOCKS_ADDR		"127.0.0.1"
#define PLUG_SOCKS_PORT		1080
#define PLUG_TPROXY_ADDR4	"127.0.0.2"
#define PLUG_TPROXY_ADDR6	"::1"
#define PLUG_DNS_PORT		53
/*
 * What the launcher's self-test sends goes to these and nowhere else; the
 * refusals of it are marked internal.  Documentation addresses: nobody's.
 */
#define PLUG_TEST_ADDR4		"192.0.2.2"
#define PLUG_TEST_ADDR6		"2001:db8:0:ffff::2"
/* The name it asks is NONCE with this behind it; the answer (an A record) is
 * the sandbox's own address.  The same as DNS_SELF_TEST_* of resolver.h. */
#define PLUG_TEST_SUFFIX	".penstock.invalid"
#define PLUG_TEST_ANSWER	"192.0.2.1"
/* nflog: the prefix says which rule refused; group of the socket. */
#define PLUG_NFLOG_GROUP	3128

enum plug_type {
	PLUG_OPEN = 1,
	PLUG_READY,
	PLUG_REFUSED,
	PLUG_CLOSE,
	PLUG_CLOSED,
	PLUG_SWAP,
	PLUG_SWAPPED,
	PLUG_RELOAD,
	PLUG_RELOADED,
};

/*
 * Descriptors stand in the message in the order of these numbers; the bit of
 * each one present is set in plug_open.fds.
 */
enum plug_fd {
	PLUG_FD_POLICY,		/* sealed memfd with the flattened policy text */
	PLUG_FD_RECORDS,	/* where this run's audit lines go, O_APPEND */
	PLUG_FD_DNS_UDP4,	/* wildcard:53, IP_PKTINFO set */
	PLUG_FD_DNS_UDP6,	/* wildcard:53, V6ONLY, RECVPKTINFO, FREEBIND */
	PLUG_FD_DNS_TCP4,
	PLUG_FD_DNS_TCP6,
	PLUG_FD_TPROXY4,	/* IP_TRANSPARENT listener on PLUG_TPROXY_ADDR4 */
	PLUG_FD_TPROXY6,
	PLUG_FD_HTTP,		/* PLUG_HTTP_ADDR:PLUG_HTTP_PORT */
	PLUG_FD_SOCKS,		/* PLUG_SOCKS_ADDR:PLUG_SOCKS_PORT */
	PLUG_FD_NFLOG,		/* NETLINK_NETFILTER bound to PLUG_NFLOG_GROUP */
	PLUG_FD_DIAG,		/* NETLINK_SOCK_DIAG, kept for process names */

	PLUG_FDS
};

enum plug_flag {
	PLUG_FLAG_OBSERVE = 1u << 0,	/* --observe, whatever the policy's mode */
	PLUG_FLAG_NO_TPROXY = 1u << 1,	/* kernel without tproxy: wildcard mode */
};

struct plug_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
};

struct plug_open {
	struct plug_head head;
	uint32_t fds;			/* BIT(enum plug_fd) */
	uint32_t flags;
	char run[PLUG_RUN_MAX];
	char sandbox[PLUG_LABEL_MAX];	/* host name inside; label in records */
	char nonce[PLUG_NONCE_MAX];
	char policy[PLUG_NAME_MAX];	/* name a service's own policy; "": by fd */
};

struct plug_ready {
	struct plug_head head;
	uint32_t rules;			/* how many rules are in force */
	uint32_t observe;
	char digest[20];
	char name[PLUG_NAME_MAX];	/* of the policy */
};

struct plug_refused {
	struct plug_head head;
	char text[PLUG_TEXT_MAX];	/* what is wrong and the mend */
};

struct plug_swap {
	struct plug_head head;
	uint32_t serial;		/* the sender's, told back; not 0 */
	uint32_t reserved;		/* 0 */
};

struct plug_swapped {
	struct plug_head head;
	uint32_t serial;		/* 0: nobody asked on this connection */
	uint32_t ok;			/* 0: @text says why the old one stays */
	uint32_t generation;		/* of the policy in force, in this run */
	uint32_t rules;
	uint32_t kept, ended;		/* flows that were open */
	char digest[20];
	char name[PLUG_NAME_MAX];
	char text[PLUG_TEXT_MAX];
};

struct plug_reloaded {
	struct plug_head head;
	uint32_t ok;			/* 0: @text has the faults, by lines */
	uint32_t policies;		/* that can be named now */
	uint32_t changed, failed;	/* policies */
	uint32_t runs;			/* that have another one by now */
	uint32_t kept, ended;		/* flows of theirs that were open */
	char text[PLUG_TEXT_MAX];
};

struct plug_closed {
	struct plug_head head;
	uint32_t audit_ok;		/* 1: every record is written */
	uint64_t records;
};

#endif /* PROXY_CTL_PROTO_H */
