# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += %D%/cli_test
TESTS += %D%/cli_test
%C%_cli_test_SOURCES = %D%/cli_test.c
%C%_cli_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_cli_test_LDADD = cli/libcli.a netns-setup/libnetns.a \
	resolver/libresolver.a audit/libaudit.a rules/librules.a base/libbase.a \
	$(NETNS_LIBS) $(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/cli_connect_test
TESTS += %D%/cli_connect_test
%C%_cli_connect_test_SOURCES = %D%/cli_connect_test.c
%C%_cli_connect_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_cli_connect_test_LDADD = tests/unit/libproxylab.a cli/libcli.a \
	rules/librules.a base/libbase.a $(EVENT_LIBS) $(RULES_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)

CLI_CHECKS = %D%/cli_dns_test.py %D%/cli_manual_test.py \
	%D%/cli_policy_test.py %D%/cli_policy_tools_test.py \
	%D%/cli_words_test.py
TESTS += $(CLI_CHECKS)
EXTRA_DIST += $(CLI_CHECKS)
