/** The gate SvcletCgroupDriverFromCRI: the runtime reports its cgroup driver, which the agent then uses as well. */
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { isUnreachable, type Runtime, RuntimeError } from "./runtime.ts";

export type CgroupDriver = "cgroupfs" | "systemd";

export interface CgroupDriverDeps {
  readonly runtime: Pick<Runtime, "runtimeConfig">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const ATTEMPTS = 3;
const RETRY_MS = 2000;

/**
 * Undefined when the runtime does not report its driver, or cannot be reached: the flag applies. Rejects after three
 * attempts, as kubelet.
 */
export async function readCgroupDriver(deps: CgroupDriverDeps): Promise<CgroupDriver | undefined> {
  const { runtime, clock, log, signal } = deps;
  for (let attempt = 1; ; attempt++) {
    try {
      return toDriver(await runtime.runtimeConfig({}, signal), log);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RuntimeError)) throw error;
      if (error.code === "UNIMPLEMENTED") {
        log
          .v(2)
          ?.info("The runtime does not support RuntimeConfig. Falling back to using cgroupDriver from svclet config");
        return undefined;
      }
      if (isUnreachable(error)) {
        log.warn("Cannot read the runtime's cgroup driver; using that of the configuration", { error: error.message });
        return undefined;
      }
      if (attempt === ATTEMPTS) throw new Error("Cannot read the runtime's cgroup driver", { cause: error });
      await clock.sleep(RETRY_MS, signal);
    }
  }
}

function toDriver({ linux }: Awaited<ReturnType<Runtime["runtimeConfig"]>>, log: Logger): CgroupDriver | undefined {
  if (linux === undefined) return undefined;
  // The zero value is systemd, in an object that is present.
  const cgroupDriver = linux.cgroupDriver === "CGROUPFS" ? "cgroupfs" : "systemd";
  log.info("Using cgroup driver setting received from the CRI runtime", { cgroupDriver });
  return cgroupDriver;
}
