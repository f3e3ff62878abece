/** The node's addresses: those it was told, or the host's own, which may be others tomorrow. */
import { readHostAddress } from "../../../std/net/host-addresses.ts";

/** Where the host is reached when it has no address at all. */
const LOOPBACK = "127.0.0.1";

export class NodeIps {
  readonly #configured: readonly string[];
  readonly #readAddress: () => Promise<string>;
  #current: readonly string[];

  private constructor(told: readonly string[], refresh: () => Promise<string>, current: readonly string[]) {
    this.#configured = told;
    this.#readAddress = refresh;
    this.#current = current;
  }

  static async open(told: readonly string[], look = readHostAddress): Promise<NodeIps> {
    return new NodeIps(told, look, told.length > 0 ? told : [await look()]);
  }

  /** As of the latest look. */
  get known(): readonly string[] {
    return this.#current;
  }

  /** Looks again. A host whose cable is pulled keeps the address it had. */
  async look(): Promise<readonly string[]> {
    if (this.#configured.length > 0) return this.#configured;
    const found = await this.#readAddress();
    if (found !== LOOPBACK && found !== this.#current[0]) this.#current = [found];
    return this.#current;
  }
}
