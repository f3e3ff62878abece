/** Sends the pod CIDR to the runtime (UpdateRuntimeConfig), which may write its network configuration from it. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Runtime } from "../../runtime/runtime.ts";

export interface PodCidrUpdaterOptions {
  readonly runtime: Pick<Runtime, "updateRuntimeConfig">;
  /** Used until the Node object has one; empty: none. */
  readonly podCidr: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const RETRY_MS = 10_000;

export class PodCidrUpdater {
  readonly #options: PodCidrUpdaterOptions;
  #podCidr: string;
  #sent = "";
  #failing = false;
  #changed = Promise.withResolvers<void>();

  constructor(options: PodCidrUpdaterOptions) {
    this.#options = options;
    this.#podCidr = options.podCidr;
  }

  /** Called when the Node object is read or has changed; a pod CIDR is never removed. */
  nodeChanged({ spec = {} }: Node): void {
    const { podCIDR = "", podCIDRs = [podCIDR] } = spec;
    const wanted = podCIDRs.join(",");
    if (wanted === "") return;
    this.#podCidr = wanted;
    this.#changed.resolve();
  }

  /** Sends changes until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const stopped = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => stopped.resolve(), { once: true });
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers();
      const isSent = await this.#update(signal);
      const again = isSent ? stopped.promise : clock.sleep(RETRY_MS, signal).catch(() => undefined);
      await Promise.race([again, this.#changed.promise, stopped.promise]);
    }
  }

  async #update(signal: AbortSignal): Promise<boolean> {
    const { runtime, log } = this.#options;
    const podCidr = this.#podCidr;
    if (podCidr === this.#sent) return true;
    try {
      await runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, signal);
      this.#sent = podCidr;
      this.#failing = false;
      log.info("Updated the pod CIDR of the runtime", { podCidr });
      return true;
    } catch (error) {
      const isFirst = !this.#failing && !signal.aborted;
      if (isFirst) log.warn("Cannot update the pod CIDR of the runtime", { podCidr, error: String(error) });
      this.#failing = true;
      return false;
    }
  }
}
