/** Request smuggling: requests that two servers could parse differently are rejected. */
import { once } from "node:events";
import { connect } from "node:tls";
import t, { type Test } from "tap";
import { readBody } from "../../http/body.ts";
import { textResponse } from "../../http/respond.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FLAG, frame, headerBlock, PREFACE, RawConnection, settings, TYPE } from "../../testing/http/test-frames.ts";

const pair = (await makeServerCertificate()).server;
const HIDDEN = "DELETE /hidden HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const LAST = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const BODY_MAX = 65_536;

interface TestListener {
  readonly listener: Listener;
  /** Requests that reached the handler, as `METHOD /path body`. */
  readonly seen: string[];
  /** Names of the headers of these requests. */
  readonly headers: string[];
}

async function startListener(t: Test): Promise<TestListener> {
  const seen: string[] = [];
  const headers: string[] = [];
  const listener = await listen({
    handler: async (request) => {
      const body = await readBody(request, BODY_MAX);
      seen.push(`${request.method} ${request.path} ${Buffer.from(body).toString()}`.trim());
      headers.push(...Object.keys(request.headers));
      return textResponse(200, "ok");
    },
    log: silentLogger,
    host: "127.0.0.1",
    tls: { cert: pair.cert, key: pair.key },
  });
  t.teardown(() => listener.close());
  return { listener, seen, headers };
}

/** Resolves to all bytes that the server sends until it closes the connection. */
async function send({ port }: Listener, bytes: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  let response = "";
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    response += chunk;
  });
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await once(socket, "secureConnect");
  socket.write(Buffer.from(bytes, "latin1"));
  await closed;
  return response;
}

const post = (headers: string, body: string): string => `POST /front HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;
const length = (body: string): string => `Content-Length: ${body.length}`;
const chunked = "Transfer-Encoding: chunked";
const none = "0\r\n\r\n";

/** By kind of malformation. None of them, and no request behind them, may reach the handler. */
const refused: Readonly<Record<string, string>> = {
  "CL.TE: a length, and chunks that end before": post(`${length(none + HIDDEN)}\r\n${chunked}`, none + HIDDEN),
  "TE.CL: chunks, and a length that ends before": post(`${chunked}\r\nContent-Length: 4`, `5c\r\n${HIDDEN}\r\n${none}`),
  "the same length twice": post("Content-Length: 0\r\nContent-Length: 0", HIDDEN),
  "a length behind another name": post("Content-Length: 0\r\nContent-Length\0: 5", HIDDEN),
  "a length of letters": post("Content-Length: zero", HIDDEN),
  "lengths that differ": post(`Content-Length: 0\r\n${length(HIDDEN)}`, HIDDEN),
  "a list of lengths": post("Content-Length: 0, 10", HIDDEN),
  "a length with a sign": post("Content-Length: +0", HIDDEN),
  "a negative length": post("Content-Length: -1", HIDDEN),
  "a length in hexadecimal": post("Content-Length: 0x0", HIDDEN),
  "a length of more than 64 bits": post("Content-Length: 18446744073709551616", HIDDEN),
  "a length with a blank in it": post("Content-Length: 1 0", HIDDEN),
  "no length at all": post("Content-Length:", HIDDEN),
  "a folded header": post(`X: a\r\n ${chunked}\r\nContent-Length: 0`, HIDDEN),
  "a folded encoding": post(`Transfer-Encoding:\r\n chunked\r\n${length(none + HIDDEN)}`, none + HIDDEN),
  "a blank before the colon": post(`Transfer-Encoding : chunked\r\n${length(none + HIDDEN)}`, none + HIDDEN),
  "a blank before the name": post(` ${chunked}`, none + HIDDEN),
  "an unknown encoding": post(`Transfer-Encoding: xchunked\r\n${length(none + HIDDEN)}`, none + HIDDEN),
  "chunks inside something else": post("Transfer-Encoding: chunked, identity", none + HIDDEN),
  "chunks twice": post(`${chunked}\r\nTransfer-Encoding: identity`, none + HIDDEN),
  "an encoding behind a control character": post(`Transfer-Encoding: \x0bchunked\r\n${length(none)}`, none + HIDDEN),
  "a size of a chunk that is no number": post(chunked, `0x0\r\n\r\n${HIDDEN}`),
  "a size of a chunk that is negative": post(chunked, `-1\r\n\r\n${HIDDEN}`),
  "a size of a chunk of more than 64 bits": post(chunked, `10000000000000000\r\n\r\n${HIDDEN}`),
  "a chunk longer than its size": post(chunked, `1\r\nab\r\n${none}${HIDDEN}`),
  "chunks that end with bare line feeds": post(chunked, `1\na\n0\n\n${HIDDEN}`),
  "an extension with a bare line feed": post(chunked, `1;a\nX\r\na\r\n${none}${HIDDEN}`),
  "headers that end with a bare carriage return": `POST /front HTTP/1.1\r\nHost: x\r\nX: a\r${chunked}\r\n\r\n${HIDDEN}`,
  "headers that end with bare line feeds": `POST /front HTTP/1.1\nHost: x\nContent-Length: 0\n\n${HIDDEN}`,
  "one bare line feed": `POST /front HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  "a NUL in a value": post("X: a\0b\r\nContent-Length: 0", HIDDEN),
  "a NUL in a name": post("X\0: a\r\nContent-Length: 0", HIDDEN),
  "a name of no characters": post(": a\r\nContent-Length: 0", HIDDEN),
  "a header without a colon": post("nonsense\r\nContent-Length: 0", HIDDEN),
  "two hosts": post("Host: y\r\nContent-Length: 0", HIDDEN),
  "no host": `POST /front HTTP/1.1\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  "an unknown version": `POST /front HTTP/1.2\r\nHost: x\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  "chunks in HTTP/1.0": `POST /front HTTP/1.0\r\nHost: x\r\n${chunked}\r\n${length(none)}\r\n\r\n${none}${HIDDEN}`,
  "another protocol's preface": `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`,
  "a blank in the target": `POST /front HTTP/1.1\x0b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  "a method of no letters": `@@@ /front HTTP/1.1\r\nHost: x\r\n\r\n${HIDDEN}`,
};

t.test("listen() rejects HTTP/1.1 requests with an ambiguous length or syntax", async (t) => {
  const { listener, seen } = await startListener(t);
  for (const [what, bytes] of Object.entries(refused)) {
    const response = await send(listener, bytes);
    t.match(response, /^HTTP\/1\.1 40[05] /, what);
    t.equal(response.match(/HTTP\/1\.1 \d/g)?.length, 1, `${what}: one response`);
    t.same(seen.splice(0), [], `${what}: no request reached the handler`);
  }
});

t.test("listen() reads unusual but valid HTTP/1.1 requests as RFC 9112 specifies", async (t) => {
  const { listener, seen } = await startListener(t);
  const allowed: Readonly<Record<string, readonly [string, ...string[]]>> = {
    "a length with blanks around it": [post("Content-Length: \t2 ", "ab"), "POST /front ab"],
    "an extension of a chunk": [post(chunked, `2;x=y\r\nab\r\n${none}`), "POST /front ab"],
    "headers behind the chunks": [post(chunked, `2\r\nab\r\n0\r\nX-Remote-User: root\r\n\r\n`), "POST /front ab"],
    "a body of a GET request": [
      `GET /front HTTP/1.1\r\nHost: x\r\n${length(HIDDEN)}\r\n\r\n${HIDDEN}`,
      `GET /front ${HIDDEN}`.trim(),
    ],
    "an empty line before the request": [`\r\n${post("Content-Length: 0", "")}`, "POST /front"],
  };
  for (const [what, [bytes, ...expected]] of Object.entries(allowed)) {
    await send(listener, bytes + LAST);
    t.same(seen.splice(0), [...expected, "GET /last"], what);
  }
});

t.test("listen() rejects header sections that are too large or have too many fields", async (t) => {
  const { listener, seen } = await startListener(t);
  const large = `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(2 ** 21)}\r\n\r\n`;
  t.match(await send(listener, large), /^HTTP\/1\.1 431 |^$/);
  t.match(
    await send(listener, `GET /${"a".repeat(2 ** 21)} HTTP/1.1\r\nHost: x\r\n\r\n`),
    /^HTTP\/1\.1 4(?:14|31) |^$/,
  );
  const many = Array.from({ length: 20_000 }, (_, i) => `X-${i}: a`).join("\r\n");
  t.match(await send(listener, `GET / HTTP/1.1\r\nHost: x\r\n${many}\r\n\r\n`), /^HTTP\/1\.1 431 |^$/);
  t.same(seen, []);
});

type Fields = readonly (readonly [string, string])[];
const get: Fields = [
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/front"],
  [":authority", "localhost"],
];
const without = (name: string): Fields => get.filter(([field]) => field !== name);

/** By kind of malformation, over HTTP/2. */
const malformed: Readonly<Record<string, Fields>> = {
  "a tunnel": [
    [":method", "CONNECT"],
    [":authority", "localhost:22"],
  ],
  "a tunnel with a path": [[":method", "CONNECT"], ...without(":method")],
  "another protocol": [[":method", "CONNECT"], ...without(":method"), [":protocol", "websocket"]],
  "two hosts": [...get, [":authority", "elsewhere.example"]],
  "a path that is a URL": [...without(":path"), [":path", "https://elsewhere.example/hidden"]],
  "a path that is no path": [...without(":path"), [":path", "front"]],
  "two paths": [...get, [":path", "/hidden"]],
  "two methods": [...get, [":method", "DELETE"]],
  "no path": without(":path"),
  "an empty path": [...without(":path"), [":path", ""]],
  "no method": without(":method"),
  "no scheme": without(":scheme"),
  "a path after other fields": [...without(":path"), ["x", "y"], [":path", "/hidden"]],
  "a path with the rest of a request": [...without(":path"), [":path", "/front HTTP/1.1\r\nX: y"]],
  "a method with the rest of a request": [...without(":method"), [":method", "GET /hidden HTTP/1.1\r\n"]],
  "a status": [...get, [":status", "200"]],
  "an unknown pseudo-header field": [...get, [":user", "root"]],
  capitals: [...get, ["X-Remote-User", "root"]],
  chunks: [...get, ["transfer-encoding", "chunked"]],
  "a connection": [...get, ["connection", "x-remote-user"]],
  "lengths that differ": [...get, ["content-length", "0"], ["content-length", "5"]],
  "more data than the content-length": [...get, ["content-length", "1"]],
};

t.test("listen() rejects malformed pseudo-header fields and lengths over HTTP/2", async (t) => {
  const { listener, seen } = await startListener(t);
  for (const [what, fields] of Object.entries(malformed)) {
    await using connection = await RawConnection.open(listener.port);
    const head = frame(TYPE.headers, FLAG.endHeaders, 1, headerBlock(fields));
    connection.send(PREFACE, settings(), head, frame(TYPE.data, FLAG.endStream, 1, Buffer.from("hello")));
    const isOver = ({ frames }: RawConnection): boolean =>
      frames.some(
        ({ type, stream, flags }) =>
          type === TYPE.reset || type === TYPE.goaway || (stream === 1 && (flags & FLAG.endStream) !== 0),
      );
    await connection.until(isOver);
    t.ok(connection.closed || isOver(connection), `${what}: the stream or connection is closed`);
    t.same(seen.splice(0), [], `${what}: no request reached the handler`);
  }
});

t.test("listen() drops HTTP/2 fields with CR, LF or NUL", async (t) => {
  const { listener, seen, headers } = await startListener(t);
  const bad: Fields = [
    ["x-value", "a\r\nx-remote-user: root"],
    ["x-name\r\nx-remote-user", "root"],
    ["x-nul", "a\0b"],
  ];
  await using connection = await RawConnection.open(listener.port);
  const head = frame(TYPE.headers, FLAG.endHeaders | FLAG.endStream, 1, headerBlock([...get, ...bad, ["x-good", "a"]]));
  connection.send(PREFACE, settings(), head);
  await connection.until(({ frames }) => frames.some(({ type }) => type === TYPE.data));
  t.same(seen, ["POST /front"]);
  t.same(
    headers.filter((name) => name.startsWith("x-")),
    ["x-good"],
  );
});

t.test("listen() serves pipelined requests in order, and at most 100 behind one that is unfinished", async (t) => {
  const { listener, seen } = await startListener(t);
  const first = post("Content-Length: 2", "ab");
  await send(listener, `${first}${post("Content-Length: 0", "")}${LAST}`);
  t.same(seen.splice(0), ["POST /front ab", "POST /front", "GET /last"], "in their order");
  const endless = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(5000);
  await send(listener, `${post("Content-Length: 3", "abc")}${endless}`);
  t.ok(seen.length <= 101, `${seen.length} at most`);
});
