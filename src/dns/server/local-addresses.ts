/** Puts the addresses of the server on the loopback interface, which routes pods' packets for them to this host. */
import { execFile } from "node:child_process";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";

/** Runs `ip`. Rejects with its stderr. */
export type RunIp = (args: readonly string[]) => Promise<void>;

const COMMAND_MS_MAX = 10_000;

export const runIp: RunIp = async (args) => {
  await promisify(execFile)("ip", [...args], { timeout: COMMAND_MS_MAX });
};

/** Whether this host has the address. */
function isLocalAddress(address: string): boolean {
  if (isLoopback(address)) return true;
  return Object.values(networkInterfaces()).some((each) => each?.some((entry) => entry.address === address));
}

/**
 * Scope host: the address is reachable, and never chosen as the source of other packets. Without effect when the host
 * has the address.
 */
export async function addLocalAddress(address: string, run: RunIp): Promise<void> {
  if (isLocalAddress(address)) return;
  const options = address.includes(":") ? ["nodad"] : ["scope", "host"];
  await run(["address", "add", toBlock(address), "dev", LOOPBACK, ...options]);
}

/** Without effect when the loopback interface does not have the address. */
export async function removeLocalAddress(address: string, run: RunIp): Promise<void> {
  if (isLoopback(address)) return;
  const ofLoopback = networkInterfaces()[LOOPBACK] ?? [];
  if (!ofLoopback.some((entry) => entry.address === address)) return;
  await run(["address", "delete", toBlock(address), "dev", LOOPBACK]);
}

const LOOPBACK = "lo";

/** Addresses that every host has. */
function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

function toBlock(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}
