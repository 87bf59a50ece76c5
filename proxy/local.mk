# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libproxy.a
%C%_libproxy_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS)

# The life of a connection.
%C%_libproxy_a_SOURCES = \
	%D%/conn.c %D%/conn.h %D%/conn_own.h \
	%D%/conn_explicit.c %D%/conn_hello.c %D%/conn_http.c \
	%D%/conn_net.c %D%/conn_pool.c %D%/conn_record.c %D%/conn_refuse.c \
	%D%/conn_names.c %D%/conn_names.h \
	%D%/conn_limits.c \
	%D%/conn_rejudge.c \
	%D%/conn_socks.c %D%/conn_target.c %D%/conn_transparent.c \
	%D%/dial.c %D%/dial.h %D%/dial_own.h \
	%D%/dial_attempt.c %D%/dial_way.c %D%/dial_why.c \
	%D%/parent_dial.c %D%/parent_dial.h \
	%D%/parents.c %D%/parents.h %D%/parents_rules.c \
	%D%/own_doors.c %D%/own_doors.h \
	%D%/quota.c %D%/quota.h \
	%D%/sched.c %D%/sched.h \
	%D%/half.c %D%/half.h \
	%D%/relay.c %D%/relay.h %D%/relay_chunk.c %D%/relay_own.h %D%/relay_pool.c \
	%D%/relay_pool.h \
	%D%/sock.c %D%/sock.h %D%/sock_still.c %D%/sock_still.h

# The process around it.
%C%_libproxy_a_SOURCES += \
	%D%/broker.c %D%/broker.h \
	%D%/compiler.c %D%/compiler.h \
	%D%/config.c %D%/config.h %D%/config_own.h %D%/config_listen.c %D%/config_parent.c \
	%D%/ctl_proto.h \
	%D%/client_table.c %D%/client_table.h \
	%D%/detach.c %D%/detach.h \
	%D%/handover.c %D%/handover.h %D%/handover_own.h %D%/handover_tell.c \
	%D%/handover_proto.c %D%/handover_proto.h \
	%D%/handover_state.c %D%/handover_state.h \
	%D%/leave.c %D%/leave.h %D%/ledger.c %D%/ledger.h \
	%D%/host_addrs.c %D%/host_addrs.h \
	%D%/host_listen.c %D%/host_listen.h %D%/host_listen_own.h \
	%D%/host_listen_swap.c %D%/host_listen_leave.c \
	%D%/host_nets.c %D%/host_nets.h \
	%D%/host_nl.c %D%/host_nl.h \
	%D%/host_route.c %D%/host_route.h \
	%D%/host_sock.c %D%/host_sock.h \
	%D%/isolate.c %D%/isolate.h %D%/isolate_filter.c \
	%D%/listener.c %D%/listener.h \
	%D%/mailbox.c %D%/mailbox.h \
	%D%/nflog.c %D%/nflog.h \
	%D%/notify.c %D%/notify.h \
	%D%/opts.c %D%/opts.h \
	%D%/plug.c %D%/plug.h %D%/plug_own.h %D%/plug_listen.c %D%/plug_roles.c %D%/plug_swap.c \
	%D%/plug_records.c %D%/plug_leave.c %D%/plug_adopt.c %D%/plug_tail.c \
	%D%/plug_users.c %D%/plug_users.h \
	%D%/plug_peer.c %D%/plug_peer.h \
	%D%/plug_check.c %D%/plug_check.h \
	%D%/marker.c %D%/marker.h %D%/marks.c %D%/marks.h \
	%D%/policies.c %D%/policies.h \
	%D%/reading.c %D%/reading.h \
	%D%/sandbox.c %D%/sandbox.h %D%/sandbox_freeze.c \
	%D%/service.c %D%/service.h \
	%D%/shed.c %D%/shed.h \
	%D%/source.c %D%/source.h \
	%D%/start.c %D%/start.h \
	%D%/strangers.c %D%/strangers.h \
	%D%/takeover.c %D%/takeover.h \
	%D%/upstreams.c %D%/upstreams.h \
	%D%/worker.c %D%/worker.h

PROXY_LIBS = $(EVENT_LIBS) $(MNL_LIBS) $(MD_LIBS)
EXTRA_DIST += %D%/README.md

dist_man_MANS += %D%/penstockd.8
EXTRA_DIST += %D%/penstockd.service.in %D%/penstock.sysusers
dist_doc_DATA = %D%/penstockd.ini

if WITH_SYSTEMD
systemdsystemunit_DATA = %D%/penstockd.service
sysusersdir = $(prefix)/lib/sysusers.d
sysusers_DATA = %D%/penstock.conf
CLEANFILES += %D%/penstockd.service %D%/penstock.conf
endif

%D%/penstockd.service: %D%/penstockd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|@sbindir[@]|$(sbindir)|g' \
		-e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/%D%/penstockd.service.in >$@.tmp && mv $@.tmp $@
%D%/penstock.conf: %D%/penstock.sysusers
	$(AM_V_GEN)$(MKDIR_P) %D% && cp $(srcdir)/%D%/penstock.sysusers $@

sbin_PROGRAMS += %D%/penstockd
%C%_penstockd_SOURCES = %D%/main.c %D%/main_own.h %D%/main_upgrade.c
%C%_penstockd_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS)
%C%_penstockd_LDADD = %D%/libproxy.a resolver/libresolver.a audit/libaudit.a \
	rules/librules.a base/libbase.a $(PROXY_LIBS) $(RESOLVER_LIBS) \
	$(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS)

# The parsers and the HTTP engine.
%C%_libproxy_a_SOURCES += \
	%D%/forward.c %D%/forward.h \
	%D%/forward_admit.c %D%/forward_exchange.c %D%/forward_final.c \
	%D%/forward_half.c \
	%D%/forward_int.h %D%/forward_limits.c %D%/forward_net.c \
	%D%/rewrite.c %D%/rewrite.h \
	%D%/parent_msg.c %D%/parent_msg.h \
	%D%/http1.c %D%/http1.h %D%/http1_body.c %D%/http1_target.c \
	%D%/refusal.c %D%/refusal.h \
	%D%/sniff.c %D%/sniff.h \
	%D%/stream.c %D%/stream.h \
	%D%/websocket.c %D%/websocket.h \
	%D%/socks.c %D%/socks.h
