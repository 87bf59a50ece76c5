# SPDX-License-Identifier: Apache-2.0
FUZZ_TARGETS += %D%/control_fuzz %D%/proxy_answer_fuzz %D%/nflog_fuzz %D%/plug_fuzz \
	%D%/handover_fuzz

DAEMON_FUZZ_LIBS = proxy/libproxy.a resolver/libresolver.a audit/libaudit.a \
	rules/librules.a base/libbase.a $(PROXY_LIBS) $(RESOLVER_LIBS) \
	$(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS)

%C%_nflog_fuzz_SOURCES = %D%/nflog_fuzz.c $(FUZZ_MAIN)
%C%_nflog_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_nflog_fuzz_LDADD = $(DAEMON_FUZZ_LIBS)
%C%_plug_fuzz_SOURCES = %D%/plug_fuzz.c $(FUZZ_MAIN)
%C%_plug_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_plug_fuzz_LDADD = $(DAEMON_FUZZ_LIBS)
%C%_control_fuzz_SOURCES = %D%/control_fuzz.c $(FUZZ_MAIN)
%C%_control_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_control_fuzz_LDADD = netns-setup/libnetns.a base/libbase.a $(NETNS_LIBS) \
	$(BASE_LIBS)
%C%_proxy_answer_fuzz_SOURCES = %D%/proxy_answer_fuzz.c $(FUZZ_MAIN)
%C%_proxy_answer_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_proxy_answer_fuzz_LDADD = cli/libcli.a base/libbase.a $(BASE_LIBS)
%C%_handover_fuzz_SOURCES = %D%/handover_fuzz.c $(FUZZ_MAIN)
%C%_handover_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_handover_fuzz_LDADD = $(DAEMON_FUZZ_LIBS)
