/** The socket of the running agent at which doctor reads the forecast: one JSON object for each connection. */
import { chmod, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { checkSocketPath } from "../../std/net/socket-path.ts";
import type { Forecast } from "./forecast.ts";

const CONNECTIONS_MAX = 4;
const CONNECTION_MS_MAX = 10_000;
const BYTES_MAX = 4 * 1024 * 1024;

export function forecastSocket(rootDir: string): string {
  return join(rootDir, "forecast.sock");
}

/** Replaces the socket of an agent before it. Rejects when the path cannot be bound. */
export async function serveForecast(path: string, compute: () => Promise<Forecast>): Promise<AsyncDisposable> {
  checkSocketPath(path);
  await rm(path, { force: true });
  const connections = new Set<Socket>();
  const server = createServer((socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket)).on("error", () => socket.destroy());
    socket.setTimeout(CONNECTION_MS_MAX, () => socket.destroy());
    compute().then(
      (forecast) => socket.end(JSON.stringify(forecast)),
      (error: unknown) => socket.end(JSON.stringify({ error: String(error) })),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
  // Names of pods are for the administrator only.
  await chmod(path, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(path, { force: true });
    },
  };
}

/** Rejects when no agent of this version answers. */
export async function readForecast(path: string, timeoutMs: number): Promise<Forecast> {
  const socket = connect(path);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error("no answer in time")));
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) throw new Error(`the answer has more than ${BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const answer = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Partial<Forecast> & { readonly error?: string };
  if (answer.error !== undefined) throw new Error(answer.error);
  if (answer.version !== 1) throw new Error("the agent has another version");
  return answer as Forecast;
}
