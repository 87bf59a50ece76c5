# SPDX-License-Identifier: Apache-2.0
check_LIBRARIES += %D%/liblab.a
%C%_liblab_a_SOURCES = %D%/netns_lab.c %D%/netns_lab.h

check_PROGRAMS += %D%/ns_net_test
TESTS += %D%/ns_net_test
%C%_ns_net_test_SOURCES = %D%/ns_net_test.c
%C%_ns_net_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_ns_net_test_LDADD = %D%/liblab.a netns-setup/libnetns.a base/libbase.a \
	$(NETNS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
