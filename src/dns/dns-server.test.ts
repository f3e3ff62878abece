import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decode } from "dns-packet";
import t, { type Test } from "tap";
import { serviceKind } from "../api/core/service/kind.ts";
import { endpointSliceKind } from "../api/discovery/endpoint-slice/kind.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import { makeExternalName, makeQuery, makeService, makeSlice, type TypeName } from "../testing/dns/queries.ts";
import { freePort } from "../testing/std/free-port.ts";
import { TurnMeter } from "../testing/std/turn-meter.ts";
import { until } from "../testing/std/until.ts";
import { startDnsServer } from "./dns-server.ts";
import { frame } from "./forward/exchange.ts";

interface Upstream {
  readonly port: number;
  readonly names: string[];
}

/** A server that has `*.example` at 192.0.2.1, nothing else. */
async function startUpstream(t: Test): Promise<Upstream> {
  const names: string[] = [];
  const socket = createSocket("udp4");
  t.teardown(() => socket.close());
  socket.on("message", (query, { port }) => {
    const name = decode(query).questions?.[0]?.name ?? "";
    names.push(name);
    const exists = name.endsWith(".example");
    const question = query.subarray(12, query.length - 11);
    const answer = Buffer.from(exists ? "c00c000100010000012c0004c0000201" : "", "hex");
    const header = Buffer.from([query[0]!, query[1]!, 0x81, exists ? 0x80 : 0x83, 0, 1, 0, exists ? 1 : 0, 0, 0, 0, 0]);
    socket.send(Buffer.concat([header, question, answer]), port, "127.0.0.1");
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { port: socket.address().port, names };
}

async function start(t: Test, { synced = true } = {}) {
  const upstream = await startUpstream(t);
  const informers = new FakeInformers();
  informers.put(
    serviceKind,
    makeService("default/web", "10.3.0.1", "http/TCP/80"),
    makeService("default/many", "None"),
    makeExternalName("default/ext", "www.example"),
    makeExternalName("default/inner", "web.default.svc.cluster.local"),
    makeExternalName("default/nowhere", "missing.invalid"),
    makeExternalName("default/loop", "loop.default.svc.cluster.local"),
  );
  const addresses = Array.from({ length: 60 }, (_, i) => `10.1.0.${i}`);
  informers.put(endpointSliceKind, makeSlice("default/many", "many-1", "", ...addresses));
  const metrics = new MetricRegistry();
  const problems: string[] = [];
  const commands: string[] = [];
  const options = {
    addresses: ["127.0.0.1"],
    port: await freeDnsPort(),
    domain: "Cluster.Local",
    rules: [{ domain: "", server: { address: "127.0.0.1", port: upstream.port } }],
    readResolvers: async () => [],
    informers,
    recordsFile: join(t.testdir(), "records"),
    metrics,
    clock: systemClock,
    random: seededRandom(1),
    log: silentLogger,
    runIp: async (args: readonly string[]) => void commands.push(args.join(" ")),
    onProblem: (text: string) => problems.push(text),
  };
  const server = await startDnsServer(options);
  t.teardown(() => server.close({ removeAddresses: true }));
  if (synced) informers.sync();
  await sleep(0);
  return { server, options, informers, upstream, metrics, problems, commands };
}

/** A port of 127.0.0.1 that is free for UDP and TCP. */
async function freeDnsPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    const socket = createSocket("udp4").on("error", () => undefined);
    const isFree = await new Promise<boolean>((resolve) => {
      socket.once("error", () => resolve(false)).bind(port, "127.0.0.1", () => resolve(true));
    });
    socket.close();
    if (isFree) return port;
  }
}

async function exchangeUdp(port: number, ...messages: readonly Buffer[]): Promise<readonly Buffer[]> {
  const socket = createSocket("udp4");
  const responses: Buffer[] = [];
  socket.on("message", (bytes) => responses.push(bytes));
  for (const message of messages) socket.send(message, port, "127.0.0.1");
  await until("the responses", () => responses.length === messages.length || undefined);
  socket.close();
  return responses;
}

async function resolve(port: number, name: string, type: TypeName = "A") {
  const [response] = await exchangeUdp(port, makeQuery(name, type));
  return decode(response!) as ReturnType<typeof decode> & { readonly rcode: string };
}

const dataOf = ({ answers = [] }: ReturnType<typeof decode>) =>
  answers.map((each) => ("data" in each ? each.data : ""));

t.test("the server answers for the cluster and forwards other names", async (t) => {
  const { server, upstream } = await start(t);
  const web = await resolve(server.port, "web.default.svc.CLUSTER.local");
  t.match(web, { rcode: "NOERROR", flag_aa: true, flag_ra: true });
  t.same(dataOf(web), ["10.3.0.1"]);
  t.match(await resolve(server.port, "no.default.svc.cluster.local"), {
    rcode: "NXDOMAIN",
    authorities: [{ type: "SOA", name: "cluster.local" }],
  });
  t.same(dataOf(await resolve(server.port, "1.0.3.10.in-addr.arpa", "PTR")), ["web.default.svc.cluster.local"]);
  t.match(await resolve(server.port, "9.0.3.10.in-addr.arpa", "PTR"), { rcode: "NXDOMAIN", flag_aa: false });
  const other = await resolve(server.port, "a.example");
  t.match(other, { rcode: "NOERROR", flag_aa: false });
  t.same(dataOf(other), ["192.0.2.1"]);
  await resolve(server.port, "A.Example");
  t.same(upstream.names, ["9.0.3.10.in-addr.arpa", "a.example"], "the second query is answered from the cache");
});

t.test("the server resolves the names of ExternalName services", async (t) => {
  const { server } = await start(t);
  const at = (name: string) => resolve(server.port, `${name}.default.svc.cluster.local`);
  t.same(dataOf(await at("ext")), ["www.example", "192.0.2.1"]);
  t.same(dataOf(await at("inner")), ["web.default.svc.cluster.local", "10.3.0.1"]);
  const nowhere = await at("nowhere");
  t.equal(nowhere.rcode, "NXDOMAIN");
  t.same(dataOf(nowhere), ["missing.invalid"]);
  t.equal((await at("loop")).rcode, "SERVFAIL");
});

t.test("the server rejects what it does not serve", async (t) => {
  const { server, metrics } = await start(t);
  t.match(await resolve(server.port, "cluster.local", "AXFR"), { rcode: "REFUSED" });
  const chaos = makeQuery("web.default.svc.cluster.local");
  chaos[chaos.length - 1] = 3;
  const update = Buffer.from(makeQuery("cluster.local"));
  update[2] = 0x28;
  const iterative = makeQuery("a.example");
  iterative[2] = 0;
  const version = makeQuery("web.default.svc.cluster.local", "A", { version: 1 });
  const rcodes = [];
  for (const message of [chaos, update, iterative, version]) {
    const [response] = await exchangeUdp(server.port, message);
    rcodes.push(response![3]! & 0xf);
  }
  t.same(rcodes, [5, 4, 5, 0]);
  const socket = createSocket("udp4");
  for (const message of ["", "x", Buffer.alloc(2000), Buffer.from("00078180000100000000", "hex")]) {
    socket.send(message, server.port, "127.0.0.1");
  }
  t.same(dataOf(await resolve(server.port, "web.default.svc.cluster.local")), ["10.3.0.1"]);
  socket.close();
  const families = new Map(metrics.collect().map((family) => [family.options.name, family.series()]));
  t.ok(families.get("coredns_dns_requests_total")!.length > 1);
  t.match(families.get("svc_dns_dropped_total"), [{ values: ["malformed"] }]);
});

t.test("the server truncates over UDP, and sends everything over TCP", async (t) => {
  const { server } = await start(t);
  const name = "many.default.svc.cluster.local";
  const first = await resolve(server.port, name);
  t.match(first, { flag_tc: true });
  t.not(dataOf(first)[0], dataOf(await resolve(server.port, name))[0], "addresses rotate");
  const socket = connect(server.port, "127.0.0.1");
  const queries = ["many", "web", "ext"].map((each, i) =>
    makeQuery(`${each}.default.svc.cluster.local`, "A", undefined, i),
  );
  const stream = Buffer.concat([...queries.map(frame), Buffer.of(0)]);
  let received: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  for (const byte of stream.subarray(0, 5)) socket.write(Buffer.of(byte));
  socket.end(stream.subarray(5));
  await once(socket, "close");
  const answers: Record<number, number> = {};
  for (let rest = received; rest.length > 0; rest = rest.subarray(2 + rest.readUInt16BE(0))) {
    const response = decode(rest.subarray(2));
    answers[response.id!] = response.answers!.length;
  }
  t.same(answers, { 0: 60, 1: 1, 2: 2 });
});

t.test("the server answers thousands of queries that arrive at once over TCP in short turns", async (t) => {
  const { server } = await start(t);
  const count = 6_000;
  const queries = Array.from({ length: count }, (_, i) =>
    frame(makeQuery("web.default.svc.cluster.local", "A", undefined, i)),
  );
  const socket = connect(server.port, "127.0.0.1");
  const ids = new Set<number>();
  let received: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 4 && received.length >= 2 + received.readUInt16BE(0)) {
      ids.add(received.readUInt16BE(2));
      received = received.subarray(2 + received.readUInt16BE(0));
    }
  });
  using meter = new TurnMeter();
  meter.take();
  socket.end(Buffer.concat(queries));
  await once(socket, "close");
  t.equal(ids.size, count);
  // The queries of a chunk were answered in one turn, which took as long as there were many.
  const ms = meter.take();
  t.ok(ms < 50, `${Math.round(ms)} ms`);
});

t.test("the server closes connections that send no DNS, and refuses more than 32 of one client", async (t) => {
  const { server } = await start(t);
  const open = async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    return socket;
  };
  const bad = await open();
  bad.write(frame(Buffer.from("GET / HTTP/1.1")));
  await once(bad, "close");
  const sockets: Socket[] = [];
  for (let i = 0; i < 40; i++) sockets.push(await open());
  await until("the excess to be closed", () => sockets.filter((each) => each.closed).length === 8 || undefined);
  for (const socket of sockets) socket.destroy();
});

t.test("the server fails queries for the cluster until it has records, and answers others", async (t) => {
  const { server, informers } = await start(t, { synced: false });
  t.equal((await resolve(server.port, "web.default.svc.cluster.local")).rcode, "SERVFAIL");
  t.equal((await resolve(server.port, "a.example")).rcode, "NOERROR");
  informers.sync();
  await sleep(0);
  t.equal((await resolve(server.port, "web.default.svc.cluster.local")).rcode, "NOERROR");
});

t.test("the server adds its addresses to the host, reports a port in use, and removes the addresses", async (t) => {
  const { server, options } = await start(t);
  const commands: string[] = [];
  const problems: string[] = [];
  const second = await startDnsServer({
    ...options,
    addresses: ["192.0.2.10", "2001:db8::10", "127.0.0.1"],
    port: server.port,
    metrics: new MetricRegistry(),
    runIp: async (args) => void commands.push(args.join(" ")),
    onProblem: (text) => problems.push(text),
  });
  t.equal(second.isListening, false);
  t.same(commands, ["address add 192.0.2.10/32 dev lo scope host", "address add 2001:db8::10/128 dev lo nodad"]);
  t.match(problems.sort(), [
    /127\.0\.0\.1:\d+: another program listens there; trying again/,
    /192\.0\.2\.10:\d+: .*EADDRNOTAVAIL/,
    /\[2001:db8::10\]:\d+: /,
  ]);
  await second.close({ removeAddresses: true });
  t.equal(commands.length, 2, "what the host does not have is not removed");
});
