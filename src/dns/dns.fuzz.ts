/**
 * Fuzzes the DNS server: any message gets a well-formed response of at most the client's size, or none; any response of
 * another server is rejected, or passed on within the client's size.
 */
import { decode, encode } from "dns-packet";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { makeExternalName, makeQuery, makeService, makeSlice } from "../testing/dns/queries.ts";
import { fuzz } from "../testing/schema/fuzz-harness.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { ClusterRecords } from "./records/cluster-records.ts";
import { ClusterZone } from "./records/cluster-zone.ts";
import { createDnsMetrics } from "./server/dns-metrics.ts";
import { createRequestHandler } from "./server/request-handler.ts";
import { decodeAddresses } from "./wire/decode-addresses.ts";
import { parseQuery } from "./wire/query.ts";
import { type Protocol, responseBytesMax } from "./wire/response.ts";
import { adaptResponse, parseUpstreamResponse } from "./wire/upstream-response.ts";

class Refused extends Error {}

const records = new ClusterRecords();
records.putService(makeService("default/web", "10.3.0.1,fd00::1", "http/TCP/80"));
records.putService(makeService("default/many", "None", "http/TCP/80"));
records.putService(makeExternalName("default/ext", "web.default.svc.cluster.local"));
const addresses = Array.from({ length: 100 }, (_, i) => `10.1.0.${i}`);
records.putSlice(makeSlice("default/many", "many-1", "http/TCP/80", ...addresses), undefined);

const handle = createRequestHandler({
  zone: new ClusterZone({ domain: "cluster.local", addresses: ["10.3.0.10"] }),
  records: () => records,
  forwarder: { forward: () => undefined },
  metrics: createDnsMetrics(new MetricRegistry()),
  clock: new FakeClock(),
  onError: (error) => {
    throw error;
  },
});

function handleQuery(message: Buffer, protocol: Protocol): void {
  const parsed = parseQuery(message);
  const response = handle(message, { address: "10.1.0.1", protocol });
  if (response === undefined) throw new Refused("ignored");
  // The chain of an ExternalName service is followed asynchronously.
  if (response instanceof Promise) return;
  if (response.readUInt16BE(0) !== message.readUInt16BE(0)) throw new Error("another ID");
  if ((response[2]! & 0x80) === 0) throw new Error("not a response");
  decode(response);
  if (parsed.kind === "error") throw new Refused("an error");
  if (parsed.kind !== "query") throw new Error("a response to what is not a query");
  if (response.length > responseBytesMax(parsed.query, protocol)) throw new Error("too large");
}

function adapt(message: Buffer): void {
  const copy = Buffer.from(message);
  // The query that the message may be the response to.
  const asQuery = Buffer.from(message);
  if (asQuery.length >= 12) asQuery.set([0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0], 2);
  const parsed = parseQuery(asQuery);
  if (parsed.kind !== "query") throw new Refused("no question");
  const { query } = parsed;
  const response = parseUpstreamResponse(copy, query.id, query.question);
  if (response === undefined) throw new Refused("not a response");
  for (const protocol of ["udp", "tcp"] as const) {
    const adapted = adaptResponse(response, query, protocol, { ageSeconds: 7 });
    if (adapted.length > responseBytesMax(query, protocol)) throw new Error("too large");
    if (parseUpstreamResponse(adapted, query.id, query.question) === undefined) throw new Error("malformed");
    decodeAddresses(adapted);
  }
}

fuzz({
  name: "dns",
  samples: [
    makeQuery("web.default.svc.cluster.local", "A", { payloadBytes: 4096 }),
    makeQuery("_http._tcp.many.default.svc.cluster.local", "SRV"),
    makeQuery("1.0.3.10.in-addr.arpa", "PTR", {}),
    encode({
      type: "response",
      id: 7,
      flags: 0x180,
      questions: [{ name: "www.example.com", type: "A" }],
      answers: [
        { name: "www.example.com", type: "CNAME", ttl: 30, data: "b.example.com" },
        { name: "b.example.com", type: "A", ttl: 30, data: "192.0.2.1" },
        { name: "b.example.com", type: "TXT", ttl: 30, data: ["a", "b"] },
        { name: "b.example.com", type: "SRV", ttl: 30, data: { port: 1, target: "c.example.com" } },
      ],
      authorities: [{ name: "example.com", type: "SOA", data: { mname: "a", rname: "b.c", minimum: 1 } }],
    }),
    Buffer.from(
      "00078180000100020000000003777777076578616d706c6503636f6d0000010001c00c000500010000001e0002c010c0100001000100000001000401020304",
      "hex",
    ),
  ],
  words: ["c00c", "c0ff", "ffff", "0000", "3f", "40", "00002904d000000000000c", "000029", "7fffffff", "ffffffff"].map(
    (hex) => Buffer.from(hex, "hex"),
  ),
  read(input) {
    const message = Buffer.from(input);
    const isResponse = message.length > 2 && (message[2]! & 0x80) !== 0;
    if (isResponse) adapt(message);
    else {
      handleQuery(message, "udp");
      handleQuery(message, "tcp");
    }
    return undefined;
  },
  isRefusal: (error) => error instanceof Refused,
});
