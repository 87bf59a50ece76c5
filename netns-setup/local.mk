# SPDX-License-Identifier: Apache-2.0
# The launcher's rooms: namespaces, mounts, filter, and the two processes that
# make them.  libnftnl is linked by nothing but the launcher.
noinst_LIBRARIES += %D%/libnetns.a
%C%_libnetns_a_CPPFLAGS = $(AM_CPPFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS)
%C%_libnetns_a_SOURCES = \
	%D%/command.c %D%/command.h \
	%D%/command_filter.c %D%/command_filter.h \
	%D%/control.c %D%/control.h \
	%D%/doctor.c \
	%D%/fault.c %D%/fault.h \
	%D%/handover.c %D%/handover.h \
	%D%/host_sockets.c %D%/host_sockets.h \
	%D%/idmap.c %D%/idmap.h \
	%D%/launch.c %D%/launch.h \
	%D%/mounts.c %D%/mounts.h \
	%D%/nl.c %D%/nl.h \
	%D%/ns_files.c %D%/ns_files.h \
	%D%/ns_link.c %D%/ns_link.h \
	%D%/ns_listen.c %D%/ns_listen.h \
	%D%/ns_nft.c %D%/ns_nft.h \
	%D%/ns_nft_rules.c %D%/ns_nft_rules.h \
	%D%/selftest.c %D%/selftest.h \
	%D%/setup.c %D%/setup.h \
	%D%/std_file.c %D%/std_file.h \
	%D%/step.c %D%/step.h \
	%D%/streams.c %D%/streams.h \
	%D%/workdir.c %D%/workdir.h

NETNS_LIBS = $(NFTNL_LIBS) $(MNL_LIBS)
EXTRA_DIST += %D%/README.md
