import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import t, { type Test } from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { exchangeMessages, frame } from "./exchange.ts";

const query = Buffer.from("query");
const parse = (bytes: Buffer) => (bytes.toString().startsWith("good") ? bytes.toString() : undefined);

function resolve(protocol: "udp" | "tcp", port: number, options: { timeoutMs?: number; signal?: AbortSignal } = {}) {
  const { timeoutMs = 5000, signal = new AbortController().signal } = options;
  const server = { address: "127.0.0.1", port };
  return exchangeMessages({ server, query, protocol, parse, timeoutMs, clock: systemClock, signal });
}

async function listenUdp(t: Test, ...replies: readonly string[]): Promise<number> {
  const socket = createSocket("udp4");
  t.teardown(() => socket.close());
  socket.on("message", (_, { port }) => {
    for (const reply of replies) socket.send(reply, port, "127.0.0.1");
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket.address().port;
}

async function listenTcp(t: Test, reply: (socket: Socket, received: Buffer) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined).on("data", (chunk) => reply(socket, Buffer.from(chunk)));
  });
  t.teardown(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

t.test("over UDP other datagrams are ignored", async (t) => {
  t.equal(await resolve("udp", await listenUdp(t, "bad", "", "good 1", "good 2")), "good 1");
});

t.test("over UDP a server that does not answer is an error after the timeout, a closed port at once", async (t) => {
  await t.rejects(resolve("udp", await listenUdp(t), { timeoutMs: 50 }), /no response within 50 ms/);
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  await t.rejects(resolve("udp", port), { code: "ECONNREFUSED" });
});

t.test("over TCP a response may come in pieces", async (t) => {
  const port = await listenTcp(t, (socket, received) => {
    t.same(received, frame(query));
    const [first, rest] = [frame(Buffer.from("good 3")).subarray(0, 1), frame(Buffer.from("good 3")).subarray(1)];
    socket.write(first, () => socket.write(rest));
  });
  t.equal(await resolve("tcp", port), "good 3");
});

t.test("over TCP a malformed response, a closed connection and a timeout are errors", async (t) => {
  await t.rejects(resolve("tcp", await listenTcp(t, (socket) => socket.write(frame(Buffer.from("bad"))))), /malformed/);
  await t.rejects(resolve("tcp", await listenTcp(t, (socket) => socket.end())), /closed the connection/);
  await t.rejects(resolve("tcp", await listenTcp(t, () => {}), { timeoutMs: 50 }), /no response within 50 ms/);
});

t.test("an exchange ends when the signal aborts", async (t) => {
  const stop = new AbortController();
  const waiting = resolve("udp", await listenUdp(t), { signal: stop.signal });
  stop.abort(new Error("stopped"));
  await t.rejects(waiting, /stopped/);
  await t.rejects(resolve("tcp", 1, { signal: stop.signal }), /stopped/);
});
