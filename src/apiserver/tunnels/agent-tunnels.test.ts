import { request as httpRequest } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { TUNNEL_CONDITION, TUNNEL_DISABLED, tunnelPath } from "../../api/core/node/tunnel.ts";
import { StatusError } from "../../api/status.ts";
import { NODES } from "../../auth/user.ts";
import { listen } from "../../http/server/server.ts";
import { openTunnelServer, TUNNEL_PROTOCOL } from "../../http/tunnel/tunnel-session.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";
import { defaultConfig } from "../config/default-config.ts";
import { AgentConnections } from "../proxy/agent-connections.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { statusResponse } from "../responses/status-response.ts";
import { AgentTunnels } from "./agent-tunnels.ts";
import { createTunnelHandler } from "./tunnel-handler.ts";

const { server: serving } = await makeServerCertificate();
const signal = new AbortController().signal;
const LARGE_BYTES = 32 * 2 ** 20;
/** Cannot be connected to: the address is of a network for documentation. */
const addresses = [{ type: "InternalIP", address: "192.0.2.7" }];
const isOpen = { type: TUNNEL_CONDITION, status: "True", reason: "TunnelOpen" } as const;
const node = (name: string, conditions: readonly object[] = [isOpen]) => ({
  metadata: { name },
  status: { addresses, conditions: conditions as (typeof isOpen)[] },
});

interface Fixture {
  readonly agents: AgentConnections;
  readonly metrics: MetricRegistry;
  /** Sends the request that opens a tunnel, as a user; resolves with its socket, or the refusal's status and text. */
  open(name: string, user?: { readonly name: string; readonly groups: readonly string[] }): Promise<Socket | string>;
}

async function start(t: Test): Promise<Fixture> {
  const metrics = new MetricRegistry();
  const tunnels = new AgentTunnels({ clock: systemClock, log: silentLogger, metrics });
  const open = createTunnelHandler(tunnels);
  const api = await listen({
    host: "127.0.0.1",
    log: silentLogger,
    upgrades: true,
    async handler(request) {
      const { user = "", groups = "" } = request.headers;
      const context = {
        request,
        info: parseRequestInfo(request),
        user: { name: user, uid: "", groups: groups.split(","), extra: {} },
        signal: request.signal,
        warnings: [],
        annotations: { add: () => undefined },
      };
      try {
        return await open(context as never, { name: decodeURIComponent(request.path.split("/")[4] ?? "") });
      } catch (error) {
        if (error instanceof StatusError) return statusResponse(error.status, context as never);
        throw error;
      }
    },
  });
  const agents = await AgentConnections.open(
    { ...defaultConfig.agents, preferredAddressTypes: ["InternalIP"] },
    { clock: systemClock, log: silentLogger, tunnels },
  );
  t.teardown(async () => {
    await agents[Symbol.asyncDispose]();
    await tunnels[Symbol.asyncDispose]();
    await api.close();
  });
  return {
    agents,
    metrics,
    open(name, { name: user, groups } = { name: `system:node:${name}`, groups: [NODES] }) {
      const { promise, resolve, reject } = Promise.withResolvers<Socket | string>();
      const headers = { user, groups: groups.join(","), connection: "Upgrade", upgrade: TUNNEL_PROTOCOL };
      const outgoing = httpRequest({
        host: "127.0.0.1",
        port: api.port,
        path: tunnelPath(name),
        headers,
        agent: false,
      });
      outgoing.on("error", reject);
      outgoing.on("upgrade", (_, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        socket.on("error", () => undefined);
        t.teardown(() => socket.destroy());
        resolve(socket as Socket);
      });
      outgoing.on("response", (response) => {
        text(response).then((body) => resolve(`${response.statusCode} ${body}`), reject);
      });
      outgoing.end();
      return promise;
    },
  };
}

/** An agent's server, which answers with the request's path. */
async function startAgentServer(t: Test): Promise<number> {
  const agent = createServer({ cert: serving.cert, key: serving.key }, ({ url }, response) => {
    response.end(url === "/large" ? Buffer.alloc(LARGE_BYTES, 1) : url);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => agent.once("listening", resolve));
  t.teardown(() => agent.closeAllConnections());
  t.teardown(() => agent.close());
  return (agent.address() as AddressInfo).port;
}

const serve = (socket: Socket | string, port: number, streams = { open: 0 }) =>
  openTunnelServer(socket as Duplex, {
    target: { host: "127.0.0.1", port },
    countStreams: (change) => {
      streams.open += change;
    },
  });

const readMetric = (metrics: MetricRegistry, name: string): number =>
  (
    metrics
      .collect()
      .find(({ options }) => options.name === name)
      ?.series()[0] as { value?: number }
  )?.value ?? -1;

t.test("requests to a node pass through its tunnel, in parallel and whatever their size", async (t) => {
  const { agents, open, metrics } = await start(t);
  const streams = { open: 0 };
  serve(await open("n1"), await startAgentServer(t), streams);
  const get = async (path: string) => buffer((await agents.get(node("n1"), path, signal)).body);
  const paths = Array.from({ length: 50 }, (_, index) => `/${index}`);
  t.same((await Promise.all(paths.map(get))).map(String), paths);
  t.equal((await get("/large")).length, LARGE_BYTES);
  t.ok(streams.open > 0 && streams.open <= 50, "connections are reused");
  t.equal(readMetric(metrics, "apiserver_agent_tunnels"), 1);
  t.equal(readMetric(metrics, "apiserver_agent_tunnel_streams"), streams.open);
});

t.test("only the node itself can open its tunnel", async (t) => {
  const { open } = await start(t);
  const users = [
    { name: "system:node:n2", groups: [NODES] },
    { name: "system:node:", groups: [NODES] },
    { name: "system:node:n1", groups: ["system:authenticated"] },
    { name: "system:node:n11", groups: [NODES] },
    { name: "n1", groups: [NODES] },
    { name: "admin", groups: ["system:masters"] },
    { name: "admin", groups: ["system:masters", NODES] },
  ];
  for (const user of users) {
    const answer = await open("n1", user);
    t.match(answer, /^403 .*only system:node:n1 can open/, `${user.name} in ${user.groups}`);
  }
  t.not(typeof (await open("n1")), "string");
});

t.test("the newest tunnel of a node replaces the one before", async (t) => {
  const { agents, open } = await start(t);
  const port = await startAgentServer(t);
  const first = serve(await open("n1"), port);
  const isClosed = new Promise<void>((resolve) => first.once("close", () => resolve()));
  serve(await open("n1"), port);
  await isClosed;
  t.equal(await text((await agents.get(node("n1"), "/again", signal)).body), "/again");
});

t.test("errors name the hop that broke", async (t) => {
  const { agents, open } = await start(t);
  const failure = (name: string, conditions?: readonly object[]) =>
    agents.get(node(name, conditions), "/", signal).then(
      () => "",
      (error: Error) => error.message,
    );
  t.match(await failure("n1"), /no tunnel from node n1 is open; this server has had none since its start/);
  // The port is closed.
  const session = serve(await open("n1"), 1);
  t.match(await failure("n1"), /tunnel from node n1: agent refused the connection: connect ECONNREFUSED 127.0.0.1:1/);
  session.destroy();
  const isGone = async () => (await failure("n1")).includes("no tunnel");
  await until("the tunnel is closed", isGone);
  t.match(await failure("n1"), /no tunnel from node n1 is open; last closed at 20\S+Z: \S/);
  const disabled = { ...isOpen, reason: TUNNEL_DISABLED };
  t.doesNotThrow(() => agents.reach(node("n1", [disabled])), "an agent without a tunnel is reached by its address");
  t.equal(agents.reach(node("n1", [])).host, "192.0.2.7");
});

t.test("what an agent sends ends at most its own tunnel", async (t) => {
  const { agents, open } = await start(t);
  const port = await startAgentServer(t);
  serve(await open("good"), port);
  const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  const settings = frame(4, 0, 0, Buffer.alloc(0));
  const hostile: Readonly<Record<string, Buffer>> = {
    "no HTTP/2": Buffer.from("HTTP/1.1 200 OK\r\n\r\n"),
    "random bytes": Buffer.alloc(65_536, 0xa5),
    "a frame beyond the size limit": Buffer.concat([settings, frame(0, 0, 1, Buffer.alloc(100_000))]),
    "DATA of a stream that was not opened": Buffer.concat([settings, frame(0, 0, 1, Buffer.alloc(10))]),
    "a pushed stream": Buffer.concat([settings, frame(5, 4, 1, Buffer.from([0, 0, 0, 2, 0x82]))]),
    "SETTINGS with a wrong length": frame(4, 0, 0, Buffer.alloc(5)),
    "a window beyond its maximum": Buffer.concat([settings, frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))]),
    "a flood of pings": Buffer.concat([
      settings,
      ...Array.from({ length: 20_000 }, () => frame(6, 0, 0, Buffer.alloc(8))),
    ]),
    "a flood of settings": Buffer.concat(Array.from({ length: 20_000 }, () => settings)),
    "headers that are endless": Buffer.concat([
      settings,
      frame(1, 0, 1, Buffer.alloc(16_000)),
      ...Array.from({ length: 50 }, () => frame(9, 0, 1, Buffer.alloc(16_000))),
    ]),
  };
  for (const [what, bytes] of Object.entries(hostile)) {
    const socket = (await open("bad")) as Socket;
    socket.resume();
    const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.write(bytes);
    const dialled = agents.get(node("bad"), "/", signal).then(
      () => "answered",
      () => "failed",
    );
    socket.end();
    await ended;
    t.equal(await dialled, "failed", what);
    t.equal(await text((await agents.get(node("good"), `/after`, signal)).body), "/after", what);
  }
});
