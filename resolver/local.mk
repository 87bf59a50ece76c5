# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libresolver.a
%C%_libresolver_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CARES_CFLAGS) \
	$(OPENSSL_CFLAGS)
%C%_libresolver_a_SOURCES = \
	%D%/resolver.h %D%/name_map.h \
	%D%/dns_answer.c %D%/dns_answer.h \
	%D%/dns_budget.c %D%/dns_budget.h \
	%D%/dns_cache.c %D%/dns_cache.h \
	%D%/dns_chan.c %D%/dns_chan.h \
	%D%/dns_door.c %D%/dns_door.h \
	%D%/dns_health.c %D%/dns_health.h \
	%D%/dns_judge.c %D%/dns_judge.h \
	%D%/dns_local.c %D%/dns_local.h \
	%D%/dns_msg.c %D%/dns_msg.h \
	%D%/dns_query.c %D%/dns_query.h %D%/dns_query_own.h \
	%D%/dns_query_give.c \
	%D%/dns_query_judge.c \
	%D%/dns_query_lookup.c \
	%D%/dns_query_record.c \
	%D%/dns_query_reply.c \
	%D%/dns_query_types.c \
	%D%/dns_rdata.c %D%/dns_rdata.h \
	%D%/dns_repeats.c %D%/dns_repeats.h \
	%D%/dns_tcp.c \
	%D%/dns_tls.c %D%/dns_tls.h %D%/dns_tls_lib.c %D%/dns_tls_lib.h \
	%D%/dns_transport.c %D%/dns_transport.h \
	%D%/dns_udp.c \
	%D%/dns_upstream.c %D%/dns_upstream.h \
	%D%/name_map.c \
	%D%/name_pins.c %D%/name_pins.h \
	%D%/resolv_conf.c \
	%D%/resolver.c %D%/resolver_priv.h

RESOLVER_LIBS = $(CARES_LIBS) $(EVENT_LIBS)
EXTRA_DIST += %D%/README.md
