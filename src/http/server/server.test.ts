import { EventEmitter, once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { request as httpsRequest } from "node:https";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { readBody } from "../body.ts";
import { HttpError } from "../http-error.ts";
import type { Handler, HttpRequest } from "../message.ts";
import { bytesResponse, jsonResponse, textResponse } from "../respond.ts";
import type { Listener } from "./listener.ts";
import { type ListenOptions, listen } from "./server.ts";

const { ca, server } = await makeServerCertificate();
const tls = { cert: server.cert, key: server.key };

/** A handler whose requests a test can inspect and delay. */
class Probe extends EventEmitter<{ request: [HttpRequest]; aborted: [] }> {
  readonly handler: Handler = async (request) => {
    this.emit("request", request);
    switch (request.path) {
      case "/echo":
        return bytesResponse(200, "application/octet-stream", await readBody(request, 1_000_000), {
          "x-query": request.query,
        });
      case "/limited":
        return bytesResponse(200, "application/octet-stream", await readBody(request, 10));
      case "/headers":
        return jsonResponse(200, { ...request.headers, certificates: request.peer.certificates.length });
      case "/large":
        return bytesResponse(200, "application/octet-stream", [Buffer.alloc(5_000_000, 1), Buffer.alloc(100, 2)]);
      case "/stream":
        return bytesResponse(
          200,
          "text/plain",
          ticks(request.signal, () => this.emit("aborted")),
        );
      case "/broken":
        return bytesResponse(200, "text/plain", breaking());
      case "/throw":
        throw new Error("secret");
      case "/teapot":
        throw new HttpError(418, "Teapot", "short and stout");
      case "/injected":
        return textResponse(200, "x", { "x-bad": "a\r\nset-cookie: b" });
      case "/closing":
        return textResponse(200, "bye", { connection: "close" });
      case "/hop":
        return textResponse(200, "x", { connection: "keep-alive", "transfer-encoding": "chunked" });
      case "/hang":
        await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
        this.emit("aborted");
        return textResponse(200, "late");
      default:
        return textResponse(request.method === "HEAD" ? 200 : 404, "not here");
    }
  };
}

async function* ticks(signal: AbortSignal, aborted: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield Buffer.from("tick\n");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  } finally {
    aborted();
  }
}

async function* breaking(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("half");
  await new Promise((resolve) => setTimeout(resolve, 20));
  throw new Error("the other half is missing");
}

async function serve(t: Test, options: Partial<ListenOptions> = {}): Promise<{ listener: Listener; probe: Probe }> {
  const probe = new Probe();
  const listener = await listen({ handler: probe.handler, log: silentLogger, host: "127.0.0.1", tls, ...options });
  t.teardown(() => listener.close());
  return { listener, probe };
}

function session(t: Test, port: number, options = {}): ClientHttp2Session {
  const client = connect(`https://localhost:${port}`, {
    ca: ca.cert,
    host: "127.0.0.1",
    servername: "localhost",
    ...options,
  });
  client.on("error", () => {});
  t.teardown(() => client.destroy());
  return client;
}

interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

async function request(client: ClientHttp2Session, headers: Record<string, string>, body?: string): Promise<Response> {
  const stream = client.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [response] = (await once(stream, "response")) as [Record<string, unknown>];
  return { status: Number(response[":status"]), headers: response, body: await textOf(stream) };
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString();
}

async function requestHttp1(
  port: number,
  path: string,
  options: { method?: string; body?: string; secure?: boolean } = {},
): Promise<Response> {
  const target = { host: "127.0.0.1", port, path, method: options.method ?? "GET" };
  const request =
    options.secure === false ? httpRequest(target) : httpsRequest({ ...target, ca: ca.cert, servername: "localhost" });
  request.end(options.body);
  const [incoming] = await once(request, "response");
  return { status: incoming.statusCode, headers: incoming.headers, body: await textOf(incoming) };
}

async function raw(port: number, bytes: string): Promise<string> {
  const socket = connectTcp(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(bytes);
  const chunks: Uint8Array[] = [];
  socket.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}

t.test("listen() serves HTTP/2 and HTTP/1.1 on one port", async (t) => {
  const { listener, probe } = await serve(t);
  const client = session(t, listener.port);
  probe.once("request", (request) => {
    t.match(request, { method: "POST", path: "/echo", query: "a=b", peer: { encrypted: true, address: "127.0.0.1" } });
    t.equal(request.headers.host, `localhost:${listener.port}`);
    t.notOk(Object.keys(request.headers).some((name) => name.startsWith(":")));
  });
  const second = await request(client, { ":method": "POST", ":path": "/echo?a=b" }, "hello");
  t.match(second, { status: 200, body: "hello", headers: { "content-length": "5", "x-query": "a=b" } });
  t.match(await requestHttp1(listener.port, "/echo", { method: "PUT", body: "one" }), { status: 200, body: "one" });
  t.match(await requestHttp1(listener.port, "/x", { method: "HEAD" }), {
    status: 200,
    body: "",
    headers: { "content-length": "8" },
  });
  t.match(await request(client, { ":method": "HEAD", ":path": "/x" }), { status: 200, body: "" });
  const large = await request(client, { ":path": "/large" });
  t.equal(large.body.length, 5_000_100);
  t.equal((await requestHttp1(listener.port, "/large")).body.length, 5_000_100);
});

t.test("listen() does not send hop-by-hop headers, nor header values with line breaks", async (t) => {
  const { listener } = await serve(t);
  const client = session(t, listener.port);
  const hop = await request(client, { ":path": "/hop" });
  t.match(hop, { status: 200, body: "x" });
  t.equal(hop.headers.connection, undefined);
  t.equal(hop.headers["transfer-encoding"], undefined);
  for (const response of [
    await request(client, { ":path": "/injected" }),
    await requestHttp1(listener.port, "/injected"),
  ]) {
    t.equal(response.status, 500);
    t.equal(response.headers["set-cookie"], undefined);
  }
});

t.test("listen() responds to an exception of a handler with a Status without its message", async (t) => {
  const { listener } = await serve(t);
  const client = session(t, listener.port);
  for (const response of [await request(client, { ":path": "/throw" }), await requestHttp1(listener.port, "/throw")]) {
    t.equal(response.status, 500);
    t.match(JSON.parse(response.body), { kind: "Status", reason: "InternalError", code: 500 });
    t.notMatch(response.body, /secret/);
  }
  t.match(await request(client, { ":path": "/teapot" }), { status: 418, body: /stout/ });
});

t.test("listen() responds before a body that is too long has been sent", async (t) => {
  const { listener } = await serve(t);
  const client = session(t, listener.port);
  const stream = client.request({ ":method": "POST", ":path": "/limited" });
  stream.on("error", () => {});
  stream.write(Buffer.alloc(100));
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  t.equal(headers[":status"], 413);
  stream.resume();
  await once(stream, "close");
  t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
  t.match(
    await request(client, { ":method": "POST", ":path": "/limited" }, "short"),
    { status: 200 },
    "the connection stays open",
  );
  const refused = await requestHttp1(listener.port, "/limited", { method: "POST", body: "x".repeat(100) });
  t.match(refused, { status: 413, headers: { connection: /close|keep-alive/ } });
});

t.test("listen() aborts the request's signal and ends the response body when the client disconnects", async (t) => {
  const { listener, probe } = await serve(t);
  const client = session(t, listener.port);
  const stream = client.request({ ":path": "/stream" });
  t.match(String((await once(stream, "data"))[0]), "tick");
  const over = once(probe, "aborted");
  stream.close(constants.NGHTTP2_CANCEL);
  await over;
  const request = httpsRequest({
    host: "127.0.0.1",
    port: listener.port,
    path: "/stream",
    ca: ca.cert,
    servername: "localhost",
  });
  request.on("error", () => {});
  request.end();
  const [incoming] = await once(request, "response");
  incoming.on("error", () => {});
  await once(incoming, "data");
  const overToo = once(probe, "aborted");
  request.destroy();
  await overToo;
});

t.test("listen() resets the stream when a response body fails in the middle", async (t) => {
  const { listener } = await serve(t);
  const stream = session(t, listener.port).request({ ":path": "/broken" });
  await t.rejects(textOf(stream), { code: "ERR_HTTP2_STREAM_ERROR" });
  await t.rejects(requestHttp1(listener.port, "/broken"), { code: "ECONNRESET" });
});

t.test("listen() responds to malformed requests with 400 and keeps serving", async (t) => {
  const { listener } = await serve(t, { tls: undefined, limits: { headerBytes: 16_384 } });
  const hostile = [
    "\0\0\0\0\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ];
  for (const bytes of hostile) t.match(await raw(listener.port, bytes), /^HTTP\/1\.1 400 /, JSON.stringify(bytes));
  const bodyOf = async (bytes: string): Promise<string> => (await raw(listener.port, bytes)).split("\r\n\r\n")[1]!;
  t.equal(await bodyOf("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"), "400 Bad Request");
  t.equal(await bodyOf("GET / HTTP/1.1\r\n\r\n"), "400 Bad Request: missing required Host header");
  t.equal(await bodyOf("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), "400 Bad Request: too many Host headers");
  const oversized = `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`;
  t.match(await raw(listener.port, oversized), /^HTTP\/1\.1 431 /);
  t.match(await requestHttp1(listener.port, "/echo", { secure: false }), { status: 200 });
});

t.test("listen() responds to malformed HTTP/2 requests with 400 and refuses oversized headers", async (t) => {
  const { listener } = await serve(t);
  const client = session(t, listener.port);
  for (const path of ["/%zz", "/%", "/x%2"]) t.match(await request(client, { ":path": path }), { status: 400 }, path);
  const stream = session(t, listener.port).request({ ":path": "/echo", "x-large": "a".repeat(80_000) });
  await t.rejects(once(stream, "response"));
  t.match(await request(client, { ":path": "/headers", cookie: "a=b" }), { status: 200, body: /"cookie":"a=b"/ });
});

t.test("listen() keeps serving after aborted handshakes, garbage, and plain HTTP on its TLS port", async (t) => {
  const { listener } = await serve(t);
  const plain = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
  for (const [bytes, expected] of [
    ["\x16\x03\x01\x02\x00\x01\x00", ""],
    ["garbage", ""],
    ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", plain],
  ] as const) {
    const socket = connectTcp(listener.port, "127.0.0.1");
    let received = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    socket.write(bytes);
    if (bytes.startsWith("\x16")) socket.end();
    await once(socket, "close");
    if (expected !== "") t.equal(received, expected);
  }
  const unknown = connectTls({
    host: "127.0.0.1",
    port: listener.port,
    ca: ca.cert,
    servername: "localhost",
    ALPNProtocols: ["gopher"],
  });
  await t.rejects(once(unknown, "secureConnect"));
  const silent = connectTls({
    host: "127.0.0.1",
    port: listener.port,
    ca: ca.cert,
    servername: "localhost",
    ALPNProtocols: ["h2"],
  });
  await once(silent, "secureConnect");
  silent.on("error", () => {});
  silent.end("not a preface, in spite of ALPN");
  silent.resume();
  await once(silent, "close");
  t.match(await request(session(t, listener.port), { ":path": "/echo" }), { status: 200 });
});

t.test("listen() closes connections that do not finish their headers in time", async (t) => {
  const { listener } = await serve(t, { limits: { headerTimeoutMs: 200 } });
  const socket = connectTls({ host: "127.0.0.1", port: listener.port, ca: ca.cert, servername: "localhost" });
  await once(socket, "secureConnect");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  t.match(await textOf(socket), /^HTTP\/1\.1 408 /);
});

t.test("listen() closes idle HTTP/2 connections", async (t) => {
  const { listener } = await serve(t, { limits: { idleTimeoutMs: 40 } });
  const client = session(t, listener.port);
  const stream = client.request({ ":path": "/stream" });
  await once(stream, "data");
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(client.closed, false, "a watch is not idle");
  stream.close(constants.NGHTTP2_CANCEL);
  await once(client, "close");
});

t.test("listen() closes the connection of a client that resets requests faster than they are handled", async (t) => {
  const { listener, probe } = await serve(t, { limits: { streamsPerConnection: 20 } });
  let running = 0;
  let most = 0;
  probe.on("request", () => {
    most = Math.max(most, ++running);
  });
  const stuck = session(t, listener.port);
  await once(stuck, "remoteSettings");
  // The handler ignores its signal: it runs on after the reset.
  const closed = new Promise((resolve) => stuck.once("close", resolve));
  for (let turn = 0; turn < 200 && !stuck.destroyed; turn++) {
    for (let burst = 0; burst < 20 && !stuck.destroyed; burst++) {
      const stream = stuck.request({ ":path": "/hang", ":method": "POST" });
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_CANCEL);
    }
    await new Promise(setImmediate);
  }
  await closed;
  t.ok(most <= 2000, `${most} handlers ran`);
  t.match(await request(session(t, listener.port), { ":path": "/echo" }), { status: 200 });
});

t.test("listen() passes the client's certificate on unverified, and none when there is none", async (t) => {
  const other = await makeCertificate({ subject: [{ CN: ["other"] }], authority: {} });
  const intermediate = await makeCertificate({ subject: [{ CN: ["between"] }], issuer: ca, authority: {} });
  const deep = await makeCertificate({ subject: [{ CN: ["deep"] }], issuer: intermediate, usages: [CLIENT_AUTH] });
  const untrusted = await makeCertificate({ subject: [{ CN: ["untrusted"] }], issuer: other, usages: [CLIENT_AUTH] });
  const { listener, probe } = await serve(t, { tls: { ...tls, ca: ca.cert, requestCert: true } });
  const seen: (readonly Uint8Array[])[] = [];
  probe.on("request", (request) => seen.push(request.peer.certificates));
  await request(session(t, listener.port), { ":path": "/headers" });
  await request(session(t, listener.port, { cert: untrusted.cert, key: untrusted.key }), { ":path": "/headers" });
  await request(session(t, listener.port, { cert: deep.cert + intermediate.cert, key: deep.key }), {
    ":path": "/headers",
  });
  t.equal(seen[0]?.length, 0);
  t.ok(Buffer.from(seen[1]![0]!).equals(untrusted.der));
  t.ok(Buffer.from(seen[2]![0]!).equals(deep.der));
  t.ok(Buffer.from(seen[2]![1]!).equals(intermediate.der));
});

t.test(
  "Listener.reloadTls() changes the certificate of new connections, and nothing when it is unusable",
  async (t) => {
    const { listener } = await serve(t);
    const next = await makeServerCertificate();
    t.throws(() => listener.reloadTls({ cert: next.server.cert, key: server.key }));
    t.throws(() => listener.reloadTls({ cert: "nonsense", key: "nonsense" }));
    t.match(await request(session(t, listener.port), { ":path": "/echo" }), { status: 200 });
    const open = session(t, listener.port);
    await request(open, { ":path": "/echo" });
    listener.reloadTls({ cert: next.server.cert, key: next.server.key });
    t.match(await request(open, { ":path": "/echo" }), { status: 200 }, "open connections stay");
    t.match(await request(session(t, listener.port, { ca: next.ca.cert }), { ":path": "/echo" }), { status: 200 });
    await t.rejects(request(session(t, listener.port), { ":path": "/echo" }));
  },
);

t.test("listen() chooses the certificate by server name, or by the local address", async (t) => {
  const made = (name: string) => makeCertificate({ subject: [{ CN: [name] }], names: [name] });
  const [named, wild, here, next] = [
    await made("a.test"),
    await made("w.test"),
    await made("h.test"),
    await made("a.test"),
  ];
  const { listener } = await serve(t, {
    host: "127.0.0.1",
    tls: {
      ...tls,
      named: [
        { ...named, names: [] },
        { ...wild, names: ["*.wild.test"] },
        { ...here, names: ["127.0.0.1"] },
      ],
    },
  });
  const shown = async (servername: string): Promise<string> => {
    const socket = connectTls({ host: "127.0.0.1", port: listener.port, servername, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { raw } = socket.getPeerCertificate();
    socket.destroy();
    const known = { named, wild, here, next, fallback: server };
    return Object.entries(known).find(([, { der }]) => raw.equals(der))?.[0] ?? "another";
  };
  t.equal(await shown("a.test"), "named");
  t.equal(await shown("x.wild.test"), "wild");
  t.equal(await shown("localhost"), "fallback", "with SNI the address does not count");
  t.equal(await shown(""), "here");
  listener.reloadTls({
    ...tls,
    named: [
      { ...next, names: [] },
      { ...wild, names: ["*.wild.test"] },
      { ...named, names: ["127.0.0.1"] },
    ],
  });
  t.equal(await shown("a.test"), "next");
  t.equal(await shown(""), "named");
  t.match(await request(session(t, listener.port), { ":path": "/echo" }), { status: 200 });
});

t.test("listen() accepts TLS 1.0 and 1.1 only where minVersion allows them", async (t) => {
  const connects = async (
    minVersion: "TLSv1" | "TLSv1.1" | undefined,
    version: "TLSv1" | "TLSv1.1",
  ): Promise<boolean> => {
    const { listener } = await serve(t, { tls: { ...tls, minVersion } });
    const old = { minVersion: "TLSv1", maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" } as const;
    const socket = connectTls({ host: "127.0.0.1", port: listener.port, rejectUnauthorized: false, ...old });
    const talked = await once(socket, "secureConnect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    return talked;
  };
  t.same(await Promise.all([connects("TLSv1", "TLSv1"), connects("TLSv1", "TLSv1.1")]), [true, true]);
  t.same(await Promise.all([connects("TLSv1.1", "TLSv1"), connects("TLSv1.1", "TLSv1.1")]), [false, true]);
  t.same(await Promise.all([connects(undefined, "TLSv1"), connects(undefined, "TLSv1.1")]), [false, false]);
});

t.test(
  "listen() closes the connection after a response with 'connection: close', once its other requests are done",
  async (t) => {
    const { listener } = await serve(t);
    const client = session(t, listener.port);
    const open = client.request({ ":path": "/stream" });
    open.on("error", () => {});
    await once(open, "data");
    const goaway = once(client, "goaway");
    t.match(await request(client, { ":path": "/closing" }), { status: 200, body: "bye" });
    t.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR);
    t.equal(open.destroyed, false, "earlier requests continue");
    open.close(constants.NGHTTP2_CANCEL);
    await (client.destroyed ? undefined : once(client, "close"));
    t.match(await requestHttp1(listener.port, "/closing"), { headers: { connection: "close" } });
  },
);

t.test("listen() aborts a response that its client does not read, and continues with the others", async (t) => {
  const clock = new FakeClock();
  const { listener } = await serve(t, { clock });
  const client = session(t, listener.port, { settings: { initialWindowSize: 1000 } });
  const stuck = client.request({ ":path": "/large" });
  stuck.on("error", () => {});
  await once(stuck, "response");
  stuck.pause();
  t.match(await request(client, { ":path": "/echo" }), { status: 200 });
  const closed = new Promise((resolve) => stuck.once("close", resolve));
  await clock.advance(300_000);
  stuck.resume();
  await closed;
  t.equal(stuck.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
});

t.test("Listener.close() waits for requests in flight, refuses new ones, then aborts the rest", async (t) => {
  const release = Promise.withResolvers<void>();
  const handler: Handler = async (request) => {
    if (request.path === "/slow") await release.promise;
    if (request.path === "/never") await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    return textResponse(200, "done");
  };
  const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", tls });
  const client = session(t, listener.port);
  const slow = request(client, { ":path": "/slow" });
  const slow1 = requestHttp1(listener.port, "/slow");
  const never: ClientHttp2Stream = client.request({ ":path": "/never" });
  never.on("error", () => {});
  await new Promise((resolve) => setTimeout(resolve, 50));
  const goaway = once(client, "goaway");
  const closing = listener.close(300);
  await goaway;
  await t.rejects(once(connectTcp(listener.port, "127.0.0.1"), "connect"), { code: "ECONNREFUSED" });
  release.resolve();
  t.match(await slow, { status: 200, body: "done" });
  t.match(await slow1, { status: 200, headers: { connection: "close" } });
  await closing;
  await (client.destroyed ? undefined : once(client, "close"));
  t.equal(never.destroyed, true);
});

t.test("listen() listens on a Unix socket with mode 0600, and replaces a stale one", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-http-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const socketPath = join(directory, "s");
  const options = { handler: new Probe().handler, log: silentLogger, socketPath };
  const first = await listen(options);
  t.equal((await stat(socketPath)).mode & 0o777, 0o600);
  await t.rejects(listen(options), { code: "EADDRINUSE" });
  const request = httpRequest({ socketPath, path: "/echo" }).end();
  const [incoming] = await once(request, "response");
  t.equal(incoming.statusCode, 200);
  incoming.resume();
  await first.close();
});

t.test("listen() rejects an address in use and an invalid certificate", async (t) => {
  const { listener } = await serve(t);
  await t.rejects(
    listen({ handler: async () => textResponse(200, ""), log: silentLogger, host: "127.0.0.1", port: listener.port }),
    {
      code: "EADDRINUSE",
    },
  );
  await t.rejects(
    listen({ handler: async () => textResponse(200, ""), log: silentLogger, tls: { cert: "x", key: "y" } }),
  );
});

t.test("listen() accepts HTTP/1.1 clients without ALPN", async (t) => {
  const { listener } = await serve(t);
  const socket: TLSSocket = connectTls({
    host: "127.0.0.1",
    port: listener.port,
    ca: ca.cert,
    servername: "localhost",
  });
  await once(socket, "secureConnect");
  socket.write("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  t.match(await textOf(socket), /^HTTP\/1\.1 200 /);
});

t.test("whenWritten() reports that a response is written, over HTTP/2 and HTTP/1.1", async (t) => {
  const reported: string[] = [];
  const handler: Handler = async (request) => {
    request.whenWritten?.(() => reported.push(`${request.path} first`));
    request.whenWritten?.(() => reported.push(`${request.path} second`));
    return bytesResponse(200, "text/plain", Buffer.alloc(request.path === "/large" ? 300_000 : 1));
  };
  const { listener } = await serve(t, { handler });
  const client = session(t, listener.port);
  for (const path of ["/small", "/large"]) {
    await request(client, { ":path": path });
    t.same(reported.splice(0), [`${path} first`, `${path} second`]);
  }
  const stream = client.request({ ":path": "/large" });
  await once(stream, "response");
  t.same(reported, [], "the client does not read it");
  stream.close(constants.NGHTTP2_CANCEL);
  await until("the report", () => reported.length === 2);
  reported.length = 0;
  const options = { port: listener.port, host: "127.0.0.1", servername: "localhost", ca: ca.cert, path: "/large" };
  const [response] = (await once(httpsRequest(options).end(), "response")) as [IncomingMessage];
  await once(response.resume(), "end");
  t.same(reported, ["/large first", "/large second"]);
});

t.test("the address of an IPv4 client is the same on a listener of both families", async (t) => {
  const handler: Handler = async ({ peer }) => textResponse(200, peer.address);
  for (const host of ["127.0.0.1", "::"]) {
    await using listener = await listen({ host, port: 0, handler, log: silentLogger });
    const response = await fetch(`http://127.0.0.1:${listener.port}/`);
    t.equal(await response.text(), "127.0.0.1", host);
  }
});
