/** `/flagz` and `/statusz` of the agent, under their feature gates. */
import { flagz, statusz } from "../../../http/zpages.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Endpoints } from "../endpoints.ts";

export interface StatusPagesOptions {
  /** Undefined: `/flagz` is not served. */
  readonly flags: Readonly<Record<string, string>> | undefined;
  /** Whether `/statusz` is served. */
  readonly statusPage: boolean;
  /** `v1.33.0` */
  readonly version: string;
}

/** Kubernetes' name of the component, which tools look for. */
const COMPONENT = "kubelet";

export function addStatusPages(endpoints: Endpoints, options: StatusPagesOptions, clock: Clock): void {
  const { flags, statusPage, version } = options;
  if (flags !== undefined) {
    endpoints.path("/flagz", async (request) => flagz(`${COMPONENT} flags`, flags, request));
  }
  if (!statusPage) return;
  const startedMs = clock.now();
  const binaryVersion = version.replace(/^v/, "");
  endpoints.path("/statusz", async (request) => {
    const status = { startedMs, nowMs: clock.now(), runtimeVersion: `node${process.version}`, binaryVersion };
    const emulationVersion = binaryVersion.split(".").slice(0, 2).join(".");
    return statusz(COMPONENT, { ...status, emulationVersion }, request);
  });
}
