/** The node's addresses: those it was told, or the host's own, which may be others tomorrow. */
import { readHostAddress } from "../../../std/net/host-addresses.ts";

/** Where the host is reached when it has no address at all. */
const NOWHERE = "127.0.0.1";

export class NodeIps {
  readonly #told: readonly string[];
  readonly #look: () => Promise<string>;
  #known: readonly string[];

  private constructor(told: readonly string[], look: () => Promise<string>, known: readonly string[]) {
    this.#told = told;
    this.#look = look;
    this.#known = known;
  }

  static async open(told: readonly string[], look = readHostAddress): Promise<NodeIps> {
    return new NodeIps(told, look, told.length > 0 ? told : [await look()]);
  }

  /** As of the latest look. */
  get known(): readonly string[] {
    return this.#known;
  }

  /** Looks again. A host whose cable is pulled keeps the address it had. */
  async look(): Promise<readonly string[]> {
    if (this.#told.length > 0) return this.#told;
    const found = await this.#look();
    if (found !== NOWHERE && found !== this.#known[0]) this.#known = [found];
    return this.#known;
  }
}
