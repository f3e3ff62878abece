import { createHash, type X509Certificate } from "node:crypto";
import type { Clock } from "../../std/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../user.ts";
import { type Certificate, readBundle, readCertificate, type VerifiedChain, verifyChain } from "./chain.ts";
import { Refusal } from "./refusal.ts";

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
}

/** A client certificate that was signed by somebody we trust. */
export interface VerifiedClient extends VerifiedChain {
  readonly certificate: X509Certificate;
  /** The last one, as Kubernetes reads names; empty when it has none. */
  readonly commonName: string;
}

/** Longest chain looked at: Node's TLS hands over no more. */
const CHAIN_MAX = 10;
/** Set by an authority that wants the user to have a uid, as Kubernetes reads it. */
const UID_OID = "1.3.6.1.4.1.57683.2";
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/**
 * Who stands behind client certificates. A chain is verified once for as long as its bytes live, which is the
 * connection; its validity in time is asked every time.
 */
export class ClientVerifier<T> {
  readonly #clock: Clock;
  readonly #read: (client: VerifiedClient) => T;
  #roots: readonly Certificate[];
  #accepted = new WeakMap<Uint8Array, VerifiedChain & { readonly value: T }>();

  /** `read` may throw a `Refusal`. Throws when the bundle holds no certificate. */
  constructor(caPem: string, clock: Clock, read: (client: VerifiedClient) => T) {
    this.#roots = readBundle(caPem);
    this.#clock = clock;
    this.#read = read;
  }

  /** Undefined where no certificate was offered. Throws a `Refusal`. */
  verify({ certificates }: Pick<Credentials, "certificates">): T | undefined {
    const leaf = certificates[0];
    if (leaf === undefined) return undefined;
    const now = this.#clock.now();
    const known = this.#accepted.get(leaf);
    if (known !== undefined && known.notBefore <= now && now <= known.notAfter) return known.value;
    const client = judge(certificates, this.#roots, now);
    const value = this.#read(client);
    this.#accepted.set(leaf, { notBefore: client.notBefore, notAfter: client.notAfter, value });
    return value;
  }

  setAuthorities(caPem: string): void {
    this.#roots = readBundle(caPem);
    this.#accepted = new WeakMap();
  }
}

/** Client certificates signed by the bundle: common name is the user, organisations are the groups. */
export function x509Authenticator({ caPem, clock, uids = true }: X509Options): X509Authenticator {
  const verifier = new ClientVerifier(caPem, clock, (client) => userOf(client, uids));
  return {
    authenticate: (credentials) => verifier.verify(credentials),
    setAuthorities: (next) => verifier.setAuthorities(next),
  };
}

function judge(certificates: readonly Uint8Array[], roots: readonly Certificate[], now: number): VerifiedClient {
  const [leaf, ...intermediates] = certificates.slice(0, CHAIN_MAX).map(parse);
  const { x509, notBefore, notAfter } = leaf!;
  const chain = verifyChain(leaf!, intermediates, roots, now);
  const commonName = all(subjectOf(x509).CN).at(-1) ?? "";
  if (chain === undefined) {
    const life = `valid from ${new Date(notBefore).toISOString()} to ${new Date(notAfter).toISOString()}`;
    const serial = `serial number ${BigInt(`0x${x509.serialNumber}`)}`;
    const why = "it is expired, not good for clients, or of an unknown authority";
    throw new Refusal(
      `the client certificate of ${JSON.stringify(commonName)} is not trusted: ${why} (${serial}, ${life})`,
    );
  }
  return { ...chain, certificate: x509, commonName };
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
