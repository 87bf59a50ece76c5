/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_nft.c - loading the firewall and reading it back, libnftnl's only home
 *
 * The rules are data (ns_nft_rules.c).  Each row becomes a libnftnl rule; all
 * of them go to the kernel in one transaction.  The namespace is ours and new,
 * so a table of that name that is already there is an error (NLM_F_EXCL).  The
 * customary add, delete, add would replace it, but leaves a deletion behind
 * that close(2) of the socket then waits for: 3 ms of RCU at each start.  The
 * "owner" flag is not used: such a table dies with the socket that made it,
 * which would open the sandbox's firewall when the launcher ends.
 *
 * libnftnl cannot compare rules.  So a canonical text is made, by the same code
 * for both sides, of what was sent and of what the kernel gives back: one line
 * for each chain and rule with the attributes that matter as hex.  Any
 * difference is a refusal to start.
 */
#include "netns-setup/ns_nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "netns-setup/fault.h"
#include "netns-setup/nl.h"
#include "netns-setup/ns_nft_rules.h"
#include "proxy/ctl_proto.h"

#define TEXT_MAX	65536	/* bytes of canonical text */
#define LOG_RATE	100	/* refusals a second that are told */
#define LOG_BURST	200
#define LOG_SNAPLEN	128	/* bytes: the headers */
#define IP4_DADDR	16	/* offsets in the headers */
#define IP4_SADDR	12
#define IP6_DADDR	24
#define IP6_SADDR	8
#define TH_DPORT	2
#define TH_FLAGS	13

static void rule_freep(struct nftnl_rule **r)
{
	if (*r)
		nftnl_rule_free(*r);
}

static void chain_freep(struct nftnl_chain **c)
{
	if (*c)
		nftnl_chain_free(*c);
}

/* --- rows to rules ---------------------------------------------------------- */

/* A rule under construction; the first failure sticks. */
struct making {
	struct nftnl_rule *rule;
	const struct ns_nft_config *config;
	int err;
};

static struct nftnl_expr *put(struct making *m, const char *name)
{
	struct nftnl_expr *e = m->err ? NULL : nftnl_expr_alloc(name);

	if (!e) {
		m->err = -ENOMEM;
		return NULL;
	}
	nftnl_rule_add_expr(m->rule, e);
	return e;
}

static void put_data(struct making *m, struct nftnl_expr *e, uint16_t attr,
		     const void *data, size_t n)
{
	if (e && nftnl_expr_set(e, attr, data, (uint32_t)n) < 0)
		m->err = -ENOMEM;
}

static void put_meta(struct making *m, uint32_t key)
{
	struct nftnl_expr *e = put(m, "meta");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void put_cmp(struct making *m, uint32_t op, const void *data, size_t n)
{
	struct nftnl_expr *e = put(m, "cmp");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	put_data(m, e, NFTNL_EXPR_CMP_DATA, data, n);
}

static void put_payload(struct making *m, uint32_t base, uint32_t off,
			uint32_t len)
{
	struct nftnl_expr *e = put(m, "payload");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, off);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
}

static void put_immediate(struct making *m, uint32_t reg, const void *data,
			  size_t n)
{
	struct nftnl_expr *e = put(m, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg);
	put_data(m, e, NFTNL_EXPR_IMM_DATA, data, n);
}

static bool net_bytes(const char *addr, uint8_t ret[16])
{
	if (strchr(addr, ':'))
		return inet_pton(AF_INET6, addr, ret) == 1;
	REQUIRE(inet_pton(AF_INET, addr, ret) == 1);
	return false;
}

static void put_addr(struct making *m, const struct nft_term *t)
{
	uint8_t addr[16];
	bool v6 = net_bytes(t->net->addr, addr);
	bool source = t->kind == TERM_SADDR_NOT;
	uint32_t off = v6 ? (source ? IP6_SADDR : IP6_DADDR) :
			    (source ? IP4_SADDR : IP4_DADDR);

	put_payload(m, NFT_PAYLOAD_NETWORK_HEADER, off, t->net->bytes);
	put_cmp(m, t->kind == TERM_DADDR ? NFT_CMP_EQ : NFT_CMP_NEQ, addr,
		t->net->bytes);
}

static void put_dport(struct making *m, uint16_t port)
{
	uint16_t wire = htons(port);

	put_payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DPORT, sizeof(wire));
	put_cmp(m, NFT_CMP_EQ, &wire, sizeof(wire));
}

static void put_flags(struct making *m, uint8_t flags)
{
	put_payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, TH_FLAGS, sizeof(flags));
	put_cmp(m, NFT_CMP_EQ, &flags, sizeof(flags));
}

static void put_meta_is(struct making *m, uint32_t key, uint32_t number)
{
	uint8_t byte = (uint8_t)number;

	put_meta(m, key);
	put_cmp(m, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void put_log(struct making *m, const char *prefix)
{
	struct nftnl_expr *e = put(m, "limit");

	if (!e)
		return;
	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_RATE, LOG_RATE);
	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_UNIT, 1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_BURST, LOG_BURST);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
	e = put(m, "log");
	if (!e)
		return;
	if (nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, prefix) < 0)
		m->err = -ENOMEM;
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, PLUG_NFLOG_GROUP);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, LOG_SNAPLEN);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);
}

static void put_accept(struct making *m)
{
	struct nftnl_expr *e = put(m, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
}

static void put_reject(struct making *m, bool reset)
{
	struct nftnl_expr *e = put(m, "reject");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE,
			   reset ? NFT_REJECT_TCP_RST : NFT_REJECT_ICMPX_UNREACH);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE,
			  reset ? 0 : NFT_REJECT_ICMPX_PORT_UNREACH);
}

static void put_tproxy(struct making *m, bool v6)
{
	uint8_t addr[16];
	uint16_t port = htons(v6 ? m->config->tproxy6 : m->config->tproxy4);
	struct nftnl_expr *e;

	(void)net_bytes(v6 ? PLUG_TPROXY_ADDR6 : PLUG_TPROXY_ADDR4, addr);
	put_immediate(m, NFT_REG_1, addr, v6 ? 16 : 4);
	put_immediate(m, NFT_REG_2, &port, sizeof(port));
	e = put(m, "tproxy");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY,
			   v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_ADDR, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_2);
}

static void put_term(struct making *m, const struct nft_term *t)
{
	switch (t->kind) {
	case TERM_FAMILY:
		put_meta_is(m, NFT_META_NFPROTO, t->number);
		break;
	case TERM_L4:
		put_meta_is(m, NFT_META_L4PROTO, t->number);
		break;
	case TERM_DPORT:
		put_dport(m, (uint16_t)t->number);
		break;
	case TERM_FLAGS:
		put_flags(m, (uint8_t)t->number);
		break;
	case TERM_OUR_PORT4:
		put_dport(m, m->config->tproxy4);
		break;
	case TERM_OUR_PORT6:
		put_dport(m, m->config->tproxy6);
		break;
	case TERM_SADDR_NOT:
	case TERM_DADDR_NOT:
	case TERM_DADDR:
		put_addr(m, t);
		break;
	case TERM_LOG:
		put_log(m, t->text);
		break;
	case TERM_ACCEPT:
		put_accept(m);
		break;
	case TERM_RESET:
	case TERM_UNREACH:
		put_reject(m, t->kind == TERM_RESET);
		break;
	case TERM_TPROXY4:
	case TERM_TPROXY6:
		put_tproxy(m, t->kind == TERM_TPROXY6);
		break;
	case TERM_END:
		break;
	}
}

static int rule_make(const struct nft_rule *row,
		     const struct ns_nft_config *config,
		     struct nftnl_rule **ret)
{
	struct making m = { nftnl_rule_alloc(), config, 0 };

	if (!m.rule)
		return -ENOMEM;
	nftnl_rule_set_u32(m.rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(m.rule, NFTNL_RULE_TABLE, NS_NFT_TABLE) < 0 ||
	    nftnl_rule_set_str(m.rule, NFTNL_RULE_CHAIN, row->chain) < 0)
		m.err = -ENOMEM;
	for (const struct nft_term *t = row->term; t->kind; t++)
		put_term(&m, t);
	if (m.err) {
		nftnl_rule_free(m.rule);
		return m.err;
	}
	*ret = m.rule;
	return 0;
}

static int chain_make(const struct nft_chain *row, struct nftnl_chain **ret)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return -ENOMEM;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, row->hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, row->priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_DROP);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, NS_NFT_TABLE) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, row->name) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter") < 0) {
		nftnl_chain_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

/* --- one transaction -------------------------------------------------------- */

struct batch {
	struct mnl_nlmsg_batch *b;
	uint32_t seq;
};

static struct nlmsghdr *batch_head(struct batch *b, uint16_t type,
				   uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(b->b), type,
				     NFPROTO_INET, flags, b->seq++);
}

static int batch_next(struct batch *b)
{
	return mnl_nlmsg_batch_next(b->b) ? 0 : -EMSGSIZE;
}

static int batch_table(struct batch *b)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *h;
	int err = 0;

	if (!t)
		return -ENOMEM;
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	if (nftnl_table_set_str(t, NFTNL_TABLE_NAME, NS_NFT_TABLE) < 0)
		err = -ENOMEM;
	if (!err) {
		h = batch_head(b, NFT_MSG_NEWTABLE,
			       NLM_F_CREATE | NLM_F_EXCL);
		nftnl_table_nlmsg_build_payload(h, t);
		err = batch_next(b);
	}
	nftnl_table_free(t);
	return err;
}

static int batch_chain(struct batch *b, const struct nft_chain *row)
{
	CLEANUP(chain_freep) struct nftnl_chain *c = NULL;
	int err = chain_make(row, &c);

	if (err)
		return err;
	nftnl_chain_nlmsg_build_payload(
		batch_head(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE), c);
	return batch_next(b);
}

/* The kernel speaks of failures anyway; the last one says that all is done. */
static int batch_rule(struct batch *b, const struct nft_rule *row,
		      const struct ns_nft_config *config, bool last)
{
	CLEANUP(rule_freep) struct nftnl_rule *r = NULL;
	int err = rule_make(row, config, &r);

	if (err)
		return err;
	nftnl_rule_nlmsg_build_payload(
		batch_head(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND |
			   (last ? NLM_F_ACK : 0)), r);
	return batch_next(b);
}

static int batch_fill(struct batch *b, const struct ns_nft_config *config)
{
	int err;

	nftnl_batch_begin(mnl_nlmsg_batch_current(b->b), b->seq++);
	err = batch_next(b);
	if (!err)
		err = batch_table(b);
	for (size_t i = 0; i < nft_nchains && !err; i++)
		err = batch_chain(b, &nft_chains[i]);
	for (size_t i = 0; i < nft_nrules && !err; i++) {
		if (nft_rule_wanted(&nft_rules[i], config))
			err = batch_rule(b, &nft_rules[i], config,
					 i == nft_nrules - 1);
	}
	if (err)
		return err;
	nftnl_batch_end(mnl_nlmsg_batch_current(b->b), b->seq);
	return batch_next(b);
}

static int load(int fd, const struct ns_nft_config *config)
{
	struct batch b = { NULL, 1 };
	void *space = mem_new(2 * NL_BUF);
	int err = -ENOMEM;

	if (space)
		b.b = mnl_nlmsg_batch_start(space, NL_BUF);
	if (b.b) {
		err = batch_fill(&b, config);
		if (!err)
			err = nl_commit(fd, mnl_nlmsg_batch_head(b.b),
					mnl_nlmsg_batch_size(b.b), 1,
					b.seq - 1, NULL);
		mnl_nlmsg_batch_stop(b.b);
	}
	mem_free(space);
	return err;
}

/* --- canonical text --------------------------------------------------------- */

#define ATTRS_MAX	5

/* Which attributes of an expression have a meaning for us; 0 ends. */
static const struct expr_form {
	const char *name;
	uint16_t attr[ATTRS_MAX];
} expr_forms[] = {
	{ "meta", { NFTNL_EXPR_META_KEY, NFTNL_EXPR_META_DREG } },
	{ "cmp", { NFTNL_EXPR_CMP_SREG, NFTNL_EXPR_CMP_OP,
		   NFTNL_EXPR_CMP_DATA } },
	{ "payload", { NFTNL_EXPR_PAYLOAD_DREG, NFTNL_EXPR_PAYLOAD_BASE,
		       NFTNL_EXPR_PAYLOAD_OFFSET, NFTNL_EXPR_PAYLOAD_LEN } },
	{ "immediate", { NFTNL_EXPR_IMM_DREG, NFTNL_EXPR_IMM_DATA,
			 NFTNL_EXPR_IMM_VERDICT, NFTNL_EXPR_IMM_CHAIN } },
	{ "limit", { NFTNL_EXPR_LIMIT_RATE, NFTNL_EXPR_LIMIT_UNIT,
		     NFTNL_EXPR_LIMIT_BURST, NFTNL_EXPR_LIMIT_TYPE } },
	{ "log", { NFTNL_EXPR_LOG_PREFIX, NFTNL_EXPR_LOG_GROUP,
		   NFTNL_EXPR_LOG_SNAPLEN, NFTNL_EXPR_LOG_QTHRESHOLD } },
	{ "reject", { NFTNL_EXPR_REJECT_TYPE, NFTNL_EXPR_REJECT_CODE } },
	{ "tproxy", { NFTNL_EXPR_TPROXY_FAMILY, NFTNL_EXPR_TPROXY_REG_ADDR,
		      NFTNL_EXPR_TPROXY_REG_PORT } },
};

static int text_attr(struct buf *out, const struct nftnl_expr *e,
		     uint16_t attr)
{
	static const char digit[] = "0123456789abcdef";
	uint32_t n = 0;
	const uint8_t *p;
	int err;

	if (!nftnl_expr_is_set(e, attr))
		return buf_add_str(out, STR(" -"));
	p = nftnl_expr_get(e, attr, &n);
	err = buf_add_char(out, ' ');
	for (uint32_t i = 0; p && i < n && !err; i++) {
		const char hex[2] = { digit[p[i] >> 4], digit[p[i] & 15] };

		err = buf_add(out, hex, sizeof(hex));
	}
	return err;
}

static bool is_reset(const struct nftnl_expr *e)
{
	return nftnl_expr_get_u32(e, NFTNL_EXPR_REJECT_TYPE) ==
	       NFT_REJECT_TCP_RST;
}

static int text_expr(struct nftnl_expr *e, void *arg)
{
	struct buf *out = arg;
	const char *name = nftnl_expr_get_str(e, NFTNL_EXPR_NAME);
	int err = buf_add_str(out, STR(" | "));

	if (!err)
		err = buf_add_str(out, str_from(name));
	for (size_t f = 0; f < ARRAY_SIZE(expr_forms); f++) {
		const uint16_t *attr = expr_forms[f].attr;

		if (strcmp(expr_forms[f].name, name) != 0)
			continue;
		for (size_t i = 0; i < ATTRS_MAX && attr[i] && !err; i++) {
			/* The kernel does not give a reset's code back. */
			if (attr[i] == NFTNL_EXPR_REJECT_CODE &&
			    strcmp(name, "reject") == 0 && is_reset(e))
				continue;
			err = text_attr(out, e, attr[i]);
		}
		return err;
	}
	return err ? err : buf_add_str(out, STR(" ?"));
}

static int text_rule(struct buf *out, struct nftnl_rule *r)
{
	int err = buf_printf(out, "rule %s %s",
			     nftnl_rule_get_str(r, NFTNL_RULE_TABLE),
			     nftnl_rule_get_str(r, NFTNL_RULE_CHAIN));

	if (!err)
		err = nftnl_expr_foreach(r, text_expr, out);
	return err ? err : buf_add_char(out, '\n');
}

static int text_chain(struct buf *out, const struct nftnl_chain *c)
{
	const char *type = nftnl_chain_get_str(c, NFTNL_CHAIN_TYPE);

	return buf_printf(out, "chain %s %s %s %" PRIu32 " %" PRId32
			  " %" PRIu32 "\n",
			  nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE),
			  nftnl_chain_get_str(c, NFTNL_CHAIN_NAME),
			  type ? type : "-",
			  nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM),
			  nftnl_chain_get_s32(c, NFTNL_CHAIN_PRIO),
			  nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY));
}

int ns_nft_text(const struct ns_nft_config *config, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; i < nft_nchains && !err; i++) {
		CLEANUP(chain_freep) struct nftnl_chain *c = NULL;

		err = chain_make(&nft_chains[i], &c);
		if (!err)
			err = text_chain(out, c);
	}
	for (size_t i = 0; i < nft_nrules && !err; i++) {
		CLEANUP(rule_freep) struct nftnl_rule *r = NULL;

		if (!nft_rule_wanted(&nft_rules[i], config))
			continue;
		err = rule_make(&nft_rules[i], config, &r);
		if (!err)
			err = text_rule(out, r);
	}
	return err;
}

static int on_chain(const struct nlmsghdr *h, void *arg)
{
	CLEANUP(chain_freep) struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return -ENOMEM;
	if (nftnl_chain_nlmsg_parse(h, c) < 0)
		return -EBADMSG;
	return text_chain(arg, c);
}

static int on_rule(const struct nlmsghdr *h, void *arg)
{
	CLEANUP(rule_freep) struct nftnl_rule *r = nftnl_rule_alloc();

	if (!r)
		return -ENOMEM;
	if (nftnl_rule_nlmsg_parse(h, r) < 0)
		return -EBADMSG;
	return text_rule(arg, r);
}

static int read_back(int fd, struct buf *out)
{
	char request[256];
	struct nlmsghdr *h;
	int err;

	/* Of every family: a table that is not ours is a difference, too. */
	h = nftnl_nlmsg_build_hdr(request, NFT_MSG_GETCHAIN, NFPROTO_UNSPEC,
				  NLM_F_DUMP, 1000);
	err = nl_dump(fd, h, on_chain, out);
	if (err)
		return err;
	h = nftnl_nlmsg_build_hdr(request, NFT_MSG_GETRULE, NFPROTO_UNSPEC,
				  NLM_F_DUMP, 1001);
	return nl_dump(fd, h, on_rule, out);
}

int ns_nft_read(struct buf *out)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = nl_open(NETLINK_NETFILTER, &fd);

	return err ? err : read_back(fd, out);
}

/* The first line in which the two texts differ, of the text @is. */
static struct str first_difference(struct str want, struct str is)
{
	struct str a, b;

	do {
		if (!str_cut(&is, '\n', &b))
			b = STR("(missing)");
		if (!str_cut(&want, '\n', &a))
			return b;
	} while (str_eq(a, b));
	return b;
}

static int verify(int fd, const struct ns_nft_config *config,
		  struct launch_error *err)
{
	CLEANUP(buf_done) struct buf want = BUF_INIT(TEXT_MAX);
	CLEANUP(buf_done) struct buf is = BUF_INIT(TEXT_MAX);
	int e = ns_nft_text(config, &want);
	struct str line;

	if (!e)
		e = read_back(fd, &is);
	if (e)
		return fault(err, -e, "cannot read the firewall back");
	if (str_eq(buf_str(&want), buf_str(&is)))
		return 0;
	line = first_difference(buf_str(&want), buf_str(&is));
	fault(err, 0, "the kernel's firewall is not what was loaded; "
		    "it says: %.*s", STR_ARG(line));
	return -EBADMSG;
}

int ns_nft_verify(const struct ns_nft_config *config, struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = -1;
	int e = nl_open(NETLINK_NETFILTER, &fd);

	if (e)
		return fault(err, -e, "cannot open a netfilter socket");
	return verify(fd, config, err);
}

int ns_nft_load(const struct ns_nft_config *config, struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = -1;
	int e = nl_open(NETLINK_NETFILTER, &fd);

	if (!e)
		e = load(fd, config);
	if (nl_means_absent(e))
		return -EOPNOTSUPP;
	if (e)
		return fault(err, -e, "cannot load the sandbox's firewall");
	return verify(fd, config, err);
}
