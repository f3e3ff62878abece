/** The cluster's keys and the administrator's connection file, checked at the start and at an interval. */
import { join } from "node:path";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { localServerUrl, serverNames, type UpOptions } from "../options.ts";
import { ensurePki, type Pki } from "./pki.ts";

interface Deps {
  readonly clock: Clock;
  readonly log: Logger;
}

/** The interval of checks; a timer until the expiration would be wrong after the clock is set. */
const CHECK_INTERVAL_MS = 60_000;

export function adminConfigFile({ dataDir }: Pick<UpOptions, "dataDir">): string {
  return join(dataDir, "admin.svcconfig");
}

/** Rejects when the files cannot be read or written. */
export async function openClusterKeys(options: UpOptions, deps: Deps): Promise<Pki> {
  const pki = await ensureKeys(options, deps);
  await writeAdminConfig(options, pki);
  return pki;
}

async function ensureKeys(options: UpOptions, { clock, log }: Deps): Promise<Pki> {
  const directory = join(options.dataDir, "pki");
  const pki = await ensurePki({ directory, serverNames: serverNames(options), now: clock.now() });
  if (pki.restricted.length > 0) {
    log.warn("Restricted permissions of keys that other users could read; to replace keys, remove the files", {
      files: pki.restricted,
    });
  }
  if (pki.issued.length > 0) log.info("Issued certificates", { names: pki.issued });
  return pki;
}

async function writeAdminConfig(options: UpOptions, { ca, admin }: Pki): Promise<void> {
  const common = { server: localServerUrl(options), cluster: "svc", context: "svc", ca };
  await writeKubeconfig(adminConfigFile(options), { ...common, user: "svc-admin", ...admin });
}

/** Renews certificates before they expire. Their users reload the files. */
export function renewKeys(options: UpOptions, deps: Deps): AsyncDisposable {
  const { clock, log } = deps;
  const stop = new AbortController();
  let lastError = "";
  const check = async (): Promise<void> => {
    try {
      const pki = await ensureKeys(options, deps);
      if (pki.issued.length > 0) await writeAdminConfig(options, pki);
      lastError = "";
    } catch (error) {
      if (String(error) !== lastError) log.error("Failed to check the cluster's keys; retrying", error);
      lastError = String(error);
    }
  };
  const running = (async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, stop.signal).catch(() => {});
      if (!stop.signal.aborted) await check();
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the cluster stops"));
      await running;
    },
  };
}
