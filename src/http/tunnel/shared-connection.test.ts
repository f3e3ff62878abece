import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import t, { type Test } from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { openSharedClient, serveSharedConnection } from "./shared-connection.ts";
import { dialThroughTunnel } from "./tunnel-session.ts";

/** Two ends of a TCP connection. */
async function connectPair(t: Test): Promise<readonly [Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = createServer(resolve).listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const far = await promise;
  for (const socket of [near, far]) socket.on("error", () => {});
  t.teardown(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return [near, far];
}

t.test("each stream carries a connection; one that is not read stops no other", async (t) => {
  const [near, far] = await connectPair(t);
  const accepted: Duplex[] = [];
  serveSharedConnection(near, (connection) => {
    accepted.push(connection);
    connection.on("data", (chunk) => connection.write(chunk)).on("end", () => connection.end());
  });
  const session = openSharedClient(far);
  t.teardown(() => session.destroy());
  const stalled = await dialThroughTunnel(session, systemClock);
  accepted[0]?.write(Buffer.alloc(1_000_000));
  const stream = await dialThroughTunnel(session, systemClock);
  stream.end("hello");
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  t.equal(String(Buffer.concat(chunks)), "hello");
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.ok(stalled.readableLength <= 320 * 1024, `${stalled.readableLength} bytes are buffered`);
  let received = 0;
  for await (const chunk of stalled) {
    received += (chunk as Buffer).length;
    if (received === 1_000_000) break;
  }
  t.equal(received, 1_000_000);
});

t.test("only CONNECT opens a stream, and malformed frames end the session", async (t) => {
  const [near, far] = await connectPair(t);
  let count = 0;
  const session = serveSharedConnection(near, () => {
    count++;
  });
  const client = connectHttp2("http://shared", { createConnection: () => far });
  client.on("error", () => {});
  const [headers] = await once(client.request({ ":path": "/pods" }), "response");
  t.equal(headers[":status"], 405);
  t.equal(count, 0);
  client.destroy();
  const [other, hostile] = await connectPair(t);
  const attacked = serveSharedConnection(other, () => undefined);
  const closed = new Promise<void>((resolve) => attacked.once("close", resolve));
  hostile.write(Buffer.alloc(65_536, 0xa5));
  await closed;
  t.ok(attacked.destroyed);
  session.destroy();
});
