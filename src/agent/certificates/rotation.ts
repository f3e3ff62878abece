/**
 * Renews a certificate in the running process: when 70 to 90 % of its validity have passed, as in Kubernetes, and when
 * its names must change.
 */
import { X509Certificate } from "node:crypto";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Records the certificates in use. */
export interface RotationObserver {
  /** The first certificate, and each that replaces one. */
  onCertificate(pair: KeyPair): void;
  onError(): void;
}

export interface RotationOptions {
  /** Undefined: request one at once. */
  readonly certificate: KeyPair | undefined;
  /** Requests a new certificate. */
  readonly request: (signal: AbortSignal) => Promise<KeyPair>;
  /** Puts a new certificate into use. */
  readonly use: (pair: KeyPair) => Promise<void>;
  /** Whether a certificate has the right content; always when absent. */
  readonly isCurrent?: ((certificate: X509Certificate) => boolean) | undefined;
  /** Resolves when the result of `isCurrent` may have changed, or the signal aborts. */
  readonly waitForChange?: ((signal: AbortSignal) => Promise<void>) | undefined;
  readonly description: string;
  readonly metrics?: RotationObserver | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

/** The clock may be set at any time: longest interval between checks. */
const CHECK_INTERVAL_MAX_MS = 60_000;
const CHECK_INTERVAL_MIN_MS = 1_000;
const RENEW_FRACTION_MIN = 0.7;
const RENEW_FRACTION_JITTER = 0.2;
/** A request that is not signed is repeated after this long. */
const REQUEST_TIMEOUT_MS = 900_000;
const BACKOFF = { initialMs: 2_000, maxMs: 128_000, jitter: 0.1 };

/** Runs until the signal aborts. */
export async function rotateCertificate(options: RotationOptions, signal: AbortSignal): Promise<void> {
  const { request, use, isCurrent = () => true, description, metrics, clock, random, log } = options;
  if (options.certificate !== undefined) metrics?.onCertificate(options.certificate);
  const backoff = new Backoff(BACKOFF, random);
  let term =
    options.certificate === undefined ? undefined : new CertificateTerm(options.certificate, clock, random, false);
  while (!signal.aborted) {
    if (term !== undefined && !term.isDue && isCurrent(term.certificate)) {
      await waitForCheck(
        options,
        Math.min(CHECK_INTERVAL_MAX_MS, Math.max(term.leftMs, CHECK_INTERVAL_MIN_MS)),
        signal,
      );
      continue;
    }
    const timeout = new AbortController();
    const timer = clock.timer(REQUEST_TIMEOUT_MS, () => timeout.abort(new Error("the request was not signed in time")));
    try {
      const pair = await request(AbortSignal.any([signal, timeout.signal]));
      await use(pair);
      metrics?.onCertificate(pair);
      term = new CertificateTerm(pair, clock, random, true);
      backoff.reset();
      log.info(`Renewed the ${description}`, { until: term.certificate.validToDate.toISOString() });
      if (isCurrent(term.certificate)) continue;
    } catch (error) {
      if (signal.aborted) return;
      metrics?.onError();
      log.error(`Cannot renew the ${description}; trying again`, error);
    } finally {
      timer.cancel();
    }
    await clock.sleep(backoff.next(), signal).catch(() => {});
  }
}

async function waitForCheck(
  { clock, waitForChange: changed }: RotationOptions,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const slept = clock.sleep(ms, until).catch(() => {});
  await (changed === undefined ? slept : Promise.race([slept, changed(until)]));
  over.abort();
}

/**
 * When to renew a certificate. The clock may be wrong: not set at boot, or a year ahead. If by the clock a fresh
 * certificate is expired or not valid yet, the clock is not trusted, and the monotonic clock counts instead. If the
 * clock is set back to before a certificate's start, it was wrong when the certificate was issued.
 */
class CertificateTerm {
  readonly certificate: X509Certificate;
  readonly #clock: Clock;
  /** Start of the validity; undefined when it was in the future at first. */
  readonly #begin: number | undefined;
  readonly #renewAt: number;
  /** On the monotonic clock; undefined when the clock is trusted. */
  readonly #monotonicRenewAt: number | undefined;

  constructor({ cert }: KeyPair, clock: Clock, random: RandomSource, isFresh: boolean) {
    this.certificate = new X509Certificate(cert);
    this.#clock = clock;
    const [begin, end] = [this.certificate.validFromDate.getTime(), this.certificate.validToDate.getTime()];
    const now = clock.now();
    const isWrong = isFresh && (now < begin || now >= end);
    // CAs backdate certificates: a short-lived one would be due at once.
    const from = isFresh && !isWrong ? now : begin;
    const share = (end - from) * (RENEW_FRACTION_MIN + RENEW_FRACTION_JITTER * random.fraction());
    this.#begin = now < begin ? undefined : begin;
    this.#renewAt = from + share;
    this.#monotonicRenewAt = isWrong ? clock.monotonic() + share : undefined;
  }

  get isDue(): boolean {
    const isTooEarly =
      this.#monotonicRenewAt === undefined && this.#begin !== undefined && this.#clock.now() < this.#begin;
    return isTooEarly || this.leftMs <= 0;
  }

  get leftMs(): number {
    return this.#monotonicRenewAt === undefined
      ? this.#renewAt - this.#clock.now()
      : this.#monotonicRenewAt - this.#clock.monotonic();
  }
}
