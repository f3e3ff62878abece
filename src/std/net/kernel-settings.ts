/** Settings of the kernel without which rules do not apply to packets of services. */
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

const BRIDGE = "/proc/sys/net/bridge/bridge-nf-call-iptables";
/** Replies between pods on one bridge pass nftables only with the first two: it restores their addresses. */
const SETTINGS = [BRIDGE, "/proc/sys/net/bridge/bridge-nf-call-ip6tables", "/proc/sys/net/ipv4/ip_forward"];

const systemHost: KernelHost = {
  read: (path) =>
    readFile(path, "utf8").then(
      (text) => text.trim(),
      () => undefined,
    ),
  write: (path, value) => writeFile(path, value),
  loadModule: async (name) => await runProgram((await findSystemProgram("modprobe")) ?? "modprobe", [name], ""),
};

/** Sets what is not set. A failure is logged: whether it matters depends on the pods' network. */
export async function prepareKernel(log: Logger, host = systemHost): Promise<void> {
  if ((await host.read(BRIDGE)) === undefined) {
    await host.loadModule("br_netfilter").catch((error: unknown) => {
      log.warn("Services cannot connect pods of one bridge: br_netfilter is not loaded", { error: String(error) });
    });
  }
  for (const path of SETTINGS) {
    const value = await host.read(path);
    if (value === undefined || value === "1") continue;
    try {
      await host.write(path, "1\n");
      log.info("Changed a setting of the kernel, which services need", { path, from: value, to: "1" });
    } catch (error) {
      log.warn("Cannot change a setting of the kernel, which services need", { path, error: String(error) });
    }
  }
}
