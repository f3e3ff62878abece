import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import t, { type Test } from "tap";
import { type Connector, openThrough } from "../../client/transport/connector.ts";
import { MetricRegistry, SHOW_ALL } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ConnectProxy, KonnectivityServer } from "../../testing/apiserver/egress-proxies.ts";
import {
  CLIENT_AUTH,
  makeCertificate,
  makeServerCertificate,
  SERVER_AUTH,
} from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import type { EgressConnection } from "./configuration.ts";
import { createEgressSelector } from "./egress-selector.ts";
import { PACKET } from "./konnectivity-protocol.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-egress-"));
t.teardown(() => rmSync(folder, { recursive: true }));
let sockets = 0;
const socketPath = (): string => join(folder, `s${sockets++}`);
const { ca, server: pair } = await makeServerCertificate();
const client = await makeCertificate({ subject: [{ CN: ["apiserver"] }], issuer: ca, usages: [CLIENT_AUTH] });
const proxyPair = await makeCertificate({
  subject: [{ CN: ["proxy"] }],
  issuer: ca,
  usages: [SERVER_AUTH],
  addresses: ["127.0.0.1"],
});

/** Echoes what it receives, and closes after `bye`. */
async function startEcho(t: Test): Promise<number> {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => (chunk.toString() === "bye" ? socket.end("closed") : socket.write(chunk)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

function selectorFor(connection: EgressConnection, clock = systemClock) {
  const registry = new MetricRegistry(SHOW_ALL);
  const configuration = { connections: new Map([["cluster", connection] as const]), warnings: [] };
  const find = createEgressSelector(configuration, { clock, metrics: registry });
  const connector = find("cluster");
  return {
    find,
    connector: connector as Connector,
    lines: () => formatMetrics([registry], "prometheus").split("\n"),
  };
}

async function read(socket: Duplex, length: number): Promise<string> {
  let text = "";
  while (text.length < length) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) await once(socket, "readable");
    else text += chunk;
  }
  return text;
}

const tcp = (
  url: string,
  tls?: { readonly ca: string; readonly cert: string; readonly key: string },
): EgressConnection => ({
  protocol: "http_connect",
  proxy: { kind: "tcp", url: new URL(url), tls },
});
const clientTls = { ca: ca.cert, cert: client.cert, key: client.key };

async function checkEcho(t: Test, connector: Connector, port: number): Promise<void> {
  const socket = await connector("localhost", port);
  socket.write("hello");
  t.equal(await read(socket, 5), "hello");
  const large = "x".repeat(3_000_000);
  socket.write(large);
  t.equal(await read(socket, large.length), large);
  socket.write("bye");
  t.equal(await read(socket, 6), "closed");
  socket.resume();
  await once(socket, "end");
  socket.destroy();
}

t.test("HTTPConnect works over TCP, TLS with client certificates, and a socket", async (t) => {
  const port = await startEcho(t);
  const resolve = (): string => `127.0.0.1:${port}`;
  await using plain = await ConnectProxy.start({ resolve });
  await checkEcho(t, selectorFor(tcp(plain.url)).connector, port);
  t.same(plain.targets, [`localhost:${port}`], "names are resolved by the proxy");
  const tls = { cert: proxyPair.cert, key: proxyPair.key, ca: ca.cert, requestCert: true, rejectUnauthorized: true };
  await using secure = await ConnectProxy.start({ resolve, tls });
  await checkEcho(t, selectorFor(tcp(secure.url, clientTls)).connector, port);
  t.same(secure.clients, ["apiserver"]);
  const path = socketPath();
  await using local = await ConnectProxy.start({ resolve, path });
  await checkEcho(t, selectorFor({ protocol: "http_connect", proxy: { kind: "unix", path } }).connector, port);
  t.same(local.targets, [`localhost:${port}`]);
});

t.test("addresses of IPv6 are sent in brackets", async (t) => {
  const port = await startEcho(t);
  await using proxy = await ConnectProxy.start({ resolve: () => `127.0.0.1:${port}` });
  const socket = await selectorFor(tcp(proxy.url)).connector("2001:db8::1", 10250);
  socket.destroy();
  t.same(proxy.targets, ["[2001:db8::1]:10250"]);
});

t.test("a connection through konnectivity carries data both ways until either end closes", async (t) => {
  const port = await startEcho(t);
  const path = socketPath();
  await using server = await KonnectivityServer.start({ path, resolve: () => `127.0.0.1:${port}` });
  const { connector } = selectorFor({ protocol: "grpc", path });
  await checkEcho(t, connector, port);
  t.same(server.targets, [`localhost:${port}`]);
  const socket = await connector("10.0.0.1", 10250);
  await until("the proxy is connected", () => server.open === 1);
  socket.destroy();
  await until("the proxy has closed its connection", () => server.open === 0);
  t.ok(server.received.includes(PACKET.closeRequest));
});

t.test("TLS and plain HTTP run through each kind of proxy", async (t) => {
  const tlsServer = createTlsServer({ cert: pair.cert, key: pair.key }, (socket) => socket.end("over TLS"));
  tlsServer.listen(0, "127.0.0.1");
  const httpServer = createServer((_, response) => response.end("over HTTP"));
  httpServer.listen(0, "127.0.0.1");
  await Promise.all([once(tlsServer, "listening"), once(httpServer, "listening")]);
  t.teardown(() => {
    tlsServer.close();
    httpServer.closeAllConnections();
    httpServer.close();
  });
  const [tlsPort, httpPort] = [tlsServer, httpServer].map((each) => (each.address() as AddressInfo).port);
  const path = socketPath();
  await using konnectivity = await KonnectivityServer.start({ path });
  await using proxy = await ConnectProxy.start();
  const kinds: readonly (readonly [string, EgressConnection])[] = [
    ["konnectivity", { protocol: "grpc", path }],
    ["CONNECT", tcp(proxy.url)],
  ];
  for (const [name, connection] of kinds) {
    const { connector } = selectorFor(connection);
    const socket = await connector("127.0.0.1", tlsPort!);
    const secure = connectTls({ socket, ca: ca.cert, servername: "localhost", checkServerIdentity: () => undefined });
    t.equal(await read(secure, 8), "over TLS", name);
    secure.destroy();
    class ProxiedAgent extends Agent {
      override createConnection(_: object, done: (error: Error | null, socket: Duplex) => void): undefined {
        openThrough(connector, { host: "127.0.0.1", port: httpPort! }, undefined, done);
      }
    }
    const agent = new ProxiedAgent({ keepAlive: true });
    for (let count = 0; count < 2; count++) {
      const sent = request({ host: "127.0.0.1", port: httpPort!, agent }).end();
      const [response] = await once(sent, "response");
      let text = "";
      for await (const chunk of response) text += chunk;
      t.equal(text, "over HTTP", name);
    }
    agent.destroy();
  }
  await until("connections are closed", () => konnectivity.open === 0);
  t.same(
    proxy.targets,
    [`127.0.0.1:${tlsPort}`, `127.0.0.1:${httpPort}`],
    "the second request uses the first's connection",
  );
});

t.test("failures of the proxy are Kubernetes' errors, counted by stage", async (t) => {
  const stages = (lines: readonly string[]) =>
    lines
      .filter((line) => line.startsWith("apiserver_egress_dialer_dial_failure_count{"))
      .map((line) => /stage="(\w+)"/.exec(line)?.[1]);
  const absent = selectorFor({ protocol: "http_connect", proxy: { kind: "unix", path: "/none/s" } });
  await t.rejects(absent.connector("a", 1), { message: "dial unix /none/s: connect: no such file or directory" });
  t.same(stages(absent.lines()), ["connect"]);
  const answers: readonly (readonly [string, RegExp])[] = [
    [
      "HTTP/1.1 403 Forbidden\r\n\r\n",
      /^proxy error from 127\.0\.0\.1:\d+ while dialing a:1, code 403: 403 Forbidden$/,
    ],
    ["HTTP/1.1 200 OK\r\n\r\nextra", /^unexpected 5 bytes of buffered data from CONNECT proxy "127\.0\.0\.1:\d+"$/],
    [
      "SSH-2.0-x\r\n\r\n",
      /^reading HTTP response from CONNECT to a:1 via proxy \S+ failed: malformed HTTP response "SSH-2.0-x"$/,
    ],
    ["", /^reading HTTP response from CONNECT to a:1 via proxy \S+ failed: unexpected EOF$/],
    ["HTTP/1.1 200 OK\r\nx: ".concat("y".repeat(2 ** 20)), /failed: unexpected EOF$/],
  ];
  for (const [answer, message] of answers) {
    await using proxy = await ConnectProxy.start({
      respond: (socket) => {
        socket.end(answer);
        return true;
      },
    });
    const { connector, lines } = selectorFor(tcp(proxy.url));
    await t.rejects(connector("a", 1), { message }, answer.slice(0, 20));
    t.same(stages(lines()), ["proxy"]);
  }
  const other = await makeCertificate({ subject: [{ CN: ["x"] }], addresses: ["127.0.0.1"] });
  await using unknown = await ConnectProxy.start({ tls: { cert: other.cert, key: other.key } });
  await t.rejects(selectorFor(tcp(unknown.url, clientTls)).connector("a", 1), { code: undefined });
});

t.test("bytes that a server of gRPC sends with the proxy's response are not lost", async (t) => {
  await using proxy = await ConnectProxy.start({
    respond: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\nset");
      setImmediate(() => socket.end("tings"));
      return true;
    },
  });
  const socket = await selectorFor(tcp(proxy.url)).find("cluster", "any")?.("a", 1);
  t.equal(await read(socket as Duplex, "settings".length), "settings");
});

t.test("a proxy that does not respond fails the connection after 30 seconds", async (t) => {
  const clock = new FakeClock();
  await using proxy = await ConnectProxy.start({ respond: () => true });
  const { connector } = selectorFor(tcp(proxy.url), clock);
  const connecting = connector("a", 1).catch((error: Error) => error.message);
  await until("the request arrived", () => proxy.targets.length === 1);
  await clock.advance(30_000);
  t.match(await connecting, /failed: i\/o timeout$/);
  const path = socketPath();
  await using silent = await KonnectivityServer.start({ path, respond: () => "nothing" });
  const dialing = selectorFor({ protocol: "grpc", path }, clock)
    .connector("a", 1)
    .catch((error: Error) => error.message);
  await until("the dial arrived", () => silent.targets.length === 1);
  await clock.advance(30_000);
  t.equal(await dialing, "dial timeout, backstop");
  await until("the proxy is informed", () => silent.received.includes(PACKET.closeDial));
  const missing = selectorFor({ protocol: "grpc", path: "/none/s" }, clock).connector("a", 1);
  const failed = missing.catch((error: Error) => error.message);
  await clock.advance(30_000);
  t.equal(
    await failed,
    "context deadline exceeded: connection error: " +
      'desc = "transport: Error while dialing: dial unix /none/s: connect: no such file or directory"',
  );
});

t.test("konnectivity's refusals and hostile packets end the connection", async (t) => {
  const rows = [
    [
      ({ random }: { random?: bigint | undefined }) => ({ type: 1, dialResponse: { error: "no agent", random } }),
      "no agent",
    ],
    [() => ({ type: 5, closeDial: {} }), "dial closed"],
    [() => ({ type: 1, dialResponse: { connectID: 1n, random: 5n } }), "tunnel closed"],
  ] as const;
  for (const [respond, message] of rows) {
    const path = socketPath();
    await using _server = await KonnectivityServer.start({ path, respond });
    await t.rejects(selectorFor({ protocol: "grpc", path }).connector("a", 1), { message });
  }
});

t.test("a proxy that goes away ends its connections", async (t) => {
  const port = await startEcho(t);
  const path = socketPath();
  const server = await KonnectivityServer.start({ path, resolve: () => `127.0.0.1:${port}` });
  const socket = await selectorFor({ protocol: "grpc", path }).connector("a", 1);
  const closed = once(socket, "close").catch(() => {});
  await server[Symbol.asyncDispose]();
  await closed;
  t.ok(socket.destroyed);
});

t.test("successes are counted, and names without a selection connect directly", async (t) => {
  const port = await startEcho(t);
  await using proxy = await ConnectProxy.start({ resolve: () => `127.0.0.1:${port}` });
  const { find, connector, lines } = selectorFor(tcp(proxy.url));
  (await connector("a", 1)).destroy();
  t.ok(lines().includes('apiserver_egress_dialer_dial_start_total{protocol="http_connect",transport="tcp"} 1'));
  t.ok(
    lines().includes('apiserver_egress_dialer_dial_duration_seconds_count{protocol="http_connect",transport="tcp"} 1'),
  );
  t.equal(find("etcd"), undefined);
  t.equal(selectorFor({ protocol: "direct" }).find("cluster"), undefined);
});
