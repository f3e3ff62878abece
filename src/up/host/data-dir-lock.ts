import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";

export interface DataDirLock extends Disposable {}

/**
 * Locks a data directory for this process. The lock is a socket in Linux' abstract namespace, named after the
 * directory: the kernel releases it when the process exits, so it is never stale.
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  const name = lockName(dataDir);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${process.pid}\n`);
  });
  try {
    await listen(server, name);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE") throw cause;
    throw new Error(`Cannot use data directory ${dataDir}: svc already uses it (process ${await readOwner(name)})`);
  }
  server.unref();
  return { [Symbol.dispose]: () => void server.close() };
}

/** The process that has locked the directory; undefined: none has. */
export async function findDataDirOwner(dataDir: string): Promise<number | undefined> {
  if (!existsSync(dataDir)) return undefined;
  const pid = Number(await readOwner(lockName(dataDir)));
  return Number.isInteger(pid) ? pid : undefined;
}

function lockName(dataDir: string): string {
  return `\0svc-${createHash("sha256").update(realpathSync(dataDir)).digest("hex").slice(0, 32)}`;
}

function listen(server: Server, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(name, () => resolve());
  });
}

function readOwner(name: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(name);
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.setTimeout(1000, () => socket.destroy());
    socket.once("error", () => {}).once("close", () => resolve(text.trim() || "unknown"));
  });
}
