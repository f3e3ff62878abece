/** The HTTPS port of a control plane program, as its flags configure it. */
import { createClient } from "../client/api-client.ts";
import type { LeaderElection } from "../client/leader-election/leader-election.ts";
import { type Flag, type FlagTable, type ParsedFlags, printValue } from "../flags/flag.ts";
import { parseTlsVersion, toOpenSslCiphers } from "../http/tls/cipher-suites.ts";
import type { EventLoopContention } from "../profiling/contention.ts";
import type { Logger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { systemClock } from "../std/time/clock.ts";
import { openConnection } from "./connection.ts";
import { createDelegatedAccess, type DelegatedAccess } from "./delegated-access.ts";
import type { servingFlags } from "./flags.ts";
import { serveComponent } from "./serving.ts";

/** As Kubernetes: how long after the end of its lease a leader counts as healthy. */
const LEASE_TOLERANCE_MS = 20_000;

type Flags = ParsedFlags<ReturnType<typeof servingFlags>>;

interface ServedParts {
  /** `kube-controller-manager`: the name in user agents and in a self-signed certificate. */
  readonly program: string;
  /** The content of `/configz`. */
  readonly configz: unknown;
  readonly metrics: MetricRegistry;
  /** Of `/metrics/resources`; undefined: it is not served. */
  readonly resourceMetrics?: MetricRegistry | undefined;
  readonly election: LeaderElection | undefined;
  readonly log: Logger;
  readonly setVerbosity: (level: number) => void;
}

export interface ProgramServer extends AsyncDisposable {
  /** Undefined with `--secure-port=0`. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
}

/** Rejects with a message for the operator. */
export async function serveProgram(
  flags: Flags,
  { program, configz, metrics, resourceMetrics, election, log, setVerbosity }: ServedParts,
  signal: AbortSignal,
): Promise<ProgramServer> {
  await using stack = new AsyncDisposableStack();
  const access = stack.use(await openAccess(flags, { program, metrics, log }, stack, signal));
  const lease = { name: "leaderElection", check: () => election?.checkLease(LEASE_TOLERANCE_MS) };
  const listener = await serveComponent({
    name: program,
    address: flags["bind-address"],
    port: flags["secure-port"],
    certFile: flags["tls-cert-file"],
    keyFile: flags["tls-private-key-file"],
    certDir: flags["cert-dir"],
    sniCertificates: flags["tls-sni-cert-key"],
    http2: !flags["disable-http2-serving"],
    streamsPerConnection: flags["http2-max-streams-per-connection"],
    sharePort: flags["permit-port-sharing"],
    tls: {
      minVersion: parseTlsVersion(flags["tls-min-version"]),
      ciphers: toOpenSslCiphers(flags["tls-cipher-suites"]),
    },
    clientCa: access.clientCa,
    access: access.filter,
    checks: [{ name: "ping", check: () => {} }, ...(election === undefined ? [] : [lease])],
    metrics: [metrics],
    resourceMetrics,
    configz,
    setVerbosity: flags.profiling ? setVerbosity : undefined,
    contention: flags.profiling && flags["contention-profiling"] ? stack.use(await measureContention()) : undefined,
    clock: systemClock,
    log: log.child("server"),
  });
  if (listener !== undefined) stack.use(listener);
  const owned = stack.move();
  return { address: listener, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function measureContention(): Promise<EventLoopContention> {
  const { EventLoopContention } = await import("../profiling/contention.ts");
  return new EventLoopContention(systemClock);
}

async function openAccess(
  flags: Flags,
  { program, metrics, log }: Pick<ServedParts, "program" | "metrics" | "log">,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<DelegatedAccess> {
  const clock = systemClock;
  const clientOf = async (kubeconfig: string) => {
    if (kubeconfig === "") return undefined;
    const options = { kubeconfig, server: "", userAgent: program, qps: 0, burst: 0 };
    const deps = { clock, metrics: new MetricRegistry(), env: process.env };
    const { transport } = stack.use(await openConnection(options, deps, signal));
    return createClient({ transport, userAgent: program });
  };
  return await createDelegatedAccess({
    clientCaFile: flags["client-ca-file"],
    authenticationClient: await clientOf(flags["authentication-kubeconfig"]),
    tokenCacheMs: flags["authentication-token-webhook-cache-ttl"],
    authorizationClient: await clientOf(flags["authorization-kubeconfig"]),
    allowedMs: flags["authorization-webhook-cache-authorized-ttl"],
    deniedMs: flags["authorization-webhook-cache-unauthorized-ttl"],
    allowedPaths: flags["authorization-always-allow-paths"],
    metrics,
    clock,
    log,
  });
}

/** The values of flags as text, by name. */
export function printFlags<T extends FlagTable>(table: T, values: ParsedFlags<T>): Readonly<Record<string, string>> {
  const rows = Object.entries(table) as [keyof T & string, Flag][];
  return Object.fromEntries(rows.map(([name, row]) => [name, printValue(row, values[name])]));
}
