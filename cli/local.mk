# SPDX-License-Identifier: Apache-2.0
# penstock: lean on purpose.  Neither OpenSSL nor c-ares nor libevent.
bin_PROGRAMS += %D%/penstock
noinst_LIBRARIES += %D%/libcli.a
%C%_libcli_a_SOURCES = \
	%D%/caller.c %D%/caller.h \
	%D%/cmd.h \
	%D%/cmd_connect.c \
	%D%/cmd_dns.c \
	%D%/cmd_doctor.c \
	%D%/cmd_flows.c \
	%D%/cmd_policy.c \
	%D%/cmd_reload.c \
	%D%/cmd_run.c \
	%D%/cmd_upgrade.c \
	%D%/daemon_path.c %D%/daemon_path.h \
	%D%/dns_ask.c %D%/dns_ask.h \
	%D%/dns_cmd.h \
	%D%/dns_explain.c \
	%D%/odd_name.c %D%/odd_name.h \
	%D%/opts.c %D%/opts.h \
	%D%/policy_ask.c %D%/policy_ask.h \
	%D%/policy_check.c %D%/policy_cmd.h \
	%D%/policy_diff.c \
	%D%/policy_explain.c \
	%D%/policy_learn.c \
	%D%/policy_load.c \
	%D%/policy_show.c \
	%D%/policy_test.c \
	%D%/policy_text.c %D%/policy_text.h \
	%D%/proxy_answer.c %D%/proxy_answer.h \
	%D%/proxy_hop.c %D%/proxy_hop.h \
	%D%/proxy_url.c %D%/proxy_url.h \
	%D%/run_env.c %D%/run_env.h \
	%D%/run_opts.c %D%/run_opts.h \
	%D%/run_parent.c %D%/run_parent.h %D%/run_policy.c %D%/run_policy.h \
	%D%/run_state.c %D%/run_state.h \
	%D%/stdio_pump.c %D%/stdio_pump.h \
	%D%/steady.c %D%/steady.h \
	%D%/summary.c %D%/summary.h \
	%D%/text.c %D%/text.h

%C%_penstock_SOURCES = %D%/main.c
%C%_penstock_LDADD = %D%/libcli.a netns-setup/libnetns.a resolver/libresolver.a \
	audit/libaudit.a \
	rules/librules.a base/libbase.a \
	$(NETNS_LIBS) $(AUDIT_LIBS) $(RULES_LIBS) $(INIH_LIBS)

dist_man_MANS += %D%/penstock.1
EXTRA_DIST += %D%/README.md
