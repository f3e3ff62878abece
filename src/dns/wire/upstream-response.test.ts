import { type Answer, decode, encode } from "dns-packet";
import t from "tap";
import { makeQuery, toQuery } from "../../testing/dns/queries.ts";
import { decodeAddresses } from "./decode-addresses.ts";
import { adaptResponse, parseUpstreamResponse } from "./upstream-response.ts";

const query = toQuery(makeQuery("wWw.example.com", "A"));
const opt: Answer = {
  name: ".",
  type: "OPT",
  udpPayloadSize: 4096,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};
const address = (last: number, ttl = 300): Answer => ({
  name: "www.example.com",
  type: "A",
  ttl,
  data: `192.0.2.${last}`,
});
const soa = (ttl: number, minimum: number): Answer => ({
  name: "example.com",
  type: "SOA",
  ttl,
  data: { mname: "ns.example.com", rname: "host.example.com", minimum },
});

interface Sections {
  readonly flags?: number;
  readonly answers?: Answer[];
  readonly authorities?: Answer[];
  readonly additionals?: Answer[];
}

function respond({ flags = 0x180, ...sections }: Sections): Buffer {
  return encode({ type: "response", id: 9, flags, questions: [{ name: "www.example.com", type: "A" }], ...sections });
}

const parse = (bytes: Buffer) => parseUpstreamResponse(bytes, 9, query.question);

t.test("parseUpstreamResponse() computes how long a response may be cached", async (t) => {
  const table: readonly (readonly [what: string, sections: Sections, ttl: number])[] = [
    ["the smallest TTL of the answers", { answers: [address(1, 300), address(2, 60)] }, 60],
    ["no records", {}, 0],
    ["no such name, without SOA", { flags: 0x183 }, 0],
    ["no such name: the TTL of the SOA record", { flags: 0x183, authorities: [soa(10, 900)] }, 10],
    ["no such name: the minimum of the SOA record", { flags: 0x183, authorities: [soa(900, 20)] }, 20],
    ["no records of the type", { authorities: [soa(30, 30)] }, 30],
    ["a failure", { flags: 0x182, authorities: [soa(30, 30)] }, 0],
    ["a TTL with the highest bit", { answers: [address(1, 0x80000001)] }, 0],
  ];
  for (const [what, sections, ttl] of table) t.equal(parse(respond(sections))?.ttl, ttl, what);
});

t.test("parseUpstreamResponse() accepts only responses to the query", async (t) => {
  const good = respond({ answers: [address(1)] });
  t.ok(parse(good));
  const table: readonly (readonly [what: string, offset: number, value: number])[] = [
    ["another ID", 1, 8],
    ["a query", 2, 0x01],
    ["another opcode", 2, 0xa1],
    ["no question", 5, 0],
    ["another name", 13, 0x78],
    ["another type", 12 + 17 + 1, 28],
    ["more records than there are", 7, 2],
  ];
  for (const [what, offset, value] of table) {
    const bytes = Buffer.from(good);
    bytes[offset] = value;
    t.equal(parse(bytes), undefined, what);
  }
  for (let length = 0; length < good.length; length++) t.equal(parse(good.subarray(0, length)), undefined, `${length}`);
});

t.test("adaptResponse() passes records on, with TTLs that decrease and the client's question", async (t) => {
  const txt: Answer = { name: "www.example.com", type: "TXT", ttl: 100, data: "x" };
  const response = parse(respond({ answers: [address(1), address(2, 40)], additionals: [txt, opt, txt] }))!;
  const bytes = adaptResponse(response, query, "udp", { ageSeconds: 50 });
  const decoded = decode(bytes);
  t.match(decoded, { id: 7, flag_aa: false, flag_ra: true, flag_rd: true, flag_tc: false });
  t.equal(decoded.questions?.[0]?.name, "wWw.example.com");
  t.match(decoded.answers, [{ ttl: 250, data: "192.0.2.1" }, { ttl: 0 }]);
  t.match(decoded.additionals, [{ type: "TXT", ttl: 50 }], "records after OPT are dropped");
  const stale = adaptResponse(response, query, "udp", { ageSeconds: 9999, ttlMin: 30, ttlMax: 30 });
  t.match(decode(stale).answers, [{ ttl: 30 }, { ttl: 30 }]);
  const withEdns = toQuery(makeQuery("www.example.com", "A", {}));
  t.match(decode(adaptResponse(response, withEdns, "udp", { ageSeconds: 0 })).additionals, [{}, { type: "OPT" }]);
});

t.test("adaptResponse() leaves out what does not fit, and marks it", async (t) => {
  const answers = Array.from({ length: 60 }, (_, i) => address(i));
  const response = parse(respond({ answers, authorities: [soa(9, 9)], additionals: [address(9)] }))!;
  const cut = adaptResponse(response, query, "udp", { ageSeconds: 0 });
  t.ok(cut.length <= 512);
  t.match(decode(cut), { flag_tc: true, answers: { length: 15 }, authorities: { length: 0 } });
  t.match(decode(adaptResponse(response, query, "tcp", { ageSeconds: 0 })), {
    flag_tc: false,
    answers: { length: 60 },
    authorities: { length: 1 },
    additionals: { length: 1 },
  });
  const few = parse(respond({ answers: answers.slice(0, 14), additionals: [address(8), address(9)] }))!;
  t.match(decode(adaptResponse(few, query, "udp", { ageSeconds: 0 })), { flag_tc: false, answers: { length: 14 } });
});

t.test("decodeAddresses() keeps addresses and CNAME records that can be encoded again", async (t) => {
  const answers: Answer[] = [
    { name: "www.example.com", type: "CNAME", ttl: 5, data: "b.example" },
    { name: "b.example", type: "A", ttl: 5, data: "192.0.2.1" },
    { name: "b.example", type: "TXT", ttl: 5, data: "x" },
    { name: "c\u00fc.example", type: "A", ttl: 5, data: "192.0.2.2" },
  ];
  t.same(
    decodeAddresses(respond({ answers })).map(({ type, data }) => `${type} ${data}`),
    ["CNAME b.example", "A 192.0.2.1"],
  );
  t.same(decodeAddresses(respond({ answers }).subarray(0, 60)), []);
});
