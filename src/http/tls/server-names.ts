/** Chooses the certificate for a connection (SNI) by Go's rules, as Kubernetes' servers do. */
import { X509Certificate } from "node:crypto";
import { isIpAddress } from "../../std/net/ip.ts";
import type { NamedTlsPair, TlsPair } from "./options.ts";

const LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";
/** Go ignores the common name here. */
const SAN_ONLY = { subject: "never" } as const;
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

/** The constructor throws for an invalid certificate. */
export class CertificateSelector<Pair extends TlsPair = TlsPair> {
  readonly #fallback: Pair;
  readonly #byName: ReadonlyMap<string, Pair & NamedTlsPair>;
  /** All pairs, the fallback first. */
  readonly #all: readonly { readonly pair: Pair; readonly certificate: X509Certificate }[];

  constructor(fallback: Pair, named: readonly (Pair & NamedTlsPair)[]) {
    this.#fallback = fallback;
    this.#byName = indexByName(named);
    this.#all = [fallback, ...named].map((pair) => ({ pair, certificate: new X509Certificate(pair.cert) }));
  }

  /**
   * For a client with SNI: the exact name, then a wildcard for its first label, then the first certificate that is
   * valid for it.
   */
  forName(name: string): Pair {
    const host = name.toLowerCase().replace(/\.$/, "");
    const chosen = this.#byName.get(host) ?? this.#byName.get(host.replace(/^[^.]*/, "*"));
    if (chosen !== undefined) return chosen;
    return (
      this.#all.find(({ certificate }) => certificate.checkHost(host, SAN_ONLY) !== undefined)?.pair ?? this.#fallback
    );
  }

  /** For a client without SNI: only addresses listed in `names` count, not those in certificates. */
  forAddress(local: string): Pair {
    return this.#byName.get(normalizeAddress(local)) ?? this.#fallback;
  }

  /** The addresses for which `forAddress` does not return the fallback. */
  addresses(): readonly string[] {
    return [...this.#byName.keys()].filter(isIpAddress);
  }
}

/** Removes the IPv4-mapped prefix of an IPv6 socket's address, and the zone of a link-local one. */
export function normalizeAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
}

/** The first pair for a name wins; listed names win over names in certificates. */
function indexByName<Pair extends NamedTlsPair>(pairs: readonly Pair[]): ReadonlyMap<string, Pair> {
  const found = new Map<string, Pair>();
  const add = (names: readonly string[], pair: Pair): void => {
    for (const name of names.map((each) => each.toLowerCase())) if (!found.has(name)) found.set(name, pair);
  };
  for (const pair of pairs) add(pair.names, pair);
  for (const pair of pairs) if (pair.names.length === 0) add(certificateNames(new X509Certificate(pair.cert)), pair);
  return found;
}

/** The common name where it is a host name, and the DNS names; no addresses, since SNI has none. */
function certificateNames(certificate: X509Certificate): readonly string[] {
  const names: string[] = [];
  const common = certificate.toLegacyObject().subject?.CN;
  for (const name of typeof common === "string" ? [common] : (common ?? [])) {
    if (!isIpAddress(name) && (name === "*" || HOST_NAME.test(name.replace(/^\*\./, "")))) names.push(name);
  }
  for (const [, name = ""] of (certificate.subjectAltName ?? "").matchAll(/(?:^|, )DNS:("[^"]*"|[^,]*)/g))
    names.push(name);
  return names;
}
