import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { dialThroughTunnel, openTunnelClient, openTunnelServer, TUNNEL_STREAMS_MAX } from "./tunnel-session.ts";

async function serveTcp(t: Test, onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy());
    onConnection(socket.on("error", () => undefined));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Two ends of a TCP connection. */
async function connectPair(t: Test): Promise<readonly [Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const near = connect(await serveTcp(t, resolve), "127.0.0.1").on("error", () => undefined);
  t.teardown(() => near.destroy());
  return [near, await promise];
}

const serve = (socket: Socket, port: number) =>
  openTunnelServer(socket, { target: { host: "127.0.0.1", port }, countStreams: () => undefined });

t.test("dialThroughTunnel() opens as many connections as allowed, and refuses more", async (t) => {
  const port = await serveTcp(t, (socket) => socket.write("hello"));
  const [near, far] = await connectPair(t);
  serve(near, port);
  const session = openTunnelClient(far);
  const dial = () => dialThroughTunnel(session, systemClock);
  const streams = await Promise.all(Array.from({ length: TUNNEL_STREAMS_MAX }, dial));
  const [first] = await once(streams[0]!, "data");
  t.equal(String(first), "hello");
  const more = dial().catch((error: Error) => error);
  for (const stream of streams.slice(1, 3)) stream.destroy();
  const answer = await more;
  t.ok(!(answer instanceof Error) || /ENHANCE_YOUR_CALM|REFUSED/.test(answer.message));
  const [last] = await once(streams.at(-1)!, "data");
  t.equal(String(last), "hello", "others are not affected");
  session.destroy();
});

t.test("dialThroughTunnel() rejects with the reason", async (t) => {
  const [near, far] = await connectPair(t);
  const session = openTunnelClient(far);
  const clock = new FakeClock();
  const silent = t.rejects(dialThroughTunnel(session, clock), { message: "i/o timeout" }, "no answer");
  await clock.advance(30_000);
  await silent;
  const isClosed = new Promise((resolve) => session.once("close", resolve));
  const pending = t.rejects(dialThroughTunnel(session, clock), "the connection closes");
  near.destroy();
  await pending;
  await isClosed;
  await t.rejects(dialThroughTunnel(session, clock), { code: "ERR_HTTP2_INVALID_SESSION" });

  const [left, right] = await connectPair(t);
  serve(left, 1);
  const refusing = openTunnelClient(right);
  await t.rejects(dialThroughTunnel(refusing, systemClock), {
    message: "agent refused the connection: connect ECONNREFUSED 127.0.0.1:1",
  });
  refusing.destroy();
});

t.test("the serving side connects CONNECT streams only", async (t) => {
  let connections = 0;
  const port = await serveTcp(t, (socket) => {
    connections++;
    socket.end();
  });
  const [near, far] = await connectPair(t);
  serve(near, port);
  const session = openTunnelClient(far);
  for (const method of ["GET", "POST"]) {
    const stream = session.request({ ":method": method, ":path": "/" });
    const [headers] = await once(stream, "response");
    t.equal(headers[":status"], 405);
    await text(stream);
  }
  t.equal(connections, 0);
  session.destroy();
});

t.test("malformed frames end the serving side's session only", async (t) => {
  const port = await serveTcp(t, (socket) => socket.end("works"));
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1");
  const hostile: Readonly<Record<string, Buffer>> = {
    "another protocol": Buffer.from("GET / HTTP/1.1\r\n\r\n"),
    "random bytes": Buffer.alloc(100_000, 0x5a),
    "a frame of 16 MiB": Buffer.concat([preface, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])]),
    "DATA of a stream that is not open": Buffer.concat([preface, Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 0])]),
    "a header block that is no HPACK": Buffer.concat([preface, Buffer.from([0, 0, 2, 1, 5, 0, 0, 0, 1, 0xff, 0xff])]),
  };
  for (const [what, bytes] of Object.entries(hostile)) {
    const [near, far] = await connectPair(t);
    const session = serve(near, port);
    const isClosed = new Promise((resolve) => session.once("close", resolve));
    far.resume().write(bytes);
    far.end();
    await isClosed;
    t.pass(what);
  }
  const [near, far] = await connectPair(t);
  serve(near, port);
  const session = openTunnelClient(far);
  t.equal(await text(await dialThroughTunnel(session, systemClock)), "works");
  session.destroy();
});
