# SPDX-License-Identifier: Apache-2.0
check_LIBRARIES += %D%/liblab.a
%C%_liblab_a_SOURCES = %D%/netns_lab.c %D%/netns_lab.h

check_PROGRAMS += %D%/ns_net_test
TESTS += %D%/ns_net_test
%C%_ns_net_test_SOURCES = %D%/ns_net_test.c
%C%_ns_net_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_ns_net_test_LDADD = %D%/liblab.a netns-setup/libnetns.a base/libbase.a \
	$(NETNS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

# A penstockd for tests of the launcher.
check_PROGRAMS += %D%/fake_daemon
%C%_fake_daemon_SOURCES = %D%/fake_daemon.c
%C%_fake_daemon_LDADD = base/libbase.a $(BASE_LIBS)

check_PROGRAMS += %D%/launch_test
TESTS += %D%/launch_test
%C%_launch_test_SOURCES = %D%/launch_test.c
%C%_launch_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_launch_test_LDADD = %D%/liblab.a netns-setup/libnetns.a base/libbase.a \
	$(NETNS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/netns_parts_test
TESTS += %D%/netns_parts_test
%C%_netns_parts_test_SOURCES = %D%/netns_parts_test.c
%C%_netns_parts_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_netns_parts_test_LDADD = %D%/liblab.a netns-setup/libnetns.a \
	base/libbase.a $(NETNS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/steady_test
TESTS += %D%/steady_test
%C%_steady_test_SOURCES = %D%/steady_test.c
%C%_steady_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_steady_test_LDADD = cli/libcli.a netns-setup/libnetns.a base/libbase.a \
	$(NETNS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/control_test
TESTS += %D%/control_test
%C%_control_test_SOURCES = %D%/control_test.c
%C%_control_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_control_test_LDADD = netns-setup/libnetns.a base/libbase.a $(NETNS_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)
