# SPDX-License-Identifier: Apache-2.0
noinst_PROGRAMS += %D%/load
%C%_load_SOURCES = %D%/load.c
EXTRA_DIST += %D%/README.md %D%/bench.py \
	%D%/results-start.jsonl %D%/results-tunnels.jsonl

# Beside the peers that are installed: apt-get install haproxy squid bubblewrap
bench: all
	PENSTOCK_BUILD='$(abs_top_builddir)' /usr/bin/python3 -B \
		$(top_srcdir)/bench/bench.py $(BENCH)
