/** The ports that the program listens on, and the processes that use them. */
import { type Finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";
import type { ListenerSubject } from "./subject.ts";

export interface PortOwner {
  readonly port: number;
  readonly address: string;
  /** Undefined: the process cannot be found, which needs root. */
  readonly pid: number | undefined;
  readonly program: string;
  /** `agent` or `up` when it is a program of svc. */
  readonly svcProgram: string | undefined;
}

export function checkPorts(
  listeners: readonly ListenerSubject[],
  owners: readonly PortOwner[],
  isOwn: (owner: PortOwner) => boolean,
): readonly Finding[] {
  return listeners
    .filter(({ port }) => port > 0)
    .map(({ flag, port, address }) => {
      const where = `${flag} ${port}`;
      const found = owners.filter((owner) => owner.port === port && conflicts(owner.address, address));
      const other = found.find((owner) => !isOwn(owner));
      const own = found.find(isOwn);
      const state = own === undefined ? "free" : `svc listens (process ${own.pid})`;
      // Without root, the owner may be svc itself.
      const severity = other?.pid === undefined ? "warning" : "error";
      return findingOf("port-free", `${where}: ${state}`, other && `${where}: used by ${describe(other)}`, severity);
    });
}

function describe({ pid, program }: PortOwner): string {
  return pid === undefined ? "a process that cannot be read" : `process ${pid} (${program})`;
}

function conflicts(used: string, wanted: string): boolean {
  const isAny = (address: string): boolean => ["", "0.0.0.0", "::"].includes(address);
  return isAny(used) || isAny(wanted) || used === wanted;
}

interface ListeningSocket {
  readonly port: number;
  readonly address: string;
  readonly inode: string;
}

const LISTEN = "0A";

/** Processes that listen on one of the ports. */
export async function readPortOwners(host: HostReader, ports: readonly number[]): Promise<readonly PortOwner[]> {
  const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((path) => host.readText(path)));
  const sockets = tables.flatMap((table) => parseListening(table ?? "")).filter(({ port }) => ports.includes(port));
  if (sockets.length === 0) return [];
  const owners = await findOwners(host, new Set(sockets.map(({ inode }) => inode)));
  return await Promise.all(
    sockets.map(async ({ port, address, inode }) => {
      const pid = owners.get(inode);
      const command = pid === undefined ? [] : await readCommand(host, pid);
      const svcProgram = findSvcProgram(command);
      return {
        port,
        address,
        pid,
        program: svcProgram === undefined ? nameOf(command) : `svc ${svcProgram}`,
        svcProgram,
      };
    }),
  );
}

function parseListening(table: string): readonly ListeningSocket[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    if (state !== LISTEN) return [];
    return [{ port: Number.parseInt(port, 16), address: parseAddress(address), inode }];
  });
}

/** An address in words of the host's byte order, which is little-endian on the supported CPUs. */
function parseAddress(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).reverse());
  const numbers = bytes.map((byte) => Number.parseInt(byte, 16));
  if (numbers.length === 4) return numbers.join(".");
  const mapped = numbers.slice(0, 12).join(".") === "0.0.0.0.0.0.0.0.0.0.255.255";
  if (mapped) return numbers.slice(12).join(".");
  if (numbers.every((byte) => byte === 0)) return "::";
  if (numbers.slice(0, 15).every((byte) => byte === 0) && numbers[15] === 1) return "::1";
  return (bytes.join("").match(/.{4}/g) ?? []).join(":").toLowerCase();
}

/** Processes by the inodes of their sockets. */
async function findOwners(host: HostReader, inodes: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const owners = new Map<string, number>();
  for (const pid of ((await host.list("/proc")) ?? []).filter((name) => /^\d+$/.test(name))) {
    if (owners.size === inodes.size) break;
    for (const link of await host.links(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
      if (inode !== undefined && inodes.has(inode)) owners.set(inode, Number(pid));
    }
  }
  return owners;
}

async function readCommand(host: HostReader, pid: number): Promise<readonly string[]> {
  const words = ((await host.readText(`/proc/${pid}/cmdline`)) ?? "").split("\0").filter((word) => word !== "");
  // A process that has set its title, as svc does, has one word with blanks.
  return words.length === 1 ? words[0]!.split(" ") : words;
}

/** The program without its arguments, which may be secrets. */
function nameOf(command: readonly string[]): string {
  return baseName(command[0] ?? "unknown");
}

/** The word behind the file of svc, or of its script. */
function findSvcProgram(command: readonly string[]): string | undefined {
  const index = command.findIndex((word) => {
    return /(?:^|\/)(?:svc|svclet|svc-linux-\w+|src\/main\.ts)$/.test(word) || word === process.argv[1];
  });
  if (index < 0) return undefined;
  const [file = "", program = ""] = command.slice(index);
  return baseName(file) === "svclet" ? "agent" : /^[a-z]+$/.test(program) ? program : undefined;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
