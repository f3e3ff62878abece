import { createHash, type X509Certificate } from "node:crypto";
import { unauthorized } from "../../api/status.ts";
import type { Clock } from "../../std/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../user.ts";
import { type Certificate, readBundle, readCertificate, type VerifiedChain, verifyChain } from "./chain.ts";

export interface X509Authenticator {
  readonly authenticate: Authenticator;
  /** Replaces the bundle; certificates already accepted are judged again. Throws when it holds no certificate. */
  setAuthorities(caPem: string): void;
}

/** Longest chain looked at: Node's TLS hands over no more. */
const CHAIN_MAX = 10;
/** Set by an authority that wants the user to have a uid, as Kubernetes reads it. */
const UID_OID = "1.3.6.1.4.1.57683.2";
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

interface Accepted extends VerifiedChain {
  readonly user: UserInfo;
}

/**
 * Client certificates signed by the bundle: common name is the user, organisations are the groups. A chain is verified
 * once for as long as its bytes live, which is the connection; its validity in time is asked every time.
 */
export function x509Authenticator(options: { readonly caPem: string; readonly clock: Clock }): X509Authenticator {
  let roots = readBundle(options.caPem);
  let accepted = new WeakMap<Uint8Array, Accepted>();
  return {
    authenticate: async ({ certificates }: Credentials) => {
      const leaf = certificates[0];
      if (leaf === undefined) return undefined;
      const now = options.clock.now();
      const known = accepted.get(leaf);
      if (known !== undefined && known.notBefore <= now && now <= known.notAfter) return known.user;
      const judged = judge(certificates, roots, now);
      accepted.set(leaf, judged);
      return judged.user;
    },
    setAuthorities(caPem) {
      roots = readBundle(caPem);
      accepted = new WeakMap();
    },
  };
}

function judge(certificates: readonly Uint8Array[], roots: readonly Certificate[], now: number): Accepted {
  const [leaf, ...intermediates] = certificates.slice(0, CHAIN_MAX).map(parse);
  const chain = verifyChain(leaf!, intermediates, roots, now);
  const user = chain === undefined ? undefined : userOf(leaf!.x509);
  // Which of the two it was is not for the client to learn.
  if (chain === undefined || user === undefined) throw unauthorized();
  return { ...chain, user };
}

function parse(der: Uint8Array): Certificate {
  try {
    return readCertificate(der);
  } catch {
    throw unauthorized();
  }
}

/** Undefined for a certificate without a common name: it stands for nobody. */
function userOf(certificate: X509Certificate): UserInfo | undefined {
  // Not `certificate.subject`: that is text, in which a value may imitate the next line.
  const subject = certificate.toLegacyObject().subject as unknown as Readonly<Record<string, string | string[]>>;
  const name = all(subject.CN).at(-1);
  if (name === undefined || name === "") return undefined;
  const fingerprint = createHash("sha256").update(certificate.raw).digest("hex");
  return {
    name,
    uid: all(subject[UID_OID]).at(-1) ?? "",
    groups: all(subject.O),
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
  };
}

function all(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
