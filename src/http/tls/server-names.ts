/** Which of several certificates a connection is shown, by Go's rules, which are those of Kubernetes' servers. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { NamedTlsPair, TlsPair } from "./options.ts";

const LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";
/** Names are those of the extension; Go does not look at the common name here. */
const SAN_ONLY = { subject: "never" } as const;
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

/** Which pair a connection gets. Throws when a certificate is none. */
export class CertificateSelector<Pair extends TlsPair = TlsPair> {
  readonly #fallback: Pair;
  readonly #byName: ReadonlyMap<string, Pair & NamedTlsPair>;
  /** All, the fallback first, with what they are good for. */
  readonly #all: readonly { readonly pair: Pair; readonly certificate: X509Certificate }[];

  constructor(fallback: Pair, named: readonly (Pair & NamedTlsPair)[]) {
    this.#fallback = fallback;
    this.#byName = indexByName(named);
    this.#all = [fallback, ...named].map((pair) => ({ pair, certificate: new X509Certificate(pair.cert) }));
  }

  /**
   * For a client that asks for a host name: the exact name, then a wildcard for its first label, then whatever
   * certificate is good for it.
   */
  forName(name: string): Pair {
    const host = name.toLowerCase().replace(/\.$/, "");
    const chosen = this.#byName.get(host) ?? this.#byName.get(host.replace(/^[^.]*/, "*"));
    if (chosen !== undefined) return chosen;
    return (
      this.#all.find(({ certificate }) => certificate.checkHost(host, SAN_ONLY) !== undefined)?.pair ?? this.#fallback
    );
  }

  /** For a client that asks for no name: addresses count only where they are named, never by the certificate. */
  forAddress(local: string): Pair {
    return this.#byName.get(normalizeAddress(local)) ?? this.#fallback;
  }

  /** The addresses for which `forAddress` does not choose the fallback. */
  addresses(): readonly string[] {
    return [...this.#byName.keys()].filter((name) => isIP(name) !== 0);
  }
}

/** An IPv4 address as IPv6 sockets spell it, and the zone of a link, told plainly. */
export function normalizeAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
}

/** Of two pairs for one name the first counts, and names that were given before those that a certificate has. */
function indexByName<Pair extends NamedTlsPair>(pairs: readonly Pair[]): ReadonlyMap<string, Pair> {
  const found = new Map<string, Pair>();
  const add = (names: readonly string[], pair: Pair): void => {
    for (const name of names.map((each) => each.toLowerCase())) if (!found.has(name)) found.set(name, pair);
  };
  for (const pair of pairs) add(pair.names, pair);
  for (const pair of pairs) if (pair.names.length === 0) add(certificateNames(new X509Certificate(pair.cert)), pair);
  return found;
}

/** The common name where it can be a host's, and the DNS names; no addresses, since clients do not ask for these. */
function certificateNames(certificate: X509Certificate): readonly string[] {
  const names: string[] = [];
  const common = certificate.toLegacyObject().subject?.CN;
  for (const name of typeof common === "string" ? [common] : (common ?? [])) {
    if (isIP(name) === 0 && (name === "*" || HOST_NAME.test(name.replace(/^\*\./, "")))) names.push(name);
  }
  for (const [, name = ""] of (certificate.subjectAltName ?? "").matchAll(/(?:^|, )DNS:("[^"]*"|[^,]*)/g))
    names.push(name);
  return names;
}
