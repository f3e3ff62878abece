/** Reads what network interfaces have transferred, and how processes use their resources. */
import { readlinkSync } from "node:fs";
import { listDirectory, readProcFile } from "./proc-file.ts";

export interface InterfaceUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** Interfaces of the process's network namespace, without the loopback device and the host's ends of pods' links. */
export function readInterfaces(process: number | "self"): readonly InterfaceUsage[] {
  return parseInterfaces(readProcFile(`/proc/${process}/net/dev`) ?? "");
}

/** The format of `/proc/net/dev`: two lines of titles, then a line for each interface. */
export function parseInterfaces(text: string): readonly InterfaceUsage[] {
  return text
    .split("\n")
    .slice(2)
    .flatMap((line) => {
      const [name = "", rest] = line.split(":");
      if (rest === undefined || /^\s*(?:lo|veth.*)$/.test(name)) return [];
      const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0, , , , , ...sent] = rest
        .trim()
        .split(/\s+/)
        .map(Number);
      const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = sent;
      return [{ name: name.trim(), rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped }];
    });
}

/** The interface of the default route; undefined without one. */
export function readDefaultInterface(): string | undefined {
  const lines = (readProcFile("/proc/net/route") ?? "").split("\n").slice(1);
  return lines.map((line) => line.split("\t")).find(([, destination]) => destination === "00000000")?.[0];
}

export interface ProcessUsage {
  readonly descriptors: number;
  /** Undefined for a process with too many descriptors to look at. */
  readonly sockets: number | undefined;
  /** Soft limit of open files; undefined: none. */
  readonly descriptorsMax: number | undefined;
}

/** Reading what each descriptor is takes 2 µs. */
const DESCRIPTORS_MAX = 512;

/** Undefined when the process has ended. */
export function readProcess(id: number): ProcessUsage | undefined {
  const open = listDirectory(`/proc/${id}/fd`);
  if (open.length === 0) return undefined;
  const limit = /^Max open files\s+(\d+)/m.exec(readProcFile(`/proc/${id}/limits`) ?? "")?.[1];
  const sockets = open.length > DESCRIPTORS_MAX ? undefined : open.filter((each) => isSocket(id, each)).length;
  return { descriptors: open.length, sockets, descriptorsMax: limit === undefined ? undefined : Number(limit) };
}

function isSocket(id: number, descriptor: string): boolean {
  try {
    return readlinkSync(`/proc/${id}/fd/${descriptor}`).startsWith("socket:");
  } catch {
    return false;
  }
}
