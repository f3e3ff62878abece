/** The nodes as last read from the API server, for a start without it. */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import type { NetworkNode } from "./network-plan.ts";

interface Content {
  readonly version: 1;
  readonly nodes: readonly NetworkNode[];
}

export class NodeFile {
  readonly #path: string;
  #written = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined if there is none, or none that can be used. */
  async read(): Promise<readonly NetworkNode[] | undefined> {
    try {
      const text = await readFile(this.#path, "utf8");
      const { version, nodes } = JSON.parse(text) as Content;
      if (version !== 1 || !Array.isArray(nodes)) return undefined;
      this.#written = text;
      return nodes.map(({ name, podCidrs, addresses }) => ({
        name: String(name),
        podCidrs: podCidrs.map(String),
        addresses: addresses.map(String),
      }));
    } catch {
      return undefined;
    }
  }

  /** Without effect if the file has the nodes already. */
  async write(nodes: readonly NetworkNode[]): Promise<void> {
    const content: Content = { version: 1, nodes: nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
    const text = JSON.stringify(content);
    if (text === this.#written) return;
    await writeFile(`${this.#path}.new`, text, { mode: 0o600 });
    await rename(`${this.#path}.new`, this.#path);
    this.#written = text;
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
    this.#written = "";
  }
}
