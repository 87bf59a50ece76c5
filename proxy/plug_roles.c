/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_roles.c - what a plug brought, as a sandbox takes it
 */
#include "base/fd.h"
#include "proxy/plug_own.h"

static const struct {
	enum plug_fd from;
	enum sandbox_role role;
} plug_roles[] = {
	{ PLUG_FD_DNS_UDP4, SANDBOX_DNS_UDP },
	{ PLUG_FD_DNS_UDP6, SANDBOX_DNS_UDP },
	{ PLUG_FD_DNS_TCP4, SANDBOX_DNS_TCP },
	{ PLUG_FD_DNS_TCP6, SANDBOX_DNS_TCP },
	{ PLUG_FD_TPROXY4, SANDBOX_TPROXY },
	{ PLUG_FD_TPROXY6, SANDBOX_TPROXY },
	{ PLUG_FD_HTTP, SANDBOX_HTTP },
	{ PLUG_FD_SOCKS, SANDBOX_SOCKS },
	{ PLUG_FD_NFLOG, SANDBOX_NFLOG },
	{ PLUG_FD_DIAG, SANDBOX_DIAG },
};

/* How many refusals of the self-test will come by: TCP in each family by its
 * listener, and UDP in each by the firewall's reports.  Wildcard listeners do
 * not have the port that it asks for. */
static unsigned plug_self_tests(const struct plug_open *open,
				const int fd[PLUG_FDS])
{
	unsigned families = (fd[PLUG_FD_TPROXY4] >= 0) +
			    (fd[PLUG_FD_TPROXY6] >= 0);

	if (open->flags & PLUG_FLAG_NO_TPROXY)
		return 0;
	return fd[PLUG_FD_NFLOG] >= 0 ? 2 * families : families;
}

void plug_to_sandbox(const struct plug_open *open, int fd[PLUG_FDS],
		     struct sandbox_config *ret)
{
	size_t i;

	ret->run = open->run;
	ret->label = open->sandbox;
	ret->hostname = open->sandbox;
	ret->nonce = open->nonce;
	ret->self_tests = plug_self_tests(open, fd);
	for (i = 0; i < ARRAY_SIZE(plug_roles); i++)
		sandbox_config_add(ret, plug_roles[i].role,
				   fd_take(&fd[plug_roles[i].from]));
}
