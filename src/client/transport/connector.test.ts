import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { createServer as createHttpsServer, request as httpsRequest } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { duplexPair } from "node:stream";
import t, { type Test } from "tap";
import { makeRequest } from "../../http/request.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";
import { readAll } from "../response.ts";
import type { Connector } from "./connector.ts";
import { createHttpAgent, createHttpsAgent } from "./egress-agents.ts";
import { externalTransport } from "./external-transport.ts";
import { LocalForwarder } from "./local-forwarder.ts";

const { ca, server: pair } = await makeServerCertificate();

async function serve(t: Test): Promise<{ readonly http: number; readonly https: number }> {
  const plain = createServer((request, response) => response.end(`plain ${request.url}`));
  const secure = createHttpsServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    response.end(`secure ${request.url}`);
  });
  const ports = [];
  for (const server of [plain, secure]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ports.push((server.address() as AddressInfo).port);
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
  }
  const [http = 0, https = 0] = ports;
  return { http, https };
}

/** Connects to 127.0.0.1 whatever the host is. */
function connectorTo(isSocket: boolean): { readonly targets: string[]; readonly connector: Connector } {
  const targets: string[] = [];
  const connector: Connector = async (host, port) => {
    targets.push(`${host} ${port}`);
    const socket = connect({ host: "127.0.0.1", port });
    await once(socket, "connect");
    if (isSocket) return socket;
    const [near, far] = duplexPair();
    socket.pipe(far).pipe(socket);
    socket.once("close", () => far.destroy());
    near.once("close", () => socket.destroy());
    return near;
  };
  return { targets, connector };
}

for (const isSocket of [true, false]) {
  const kind = isSocket ? "sockets" : "streams";
  t.test(`undici and agents send HTTP and HTTPS over a connector's ${kind}`, async (t) => {
    const { http, https } = await serve(t);
    const { connector, targets } = connectorTo(isSocket);
    const rows = [
      { server: `http://192.0.2.1:${http}`, expected: "plain /a" },
      { server: `https://localhost:${https}`, expected: "secure /a", ca: ca.cert },
    ];
    for (const { server, expected, ...identity } of rows) {
      await using send = externalTransport({ server, connector, ...identity });
      for (let count = 0; count < 2; count++) {
        const response = await send(makeRequest({ method: "GET", path: "/a" }));
        t.equal((await readAll(response.body, 100)).toString(), expected);
      }
    }
    t.same([...new Set(targets)], [`192.0.2.1 ${http}`, `localhost ${https}`]);
    const httpAgent = createHttpAgent({ keepAlive: true }, connector);
    const httpsAgent = createHttpsAgent({ keepAlive: true, rejectUnauthorized: false }, connector);
    for (const outgoing of [
      httpRequest({ host: "[2001:db8::1]", port: http, path: "/b", agent: httpAgent, timeout: 5000 }),
      httpsRequest({ host: "192.0.2.3", port: https, path: "/b", agent: httpsAgent, timeout: 5000 }),
    ]) {
      const [response] = await once(outgoing.end(), "response");
      t.match((await readAll(response, 100)).toString(), / \/b$/);
    }
    t.same(targets.slice(-2), [`2001:db8::1 ${http}`, `192.0.2.3 ${https}`]);
    httpAgent.destroy();
    httpsAgent.destroy();
  });
}

t.test("a failed connector fails the request with its error", async (t) => {
  const connector: Connector = () => Promise.reject(new Error("no proxy"));
  for (const server of ["http://192.0.2.1", "https://192.0.2.1"]) {
    await using send = externalTransport({ server, connector });
    await t.rejects(send(makeRequest({ method: "GET", path: "/" })), { message: "no proxy" });
  }
  const agent = createHttpAgent({}, connector);
  const outgoing = httpRequest({ host: "192.0.2.1", agent });
  const failed = once(outgoing, "error");
  outgoing.end();
  t.match((await failed)[0], { message: "no proxy" });
});

t.test("a local forwarder continues connections to its socket, and removes it", async (t) => {
  const { http } = await serve(t);
  const { connector, targets } = connectorTo(false);
  const forwarder = await LocalForwarder.open(connector, "etcd.example.com", http);
  const outgoing = httpRequest({ socketPath: forwarder.path, path: "/c", agent: false });
  const [response] = await once(outgoing.end(), "response");
  t.equal((await readAll(response, 100)).toString(), "plain /c");
  t.same(targets, [`etcd.example.com ${http}`]);
  const idle = connect({ path: forwarder.path });
  await once(idle, "connect");
  forwarder[Symbol.dispose]();
  await until(
    "connections end",
    () => idle.destroyed || idle.closed || idle.readableEnded || idle.resume().readableEnded,
  );
  t.notOk(existsSync(forwarder.path));
  using broken = await LocalForwarder.open(() => Promise.reject(new Error("no proxy")), "a", 1);
  const refused = connect({ path: broken.path });
  refused.resume();
  await once(refused, "close");
});
