# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libproxy.a
%C%_libproxy_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS)
%C%_libproxy_a_SOURCES = \
	%D%/ctl_proto.h \
	%D%/conn.h \
	%D%/dial.c %D%/dial.h \
	%D%/listener.c %D%/listener.h \
	%D%/mailbox.c %D%/mailbox.h \
	%D%/nflog.c %D%/nflog.h \
	%D%/relay.c %D%/relay.h %D%/relay_pool.c %D%/relay_pool.h \
	%D%/sandbox.c %D%/sandbox.h \
	%D%/sock.c %D%/sock.h \
	%D%/worker.c %D%/worker.h

PROXY_LIBS = $(EVENT_LIBS) $(MNL_LIBS)
EXTRA_DIST += %D%/README.md

# The parsers and the HTTP engine.
%C%_libproxy_a_SOURCES += \
	%D%/http1.c %D%/http1.h %D%/http1_body.c %D%/http1_target.c \
	%D%/refusal.c %D%/refusal.h \
	%D%/sniff.c %D%/sniff.h
