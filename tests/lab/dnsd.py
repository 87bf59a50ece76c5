# SPDX-License-Identifier: Apache-2.0
"""dnsd.py - the lab's DNS: authoritative for names.py, over UDP, TCP and TLS.

Each question is written to a log as one JSON line, so that a test can show
what was asked of the outside, byte by byte, and what was not.
"""
import argparse
import asyncio
import json
import ssl
import struct
import sys

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

import names

TTL = 1
CHANGING_TTL = 0        # an answer that changes is asked for each time
BELOW_TTL = 300         # one that a cache may keep


def ttl_of(name):
    if name in names.CHANGING:
        return CHANGING_TTL
    below = any(name.endswith("." + zone) for zone in names.BELOW)
    return BELOW_TTL if below else TTL


class Zone:
    def __init__(self, log):
        self.log = log
        self.asked = {}

    def note(self, wire, query, transport, server, peer):
        question = query.question[0] if query.question else None
        self.log.write(json.dumps({
            # A question is an empty set, so it must not be asked for truth.
            "name": None if question is None else question.name.to_text(),
            "type": None if question is None
                    else dns.rdatatype.to_text(question.rdtype),
            "transport": transport,
            "server": server.split("%")[0],
            "peer": peer,
            "edns": query.edns,
            "payload": query.payload if query.edns >= 0 else None,
            "options": len(query.options),
            "flags": dns.flags.to_text(query.flags),
            "wire": wire.hex(),
        }) + "\n")
        self.log.flush()

    def addresses(self, name, rdtype):
        """What @name has of type @rdtype; None when the name does not exist."""
        if (name, rdtype) in names.RECORDS:
            return names.RECORDS[name, rdtype]
        if name in names.CHANGING:
            turn = self.asked.get(name, 0)
            answers = names.CHANGING[name]
            if rdtype == "A":
                self.asked[name] = turn + 1
                return answers[min(turn, len(answers) - 1)]
            return []
        if name in names.LATE_S:
            return names.LATE_S[name][1] if rdtype == "A" else []
        if name in names.SERVFAIL_AAAA:
            return names.SERVFAIL_AAAA[name] if rdtype == "A" else []
        if name in names.NAMES:
            v4, v6 = names.NAMES[name]
            return {"A": v4, "AAAA": v6}.get(rdtype, [])
        if any(name == known for known, _ in names.RECORDS):
            return []
        for zone, (v4, v6) in names.BELOW.items():
            if name.endswith("." + zone):
                return {"A": v4, "AAAA": v6}.get(rdtype, [])
        if any(known.endswith("." + name)
               for known in (*names.NAMES, *names.BELOW)):
            return []
        return None

    def answer(self, query):
        question = query.question[0]
        reply = dns.message.make_response(query, recursion_available=True)
        name = question.name.to_text().rstrip(".").lower()
        rdtype = dns.rdatatype.to_text(question.rdtype)
        if name in names.SERVFAIL_AAAA and rdtype == "AAAA":
            reply.set_rcode(dns.rcode.SERVFAIL)
            return reply
        owner = question.name
        for _ in range(16):
            target = names.CNAMES.get(name)
            if target is None:
                break
            reply.answer.append(dns.rrset.from_text(
                owner, TTL, "IN", "CNAME", target + "."))
            name, owner = target, dns.name.from_text(target)
        found = self.addresses(name, rdtype)
        if found is None:
            if not reply.answer:
                reply.set_rcode(dns.rcode.NXDOMAIN)
        elif found:
            reply.answer.append(
                dns.rrset.from_text_list(
                    owner, ttl_of(name), "IN", rdtype, found))
        return reply

    async def handle(self, wire, transport, server, peer):
        try:
            query = dns.message.from_wire(wire)
        except Exception:  # whatever it was, it is worth a line
            self.log.write(json.dumps({"name": None, "wire": wire.hex()}) + "\n")
            self.log.flush()
            return None
        self.note(wire, query, transport, server, peer)
        if not query.question:
            return None
        name = query.question[0].name.to_text().rstrip(".").lower()
        if name in names.NEVER:
            return None
        if name in names.LATE_S:
            await asyncio.sleep(names.LATE_S[name][0])
        reply = self.answer(query)
        if transport == "tcp":
            return reply.to_wire()
        room = query.payload if query.edns >= 0 else 512
        try:
            return reply.to_wire(max_size=max(512, room))
        except dns.exception.TooBig:
            short = dns.message.make_response(query, recursion_available=True)
            short.flags |= dns.flags.TC
            return short.to_wire()


class Udp(asyncio.DatagramProtocol):
    def __init__(self, zone):
        self.zone = zone

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        asyncio.ensure_future(self.reply(data, addr))

    async def reply(self, data, addr):
        here = self.transport.get_extra_info("sockname")[0]
        wire = await self.zone.handle(data, "udp", here, addr[1])
        if wire is not None:
            self.transport.sendto(wire, addr)


async def serve_tcp(zone, reader, writer, transport="tcp"):
    try:
        while True:
            size = struct.unpack("!H", await reader.readexactly(2))[0]
            wire = await zone.handle(await reader.readexactly(size), transport,
                                     writer.get_extra_info("sockname")[0],
                                     writer.get_extra_info("peername")[1])
            if wire is not None:
                writer.write(struct.pack("!H", len(wire)) + wire)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True)
    parser.add_argument("--cert", required=True, help="for DNS over TLS")
    parser.add_argument("--key", required=True)
    parser.add_argument("address", nargs="+")
    args = parser.parse_args()
    zone = Zone(open(args.log, "a", encoding="ascii"))
    loop = asyncio.get_running_loop()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(args.cert, args.key)
    for address in args.address:
        await loop.create_datagram_endpoint(lambda: Udp(zone),
                                            local_addr=(address, 53))
        await asyncio.start_server(lambda r, w: serve_tcp(zone, r, w),
                                   address, 53)
        await asyncio.start_server(lambda r, w: serve_tcp(zone, r, w, "tls"),
                                   address, 853, ssl=tls)
    print("ready", flush=True)
    # The lab holds the other end of stdin: its end is ours.
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
