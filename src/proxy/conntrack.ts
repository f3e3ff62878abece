/**
 * Deletes the kernel's entries of UDP flows to endpoints that are gone: a client that keeps sending would reach them
 * for ever. Needs the program `conntrack`; without it flows end when they are idle for the kernel's timeout.
 */
import type { ServiceFrontends } from "./frontends.ts";
import { runProgram } from "./nftables/nft.ts";

export interface StaleFlow {
  readonly address: string;
  readonly port: number;
  readonly endpoint: string;
}

/** The flows of frontends that a service no longer has, or whose endpoints are gone. */
export function findStaleFlows(before: ServiceFrontends | undefined, after: ServiceFrontends | undefined): StaleFlow[] {
  const kept = udpTargets(after);
  return [...udpTargets(before)].flatMap(([key, flow]) => (kept.has(key) ? [] : [flow]));
}

function udpTargets(service: ServiceFrontends | undefined): ReadonlyMap<string, StaleFlow> {
  const targets = new Map<string, StaleFlow>();
  for (const { address, protocol, port, action } of service?.frontends ?? []) {
    if (protocol !== "udp") continue;
    const endpoints =
      action.type === "forward"
        ? action.endpoints
        : action.type === "forwardLocally"
          ? [...action.local, ...action.cluster]
          : [];
    for (const endpoint of endpoints) {
      const [ip = ""] = endpoint.split(" ");
      targets.set(`${address} ${port} ${endpoint}`, { address, port, endpoint: ip });
    }
  }
  return targets;
}

/** Resolves in any case; `onError` is called once for a failure. */
export async function deleteFlows(
  program: string,
  flows: readonly StaleFlow[],
  onError: (error: unknown) => void,
): Promise<void> {
  for (const { address, port, endpoint } of flows) {
    const family = address.includes(":") ? "ipv6" : "ipv4";
    const filter = ["--orig-dst", address, "--orig-port-dst", String(port), "--reply-src", endpoint];
    try {
      await runProgram(program, ["-D", "-f", family, "-p", "udp", ...filter], "");
    } catch (error) {
      // The program fails when there is no such flow.
      if (!String(error).includes("0 flow entries")) {
        onError(error);
        return;
      }
    }
  }
}
