/** A private Unix socket whose connections a connector continues, for clients that only connect to addresses. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Connector } from "./connector.ts";

export class LocalForwarder implements Disposable {
  /** Only this user can reach the socket in it. */
  readonly #folder = mkdtempSync(join(tmpdir(), "svc-egress-"));
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(connector: Connector, host: string, port: number) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
      connector(host, port).then(
        (remote) => {
          remote.on("error", () => socket.destroy());
          remote.once("close", () => socket.destroy());
          socket.once("close", () => remote.destroy());
          if (socket.destroyed) remote.destroy();
          else socket.pipe(remote).pipe(socket);
        },
        () => socket.destroy(),
      );
    });
  }

  /** Resolves when clients can connect to `path`. */
  static async open(connector: Connector, host: string, port: number): Promise<LocalForwarder> {
    const forwarder = new LocalForwarder(connector, host, port);
    await new Promise<void>((resolve, reject) => {
      forwarder.#server.once("error", reject).listen(forwarder.path, resolve);
    });
    return forwarder;
  }

  get path(): string {
    return join(this.#folder, "socket");
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
