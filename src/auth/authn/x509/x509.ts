import { createHash, type X509Certificate } from "node:crypto";
import type { Clock } from "../../../std/time/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../../user.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import { type Certificate, isTrusted, readBundle, readCertificate } from "./certificate-chain.ts";

export interface X509Authenticator {
  readonly authenticate: Authenticator;
  /** Replaces the bundle and drops cached results. Throws if the bundle has no certificate. */
  setAuthorities(caPem: string): void;
}

export interface X509Options {
  readonly caPem: string;
  readonly clock: Clock;
  /** Whether the subject may set the user's uid; default true. */
  readonly allowUid?: boolean | undefined;
  /** Called with the remaining validity of each client certificate. */
  readonly observeRemaining?: ((milliseconds: number) => void) | undefined;
}

/** A client certificate with a trusted issuer. */
export interface VerifiedClient {
  readonly certificate: X509Certificate;
  /** The last common name, as in Kubernetes; empty if there is none. */
  readonly commonName: string;
}

/** Bounds the chain; Node's TLS passes on no more. */
const CHAIN_MAX = 10;
/** The subject attribute for the uid, as in Kubernetes. */
const UID_OID = "1.3.6.1.4.1.57683.2";
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/** The cached result of a chain, valid in an interval including both ends. */
interface VerificationResult<T> {
  readonly from: number;
  readonly until: number;
  /** When the client certificate expires. */
  readonly notAfter: number;
  readonly outcome: { readonly value: T } | { readonly error: InvalidCredentialsError };
}

/**
 * Verifies client certificates. A result is cached by the certificate's bytes, which live as long as the connection,
 * until a certificate of the chain or the bundle becomes valid or expires.
 */
export class ClientVerifier<T> {
  readonly #clock: Clock;
  readonly #read: (client: VerifiedClient) => T;
  readonly #observeRemaining: X509Options["observeRemaining"];
  #roots: readonly Certificate[];
  #results = new WeakMap<Uint8Array, VerificationResult<T>>();

  /** `read` may throw an `InvalidCredentialsError`. Throws if the bundle has no certificate. */
  constructor(
    caPem: string,
    clock: Clock,
    read: (client: VerifiedClient) => T,
    observeRemaining?: X509Options["observeRemaining"],
  ) {
    this.#roots = readBundle(caPem);
    this.#clock = clock;
    this.#read = read;
    this.#observeRemaining = observeRemaining;
  }

  /** Undefined without a certificate. Throws an `InvalidCredentialsError`. */
  verify({ certificates }: Pick<Credentials, "certificates">): T | undefined {
    const leaf = certificates[0];
    if (leaf === undefined) return undefined;
    const now = this.#clock.now();
    let result = this.#results.get(leaf);
    if (result === undefined || now < result.from || result.until < now) {
      result = this.#verifyChain(certificates, now);
      this.#results.set(leaf, result);
    }
    this.#observeRemaining?.(result.notAfter - now);
    if ("error" in result.outcome) throw result.outcome.error;
    return result.outcome.value;
  }

  setAuthorities(caPem: string): void {
    this.#roots = readBundle(caPem);
    this.#results = new WeakMap();
  }

  #verifyChain(certificates: readonly Uint8Array[], now: number): VerificationResult<T> {
    const chain = certificates.slice(0, CHAIN_MAX).map(parseClientCertificate);
    const interval = { ...validityInterval([...chain, ...this.#roots], now), notAfter: chain[0]!.notAfter };
    try {
      return { ...interval, outcome: { value: this.#read(verifyTrust(chain, this.#roots, now)) } };
    } catch (error) {
      if (!(error instanceof InvalidCredentialsError)) throw error;
      return { ...interval, outcome: { error: error } };
    }
  }
}

/** The interval around `now` in which the validity of no certificate changes. */
function validityInterval(
  certificates: readonly Certificate[],
  now: number,
): { readonly from: number; readonly until: number } {
  const changes = certificates.flatMap(({ notBefore, notAfter }) => [notBefore, notAfter + 1]);
  return {
    from: Math.max(...changes.filter((each) => each <= now), Number.NEGATIVE_INFINITY),
    until: Math.min(...changes.filter((each) => each > now), Number.POSITIVE_INFINITY) - 1,
  };
}

/** Authenticates client certificates: the common name is the user, organizations are the groups. */
export function x509Authenticator({ caPem, clock, allowUid = true, observeRemaining }: X509Options): X509Authenticator {
  const verifier = new ClientVerifier(caPem, clock, (client) => userOf(client, allowUid), observeRemaining);
  return {
    authenticate: (credentials) => verifier.verify(credentials),
    setAuthorities: (next) => verifier.setAuthorities(next),
  };
}

function verifyTrust(certificates: readonly Certificate[], roots: readonly Certificate[], now: number): VerifiedClient {
  const [leaf, ...intermediates] = certificates;
  const { x509, notBefore, notAfter } = leaf!;
  const commonName = toArray(subjectOf(x509).CN).at(-1) ?? "";
  if (!isTrusted(leaf!, intermediates, roots, now)) {
    const validity = `valid from ${new Date(notBefore).toISOString()} to ${new Date(notAfter).toISOString()}`;
    const serial = `serial number ${BigInt(`0x${x509.serialNumber}`)}`;
    const reason = "it is expired, not for client authentication, or of an unknown authority";
    throw new InvalidCredentialsError(
      `the client certificate of ${JSON.stringify(commonName)} is not trusted: ${reason} (${serial}, ${validity})`,
    );
  }
  return { certificate: x509, commonName };
}

function parseClientCertificate(der: Uint8Array): Certificate {
  try {
    return readCertificate(der);
  } catch (cause) {
    throw new InvalidCredentialsError("the client certificate is malformed", { cause });
  }
}

/** A certificate without a common name is invalid. */
function userOf({ certificate, commonName }: VerifiedClient, allowUid: boolean): UserInfo {
  if (commonName === "") throw new InvalidCredentialsError("the client certificate has no common name");
  const subject = subjectOf(certificate);
  const [uid = "", ...more] = allowUid ? toArray(subject[UID_OID]) : [];
  if (more.length > 0) throw new InvalidCredentialsError("the client certificate has more than one uid");
  const fingerprint = createHash("sha256").update(certificate.raw).digest("hex");
  return {
    name: commonName,
    uid,
    groups: toArray(subject.O),
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
  };
}

function subjectOf(certificate: X509Certificate): Readonly<NodeJS.Dict<string | string[]>> {
  // Not `certificate.subject`: in that text, a value can imitate another attribute.
  return certificate.toLegacyObject().subject;
}

function toArray(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
