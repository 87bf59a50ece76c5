# SPDX-License-Identifier: Apache-2.0
# The launcher's rooms: namespaces, mounts, filter, and the two processes that
# make them.  libnftnl is linked by nothing but the launcher.
noinst_LIBRARIES += %D%/libnetns.a
%C%_libnetns_a_CPPFLAGS = $(AM_CPPFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS)
%C%_libnetns_a_SOURCES = \
	%D%/launch.h \
	%D%/fault.c %D%/fault.h \
	%D%/nl.c %D%/nl.h \
	%D%/ns_link.c %D%/ns_link.h \
	%D%/ns_listen.c %D%/ns_listen.h \
	%D%/ns_nft.c %D%/ns_nft.h \
	%D%/ns_nft_rules.c %D%/ns_nft_rules.h

NETNS_LIBS = $(NFTNL_LIBS) $(MNL_LIBS)
EXTRA_DIST += %D%/README.md
