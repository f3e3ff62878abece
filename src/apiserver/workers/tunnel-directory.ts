/** Which thread of a server has the tunnel of each node. The main thread has the directory. */
import type { MessagePort } from "node:worker_threads";
import type { LocalTunnels, TunnelChange } from "../tunnels/tunnel-exchange.ts";

export class TunnelDirectory {
  readonly #threads: () => readonly LocalTunnels[];
  readonly #holders = new Map<string, LocalTunnels>();

  constructor(threads: () => readonly LocalTunnels[]) {
    this.#threads = threads;
  }

  /** The last thread in which a node opens a tunnel has it; one that it had elsewhere is closed. */
  publish(from: LocalTunnels, change: TunnelChange): void {
    const { nodeName, closed } = change;
    const holder = this.#holders.get(nodeName);
    if (closed === undefined) {
      this.#holders.set(nodeName, from);
      if (holder !== undefined && holder !== from) holder.replace(nodeName);
    } else {
      if (holder !== from) return;
      this.#holders.delete(nodeName);
    }
    for (const thread of this.#threads()) if (thread !== from) thread.apply(change);
  }

  connect(nodeName: string, port: MessagePort): void {
    const holder = this.#holders.get(nodeName);
    if (holder === undefined) port.close();
    else holder.connect(nodeName, port);
  }

  /** Sends the open tunnels to a thread that has started. */
  sendAll(thread: LocalTunnels): void {
    for (const [nodeName, holder] of this.#holders)
      if (holder !== thread) thread.apply({ nodeName, closed: undefined });
  }

  /** The thread has ended. `at` is in RFC 3339. */
  remove(thread: LocalTunnels, at: string): void {
    const closed = { at, reason: "its thread of the API server ended" };
    for (const [nodeName, holder] of [...this.#holders])
      if (holder === thread) this.publish(thread, { nodeName, closed });
  }
}
