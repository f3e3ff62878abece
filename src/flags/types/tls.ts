/** TLS versions and cipher suites by their Go names. */
import { ValueError, type ValueType } from "../flag.ts";
import { repeated, strings } from "./list.ts";
import { oneOfOrNone } from "./text.ts";

export const tlsVersion: ValueType<"" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" | "VersionTLS13"> =
  oneOfOrNone("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13");

/** Suites that both programs list as preferred. */
const preferred: readonly string[] = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/** Without forward secrecy: preferred by the node agent, insecure to the API server. */
const staticRsa: readonly string[] = [
  "TLS_RSA_WITH_AES_128_CBC_SHA",
  "TLS_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_RSA_WITH_AES_256_CBC_SHA",
  "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

const insecure: readonly string[] = [
  "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
  "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
  "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
  "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
  "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
  "TLS_RSA_WITH_AES_128_CBC_SHA256",
  "TLS_RSA_WITH_RC4_128_SHA",
];

/** All suites that either program accepts. */
const cipherSuites: readonly string[] = [...preferred, ...staticRsa, ...insecure];

export function suites(name: "string" | "strings"): ValueType<readonly string[]> {
  return {
    ...strings({
      name,
      element: "a TLS cipher suite such as TLS_AES_128_GCM_SHA256",
      accepts: (value) => cipherSuites.includes(value),
      sample: "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
      wrong: "TLS_ROT13",
    }),
    choices: cipherSuites,
  };
}

export interface SniCertificate {
  readonly certFile: string;
  readonly keyFile: string;
  /** Host names the certificate is for, `*.example.com` among them; empty takes those of the certificate. */
  readonly names: readonly string[];
}

/** `cert.pem,key.pem:*.example.com,example.com`, one an occurrence. */
export const sniCertificates: ValueType<readonly SniCertificate[]> = {
  ...mapped(),
  name: "cert,key[:names]",
};

function mapped(): ValueType<readonly SniCertificate[]> {
  const base = repeated();
  const allowed = "CERT-FILE,KEY-FILE, then optionally a colon and comma-separated host names";
  return {
    name: base.name,
    allowed,
    sample: "/etc/svc/tls.crt,/etc/svc/tls.key:*.example.com,example.com",
    wrong: "/etc/svc/tls.crt",
    parse(value) {
      if (value === "") return [];
      const colon = value.indexOf(":");
      const [certFile = "", keyFile = "", ...rest] = (colon < 0 ? value : value.slice(0, colon)).split(",");
      const names = colon < 0 ? [] : value.slice(colon + 1).split(",");
      if (certFile === "" || keyFile === "" || rest.length > 0 || names.includes("")) {
        throw new ValueError(`must be ${allowed}`);
      }
      return [{ certFile, keyFile, names }];
    },
    print: (list) =>
      list
        .map(({ certFile, keyFile, names }) => `${certFile},${keyFile}${names.length > 0 ? `:${names.join(",")}` : ""}`)
        .join(" "),
    add: (previous, next) => [...previous, ...next],
  };
}
