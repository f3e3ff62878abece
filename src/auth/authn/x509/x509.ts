import { createHash, type X509Certificate } from "node:crypto";
import type { Clock } from "../../../std/time/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../../user.ts";
import { type Certificate, isTrusted, readBundle, readCertificate } from "./certificate-chain.ts";
import { Refusal } from "../invalid-credentials-error.ts";

export interface X509Authenticator {
  readonly authenticate: Authenticator;
  /** Replaces the bundle; certificates already accepted are judged again. Throws when it holds no certificate. */
  setAuthorities(caPem: string): void;
}

export interface X509Options {
  readonly caPem: string;
  readonly clock: Clock;
  /** Whether subjects may say what the user's uid is; they may unless this is false. */
  readonly uids?: boolean | undefined;
  /** Told of every certificate that is shown for how many milliseconds it is still good. */
  readonly lasts?: ((milliseconds: number) => void) | undefined;
}

/** A client certificate that was signed by somebody we trust. */
export interface VerifiedClient {
  readonly certificate: X509Certificate;
  /** The last one, as Kubernetes reads names; empty when it has none. */
  readonly commonName: string;
}

/** Longest chain looked at: Node's TLS hands over no more. */
const CHAIN_MAX = 10;
/** Set by an authority that wants the user to have a uid, as Kubernetes reads it. */
const UID_OID = "1.3.6.1.4.1.57683.2";
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/** What became of a chain, from one moment to another; both are included. */
interface Verdict<T> {
  readonly from: number;
  readonly until: number;
  /** When the client's own certificate ceases to be valid. */
  readonly notAfter: number;
  readonly outcome: { readonly value: T } | { readonly refusal: Refusal };
}

/**
 * Who stands behind client certificates. A chain is judged once for as long as its bytes live, which is the connection,
 * and until the time that it is or a certificate of it begins or ceases to be valid.
 */
export class ClientVerifier<T> {
  readonly #clock: Clock;
  readonly #read: (client: VerifiedClient) => T;
  readonly #lasts: X509Options["lasts"];
  #roots: readonly Certificate[];
  #judged = new WeakMap<Uint8Array, Verdict<T>>();

  /** `read` may throw a `Refusal`. Throws when the bundle holds no certificate. */
  constructor(caPem: string, clock: Clock, read: (client: VerifiedClient) => T, lasts?: X509Options["lasts"]) {
    this.#roots = readBundle(caPem);
    this.#clock = clock;
    this.#read = read;
    this.#lasts = lasts;
  }

  /** Undefined where no certificate was offered. Throws a `Refusal`. */
  verify({ certificates }: Pick<Credentials, "certificates">): T | undefined {
    const leaf = certificates[0];
    if (leaf === undefined) return undefined;
    const now = this.#clock.now();
    let verdict = this.#judged.get(leaf);
    if (verdict === undefined || now < verdict.from || verdict.until < now) {
      verdict = this.#judge(certificates, now);
      this.#judged.set(leaf, verdict);
    }
    this.#lasts?.(verdict.notAfter - now);
    if ("refusal" in verdict.outcome) throw verdict.outcome.refusal;
    return verdict.outcome.value;
  }

  setAuthorities(caPem: string): void {
    this.#roots = readBundle(caPem);
    this.#judged = new WeakMap();
  }

  #judge(certificates: readonly Uint8Array[], now: number): Verdict<T> {
    const chain = certificates.slice(0, CHAIN_MAX).map(parse);
    const span = { ...unchanging([...chain, ...this.#roots], now), notAfter: chain[0]!.notAfter };
    try {
      return { ...span, outcome: { value: this.#read(judge(chain, this.#roots, now)) } };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { ...span, outcome: { refusal: error } };
    }
  }
}

/** The time around `now` in which no certificate begins or ceases to be valid. */
function unchanging(
  certificates: readonly Certificate[],
  now: number,
): { readonly from: number; readonly until: number } {
  const changes = certificates.flatMap(({ notBefore, notAfter }) => [notBefore, notAfter + 1]);
  return {
    from: Math.max(...changes.filter((each) => each <= now), Number.NEGATIVE_INFINITY),
    until: Math.min(...changes.filter((each) => each > now), Number.POSITIVE_INFINITY) - 1,
  };
}

/** Client certificates signed by the bundle: common name is the user, organisations are the groups. */
export function x509Authenticator({ caPem, clock, uids = true, lasts }: X509Options): X509Authenticator {
  const verifier = new ClientVerifier(caPem, clock, (client) => userOf(client, uids), lasts);
  return {
    authenticate: (credentials) => verifier.verify(credentials),
    setAuthorities: (next) => verifier.setAuthorities(next),
  };
}

function judge(certificates: readonly Certificate[], roots: readonly Certificate[], now: number): VerifiedClient {
  const [leaf, ...intermediates] = certificates;
  const { x509, notBefore, notAfter } = leaf!;
  const commonName = all(subjectOf(x509).CN).at(-1) ?? "";
  if (!isTrusted(leaf!, intermediates, roots, now)) {
    const life = `valid from ${new Date(notBefore).toISOString()} to ${new Date(notAfter).toISOString()}`;
    const serial = `serial number ${BigInt(`0x${x509.serialNumber}`)}`;
    const why = "it is expired, not good for clients, or of an unknown authority";
    throw new Refusal(
      `the client certificate of ${JSON.stringify(commonName)} is not trusted: ${why} (${serial}, ${life})`,
    );
  }
  return { certificate: x509, commonName };
}

function parse(der: Uint8Array): Certificate {
  try {
    return readCertificate(der);
  } catch (cause) {
    throw new Refusal("the client certificate is malformed", { cause });
  }
}

/** A certificate without a common name stands for nobody. */
function userOf({ certificate, commonName }: VerifiedClient, uids: boolean): UserInfo {
  if (commonName === "") throw new Refusal("the client certificate names nobody");
  const subject = subjectOf(certificate);
  const [uid = "", ...more] = uids ? all(subject[UID_OID]) : [];
  if (more.length > 0) throw new Refusal("the client certificate has more than one uid");
  const fingerprint = createHash("sha256").update(certificate.raw).digest("hex");
  return { name: commonName, uid, groups: all(subject.O), extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] } };
}

function subjectOf(certificate: X509Certificate): Readonly<Record<string, string | string[]>> {
  // Not `certificate.subject`: that is text, in which a value may imitate the next line.
  return certificate.toLegacyObject().subject as unknown as Readonly<Record<string, string | string[]>>;
}

function all(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
