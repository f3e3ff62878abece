/** The HTTPS port of a control plane program: health, metrics, configuration and profiles. */
import { hostname } from "node:os";
import { join } from "node:path";
import { type KeyPair, readKeyPair, writeKeyPair } from "../auth/pki/key-pair.ts";
import type { SniCertificate } from "../flags/types/tls.ts";
import { type HealthCheck, pageNotFound, respondHealth } from "../http/health.ts";
import { registerHealthMetrics } from "../http/health-metrics.ts";
import type { Filter, Handler } from "../http/message.ts";
import { metricsResponse } from "../http/metrics/metrics-page.ts";
import { errorResponse, jsonResponse, textResponse } from "../http/respond.ts";
import { Router } from "../http/router.ts";
import { explainAddressInUse } from "../http/server/address-in-use.ts";
import { listen } from "../http/server/server.ts";
import type { TlsOptions } from "../http/tls/options.ts";
import type { EventLoopContention } from "../profiling/contention.ts";
import type { Logger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import { type ReloadedCertificates, readCertificates } from "./reloaded-certificates.ts";

export interface ComponentServingOptions {
  /** `kube-controller-manager`: the name in a self-signed certificate, and of its files. */
  readonly name: string;
  readonly address: string;
  /** 0: nothing is served. */
  readonly port: number;
  /** Empty: a self-signed certificate. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Where a self-signed certificate is stored; empty: in memory only. */
  readonly certDir: string;
  readonly sniCertificates: readonly SniCertificate[];
  readonly tls: Pick<TlsOptions, "minVersion" | "ciphers">;
  readonly http2: boolean;
  /** 0: the listener's default. */
  readonly streamsPerConnection: number;
  /** Other programs may listen on the port. */
  readonly sharePort: boolean;
  /** Undefined: no certificates of clients are requested. */
  readonly clientCa: ClientCa | undefined;
  /** Authenticates and authorizes. */
  readonly access: Filter;
  readonly checks: readonly HealthCheck[];
  readonly metrics: readonly MetricRegistry[];
  /** Of `/metrics/resources`; undefined: it is not served. */
  readonly resourceMetrics?: MetricRegistry | undefined;
  /** The content of `/configz`. */
  readonly configz: unknown;
  /** Profiles and the verbosity of logs; undefined: they are not served. */
  readonly setVerbosity: ((level: number) => void) | undefined;
  /** Served as block profile. */
  readonly contention: EventLoopContention | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The CA of the certificates of clients, which may change. */
export interface ClientCa {
  readonly current: () => string;
  readonly onChange: (listener: () => void) => void;
}

export interface ComponentServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
}

const CERTIFICATE_DAYS = 365;
/** How long requests in flight may take when the program stops. */
const DRAIN_MS = 1_000;

/** Rejects with a message for the operator. Undefined if nothing is served. */
export async function serveComponent(options: ComponentServingOptions): Promise<ComponentServer | undefined> {
  const { port, address, clientCa, clock, log } = options;
  if (port === 0) return undefined;
  await using stack = new AsyncDisposableStack();
  const certificates = stack.use(await openCertificates(options));
  const tls = (): TlsOptions => ({
    ...certificates.current,
    ...options.tls,
    ...(clientCa === undefined ? {} : { ca: clientCa.current() }),
    requestCert: clientCa !== undefined,
  });
  const { streamsPerConnection } = options;
  const opened = listen({
    handler: await createHandler(options),
    host: address,
    port,
    clock,
    log,
    tls: tls(),
    http2: options.http2,
    limits: streamsPerConnection > 0 ? { streamsPerConnection } : {},
    sharePort: options.sharePort,
  });
  const listener = await explainAddressInUse("--secure-port", opened);
  certificates.follow((next) => listener.reloadTls({ ...tls(), ...next }));
  clientCa?.onChange(() => listener.reloadTls(tls()));
  const owned = stack.move();
  return {
    host: listener.address,
    port: listener.port,
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      await listener.close(DRAIN_MS);
    },
  };
}

const HEALTH_PATHS = ["healthz", "livez", "readyz"];

async function createHandler(options: ComponentServingOptions): Promise<Handler> {
  const { access, checks, metrics, resourceMetrics, configz, setVerbosity, contention, clock, log } = options;
  const router = new Router<Handler>();
  const slis = new MetricRegistry(metrics[0]?.policy);
  const observeHealth = registerHealthMetrics(slis);
  for (const name of HEALTH_PATHS) {
    const observe = (check: string, ok: boolean): void => observeHealth(name, check, ok);
    const endpoint = { name, checks, observe };
    router.add("GET", `/${name}`, ({ query }) => respondHealth(endpoint, "", new URLSearchParams(query), log));
    router.add("GET", `/${name}/{check}`, ({ path, query }) =>
      respondHealth(endpoint, path.slice(name.length + 2), new URLSearchParams(query), log),
    );
  }
  router.add("GET", "/metrics", async ({ headers }) => metricsResponse(metrics, headers.accept));
  router.add("GET", "/metrics/slis", async ({ headers }) => metricsResponse([slis], headers.accept));
  if (resourceMetrics !== undefined)
    router.add("GET", "/metrics/resources", async ({ headers }) => metricsResponse([resourceMetrics], headers.accept));
  router.add("GET", "/configz", async () => jsonResponse(200, configz));
  if (setVerbosity !== undefined) {
    const { createDebugPages } = await import("../profiling/debug-pages.ts");
    for (const { path, methods, respond } of createDebugPages({ clock, contention, setVerbosity })) {
      for (const method of methods) router.add(method, path, respond);
    }
  }
  const route: Handler = async (request) => {
    const match = router.match(request.method, request.path);
    if (match === undefined) return pageNotFound();
    return "value" in match ? await match.value(request) : textResponse(405, "Method Not Allowed\n");
  };
  const guarded = access(route);
  return async (request) => {
    try {
      return await guarded(request);
    } catch (error) {
      return errorResponse(error);
    }
  };
}

/** The files of the flags, else that of a previous start, else a new self-signed one. */
async function openCertificates(options: ComponentServingOptions): Promise<ReloadedCertificates> {
  const { certFile, keyFile, sniCertificates } = options;
  const main = certFile === "" ? await selfSignedPair(options) : { certFile, keyFile };
  return await readCertificates(main, sniCertificates, options);
}

/** That of a previous start, else a new one. */
async function selfSignedPair(options: ComponentServingOptions): Promise<KeyPair> {
  const { name, address, certDir, clock } = options;
  const files = { certFile: join(certDir, `${name}.crt`), keyFile: join(certDir, `${name}.key`) };
  const kept = certDir === "" ? undefined : await readKeyPair(files);
  if (kept !== undefined) return kept;
  const { issueCertificate, createCa } = await import("../auth/pki/certificate-authority.ts");
  const now = clock.now();
  const ca = await createCa(`${name}-ca`, CERTIFICATE_DAYS, now);
  const own = ["0.0.0.0", "::", ""].includes(address) ? [] : [address];
  const alternativeNames = [...new Set([hostname(), "localhost", "127.0.0.1", ...own])];
  const request = { commonName: name, alternativeNames, usages: ["server"], days: CERTIFICATE_DAYS } as const;
  const pair = await issueCertificate(ca, request, now);
  const chain = { cert: `${pair.cert}${ca.cert}`, key: pair.key };
  if (certDir !== "") await writeKeyPair(files, chain);
  return chain;
}
