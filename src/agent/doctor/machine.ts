/** The machine: user, memory, CPUs, swap, the node's name and addresses. */
import { isIP } from "node:net";
import { findForeignAddresses } from "../../std/net/host-addresses.ts";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

export interface MachineFacts {
  readonly uid: number;
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  readonly cpus: number;
  readonly swap: readonly string[];
  readonly interfaces: HostReader["interfaces"];
}

export interface MachineSettings {
  readonly nodeName: string;
  /** Empty: that of the default route. */
  readonly nodeIps: readonly string[];
  readonly failSwapOn: boolean;
  readonly reservedCpuMillis: number;
}

const MIB = 2 ** 20;
const MEMORY_MIN = 256 * MIB;
const MEMORY_ENOUGH = 700 * MIB;
const AVAILABLE_ENOUGH = 100 * MIB;
const NAME_MAX = 253;

export function checkMachineFacts(facts: MachineFacts, settings: MachineSettings): readonly Finding[] {
  const { swap } = facts;
  const { failSwapOn } = settings;
  return [
    findingOf("machine-user", "root", facts.uid === 0 ? undefined : `the user is not root (uid ${facts.uid})`),
    checkMemory(facts),
    checkCpus(facts, settings),
    findingOf("swap", "off", swap.length > 0 ? `on: ${swap.join(", ")}` : undefined, failSwapOn ? "error" : "warning"),
    checkNodeName(settings.nodeName),
    checkNodeIp(facts, settings.nodeIps),
  ];
}

function checkMemory({ memoryBytes, memoryAvailableBytes }: MachineFacts): Finding {
  const found = `${toMib(memoryBytes)} MiB, ${toMib(memoryAvailableBytes)} MiB available`;
  const isScarce = memoryBytes < MEMORY_ENOUGH || memoryAvailableBytes < AVAILABLE_ENOUGH;
  return finding("machine-memory", memoryBytes < MEMORY_MIN ? "error" : isScarce ? "warning" : "ok", found);
}

function toMib(bytes: number): number {
  return Math.floor(bytes / MIB);
}

function checkCpus({ cpus }: MachineFacts, { reservedCpuMillis }: MachineSettings): Finding {
  const isUsable = cpus * 1000 > reservedCpuMillis;
  const reserved = reservedCpuMillis > 0 ? `, ${reservedCpuMillis}m reserved` : "";
  return finding("machine-cpus", isUsable ? "ok" : "error", `${cpus}${reserved}`);
}

function checkNodeName(name: string): Finding {
  const isLong = name.length > NAME_MAX;
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);
  if (isLong || !isName) return finding("node-name", "error", `${JSON.stringify(name)} is not a DNS subdomain`);
  // All machines with the name of an image would be one node.
  const isGeneric = ["localhost", "localhost.localdomain", "raspberrypi", "debian", "ubuntu"].includes(name);
  return findingOf(
    "node-name",
    name,
    isGeneric ? `${name} is a name that other machines have too` : undefined,
    "warning",
  );
}

function checkNodeIp({ interfaces }: MachineFacts, configured: readonly string[]): Finding {
  const id = "node-ip";
  const invalid = configured.find((address) => isIP(address) === 0);
  if (invalid !== undefined) return finding(id, "error", `${invalid} is not an address`);
  const named = configured.filter((address) => address !== "0.0.0.0" && address !== "::");
  const foreign = findForeignAddresses(named, interfaces);
  if (foreign.length > 0) return finding(id, "error", `${foreign.join(", ")} is not an address of this machine`);
  const loopback = named.find((address) => address === "::1" || address.startsWith("127."));
  if (loopback !== undefined) return finding(id, "warning", `${loopback} is a loopback address`);
  if (named.length > 0) return finding(id, "ok", named.join(", "));
  const own = Object.values(interfaces).flatMap((all) => (all ?? []).filter(({ internal }) => !internal));
  if (own.length === 0) return finding(id, "warning", "this machine has loopback addresses only");
  return finding(id, "ok", "that of the default route");
}

/** Whether another machine has registered under the node's name. */
export function checkUniqueName(nodeName: string, own: string, registered: string | undefined): readonly Finding[] {
  if (registered === undefined || registered === "" || own === "") return [];
  return [
    findingOf(
      "node-name-unique",
      `${nodeName} is this machine`,
      own === registered
        ? undefined
        : `${nodeName} is registered by the machine with the id ${registered}; that of this machine is ${own}`,
      "warning",
    ),
  ];
}

export async function readMachineFacts(host: HostReader): Promise<MachineFacts> {
  const meminfo = (await host.readText("/proc/meminfo")) ?? "";
  const kilobytes = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(meminfo)?.[1] ?? 0);
  const cpus = /^processor\s*:/gm;
  const swaps = ((await host.readText("/proc/swaps")) ?? "").split("\n").slice(1);
  return {
    uid: host.uid,
    memoryBytes: kilobytes("MemTotal") * 1024,
    memoryAvailableBytes: kilobytes("MemAvailable") * 1024,
    cpus: ((await host.readText("/proc/cpuinfo")) ?? "").match(cpus)?.length ?? 1,
    swap: swaps.map((line) => line.split(/\s+/)[0] ?? "").filter((name) => name !== ""),
    interfaces: host.interfaces,
  };
}
