/** TLS versions and cipher suites: from the names in flags to those of Node and OpenSSL. */
import type { TlsOptions } from "./options.ts";

const VERSIONS: Readonly<Record<string, TlsOptions["minVersion"]>> = {
  VersionTLS10: "TLSv1",
  VersionTLS11: "TLSv1.1",
  VersionTLS12: "TLSv1.2",
  VersionTLS13: "TLSv1.3",
};

/** `VersionTLS13` → `TLSv1.3`; undefined for the empty string: the listener's default. */
export function parseTlsVersion(name: string): TlsOptions["minVersion"] {
  return VERSIONS[name];
}

/** The suites of TLS 1.3, which are not configurable, as in Go. */
const TLS13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
/** Suites that current OpenSSL does not support. */
const UNSUPPORTED = /RC4|3DES/;

/** The sentence for the first suite that the TLS library lacks. */
export function findUnsupportedSuite(suites: readonly string[]): string | undefined {
  const unsupported = suites.find((suite) => UNSUPPORTED.test(suite));
  if (unsupported === undefined) return undefined;
  return `${unsupported} is not supported; use a suite such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`;
}

/** The `ciphers` option for suites by their IANA names; undefined when there are none. */
export function toOpenSslCiphers(suites: readonly string[]): string | undefined {
  if (suites.length === 0) return undefined;
  const problem = findUnsupportedSuite(suites);
  if (problem !== undefined) throw new Error(`Cannot use --tls-cipher-suites: ${problem}`);
  return [...TLS13, ...suites.filter((suite) => !TLS13.includes(suite)).map(toOpenSslName)].join(":");
}

/** `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` → `ECDHE-RSA-AES128-GCM-SHA256`. */
function toOpenSslName(suite: string): string {
  const [, exchange = "", cipher = ""] = /^TLS_(.+)_WITH_(.+)$/.exec(suite) ?? [];
  const parts = exchange === "RSA" ? [] : [exchange.replaceAll("_", "-")];
  const name = cipher
    .replace(/^AES_(\d+)/, "AES$1")
    .replace(/^CHACHA20_POLY1305(_SHA256)?$/, "CHACHA20-POLY1305")
    .replace(/_CBC_/, "_")
    .replaceAll("_", "-");
  return [...parts, name].join("-");
}
