/** The clock: whether it is set, synchronised, and near that of the API server. */
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

export interface ClockFacts {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Undefined: unknown. */
  readonly isSynchronised: boolean | undefined;
  /** Where that is from, or the time service that runs. */
  readonly source: string;
  /** That of the API server, less that of this machine, in milliseconds; undefined: unknown. */
  readonly offsetMs: number | undefined;
}

/** Clocks before this time, or this much after it, are not set. */
const YEAR_MIN = 2026;
const YEAR_MAX = 2100;
/** `Date` headers have seconds. */
const OFFSET_WARNING_MS = 5_000;
const OFFSET_ERROR_MS = 60_000;

export function checkClock({ now, isSynchronised, source, offsetMs }: ClockFacts): readonly Finding[] {
  const date = new Date(now);
  const year = date.getUTCFullYear();
  const isSet = year >= YEAR_MIN && year < YEAR_MAX;
  const findings = [
    finding("clock-year", isSet ? "ok" : "error", date.toISOString()),
    isSynchronised === true
      ? finding("clock-synchronised", "ok", source)
      : finding("clock-synchronised", "warning", isSynchronised === false ? `not synchronised (${source})` : source),
  ];
  if (offsetMs === undefined) return findings;
  const seconds = Math.round(Math.abs(offsetMs) / 1000);
  const found = `the API server's clock is ${seconds} s ${offsetMs > 0 ? "ahead of" : "behind"} this machine's`;
  const severity = Math.abs(offsetMs) >= OFFSET_ERROR_MS ? "error" : "warning";
  const problem = Math.abs(offsetMs) >= OFFSET_WARNING_MS ? found : undefined;
  return [
    ...findings,
    findingOf("clock-offset", `within ${OFFSET_WARNING_MS / 1000} s of the API server's`, problem, severity),
  ];
}

const services = ["chronyd", "ntpd", "systemd-timesyn", "openntpd", "ptp4l", "phc2sys"];

export async function readClockFacts(
  host: HostReader,
  now: number,
  offsetMs: number | undefined,
  signal: AbortSignal,
): Promise<ClockFacts> {
  return { now, offsetMs, ...(await readSynchronisation(host, signal)) };
}

async function readSynchronisation(
  host: HostReader,
  signal: AbortSignal,
): Promise<Pick<ClockFacts, "isSynchronised" | "source">> {
  // The kernel's own state: STA_UNSYNC of adjtimex(2).
  const kernel = await host.run("adjtimex", ["--print"], signal);
  const status = /^\s*status:\s*(0x[0-9a-f]+|\d+)/im.exec(kernel?.stdout ?? "")?.[1];
  if (status !== undefined)
    return { isSynchronised: (Number(status) & 0x40) === 0, source: `adjtimex: status ${status}` };
  if ((await host.stat("/run/systemd/timesync/synchronized")) !== undefined) {
    return { isSynchronised: true, source: "systemd-timesyncd" };
  }
  const chrony = await host.run("chronyc", ["-c", "tracking"], signal);
  const leap = chrony?.code === 0 ? chrony.stdout.trim().split(",").at(-1) : undefined;
  if (leap !== undefined) return { isSynchronised: leap !== "Not synchronised", source: `chrony: ${leap}` };
  const service = await findService(host);
  if (service === undefined) return { isSynchronised: undefined, source: "no time service was found" };
  return { isSynchronised: undefined, source: `${service} runs; whether the clock is synchronised is unknown` };
}

async function findService(host: HostReader): Promise<string | undefined> {
  for (const pid of ((await host.list("/proc")) ?? []).filter((name) => /^\d+$/.test(name))) {
    const name = (await host.readText(`/proc/${pid}/comm`))?.trim();
    if (name !== undefined && services.includes(name)) return name;
  }
  return undefined;
}
