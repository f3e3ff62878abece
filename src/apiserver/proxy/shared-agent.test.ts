import { once } from "node:events";
import { createServer as createPlainServer, type IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import t, { type Test } from "tap";
import { SHARED_PATH, serveSharedConnection } from "../../http/tunnel/shared-connection.ts";
import { connectUpgrade } from "../../http/upgrade/connect-upgrade.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { DIRECT_STREAMS_MAX, SharedHttpsAgent } from "./shared-agent.ts";

const { server: certificate } = await makeServerCertificate();
const { signal } = new AbortController();

const REFUSED_PATH = "/exec/refused";

/** A node agent whose streams send their path. */
async function start(t: Test, supports: boolean) {
  const connections = new Set<Socket>();
  let refusals = 0;
  const server = createServer({ cert: certificate.cert, key: certificate.key });
  // Over a shared connection requests have no TLS.
  const plain = createPlainServer();
  server.on("secureConnection", (socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket)).on("error", () => {});
  });
  const head = (protocol: string): string =>
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
  server.on("upgrade", ({ url, headers }: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {});
    if (url === REFUSED_PATH) {
      socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    } else if (url !== SHARED_PATH) {
      socket.write(`${head("SPDY/3.1")}${url}`);
      socket.resume().once("end", () => socket.end());
    } else if (supports) {
      const serve = () => serveSharedConnection(socket, (connection) => plain.emit("connection", connection));
      // node:http2 aborts the process for a socket with an unfinished write.
      socket.write(head(String(headers.upgrade)), () => setImmediate(serve));
    } else {
      refusals++;
      socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
  });
  plain.on("upgrade", (...upgrade) => server.emit("upgrade", ...upgrade));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const clock = new FakeClock();
  const options = { secureContext: createSecureContext({ ca: [] }), rejectUnauthorized: false, keepAlive: true };
  const agent = new SharedHttpsAgent(options, clock);
  t.teardown(() => {
    agent.destroy();
    for (const each of connections) each.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const request = async (path: string, ended = signal) => {
    const headers = { upgrade: "SPDY/3.1" };
    const to = { method: "POST", secure: true, host: "127.0.0.1", port, path, headers, agent, signal: ended };
    return await connectUpgrade(to);
  };
  const open = async (path: string): Promise<Duplex> => {
    const result = await request(path);
    if (!("socket" in result)) throw new Error(`status ${result.status}`);
    const [chunk] = await once(result.socket, "data");
    t.equal(String(chunk), path);
    return result.socket;
  };
  return { open, request, agent, clock, connections, refusals: () => refusals };
}

t.test("the first streams have connections of their own, and further ones share one", async (t) => {
  const { open, clock, connections } = await start(t, true);
  const streams: Duplex[] = [];
  for (let count = 0; count < DIRECT_STREAMS_MAX + 8; count++) streams.push(await open(`/exec/${count}`));
  t.equal(connections.size, DIRECT_STREAMS_MAX + 1);
  streams.at(-1)?.destroy();
  streams.at(-2)?.end();
  const [first] = streams.splice(0, 1);
  first?.destroy();
  await until("the connection to close", () => connections.size === DIRECT_STREAMS_MAX);
  streams.push(await open("/exec/direct"));
  t.equal(connections.size, DIRECT_STREAMS_MAX + 1);
  for (const stream of streams) stream.destroy();
  await until("the connections of their own to close", () => connections.size === 1);
  await clock.advance(60_000);
  await until("the shared connection to close", () => connections.size === 0);
});

t.test("an agent that refuses is not requested again for ten minutes", async (t) => {
  const { open, agent, clock, connections, refusals } = await start(t, false);
  const streams: Duplex[] = [];
  for (let count = 0; count < DIRECT_STREAMS_MAX + 3; count++) streams.push(await open(`/exec/${count}`));
  t.equal(refusals(), 1);
  t.equal(connections.size, DIRECT_STREAMS_MAX + 3);
  await clock.advance(600_000);
  streams.push(await open("/exec/later"));
  t.equal(refusals(), 2);
  for (const stream of streams) stream.destroy();
  await until("the streams to close", () => connections.size === 0);
  t.equal(agent.agentCount, 1);
  await clock.advance(600_000);
  t.equal(agent.agentCount, 0, "the refusal is dropped");
});

t.test("a shared connection that breaks ends its streams, and the next stream opens another", async (t) => {
  const { open, agent, connections } = await start(t, true);
  for (let count = 0; count < DIRECT_STREAMS_MAX; count++) await open(`/exec/${count}`);
  const before = new Set(connections);
  const stream = await open("/exec/shared");
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  for (const each of connections) if (!before.has(each)) each.destroy();
  await closed;
  const next = await open("/exec/next");
  const ended = new Promise<void>((resolve) => next.once("close", resolve));
  agent.destroy();
  await ended;
  t.pass("destroy() closes it");
});

t.test("a refused stream and a client that leaves end their part of a shared connection only", async (t) => {
  const { open, request } = await start(t, true);
  for (let count = 0; count < DIRECT_STREAMS_MAX + 1; count++) await open(`/exec/${count}`);
  for (let count = 0; count < 3; count++) {
    const result = await request(REFUSED_PATH);
    t.ok("status" in result && result.status === 403);
    if ("body" in result) for await (const _ of result.body);
    const leaving = new AbortController();
    const pending = t.rejects(request("/exec/left", leaving.signal));
    if (count === 1) await new Promise((resolve) => setImmediate(resolve));
    leaving.abort();
    await pending;
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  await open("/exec/next");
});
