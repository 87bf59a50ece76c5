/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_names.h - the names that a real address may stand for
 *
 * Of the files of a connection, as conn_own.h.
 */
#ifndef PROXY_CONN_NAMES_H
#define PROXY_CONN_NAMES_H

#include "proxy/conn_own.h"

/* What the candidates of an address come to, each by itself. */
struct conn_votes {
	unsigned n;			/* candidates */
	unsigned passed;		/* of them */
	unsigned speeches;		/* BIT() of what those demand */
	bool denied;			/* a deny rule speaks of one of them */
	const struct name_pin *pass;	/* given last, of those that passed */
	const struct name_pin *fail;	/* and of the others; denied ones first */
	struct rules_answer pass_answer, fail_answer;
	struct rules_answer literal;	/* the address without a name */
};

/**
 * conn_names_vote() - Ask the rules about each candidate of a literal
 * @t:		a literal; a target with a name has no candidates
 * @ret:	pins in it are good until a name is given or found
 * Return: true when there are any
 */
bool conn_names_vote(const struct conn *c, const struct conn_target *t,
		     struct conn_votes *ret);

/* May the address be dialled for what it is, whatever it stands for? */
bool conn_votes_literal(const struct conn_votes *v);

/**
 * conn_names_settle() - Which name, when nothing but the address tells
 * @t:		a literal that becomes the name, or stays what it is
 *
 * The verdict on the result is still to be asked for.
 * Return: ALLOWED, or NAME_AMBIGUOUS
 */
enum reason conn_names_settle(const struct conn *c, struct conn_target *t,
			      struct id *ret_dns);

/*
 * The same of a literal in a CONNECT, or in SOCKS: where candidates are of a protocol that
 * shows a name, the bytes inside the tunnel may pick one that passes.
 */
enum reason conn_names_connect(struct conn *c);

/* The server name inside a CONNECT to such a literal. */
enum reason conn_names_pick(struct conn *c, const struct host_name *name);

/* Nothing shows which name is meant: do all of them still pass? */
bool conn_names_unanimous(const struct conn *c);

/* May what was asked for as an address be dialled without a name? */
bool conn_names_literal_passes(const struct conn *c);

/**
 * conn_names_hold() - The pin that the connection lives by from now on
 *
 * Of c->target's name at the address that was asked for, in the place of the
 * one it had.  Return: false when there is none.
 */
bool conn_names_hold(struct conn *c, const struct ip_addr *asked);
void conn_names_release(struct conn *c);

#endif /* PROXY_CONN_NAMES_H */
