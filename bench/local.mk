# SPDX-License-Identifier: Apache-2.0
noinst_PROGRAMS += %D%/attack %D%/authority %D%/forward %D%/load %D%/match \
	%D%/origin
%C%_attack_SOURCES = %D%/attack.c %D%/net.c %D%/net.h
%C%_authority_SOURCES = %D%/authority.c
%C%_forward_SOURCES = %D%/forward.c %D%/net.c %D%/net.h
%C%_load_SOURCES = %D%/load.c %D%/net.c %D%/net.h
%C%_origin_SOURCES = %D%/net.c %D%/net.h %D%/origin.c
%C%_match_SOURCES = %D%/match.c
%C%_match_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) $(BASE_LIBS)
EXTRA_DIST += %D%/README.md %D%/bench.py %D%/bench_dns.py %D%/bench_fair.py \
	%D%/bench_many.py %D%/bench_match.py %D%/bench_start.py \
	%D%/bench_tunnels.py %D%/kit.py %D%/peers.py %D%/penstocks.py \
	%D%/report.py %D%/wires.py \
	%D%/results-dns.jsonl %D%/results-fair.jsonl \
	%D%/results-many.jsonl \
	%D%/results-match.jsonl \
	%D%/results-start.jsonl %D%/results-tunnels.jsonl

# Beside the peers that are installed.  make bench BENCH="--help" tells the rest.
bench: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B \
		$(top_srcdir)/bench/bench.py $(BENCH)

# What Debian has of them.  Where services start by themselves, stop these.
BENCH_PEERS = haproxy nginx-light libnginx-mod-stream trafficserver squid \
	tinyproxy bubblewrap dnsmasq-base unbound dnsperf dnsdist pdns-recursor
bench-peers:
	apt-get install --no-install-recommends $(BENCH_PEERS)
