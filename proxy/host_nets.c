/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_nets.c - networks that are the host's, as many as there are
 *
 * A host can have more addresses than anybody should keep.  None may be
 * forgotten, for it would be open then: when there are too many, all become
 * wider by a step, until those that fall together make room.  What is refused
 * in excess are neighbours; the last step is everything.
 */
#include "proxy/host_nets.h"

#include <errno.h>
#include <stdint.h>

#include "base/mem.h"

#define NETS_FIRST	32

static const struct { uint8_t v4, v6; } widths[] = {
	{ 32, 128 }, { 28, 64 }, { 24, 56 }, { 20, 48 }, { 16, 40 },
	{ 12, 32 }, { 8, 24 }, { 0, 0 },
};

static struct ip_net widened(const struct ip_addr *a, unsigned bits,
			     unsigned width)
{
	unsigned most = a->family == IP_V4 ? widths[width].v4
					   : widths[width].v6;

	return ip_net_of(a, bits < most ? bits : most);
}

static void nets_widen(struct host_nets *s)
{
	size_t i;

	s->width++;
	REQUIRE(s->width < ARRAY_SIZE(widths));
	for (i = 0; i < s->n; i++)
		s->net[i] = widened(&s->net[i].addr, s->net[i].bits, s->width);
	host_nets_tidy(s);
}

static int nets_grow(struct host_nets *s)
{
	size_t cap = s->cap ? s->cap * 2 : NETS_FIRST;
	struct ip_net *net;

	if (cap > HOST_NETS_MAX)
		cap = HOST_NETS_MAX;
	net = mem_grow(s->net, cap, sizeof(*net));
	if (!net)
		return -ENOMEM;
	s->net = net;
	s->cap = cap;
	return 0;
}

int host_nets_add(struct host_nets *s, const struct ip_addr *a, unsigned bits)
{
	int err = 0;

	if (s->n == HOST_NETS_MAX) {
		/* A quarter is free after it: it is seldom done. */
		host_nets_tidy(s);
		while (s->n > HOST_NETS_KEPT)
			nets_widen(s);
	} else if (s->n == s->cap) {
		err = nets_grow(s);
	}
	if (err == 0)
		s->net[s->n++] = widened(a, bits, s->width);
	return err;
}

void host_nets_tidy(struct host_nets *s)
{
	s->n = ip_net_tidy(s->net, s->n);
}

void host_nets_done(struct host_nets *s)
{
	mem_free(s->net);
	*s = (struct host_nets){ 0 };
}
