import { decode } from "dns-packet";
import t from "tap";
import { makeQuery, toQuery } from "../../testing/dns/queries.ts";
import { encodeErrorHeader, encodeResponse, type ResourceRecord, responseBytesMax } from "./response.ts";

const NAME = "web.default.svc.cluster.local";
const none = { rcode: 0, authoritative: true, answers: [], authorities: [], additionals: [] };
const addresses = (count: number): ResourceRecord[] =>
  Array.from({ length: count }, (_, i) => ({ name: NAME, type: "A", ttl: 30, data: `10.1.0.${i & 255}` }));
const pod = (i: number) => `pod-${i}.${NAME}`;
const srv = (count: number): ResourceRecord[] =>
  Array.from({ length: count }, (_, i) => ({
    name: `_http._tcp.${NAME}`,
    type: "SRV",
    ttl: 30,
    data: { priority: 0, weight: 1, port: 80, target: pod(i) },
  }));

t.test("encodeResponse() repeats the question and encodes every type of record", async (t) => {
  const query = toQuery(makeQuery("Web.Default.svc.cluster.local", "A"));
  const soa = { mname: "ns.a", rname: "host.a", serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 5 };
  const answers: readonly ResourceRecord[] = [
    { name: NAME, type: "A", ttl: 30, data: "10.1.0.1" },
    { name: NAME, type: "AAAA", ttl: 30, data: "fd00::1" },
    { name: "other.example", type: "CNAME", ttl: 30, data: "target.example" },
    { name: "x.other.example", type: "TXT", ttl: 30, data: "1.1.0" },
    { name: "7.in-addr.arpa", type: "PTR", ttl: 30, data: NAME },
    { name: "", type: "NS", ttl: 30, data: "ns.a" },
    { name: NAME, type: "HINFO", ttl: 30, data: { cpu: "RFC8482", os: "" } },
  ];
  const authorities: readonly ResourceRecord[] = [{ name: "svc.cluster.local", type: "SOA", ttl: 5, data: soa }];
  const bytes = encodeResponse(query, { ...none, answers, authorities }, "udp");
  const decoded = decode(bytes);
  t.match(decoded, { id: 7, flag_qr: true, flag_aa: true, flag_rd: true, flag_ra: true, flag_tc: false });
  t.equal(decoded.questions?.[0]?.name, "Web.Default.svc.cluster.local");
  t.match(
    decoded.answers?.map((each) => ("data" in each ? each.data : undefined)),
    ["10.1.0.1", "fd00::1", "target.example", [Buffer.from("1.1.0")], NAME, "ns.a", { cpu: "RFC8482" }],
  );
  t.same(
    decoded.answers?.map(({ name }) => name.toLowerCase()),
    answers.map(({ name }) => name || "."),
  );
  t.match(decoded.authorities?.[0], { name: "svc.cluster.local", ttl: 5, data: soa });
});

t.test("encodeResponse() compresses names, leaves out what does not fit and marks it", async (t) => {
  const plain = toQuery(makeQuery(NAME));
  const fits = encodeResponse(plain, { ...none, answers: addresses(28) }, "udp");
  t.ok(fits.length <= 512);
  t.match(decode(fits), { flag_tc: false, answers: { length: 28 } });
  const cut = encodeResponse(plain, { ...none, answers: addresses(40) }, "udp");
  t.ok(cut.length <= 512);
  t.match(decode(cut), { flag_tc: true, answers: { length: 29 } });
  t.match(decode(encodeResponse(plain, { ...none, answers: addresses(40) }, "tcp")), { answers: { length: 40 } });
  const large = toQuery(makeQuery(NAME, "A", { payloadBytes: 4096 }));
  const limited = encodeResponse(large, { ...none, answers: addresses(200) }, "udp");
  t.ok(limited.length <= 1232, "at most 1232 bytes, whatever the client accepts");
  t.match(decode(limited), { flag_tc: true, additionals: [{ type: "OPT", udpPayloadSize: 1232 }] });
});

t.test("encodeResponse() encodes no more records than fit, of more than a message can count", async (t) => {
  const query = toQuery(makeQuery(NAME));
  for (const protocol of ["udp", "tcp"] as const) {
    const bytes = encodeResponse(query, { ...none, answers: addresses(100_000), additionals: addresses(1) }, protocol);
    t.ok(bytes.length <= responseBytesMax(query, protocol));
    t.match(decode(bytes), { flag_tc: true, additionals: { length: 0 } });
  }
});

t.test("encodeResponse() leaves out additional records without marking the response", async (t) => {
  const query = toQuery(makeQuery(`_http._tcp.${NAME}`, "SRV"));
  const additionals = Array.from(
    { length: 9 },
    (_, i) => ({ name: pod(i), type: "A", ttl: 30, data: "10.1.0.1" }) as const,
  );
  const bytes = encodeResponse(query, { ...none, answers: srv(7), additionals }, "udp");
  t.ok(bytes.length <= 512);
  const { flag_tc: truncated, answers, additionals: kept } = decode(bytes);
  t.equal(truncated, false);
  t.equal(answers?.length, 7);
  t.ok(kept!.length < 9);
  t.match(decode(encodeResponse(query, { ...none, answers: srv(600), additionals: [] }, "tcp")), { flag_tc: false });
  const most = encodeResponse(query, { ...none, answers: srv(2000) }, "tcp");
  t.ok(most.length <= 65_535);
  t.match(decode(most), { flag_tc: true });
});

t.test("encodeResponse() sends the upper bits of the code with EDNS", async (t) => {
  const query = toQuery(makeQuery(NAME, "A", { version: 1, dnssecOk: true }));
  const { additionals } = decode(encodeResponse(query, { ...none, rcode: 16 }, "udp"));
  t.match(additionals, [{ type: "OPT", extendedRcode: 1, ednsVersion: 0, flag_do: true }]);
});

t.test("encodeErrorHeader() repeats the ID and the opcode", async (t) => {
  const bytes = encodeErrorHeader(258, 0x2900, 4);
  t.equal(bytes.toString("hex"), "0102a9040000000000000000");
});
