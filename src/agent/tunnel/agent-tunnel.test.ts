import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { createServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import {
  dialThroughTunnel,
  openTunnelClient,
  PING_INTERVAL_MS,
  PING_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
  TUNNEL_PROTOCOL,
} from "../../http/tunnel/tunnel-session.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { AgentTunnel } from "./agent-tunnel.ts";
import { openTunnel } from "./open-tunnel.ts";

/** A server for TCP connections; resolves with its port. */
async function serveTcp(t: Test, onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on("error", () => undefined));
    onConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Fixture {
  readonly tunnel: AgentTunnel;
  readonly clock: FakeClock;
  /** The API server's sides, in the order in which the agent opened them. */
  readonly sessions: readonly ClientHttp2Session[];
  readonly sockets: readonly Socket[];
  readonly changes: readonly string[];
  readonly metrics: MetricRegistry;
}

/** A tunnel that runs until the test ends. `fails`: attempts that fail before each success. */
async function start(t: Test, port: number, { fails = 0, silent = false } = {}): Promise<Fixture> {
  const sessions: ClientHttp2Session[] = [];
  const sockets: Socket[] = [];
  const api = await serveTcp(t, (socket) => {
    sockets.push(socket);
    if (!silent) sessions.push(openTunnelClient(socket));
  });
  const clock = new FakeClock();
  const metrics = new MetricRegistry();
  const changes: string[] = [];
  let failed = 0;
  const tunnel: AgentTunnel = new AgentTunnel({
    async open() {
      if (failed++ < fails) throw new Error("cannot connect to api:6443");
      failed = 0;
      const socket = connect(api, "127.0.0.1");
      await once(socket, "connect");
      return socket;
    },
    target: { host: "127.0.0.1", port },
    clock,
    random: seededRandom(1),
    log: silentLogger,
    metrics,
    onChange: () => changes.push(`${tunnel.condition.status} ${tunnel.condition.message}`),
  });
  const stop = new AbortController();
  const running = tunnel.run(stop.signal);
  t.teardown(async () => {
    stop.abort();
    await running;
    for (const session of sessions) session.destroy();
  });
  return { tunnel, clock, sessions, sockets, changes, metrics };
}

const isOpen = ({ tunnel }: Fixture): boolean => tunnel.condition.status === "True";
const readMetric = (metrics: MetricRegistry, name: string): unknown =>
  (
    metrics
      .collect()
      .find(({ options }) => options.name === name)
      ?.series()[0] as { value?: number }
  )?.value;

t.test("each stream is a connection to the agent's server, half-closed on either side", async (t) => {
  const port = await serveTcp(t, (socket) => {
    let received = "";
    socket.on("data", (chunk) => {
      received += String(chunk);
    });
    socket.once("end", () => socket.end(`got ${received}`));
  });
  const fixture = await start(t, port);
  await until("the tunnel is open", async () => isOpen(fixture) && fixture.sessions.length === 1);
  const [session] = fixture.sessions;
  const exchange = async (sent: string): Promise<string> => {
    const stream = await dialThroughTunnel(session!, systemClock);
    stream.end(sent);
    return await text(stream);
  };
  const names = Array.from({ length: 100 }, (_, index) => `c${index}`);
  t.same(
    await Promise.all(names.map(exchange)),
    names.map((name) => `got ${name}`),
  );
  t.equal(readMetric(fixture.metrics, "kubelet_tunnel_open"), 1);
  await until("streams are closed", async () => readMetric(fixture.metrics, "kubelet_tunnel_streams") === 0);
});

t.test("a stream that is not read stops the agent's server, and no other stream", async (t) => {
  let written = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const port = await serveTcp(t, (socket) => {
    socket.once("data", (data) => {
      if (String(data) === "ping") return void socket.end("pong");
      const write = (): void => {
        while (!socket.destroyed) {
          written += chunk.length;
          if (!socket.write(chunk)) return;
        }
      };
      socket.on("drain", write);
      write();
    });
  });
  const fixture = await start(t, port);
  await until("the tunnel is open", async () => isOpen(fixture) && fixture.sessions.length === 1);
  const [session] = fixture.sessions;
  const stalled = await dialThroughTunnel(session!, systemClock);
  stalled.write("all");
  let before = -1;
  await until("the server stops", async () => {
    const isSame = before === written && written > 0;
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return isSame;
  });
  // The buffers of the kernel's sockets are several MiB.
  t.ok(written >= STREAM_WINDOW_BYTES && written < 64 * 2 ** 20, `${written} bytes`);
  const other = await dialThroughTunnel(session!, systemClock);
  other.write("ping");
  t.equal(await text(other), "pong");
  stalled.destroy();
});

t.test("the tunnel is opened again, with delays that grow while it fails", async (t) => {
  const fixture = await start(t, 1, { fails: 3 });
  await fixture.clock.advance(0);
  t.match(fixture.tunnel.condition, { type: "TunnelReady", status: "False", reason: "TunnelClosed" });
  t.match(fixture.tunnel.condition.message, "cannot connect to api:6443");
  await fixture.clock.advance(8_400);
  await until("the tunnel is open", async () => isOpen(fixture));
  fixture.sockets[0]?.destroy();
  await until("the tunnel is closed", async () => !isOpen(fixture));
  await until("the tunnel is open again", async () => {
    await fixture.clock.advance(1_000);
    return isOpen(fixture);
  });
  t.equal(fixture.sockets.length, 2);
  t.equal(readMetric(fixture.metrics, "kubelet_tunnel_opened_total"), 2);
  t.ok(fixture.changes.length >= 4, "each change is reported");
});

t.test("a connection whose other side does not answer pings is replaced", async (t) => {
  const fixture = await start(t, 1, { silent: true });
  await until("the tunnel is open", async () => isOpen(fixture) && fixture.sockets.length === 1);
  await fixture.clock.advance(PING_INTERVAL_MS);
  t.ok(isOpen(fixture));
  await fixture.clock.advance(PING_TIMEOUT_MS);
  await until("the tunnel is closed", async () => !isOpen(fixture));
  t.match(fixture.tunnel.condition.message, /no answer to a ping within 10 s/);
  await fixture.clock.advance(60_000);
  await until("another connection", async () => fixture.sockets.length > 1);
});

t.test("openTunnel() sends the node's credentials, and rejects with the server's message", async (t) => {
  const { ca, server: serving } = await makeServerCertificate();
  const requests: unknown[] = [];
  const server = createServer({ cert: serving.cert, key: serving.key }, (request, response) => {
    requests.push(request.url);
    response.writeHead(403).end(JSON.stringify({ kind: "Status", message: "only another node can" }));
  });
  server.on("upgrade", (request, socket) => {
    requests.push([request.url, request.headers.authorization, request.headers.upgrade]);
    if (request.url?.includes("refused")) {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 19\r\n\r\n{"message":"no way"}'.replace("19", "20"));
    } else socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\nfirst`);
    t.teardown(() => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const credentials = { server: `https://127.0.0.1:${port}/prefix/`, ca: ca.cert, token: async () => "secret" };
  const { signal } = new AbortController();
  const socket = await openTunnel("n1", credentials, systemClock, signal);
  t.same(requests, [["/prefix/api/v1/nodes/n1/tunnel", "Bearer secret", TUNNEL_PROTOCOL]]);
  await once(socket, "readable");
  t.equal(String(socket.read()), "first", "bytes after the response are not lost");
  socket.destroy();
  await t.rejects(openTunnel("refused", credentials, systemClock, signal), {
    message: `API server 127.0.0.1:${port} refused the tunnel: 403 no way`,
  });
  const other = await makeServerCertificate();
  await t.rejects(openTunnel("n1", { ...credentials, ca: other.ca.cert }, systemClock, signal), {
    message: /^cannot connect to 127.0.0.1:\d+: .*(certificate|signature)/,
  });
});
