/** The file of `--egress-selector-config-file`: through which proxies the server connects to parts of the cluster. */
import { existsSync, readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { readConfigurationFile } from "../../auth/configuration-file.ts";
import { list, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  unstructured,
} from "../../schema/validation/field-error.ts";
import { CONFIGURATION_BYTES_MAX } from "../config/flag-file.ts";

const tlsConfig = object("apiserver/v1beta1.TLSConfig", {
  caBundle: optional(0, string),
  clientKey: optional(0, string),
  clientCert: optional(0, string),
});
const transport = object("apiserver/v1beta1.Transport", {
  tcp: pointer(
    0,
    object("apiserver/v1beta1.TCPTransport", { url: optional(0, string), tlsConfig: pointer(0, tlsConfig) }),
  ),
  uds: pointer(0, object("apiserver/v1beta1.UDSTransport", { udsName: optional(0, string) })),
});
const connection = object("apiserver/v1beta1.Connection", {
  proxyProtocol: optional(0, string),
  transport: pointer(0, transport),
});
export const egressSelectorConfiguration = object("apiserver/v1beta1.EgressSelectorConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  egressSelections: optional(
    0,
    list(
      object("apiserver/v1beta1.EgressSelection", { name: optional(0, string), connection: optional(0, connection) }),
    ),
  ),
});
type Configuration = Infer<typeof egressSelectorConfiguration>;
type Transport = Infer<typeof transport>;
type Connection = Infer<typeof connection>;
type TlsConfig = Infer<typeof tlsConfig>;

/** What connections are for. */
export type EgressName = "controlplane" | "etcd" | "cluster";

/** The names of a selection in files. */
const NAMES: ReadonlyMap<string, EgressName> = new Map([
  ["controlplane", "controlplane"],
  ["etcd", "etcd"],
  ["cluster", "cluster"],
  // The project's name, and the one that `controlplane` replaces.
  ["kvstore", "etcd"],
  ["master", "controlplane"],
]);
const DEPRECATED_NAME = "master";
const SHOWN_NAMES = ["cluster", "controlplane", "etcd"];
const PROTOCOLS = ["Direct", "HTTPConnect", "GRPC"];

/** How to reach the proxy. */
export type ProxyAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly url: URL; readonly tls: ProxyTls | undefined };

/** PEM. */
export interface ProxyTls {
  /** The system's authorities when absent. */
  readonly ca?: string | undefined;
  readonly cert: string;
  readonly key: string;
}

export type EgressConnection =
  | { readonly protocol: "direct" }
  | { readonly protocol: "http_connect"; readonly proxy: ProxyAddress }
  | { readonly protocol: "grpc"; readonly path: string };

export interface EgressConfiguration {
  readonly connections: ReadonlyMap<EgressName, EgressConnection>;
  /** Sentences for the operator. */
  readonly warnings: readonly string[];
}

function readConfigurationText(path: string): string {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > CONFIGURATION_BYTES_MAX) {
      throw new Error(`the file has more than ${CONFIGURATION_BYTES_MAX} bytes`);
    }
    return bytes.toString("utf8");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `open ${path}: no such file or directory` : message;
    throw new Error(
      `failed to read egress selector config: unable to read egress selector configuration from "${path}" [${why}]`,
      { cause },
    );
  }
}

/**
 * Throws one sentence with the file, and the line and field of each mistake. `text`: what the file contains; it is read
 * when absent.
 */
export function loadEgressConfiguration(path: string, text?: string): EgressConfiguration {
  return readConfigurationFile(path, text ?? readConfigurationText(path), {
    kind: "EgressSelectorConfiguration",
    versions: ["v1beta1", "v1alpha1"],
    schema: egressSelectorConfiguration,
    read: (value) => {
      const errors = validateConfiguration(value);
      return errors.length > 0 ? { errors } : { value: readConnections(value) };
    },
  });
}

function validateConfiguration({ egressSelections = [] }: Configuration): readonly FieldError[] {
  const seen = new Map<EgressName, string>();
  return [
    ...egressSelections.flatMap(({ connection: each = {} }, index) =>
      validateConnection(each, `egressSelections[${index}].connection`),
    ),
    ...egressSelections.flatMap(({ name: text = "" }, index) => {
      const path = `egressSelections[${index}].name`;
      const name = NAMES.get(text.toLowerCase());
      if (name === undefined) return [notSupported(path, text.toLowerCase(), SHOWN_NAMES)];
      const earlier = seen.get(name);
      seen.set(name, text.toLowerCase());
      if (earlier === undefined) return [];
      if (earlier === text.toLowerCase() || name !== "controlplane") return [duplicateField(path, text.toLowerCase())];
      const both = "both egressSelection names 'master' and 'controlplane' are specified, only one is allowed";
      return [forbiddenField(path, both)];
    }),
  ];
}

function validateConnection({ proxyProtocol = "", transport: over }: Connection, path: string): readonly FieldError[] {
  switch (proxyProtocol) {
    case "Direct":
      return over
        ? [invalidField(`${path}.transport`, "direct", "Transport config should be absent for direct connect")]
        : [];
    case "HTTPConnect":
      return over
        ? validateHttpConnect(over, `${path}.transport`)
        : [requiredField(`${path}.transport`, "transport must be set for HTTPConnect")];
    case "GRPC":
      if (!over) return [requiredField(`${path}.transport`, "transport must be set for GRPC")];
      return over.uds
        ? validateUnix(over.uds, `${path}.transport.uds`)
        : [requiredField(`${path}.transport.uds`, "UDS must be set with GRPC")];
    default:
      return [notSupported(`${path}.proxyProtocol`, proxyProtocol, PROTOCOLS)];
  }
}

function validateHttpConnect({ tcp, uds }: Transport, path: string): readonly FieldError[] {
  if (tcp && uds) return [invalidField(`${path}.tcp`, unstructured(tcp), "TCP and UDS cannot both be set")];
  if (uds) return validateUnix(uds, `${path}.uds`);
  if (!tcp) return [requiredField(`${path}.tcp`, "One of TCP or UDS must be set")];
  const { url = "", tlsConfig: tls } = tcp;
  if (url.startsWith("http://")) {
    return tls
      ? [invalidField(`${path}.tcp.tlsConfig`, "nil", "TLSConfig config should not be present when using HTTP")]
      : validateUrl(url, `${path}.tcp.url`);
  }
  if (url.startsWith("https://")) {
    return [...validateUrl(url, `${path}.tcp.url`), ...validateTls(tls ?? undefined, `${path}.tcp.tlsConfig`)];
  }
  return [invalidField(`${path}.tcp.url`, url, "supported connection protocols are http:// and https://")];
}

function validateUrl(url: string, path: string): readonly FieldError[] {
  return URL.canParse(url) ? [] : [invalidField(path, url, `invalid proxy server url "${url}"`)];
}

function validateUnix(
  { udsName = "" }: { readonly udsName?: string | undefined },
  path: string,
): readonly FieldError[] {
  return udsName === ""
    ? [invalidField(`${path}.udsName`, "nil", "UDSName should be present for UDS connections")]
    : [];
}

function validateTls(tls: TlsConfig | undefined, path: string): readonly FieldError[] {
  if (tls === undefined) return [requiredField(path, "TLSConfig must be present when using HTTPS")];
  const { caBundle = "", clientCert = "", clientKey = "" } = tls;
  const file = (name: string, value: string, missing: string | undefined, absent: string): readonly FieldError[] => {
    if (value === "") return missing === undefined ? [] : [invalidField(`${path}.${name}`, "nil", missing)];
    return existsSync(value) ? [] : [invalidField(`${path}.${name}`, value, absent)];
  };
  return [
    ...file("caBundle", caBundle, undefined, "TLS config ca bundle does not exist"),
    ...file("clientCert", clientCert, "Using TLS requires clientCert", "TLS client cert does not exist"),
    ...file("clientKey", clientKey, "Using TLS requires requires clientKey", "TLS client key does not exist"),
  ];
}

/** The selections have been validated. */
function readConnections({ egressSelections = [] }: Configuration): EgressConfiguration {
  const connections = new Map<EgressName, EgressConnection>();
  const warnings: string[] = [];
  for (const { name: text = "", connection: each = {} } of egressSelections) {
    const name = NAMES.get(text.toLowerCase());
    if (name === undefined) continue;
    if (text.toLowerCase() === DEPRECATED_NAME) {
      warnings.push(`The egress selection name "${DEPRECATED_NAME}" is deprecated; use "controlplane"`);
    }
    try {
      connections.set(name, readConnection(each));
    } catch (cause) {
      throw new Error(`failed to create dialer for egressSelection "${name}": ${(cause as Error).message}`, { cause });
    }
  }
  return { connections, warnings };
}

function readConnection({ proxyProtocol, transport: over }: Connection): EgressConnection {
  if (proxyProtocol === "Direct" || !over) return { protocol: "direct" };
  const path = over.uds?.udsName ?? "";
  if (proxyProtocol === "GRPC") return { protocol: "grpc", path };
  if (!over.tcp) return { protocol: "http_connect", proxy: { kind: "unix", path } };
  const url = new URL(over.tcp.url ?? "");
  const tls = url.protocol === "https:" ? readTls(over.tcp.tlsConfig ?? {}) : undefined;
  return { protocol: "http_connect", proxy: { kind: "tcp", url, tls } };
}

function readTls({ caBundle = "", clientCert = "", clientKey = "" }: TlsConfig): ProxyTls {
  const tls = readPair(clientCert, clientKey);
  if (caBundle === "") return tls;
  const ca = readText(caBundle, `failed to read cert file ${caBundle}`);
  if (!ca.includes("-----BEGIN CERTIFICATE-----")) throw new Error("failed to append CA cert to the cert pool");
  return { ...tls, ca };
}

function readPair(certFile: string, keyFile: string): ProxyTls {
  const what = `failed to read key pair ${certFile} & ${keyFile}`;
  const pair = { cert: readText(certFile, what), key: readText(keyFile, what) };
  try {
    createSecureContext(pair);
  } catch (cause) {
    throw new Error(`${what}, got ${(cause as Error).message}`, { cause });
  }
  return pair;
}

function readText(file: string, what: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Error(`${what}, got ${(cause as Error).message}`, { cause });
  }
}
