/** Settings of the kernel without which packets of services do not pass the packet filter. */
import { readFile, writeFile } from "node:fs/promises";
import type { Logger } from "../std/log/logger.ts";
import { runProgram } from "./nftables/nft.ts";
import { findProxyProgram } from "./programs.ts";

/** Replies between pods on one bridge pass the packet filter only with the first two: it restores their addresses. */
const SETTINGS = [
  "/proc/sys/net/bridge/bridge-nf-call-iptables",
  "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
  "/proc/sys/net/ipv4/ip_forward",
];

/** Sets what is not set. A failure is logged: whether it matters depends on the pods' network. */
export async function prepareKernel(log: Logger): Promise<void> {
  if ((await readSetting(SETTINGS[0]!)) === undefined) await loadBridgeModule(log);
  for (const path of SETTINGS) {
    const value = await readSetting(path);
    if (value === undefined || value === "1") continue;
    try {
      await writeFile(path, "1\n");
      log.info("Changed a setting of the kernel, which services need", { path, from: value, to: "1" });
    } catch (error) {
      log.warn("Cannot change a setting of the kernel, which services need", { path, error: String(error) });
    }
  }
}

async function readSetting(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

async function loadBridgeModule(log: Logger): Promise<void> {
  try {
    await runProgram((await findProxyProgram("modprobe")) ?? "modprobe", ["br_netfilter"], "");
  } catch (error) {
    log.warn("Services cannot connect pods of one bridge: br_netfilter is not loaded", { error: String(error) });
  }
}
