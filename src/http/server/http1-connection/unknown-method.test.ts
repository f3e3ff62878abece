import { PassThrough } from "node:stream";
import t from "tap";
import { parseUnknownMethod } from "./unknown-method.ts";

function parse(text: string) {
  const rawPacket = Buffer.from(text, "latin1");
  const error = Object.assign(new Error("Parse Error"), { code: "HPE_INVALID_METHOD", rawPacket, bytesParsed: 0 });
  return parseUnknownMethod(error, new PassThrough(), 64 * 1024);
}

t.test("parseUnknownMethod() reads the request line and headers, without the space around values", (t) => {
  const request = parse("FOO /api?a=b HTTP/1.1\r\nHost:a\r\nX-A: \t b c \t\r\nX-a: d\r\nEmpty:  \r\n\r\nbody");
  t.match(request, { method: "FOO", url: "/api?a=b" });
  t.match(request?.headers, { host: "a", "x-a": "b c", empty: "" });
  t.same(request?.rawHeaders.slice(-4), ["X-a", "d", "Empty", ""]);
  t.end();
});

t.test("parseUnknownMethod() refuses malformed requests, long runs of space among them, in linear time", (t) => {
  const spaces = " ".repeat(60_000);
  const heads = [
    "FOO /api HTTP/2.0\r\n\r\n",
    "FOO api HTTP/1.1\r\n\r\n",
    "F(O /api HTTP/1.1\r\n\r\n",
    "FOO /api HTTP/1.1\r\nno header\r\n\r\n",
    "FOO /api HTTP/1.1\r\nHost: a",
    `FOO /api HTTP/1.1\r\nX:${spaces}\x01\r\n\r\n`,
    `FOO /api HTTP/1.1\r\n${spaces}:\r\n\r\n`,
    `FOO ${spaces} HTTP/1.1\r\n\r\n`,
    `FOO /${"a".repeat(60_000)} HTTP/1.1\r\n\r\n`,
  ];
  for (const head of heads) t.equal(parse(head), undefined, JSON.stringify(head.slice(0, 40)));
  t.equal(parse(`FOO /api HTTP/1.1\r\nX:${spaces}\r\n\r\n`)?.headers.x, "");
  t.end();
});
