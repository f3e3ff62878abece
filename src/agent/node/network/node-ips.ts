/** The node's addresses: those configured, or the host's, which may change. */
import { readHostAddress } from "../../../std/net/host-addresses.ts";

/** The address of a host without others. */
const LOOPBACK = "127.0.0.1";

export class NodeIps {
  readonly #configured: readonly string[];
  readonly #readAddress: () => Promise<string>;
  #current: readonly string[];

  private constructor(configured: readonly string[], refresh: () => Promise<string>, current: readonly string[]) {
    this.#configured = configured;
    this.#readAddress = refresh;
    this.#current = current;
  }

  static async open(configured: readonly string[], readAddress = readHostAddress): Promise<NodeIps> {
    return new NodeIps(configured, readAddress, configured.length > 0 ? configured : [await readAddress()]);
  }

  /** As of the latest refresh. */
  get current(): readonly string[] {
    return this.#current;
  }

  /** Reads the addresses again. A host that loses its network keeps the address it had. */
  async refresh(): Promise<readonly string[]> {
    if (this.#configured.length > 0) return this.#configured;
    const found = await this.#readAddress();
    if (found !== LOOPBACK && found !== this.#current[0]) this.#current = [found];
    return this.#current;
  }
}
