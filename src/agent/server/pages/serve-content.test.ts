import { utimesSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { makeRequest } from "../../../http/request.ts";
import { serveNodeLogs } from "./node-logs.ts";

const MODIFIED = "Wed, 01 Jan 2020 00:00:00 GMT";
const [EARLIER, LATER] = ["Tue, 31 Dec 2019 23:59:59 GMT", "Wed, 01 Jan 2020 00:00:01 GMT"];

t.test("conditions and ranges of requests for a file are met as by Go's file server", async (t) => {
  const root = t.testdir({ "a.log": "abcdef", "empty.log": "" });
  for (const name of ["a.log", "empty.log", "."]) utimesSync(join(root, name), new Date(MODIFIED), new Date(MODIFIED));
  const send = async (name: string, headers: Readonly<Record<string, string>>, method = "GET") => {
    const response = await serveNodeLogs(root, makeRequest({ method, path: `/logs/${name}`, headers }));
    const chunks: Uint8Array[] = [];
    const { body } = response;
    for await (const chunk of body instanceof Uint8Array ? [body] : body) chunks.push(chunk);
    return { ...response, text: Buffer.concat(chunks).toString() };
  };
  for (const [headers, status, text] of [
    [{}, 200, "abcdef"],
    [{ "if-modified-since": MODIFIED }, 304, ""],
    [{ "if-modified-since": EARLIER }, 200, "abcdef"],
    [{ "if-modified-since": "x" }, 200, "abcdef"],
    [{ "if-unmodified-since": MODIFIED }, 200, "abcdef"],
    [{ "if-unmodified-since": EARLIER }, 412, ""],
    [{ "if-none-match": "*" }, 304, ""],
    [{ "if-none-match": '"x", W/"y", *' }, 304, ""],
    [{ "if-none-match": '"x"' }, 200, "abcdef"],
    // Instead of the time.
    [{ "if-none-match": "x", "if-modified-since": LATER }, 200, "abcdef"],
    [{ "if-match": "*" }, 200, "abcdef"],
    [{ "if-match": '"x"' }, 412, ""],
    [{ range: "bytes=1-2" }, 206, "bc"],
    [{ range: "bytes=9-" }, 416, "invalid range: failed to overlap\n"],
    [{ range: "x" }, 416, "invalid range\n"],
    [{ range: "bytes=0-5,0-5" }, 200, "abcdef"],
    [{ range: "bytes=1-2", "if-range": MODIFIED }, 206, "bc"],
    [{ range: "bytes=1-2", "if-range": LATER }, 200, "abcdef"],
    [{ range: "bytes=1-2", "if-range": '"x"' }, 200, "abcdef"],
  ] as const) {
    const response = await send("a.log", headers);
    t.same([response.status, response.text], [status, text], JSON.stringify(headers));
  }
  t.match((await send("a.log", { range: "bytes=1-2" })).headers, {
    ...{ "content-range": "bytes 1-2/6", "content-length": "2", "accept-ranges": "bytes", "last-modified": MODIFIED },
    "content-type": "text/plain; charset=utf-8",
  });
  t.same((await send("a.log", { range: "bytes=9-" })).headers["content-range"], "bytes */6");
  const { headers, text } = await send("a.log", { range: "bytes=0-0,4-" });
  const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{60})$/.exec(String(headers["content-type"]))?.[1];
  const part = (range: string, data: string): string =>
    `--${boundary}\r\nContent-Range: bytes ${range}/6\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${data}\r\n`;
  t.equal(text, `${part("0-0", "a")}${part("4-5", "ef")}--${boundary}--\r\n`);
  t.match(await send("empty.log", { range: "bytes=0-1" }), { status: 200, headers: { "content-length": "0" } });
  t.match(await send("a.log", {}, "HEAD"), { status: 200, text: "", headers: { "content-length": "6" } });
  // Of a directory only the time counts.
  t.equal((await send("", { "if-modified-since": MODIFIED })).status, 304);
  t.equal((await send("", { "if-none-match": "*", range: "bytes=0-1" })).status, 200);
});
