import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createConnection, createServer as createTcpServer } from "node:net";
import t, { type Test } from "tap";
import { readBody } from "../../http/body.ts";
import type { Handler, HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { bytesResponse, jsonResponse, textResponse } from "../../http/respond.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { readAll } from "../response.ts";
import { type NetworkTransport, networkTransport, type TransportOptions } from "./transport.ts";

const { ca, server } = await makeServerCertificate();
const tls = { cert: server.cert, key: server.key };

async function serve(t: Test, handler: Handler, secure = true): Promise<Listener> {
  const common = { handler, log: silentLogger, host: "127.0.0.1" };
  const listener = await listen(secure ? { ...common, tls: { ...tls, ca: ca.cert, requestCert: true } } : common);
  t.teardown(() => listener.close());
  return listener;
}

function open(t: Test, port: number, options: Partial<TransportOptions> = {}): NetworkTransport {
  const transport = networkTransport({ server: `https://localhost:${port}`, ca: ca.cert, ...options });
  t.teardown(() => transport[Symbol.asyncDispose]());
  return transport;
}

async function textOf(response: HttpResponse): Promise<string> {
  return (await readAll(response.body)).toString();
}

const echo: Handler = async (request) => {
  const { method, path, query, headers, peer } = request;
  const body = (await readBody(request, 10_000_000)).toString();
  return jsonResponse(200, { method, path, query, headers, body: body.length, certificates: peer.certificates.length });
};

t.test("networkTransport() sends requests over HTTP/2 with token, agent, prefix and client certificate", async (t) => {
  const listener = await serve(t, echo);
  const client = await makeCertificate({ subject: [{ CN: ["me"] }], issuer: ca, usages: [CLIENT_AUTH] });
  let tokens = 0;
  const send = open(t, listener.port, {
    server: `https://127.0.0.1:${listener.port}/prefix/`,
    cert: client.cert,
    key: client.key,
    token: () => `token-${++tokens}`,
    userAgent: "test/1",
  });
  const first = JSON.parse(
    await textOf(await send(makeRequest({ method: "POST", path: "/a", query: "b=c", body: "x".repeat(300_000) }))),
  );
  t.match(first, { method: "POST", path: "/prefix/a", query: "b=c", body: 300_000 });
  t.ok(first.certificates > 0);
  t.match(first.headers, { authorization: "Bearer token-1", "user-agent": "test/1" });
  const own = await send(makeRequest({ path: "/", headers: { authorization: "Bearer own" } }));
  t.equal(own.headers["content-type"], "application/json");
  t.equal(JSON.parse(await textOf(own)).headers.authorization, "Bearer own");
});

t.test("networkTransport() refuses servers whose certificate has another name", async (t) => {
  const listener = await serve(t, echo);
  const other = await makeServerCertificate();
  const tries: readonly (readonly [Partial<TransportOptions>, RegExp | undefined])[] = [
    [{}, undefined],
    [{ tlsServerName: "elsewhere" }, /altnames|ALTNAME/i],
    [{ ca: other.ca.cert }, /certificate/],
    [{ ca: undefined }, /certificate/],
    [{ server: `https://127.0.0.1:${listener.port}`, tlsServerName: "localhost" }, undefined],
    [{ server: `https://127.0.0.1:${listener.port}`, tlsServerName: "127.0.0.2" }, /altnames|ALTNAME/i],
  ];
  for (const [options, problem] of tries) {
    const answer = open(t, listener.port, options)(makeRequest({ path: "/" }));
    if (problem === undefined) t.equal((await answer).status, 200);
    else await t.rejects(answer, { message: problem });
  }
  for (const bad of ["nonsense", "ftp://x", "https://", "localhost:6443"]) {
    t.throws(() => networkTransport({ server: bad }), { message: /^Cannot use/ }, bad);
  }
});

t.test("networkTransport() streams the body of a response until the request is aborted", async (t) => {
  const gone = Promise.withResolvers<void>();
  const listener = await serve(t, async (request) => {
    const body = async function* () {
      for (let count = 0; ; count++) {
        yield Buffer.from(`${count}\n`);
        if (count === 1) await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
        if (request.signal.aborted) break;
      }
      gone.resolve();
    };
    return bytesResponse(200, "text/plain", body());
  });
  const controller = new AbortController();
  const response = await open(t, listener.port)(makeRequest({ path: "/", signal: controller.signal }));
  const seen: string[] = [];
  await t.rejects(
    (async () => {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        seen.push(...Buffer.from(chunk).toString().trim().split("\n"));
        if (seen.includes("1")) controller.abort(new Error("enough"));
      }
    })(),
    { message: "enough" },
  );
  t.strictSame(seen, ["0", "1"]);
  await gone.promise;
});

t.test("networkTransport() rejects immediately when the signal aborts, before or while it waits", async (t) => {
  const listener = await serve(t, async (request) => {
    await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    return textResponse(200, "");
  });
  const send = open(t, listener.port);
  await t.rejects(send(makeRequest({ path: "/", signal: AbortSignal.abort(new Error("early")) })), {
    message: "early",
  });
  const controller = new AbortController();
  const waiting = send(makeRequest({ path: "/", signal: controller.signal }));
  setTimeout(() => controller.abort(new Error("late")), 30);
  await t.rejects(waiting, { message: "late" });
});

t.test("networkTransport() reconnects after a restart of the server", async (t) => {
  const first = await serve(t, echo);
  const send = open(t, first.port);
  await textOf(await send(makeRequest({ path: "/" })));
  await first.close();
  await t.rejects(send(makeRequest({ path: "/" })), { code: "ECONNREFUSED" });
  const second = await listen({ handler: echo, log: silentLogger, host: "127.0.0.1", port: first.port, tls });
  t.teardown(() => second.close());
  t.equal((await send(makeRequest({ path: "/" }))).status, 200);
});

t.test("networkTransport() opens another connection when the stream limit is reached", async (t) => {
  const handler: Handler = async (request) => {
    if (request.path === "/watch") await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    return textResponse(200, "ok");
  };
  const listener = await listen({
    handler,
    log: silentLogger,
    host: "127.0.0.1",
    tls,
    limits: { streamsPerConnection: 2 },
  });
  t.teardown(() => listener.close());
  const send = open(t, listener.port);
  await textOf(await send(makeRequest({ path: "/" })));
  const controller = new AbortController();
  const watches = Array.from({ length: 5 }, () => send(makeRequest({ path: "/watch", signal: controller.signal })));
  t.equal(await textOf(await send(makeRequest({ path: "/" }))), "ok");
  controller.abort();
  for (const watch of watches) await t.rejects(watch, { name: "AbortError" });
});

t.test("networkTransport() uses a new client certificate for new connections", async (t) => {
  const serials: string[] = [];
  const listener = await serve(t, async (request) => {
    serials.push(Buffer.from(request.peer.certificates[0] ?? []).toString("hex"));
    return textResponse(200, "");
  });
  const [one, two] = await Promise.all(
    ["one", "two"].map((name) => makeCertificate({ subject: [{ CN: [name] }], issuer: ca, usages: [CLIENT_AUTH] })),
  );
  const send = open(t, listener.port, { cert: one!.cert, key: one!.key });
  await send(makeRequest({ path: "/" }));
  send.setClientCertificate(two!.cert, two!.key);
  await send(makeRequest({ path: "/" }));
  t.strictSame(
    serials,
    [one, two].map((certificate) => Buffer.from(certificate!.der).toString("hex")),
  );
});

t.test("networkTransport() closes a connection whose ping gets no response", async (t) => {
  const listener = await serve(t, echo);
  // A proxy that drops all data after the first response.
  let dropping = false;
  const proxy = createTcpServer((near) => {
    const far = createConnection(listener.port, "127.0.0.1");
    for (const socket of [near, far]) socket.on("error", () => {});
    near.on("data", (chunk) => dropping || far.write(chunk));
    far.on("data", (chunk) => dropping || near.write(chunk));
    near.on("close", () => far.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.teardown(() => proxy.close());
  const clock = new FakeClock();
  const send = open(t, (proxy.address() as AddressInfo).port, { clock });
  await textOf(await send(makeRequest({ path: "/" })));
  dropping = true;
  const stuck = send(makeRequest({ method: "POST", path: "/" }));
  stuck.catch(() => {});
  await clock.advance(30_000);
  await clock.advance(15_000);
  await t.rejects(stuck, { message: /dead|closed/ });
});

t.test("networkTransport() uses HTTP/1.1 without HTTP/2", async (t) => {
  const plain = await serve(t, echo, false);
  const send = open(t, 0, { server: `http://127.0.0.1:${plain.port}` });
  t.match(JSON.parse(await textOf(await send(makeRequest({ method: "PUT", path: "/x", body: "abc" })))), {
    method: "PUT",
    body: 3,
  });
  const old = createTlsServer(tls, (_, outgoing) => outgoing.end("old"));
  old.listen(0, "127.0.0.1");
  await once(old, "listening");
  t.teardown(() => {
    old.close();
    old.closeAllConnections();
  });
  t.equal(await textOf(await open(t, (old.address() as AddressInfo).port)(makeRequest({ path: "/" }))), "old");
});

t.test("networkTransport() rejects requests after it was closed", async (t) => {
  const listener = await serve(t, echo);
  const send = networkTransport({ server: `https://localhost:${listener.port}`, ca: ca.cert });
  await textOf(await send(makeRequest({ path: "/" })));
  await send[Symbol.asyncDispose]();
  await t.rejects(send(makeRequest({ path: "/" })), { message: /is closed$/ });
});
