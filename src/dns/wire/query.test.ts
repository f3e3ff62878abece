import t from "tap";
import { makeQuery, toQuery } from "../../testing/dns/queries.ts";
import { encodeQuestion, isEncodableName, parseQuery, questionKey } from "./query.ts";

const query = makeQuery("Web.default.svc", "A");
const withByte = (offset: number, value: number): Buffer => {
  const bytes = Buffer.from(query);
  bytes[offset] = value;
  return bytes;
};
const withEdns = makeQuery("web", "AAAA", { payloadBytes: 100, version: 1, dnssecOk: true });

t.test("parseQuery() reads the question and the EDNS options", async (t) => {
  t.match(toQuery(query), { id: 7, name: "web.default.svc", type: 1, class: 1, edns: undefined, hasDotInLabel: false });
  t.match(toQuery(withEdns), { type: 28, edns: { payloadBytes: 512, version: 1, dnssecOk: true } });
  t.equal(toQuery(makeQuery("")).name, "");
  t.equal(toQuery(query).question.toString("latin1", 1, 4), "Web", "as the client sent it");
});

t.test("parseQuery() rejects what is not one question", async (t) => {
  const kind = (bytes: Buffer) => {
    const parsed = parseQuery(bytes);
    return parsed.kind === "error" ? parsed.rcode : parsed.kind;
  };
  const table: readonly (readonly [what: string, bytes: Buffer, result: number | string])[] = [
    ["an empty message", Buffer.alloc(0), "ignored"],
    ["a short header", query.subarray(0, 11), "ignored"],
    ["a response", withByte(2, 0x81), "ignored"],
    ["opcode UPDATE", withByte(2, 0x28), 4],
    ["opcode NOTIFY", withByte(2, 0x20), 4],
    ["no question", withByte(5, 0), 1],
    ["two questions", withByte(5, 2), 1],
    ["65,281 questions", withByte(4, 0xff), 1],
    ["an answer", withByte(7, 1), 1],
    ["an authority", withByte(9, 1), 1],
    ["five additional records", withByte(11, 5), 1],
    ["an additional record that is missing", withByte(11, 1), 1],
    ["a compression pointer", withByte(12, 0xc0), 1],
    ["a label of 64 bytes", withByte(12, 64), 1],
    ["a label beyond the end", withByte(12, 63), 1],
    ["a name without an end", query.subarray(0, 16), 1],
    ["a question without a class", query.subarray(0, query.length - 1), 1],
    [
      "an OPT record with a name",
      Buffer.concat([withEdns.subarray(0, -11), Buffer.from("0161"), withEdns.subarray(-11)]),
      1,
    ],
    ["an OPT record with too much data", Buffer.concat([withEdns.subarray(0, -1), Buffer.of(9)]), 1],
    ["a name of 256 bytes", makeQuery(`${"a".repeat(63)}.`.repeat(3) + "a".repeat(62)), 1],
  ];
  for (const [what, bytes, result] of table) t.equal(kind(bytes), result, what);
  t.equal(kind(makeQuery(`${"a".repeat(63)}.`.repeat(3) + "a".repeat(61))), "query", "a name of 255 bytes");
  const twice = Buffer.concat([withEdns, withEdns.subarray(-11)]);
  twice[11] = 2;
  t.equal(kind(twice), 1, "two OPT records");
});

t.test("questionKey() ignores the case of names, and nothing else", async (t) => {
  const key = (bytes: Buffer) => questionKey(toQuery(bytes));
  t.equal(key(makeQuery("a.B")), key(makeQuery("A.b")));
  t.not(key(makeQuery("a.b", "A")), key(makeQuery("a.b", "AAAA")));
  // A and a in the type.
  const [upper, lower] = [makeQuery("a"), makeQuery("a")];
  upper[upper.length - 3] = 0x41;
  lower[lower.length - 3] = 0x61;
  t.not(key(upper), key(lower));
  const single = makeQuery("aXb");
  single[14] = 0x2e;
  t.ok(toQuery(single).hasDotInLabel);
  t.not(key(single), key(makeQuery("a.b")), "one label with a dot is another name than two labels");
});

t.test("isEncodableName() accepts names that messages can contain", async (t) => {
  const long = `${"a".repeat(63)}.`.repeat(3);
  for (const name of ["", "a", "a.b", `${long}${"a".repeat(61)}`]) t.ok(isEncodableName(name), name);
  for (const name of [".", "a..b", "a.", "a".repeat(64), `${long}${"a".repeat(62)}`])
    t.notOk(isEncodableName(name), name);
  t.equal(encodeQuestion("", 1).toString("hex"), "0000010001");
});
