/**
 * Deletes the kernel's entries of UDP flows that no longer lead where they should: to endpoints that are gone, or to
 * none, since they are older than the service. A client that keeps sending would use them for ever. Needs the program
 * `conntrack`; without it flows end when they are idle for the kernel's timeout.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { IpFamily } from "../std/net/ip.ts";
import { runProgram } from "../std/nftables/nft.ts";
import type { ServiceFrontends } from "./frontends.ts";

/** `address port` of a frontend → `address port` of each of its endpoints. */
export type UdpTargets = ReadonlyMap<string, ReadonlySet<string>>;

function targetsOf(service: ServiceFrontends | undefined): UdpTargets {
  const targets = new Map<string, ReadonlySet<string>>();
  for (const { address, protocol, port, action } of service?.frontends ?? []) {
    if (protocol !== "udp") continue;
    const endpoints =
      action.type === "forward"
        ? action.endpoints
        : action.type === "forwardLocally"
          ? [...action.local, ...action.cluster]
          : [];
    targets.set(`${address} ${port}`, new Set(endpoints.map((endpoint) => endpoint.replace(" . ", " "))));
  }
  return targets;
}

/** The frontends whose flows may be stale after a change of a service: new ones, and those that lost endpoints. */
export function findChangedTargets(
  before: ServiceFrontends | undefined,
  after: ServiceFrontends | undefined,
): UdpTargets {
  const [old, next] = [targetsOf(before), targetsOf(after)];
  const changed = new Map<string, ReadonlySet<string>>();
  for (const key of new Set([...old.keys(), ...next.keys()])) {
    const [had, has = new Set<string>()] = [old.get(key), next.get(key)];
    if (had === undefined || [...had].some((endpoint) => !has.has(endpoint))) changed.set(key, has);
  }
  return changed;
}

export interface Flow {
  readonly source: string;
  readonly sourcePort: string;
  readonly destination: string;
  readonly destinationPort: string;
}

/** The flow in a line of `conntrack -L`, if it leads to none of the endpoints of its frontend. */
export function findStaleFlow(line: string, targets: UdpTargets): Flow | undefined {
  const values = [...line.matchAll(/\b(?:src|dst|sport|dport)=(\S+)/g)].map(([, value = ""]) => value);
  const [source = "", destination = "", sourcePort = "", destinationPort = "", endpoint, , endpointPort] = values;
  const endpoints = targets.get(`${destination} ${destinationPort}`);
  if (endpoints === undefined || endpoints.has(`${endpoint} ${endpointPort}`)) return undefined;
  return { source, sourcePort, destination, destinationPort };
}

/**
 * Resolves with the number of deleted flows; undefined if no frontend is of the family. Flows that appear meanwhile
 * follow the rules, which are changed already.
 */
export async function deleteStaleFlows(
  program: string,
  ipFamily: IpFamily,
  targets: UdpTargets,
): Promise<number | undefined> {
  const family = ipFamily === "IPv6" ? "ipv6" : "ipv4";
  if (![...targets.keys()].some((key) => key.includes(":") === (family === "ipv6"))) return undefined;
  let deleted = 0;
  for (const flow of await listStaleFlows(program, family, targets)) {
    const { source, sourcePort, destination, destinationPort } = flow;
    const tuple = ["-s", source, "-d", destination, "--sport", sourcePort, "--dport", destinationPort];
    try {
      await runProgram(program, ["-D", "-f", family, "-p", "udp", ...tuple], "");
      deleted++;
    } catch (error) {
      // The flow may have ended meanwhile.
      if (!String(error).includes("0 flow entries")) throw error;
    }
  }
  return deleted;
}

async function listStaleFlows(program: string, family: string, targets: UdpTargets): Promise<readonly Flow[]> {
  const child = spawn(program, ["-L", "-f", family, "-p", "udp"], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = Promise.withResolvers<void>();
  child.on("error", (error) => ended.reject(new Error(`Cannot run ${program}: ${error.message}`, { cause: error })));
  child.on("close", (code) => {
    if (code === 0) ended.resolve();
    else ended.reject(new Error(`${program} -L failed (${code})`));
  });
  ended.promise.catch(() => {});
  const stale: Flow[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const flow = findStaleFlow(line, targets);
    if (flow !== undefined) stale.push(flow);
  }
  await ended.promise;
  return stale;
}
