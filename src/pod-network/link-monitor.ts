/** Follows changes of the node's links, addresses and routes with `ip monitor`. */
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { ROUTE_PROTOCOL } from "./kernel-state.ts";
import type { NetworkNames } from "./network-names.ts";
import type { RouteTools } from "./programs.ts";

/** Whether a line of `ip -oneline monitor link address route` may concern the ways to other nodes. */
export function affectsNetwork(line: string, { device, bridge }: NetworkNames): boolean {
  const text = line.replace(/^Deleted /, "");
  const isDeleted = text !== line;
  const ofLink = /^\d+: ([^:@\s]+)/.exec(text)?.[1];
  // The devices of pods come and go.
  if (ofLink !== undefined) return !ofLink.startsWith("veth") && ofLink !== bridge;
  if (/^fe80::|^multicast | dev veth| table local | linkdown/.test(text)) return false;
  // Changes that this process made; and the addresses of the device, which come with it.
  if (!isDeleted && text.includes(` proto ${ROUTE_PROTOCOL} `)) return false;
  return isDeleted || !text.includes(` dev ${device} `);
}

/** Calls `onChange` for each change that matters. Resolves when the program has ended, at the latest on abort. */
export async function monitorLinks(
  tools: RouteTools,
  names: NetworkNames,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  const child: ChildProcess = tools.monitor();
  const ended = Promise.withResolvers<void>();
  child.once("error", () => ended.resolve()).once("close", () => ended.resolve());
  const stop = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    if (child.stdout !== null) {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (affectsNetwork(line, names)) onChange();
      });
    }
    await ended.promise;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
