/** A load balancer of connections, as before several API servers. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../std/free-port.ts";

/** Connects clients to the servers in turn; to the next one when a server does not accept the connection. */
export class LoadBalancer implements AsyncDisposable {
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #ports: readonly number[] = [];
  #next = 0;
  port = 0;

  constructor() {
    this.#server = createServer((client) => {
      this.#clients.add(client);
      client.on("error", () => {});
      client.on("close", () => this.#clients.delete(client));
      const attempt = (left: number): void => {
        const port = this.#ports[this.#next++ % this.#ports.length];
        if (left === 0 || port === undefined) return void client.destroy();
        const server = connect(port, "127.0.0.1", () => {
          client.pipe(server);
          server.pipe(client);
          client.on("close", () => server.destroy());
          server.on("close", () => client.destroy());
        });
        server.on("error", () => (server.bytesRead === 0 && server.pending ? attempt(left - 1) : client.destroy()));
      };
      attempt(this.#ports.length);
    });
  }

  async listen(): Promise<void> {
    this.port = await freePort();
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
  }

  use(servers: readonly { readonly port: number }[]): void {
    this.#ports = servers.map(({ port }) => port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
  }
}
