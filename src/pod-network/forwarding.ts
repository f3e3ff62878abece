/** Lets the kernel forward packets between pods and other hosts. */
import { readFile, writeFile } from "node:fs/promises";
import type { IpFamily } from "../std/net/ip.ts";

const SETTINGS = {
  IPv4: "/proc/sys/net/ipv4/ip_forward",
  IPv6: "/proc/sys/net/ipv6/conf/all/forwarding",
} as const;

/** Rejects with a message for the operator. */
export async function enableForwarding(family: IpFamily, files = { readFile, writeFile }): Promise<void> {
  const path = SETTINGS[family];
  try {
    if ((await files.readFile(path, "utf8")).trim() === "1") return;
    await files.writeFile(path, "1\n");
  } catch (error) {
    throw new Error(`Cannot let the kernel forward packets of pods: ${String(error)}`, { cause: error });
  }
}
