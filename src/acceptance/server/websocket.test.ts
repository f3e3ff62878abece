/** Watches, logs and proxied connections over WebSocket, as browsers and older clients use them. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import t, { type Test } from "tap";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const NAMESPACE = "/api/v1/namespaces/default";

interface Messages {
  readonly client: WebSocket;
  readonly received: (string | Buffer)[];
  waitFor(count: number): Promise<readonly (string | Buffer)[]>;
  readonly closed: Promise<number>;
}

interface WebServer extends TestServer {
  /** Connects as `admin`, by a subprotocol. */
  webSocket(path: string, ...protocols: readonly string[]): Messages;
}

async function startWebServer(t: Test): Promise<WebServer> {
  const server = await startTestServer();
  const { handler } = server.parts.server;
  const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", upgrades: true });
  t.teardown(async () => {
    await listener.close();
    await server[Symbol.asyncDispose]();
  });
  const token = server.parts.server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const credential = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;
  const webSocket = (path: string, ...protocols: readonly string[]): Messages => {
    const client = new WebSocket(`ws://127.0.0.1:${listener.port}${path}`, [credential, ...protocols]);
    client.binaryType = "arraybuffer";
    const received: (string | Buffer)[] = [];
    client.addEventListener("message", ({ data }) =>
      received.push(typeof data === "string" ? data : Buffer.from(data)),
    );
    const closed = once(client, "close").then(([{ code }]) => code as number);
    const waitFor = async (count: number) => {
      while (received.length < count && client.readyState !== WebSocket.CLOSED) {
        await Promise.race([once(client, "message"), closed]);
      }
      return received;
    };
    return { client, received, waitFor, closed };
  };
  return Object.assign(server, { webSocket });
}

t.test("a watch over WebSocket sends one message for each event, as text or in protobuf", async (t) => {
  const server = await startWebServer(t);
  const { webSocket } = server;
  const watch = webSocket(`${NAMESPACE}/configmaps?watch=1&resourceVersion=0`, "base64.binary.k8s.io");
  await once(watch.client, "open");
  await server.send(`POST ${NAMESPACE}/configmaps`, { body: { metadata: { name: "a" } } });
  await server.send(`DELETE ${NAMESPACE}/configmaps/a`);
  const events = (await watch.waitFor(2)).map((message) => JSON.parse(String(message)));
  t.match(events, [
    { type: "ADDED", object: { kind: "ConfigMap", metadata: { name: "a" } } },
    { type: "DELETED", object: { metadata: { name: "a" } } },
  ]);
  t.equal(watch.client.protocol, "base64.binary.k8s.io");
  watch.client.close();
  t.equal(await watch.closed, 1000);
  const ending = webSocket(`${NAMESPACE}/configmaps?watch=1&timeoutSeconds=1`, "binary.k8s.io");
  await once(ending.client, "open");
  await server.clock.advance(1000);
  t.equal(await ending.closed, 1000, "after its timeout");
});

t.test("a request that is no stream, or without permission, gets no WebSocket", async (t) => {
  const { webSocket } = await startWebServer(t);
  for (const path of [`${NAMESPACE}/configmaps`, `${NAMESPACE}/pods/none/log`, "/version"]) {
    t.equal(await webSocket(path, "binary.k8s.io").closed, 1006, path);
  }
});

t.test("a log over WebSocket starts with an empty message, in the subprotocol that the client offers", async (t) => {
  const server = await startWebServer(t);
  const pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } };
  t.equal((await server.send(`POST ${NAMESPACE}/pods`, { body: pod })).status, 201);
  for (const [protocol, first] of [
    ["binary.k8s.io", Buffer.alloc(0)],
    ["base64.binary.k8s.io", ""],
  ] as const) {
    const log = server.webSocket(`${NAMESPACE}/pods/web/log`, "other", protocol);
    t.equal(await log.closed, 1000, protocol);
    t.same([log.client.protocol, log.received], [protocol, [first]]);
  }
  t.equal(await server.webSocket(`${NAMESPACE}/pods/web/log`, "other").closed, 1006, "an unknown subprotocol");
});

t.test("the proxy of a pod passes WebSocket connections through, without the token", async (t) => {
  const all = Object.values(networkInterfaces()).flat();
  const host = all.find((one) => one?.family === "IPv4" && !one.internal)?.address;
  if (host === undefined) {
    t.comment("Skipped: this machine has no address but its loopback");
    return;
  }
  const requests: IncomingMessage[] = [];
  const backend = createServer((_, response) => response.writeHead(426).end("no"));
  backend.on("upgrade", (request, socket) => {
    requests.push(request);
    const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash("sha1").update(key).digest("base64");
    const head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    socket.write(`${head}Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n\x81\x02hi`, "latin1");
    // The client's close frame ends the connection.
    socket.once("data", () => socket.end(Buffer.from([0x88, 0x02, 0x03, 0xe8])));
    socket.on("error", () => {});
  });
  backend.listen(0, host);
  await once(backend, "listening");
  t.teardown(() => backend.close());
  const { port } = backend.address() as AddressInfo;
  const server = await startWebServer(t);
  const pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } };
  const { json } = await server.send(`POST ${NAMESPACE}/pods`, { body: pod });
  const status = { podIP: host, podIPs: [{ ip: host }] };
  await server.send(`PUT ${NAMESPACE}/pods/web/status`, { body: { ...json, status } });
  const chat = server.webSocket(`${NAMESPACE}/pods/web:${port}/proxy/room?a=b`, "chat");
  t.same(await chat.waitFor(1), ["hi"]);
  chat.client.close();
  t.equal(await chat.closed, 1000);
  const [request] = requests;
  t.same([request?.url, request?.headers["sec-websocket-protocol"]], ["/room", "chat"]);
  t.equal(request?.headers.authorization, undefined);
});
