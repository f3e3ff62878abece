/** Memory of open idle streams of each kind, in the processes that they pass through. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { SpdyConnection } from "../http/spdy/connection.ts";
import { synStreamFrame } from "../http/spdy/frames.ts";
import { HeaderEncoder, type SpdyHeaders } from "../http/spdy/header-block.ts";
import { connectUpgrade, type UpgradeRequest } from "../http/upgrade/connect-upgrade.ts";
import type { Figures } from "./figures.ts";
import { memory } from "./process.ts";

export type Target = Pick<UpgradeRequest, "secure" | "host" | "port" | "path" | "agent"> & {
  readonly headers?: Readonly<Record<string, string>>;
};

/** Process ids by what runs in them. */
export type Processes = Readonly<Record<string, number>>;

/** A port of the pod whose server answers with what it receives. */
export const ECHO_PORT = 9101;
const OPEN_STREAMS = 200;
/** More than have connections of their own, and enough to fill the space of young objects, whose size is fixed. */
const FIRST_STREAMS = 100;
const MIB = 2 ** 20;
/** An idle process collects twice within this time. */
const SETTLE_MS = 35_000;

interface OpenStream {
  close(): void;
}

/** Opens a stream to the pod of the target. */
type Open = (target: Target) => Promise<OpenStream>;

const TERMINAL = "exec?command=cat&stdin=true&stdout=true";
const PORT_HEADERS: readonly SpdyHeaders[] = ["error", "data"].map((streamtype) => ({
  streamtype,
  port: String(ECHO_PORT),
  requestid: "0",
}));

/** The protocols of kubectl before 1.31 (SPDY) and since (WebSocket). */
export const streamKinds: Readonly<Record<string, Open>> = {
  "exec, SPDY": async (target) => {
    const connection = await openSpdy({ ...target, path: `${target.path}/${TERMINAL}` }, "v4.channel.k8s.io");
    for (const streamtype of ["error", "stdin", "stdout"]) connection.open({ streamtype }, ignored);
    return connection;
  },
  "exec, WebSocket": (target) => openWebSocket(target, TERMINAL, "v5.channel.k8s.io"),
  "port-forward, SPDY": async (target) => {
    const connection = await openSpdy({ ...target, path: `${target.path}/portforward` }, "portforward.k8s.io");
    for (const headers of PORT_HEADERS) connection.open(headers, ignored);
    return connection;
  },
  "port-forward, WebSocket": (target) => {
    const encoder = new HeaderEncoder();
    const frames = PORT_HEADERS.map((headers, index) => synStreamFrame(index * 2 + 1, encoder.encode(headers), false));
    return openWebSocket(target, "portforward", "SPDY/3.1+portforward.k8s.io", frames);
  },
};

export const ignored = { data: () => {}, end: () => {} };

/** Opens a SPDY connection. */
export async function openSpdy(target: Target, protocol: string): Promise<SpdyConnection> {
  const headers = { upgrade: "SPDY/3.1", "x-stream-protocol-version": protocol };
  const socket = await switchProtocol(target, "POST", headers);
  const connection = new SpdyConnection({ input: socket, output: socket, role: "client" });
  connection.run().catch(() => {});
  return connection;
}

/** Opens a WebSocket connection; resolves when the server has sent something. */
async function openWebSocket(
  target: Target,
  path: string,
  protocol: string,
  messages: readonly Buffer[] = [],
): Promise<OpenStream> {
  const socket = await switchProtocol({ ...target, path: `${target.path}/${path}` }, "GET", {
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": randomBytes(16).toString("base64"),
    "sec-websocket-protocol": protocol,
  });
  for (const message of messages) socket.write(Buffer.concat([messageHead(message.length), message]));
  socket.resume();
  await once(socket, "data");
  return { close: () => void socket.destroy() };
}

/** The header of a binary message of at most 125 bytes, with a mask of zeros. */
function messageHead(length: number): Buffer {
  return Buffer.from([0x82, 0x80 | length, 0, 0, 0, 0]);
}

async function switchProtocol(
  target: Target,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<Duplex> {
  const { signal } = new AbortController();
  const result = await connectUpgrade({ ...target, method, headers: { ...target.headers, ...headers }, signal });
  if (!("socket" in result)) throw new Error(`Cannot open a stream: status ${result.status}`);
  return result.socket;
}

/** One after the other. */
async function openAll(open: Open, target: Target, count: number): Promise<readonly OpenStream[]> {
  const streams: OpenStream[] = [];
  while (streams.length < count) streams.push(await open(target));
  return streams;
}

/** Memory of each idle stream in each of the processes: just opened, and when the idle processes have collected. */
export async function measureMemory(figures: Figures, pids: Processes, target: Target, kind: string): Promise<void> {
  const open = streamKinds[kind]!;
  const used = (): number[] => Object.values(pids).map((pid) => memory(pid).anonymous);
  // They load code, and stay open: the others would use the memory that they have freed.
  const first = await openAll(open, target, FIRST_STREAMS);
  await sleep(SETTLE_MS);
  const before = used();
  const streams = await openAll(open, target, OPEN_STREAMS);
  await sleep(2000);
  const opened = used();
  await sleep(SETTLE_MS);
  const settled = used();
  for (const [index, process] of Object.keys(pids).entries()) {
    const kibibytes = (now = 0): number => ((now - (before[index] ?? 0)) * MIB) / 1024 / OPEN_STREAMS;
    figures.addAll(`memory of an open stream, of ${OPEN_STREAMS} after ${FIRST_STREAMS}: ${kind}: ${process}`, {
      "KiB just opened": kibibytes(opened[index]),
      "KiB when idle": kibibytes(settled[index]),
    });
  }
  for (const stream of [...first, ...streams]) stream.close();
}
