/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_proto.c - is what another penstockd sent what the protocol says?
 *
 * The other one has our user id, or is root's.  It is believed who runs what,
 * and nothing that could make this process do what it never does: sizes, counts,
 * indices and texts are held to their bounds here, and descriptors to what they
 * should be where they are taken (plug_check.c, host_sock.c).
 */
#include "proxy/handover_proto.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "proxy/plug_check.h"
#include "proxy/sandbox.h"

#define RUN_FDS_MAX	FD_PASS_MAX

static const struct {
	const char *name;
	uint32_t size;
	uint8_t fds, fds_max;
} kinds[HANDOVER_TYPES] = {
#define KIND(t, s, fds, max)	[HANDOVER_##t] = { #t, sizeof(s), fds, max }
	KIND(HELLO, struct handover_hello, 0, 0),
	KIND(OFFER, struct handover_offer, HANDOVER_FD_STDERR + 1,
	     HANDOVER_FDS_OFFERED),
	KIND(SOCKET, struct handover_socket, 1, 1),
	KIND(TAKE, struct handover_head, 0, 0),
	KIND(PRED, struct handover_pred, 1, 1),
	KIND(RUN, struct handover_run, 2, RUN_FDS_MAX),
	KIND(STATE, struct handover_state, 0, 0),
	KIND(TAIL, struct handover_tail, 1, 1),
	KIND(PART, struct handover_part, 0, 0),
	KIND(CONN, struct handover_head, 1, 1),
	KIND(TOLD, struct handover_head, 0, 0),
	KIND(READY, struct handover_head, 0, 0),
	KIND(COMMIT, struct handover_head, 0, 0),
	KIND(SERVING, struct handover_head, 0, 0),
	KIND(OVER, struct handover_head, 0, 0),
	KIND(FAILED, struct handover_failed, 0, 0),
	KIND(END, struct handover_about, 0, 0),
	KIND(POLICY, struct handover_about, 1, 1),
	KIND(RELOAD, struct handover_head, 0, 0),
	KIND(USED, struct handover_about, 0, 0),
	KIND(LEFT, struct handover_about, 0, 0),
#undef KIND
};

bool handover_speaks(struct str msg)
{
	struct handover_head head;

	if (msg.n < sizeof(head))
		return false;
	memcpy(&head, msg.p, sizeof(head));
	return head.magic == HANDOVER_MAGIC;
}

static size_t size_of_rest(enum handover_type type)
{
	return type == HANDOVER_STATE ? offsetof(struct handover_state, bytes)
				      : kinds[type].size;
}

size_t handover_begin(enum handover_type type, union handover_msg *ret)
{
	size_t n = size_of_rest(type);

	memset(ret, 0, n);
	ret->head = (struct handover_head){ HANDOVER_MAGIC, HANDOVER_VERSION,
					    (uint16_t)type };
	return n;
}

size_t handover_run_fds(const struct handover_run *m)
{
	uint32_t sockets = m->open.fds & ~(BIT(PLUG_FD_POLICY) |
					   BIT(PLUG_FD_RECORDS));

	return 2 + !!(m->flags & HANDOVER_OWN_POLICY) +
	       !!(m->flags & HANDOVER_OWN_RECORDS) +
	       (size_t)__builtin_popcount(sockets);
}

/* Letters, digits and what names have; with an end. */
static bool is_name(const char *text, size_t cap)
{
	size_t n = strnlen(text, cap), i;

	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] <= 0x20 ||
		    (unsigned char)text[i] >= 0x7f)
			return false;
	return n < cap;
}

static bool has_end(const char *text, size_t cap)
{
	return strnlen(text, cap) < cap;
}

static bool is_run(const struct handover_run *m, size_t nfds)
{
	return !(m->flags & ~(HANDOVER_OWN_POLICY | HANDOVER_OWN_RECORDS)) &&
	       m->generation > 0 && is_name(m->digest, sizeof(m->digest)) &&
	       m->connections <= INT32_MAX && handover_run_fds(m) == nfds;
}

static bool is_socket(const struct handover_socket *m)
{
	return m->role < SANDBOX_ROLES && m->worker < CONFIG_WORKERS_MAX &&
	       (m->at.addr.family == IP_V4 || m->at.addr.family == IP_V6) &&
	       m->at.port != 0;
}

/* All but size, version and number of descriptors. */
static bool is_sane(const union handover_msg *m, size_t nfds)
{
	switch ((enum handover_type)m->head.type) {
	case HANDOVER_OFFER:
		return has_end(m->offer.cgroup, sizeof(m->offer.cgroup)) &&
		       m->offer.sockets <= CONFIG_WORKERS_MAX *
		       CONFIG_LISTENS_MAX * SANDBOX_FDS_MAX;
	case HANDOVER_SOCKET:
		return is_socket(&m->socket);
	case HANDOVER_PRED:
		return m->pred.index > 0 &&
		       m->pred.index <= HANDOVER_PREDS_MAX;
	case HANDOVER_RUN:
		return is_run(&m->run, nfds);
	case HANDOVER_TAIL:
		return m->tail.pred > 0 && m->tail.n <= sizeof(m->tail.cut) &&
		       m->tail.pred <= HANDOVER_PREDS_MAX &&
		       m->tail.connections <= INT32_MAX;
	case HANDOVER_PART:
		return m->part.worker < CONFIG_WORKERS_MAX &&
		       is_name(m->part.name, sizeof(m->part.name));
	case HANDOVER_FAILED:
		return has_end(m->failed.text, sizeof(m->failed.text));
	case HANDOVER_END:
	case HANDOVER_POLICY:
	case HANDOVER_USED:
	case HANDOVER_LEFT:
		return is_name(m->about.run, sizeof(m->about.run)) &&
		       m->about.run[0] && m->about.connections <= INT32_MAX &&
		       has_end(m->about.rule, sizeof(m->about.rule));
	case HANDOVER_HELLO:
	case HANDOVER_TAKE:
	case HANDOVER_STATE:
	case HANDOVER_CONN:
	case HANDOVER_TOLD:
	case HANDOVER_READY:
	case HANDOVER_COMMIT:
	case HANDOVER_SERVING:
	case HANDOVER_OVER:
	case HANDOVER_RELOAD:
	case HANDOVER_TYPES:
		break;
	}
	return true;
}

static bool is_of_size(struct str msg, enum handover_type type)
{
	struct handover_state s;
	size_t head = offsetof(struct handover_state, bytes);

	if (type != HANDOVER_STATE)
		return msg.n == kinds[type].size;
	if (msg.n < head || msg.n > sizeof(s))
		return false;
	memcpy(&s, msg.p, head);
	return s.n == msg.n - head;
}

int handover_parse(struct str msg, size_t nfds, union handover_msg *ret,
		   struct plug_why *why)
{
	struct handover_head head;

	if (!handover_speaks(msg))
		return plug_refuse(why, "this is not the language in which one penstockd hands over to another");
	memcpy(&head, msg.p, sizeof(head));
	if (head.version != HANDOVER_VERSION)
		return plug_refuse(why, "the other penstockd hands over in version %u, this one in version %d: stop the service and start it anew; its runs end by that",
				   head.version, HANDOVER_VERSION);
	if (head.type >= HANDOVER_TYPES || !kinds[head.type].name)
		return plug_refuse(why, "there is no message of type %u in a hand-over",
				   head.type);
	if (!is_of_size(msg, (enum handover_type)head.type))
		return plug_refuse(why, "a %s of %zu bytes is none",
				   kinds[head.type].name, msg.n);
	if (nfds < kinds[head.type].fds || nfds > kinds[head.type].fds_max)
		return plug_refuse(why, "a %s with %zu descriptors is none",
				   kinds[head.type].name, nfds);
	memcpy(ret, msg.p, msg.n);
	if (!is_sane(ret, nfds))
		return plug_refuse(why, "a %s is not as it should be",
				   kinds[head.type].name);
	return head.type;
}
