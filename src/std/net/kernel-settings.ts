/** Settings of the kernel's network. */
import { readFile, writeFile } from "node:fs/promises";
import type { Logger } from "../log/logger.ts";
import { runProgram } from "../nftables/nft.ts";
import { findSystemProgram } from "../process/system-programs.ts";

export interface KernelHost {
  /** Undefined if the setting does not exist. */
  read(path: string): Promise<string | undefined>;
  write(path: string, value: string): Promise<void>;
  loadModule(name: string): Promise<void>;
}

export const IP_FORWARD = "/proc/sys/net/ipv4/ip_forward";
/** With 1, packets between two ports of a bridge pass nftables. Of the module br_netfilter. */
export const BRIDGE_FILTER = "/proc/sys/net/bridge/bridge-nf-call-iptables";
export const BRIDGE_FILTER_6 = "/proc/sys/net/bridge/bridge-nf-call-ip6tables";

export const systemKernel: KernelHost = {
  read: (path) =>
    readFile(path, "utf8").then(
      (text) => text.trim(),
      () => undefined,
    ),
  write: (path, value) => writeFile(path, value),
  loadModule: async (name) => await runProgram((await findSystemProgram("modprobe")) ?? "modprobe", [name], ""),
};

/** Loads the module of the bridge settings if they are missing. Rejects if they cannot be had. */
export async function loadBridgeFilter(host: KernelHost): Promise<void> {
  if ((await host.read(BRIDGE_FILTER)) === undefined) await host.loadModule("br_netfilter");
}

/** Sets to 1 what exists and is not. A failure is logged: whether it matters depends on the pods' network. */
export async function enableSettings(
  paths: readonly string[],
  use: string,
  log: Logger,
  host: KernelHost,
): Promise<void> {
  for (const path of paths) {
    const value = await host.read(path);
    if (value === undefined || value === "1") continue;
    try {
      await host.write(path, "1\n");
      log.info(`Changed a setting of the kernel, which ${use} need`, { path, from: value, to: "1" });
    } catch (error) {
      log.warn(`Cannot change a setting of the kernel, which ${use} need`, { path, error: String(error) });
    }
  }
}
