/** The HTTPS port of the controller manager. */
import { createClient } from "../client/api-client.ts";
import type { LeaderElection } from "../client/leader-election/leader-election.ts";
import { openConnection } from "./connection.ts";
import { createDelegatedAccess, type DelegatedAccess } from "./delegated-access.ts";
import { serveComponent } from "./serving.ts";
import { type Flag, type ParsedFlags, printValue } from "../flags/flag.ts";
import { parseTlsVersion, toOpenSslCiphers } from "../http/tls/cipher-suites.ts";
import type { Logger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { systemClock } from "../std/time/clock.ts";
import { controllerManagerFlags } from "../controller-manager/flags.ts";
import { PROGRAM } from "../controller-manager/run.ts";

/** As Kubernetes: how long after the end of its lease a leader counts as healthy. */
const LEASE_TOLERANCE_MS = 20_000;

type Flags = ParsedFlags<typeof controllerManagerFlags>;

interface ServedParts {
  readonly metrics: MetricRegistry;
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
  { metrics, election, log, setVerbosity }: ServedParts,
  signal: AbortSignal,
): Promise<ProgramServer> {
  await using stack = new AsyncDisposableStack();
  const access = await openAccess(flags, log, stack, signal);
  const lease = { name: "leaderElection", check: () => election?.checkLease(LEASE_TOLERANCE_MS) };
  const listener = await serveComponent({
    name: PROGRAM,
    address: flags["bind-address"],
    port: flags["secure-port"],
    certFile: flags["tls-cert-file"],
    keyFile: flags["tls-private-key-file"],
    certDir: flags["cert-dir"],
    tls: {
      minVersion: parseTlsVersion(flags["tls-min-version"]),
      ciphers: toOpenSslCiphers(flags["tls-cipher-suites"]),
    },
    clientCa: access.clientCa,
    access: access.filter,
    checks: [{ name: "ping", check: () => {} }, ...(election === undefined ? [] : [lease])],
    metrics: [metrics],
    configz: { flags: printedFlags(flags) },
    setVerbosity: flags.profiling ? setVerbosity : undefined,
    clock: systemClock,
    log: log.child("server"),
  });
  if (listener !== undefined) stack.use(listener);
  const owned = stack.move();
  return { address: listener, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openAccess(
  flags: Flags,
  log: Logger,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<DelegatedAccess> {
  const clock = systemClock;
  const clientOf = async (kubeconfig: string) => {
    if (kubeconfig === "") return undefined;
    const options = { kubeconfig, server: "", userAgent: PROGRAM, qps: 0, burst: 0 };
    const deps = { clock, metrics: new MetricRegistry(), env: process.env };
    const { transport } = stack.use(await openConnection(options, deps, signal));
    return createClient({ transport, userAgent: PROGRAM });
  };
  return await createDelegatedAccess({
    clientCaFile: flags["client-ca-file"],
    authenticationClient: await clientOf(flags["authentication-kubeconfig"]),
    tokenCacheMs: flags["authentication-token-webhook-cache-ttl"],
    authorizationClient: await clientOf(flags["authorization-kubeconfig"]),
    allowedMs: flags["authorization-webhook-cache-authorized-ttl"],
    deniedMs: flags["authorization-webhook-cache-unauthorized-ttl"],
    allowedPaths: flags["authorization-always-allow-paths"],
    clock,
    log,
  });
}

function printedFlags(flags: Flags): Readonly<Record<string, string>> {
  const rows = Object.entries(controllerManagerFlags) as [keyof Flags, Flag][];
  return Object.fromEntries(rows.map(([name, row]) => [name, printValue(row, flags[name])]));
}
