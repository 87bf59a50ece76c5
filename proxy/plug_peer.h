/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_peer.h - who is at the other end of a plug, and which policy they get
 */
#ifndef PROXY_PLUG_PEER_H
#define PROXY_PLUG_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/str.h"
#include "proxy/ctl_proto.h"

struct parents;
struct plug_config;
struct plug_why;
struct policy;
struct ruleset;

#define PLUG_GROUPS_MAX	1024	/* supplementary groups of a peer */

struct plug_peer {
	uid_t uid;
	bool may_bring;		/* a policy of their own */
	bool may_name;		/* one of the service's own */
	bool may_upgrade;	/* be handed the service, and reload it */
};

/* -EPROTO with @why when they may do nothing. */
NODISCARD int plug_peer_init(const struct plug_config *config, int fd,
			     struct plug_peer *ret, struct plug_why *why);

/* -EPROTO with @why when they may have no run. */
NODISCARD int plug_peer_may_run(const struct plug_config *config,
				const struct plug_peer *peer,
				struct plug_why *why);

/**
 * plug_peer_policy() - The ruleset that this peer asked for and may have
 * @fd:		sealed memfd with the text, borrowed; -1: by name
 * @ret:	one reference, the caller's
 */
NODISCARD int plug_peer_policy(const struct plug_config *config,
			       const struct plug_peer *peer,
			       const struct plug_open *open, int fd,
			       struct ruleset **ret, struct plug_why *why);

/* The same for a policy of the service's; @flags of its PLUG_OPEN. */
NODISCARD int plug_peer_named(const struct policy *policy, uint32_t flags,
			      struct ruleset **ret, struct plug_why *why);

/* What a text that somebody brought is called in messages. */
#define PLUG_BROUGHT_NAME	"policy"

/* The same for one that a peer brings who may. */
NODISCARD int plug_peer_brought(const struct plug_config *config, int fd,
				uint32_t flags, struct ruleset **ret,
				struct plug_why *why);

/* Compile one text; each error becomes a line "NAME:LINE: ..." of @why. */
NODISCARD int plug_compile(const char *name, struct str text, bool observe,
			   struct ruleset **ret, struct plug_why *why);

/* Are all parents that the policy names there?  -EPROTO with @why if not. */
NODISCARD int plug_suits(const struct parents *parents,
			 const struct ruleset *rules, struct plug_why *why);

#endif /* PROXY_PLUG_PEER_H */
