# SPDX-License-Identifier: Apache-2.0
noinst_PROGRAMS += %D%/attack %D%/authority %D%/load %D%/match
%C%_attack_SOURCES = %D%/attack.c
%C%_authority_SOURCES = %D%/authority.c
%C%_load_SOURCES = %D%/load.c
%C%_match_SOURCES = %D%/match.c
%C%_match_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) $(BASE_LIBS)
EXTRA_DIST += %D%/README.md %D%/bench.py %D%/bench_dns.py %D%/bench_fair.py \
	%D%/bench_match.py \
	%D%/results-dns.jsonl %D%/results-fair.jsonl \
	%D%/results-match.jsonl \
	%D%/results-start.jsonl %D%/results-tunnels.jsonl

# Beside the peers that are installed: apt-get install haproxy squid bubblewrap
# dnsmasq-base unbound dnsperf dnsdist pdns-recursor
bench: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B \
		$(top_srcdir)/bench/bench.py $(BENCH)
