/** The CSI drivers that are registered on this node. */
import type { Clock } from "../../../std/time/clock.ts";
import type { Plugin, PluginHandler } from "../../plugins/plugin-watcher.ts";
import type { CsiNodeWriter } from "./csi-node.ts";
import { CsiDriver } from "./driver.ts";
import { findVersionProblem } from "./driver-versions.ts";

export interface CsiDriverRegistryOptions {
  readonly clock: Clock;
  /** Undefined: there is no API server. */
  readonly csiNode: Pick<CsiNodeWriter, "add" | "remove"> | undefined;
  /** Called when a driver was registered. */
  readonly onChange: () => void;
}

export class CsiDriverRegistry implements PluginHandler, Disposable {
  readonly #options: CsiDriverRegistryOptions;
  /** By name; as many as there are sockets. */
  readonly #drivers = new Map<string, CsiDriver>();

  constructor(options: CsiDriverRegistryOptions) {
    this.#options = options;
  }

  get(name: string): CsiDriver | undefined {
    return this.#drivers.get(name);
  }

  validate({ name, endpoint, versions }: Plugin): void {
    const problem = findVersionProblem(name, versions);
    if (problem === undefined) return;
    throw new Error(`validation failed for CSI Driver ${name} at endpoint ${endpoint}: ${problem}`);
  }

  async register({ name, endpoint }: Plugin, signal: AbortSignal): Promise<void> {
    const { clock, csiNode: record, onChange } = this.#options;
    const driver = new CsiDriver(name, endpoint, clock);
    try {
      const info = await driver.getInfo(signal);
      await record?.add(name, info);
      signal.throwIfAborted();
    } catch (error) {
      driver[Symbol.dispose]();
      throw error;
    }
    this.#drivers.get(name)?.[Symbol.dispose]();
    this.#drivers.set(name, driver);
    onChange();
  }

  /** A driver that has registered again on another socket stays. */
  async deregister({ name, endpoint }: Plugin): Promise<void> {
    const driver = this.#drivers.get(name);
    if (driver?.endpoint !== endpoint) return;
    this.#drivers.delete(name);
    driver[Symbol.dispose]();
    await this.#options.csiNode?.remove(name);
  }

  [Symbol.dispose](): void {
    for (const driver of this.#drivers.values()) driver[Symbol.dispose]();
    this.#drivers.clear();
  }
}
