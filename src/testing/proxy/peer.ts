/**
 * A program of the simulated network: serves and opens connections by commands from stdin, a line of JSON each, and
 * answers on stdout. Servers answer with their name and the client's address.
 */
import { createSocket } from "node:dgram";
import { connect, createServer, isIPv6 } from "node:net";
import { createInterface } from "node:readline";

export interface PeerCommand {
  readonly id: number;
  readonly serve?: { readonly name: string; readonly port: number };
  readonly open?: {
    readonly protocol: "tcp" | "udp";
    readonly address: string;
    readonly port: number;
    readonly from?: number;
    readonly timeoutMs?: number;
  };
}

export interface PeerResult {
  readonly id: number;
  readonly text: string;
}

const ANSWER_MS_MAX = 1500;

async function serve(name: string, port: number): Promise<string> {
  const plain = (address = ""): string => address.replace(/^::ffff:/, "");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${name} ${plain(socket.remoteAddress)}`);
  });
  await new Promise<void>((resolve) => server.listen(port, "::", resolve));
  const udp = createSocket("udp6");
  udp.on("message", (_, from) => udp.send(`${name} ${plain(from.address)}`, from.port, from.address));
  await new Promise<void>((resolve) => udp.bind(port, "::", resolve));
  return "serving";
}

function openTcp(address: string, port: number, timeoutMs: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(port, address);
  let text = "";
  socket.setTimeout(timeoutMs, () => {
    resolve("timeout");
    socket.destroy();
  });
  socket.on("data", (data) => {
    text += data.toString();
  });
  socket.on("end", () => resolve(text));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
  return promise;
}

function openUdp(address: string, port: number, from: number | undefined, timeoutMs: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  const timer = setTimeout(() => resolve("timeout"), timeoutMs);
  socket.on("message", (data) => resolve(data.toString()));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
  // A connected socket reports that the port is unreachable.
  socket.bind(from ?? 0, () => socket.connect(port, address, () => socket.send("?")));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

async function run({ serve: server, open }: PeerCommand): Promise<string> {
  if (server !== undefined) return await serve(server.name, server.port);
  if (open === undefined) return "";
  const { protocol, address, port, from, timeoutMs = ANSWER_MS_MAX } = open;
  return protocol === "tcp" ? await openTcp(address, port, timeoutMs) : await openUdp(address, port, from, timeoutMs);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const command = JSON.parse(line) as PeerCommand;
  run(command).then(
    (text) => process.stdout.write(`${JSON.stringify({ id: command.id, text })}\n`),
    (error) => process.stdout.write(`${JSON.stringify({ id: command.id, text: String(error) })}\n`),
  );
});
