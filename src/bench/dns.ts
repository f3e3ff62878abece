/** DNS queries that one core answers: CPU time of the server, with a client in this process. */
import { spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { encodeQuery, encodeQuestion } from "../dns/wire/query.ts";
import type { Figures } from "./figures.ts";
import { cpuMs, memory } from "./process.ts";

const SERVICES = 1000;
const QUERIES = 60_000;
const WARM_UP = 20_000;
/** Queries without a response at a time. */
const WINDOW = 64;
const LOST_MS = 2000;

const questions: Readonly<Record<string, (i: number) => string>> = {
  "of services": (i) => `service-${1 + (i % 9)}.ns-${1 + (i % 9)}.svc.cluster.local`,
  "of a headless service with 10 endpoints": () => "service-0.ns-0.svc.cluster.local",
  "of unknown names in the cluster's domain": (i) => `missing-${i % 100}.ns-1.svc.cluster.local`,
  "of other names, from the cache": (i) => `host-${i % 100}.example.com`,
};

/** Measures the sources whatever the program is: the server has no command of its own. */
export async function measureDns(figures: Figures): Promise<void> {
  const upstream = await startUpstream();
  const script = fileURLToPath(new URL("dns-process.ts", import.meta.url));
  const args = ["--max-semi-space-size=4", script, String(SERVICES), String(upstream.address().port)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const client = createSocket("udp4");
  client.connect(Number(line.toString()), "127.0.0.1");
  await once(client, "connect");
  for (const [what, nameOf] of Object.entries(questions)) {
    const messages = Array.from({ length: 100 }, (_, i) =>
      encodeQuery(encodeQuestion(nameOf(i), 1), i, 0x100, undefined),
    );
    await send(client, messages, WARM_UP);
    const before = cpuMs(child.pid!);
    const began = performance.now();
    const responses = await send(client, messages, QUERIES);
    const cpu = cpuMs(child.pid!) - before;
    figures.addAll(`DNS queries ${what}`, {
      "a second on one core": (responses / cpu) * 1000,
      "µs of CPU each": (cpu / responses) * 1000,
      "a second here": (responses / (performance.now() - began)) * 1000,
    });
  }
  figures.add(`DNS server with ${SERVICES} services of 10 endpoints`, memory(child.pid!).rss, "MiB resident");
  client.close();
  upstream.close();
  child.kill();
  await once(child, "exit");
}

/** Sends queries as responses arrive. Resolves with the number of responses. */
function send(client: Socket, messages: readonly Buffer[], count: number): Promise<number> {
  return new Promise((resolve) => {
    let [sent, received] = [0, 0];
    const next = (): void => client.send(messages[sent++ % messages.length]!);
    const end = (): void => {
      clearTimeout(timer);
      client.off("message", onMessage);
      resolve(received);
    };
    let timer = setTimeout(end, LOST_MS);
    const onMessage = (): void => {
      received++;
      if (received % 1000 === 0) {
        clearTimeout(timer);
        timer = setTimeout(end, LOST_MS);
      }
      if (sent < count) next();
      else if (received === count) end();
    };
    client.on("message", onMessage);
    for (let i = 0; i < WINDOW; i++) next();
  });
}

/** A server of other names. */
async function startUpstream(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("message", (query, { address, port }) => {
    // The OPT record of the query has 11 bytes.
    const question = query.subarray(12, query.length - 11);
    const answer = Buffer.from("c00c000100010000012c0004c0000201", "hex");
    const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    socket.send(Buffer.concat([header, question, answer]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}
