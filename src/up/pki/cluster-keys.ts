/** The cluster's keys and the administrator's file: made or looked over at the start, then for as long as it runs. */
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

/** The clock may be set at any time, so it is looked at this often. */
const LOOK_MS = 60_000;

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
    log.warn("Others could read keys; now they cannot. If anybody did, make them anew: remove these files", {
      files: pki.restricted,
    });
  }
  if (pki.issued.length > 0) log.info("Made keys and certificates", { for: pki.issued });
  return pki;
}

async function writeAdminConfig(options: UpOptions, { ca, admin }: Pki): Promise<void> {
  const common = { server: localServerUrl(options), cluster: "svc", context: "svc", ca };
  await writeKubeconfig(adminConfigFile(options), { ...common, user: "svc-admin", ...admin });
}

/** Sees that nothing runs out meanwhile. Those who use the files look after them by themselves. */
export function renewKeys(options: UpOptions, deps: Deps): AsyncDisposable {
  const { clock, log } = deps;
  const stop = new AbortController();
  let complaint = "";
  const look = async (): Promise<void> => {
    try {
      const pki = await ensureKeys(options, deps);
      if (pki.issued.length > 0) await writeAdminConfig(options, pki);
      complaint = "";
    } catch (error) {
      if (String(error) !== complaint) log.error("Cannot look after the cluster's keys; trying again", error);
      complaint = String(error);
    }
  };
  const running = (async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(LOOK_MS, stop.signal).catch(() => {});
      if (!stop.signal.aborted) await look();
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the cluster stops"));
      await running;
    },
  };
}
